//! Segments, tickets and the ring, on the stores that need no server.
#![cfg(unix)]

use frazil::bindings::{Row, poll_once};
use frazil::{Buffered, ErrorKind, Numbers, Segment, Snowflake, Spec, Supply, Tickets};
use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

fn kind(line: &str) -> ErrorKind {
    Segment::open(line).expect_err(line).kind()
}

/// A folder that is removed at the end. Its name is a link, so that another folder can replace it
/// at once.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Folder(std::env::temp_dir().join(format!("frazil-segments-{}-{name}", std::process::id())));
        std::fs::create_dir_all(folder.beside("first")).expect("a temporary folder");
        folder.lead_to("first");
        folder
    }

    fn beside(&self, what: &str) -> std::path::PathBuf {
        self.0.with_extension(what)
    }

    fn lead_to(&self, what: &str) {
        std::os::unix::fs::symlink(self.beside(what), self.beside("link")).expect("a temporary folder");
        std::fs::rename(self.beside("link"), &self.0).expect("a temporary folder");
    }

    /// Replaces the folder by a file.
    fn take_away(&self) {
        std::fs::write(self.beside("file"), "not a folder").expect("a temporary folder");
        self.lead_to("file");
    }

    fn store(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for path in [self.0.clone(), self.beside("first"), self.beside("copy"), self.beside("file")] {
            drop(std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)));
        }
    }
}

fn numbers(numbers: &Numbers, count: usize) -> Vec<i64> {
    let mut buffer = vec![0; count];
    numbers.fill(&mut buffer).expect("numbers");
    buffer
}

#[test]
fn numbers_increase_from_the_start_without_a_gap_within_a_process() {
    let segment = Segment::open("plain store=memory start=100 step=7").unwrap();
    assert_eq!(numbers(&segment, 50), (100..150).collect::<Vec<_>>());
    assert_eq!(segment.next_id().unwrap().get(), 150);
    assert_eq!(segment.batch(2).unwrap()[1].get(), 152);
    // Another handle gets other ranges.
    let other = Segment::open("plain store=memory step=7").unwrap();
    assert!(other.next_id().unwrap().get() > 152);
    assert_eq!(segment.next_id().unwrap().get(), 153);
}

#[test]
fn increment_and_offset() {
    let odd = Segment::open("parity store=memory namespace=odd increment=2 offset=1 step=3").unwrap();
    assert_eq!(numbers(&odd, 5), [1, 3, 5, 7, 9]);
    let even = Segment::open("parity store=memory namespace=even increment=2 offset=2 start=3").unwrap();
    assert_eq!(numbers(&even, 3), [4, 6, 8]);
    assert_eq!(kind("parity store=memory namespace=odd increment=3 offset=1"), ErrorKind::SegmentMismatch);
    assert_eq!(kind("parity store=memory namespace=odd"), ErrorKind::SegmentMismatch);
}

#[test]
fn threads_never_get_the_same_number() {
    let segment = Segment::open("threads store=memory step=10").unwrap();
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let work = || {
            let mine: Vec<i64> =
                (0..20_000).map(|n| if n % 3 == 0 { numbers(&segment, 1)[0] } else { segment.next_id().unwrap().get() }).collect();
            assert!(mine.is_sorted_by(|a, b| a < b));
            mine
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=80_000).collect::<Vec<_>>(), "none twice, and no gap");
}

#[test]
fn several_stores_serve_one_tag_while_one_is_alive() {
    let (a, b) = (Folder::new("a"), Folder::new("b"));
    let segment = Segment::open(&format!("orders store='{} {}' step=10", a.store(), b.store())).unwrap();
    let first = numbers(&segment, 2_000);
    assert!(first.iter().any(|n| n % 2 == 0) && first.iter().any(|n| n % 2 == 1));
    b.take_away();
    let more = numbers(&segment, 200_000);
    assert_eq!(first.iter().chain(&more).collect::<HashSet<_>>().len(), 202_000);
    assert!(more[190_000..].iter().all(|n| n % 2 == 1), "all of the store that is left");
    assert!(segment.last_error().unwrap().is_some(), "the other one's failure is shown");
}

