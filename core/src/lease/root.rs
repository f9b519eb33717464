//! The workers of this process, and the calls of handles and tags. A forked child has its own workers.

use super::connection::Connection;
use super::contract::Contract;
use super::environment::Process;
use super::shared::{AtWorker, ProcessWorkers, SharedGenerator};
use super::tasks::Task;
use super::visit;
use super::workers::Workers;
use crate::wait::{Wait, block_on};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, PerCopy};
use frazil_store::Address;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

static WORKERS: PerCopy<Arc<Workers>> = PerCopy::new();

/// The workers of the calling process.
struct ThisProcess;

impl ProcessWorkers for ThisProcess {
    fn ensure<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a> {
        Box::pin(async move {
            let workers = workers()?;
            check_copied(shared.leased.iter().map(|leased| &leased.contract.address))?;
            visit::ensure(&workers, shared, wait).await
        })
    }

    fn close<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a> {
        Box::pin(async move { visit::close(&workers()?, shared, wait).await })
    }
}

/// Returns the workers of this process. The first call makes them. In a copy of the machine, it first ends the original's workers.
///
/// # Errors
/// `COPIED` while it is not known whether the process is a copy.
fn workers() -> Result<Arc<Workers>> {
    let make = |original: Option<&Arc<Workers>>| {
        original.into_iter().for_each(|workers| workers.abandon());
        Ok(Arc::new(Workers::new(Process::this(Arc::new(ThisProcess)))))
    };
    WORKERS.get(make).cloned()
}

/// Refuses a store that was copied together with this process, because another copy finds the same records in it. Called after [`workers`],
/// because those workers do nothing in a copy that is made later.
///
/// # Errors
/// `COPIED`.
fn check_copied<'a>(stores: impl IntoIterator<Item = &'a Address>) -> Result<()> {
    match stores.into_iter().find(|address| address.is_of_this_machine()).filter(|_| fork::mark().is_copied()) {
        None => Ok(()),
        Some(address) => {
            let why = format!(
                "store={address}: this process was copied with its machine, and the store may have been. Use a store that \
                 all copies reach, or exit"
            );
            Err(Error::new(ErrorKind::Copied, why))
        }
    }
}

/// Opens a leased generator, or takes one more handle on it.
///
/// # Errors
/// The reason why the store leases no number; `CONFLICT`; `WOULD_BLOCK` when it takes longer than the caller waits.
pub(crate) async fn open(contract: &Arc<Contract>, wait: &Wait<'_>) -> Result<Arc<SharedGenerator>> {
    // A child that is forked during the call, or a copy, continues with its own workers.
    loop {
        let workers = workers()?;
        check_copied([&contract.address])?;
        if let Some(shared) = visit::open(&workers, contract, wait).await? {
            return Ok(shared);
        }
    }
}

/// Releases the number, so that the next use takes another.
///
/// # Errors
/// `SPEC` without a store; `STORE_UNREACHABLE` or `LEASE_EXHAUSTED` when the store takes too long; `CLOSED`.
pub(crate) async fn release_node(shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    if shared.leased.is_none() {
        return Err(Error::new(ErrorKind::Spec, "release_node needs a store: this node number is given in the spec"));
    }
    visit::release_node(&workers()?, shared, wait).await
}

/// Closes every generator of the process that leases its number, and releases the numbers.
///
/// Call it at the end of a program, as at SIGTERM, so that the next program need not wait for a number.
///
/// Waits at most `max_wait` for all stores together. This includes numbers that were closed or dropped before. If a number is not released
/// in time, its record's bound protects the issued IDs. Later calls on these generators are `CLOSED`; a ring first gives out its prefetched
/// IDs. Fixed numbers and segments have nothing to release, and stay open. Call this function from a thread, and not within a signal
/// handler.
///
/// # Errors
/// `WOULD_BLOCK` if a number has not been released yet.
///
/// # Example
/// ```
/// use std::time::Duration;
///
/// let ids = frazil::Snowflake::open("standard store=memory")?;
/// frazil::close_all(Duration::from_millis(500))?;
/// assert_eq!(ids.next_id().unwrap_err().kind(), frazil::ErrorKind::Closed);
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn close_all(max_wait: Duration) -> Result<()> {
    block_on(visit::close_all(&workers()?, &Wait::from(max_wait).begun()))
}

/// Adds a task to the worker of a store, or of several stores. The task is due at once. `make` gets the waker that makes it due again.
///
/// # Errors
/// `STORE_UNREACHABLE` when no thread can be started; `COPIED`.
pub(crate) fn add_task<T>(stores: &[Address], make: impl FnOnce(Waker) -> (Box<dyn Task>, T)) -> Result<T> {
    let workers = workers()?;
    check_copied(stores)?;
    let made = workers.with(stores, true, |worker, state| {
        let number = state.number();
        let (task, made) = make(worker.waker(number));
        state.tasks.add(number, task);
        made
    })?;
    Ok(made.expect("a worker has begun"))
}

/// Returns this process's connections to stores.
///
/// # Errors
/// `COPIED` while it is not known whether the process is a copy.
pub(crate) fn connections<'a>(stores: impl IntoIterator<Item = &'a Address>) -> Result<Vec<Arc<Connection>>> {
    let workers = workers()?;
    Ok(stores.into_iter().map(|address| workers.connection(address)).collect())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn process_has_one_connection_to_each_store() {
        let connection = |store: &str| connections([&Address::parse(store).unwrap()]).unwrap().remove(0);
        let (one, other) = (connection("file:/one"), connection("file:/other"));
        assert!(Arc::ptr_eq(&one, &connection("file:/one")) && !Arc::ptr_eq(&one, &other));
    }
}
