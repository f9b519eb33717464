//! Checks this machine, a spec and its store, and names a fix for each problem. Writes nothing; on request it removes the guard's lock files.

mod store;

use super::arguments::Doctor;
use super::layouts::day;
use super::screen::{Outcome, Screen, Stop, Tone, counted, plain, wrapped};
use super::status::{DONE, FAILED};
use frazil::admin::{
    Copies, Counter, DEFAULT_NAMESPACE, Found, HAS_ALL_STORES, NodeSource, check_after, find_guard, plan, remove_lock_files, show_span,
    system_ms, value,
};
use frazil::bindings::show_instant;
use frazil::{Error, Layout, Spec};
use serde_json::{Value, json};
use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

/// The column at which the text of a check begins, after its level and area.
const TEXT: usize = 17;
/// That column on a terminal that is narrower than [`NARROW`].
const LEVEL: usize = 6;
const NARROW: usize = 60;
const YEAR_MS: i64 = 31_556_952_000;
/// The time for which the system clock is compared with the monotonic clock.
const CLOCK_CHECK: Duration = Duration::from_millis(300);
/// A larger difference means that the clock was set.
const STEP_MS: i64 = 20;

/// The levels of a check: it works; it works now, but may fail later or work badly; it does not work.
const GOOD: (&str, Tone) = ("good", Tone::Good);
const WARN: (&str, Tone) = ("warn", Tone::Warn);
const BAD: (&str, Tone) = ("bad", Tone::Bad);

