//! Copies for the simulation.

use super::{Worker, Workers, locked};
use crate::lease::environment::Process;
use crate::lease::lease_task::LeaseTask;
use crate::lease::shared::SharedGenerator;
use std::sync::Arc;

impl Workers {
    /// The workers of a machine that was copied while it ran.
    pub(in crate::lease) fn copy(
        &self,
        process: Process,
        mut shared_of: impl FnMut(&Process, &Arc<SharedGenerator>) -> Arc<SharedGenerator>,
    ) -> Self {
        let workers = Workers::new(process);
        for (stores, worker) in locked(&self.map).iter() {
            let copied = Worker::new(stores.clone(), workers.process.environment.mono_ms());
            let (mut from, mut to) = (worker.lock(), copied.lock());
            let copy = |lease_task: &mut LeaseTask| lease_task.copy(&workers.process, &mut |shared| shared_of(&workers.process, shared));
            let now_ms = workers.process.environment.mono_ms();
            for copied in from.lease_tasks.iter_mut().map(copy) {
                to.lease_tasks.add(copied, now_ms);
            }
            to.numbers = from.numbers;
            drop(to);
            let copied = Arc::new(copied);
            locked(&workers.map).insert(stores.clone(), copied);
        }
        workers
    }
}