#[test]
fn additional_store_is_refused_by_the_numbers_of_the_others() {
    let (a, b, c) = (Folder::new("more-a"), Folder::new("more-b"), Folder::new("more-c"));
    let two = Tickets::open(&format!("photos store='{} {}'", a.store(), b.store())).unwrap();
    numbers(&two, 20);
    // The third store would begin at 3, which was already handed out.
    for _ in 0..8 {
        let three = Tickets::open(&format!("photos store='{} {} {}'", a.store(), b.store(), c.store())).unwrap();
        let error = three.next_id().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SegmentMismatch, "{error}");
        assert!(error.to_string().contains("increment=2 offset=1") && error.to_string().contains("increment=3 offset=1"), "{error}");
        assert_eq!(three.next_id().unwrap_err().kind(), ErrorKind::SegmentMismatch, "and stays refused");
    }
}

#[test]
fn stores_in_another_order_are_refused() {
    let (a, b) = (Folder::new("order-a"), Folder::new("order-b"));
    Tickets::open(&format!("photos store='{} {}'", a.store(), b.store())).unwrap().next_id().unwrap();
    let error = Tickets::open(&format!("photos store='{} {}'", b.store(), a.store())).unwrap().next_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SegmentMismatch, "{error}");
}

#[test]
fn store_that_lost_the_tag_is_not_begun_anew_while_another_has_it() {
    let (a, b) = (Folder::new("lost-a"), Folder::new("lost-b"));
    Segment::open(&format!("orders store={} increment=2 offset=1", a.store())).unwrap().next_id().unwrap();
    let both = Segment::open(&format!("orders store='{} {}' step=10", a.store(), b.store())).unwrap();
    assert!(numbers(&both, 5_000).iter().all(|n| n % 2 == 1), "the other store may have handed out even ones before it was emptied");
    let trouble = both.last_error().unwrap().expect("the empty store is reported");
    assert_eq!(trouble.kind(), ErrorKind::TagMissing);
    assert!(trouble.to_string().contains(&format!("frazil segment {}", b.store())), "{trouble}");
}

#[test]
fn tag_begins_when_all_of_its_stores_answer() {
    let (a, b) = (Folder::new("first-a"), Folder::new("first-b"));
    b.take_away();
    let line = format!("orders store='{} {}' wait=2s", a.store(), b.store());
    let error = Segment::open(&line).unwrap_err();
    assert!(error.to_string().contains("first-b"), "{error}");
    std::fs::remove_file(&b.0).unwrap();
    std::fs::create_dir(&b.0).unwrap();
    let begun = Segment::open(&line).unwrap();
    let first = begun.next_id().unwrap().get();
    assert!(first == 1 || first == 2, "{first}");
}

#[test]
fn line_that_is_wrong_about_one_store_is_refused() {
    let a = Folder::new("wrong-a");
    for (line, expected) in [
        (format!("orders store='{} file:'", a.store()), ErrorKind::Spec),
        (format!("wrong store='memory {}' start=9223372036854775807", a.store()), ErrorKind::OutOfRange),
    ] {
        let error = Segment::open(&line).expect_err(&line);
        assert_eq!(error.kind(), expected, "{line}: {error}");
    }
}

#[test]
fn tickets_come_from_the_stores_in_turn() {
    let (a, b) = (Folder::new("ta"), Folder::new("tb"));
    let tickets = Tickets::open(&format!("photos store='{} {}'", a.store(), b.store())).unwrap();
    let mut got = numbers(&tickets, 20);
    for pair in got.chunks(2) {
        assert_ne!(pair[0] % 2, pair[1] % 2, "{got:?}");
    }
    got.sort_unstable();
    assert_eq!(got, (1..=20).collect::<Vec<_>>());
    a.take_away();
    let alone = numbers(&tickets, 5);
    assert_eq!(alone, [22, 24, 26, 28, 30]);
}

