//! Events that an operator wants to see: a lease that fails, a clock that went back.
//!
//! Events are queued where they occur, even under a lock. A short-lived thread drains the queue and
//! calls the hook. So the hook is called under no lock, delays no lease, and may call frazil.
//!
//! `lease.waiting` is reported at once, on the thread that waits, because a program may need it
//! during the wait. That thread holds no lock at that moment.
//!
//! Without a hook or a logger, nothing is queued. A forked child has its own queue, and reports no
//! events of its parent. A binding whose hooks take locks holds events back while the process
//! forks.

use arc_swap::ArcSwapOption;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, PerProcess};
use frazil_base::os::thread;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The target of the `log` facade.
const TARGET: &str = "frazil";
/// The number of events of a name that are reported at once. After that, one is reported in each
/// [`PAUSE`].
const BURST: u32 = 20;
/// The pause between two events of a name after a burst.
const PAUSE: Duration = Duration::from_secs(6);
/// The most events in the queue, so that a hook that hangs does not fill the memory.
const MOST: usize = 256;

pub(crate) const LEASE_TAKEN: &str = "lease.taken";
pub(crate) const LEASE_WAITING: &str = "lease.waiting";
pub(crate) const LEASE_FAILING: &str = "lease.failing";
pub(crate) const LEASE_RECOVERED: &str = "lease.recovered";
pub(crate) const LEASE_LOST: &str = "lease.lost";
pub(crate) const STORE_CHANGED: &str = "store.changed";
pub(crate) const CLOCK_ROLLBACK: &str = "clock.rollback";
pub(crate) const LAYOUT_ENDING: &str = "layout.ending";
pub(crate) const NODE_UNGUARDED: &str = "node.unguarded";

/// The importance of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// All is well.
    Info,
    /// Attention is needed soon.
    Warning,
    /// IDs may have been issued twice. Attention is needed now.
    Error,
}

