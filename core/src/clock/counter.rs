//! The processor's counter, which shows that a tick still lasts, at a third of the cost of reading
//! the system's clock.
//!
//! If the processor and the kernel declare it, x86-64's time-stamp counter and AArch64's virtual counter run at one rate, which is equal
//! on all cores. The rate is measured against the system's monotonic clock whenever a generator reads the wall clock. For the rest of
//! that tick, and for 1 ms at most, the counter alone shows that the tick lasts. So an error of the counter ends with that millisecond.
//! Every ID reads the wall clock while the rate is unknown, or after it changed because the machine was suspended or moved to another
//! host.

use super::validity::Validity;
use frazil_base::os::cancel::Uncancelled;
use frazil_base::os::fork::PerProcess;
use frazil_base::os::sync::{AtomicU64, Mutex, Ordering};
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

/// The longest time for which the counter extends one reading of the wall clock.
const LONGEST_NS: u64 = 1_000_000;
/// The time by which the processor may have read the counter early, because the instruction does not wait for earlier ones.
const EARLY_NS: u64 = 1_000;
/// The precision at which a rate counts as known: its error is smaller than one part in this number.
const KNOWN: u64 = 1024;
/// The tolerance of a rate. A measurement that differs by more than one part in this number, plus its own error, means a changed rate.
const STEADY: u64 = 512;
/// The part of a duration that is deducted: one in this number. It covers the two tolerances above and the usual slew of a system clock
/// (1 in 2,000 on Linux). A faster slew is noticed at the next measurement, a millisecond later.
const MARGIN: u64 = 256;
/// The shortest measurement. In a shorter one, a step of the counter (40 ns at 24 MHz) or of the clock (100 ns on Windows) would be too
/// large a part.
const SHORTEST_MEASUREMENT: Duration = Duration::from_micros(250);
/// The longest measurement. In a longer one, the average could hide a changed rate.
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(10);
/// The time for which a counter that was wrong must be right before it is used again. A counter that differs between two cores seems
/// right while the measurements come from the same core.
const RIGHT_FOR: Duration = Duration::from_secs(1);

/// The processor's counter, or a substitute in a test.
#[derive(Clone)]
pub struct Counter {
    #[cfg(all(test, not(loom)))]
    injected: Option<std::sync::Arc<AtomicU64>>,
}

impl Counter {
    /// Returns `None` if the counter is unreliable.
    pub fn of_the_processor() -> Option<Self> {
        is_reliable().then_some(Counter {
            #[cfg(all(test, not(loom)))]
            injected: None,
        })
    }

    /// Returns a counter that a test advances, at 1,000,000 counts per millisecond.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn injected(counts: std::sync::Arc<AtomicU64>) -> Self {
        Counter { injected: Some(counts) }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn now(&self) -> u64 {
        self.injected.as_ref().map_or_else(read, |counts| counts.load(Ordering::SeqCst))
    }

    /// Returns the validity from a count on in which certainly less than `ns` (at most 1 ms) has passed. `None` while the rate is unknown.
    pub(super) fn validity(&self, from: u64, ns: u64) -> Option<Validity> {
        let ns = ns.min(LONGEST_NS);
        #[cfg(all(test, not(loom)))]
        if self.injected.is_some() {
            return Validity::of_counts(from, ns);
        }
        let rate = measure();
        Validity::of_counts(from, at_rate(rate, ns.saturating_sub(EARLY_NS)))
    }
}

/// Returns the number of counts that certainly pass in a time.
fn at_rate(rate: u64, ns: u64) -> u64 {
    ns.saturating_mul(rate - rate / MARGIN) / 1_000_000
}

/// A simultaneous reading of the counter and the monotonic clock.
#[derive(Clone, Copy)]
struct Pair {
    count: u64,
    /// The possible error of the count.
    off: u64,
    at: Instant,
}

impl Pair {
    fn read() -> Self {
        let (count, at) = (read(), Instant::now());
        Pair { count, off: read().wrapping_sub(count), at }
    }
}

/// The measurements of this process.
static SHARED: PerProcess<SharedRate> = PerProcess::new();

