//! The simulation's view of a lease task, and its copies.

use super::{LeaseTask, Stage};
use crate::lease::environment::Process;
use crate::lease::protocol::Grant;
use crate::lease::shared::SharedGenerator;
use crate::wait::request::Requests;
use frazil_base::error::Error;
use std::sync::{Arc, Weak};

impl LeaseTask {
    pub(in crate::lease) fn grant(&self) -> Option<Grant> {
        self.protocol.grant()
    }

    pub(in crate::lease) fn last_trouble(&self) -> Option<&Error> {
        self.protocol.trouble()
    }

    pub(in crate::lease) fn incarnation(&self) -> Option<&String> {
        self.protocol.incarnation()
    }

    /// The generator's current lease, by its serial, and the token of the grant that it was made for.
    pub(in crate::lease) fn in_use(&self) -> Option<(u64, u64)> {
        match &self.stage {
            Stage::Serving { shared, token, .. } => Some((shared.generator.lease.get().serial(), *token)),
            _ => None,
        }
    }

    /// The lease task of a machine that was copied while it ran, without its waiting calls.
    pub(in crate::lease) fn copy(
        &self,
        process: &Process,
        shared_of: &mut dyn FnMut(&Arc<SharedGenerator>) -> Arc<SharedGenerator>,
    ) -> Self {
        let stage = match &self.stage {
            Stage::Opening => Stage::Opening,
            Stage::Unleased(shared) => Stage::Unleased(shared_of(shared)),
            Stage::Serving { shared, owner, token, spare } => {
                Stage::Serving { shared: shared_of(shared), owner: owner.copy(), token: *token, spare: *spare }
            }
            Stage::Leaving => Stage::Leaving,
        };
        LeaseTask {
            contract: Arc::clone(&self.contract),
            note: self.note.clone(),
            protocol: self.protocol.copy(process.environment.random(), Arc::clone(&process.holder)),
            stage,
            left_by: Weak::new(),
            requests: Requests::default(),
            reason: None,
            unreported: None,
            late: None,
            ..*self
        }
    }
}
