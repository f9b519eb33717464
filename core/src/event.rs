//! Events that an operator wants to see: a lease that fails, a clock that went back.
//!
//! An event is put down where it happens, also under a lock, and told on a thread of its own, which is started when there is something to
//! tell and ends when that is told: so whoever hears it is called under no lock, holds up no lease, and may call frazil. What a start waits
//! for is told at once, by the thread that waits: it holds nothing, and a program may know it. Where nobody listens nothing is put down. A forked
//! child has its own list, and tells nothing of its parent's; a binding whose hooks take locks holds events back while the process forks.

use crate::error::{Error, ErrorKind, Result};
use crate::fork::{self, PerProcess};
use crate::thread;
use arc_swap::ArcSwapOption;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The target of the `log` facade.
const TARGET: &str = "frazil";
/// So many events of a name are told at once, and then one in each pause ...
const BURST: u32 = 20;
/// ... of this length.
const PAUSE: Duration = Duration::from_secs(6);
/// The most that wait to be told; a hook that hangs must not fill the memory.
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
    /// Somebody should look, soon.
    Warning,
    /// IDs may have been issued twice: somebody must look, now.
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

/// Something that happened to the generators of this process: [`on_event`].
///
/// | name | level | when | fields |
/// |---|---|---|---|
/// | `lease.taken` | info | a node number was leased, first or in place of another | `store`, `namespace`, `node`, `until` |
/// | `lease.waiting` | warning | a start has waited for a second, and for what | `store`, `namespace`, `reason` |
/// | `lease.failing` | warning | a lease could not be extended; it still lasts for a while | `store`, `namespace`, `node`, `code`, `error`, `since`, `until` |
/// | | | or a forked child, or one whose lease was given up, finds none | `store`, `namespace`, `code`, `error`, `since` |
/// | `lease.recovered` | info | the store answers again | `store`, `namespace`, `node`, `since` |
/// | `lease.lost` | warning | another process took the number after its bound had passed: another one is leased | `store`, `namespace`, `node`, `token`, `other_token`, `other_holder` |
/// | | error | the record was removed or replaced before its bound: IDs of `from` to `to` may have been issued twice | those, `from`, `to` |
/// | `store.changed` | warning | the store is another one, or has lost writes | `store`, `namespace` |
/// | `clock.rollback` | warning | the clock went back by a tick or more | `node`, `back_ms`, `rollback` |
/// | `layout.ending` | warning | the layout ends within a year | `node`, `ends` |
/// | `node.unguarded` | warning | a number given without a store cannot be guarded: another process with it would not be noticed | `node`, `namespace`, `reason` |
/// | | warning | a number given without a store has `clock=manual` without `after=`: IDs of an earlier run may be repeated | `node`, `namespace`, `reason` |
/// | | info | the system guards no numbers | `node`, `namespace`, `reason` |
///
/// Of each name 20 are told at once, and then one every 6 s; the next one has the field `left_out`, the number of those
/// that were not told. Texts and fields hold no secret. Instants are RFC 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The importance.
    pub level: Level,
    /// The name of the event: one of those above, which stay.
    pub name: &'static str,
    /// A text for people; its wording may change.
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
    /// The number of events that this thread is reporting, one within the other, and its process.
    static TELLS: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
    /// The calls of [`hold_events`] that this thread has yet to resume: their count, and the process in which they were made.
    static HOLDS: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

#[derive(Default)]
struct Outbox {
    list: Mutex<List>,
    /// Something was told.
    told: Condvar,
}

#[derive(Default)]
struct List {
    events: VecDeque<Event>,
    /// True while there is a thread.
    staffed: bool,
    /// The number of events that are being reported right now.
    telling: usize,
    /// The number of forks that are about to come, or under way: they hold back further events.
    holds: usize,
    allowances: HashMap<&'static str, Allowance>,
}

/// An event that is being told of, until it is dropped.
struct Telling {
    outbox: &'static Outbox,
    process: u64,
    /// The thread's count before: a hook may start a call that waits.
    before: (usize, u64),
}