#[test]
fn segment_is_exhausted_after_the_last_number() {
    let last = i64::MAX;
    let segment = Segment::open(&format!("end store=memory step=10 start={}", last - 2)).unwrap();
    assert_eq!(numbers(&segment, 3), [last - 2, last - 1, last]);
    let error = segment.next_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SegmentExhausted);
    assert!(error.to_string().contains("9223372036854775807"), "{error}");
}

#[test]
fn store_that_went_back_is_refused() {
    let folder = Folder::new("back's");
    let segment = Segment::open(&format!("-orders store=\"{}\" step=100 wait=2s", folder.store())).unwrap();
    assert!(std::process::Command::new("cp").arg("-a").args([folder.beside("first"), folder.beside("copy")]).status().unwrap().success());
    let before = numbers(&segment, 20);
    // The next range is prefetched and the thread rests, so no write is in progress.
    while segment.prepared().unwrap() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A backup of the folder is restored.
    folder.lead_to("copy");
    let refused = loop {
        match segment.next_id() {
            Ok(id) => assert!(id.get() > before[19]),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::StoreChanged, "{refused}");
    assert!(refused.to_string().contains("frazil segment 'file:"), "{refused}");
    assert!(segment.batch(3).is_err_and(|error| error.kind() == ErrorKind::StoreChanged && error.written() == 0));
}

#[test]
fn bad_lines_are_refused_with_the_cause() {
    use ErrorKind::{OutOfRange, Spec as BadSpec, UnknownKey};
    for (line, expected, says) in [
        ("store=memory", BadSpec, "tag"),
        ("orders", BadSpec, "store"),
        ("orders store=memory step=0", OutOfRange, "0"),
        ("orders store=memory step=-1", OutOfRange, "step=-1"),
        ("orders store=memory step=many", BadSpec, "many"),
        ("orders store=memory increment=0", OutOfRange, "increment=0"),
        ("orders store=memory increment=2 offset=3", OutOfRange, "offset=3"),
        ("orders store=memory start=9223372036854775808", OutOfRange, "start=9223372036854775808"),
        ("orders store=memory increment=9223372036854775807 offset=5 start=6", OutOfRange, "start=6"),
        ("orders store='memory memory'", BadSpec, "twice"),
        ("orders store='memory file:/x' offset='0 2'", OutOfRange, "two stores"),
        ("orders store='memory file:/x' increment=4 offset=1", BadSpec, "one for each"),
        ("orders store=memory worker=1", UnknownKey, "worker"),
        ("or/ders store=memory", BadSpec, "tag"),
        ("orders store=memory namespace=a~b", BadSpec, "namespace"),
        ("orders store=nowhere", BadSpec, "nowhere"),
        ("orders store=memory wait=soon", BadSpec, "wait"),
    ] {
        let error = Segment::open(line).expect_err(line);
        assert_eq!(error.kind(), expected, "{line}: {error}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    assert_eq!(kind(&format!("{} store=memory namespace={}", "t".repeat(40), "n".repeat(40))), OutOfRange);
    assert_eq!(Tickets::open("photos store=memory").unwrap_err().kind(), BadSpec);
    assert_eq!(Tickets::open("photos store='memory file:/x' step=2").unwrap_err().kind(), BadSpec);
}

#[test]
fn closed_handle_is_closed_everywhere() {
    let segment = Segment::open("closed store=memory").unwrap();
    let other = segment.clone();
    segment.next_id().unwrap();
    segment.close();
    segment.close();
    assert_eq!(segment.next_id().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.batch(1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.batch(0).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.discard().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn discard_drops_prefetched_numbers() {
    let segment = Segment::open("discard store=memory step=100").unwrap();
    assert_eq!(segment.next_id().unwrap().get(), 1);
    segment.discard().unwrap();
    assert!(segment.next_id().unwrap().get() > 100);
}

#[test]
fn ring_is_filled_when_it_is_opened() {
    let ids = Buffered::open("standard node=901 size=10000 refill=20").unwrap();
    assert!(ids.prepared().unwrap() >= 10_000);
    let mut got = numbers(&ids, 30_000);
    assert!(got.is_sorted_by(|a, b| a < b));
    got.push(ids.next_id().unwrap().get());
    let layout = ids.snowflake().unwrap().layout().clone();
    for id in got {
        assert_eq!(layout.decode(frazil::Id::new(id).unwrap()).unwrap().field("node"), Some(901));
    }
}

#[test]
fn ring_gives_no_id_twice_to_any_number_of_consumers() {
    let ids = Buffered::open("standard node=902 size=500 refill=100").unwrap();
    let all: Vec<i64> = std::thread::scope(|scope| {
        let work = || {
            let mine: Vec<i64> = (0..30_000).map(|_| ids.next_id().unwrap().get()).collect();
            assert!(mine.is_sorted_by(|a, b| a < b));
            mine
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn empty_ring_refuses_or_waits() {
    // With a manual clock, the generator has only the IDs of one tick.
    let clock =
        Snowflake::open("layout='time:41@1ms node:10 sequence:3 epoch:2025-01-01' node=903 clock=manual exhausted=error start=zero")
            .unwrap();
    clock.set_time(1_800_000_000_000).unwrap();
    let spec = "layout='time:41@1ms node:10 sequence:3 epoch:2025-01-01' node=903 clock=manual exhausted=error start=zero";
    let ids = Buffered::open(&format!("{spec} size=4 empty=error")).unwrap_or_else(|error| panic!("{error}"));
    let mut got = Vec::new();
    let error = loop {
        match ids.next_id() {
            Ok(id) => got.push(id),
            Err(error) if got.len() < 8 => assert_eq!(error.kind(), ErrorKind::Exhausted, "the thread is on its way: {error}"),
            Err(error) => break error,
        }
    };
    assert_eq!(got.len(), 8);
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    let waiting = Buffered::open(&format!("{spec} size=4 empty=wait:100ms")).unwrap_err();
    assert_eq!(waiting.kind(), ErrorKind::Exhausted, "{waiting}");
    clock.set_time(1_800_000_000_001).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while ids.next_id().is_err() {
        assert!(Instant::now() < until, "the thread does not look again");
    }
}

#[test]
fn ring_is_dropped_when_the_clock_goes_back() {
    let spec = "standard node=904 clock=manual rollback=error exhausted=ahead:1h start=zero";
    let clock = Snowflake::open(spec).unwrap();
    clock.set_time(1_800_000_000_000).unwrap();
    let ids = Buffered::open(&format!("{spec} size=20000 empty=wait:200ms")).unwrap();
    ids.next_id().unwrap();
    clock.set_time(1_799_999_990_000).unwrap();
    let mut taken = 0;
    let error = loop {
        match ids.next_id() {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ClockBack, "{error}");
    assert!(taken < 4_096, "{taken} after the clock went back");
    clock.set_time(1_800_000_100_000).unwrap();
    let id = ids.next_id().unwrap();
    assert_eq!(ids.snowflake().unwrap().layout().decode(id).unwrap().unix_ms(), 1_800_000_100_000);
}

#[test]
fn ring_over_a_lease_is_made_anew_by_discard() {
    let ids = Buffered::open("layout='time:41@1ms node:4 sequence:12 epoch:2025-01-01' store=memory namespace=ring size=5000").unwrap();
    let layout = ids.snowflake().unwrap().layout().clone();
    let node = |ids: &Numbers| layout.decode(ids.next_id().unwrap()).unwrap().field("node");
    let before = node(&ids);
    ids.discard().unwrap();
    let after: HashSet<_> = (0..5_000).map(|_| node(&ids)).collect();
    assert!(!after.contains(&before), "{before:?} {after:?}");
}

#[test]
fn discard_prefetches_nothing_until_a_call() {
    let lines = ["discarded store=memory step=10", "layout='time:41@1ms node:4 sequence:12 epoch:2025-01-01' store=memory namespace=still"];
    let opened = [Segment::open(lines[0]).map(|it| Numbers::clone(&it)), Buffered::open(lines[1]).map(|it| Numbers::clone(&it))];
    for handle in opened.map(Result::unwrap) {
        for round in 0..20 {
            // In some rounds, the thread is working.
            let many = 1 + round * 1_000;
            assert_eq!(numbers(&handle, many).len(), many);
            handle.discard().unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(handle.prepared().unwrap(), 0, "{handle:?}, round {round}");
        }
    }
}

#[test]
fn empty_ring_reports_the_generators_exhaustion() {
    // There are four IDs a minute. A busy machine may need a part of the limit for the first one.
    let layout = "layout='time:31@1m node:10 sequence:2 epoch:2025-01-01'";
    let ids = Buffered::open(&format!("{layout} store=memory namespace=empty exhausted=wait size=1 empty=wait:5s")).unwrap();
    let error = (0..100).find_map(|_| ids.next_id().err()).expect("they are used faster than they are made");
    assert_eq!(error.kind(), ErrorKind::Exhausted, "this call had no other limit: {error}");
    assert!(error.retry_after().is_some(), "{error}");
}

#[test]
fn dropping_the_last_handle_releases_a_rings_lease() {
    let folder = Folder::new("given-back");
    let line = format!("layout='time:41@1ms node:4 sequence:12 epoch:2025-01-01' node=3 window=60s renew=10s store={}", folder.store());
    for _ in 0..5 {
        // The child ends as soon as its handle is dropped.
        assert!(in_child(|| Buffered::open(&format!("{line} size=100")).and_then(|ids| ids.next_id()).is_ok()));
        let since = Instant::now();
        drop(Snowflake::open(&line).unwrap());
        assert!(since.elapsed() < Duration::from_secs(20), "the slot was not released: {:?}", since.elapsed());
    }
}

#[test]
fn bad_rings_are_refused_with_the_cause() {
    for (line, expected) in [
        ("standard node=1 size=0", ErrorKind::OutOfRange),
        ("standard node=1 refill=0", ErrorKind::OutOfRange),
        ("standard node=1 refill=101", ErrorKind::OutOfRange),
        ("standard node=1 empty=block", ErrorKind::Spec),
        ("standard node=1 sise=1", ErrorKind::UnknownKey),
        ("standard size=10", ErrorKind::NodeMissing),
        ("baidu worker=1", ErrorKind::LayoutExpired),
    ] {
        let error = Buffered::open(line).expect_err(line);
        assert_eq!(error.kind(), expected, "{line}: {error}");
    }
    let error = Buffered::open("standard node=1 sise=1").unwrap_err().to_string();
    assert!(error.contains("size, refill, empty"), "{error}");
}

#[test]
fn event_loop_is_not_blocked() {
    let folder = Folder::new("loop");
    let spec = Spec::parse(&format!("loop store={}", folder.store())).unwrap();
    let since = Instant::now();
    let numbers = Numbers::open(Supply::Segment, spec, Duration::ZERO).unwrap();
    assert!(since.elapsed() < Duration::from_secs(5));
    assert_eq!(numbers.next_id().unwrap().get(), 1, "the first range is not fetched twice");
}

/// The error comes before the limit ends, or with the first call.
#[test]
fn opener_that_did_not_wait_gets_the_error_later() {
    let folder = Folder::new("later");
    Segment::open(&format!("odd store={} increment=2", folder.store())).unwrap();
    let spec = Spec::parse(&format!("odd store={} increment=3", folder.store())).unwrap();
    let result = Numbers::open(Supply::Segment, spec, Duration::ZERO).and_then(|numbers| numbers.next_id());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::SegmentMismatch);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("orders wait=60s store=etcd://{}", silent.local_addr().unwrap());
    let numbers = Numbers::open(Supply::Segment, Spec::parse(&line).unwrap(), Duration::from_millis(50)).unwrap();
    let error = numbers.next_id_for(Duration::from_millis(50)).unwrap_err();
    assert!(error.kind() == ErrorKind::WouldBlock && error.retry_after().is_some(), "{error}");
}

/// Runs `probe` in a forked child.
fn in_child(probe: impl Fn() -> bool) -> bool {
    // SAFETY: the child of a test with other threads uses only functions that allow this, and
    // leaves with `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: this ends the child if it hangs.
        unsafe { libc::alarm(60) };
        // A panic would unwind into the parent's scopes, which wait for threads that the child does
        // not have.
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(probe)).unwrap_or(false);
        // SAFETY: this ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn forked_child_prefetches_its_own() {
    let folder = Folder::new("fork");
    let segment = Segment::open(&format!("orders store={} step=50", folder.store())).unwrap();
    let first = numbers(&segment, 5);
    assert!(in_child(|| segment.next_id().is_ok_and(|id| id.get() > 50)));
    assert_eq!(segment.next_id().unwrap().get(), first[4] + 1);
    let ring = Buffered::open("standard node=905 size=100").unwrap();
    ring.next_id().unwrap();
    assert!(in_child(|| ring.next_id().is_err_and(|error| error.kind() == ErrorKind::Forked)));
    ring.next_id().unwrap();
}

#[test]
fn children_of_a_busy_parent_neither_hang_nor_repeat() {
    let folder = Folder::new("forks");
    let segment = Segment::open(&format!("orders store={} step=1", folder.store())).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                mine.push(segment.next_id().unwrap().get());
            }
            mine
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let of_child = |n: i32| {
            let path = folder.0.with_extension(format!("{n}"));
            let good = in_child(|| {
                let mine: Vec<_> = numbers(&segment, 20).iter().map(i64::to_string).collect();
                std::fs::write(&path, mine.join(" ")).is_ok()
            });
            let text = std::fs::read_to_string(&path).ok()?;
            std::fs::remove_file(&path).ok()?;
            good.then_some(text)
        };
        let children: Option<Vec<_>> = (0..10).map(of_child).collect();
        // After a panic before this line, the threads would continue, and the scope would wait for
        // them.
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let text = children.expect("a child failed").join(" ");
        let mut all: Vec<_> = text.split(' ').map(|number| number.parse().unwrap()).collect();
        all.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        all
    });
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

/// The number of frazil's threads in this process.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.map(name).filter(|name| name.starts_with("frazil")).count()
}

#[cfg(target_os = "linux")]
fn falls_to(count: usize) -> bool {
    let since = Instant::now();
    while threads() > count && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    threads() == count
}

#[cfg(target_os = "linux")]
#[test]
fn leases_and_tags_of_a_store_share_one_thread_which_ends_with_them() {
    let (a, b) = (Folder::new("share-a"), Folder::new("share-b"));
    // A child has only its own threads.
    assert!(in_child(|| {
        let open = |n: i32| Segment::open(&format!("tag-{n} store={}", a.store())).expect("a tag");
        let tags: Vec<_> = (0..50).map(open).collect();
        let of_tags = threads();
        let ids = Snowflake::open(&format!("standard store={}", a.store())).expect("a lease");
        let with_lease = threads();
        // Calls that wait for one store must not delay the leases of another.
        let two: Vec<_> = (0..3).map(|n| Segment::open(&format!("two-{n} store='{} {}'", a.store(), b.store())).expect("a tag")).collect();
        let with_two_stores = threads();
        drop(two);
        let without = falls_to(1);
        drop(ids);
        let served = tags.iter().all(|tag| tag.next_id().is_ok_and(|id| id.get() == 1));
        let still = threads();
        drop(tags);
        (of_tags, with_lease, with_two_stores, still) == (1, 1, 2, 1) && without && served && falls_to(0)
    }));
}

/// Checks for some time whether a lease is extended. After an extension, its bound is a window of 3
/// s ahead.
fn stays_ahead(ids: &Snowflake, how_long: Duration) {
    let since = Instant::now();
    let node = ids.lease().expect("a lease").node;
    while since.elapsed() < how_long {
        ids.next_id().expect("the lease is renewed in time");
        assert_eq!(ids.lease().expect("a lease").node, node);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lease_is_renewed_in_time_while_many_tags_of_its_store_are_refilled() {
    let folder = Folder::new("many");
    let ids = Snowflake::open(&format!("standard store={} rollback=error exhausted=wait", folder.store())).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, folder) = (&done, &folder);
        for thread in 0..2 {
            scope.spawn(move || {
                let open = |n: i32| Segment::open(&format!("tag-{thread}-{n} store={} step=1 wait=60s", folder.store())).unwrap();
                let tags: Vec<_> = (0..150).map(open).collect();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for tag in &tags {
                        // All tags are requested at once.
                        drop(tag.next_id_for(Duration::ZERO));
                    }
                }
            });
        }
        stays_ahead(&ids, Duration::from_secs(7));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn lease_is_renewed_in_time_while_the_calls_for_a_tag_hang() {
    let (a, b) = (Folder::new("hang-a"), Folder::new("hang-b"));
    let ids = Snowflake::open(&format!("standard store={} rollback=error exhausted=wait", a.store())).unwrap();
    let one = Segment::open(&format!("one store={} step=1", a.store())).unwrap();
    let two = Segment::open(&format!("two store='{} {}' step=1", a.store(), b.store())).unwrap();
    let other = Segment::open(&format!("other store={} step=1", a.store())).unwrap();
    // This is as if a process was stopped within a call.
    let hold = |place: std::path::PathBuf| {
        let lock = std::fs::File::open(place.join(".lock")).expect("the tag's lock");
        lock.lock().expect("the tag's lock");
        lock
    };
    let locks = [hold(a.0.join("default~one")), hold(a.0.join("default~two")), hold(b.0.join("default~two"))];
    std::thread::scope(|scope| {
        for tag in [&one, &two] {
            scope.spawn(|| while tag.next_id().is_ok() {});
        }
        scope.spawn(|| {
            for _ in 0..10 {
                other.next_id().expect("another tag is served in turn");
            }
        });
        stays_ahead(&ids, Duration::from_secs(7));
    });
    drop(locks);
    assert!(one.next_id().is_ok() && two.next_id().is_ok());
}

/// An event loop, which may not wait, polls again. Each poll continues the first one.
#[test]
fn opening_is_polled_until_numbers_are_ready() {
    let folder = Folder::new("polls");
    let lines = [
        (Supply::Segment, format!("polled store=file:{}", folder.0.display())),
        (Supply::Buffered, "standard node=77 size=64".to_owned()),
        (Supply::Buffered, format!("standard store=file:{} size=64", folder.0.display())),
    ];
    for (supply, line) in lines {
        polled(supply, &line).next_id().unwrap();
    }
}

fn polled(supply: Supply, line: &str) -> Numbers {
    polled_until_ready(Numbers::open_within(supply, Spec::parse(line).expect("a good line"), Duration::MAX.into())).expect(line)
}

fn polled_until_ready<T>(call: impl Future<Output = T>) -> T {
    let (begin, mut call) = (Instant::now(), pin!(call));
    loop {
        if let Some(result) = poll_once(call.as_mut()) {
            return result;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn many_tags_are_opened_in_turn_without_waiting() {
    let folder = Folder::new("crowd");
    let spec = |n| Spec::parse(&format!("tag-{n} store={}", folder.store())).unwrap();
    let mut waiting: Vec<_> = (0..200).map(|n| Box::pin(Numbers::open_within(Supply::Segment, spec(n), Duration::MAX.into()))).collect();
    let begin = Instant::now();
    while !waiting.is_empty() {
        waiting.retain_mut(|open| poll_once(open.as_mut()).map(Result::unwrap).is_none());
        assert!(begin.elapsed() < Duration::from_secs(60), "{} tags were never ready", waiting.len());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn row_is_the_rest_of_a_range() {
    let numbers = Segment::open("row store=memory step=10").unwrap();
    numbers.batch(4).unwrap();
    let row = |most| polled_until_ready(numbers.row_within(most, Duration::from_secs(60).into())).unwrap();
    assert_eq!(row(2), Row { first: 5, step: 1, count: 2 });
    assert_eq!(row(100), Row { first: 7, step: 1, count: 4 });
    assert_eq!((row(1).first, numbers.stats().issued), (11, 11));
}