impl Level {
    /// `info`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Something that happened to the generators of this process. [`on_event`] reports it.
///
/// | name | level | when | fields |
/// |---|---|---|---|
/// | `lease.taken` | info | a node number was leased, as the first one or to replace another | `store`, `namespace`, `node`, `until` |
/// | `lease.waiting` | warning | a start has waited for a second, for this reason | `store`, `namespace`, `reason` |
/// | `lease.failing` | warning | a lease could not be extended; it still lasts for a while | `store`, `namespace`, `node`, `code`, `error`, `since`, `until` |
/// | | | or a forked child, or a process whose lease was given up, finds no number | `store`, `namespace`, `code`, `error`, `since` |
/// | `lease.recovered` | info | the store answers again | `store`, `namespace`, `node`, `since` |
/// | `lease.lost` | warning | another process took the number after its bound had passed: another one is leased; or the layout changed | `store`, `namespace`, `node`, `token`, `other_token`, `other_holder` |
/// | | error | the record was removed or replaced before its bound: IDs of `from` to `to` may have been issued twice | those, `from`, `to` |
/// | `store.changed` | warning | the store was replaced, or has lost writes | `store`, `namespace` |
/// | `clock.rollback` | warning | the clock went back by a tick or more | `node`, `back_ms`, `rollback` |
/// | `layout.ending` | warning | the layout ends within a year | `node`, `ends` |
/// | `node.unguarded` | warning | a number given without a store cannot be guarded: another process with it would not be noticed | `node`, `namespace`, `reason` |
/// | | warning | a number given without a store has `clock=manual` without `after=`: IDs of an earlier run may be repeated | `node`, `namespace`, `reason` |
/// | | info | the system guards no numbers | `node`, `namespace`, `reason` |
///
/// Of each name, 20 events are reported at once, and then one every 6 s. Its field `left_out` is
/// the number of events that were not reported. Texts and fields hold no secret. Instants are RFC
/// 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The importance.
    pub level: Level,
    /// The name of the event, from the table above. Names never change.
    pub name: &'static str,
    /// A text for people. Its wording may change.
    pub text: String,
    /// The parts of the text, for programs.
    pub fields: Vec<(&'static str, String)>,
}

struct Hook {
    /// The owner's key; 0 for none.
    owner: usize,
    call: Box<dyn Fn(&Event) + Send + Sync>,
}

static HOOK: ArcSwapOption<Hook> = ArcSwapOption::const_empty();
static OUTBOX: PerProcess<Outbox> = PerProcess::new();

thread_local! {
    /// The number of nested events that this thread is reporting, and its process.
    static RUNNING: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
    /// The number of [`hold_events`] calls that this thread has yet to resume, and the process in which they were made.
    static HOLDS: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

#[derive(Default)]
struct Outbox {
    list: Mutex<List>,
    /// Notified when a hook has returned.
    reported: Condvar,
}

#[derive(Default)]
struct List {
    events: VecDeque<Event>,
    /// True while the thread that reports events runs.
    staffed: bool,
    /// The number of hooks that run now.
    running: usize,
    /// The number of forks that are about to happen or in progress. While there are any, events are
    /// held back.
    holds: usize,
    allowances: HashMap<&'static str, Allowance>,
}

/// An event whose hook is running, until this is dropped.
struct Running {
    outbox: &'static Outbox,
    process: u64,
    /// The thread's count before this event. A hook may start a call that waits, and so reports
    /// another event.
    before: (usize, u64),
}

struct Allowance {
    left: u32,
    since: Instant,
    left_out: u64,
}

/// Registers a callback for every event of the process.
///
/// Replaces an earlier callback. It is called under no lock, and may call frazil. Events arrive in order, on a thread of frazil. Only
/// `lease.waiting` arrives on the thread that waits, or on that of [`Pending`](crate::Pending). Events also go to the `log` facade, target
/// `frazil`, with or without a callback.
///
/// # Example
/// ```
/// frazil::on_event(|event| eprintln!("{} {}: {}", event.level.name(), event.name, event.text));
/// ```
pub fn on_event(hook: impl Fn(&Event) + Send + Sync + 'static) {
    on_event_of(0, hook);
}

/// Registers a callback that [`end_events_of`] finds by its owner.
#[doc(hidden)]
pub fn on_event_of(owner: usize, hook: impl Fn(&Event) + Send + Sync + 'static) {
    HOOK.store(Some(Arc::new(Hook { owner, call: Box::new(hook) })));
}

/// Removes the callback, and waits for its calls in progress.
///
/// Afterwards, everything that it uses may be freed. The callback may call this itself, which does not wait for its own call.
///
/// # Errors
/// `WOULD_BLOCK` if a call takes longer than `max_wait`.
pub fn end_events(max_wait: Duration) -> Result<()> {
    HOOK.store(None);
    outbox()?.wait_for_hooks(max_wait)
}

/// Removes the callback if it belongs to this owner. A callback that has replaced it stays. Waits for calls of both.
///
/// # Errors
/// As [`end_events`].
#[doc(hidden)]
pub fn end_events_of(owner: usize, max_wait: Duration) -> Result<()> {
    HOOK.rcu(|hook| hook.clone().filter(|hook| hook.owner != owner));
    outbox()?.wait_for_hooks(max_wait)
}

/// Holds events back until [`resume_events`], because the locks that a hook holds during a fork
/// stay locked in the child.
///
/// Returns whether a hook is running, so that the caller should call [`wait_for_events`]. A thread
/// that already holds events back has waited before. It must not wait again, because the running
/// hook may need a lock that the thread has taken since.
#[doc(hidden)]
pub fn hold_events() -> bool {
    let Ok(outbox) = outbox() else { return false };
    let process = fork::mark().process();
    let held = count_in(process, HOLDS.get());
    HOLDS.set((held + 1, process));
    let mut list = outbox.lock();
    list.holds += 1;
    held == 0 && list.running > own(process)
}

/// Waits for running hooks. A hook that calls this does not wait for itself.
///
/// # Errors
/// `WOULD_BLOCK` if a hook takes longer than `max_wait`.
#[doc(hidden)]
pub fn wait_for_events(max_wait: Duration) -> Result<()> {
    outbox()?.wait_for_hooks(max_wait)
}

/// Ends one [`hold_events`] of this process and thread, and reports the events that were held back.
/// A forked child holds none back.
#[doc(hidden)]
pub fn resume_events() {
    let process = fork::mark().process();
    let held = count_in(process, HOLDS.get());
    let Ok(outbox) = outbox() else { return };
    HOLDS.set((held.saturating_sub(1), process));
    let mut list = outbox.lock();
    list.holds = list.holds.saturating_sub(1);
    outbox.start_thread(&mut list);
}

/// Queues an event for the thread, if there is a hook or a logger.
pub(crate) fn emit(level: Level, name: &'static str, make: impl FnOnce() -> EventParts) {
    let Some((outbox, mut list, event)) = event(level, name, make) else { return };
    list.events.push_back(event);
    outbox.start_thread(&mut list);
}

/// Reports an event at once, on this thread. The caller must hold no lock.
pub(crate) fn emit_here(level: Level, name: &'static str, make: impl FnOnce() -> EventParts) {
    let Some((outbox, mut list, event)) = event(level, name, make) else { return };
    if list.holds > 0 {
        list.events.push_back(event);
        return;
    }
    let running = Running::new(outbox, &mut list);
    drop(list);
    event.report();
    drop(running);
}

fn outbox() -> Result<&'static Outbox> {
    OUTBOX.get(|| Ok(Outbox::default()))
}

/// The text and the fields of an event.
pub(crate) type EventParts = (String, Vec<(&'static str, String)>);

/// Makes an event, if there is a hook or a logger, and the limit of its name allows it.
fn event(
    level: Level,
    name: &'static str,
    make: impl FnOnce() -> EventParts,
) -> Option<(&'static Outbox, MutexGuard<'static, List>, Event)> {
    if HOOK.load().is_none() && log::max_level() < log_level(level) {
        return None;
    }
    let outbox = outbox().ok()?;
    let mut list = outbox.lock();
    let left_out = list.allow(name, Instant::now())?;
    let (text, mut fields) = make();
    if left_out > 0 {
        fields.push(("left_out", left_out.to_string()));
    }
    Some((outbox, list, Event { level, name, text, fields }))
}

fn log_level(level: Level) -> log::Level {
    match level {
        Level::Info => log::Level::Info,
        Level::Warning => log::Level::Warn,
        Level::Error => log::Level::Error,
    }
}

impl List {
    /// Returns how many events of a name were left out since the last one. `None` if this one is left out, too.
    fn allow(&mut self, name: &'static str, now: Instant) -> Option<u64> {
        let is_full = self.events.len() >= MOST;
        let allowance = self.allowances.entry(name).or_insert(Allowance { left: BURST, since: now, left_out: 0 });
        let pauses = (now.saturating_duration_since(allowance.since).as_secs() / PAUSE.as_secs()) as u32;
        allowance.since += PAUSE * pauses;
        allowance.left = allowance.left.saturating_add(pauses).min(BURST);
        if allowance.left == 0 || is_full {
            allowance.left_out += 1;
            return None;
        }
        allowance.left -= 1;
        Some(std::mem::take(&mut allowance.left_out))
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that reports the queued events, unless one runs.
    fn start_thread(&'static self, list: &mut List) {
        if !list.staffed && list.holds == 0 && !list.events.is_empty() {
            // If no thread can be started, the events stay queued.
            list.staffed = thread::spawn("frazil-events", Box::new(|| self.run())).is_ok();
        }
    }

    /// The thread's loop: reports the queued events, and ends.
    fn run(&'static self) {
        loop {
            let mut list = self.lock();
            let next = if list.holds > 0 { None } else { list.events.pop_front() };
            let Some(event) = next else {
                list.staffed = false;
                return;
            };
            let running = Running::new(self, &mut list);
            drop(list);
            event.report();
            if !running.is_of_this_process() {
                // The hook has forked, and this is the child. The parent reports the remaining events.
                return;
            }
        }
    }

    fn wait_for_hooks(&self, max_wait: Duration) -> Result<()> {
        let (since, own, mut list) = (Instant::now(), own(fork::mark().process()), self.lock());
        while list.running > own {
            let left = max_wait.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::WouldBlock, "the callback for events has not returned yet"));
            }
            list = self.reported.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Returns how many events this thread is reporting.
fn own(process: u64) -> usize {
    count_in(process, RUNNING.get())
}

/// The count of a thread, or 0 if the process was forked since.
fn count_in(process: u64, (count, of): (usize, u64)) -> usize {
    if of == process { count } else { 0 }
}

impl Running {
    fn new(outbox: &'static Outbox, list: &mut List) -> Self {
        let process = fork::mark().process();
        list.running += 1;
        Running { outbox, process, before: RUNNING.replace((own(process) + 1, process)) }
    }

    fn is_of_this_process(&self) -> bool {
        fork::mark().process() == self.process
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.before);
        // A thread of the parent, which this process does not have, may hold the lock of the parent's list.
        if self.is_of_this_process() {
            self.outbox.lock().running -= 1;
            self.outbox.reported.notify_all();
        }
    }
}

impl Event {
    fn report(&self) {
        // A hook may panic. Its caller and later events must not be affected.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            log::log!(target: TARGET, log_level(self.level), "{}: {}", self.name, self.text);
            if let Some(hook) = &*HOOK.load() {
                (hook.call)(self);
            }
        }));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_name_are_limited_to_20_at_once_and_one_in_6s() {
        let (mut list, begun) = (List::default(), Instant::now());
        let mut allow = |name, after_s: u64| list.allow(name, begun + Duration::from_secs(after_s));
        for _ in 0..20 {
            assert_eq!(allow("a", 0), Some(0));
        }
        assert_eq!([allow("a", 0), allow("a", 5), allow("b", 5)], [None, None, Some(0)]);
        assert_eq!([allow("a", 6), allow("a", 6), allow("a", 11)], [Some(2), None, None]);
        assert_eq!([allow("a", 12), allow("a", 12)], [Some(2), None]);
        // A long quiet time allows no more events.
        let reported = (0..50).filter(|_| allow("a", 1_000_000).is_some()).count();
        assert_eq!(reported, 20);
    }

    #[test]
    fn hook_that_hangs_does_not_fill_the_memory() {
        let mut list = List::default();
        let event = Event { level: Level::Info, name: "a", text: String::new(), fields: vec![] };
        list.events.resize(MOST, event);
        assert_eq!(list.allow("b", Instant::now()), None);
        list.events.pop_front();
        assert_eq!(list.allow("b", Instant::now()), Some(1));
    }

    /// Sets a hook for the whole process. One test at a time has it.
    fn with_hook(hook: impl Fn(&Event) + Send + Sync + 'static, test: impl FnOnce()) {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        on_event(hook);
        test();
        assert_eq!(end_events(Duration::from_secs(60)), Ok(()));
    }

    fn text(text: &str) -> EventParts {
        (text.to_owned(), vec![])
    }

    #[test]
    fn hook_that_panics_ends_neither_a_start_nor_later_events() {
        let (reported, heard) = std::sync::mpsc::channel();
        let hook = move |event: &Event| {
            if event.name == "test.panics" {
                reported.send(event.text.clone()).unwrap();
                panic!("a hook that panics");
            }
        };
        with_hook(hook, || {
            emit_here(Level::Info, "test.panics", || text("here"));
            emit(Level::Info, "test.panics", || text("first"));
            emit(Level::Info, "test.panics", || text("second"));
            let all = [(); 3].map(|()| heard.recv_timeout(Duration::from_secs(60)).unwrap());
            assert_eq!(all, ["here", "first", "second"]);
        });
    }

    #[test]
    fn end_events_waits_for_a_hook_on_a_waiting_thread() {
        let (reported, heard) = std::sync::mpsc::channel();
        let (go_on, gone_on) = std::sync::mpsc::channel::<()>();
        let gone_on = Mutex::new(gone_on);
        let hook = move |event: &Event| {
            if event.name == "test.waits" {
                // `end_events` does not wait for the call from which it is called.
                reported.send(end_events(Duration::from_secs(60))).unwrap();
                gone_on.lock().unwrap().recv().unwrap();
            }
        };
        with_hook(hook, || {
            let start = std::thread::spawn(|| emit_here(Level::Info, "test.waits", || text("")));
            assert_eq!(heard.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
            assert_eq!(end_events(Duration::from_millis(10)).unwrap_err().kind(), ErrorKind::WouldBlock);
            go_on.send(()).unwrap();
            end_events(Duration::from_secs(60)).unwrap();
            start.join().unwrap();
        });
    }

    #[test]
    fn end_events_of_removes_only_the_owners_hook() {
        let (reported, heard) = std::sync::mpsc::channel();
        with_hook(
            |_| {},
            || {
                on_event_of(1, |_| {});
                on_event_of(2, move |event| {
                    if event.name == "test.owned" {
                        reported.send(()).unwrap();
                    }
                });
                end_events_of(1, Duration::from_secs(60)).unwrap();
                emit_here(Level::Info, "test.owned", || text(""));
                end_events_of(2, Duration::from_secs(60)).unwrap();
                emit_here(Level::Info, "test.owned", || text(""));
                assert_eq!(heard.iter().count(), 1);
            },
        );
    }

    #[cfg(unix)]
    #[test]
    fn hook_that_forks_leaves_the_rest_to_the_parent() {
        static CHILD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [read, write] = ends;
        let hook = move |event: &Event| {
            if event.name != "test.forks" {
                return;
            }
            if event.text == "fork" {
                // SAFETY: the child continues on this thread alone, and ends with it. Its work here
                // takes no lock of the parent's.
                CHILD.store(unsafe { libc::fork() }, std::sync::atomic::Ordering::SeqCst);
            }
            // SAFETY: the descriptor is open, and there is one byte.
            unsafe { libc::write(write, c"x".as_ptr().cast(), 1) };
        };
        with_hook(hook, || {
            assert!(!hold_events(), "no hook is running");
            emit(Level::Info, "test.forks", || text("fork"));
            emit_here(Level::Info, "test.forks", || text("second"));
            let mut reported = 0;
            // SAFETY: the descriptor is this test's, and the pointer is valid.
            assert_eq!(unsafe { libc::ioctl(read, libc::FIONREAD, &raw mut reported) }, 0);
            assert_eq!(reported, 0, "events that are held back are not reported");
            resume_events();
            let (mut byte, mut status) = (0u8, 0);
            // The first event is reported in both processes, and the second one in the parent.
            for _ in 0..3 {
                // SAFETY: the descriptor is this test's, and there is room for a byte.
                assert_eq!(unsafe { libc::read(read, (&raw mut byte).cast(), 1) }, 1);
            }
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(CHILD.load(std::sync::atomic::Ordering::SeqCst), &mut status, 0) };
            // SAFETY: as above.
            assert_eq!(unsafe { libc::ioctl(read, libc::FIONREAD, &raw mut reported) }, 0);
            assert_eq!((status, reported), (0, 0), "the child reported nothing more, and ended");
        });
    }
}