/// Measures the rate again, and returns it, or 0 while it is unknown. A measurement costs less than 0.01 % of the tick or millisecond in
/// which it is made.
fn measure() -> u64 {
    SHARED.get(|| Ok(SharedRate::new())).map_or(0, |shared| shared.look(Pair::read))
}

/// The measurements that the threads of a process share.
struct SharedRate {
    measured: Mutex<Measured>,
    begin: Instant,
    /// The result of the last measurement, and its time in ns since `begin`.
    rate: AtomicU64,
    at: AtomicU64,
}

impl SharedRate {
    fn new() -> Self {
        SharedRate { measured: Mutex::default(), begin: Instant::now(), rate: AtomicU64::new(0), at: AtomicU64::new(0) }
    }

    fn look(&self, read: impl FnOnce() -> Pair) -> u64 {
        let Ok(mut measured) = self.measured.try_lock() else { return self.said(read().at) };
        let now = read();
        let rate = measured.look(now);
        self.rate.store(rate, Ordering::Relaxed);
        // The time is stored after the rate, because a thread that sees this time must not see an older rate.
        self.at.store(now.at.saturating_duration_since(self.begin).as_nanos() as u64, Ordering::Release);
        rate
    }

    /// Returns the rate that another thread found. Returns 0 if that thread has been stuck in its measurement for too long.
    fn said(&self, now: Instant) -> u64 {
        let at = Duration::from_nanos(self.at.load(Ordering::Acquire));
        let is_recent = now.saturating_duration_since(self.begin).saturating_sub(at) <= LONGEST_MEASUREMENT;
        if is_recent { self.rate.load(Ordering::Relaxed) } else { 0 }
    }
}

#[derive(Default)]
struct Measured {
    pair: Option<Pair>,
    /// 0 while the rate is unknown.
    rate: u64,
    /// True if two consecutive measurements agreed. In a single one the counter may have jumped.
    is_confirmed: bool,
    /// The last time at which a measurement contradicted the previous one.
    wrong: Option<Instant>,
}

impl Measured {
    /// Takes a measurement, and returns the rate, or 0 while the rate must not be used.
    fn look(&mut self, now: Pair) -> u64 {
        let (rate, next, said) = judge(self.pair, now, self.rate);
        match said {
            Said::Nothing => {}
            Said::TooLate => self.is_confirmed = false,
            Said::Rate => self.is_confirmed = self.rate != 0,
            Said::Wrong => (self.is_confirmed, self.wrong) = (false, Some(now.at)),
        }
        (self.pair, self.rate) = (Some(next), rate);
        let is_right = self.wrong.is_none_or(|wrong| now.at.saturating_duration_since(wrong) >= RIGHT_FOR);
        if self.is_confirmed && is_right { rate } else { 0 }
    }
}

/// The verdict of one measurement on the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The measurement came too soon after the last pair, or is too inexact.
    Nothing,
    /// Too much time has passed since the last pair, and the rate may have changed.
    TooLate,
    /// The rate is known, and agrees with any earlier one.
    Rate,
    /// The rate differs from the earlier one.
    Wrong,
}

/// Returns the rate after a reading, the pair to measure from next, and the verdict.
fn judge(last: Option<Pair>, now: Pair, rate: u64) -> (u64, Pair, Said) {
    let Some(last) = last else { return (rate, now, Said::Nothing) };
    let time = now.at.saturating_duration_since(last.at);
    if now.count < last.count {
        return (0, now, Said::Wrong);
    }
    if time > LONGEST_MEASUREMENT {
        return (rate, now, Said::TooLate);
    }
    // Keeps the more exact pair.
    let better = if last.off <= now.off { last } else { now };
    if time < SHORTEST_MEASUREMENT {
        return (rate, better, Said::Nothing);
    }
    let (counts, off, ns) = (now.count - last.count, last.off.saturating_add(now.off), time.as_nanos() as u64);
    let expected = (u128::from(rate) * u128::from(ns) / 1_000_000) as u64;
    if rate != 0 && counts.abs_diff(expected) > off.saturating_add(expected / STEADY) {
        return (0, now, Said::Wrong);
    }
    if off.saturating_mul(KNOWN) < counts {
        return ((u128::from(counts) * 1_000_000 / u128::from(ns.max(1))) as u64, now, Said::Rate);
    }
    (rate, better, Said::Nothing)
}

