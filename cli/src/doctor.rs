//! Checks this machine, a spec and its store: each finding has its fix. Nothing is written. On request the guard's lock files are removed.

mod store;

use super::arguments::Doctor;
use super::layouts::day;
use super::screen::{Outcome, Screen, Tone, wrapped};
use super::status::{DONE, FAILED};
use frazil::admin::{
    Copies, Counter, DEFAULT_NAMESPACE, Found, HAS_ALL_STORES, Source, check_after, find_guard, plan, remove_lock_files, show_span,
    system_ms, value,
};
use frazil::bindings::show_instant;
use frazil::{Error, Layout, Spec};
use serde_json::{Value, json};
use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

/// The column at which a finding's text begins, after its level and area.
const TEXT: usize = 17;
const YEAR_MS: i64 = 31_556_952_000;
/// The time for which the clock is compared with another that is never set.
const LOOK: Duration = Duration::from_millis(300);
/// Further apart, the clock was set meanwhile.
const STEP_MS: i64 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    /// It works, and may not for long, or not well.
    Warn,
    /// It does not work.
    Bad,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Good => "good",
            Level::Warn => "warn",
            Level::Bad => "bad",
        }
    }
}

struct Finding {
    area: &'static str,
    level: Level,
    text: String,
    /// The fix.
    fix: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn good(&mut self, area: &'static str, text: impl Into<String>) {
        self.0.push(Finding { area, level: Level::Good, text: text.into(), fix: None });
    }

    fn warn(&mut self, area: &'static str, text: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { area, level: Level::Warn, text: text.into(), fix: Some(fix.into()) });
    }

    fn bad(&mut self, area: &'static str, text: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { area, level: Level::Bad, text: text.into(), fix: Some(fix.into()) });
    }

    /// Turns an error, whose text has its fix, into a finding.
    fn error(&mut self, area: &'static str, error: &Error) {
        self.0.push(Finding { area, level: Level::Bad, text: format!("{}: {error}", error.kind().name()), fix: None });
    }
}

fn version(findings: &mut Findings) {
    let stores = if HAS_ALL_STORES { "all stores" } else { "not all stores" };
    findings.good("frazil", format!("{}, {} on {}, with {stores}", env!("CARGO_PKG_VERSION"), env::consts::ARCH, env::consts::OS));
}

/// The wall clock beside one that is never set.
fn clock(findings: &mut Findings) {
    let (wall, steady) = (system_ms(), Instant::now());
    std::thread::sleep(LOOK);
    let step = system_ms() - wall - steady.elapsed().as_millis() as i64;
    if step.abs() > STEP_MS {
        let fix = "let NTP slew the clock (chrony: makestep only at the start); leases and rollback=wait or ahead bear small steps";
        findings.warn("clock", format!("it was set by {step} ms within {} ms", LOOK.as_millis()), fix);
    } else {
        findings.good("clock", format!("{}; steady for {} ms", show_instant(system_ms()), LOOK.as_millis()));
    }
    synchronised(findings);
    match Counter::of_the_processor() {
        Some(_) => findings.good("counter", "the processor's counter tells how long a tick lasts: the fast path needs no system call"),
        None => findings.warn(
            "counter",
            "the processor's counter cannot be relied on: each ID reads the system's clock",
            "on a virtual machine, ask for an invariant TSC (Linux: clocksource tsc); IDs are right in any case",
        ),
    }
}

/// Reads the kernel's state of the clock's synchronisation.
#[cfg(target_os = "linux")]
fn synchronised(findings: &mut Findings) {
    // SAFETY: zeroes are a valid timex, and with modes = 0 it is only read.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: it is whole, and lives through the call.
    let state = unsafe { libc::adjtimex(&mut timex) };
    if state < 0 {
        return;
    }
    if timex.status & libc::STA_UNSYNC != 0 {
        let fix = "run chrony, systemd-timesyncd or ntpd (in a container: on its host)";
        findings.warn("ntp", "the kernel says that the clock is not synchronised", fix);
    } else {
        findings.good("ntp", format!("synchronised; the kernel's bound for the error is {} ms", timex.maxerror / 1000));
    }
}

#[cfg(not(target_os = "linux"))]
fn synchronised(_: &mut Findings) {}

