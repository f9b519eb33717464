//! The guard of a fixed number: one process of a machine issues from it, and a second one gets `NODE_IN_USE`.
//!
//! The guard is a name that the operating system releases when its process ends, also after `kill -9`. On Linux it is the name of an
//! abstract Unix socket (`linux.rs`), which belongs to the network namespace. On Windows it is the name of a kernel object (`windows.rs`),
//! and on other Unix systems the name of a locked file (`lock_files.rs`). For tests, the configuration `frazil_lock_files` makes Linux use
//! locked files as well. On systems without such names (`elsewhere.rs`) the number is issued unguarded.
//!
//! **The fast path is unchanged.** The lease of a guarded number begins with a bound of 0. So it has no room, the gate stays closed, and
//! the first call of every kind reaches `SharedGenerator`, like a call on a used-up lease. There [`Guard::hold`] takes the name and raises
//! the bound to its end, once. Later calls do not come here.
//!
//! **No ID twice when the holder changes.** A holder takes the name before its first stamp and keeps it until it exits, so two processes
//! issue one after the other. They must not share a tick either, so the second one has to begin in a tick after all stamps of the first.
//! `open` chooses the first tick, but another process may issue between `open` and the first ID here. So each opener *watches*. An opener
//! takes a second name, the watch, then finds the guard free, and only then reads the clock. Each holder takes the guard, then connects to
//! the watch if a process has it (it *rings* the watch), and only then issues. Both sides act first and look afterwards. So for an opener A
//! with the watch, and any other holder B:
//! - If B connected after A had the watch, A finds the connection in its queue when it takes the guard.
//! - If B looked for the watch before A had it, and B's process still exists when A looks for the guard, A finds the guard taken.
//! - If B's process had ended by then, its stamps are in ticks before the one in which A opens.
//!
//! In the first two cases, and if another process has the watch, A waits for the tick after the one in which it got the guard. In the third
//! case, which is nearly every start, the first ID is issued at once. Stamps ahead of the clock are not covered, as across a restart.
//!
//! **With a manual clock** no tick is known to be after another process's stamps, because the program sets the time freely, and `after=`
//! was saved before `open`. So A issues in the third case only. Otherwise A is refused until it is started again with a later `after=`. The
//! refusal comes at once, because not even the holder's exit would end a wait. If the guard is taken while A's watch is not rung, an opener
//! is checking the guard, or a holder is about to ring. Then A tries again. Processes that only open, such as tools, must not block the one
//! that issues. So a number has several watches, and a holder rings them all.
//!
//! **A restart** waits for its predecessor, except with a manual clock. Calls wait for up to 5 s from the process's first attempt. Later
//! calls fail at once.
//!
//! **Forks.** A child does not issue from a number that its parent opened (`FORKED`), so it takes no name and no lock here. It closes its
//! copies of the names (`fork/descriptors.rs`), because otherwise it would hold them after its parent's end.

mod names;
#[cfg_attr(all(target_os = "linux", not(frazil_lock_files)), path = "linux.rs")]
#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(all(unix, any(not(target_os = "linux"), frazil_lock_files)), path = "lock_files.rs")]
#[cfg_attr(not(any(unix, windows)), path = "elsewhere.rs")]
mod system;
#[cfg(unix)]
mod unix;

pub(crate) use names::Names;

use crate::generator::{Generator, Owner, UNBOUNDED};
use crate::observe::event::{self, Level};
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::sync::locked;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use system::Name;

/// The time for which a process waits for its predecessor to exit, from its first attempt on.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// The time for which the holder's description is cached, because each query takes a slot in the holder's queue, which is never emptied.
const KNOWN: Duration = Duration::from_secs(10);

/// A name that was taken, or the reason why it was not.
type TakenName<N = Name> = std::result::Result<N, NotTaken>;

enum NotTaken {
    InUse,
    /// The system does not give the name, for this reason.
    Refused(String),
}

/// The guard of one number in this process.
pub(crate) struct Guard {
    names: Names,
    owner: Owner,
    /// True if the program sets the time.
    is_manual: bool,
    state: Mutex<GuardState>,
}

struct GuardState {
    stage: GuardStage,
    /// The time of the first attempt that found the name taken.
    since: Option<Instant>,
    /// The holder, and the time at which it was queried.
    holder: Option<(Instant, Holder)>,
}

enum GuardStage {
    /// No ID was issued yet. The watch is held, taken by another process, or refused.
    Watching(TakenName),
    /// The name is held, or the system does not give one. IDs begin in this tick.
    Begun(#[allow(dead_code, reason = "it is held")] Option<Name>, u64),
}

/// The watch over a number, which begins before `open` reads the clock.
pub(crate) struct Probe(Names, TakenName);

impl Probe {
    pub(crate) fn new(names: Names, is_manual: bool) -> Self {
        let mut all = names.watches[..if is_manual { names.watches.len() } else { 1 }].iter().map(|watch| system::take_watch(watch));
        let watch = match all.find(|watch| !matches!(watch, Err(NotTaken::InUse))).unwrap_or(Err(NotTaken::InUse)) {
            // This is only a probe, which releases the guard at once. The first ID takes the guard.
            Ok(_) if matches!(system::take(&names.guard), Err(NotTaken::InUse)) => Err(NotTaken::InUse),
            watch => watch,
        };
        Probe(names, watch)
    }

