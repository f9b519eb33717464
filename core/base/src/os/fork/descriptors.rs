//! Descriptors that a forked child closes at once, because the locks and names that they hold must end with their owner.
//!
//! A lock by `flock(2)` and the name of a socket belong to all copies of a descriptor. A child with a copy would keep the lock of a killed
//! parent. A raw `clone` skips the handler that closes the copies.
//!
//! Two kinds of children have a copy that the handler does not know. One is forked between a descriptor's opening and its registration. The
//! other is forked while a descriptor is closed: a fork copies the descriptors first and then the memory, in which the place may already be
//! free. For a lock this is harmless, because a lock is held for a millisecond and unlocked in all copies. But a name is held until its
//! process exits. So [`with_no_fork`] opens and closes names while no fork is in progress.
//!
//! An opener and a fork each announce themselves first, and then look for the other. Both use the total order of `SeqCst`, so if they meet,
//! at least one sees the other. The opener waits for the forks that it finds. A fork that finds an opener withdraws its announcement until
//! there is none, so a program that forks without a pause does not starve openers. Both wait for 1 s at most: a signal handler may fork in
//! the thread that opens, and another library's handler may wait for a lock of this thread's caller.
//!
//! A program may close descriptors that it did not open, as daemons do (`closefrom`), and then open another file with the same descriptor
//! number. So each place also stores the file's identity, and a descriptor of another file is left alone.

use super::mark;
use super::page::Page;
use rustix::fs::fstat;
use rustix::io::fcntl_dupfd_cloexec;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest wait of an opener for a fork, and of a fork for an opener.
const LONGEST: Duration = Duration::from_secs(1);

/// A registered descriptor, and its file.
pub struct Place {
    /// `FREE`; `TAKEN` while the file is stored; or the descriptor plus 1.
    held: AtomicI32,
    /// The number of the process that registered the descriptor. Handlers that run before ours in a child may have registered descriptors
    /// of the child. This is not the process ID, because a child in another namespace may have its parent's.
    owner: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
}

const FREE: i32 = 0;
const TAKEN: i32 = -1;

pub type Places = [Place; 64];

/// The locks of file stores, two for each folder that is locked now. If there are more locks than places, a child keeps the rest.
static LOCKS: Places = [const { Place::new() }; 64];
/// The names that guard node numbers (`guard`).
pub static NAMES: Places = [const { Place::new() }; 64];
/// The names that watch for another issuer (`guard`).
pub static WATCHES: Places = [const { Place::new() }; 64];

impl Place {
    const fn new() -> Self {
        Place { held: AtomicI32::new(FREE), owner: AtomicU64::new(0), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Registers a descriptor, if the place is free.
    fn take(&self, file: BorrowedFd<'_>) -> bool {
        let (Some((device, inode)), process) = (identity(file), mark().process()) else { return false };
        if self.held.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        self.owner.store(process, Ordering::Relaxed);
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Relaxed);
        self.held.store(file.as_raw_fd() + 1, Ordering::Release);
        true
    }

    /// Returns whether a descriptor still refers to the registered file.
    fn is_of(&self, file: BorrowedFd<'_>) -> bool {
        identity(file) == Some((self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed)))
    }
}

/// The device and inode of a descriptor's file. This is one system call, which a child may make.
#[allow(clippy::unnecessary_cast, reason = "their types are each system's own")]
pub fn identity(file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    fstat(file).ok().map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
}

/// Moves a descriptor away from the numbers of the standard streams. A program may have closed these, while one of its libraries still
/// writes to them.
pub fn off_the_standard_streams<T: AsFd + From<OwnedFd>>(file: T) -> io::Result<T> {
    match file.as_fd().as_raw_fd() {
        0..=2 => Ok(fcntl_dupfd_cloexec(&file, 3)?.into()),
        _ => Ok(file),
    }
}

/// The registration of a descriptor, which a forked child closes at once.
pub struct ClosedInChild(Option<&'static Place>);

impl ClosedInChild {
    /// Registers a descriptor that stays open until this is dropped.
    pub fn new(file: BorrowedFd<'_>) -> Self {
        ClosedInChild::among(&LOCKS, file).unwrap_or(ClosedInChild(None))
    }

    /// Registers a descriptor in one of these places; `None` if all are taken.
    pub fn among(places: &'static Places, file: BorrowedFd<'_>) -> Option<Self> {
        handle_forks();
        places.iter().find(|place| place.take(file)).map(|place| ClosedInChild(Some(place)))
    }

    /// Returns whether the descriptor still refers to the registered file. A program may have closed it.
    pub fn is_intact(&self, file: BorrowedFd<'_>) -> bool {
        self.0.is_some_and(|place| place.is_of(file))
    }
}

impl Drop for ClosedInChild {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.held.store(FREE, Ordering::Release);
        }
    }
}

/// Registers the fork handlers. A fork that began earlier in another thread is not noticed.
fn handle_forks() {
    mark();
    // Another thread may have made the mark without registering the handlers yet.
    super::handle_forks();
}

/// Makes a change while no fork is in progress: opens and registers a descriptor, or closes one.
pub fn with_no_fork<T>(change: impl FnOnce() -> T) -> T {
    handle_forks();
    let page = mark().0;
    page.opening.fetch_add(1, Ordering::SeqCst);
    let _opening = Opening(page);
    wait_while_any(&page.forking, Instant::now());
    change()
}

/// Waits until a count is 0, and at most until [`LONGEST`] has passed.
fn wait_while_any(count: &AtomicU64, since: Instant) {
    while count.load(Ordering::SeqCst) > 0 && since.elapsed() < LONGEST {
        std::thread::yield_now();
    }
}

/// The announcement of an opener. Forks wait for it.
struct Opening(&'static Page);

impl Drop for Opening {
    fn drop(&mut self) {
        subtract(&self.0.opening);
    }
}

/// Runs in the thread that is about to fork.
pub(super) fn before_fork(page: &Page) {
    let since = Instant::now();
    loop {
        page.forking.fetch_add(1, Ordering::SeqCst);
        if page.opening.load(Ordering::SeqCst) == 0 || since.elapsed() >= LONGEST {
            return;
        }
        subtract(&page.forking);
        wait_while_any(&page.opening, since);
    }
}

/// Runs in the parent, also if the fork failed, or if the handlers were registered during it.
pub(super) fn after_fork(page: &Page) {
    subtract(&page.forking);
}

/// Subtracts one from a count, unless the count was wiped, because a signal handler may fork in the thread that has counted itself.
fn subtract(count: &AtomicU64) {
    let _ = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
}

/// Runs in the child, which has none of its parent's other threads.
pub(super) fn in_child(page: &Page) {
    // The number is 0 if the child has not begun.
    let own = page.born.load(Ordering::Relaxed);
    let inherited = |place: &&Place| place.owner.load(Ordering::Relaxed) != own;
    for place in LOCKS.iter().chain(&NAMES).chain(&WATCHES).filter(inherited) {
        let descriptor = place.held.swap(FREE, Ordering::Relaxed) - 1;
        if descriptor >= 0 {
            // SAFETY: this is the child's copy of a descriptor that its parent has open. If the program closed it, the number is only
            // passed to `fstat`.
            let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
            if place.is_of(file) {
                // SAFETY: this is the registered file. The thread that would use it is not in the child.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}