fn layout(layout: &Layout, findings: &mut Findings) {
    let now = system_ms();
    if layout.epoch_ms() > now {
        findings.bad(
            "layout",
            format!("{layout}: its epoch is {}", show_instant(layout.epoch_ms())),
            "set the clock, or say an epoch in the past",
        );
        return;
    }
    match layout.expires_at_ms() {
        Some(end) if end <= now => {
            findings.bad(
                "layout",
                format!("{layout}: it ended on {}", day(end)),
                "a later epoch= for new tables; tables with its IDs: docs/layouts.md, When a layout ends",
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

fn spec(spec: &Spec, findings: &mut Findings) {
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
        Source::Fixed(node) => {
            findings.good(
                "node",
                format!(
                    "{node}, given in the spec: unique as long as no other machine has it, and the clock is not set back across a restart"
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
                    "clock=manual without after= may repeat the IDs of an earlier run",
                    "open with after= the highest saved ID (after=0 where none is); tests and replays take detached=true",
                );
            }
        }
        Source::Leased(contract) => {
            let given = value(spec, "store").ok().flatten().unwrap_or_default();
            let namespace = value(spec, "namespace").ok().flatten().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
            store::check(&given, &namespace, &contract, findings);
        }
    }
}

/// Copies of this machine that are made while it runs.
fn copies(findings: &mut Findings) {
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

/// A second process of this machine with a number that is given.
fn guard(found: Option<Found>, is_manual: bool, findings: &mut Findings) {
    // A lease needs the system's clock.
    let or = if is_manual { "or leave out clock=manual and" } else { "or" };
    let fix = format!("give each process its own number, {or} have all of them lease one with store=local");
    match found {
        Some(Found::Free | Found::Held(_)) if has_own_network() => findings.warn(
            "guard",
            "other containers of this machine that issue from the number are not noticed, because this process has a network of its own",
            format!("give each container its own number, {or} lease one from a store that all of them reach"),
        ),
        None => findings.warn("guard", "another process of this machine with the number is not noticed, as the spec asks", fix),
        Some(Found::Free) => {
            findings.good("guard", "no process of this machine issues from the number; the first that does keeps others out")
        }
        Some(Found::Held(holder)) => findings.good("guard", format!("{holder} issues from the number; every other process is refused")),
        Some(Found::Unguarded(why)) => {
            findings.warn("guard", format!("another process of this machine with the number would not be noticed: {why}"), fix);
        }
    }
}

/// Returns whether this process is in another network namespace than the machine. Only the machine's has all of the settings.
fn has_own_network() -> bool {
    let has = |setting: &str| Path::new("/proc/sys/net/core").join(setting).exists();
    has("somaxconn") && !has("netdev_max_backlog")
}

fn lock_files(findings: &mut Findings) {
    match remove_lock_files() {
        None => findings.good("files", "none to remove: this system guards fixed numbers without files"),
        Some(Ok((removed, kept))) => {
            let text = format!("removed those of {removed} fixed numbers; those of {kept} stay: in use, or another account's");
            findings.good("files", text);
        }
        Some(Err(why)) => findings.bad("files", format!("/var/tmp: {why}"), "run it as an account that may read the folder"),
    }
}

/// Looks at everything, and prints what it finds; a status of 1 where something does not work.
pub(super) fn print(Doctor { spec: words, remove_lock_files, json: as_json }: &Doctor, screen: &mut Screen<'_>) -> Outcome {
    let mut findings = Findings::default();
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
    let Findings(all) = findings;
    if *as_json {
        let rows: Vec<_> = all
            .iter()
            .map(|Finding { area, level, text, fix }| json!({ "area": area, "level": level.name(), "text": text, "fix": fix }))
            .collect();
        screen.print(&format!("{:#}\n", Value::Array(rows)))?;
    } else {
        for Finding { area, level, text, fix } in &all {
            let tone = match level {
                Level::Good => Tone::Good,
                Level::Warn => Tone::Warn,
                Level::Bad => Tone::Bad,
            };
            let word = screen.paint(tone, &format!("{:<4}", level.name()));
            let text = wrapped(text, TEXT, TEXT);
            screen.print(&format!("{word}  {area:<9}  {}", text.trim_start()))?;
            if let Some(fix) = fix {
                screen.print(&wrapped(&format!("fix: {fix}"), TEXT, TEXT))?;
            }
        }
    }
    Ok(if all.iter().any(|finding| finding.level == Level::Bad) { FAILED } else { DONE })
}
