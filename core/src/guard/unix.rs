//! A descriptor that holds a name, and the description of its holder. All guards on Unix systems use them.

use super::{NotTaken, Peer, TakenName};
use frazil_base::os::fork::{ClosedInChild, Places, off_the_standard_streams, with_no_fork};
use rustix::process::{Pid, geteuid, test_kill_process};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

/// A descriptor that this process holds until this is dropped.
///
/// A child that is forked during the taking or dropping closes its copy, too.
pub(super) struct HeldName<T: AsFd + Into<OwnedFd> + From<OwnedFd>> {
    /// `None` during the drop.
    descriptor: Option<T>,
    registered: ClosedInChild,
}

impl<T: AsFd + Into<OwnedFd> + From<OwnedFd>> HeldName<T> {
    /// Takes a name. A process may have thousands of numbers, and descriptors are scarce, so it holds at most as many names as there are
    /// `places`.
    pub(super) fn take(places: &'static Places, open: impl FnOnce() -> TakenName<T>) -> TakenName<Self> {
        with_no_fork(|| {
            let refused = |why: std::io::Error| NotTaken::Refused(why.to_string());
            let descriptor = off_the_standard_streams(open()?).map_err(refused)?;
            let full = || NotTaken::Refused(format!("this process already guards {} numbers, the most that it can", places.len()));
            let registered = ClosedInChild::among(places, descriptor.as_fd()).ok_or_else(full)?;
            Ok(HeldName { descriptor: Some(descriptor), registered })
        })
    }

    pub(super) fn descriptor(&self) -> &T {
        self.descriptor.as_ref().expect("it is not dropped")
    }

    /// Returns whether this process still has the descriptor. A program may have closed all of them.
    pub(super) fn is_intact(&self) -> bool {
        self.registered.is_intact(self.descriptor().as_fd())
    }
}

impl<T: AsFd + Into<OwnedFd> + From<OwnedFd>> Drop for HeldName<T> {
    fn drop(&mut self) {
        let Some(descriptor) = self.descriptor.take() else { return };
        let is_intact = |descriptor: &T| self.registered.is_intact(descriptor.as_fd());
        // A fork copies the descriptors before the memory. Without `with_no_fork`, a child could get the descriptor and find its place
        // free.
        with_no_fork(|| match descriptor {
            descriptor if is_intact(&descriptor) => drop(descriptor),
            descriptor => drop(descriptor.into().into_raw_fd()),
        });
    }
}

impl Peer {
    /// Describes a process by its process ID and user ID.
    pub(super) fn new(pid: Option<u32>, uid: u32, program: Option<String>) -> Self {
        let has_ended = |pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        Peer {
            pid,
            other_user: (uid != geteuid().as_raw()).then_some(uid),
            program,
            has_ended: pid.and_then(|pid| Pid::from_raw(pid as i32)).is_some_and(has_ended),
        }
    }
}
