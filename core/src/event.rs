//! What an operator wants to know without asking: a lease that fails, a clock that went back.
//!
//! An event is put down where it happens, also under a lock, and told on a thread of its own, which is started when there is something to
//! tell and ends when that is told: so whoever hears it is called under no lock, holds up no lease, and may call frazil. What a start waits
//! for is told at once, by the thread that waits: it holds nothing, and a program may know it. Where nobody listens nothing is put down. A forked child has its own list, and tells nothing of its parent's.

use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;
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
pub(crate) const LEASE_MENDED: &str = "lease.mended";
pub(crate) const LEASE_LOST: &str = "lease.lost";
pub(crate) const STORE_CHANGED: &str = "store.changed";
pub(crate) const CLOCK_ROLLBACK: &str = "clock.rollback";
pub(crate) const LAYOUT_ENDING: &str = "layout.ending";

/// How much an [`Event`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// All is well.
    Info,
    /// Somebody should look, soon.
    Warning,
}

impl Level {
    /// `info` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
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
/// | `lease.mended` | info | it was extended again | `store`, `namespace`, `node`, `since` |
/// | `lease.lost` | warning | another process has the number: another one is leased | `store`, `namespace`, `node` |
/// | `store.changed` | warning | the store is another one, or has lost writes | `store`, `namespace` |
/// | `clock.rollback` | warning | the clock went back by a tick or more | `node`, `back_ms`, `rollback` |
/// | `layout.ending` | warning | the layout ends within a year | `node`, `ends` |
///
/// Of each name 20 are told at once, and then one every 6 s; the next one has the field `left_out`, the number of those
/// that were not told. Texts and fields hold no secret. Instants are RFC 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// How much it matters.
    pub level: Level,
    /// What happened: one of the names above, which stay.
    pub name: &'static str,
    /// For people; may be worded differently tomorrow.
    pub text: String,
    /// The parts of the text, for programs.
    pub fields: Vec<(&'static str, String)>,
}

type Hook = Box<dyn Fn(&Event) + Send + Sync>;

static HOOK: ArcSwapOption<Hook> = ArcSwapOption::const_empty();
static OUTBOX: PerProcess<Outbox> = PerProcess::new();

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
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
    /// Whether there is a thread.
    staffed: bool,
    /// How many were taken from the list and are told.
    told: u64,
    taken: u64,
    allowances: HashMap<&'static str, Allowance>,
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
    HOOK.store(Some(Arc::new(Box::new(hook))));
}

/// Tells no function of events any more, and waits for a call of it that is under way on frazil's own thread: after that, and once no start waits,
/// what it uses may be freed. The hook may call this itself, and is then not waited for.
///
/// # Errors
/// `WOULD_BLOCK` where the call takes longer than `max_wait`.
pub fn end_events(max_wait: Duration) -> Result<()> {
    HOOK.store(None);
    if IS_TELLING.get() {
        return Ok(());
    }
    let outbox = OUTBOX.get(|| Ok(Outbox::default()))?;
    let since = Instant::now();
    let mut list = outbox.lock();
    let under_way = list.taken;
    while list.told < under_way {
        let left = max_wait.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(Error::new(ErrorKind::WouldBlock, "the function that is told of events has not returned yet"));
        }
        list = outbox.told.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    Ok(())
}

/// Puts an event down, if anybody listens.
pub(crate) fn tell(level: Level, name: &'static str, make: impl FnOnce() -> Parts) {
    let Some((outbox, mut list, event)) = event(level, name, make) else { return };
    list.events.push_back(event);
    if !list.staffed {
        // A process that may have no more threads has other troubles than this.
        list.staffed = std::thread::Builder::new().name("frazil-events".to_owned()).spawn(|| outbox.run()).is_ok();
    }
}

/// Tells of an event at once. No lock may be held.
pub(crate) fn tell_here(level: Level, name: &'static str, make: impl FnOnce() -> Parts) {
    let event = event(level, name, make).map(|(_, _, event)| event);
    if let Some(event) = event {
        event.tell();
    }
}

/// The text and the fields.
pub(crate) type Parts = (String, Vec<(&'static str, String)>);

/// An event, if anybody listens, and there have not been too many of its name.
fn event(level: Level, name: &'static str, make: impl FnOnce() -> Parts) -> Option<(&'static Outbox, MutexGuard<'static, List>, Event)> {
    if HOOK.load().is_none() && log::max_level() < log_level(level) {
        return None;
    }
    let outbox = OUTBOX.get(|| Ok(Outbox::default())).ok()?;
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
    }
}

impl List {
    /// How many of a name were left out since the last one; `None` where this one is, too.
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

    /// The thread: tells what there is, and ends.
    fn run(&self) {
        IS_TELLING.set(true);
        loop {
            let mut list = self.lock();
            let Some(event) = list.events.pop_front() else {
                list.staffed = false;
                return;
            };
            list.taken += 1;
            drop(list);
            // Whoever listens may panic; the next event is told all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| event.tell()));
            self.lock().told += 1;
            self.told.notify_all();
        }
    }
}

impl Event {
    fn tell(&self) {
        log::log!(target: TARGET, log_level(self.level), "{}: {}", self.name, self.text);
        if let Some(hook) = &*HOOK.load() {
            hook(self);
        }
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
}