const NOT_ASKED: u8 = 0;
const RELIABLE: u8 = 1;
const UNRELIABLE: u8 = 2;

fn is_reliable() -> bool {
    static ANSWER: AtomicU8 = AtomicU8::new(NOT_ASKED);
    if ANSWER.load(Ordering::Relaxed) == NOT_ASKED {
        // These checks read files.
        let _uncancelled = Uncancelled::new();
        let reliable = is_invariant() && kernel_uses_it();
        ANSWER.store(if reliable { RELIABLE } else { UNRELIABLE }, Ordering::Relaxed);
    }
    ANSWER.load(Ordering::Relaxed) == RELIABLE
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, which only reads.
        unsafe { _rdtsc() }
    }

    /// "Invariant TSC": Intel's manual, volume 3, "Time-Stamp Counter".
    pub(super) fn is_invariant() -> bool {
        const POWER: u32 = 0x8000_0007;
        __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        let count: u64;
        // SAFETY: this only reads a register that every system opens to programs, because their clocks need it.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }

    /// Always true: see "The Generic Timer" in Arm's reference manual.
    pub(super) fn is_invariant() -> bool {
        true
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    pub(in super::super) fn read() -> u64 {
        0
    }

    pub(super) fn is_invariant() -> bool {
        false
    }
}

use processor::is_invariant;
pub(super) use processor::read;

/// Returns whether the kernel's own time comes from the counter. Then the kernel watches the counter, and switches to another source if
/// it is wrong.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn kernel_uses_it() -> bool {
    let source = |which: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/clocksource/clocksource0/{which}_clocksource")).unwrap_or_default()
    };
    answers_for_it(&source("current"), &source("available"))
}

/// Evaluates the kernel's list of clock sources. If the kernel finds x86-64's counter wrong, it switches to a hypervisor's clock, which
/// corrects the counter for each core, and no longer lists the counter as available.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn answers_for_it(current: &str, available: &str) -> bool {
    const SOURCES: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let lists_it = || available.split_whitespace().any(|source| source == "tsc");
    SOURCES.contains(&current.trim()) && (cfg!(not(target_arch = "x86_64")) || lists_it())
}