struct Allowance {
    left: u32,
    since: Instant,
    left_out: u64,
}

/// Has a function told of every [`Event`] of this process; a later function takes its place. It is called under no lock, and may call
/// frazil: in their order on a thread of frazil's own; `lease.waiting` on the thread that waits, or that of [`Pending`](crate::Pending). Events also go to the `log` facade, target `frazil`, whether there is a hook or not.
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

/// Tells no function of events any more, and waits for calls of it that are under way: after that what it uses may be freed. The hook may call
/// this itself, and its own call is then not waited for.
///
/// # Errors
/// `WOULD_BLOCK` where a call takes longer than `max_wait`.
pub fn end_events(max_wait: Duration) -> Result<()> {
    HOOK.store(None);
    outbox()?.wait_until_told(max_wait)
}

/// Removes the callback if it is this owner's: one that has replaced it stays. Waits for calls of both.
///
/// # Errors
/// As [`end_events`].
#[doc(hidden)]
pub fn end_events_of(owner: usize, max_wait: Duration) -> Result<()> {
    HOOK.rcu(|hook| hook.clone().filter(|hook| hook.owner != owner));
    outbox()?.wait_until_told(max_wait)
}

/// Holds events back until [`resume_events`]: the locks that a hook holds during a fork stay locked in the child. Returns whether the caller should
/// call [`wait_for_events`], because a hook is running. A thread that already holds events back has waited, and must not wait again: the running
/// hook may need a lock that the thread has taken since.
#[doc(hidden)]
pub fn hold_events() -> bool {
    let Ok(outbox) = outbox() else { return false };
    let process = fork::mark().process();
    let held = count_in(process, HOLDS.get());
    HOLDS.set((held + 1, process));
    let mut list = outbox.lock();
    list.holds += 1;
    held == 0 && list.telling > own(process)
}

/// Waits for hooks that are running; a hook that calls this does not wait for itself.
///
/// # Errors
/// `WOULD_BLOCK` where a hook takes longer than `max_wait`.
#[doc(hidden)]
pub fn wait_for_events(max_wait: Duration) -> Result<()> {
    outbox()?.wait_until_told(max_wait)
}

/// Tells of events again, in the process and on the thread that has held them back; a forked child has held none.
#[doc(hidden)]
pub fn resume_events() {
    let process = fork::mark().process();
    let held = count_in(process, HOLDS.get());
    let Ok(outbox) = outbox() else { return };
    HOLDS.set((held.saturating_sub(1), process));
    let mut list = outbox.lock();
    list.holds = list.holds.saturating_sub(1);
    outbox.staff(&mut list);
}

/// Puts an event down, if anybody listens.
pub(crate) fn tell(level: Level, name: &'static str, make: impl FnOnce() -> Parts) {
    let Some((outbox, mut list, event)) = event(level, name, make) else { return };
    list.events.push_back(event);
    outbox.staff(&mut list);
}

/// Tells of an event at once. No lock may be held.
pub(crate) fn tell_here(level: Level, name: &'static str, make: impl FnOnce() -> Parts) {
    let Some((outbox, mut list, event)) = event(level, name, make) else { return };
    if list.holds > 0 {
        list.events.push_back(event);
        return;
    }
    let telling = Telling::new(outbox, &mut list);
    drop(list);
    event.tell();
    drop(telling);
}

fn outbox() -> Result<&'static Outbox> {
    OUTBOX.get(|| Ok(Outbox::default()))
}