    /// The watch of an opener that may have missed another holder.
    pub(crate) fn given_up(self) -> Self {
        match self {
            Probe(names, Ok(_)) => Probe(names, Err(NotTaken::InUse)),
            refused => refused,
        }
    }
}

/// The state of a number on this machine, for an operator.
#[derive(Debug)]
pub enum Found {
    /// No process holds it.
    Free,
    /// Another process holds it, with this description.
    Held(String),
    /// It cannot be guarded here, for this reason.
    Unguarded(String),
}

/// Finds the holder of the number with these names.
pub(crate) fn find(names: &Names) -> Found {
    match system::take(&names.guard) {
        Ok(_) => Found::Free,
        Err(NotTaken::InUse) => Found::Held(Holder::ask(names).to_string()),
        Err(NotTaken::Refused(why)) => Found::Unguarded(why),
    }
}

/// Reports that the IDs of a number may be issued twice, with the reason. `text` has the remedy.
pub(crate) fn log_unguarded(node: u64, namespace: &str, reason: &str, text: impl FnOnce() -> String) {
    event::emit(Level::Warning, event::NODE_UNGUARDED, || {
        let fields = vec![("node", node.to_string()), ("namespace", namespace.to_owned()), ("reason", reason.to_owned())];
        (format!("node number {node}: {}", text()), fields)
    });
}

impl GuardState {
    /// Returns whether another process may have issued since this one opened. If the system refuses a watch, this is not noticed.
    fn is_late(&mut self) -> bool {
        if let GuardStage::Watching(Ok(watch)) = &self.stage
            && (!watch.is_intact() || watch.is_rung())
        {
            // On Linux, a watch reports a ring only once.
            self.stage = GuardStage::Watching(Err(NotTaken::InUse));
        }
        matches!(self.stage, GuardStage::Watching(Err(NotTaken::InUse)))
    }
}

/// Removes the files of the numbers that no process holds. Returns how many numbers these were, and how many remain. `None` on systems
/// whose guard has no files.
///
/// # Errors
/// Those of reading the folder.
pub fn remove_lock_files() -> Option<std::io::Result<(usize, usize)>> {
    #[cfg(all(unix, any(not(target_os = "linux"), frazil_lock_files)))]
    return Some(system::remove_unused());
    #[cfg(not(all(unix, any(not(target_os = "linux"), frazil_lock_files))))]
    None
}

impl Guard {
    pub(crate) fn new(Probe(names, watch): Probe, owner: Owner, is_manual: bool) -> Self {
        let state = GuardState { stage: GuardStage::Watching(watch), since: None, holder: None };
        Guard { names, owner, is_manual, state: Mutex::new(state) }
    }

    /// Takes the name, if this process does not hold it yet, and raises the bound of the generator's lease to its end.
    ///
    /// # Errors
    /// `NODE_IN_USE` if another process holds it; `WOULD_BLOCK` if the caller may not wait for that process, or for the first tick;
    /// `CLOSED`, `FORKED`.
    pub(crate) async fn hold(&self, generator: &Generator, wait: &Wait<'_>) -> Result<()> {
        let (began, mut waited) = (Instant::now(), false);
        let opens_in = loop {
            // A callback of the wait may have forked, so this may be the child.
            generator.check_process()?;
            let since = match self.attempt(generator) {
                Ok(opens_in) => break opens_in,
                Err(since) => since,
            };
            let is_late = self.is_manual && locked(&self.state).is_late();
            let left = if is_late { Duration::ZERO } else { TIMEOUT.saturating_sub(since.elapsed()).min(wait.left()) };
            if left.is_zero() {
                return Err(self.in_use((!is_late).then_some(since), wait));
            }
            wait.pause(left.min(PAUSE)).await?;
            waited = true;
        };
        generator.wait_until(opens_in, &if waited { *wait } else { wait.restarted() }).await?;
        generator.lease.extend(&self.owner, UNBOUNDED);
        if waited {
            generator.note_wait(true, began.elapsed());
        }
        Ok(())
    }