/// Returns true, because other systems do not show their source, and use the counter themselves if it is invariant.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn kernel_uses_it() -> bool {
    true
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn loom_rate_that_was_found_wrong_is_not_used_with_a_later_time() {
        loom::model(|| {
            let shared = Arc::new(SharedRate::new());
            let pair = |count, ms| Pair { count, off: 0, at: shared.begin + Duration::from_millis(ms) };
            let known = [0, 1, 2].map(|ms| shared.look(|| pair(1_000_000 * ms, ms)));
            assert_eq!(known, [0, 0, 1_000_000]);
            // The counter goes back, and then the rate from before that becomes too old.
            let (back, late) = (pair(0, 3), shared.begin + Duration::from_millis(3) + LONGEST_MEASUREMENT);
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || other.look(|| back));
            // `look` does this while the other thread measures, which loom does not try.
            assert_eq!(shared.said(late), 0);
            assert_eq!(thread.join().unwrap(), 0);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pair(count: u64, us: u64) -> Pair {
        static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        Pair { count, off: 100, at: *BEGIN.get_or_init(Instant::now) + Duration::from_micros(us) }
    }

    #[test]
    fn rate_is_known_once_its_error_is_small() {
        let first = pair(5_000, 0);
        assert_eq!(judge(None, first, 0).0, 0);
        let near = judge(Some(first), pair(5_000 + 3_000, 1), 0);
        assert_eq!((near.0, near.1.count), (0, 5_000), "too near: the first pair stays");
        let badly = Pair { off: 1_000_000, ..pair(5_000 + 3_000_000, 1000) };
        assert_eq!(judge(Some(first), badly, 0).0, 0, "the thread was interrupted between the two readings");
        let (rate, next, _) = judge(Some(first), pair(5_000 + 3_000_000, 1000), 0);
        assert_eq!((rate, next.count), (3_000_000, 3_005_000));
    }

    /// Counters of 24 MHz and clocks of 10 MHz often show the same value in both readings of a pair, so one step is a large part of a
    /// short time.
    #[test]
    fn coarse_counter_or_clock_gives_no_rate_over_a_short_time() {
        let coarse = |count: u64, ns: u64| Pair { count, off: 0, at: pair(0, 0).at + Duration::from_nanos(ns) };
        for (counts, ns) in [(1, 0), (1, 1), (1, 42), (8, 291), (100_000, 0), (300_000, 100), (24 * 200, 190_000)] {
            let (rate, next, _) = judge(Some(coarse(1_000, 0)), coarse(1_000 + counts, ns), 0);
            assert_eq!((rate, next.count), (0, 1_000), "{counts} counts in {ns} ns");
        }
        assert_eq!(judge(Some(coarse(1_000, 0)), coarse(1_001, 0), 24_000).0, 24_000, "nor that it has changed");
        assert_eq!(judge(Some(coarse(1_000, 0)), coarse(25_001, 1_000_000), 0).0, 24_001);
    }

    #[test]
    fn rate_that_no_counter_has_does_not_overflow() {
        let (rate, ..) = judge(Some(pair(0, 0)), pair(u64::MAX / 2, 1_000), 0);
        assert!(Validity::of_counts(0, at_rate(rate, LONGEST_NS)).is_some());
    }

    #[test]
    fn inexact_pair_is_replaced() {
        let badly = Pair { off: 1_000_000, ..pair(5_000, 0) };
        assert_eq!(judge(Some(badly), pair(8_000, 1), 0).1.count, 8_000);
    }

    #[test]
    fn rate_that_changes_is_not_used_until_it_is_known_again() {
        let (begin, rate) = (pair(0, 0), 3_000_000);
        assert_eq!(judge(Some(begin), pair(3_001_000, 1_000), rate).0, 3_001_000, "the same, within what it may differ");
        let slower = pair(2_900_000, 1_000);
        assert_eq!(judge(Some(begin), slower, rate).0, 0);
        assert_eq!(judge(Some(slower), pair(2_900_000 + 2_000_000, 2_000), 0).0, 2_000_000);
        let faster = pair(3_100_000, 1_000);
        assert_eq!(judge(Some(begin), faster, rate).0, 0);
    }

    #[test]
    fn counter_that_goes_back_jumps_or_stops_is_not_used() {
        let (begin, rate) = (pair(3_000_000_000, 1_000_000), 3_000_000);
        for (count, us) in [(2_999_999_999, 1_001_000), (3_000_000_000, 1_001_000), (3_001_000_000, 1_002_000), (9_000_000_000, 1_001_000)]
        {
            let (rate, next, said) = judge(Some(begin), pair(count, us), rate);
            assert_eq!((rate, next.count, said), (0, count, Said::Wrong), "{count} after {us}");
        }
    }

    #[test]
    fn measurement_over_a_long_time_gives_no_rate() {
        let (rate, next, _) = judge(Some(pair(0, 0)), pair(60_000_000_000, 20_000_000), 2_000_000);
        assert_eq!((rate, next.count), (2_000_000, 60_000_000_000));
    }

    /// Measures `us` after the first measurement, with a 3 GHz counter that has jumped by `jumped`.
    fn look(measured: &mut Measured, us: u64, jumped: u64) -> u64 {
        measured.look(pair(5_000 + us * 3_000 + jumped, us))
    }

    #[test]
    fn rate_is_used_once_two_measurements_agree() {
        let mut measured = Measured::default();
        let rates = [0, 1_000, 2_000].map(|us| look(&mut measured, us, 0));
        assert_eq!(rates, [0, 0, 3_000_000]);
        assert_eq!(look(&mut measured, 2_001, 9), 3_000_000, "too soon for a rate");
    }

    #[test]
    fn counter_that_was_wrong_is_used_again_once_it_has_been_right_for_a_second() {
        let mut measured = Measured::default();
        let jumped = 3_000_000;
        for (us, jumped) in [(0, 0), (1_000, jumped), (2_000, jumped), (3_000, jumped), (4_000, jumped), (1_001_000, jumped)] {
            assert_eq!(look(&mut measured, us, jumped), 0, "after {us} us: the first measurement was another one");
        }
        assert_eq!(look(&mut measured, 1_002_000, jumped), 3_000_000);
        assert_eq!(look(&mut measured, 1_003_000, 0), 0, "it jumped back");
        assert!((1_004..2_003).all(|ms| look(&mut measured, ms * 1_000, 0) == 0));
        assert_eq!(look(&mut measured, 2_003_000, 0), 3_000_000);
    }

    /// Threads on two cores measure in turns of a few ms, as a scheduler would run them.
    #[test]
    fn counter_that_differs_between_cores_is_not_used() {
        let mut measured = Measured::default();
        let differs = [0, 300_000];
        let rates: Vec<_> = (0..20_000).map(|ms| look(&mut measured, ms * 1_000, differs[ms as usize / 5 % 2])).collect();
        assert!(rates[6..].iter().all(|rate| *rate == 0), "used at {:?}", rates.iter().rposition(|rate| *rate != 0));
    }

    /// The machine may have moved to a host with another rate in between.
    #[test]
    fn rate_of_long_ago_is_not_used_before_it_is_measured_once_more() {
        let mut measured = Measured::default();
        assert_eq!([0, 1_000, 2_000].map(|us| look(&mut measured, us, 0)), [0, 0, 3_000_000]);
        let later = 60_000_000;
        assert_eq!([later, later + 10, later + 200].map(|us| look(&mut measured, us, 0)), [0, 0, 0], "nothing has been measured since");
        assert_eq!(look(&mut measured, later + 1_000, 0), 3_000_000);
    }

    #[test]
    fn thread_uses_the_recent_rate_of_a_thread_that_measures() {
        let shared = SharedRate::new();
        let at = |us: u64| Pair { at: shared.begin + Duration::from_micros(us), ..pair(us * 3_000, 0) };
        let rates = [0, 1_000, 2_000].map(|us| shared.look(|| at(us)));
        assert_eq!(rates, [0, 0, 3_000_000]);
        let held = shared.measured.lock().unwrap();
        assert_eq!([2_000, 1_000_000, 10_002_000].map(|us| shared.look(|| at(us))), [3_000_000; 3]);
        assert_eq!(shared.look(|| at(10_003_000)), 0);
        drop(held);
        assert_eq!(shared.look(|| at(10_003_000)), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn counter_is_reliable_if_the_kernel_uses_it_and_has_not_rejected_it() {
        let known =
            [("tsc\n", "tsc kvm-clock \n"), ("kvm-clock\n", "kvm-clock tsc acpi_pm \n"), ("arch_sys_counter\n", "arch_sys_counter tsc\n")];
        assert!(known.iter().all(|(current, available)| answers_for_it(current, available)));
        for (current, available) in [("hpet\n", "tsc hpet \n"), ("acpi_pm", "acpi_pm"), ("tsc-early\n", "tsc tsc-early \n"), ("", "")] {
            assert!(!answers_for_it(current, available), "{current}");
        }
        // The kernel does not list a source that it has found wrong, whatever it uses instead.
        for (current, available) in [("kvm-clock\n", "kvm-clock acpi_pm \n"), ("kvm-clock\n", "kvm-clock tsc-early \n"), ("kvm-clock", "")]
        {
            assert_eq!(answers_for_it(current, available), cfg!(not(target_arch = "x86_64")), "{current} of {available}");
        }
    }

    #[test]
    fn processors_counter_becomes_known() {
        let Some(counter) = Counter::of_the_processor() else { return };
        let since = Instant::now();
        let validity = loop {
            let (begin, from) = (Instant::now(), counter.now());
            if let Some(validity) = counter.validity(from, LONGEST_NS) {
                break (validity, begin);
            }
            assert!(since.elapsed() < Duration::from_secs(60), "its rate is not known");
        };
        while validity.0.holds(counter.now()) {}
        assert!(validity.1.elapsed() > Duration::from_micros(900), "it was given up after {:?}", validity.1.elapsed());
    }
}