struct Check {
    area: &'static str,
    level: (&'static str, Tone),
    text: String,
    /// The fix.
    fix: Option<String>,
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn good(&mut self, area: &'static str, text: impl Into<String>) {
        self.0.push(Check { area, level: GOOD, text: text.into(), fix: None });
    }

    fn warn(&mut self, area: &'static str, text: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { area, level: WARN, text: text.into(), fix: Some(fix.into()) });
    }

    fn bad(&mut self, area: &'static str, text: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { area, level: BAD, text: text.into(), fix: Some(fix.into()) });
    }

    /// Adds an error, whose text names the fix.
    fn error(&mut self, area: &'static str, error: &Error) {
        self.0.push(Check { area, level: BAD, text: format!("{}: {error}", error.kind().name()), fix: None });
    }
}

fn version(findings: &mut Checks) {
    let stores = if HAS_ALL_STORES { "all stores" } else { "not all stores" };
    findings.good("frazil", format!("{}, {} on {}, with {stores}", env!("CARGO_PKG_VERSION"), env::consts::ARCH, env::consts::OS));
}

/// Checks the system clock against the monotonic clock.
fn clock(findings: &mut Checks) {
    let (wall, steady) = (system_ms(), Instant::now());
    std::thread::sleep(CLOCK_CHECK);
    let step = system_ms() - wall - steady.elapsed().as_millis() as i64;
    if step.abs() > STEP_MS {
        let fix = "let NTP slew the clock (chrony: makestep only at the start); leases and rollback=wait or ahead tolerate small steps";
        findings.warn("clock", format!("it was set by {step} ms within {} ms", CLOCK_CHECK.as_millis()), fix);
    } else {
        findings.good("clock", format!("{}; steady for {} ms", show_instant(system_ms()), CLOCK_CHECK.as_millis()));
    }
    synchronised(findings);
    match Counter::of_the_processor() {
        Some(_) => findings.good("counter", "the processor's counter measures ticks: the fast path needs no system call"),
        None => findings.warn(
            "counter",
            "the processor's counter is unreliable: each ID reads the system clock",
            "on a virtual machine, enable an invariant TSC (Linux: clocksource tsc); IDs are correct in any case",
        ),
    }
}

/// Reads the kernel's state of the clock's synchronisation.
#[cfg(target_os = "linux")]
fn synchronised(findings: &mut Checks) {
    // SAFETY: zeroes are a valid timex, and with modes = 0 it is only read.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a valid timex that outlives the call.
    let state = unsafe { libc::adjtimex(&mut timex) };
    if state < 0 {
        return;
    }
    if timex.status & libc::STA_UNSYNC != 0 {
        let fix = "run chrony, systemd-timesyncd or ntpd (in a container: on its host)";
        findings.warn("ntp", "the kernel reports that the clock is not synchronised", fix);
    } else {
        findings.good("ntp", format!("synchronised; the maximum error, by the kernel, is {} ms", timex.maxerror / 1000));
    }
}

#[cfg(not(target_os = "linux"))]
fn synchronised(_: &mut Checks) {}

fn layout(layout: &Layout, findings: &mut Checks) {
    let now = system_ms();
    if layout.epoch_ms() > now {
        findings.bad(
            "layout",
            format!("{layout}: its epoch is {}", show_instant(layout.epoch_ms())),
            "set the clock, or use an epoch in the past",
        );
        return;
    }
    match layout.expires_at_ms() {
        Some(end) if end <= now => {
            findings.bad(
                "layout",
                format!("{layout}: it ended on {}", day(end)),
                "use a later epoch= for new tables; for tables with its IDs see docs/layouts.md, When a layout ends",
            );
        }
        Some(end) if end - now < YEAR_MS => {
            let left = show_span((end - now) as f64);
            findings.warn("layout", format!("{layout}: it ends on {}, in {left}", day(end)), "plan a move: docs/moving.md");
        }
        end => {
            findings.good("layout", format!("{layout}: {}", end.map_or_else(|| "no end".to_owned(), |end| format!("until {}", day(end)))))
        }
    }
}

fn spec(spec: &Spec, findings: &mut Checks) {
    let (planned, source) = match plan(spec) {
        Ok(plan) => plan,
        Err(error) => return findings.error("spec", &error),
    };
    findings.good("spec", spec.to_string());
    if let Err(error) = check_after(spec) {
        findings.error("after", &error);
    }
    layout(&planned, findings);
    let is_manual = value(spec, "clock").ok().flatten().as_deref() == Some("manual");
    match source {
        NodeSource::Fixed(node) => {
            findings.good(
                "node",
                format!(
                    "{node}, fixed in the spec: unique as long as no other machine uses it, and the clock is not set back across a restart"
                ),
            );
            match find_guard(spec) {
                Ok(found) => guard(found, is_manual, findings),
                Err(error) => findings.error("guard", &error),
            }
            let is = |key, wanted| value(spec, key).ok().flatten().as_deref() == wanted;
            if is_manual && is("after", None) && !is("detached", Some("true")) {
                findings.warn(
                    "after",
                    "clock=manual without after= may repeat IDs of an earlier run",
                    "open with after= the highest saved ID (after=0 if there is none); use detached=true in tests and replays",
                );
            }
        }
        NodeSource::Leased(contract) => {
            let given = value(spec, "store").ok().flatten().unwrap_or_default();
            let namespace = value(spec, "namespace").ok().flatten().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
            store::check(&given, &namespace, &contract, findings);
        }
    }
}

/// Checks whether frazil notices copies of this machine that are made while it runs.
fn copies(findings: &mut Checks) {
    match Copies::find() {
        Copies::Noticed(by) => findings.good("copies", format!("a copy of this running machine is noticed, by {by}")),
        Copies::Unnoticed(why) => {
            findings.good("copies", format!("{why}: if this machine is copied while it runs, call frazil's restored() in each copy"));
        }
        Copies::Unreadable(why) => findings.warn(
            "copies",
            format!("a copy of this running machine would not be noticed: {why}"),
            "let the program read it; for the device by a udev rule: KERNEL==\"vmclock0\", MODE=\"0444\"",
        ),
    }
}

/// Checks whether a second process of this machine may use a fixed number.
fn guard(found: Option<Found>, is_manual: bool, findings: &mut Checks) {
    // A lease needs the system clock.
    let or = if is_manual { "or remove clock=manual and" } else { "or" };
    let fix = format!("give each process its own number, {or} use store=local in all of them");
    match found {
        Some(Found::Free | Found::Held(_)) if has_own_network() => findings.warn(
            "guard",
            "other containers of this machine that use the number are not noticed, because this process has its own network",
            format!("give each container its own number, {or} use a store that all of them reach"),
        ),
        None => findings.warn("guard", "the spec turns off the check for another process of this machine with the number", fix),
        Some(Found::Free) => findings.good("guard", "no process of this machine uses the number; the first that does excludes others"),
        Some(Found::Held(holder)) => findings.good("guard", format!("{holder} uses the number; every other process is refused")),
        Some(Found::Unguarded(why)) => {
            findings.warn("guard", format!("another process of this machine with the number would not be noticed: {why}"), fix);
        }
    }
}

/// Returns whether this process has another network namespace than the machine, which alone has all of the settings.
fn has_own_network() -> bool {
    let has = |setting: &str| Path::new("/proc/sys/net/core").join(setting).exists();
    has("somaxconn") && !has("netdev_max_backlog")
}

fn lock_files(findings: &mut Checks) {
    match remove_lock_files() {
        None => findings.good("files", "none to remove: this system guards fixed numbers without files"),
        Some(Ok((removed, kept))) => {
            let text =
                format!("removed those of {removed} fixed numbers; kept those of {kept}, which are in use or belong to other accounts");
            findings.good("files", text);
        }
        Some(Err(why)) => findings.bad("files", format!("/var/tmp: {why}"), "use an account that may read the folder"),
    }
}

/// Prints the number of checks of each level, and what it means.
fn summary(all: &[Check], screen: &mut Screen<'_>) -> Result<(), Stop> {
    let count = |level: (&str, Tone)| all.iter().filter(|check| check.level.0 == level.0).count();
    let (tone, verdict) = match (count(BAD), count(WARN)) {
        (0, 0) => (Tone::Good, "Everything works".to_owned()),
        (0, warnings) => (Tone::Warn, format!("It works, with {}", counted(warnings as u64, "warning"))),
        (problems, 0) => (Tone::Bad, counted(problems as u64, "problem")),
        (problems, warnings) => (Tone::Bad, format!("{}, {}", counted(problems as u64, "problem"), counted(warnings as u64, "warning"))),
    };
    let verdict = screen.paint(tone, &verdict);
    screen.print(&format!("\n{verdict} in {}\n", counted(all.len() as u64, "check")))
}

/// Runs all checks and prints the results. The status is 1 if something does not work.
pub(super) fn print(Doctor { spec: words, remove_lock_files, json: as_json }: &Doctor, screen: &mut Screen<'_>) -> Outcome {
    let mut findings = Checks::default();
    version(&mut findings);
    clock(&mut findings);
    copies(&mut findings);
    if *remove_lock_files {
        lock_files(&mut findings);
    }
    if !words.is_empty() || env::var_os("FRAZIL").is_some() {
        let line = (!words.is_empty()).then(|| words.join(" "));
        match Spec::from_parts(line.as_deref(), &[]) {
            Ok(parsed) => spec(&parsed, &mut findings),
            Err(error) => findings.error("spec", &error),
        }
    }
    let Checks(all) = findings;
    if *as_json {
        let row = |Check { area, level: (level, _), text, fix }: &Check| json!({ "area": area, "level": level, "text": text, "fix": fix });
        screen.json(&Value::Array(all.iter().map(row).collect()))?;
    } else {
        // A narrow terminal has no room for a column of areas.
        let column = if screen.has_room(NARROW) { TEXT } else { LEVEL };
        for Check { area, level: (level, tone), text, fix } in &all {
            let word = screen.paint(*tone, &format!("{level:<4}"));
            let text = wrapped(&plain(text), column, column, screen.measure());
            if column == TEXT {
                screen.print(&format!("{word}  {area:<9}  {}", text.trim_start()))?;
            } else {
                screen.print(&format!("{word}  {area}\n{text}"))?;
            }
            if let Some(fix) = fix {
                screen.print(&wrapped(&format!("fix: {}", plain(fix)), column, column, screen.measure()))?;
            }
        }
        summary(&all, screen)?;
    }
    Ok(if all.iter().any(|check| check.level.0 == BAD.0) { FAILED } else { DONE })
}