    /// Makes one attempt. Returns the first tick, or the time since which the name has been found taken.
    fn attempt(&self, generator: &Generator) -> Result<u64, Instant> {
        let mut state = locked(&self.state);
        if let GuardStage::Begun(_, opens_in) = state.stage {
            return Ok(opens_in);
        }
        // A program may have closed the watch. It is dropped first, because the guard may get its
        // descriptor, and the inode of a removed file.
        state.is_late();
        let (held, opens_in) = match system::take(&self.names.guard) {
            Err(NotTaken::InUse) => return Err(*state.since.get_or_insert_with(Instant::now)),
            Err(NotTaken::Refused(why)) => {
                self.log_unguarded(&why);
                (None, 0)
            }
            Ok(_) if self.is_manual && state.is_late() => return Err(*state.since.get_or_insert_with(Instant::now)),
            Ok(name) if self.was_alone(&mut state) || self.is_manual => (Some(name), 0),
            Ok(name) => {
                let opens_in = generator.tick_or_zero() + 1;
                generator.begin(opens_in);
                (Some(name), opens_in)
            }
        };
        state.stage = GuardStage::Begun(held, opens_in);
        Ok(opens_in)
    }

    /// Returns whether no other process has issued since this one opened. Rings the other watches.
    fn was_alone(&self, state: &mut GuardState) -> bool {
        let was_alone = state.since.is_none() && !state.is_late() && matches!(state.stage, GuardStage::Watching(Ok(_)));
        let unheard = self.names.watches.iter().try_for_each(|watch| system::ring(watch)).err().map(|why| why.to_string());
        let unwatched = match &state.stage {
            // A clock that is not manual begins in a later tick.
            GuardStage::Watching(Err(NotTaken::Refused(why))) if self.is_manual => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = unwatched.or(unheard) {
            self.log_unguarded(&why);
        }
        was_alone
    }

    fn log_unguarded(&self, reason: &str) {
        let or_lease = if self.is_manual { "" } else { ", or use store=local" };
        log_unguarded(self.names.node, &self.names.namespace, reason, || {
            format!(
                "another process of this machine that has it too would not be noticed, because {reason}: give each process its own \
                 number{or_lease}"
            )
        });
    }

    /// The error of a call that does not wait any longer. The name has been found taken since `since`, or the call came too late for a
    /// manual clock.
    fn in_use(&self, since: Option<Instant>, wait: &Wait<'_>) -> Error {
        let mut state = locked(&self.state);
        let known = state.holder.take().filter(|(at, _)| at.elapsed() < KNOWN);
        let (at, holder) = known.unwrap_or_else(|| (Instant::now(), Holder::ask(&self.names)));
        let node = self.names.node;
        let is_free = since.is_none() && system::take(&self.names.guard).is_ok();
        let why = if is_free {
            format!("node number {node}: another process of this machine may have issued from it since this one opened it")
        } else {
            format!("node number {node} is in use on this machine by {holder}, until that exits")
        };
        let strangers = if holder.is_another_users() {
            format!("if it is not yours, end it, or set {} to one text for all your programs; else ", names::SCOPE)
        } else {
            String::new()
        };
        let ways = match self.is_manual {
            true => "start this process again with after= the highest saved ID, or give each process its own number",
            false => "give each process its own number, or have all of them lease one with store=local",
        };
        let why = format!(
            "{why}: {strangers}{ways}; programs that never fill the same table may share it with shared=true, and tests can use detached=true"
        );
        state.holder = Some((at, holder));
        drop(state);
        let may_come = since.is_some_and(|since| since.elapsed() < TIMEOUT);
        // A caller that may not wait at all retries.
        let kind = if may_come && wait.is_zero() { ErrorKind::WouldBlock } else { ErrorKind::NodeInUse };
        let error = Error::new(kind, why).retry_in(PAUSE);
        if may_come { error.of_a_short_wait() } else { error }
    }
}

/// The holder of a name.
struct Holder {
    guard: String,
    /// `None` if the system does not show it.
    peer: Option<Peer>,
}

/// A process, as far as the system describes it.
struct Peer {
    /// Its process ID, if it can be seen from here.
    pid: Option<u32>,
    /// Its user ID, if it is not this process's.
    other_user: Option<u32>,
    program: Option<String>,
    has_ended: bool,
}

impl Holder {
    fn ask(names: &Names) -> Self {
        Holder { guard: names.guard.clone(), peer: system::peer(&names.guard) }
    }

    fn is_another_users(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.other_user.is_some())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown_by = system::shown_by(&self.guard);
        let Some(peer) = &self.peer else { return write!(f, "a process that cannot be named ({shown_by})") };
        match peer.pid {
            Some(pid) if pid == std::process::id() => return write!(f, "another copy of frazil in this process ({pid})"),
            // This is the process ID of the process that took the name. A child whose fork ran no handlers keeps the name after
            // that process.
            Some(pid) if peer.has_ended => return write!(f, "a child of process {pid}, which has ended itself ({shown_by})"),
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("a process of another container")?,
        }
        if let Some(program) = &peer.program {
            write!(f, " ({})", shown(program.trim_end()))?;
        }
        match peer.other_user {
            Some(uid) => write!(f, " of another user (uid {uid})"),
            None => Ok(()),
        }
    }
}