/// The text and the fields.
pub(crate) type Parts = (String, Vec<(&'static str, String)>);

/// An event, if anybody listens, and there have not been too many of its name.
fn event(level: Level, name: &'static str, make: impl FnOnce() -> Parts) -> Option<(&'static Outbox, MutexGuard<'static, List>, Event)> {
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
    /// Returns how many events of a name were left out since the last one; `None` if this one is left out too.
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

    /// Has a thread tell of what there is.
    fn staff(&'static self, list: &mut List) {
        if !list.staffed && list.holds == 0 && !list.events.is_empty() {
            // A process that may have no more threads has other troubles than this.
            list.staffed = thread::spawn("frazil-events", Box::new(|| self.run())).is_ok();
        }
    }

    /// The thread: tells of what there is, and ends.
    fn run(&'static self) {
        loop {
            let mut list = self.lock();
            let next = if list.holds > 0 { None } else { list.events.pop_front() };
            let Some(event) = next else {
                list.staffed = false;
                return;
            };
            let telling = Telling::new(self, &mut list);
            drop(list);
            event.tell();
            if !telling.is_of_this_process() {
                // The hook has forked, and this is the child: the rest is its parent's to tell of.
                return;
            }
        }
    }

    fn wait_until_told(&self, max_wait: Duration) -> Result<()> {
        let (since, own, mut list) = (Instant::now(), own(fork::mark().process()), self.lock());
        while list.telling > own {
            let left = max_wait.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::WouldBlock, "the function that is told of events has not returned yet"));
            }
            list = self.told.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Returns how many events this thread is reporting.
fn own(process: u64) -> usize {
    count_in(process, TELLS.get())
}

/// A thread's count, which is its parent's where it was forked since.
fn count_in(process: u64, (count, of): (usize, u64)) -> usize {
    if of == process { count } else { 0 }
}

impl Telling {
    fn new(outbox: &'static Outbox, list: &mut List) -> Self {
        let process = fork::mark().process();
        list.telling += 1;
        Telling { outbox, process, before: TELLS.replace((own(process) + 1, process)) }
    }

    fn is_of_this_process(&self) -> bool {
        fork::mark().process() == self.process
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLS.set(self.before);
        // A parent's list may be locked by a thread that this process does not have.
        if self.is_of_this_process() {
            self.outbox.lock().telling -= 1;
            self.outbox.told.notify_all();
        }
    }
}

impl Event {
    fn tell(&self) {
        // Whoever listens may panic: what is told of goes on, and so does the next event.
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
    fn of_a_name_twenty_are_told_at_once_and_then_one_in_six_seconds() {
        let (mut list, begun) = (List::default(), Instant::now());
        let mut allow = |name, after_s: u64| list.allow(name, begun + Duration::from_secs(after_s));
        for _ in 0..20 {
            assert_eq!(allow("a", 0), Some(0));
        }
        assert_eq!([allow("a", 0), allow("a", 5), allow("b", 5)], [None, None, Some(0)]);
        assert_eq!([allow("a", 6), allow("a", 6), allow("a", 11)], [Some(2), None, None]);
        assert_eq!([allow("a", 12), allow("a", 12)], [Some(2), None]);
        // However long it was quiet.
        let told = (0..50).filter(|_| allow("a", 1_000_000).is_some()).count();
        assert_eq!(told, 20);
    }

    #[test]
    fn a_hook_that_hangs_does_not_fill_the_memory() {
        let mut list = List::default();
        let event = Event { level: Level::Info, name: "a", text: String::new(), fields: vec![] };
        list.events.resize(MOST, event);
        assert_eq!(list.allow("b", Instant::now()), None);
        list.events.pop_front();
        assert_eq!(list.allow("b", Instant::now()), Some(1));
    }

    /// A hook of the whole process: one test at a time has it.
    fn with_hook(hook: impl Fn(&Event) + Send + Sync + 'static, test: impl FnOnce()) {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        on_event(hook);
        test();
        assert_eq!(end_events(Duration::from_secs(60)), Ok(()));
    }

    fn text(text: &str) -> Parts {
        (text.to_owned(), vec![])
    }

    #[test]
    fn a_hook_that_panics_ends_neither_a_start_nor_what_follows() {
        let (told, heard) = std::sync::mpsc::channel();
        let hook = move |event: &Event| {
            if event.name == "test.panics" {
                told.send(event.text.clone()).unwrap();
                panic!("a hook that panics");
            }
        };
        with_hook(hook, || {
            tell_here(Level::Info, "test.panics", || text("here"));
            tell(Level::Info, "test.panics", || text("first"));
            tell(Level::Info, "test.panics", || text("second"));
            let all = [(); 3].map(|()| heard.recv_timeout(Duration::from_secs(60)).unwrap());
            assert_eq!(all, ["here", "first", "second"]);
        });
    }

    #[test]
    fn whoever_ends_events_waits_for_a_start_that_is_told_of_too() {
        let (told, heard) = std::sync::mpsc::channel();
        let (go_on, gone_on) = std::sync::mpsc::channel::<()>();
        let gone_on = Mutex::new(gone_on);
        let hook = move |event: &Event| {
            if event.name == "test.waits" {
                // Its own call is not waited for.
                told.send(end_events(Duration::from_secs(60))).unwrap();
                gone_on.lock().unwrap().recv().unwrap();
            }
        };
        with_hook(hook, || {
            let start = std::thread::spawn(|| tell_here(Level::Info, "test.waits", || text("")));
            assert_eq!(heard.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
            assert_eq!(end_events(Duration::from_millis(10)).unwrap_err().kind(), ErrorKind::WouldBlock);
            go_on.send(()).unwrap();
            end_events(Duration::from_secs(60)).unwrap();
            start.join().unwrap();
        });
    }

    #[test]
    fn an_owner_takes_away_its_own_hook_alone() {
        let (told, heard) = std::sync::mpsc::channel();
        with_hook(
            |_| {},
            || {
                on_event_of(1, |_| {});
                on_event_of(2, move |event| {
                    if event.name == "test.owned" {
                        told.send(()).unwrap();
                    }
                });
                end_events_of(1, Duration::from_secs(60)).unwrap();
                tell_here(Level::Info, "test.owned", || text(""));
                end_events_of(2, Duration::from_secs(60)).unwrap();
                tell_here(Level::Info, "test.owned", || text(""));
                assert_eq!(heard.iter().count(), 1);
            },
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_hook_that_forks_leaves_the_rest_to_the_parent() {
        static CHILD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
        let mut ends = [0; 2];
        // SAFETY: a place for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [read, write] = ends;
        let hook = move |event: &Event| {
            if event.name != "test.forks" {
                return;
            }
            if event.text == "fork" {
                // SAFETY: the child goes on on this thread alone, and ends with it; what it does here takes no lock of its parent's.
                CHILD.store(unsafe { libc::fork() }, std::sync::atomic::Ordering::SeqCst);
            }
            // SAFETY: the descriptor is open, and there is one byte.
            unsafe { libc::write(write, c"x".as_ptr().cast(), 1) };
        };
        with_hook(hook, || {
            assert!(!hold_events(), "no hook is running");
            tell(Level::Info, "test.forks", || text("fork"));
            tell_here(Level::Info, "test.forks", || text("second"));
            let mut told = 0;
            // SAFETY: the descriptor is ours, and there is a place.
            assert_eq!(unsafe { libc::ioctl(read, libc::FIONREAD, &raw mut told) }, 0);
            assert_eq!(told, 0, "what is held back is not told");
            resume_events();
            let (mut byte, mut status) = (0u8, 0);
            // The first one is told of twice, and the second in the parent.
            for _ in 0..3 {
                // SAFETY: the descriptor is ours, and there is a place for a byte.
                assert_eq!(unsafe { libc::read(read, (&raw mut byte).cast(), 1) }, 1);
            }
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(CHILD.load(std::sync::atomic::Ordering::SeqCst), &mut status, 0) };
            // SAFETY: as above.
            assert_eq!(unsafe { libc::ioctl(read, libc::FIONREAD, &raw mut told) }, 0);
            assert_eq!((status, told), (0, 0), "the child told of nothing more, and ended");
        });
    }
}
