//! Waits end by time, by their caller, and by `close`. Callers that must not wait use other
//! threads.

#[path = "common/calls.rs"]
mod calls;

use calls::{LONG, result_of, start};
use frazil::bindings::poll_once;
use frazil::{Error, ErrorKind, Id, Numbers, Result, Snowflake, Spec, Supply, Wait};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A server that never answers: the kernel accepts the connection, and no process reads.
struct Silent(std::net::TcpListener);

impl Silent {
    fn new() -> Self {
        Silent(std::net::TcpListener::bind("127.0.0.1:0").expect("a port"))
    }

    fn line(&self, what: &str) -> String {
        format!("{what} store=etcd://{}", self.0.local_addr().expect("an address"))
    }
}

/// A generator of 16 IDs a second.
fn slow(node: u64) -> Snowflake {
    let line = format!("layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node={node} exhausted=wait:60s start=zero");
    Snowflake::open(&line).expect("a generator")
}

/// Runs a call that waits, ends it once it waits, and returns its error.
fn ended<T: Send>(call: impl FnOnce(&AtomicBool) -> Result<T> + Send, end: impl FnOnce(&AtomicBool)) -> Error {
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| call(&stopped));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished(), "it waits");
        end(&stopped);
        let since = Instant::now();
        let result = waits.join().expect("no panic");
        assert!(since.elapsed() < LONG / 4, "it ended at once");
        result.err().expect("it was ended")
    })
}

fn stopped_when(flag: &AtomicBool) -> impl Fn() -> bool + Sync {
    || flag.load(Ordering::Relaxed)
}

#[test]
fn caller_can_end_each_wait() {
    let silent = Silent::new();
    let stop = |flag: &AtomicBool| flag.store(true, Ordering::Relaxed);
    let fill = ended(|flag| slow(1).fill_for(&mut [0i64; 1000], Wait::until(Duration::MAX, &stopped_when(flag))), stop);
    assert!(fill.kind() == ErrorKind::WouldBlock && fill.written() > 0, "{fill}");
    let open = |line: String| {
        move |flag: &AtomicBool| {
            let is_segment = line.starts_with("tag");
            let (stopped, spec) = (stopped_when(flag), Spec::parse(&line)?);
            let wait = Wait::until(Duration::MAX, &stopped);
            if is_segment { Numbers::open(Supply::Segment, spec, wait).map(drop) } else { Snowflake::open_spec(spec, wait).map(drop) }
        }
    };
    for line in [silent.line("standard"), silent.line("tag wait=60s")] {
        let error = ended(open(line.clone()), stop);
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{line}: {error}");
    }
}

#[test]
fn stop_callback_may_call_the_waiting_handle() {
    let (silent, other) = (Silent::new(), Silent::new());
    let stop = |flag: &AtomicBool| flag.store(true, Ordering::Relaxed);
    let spec = |line: String| Spec::parse(&line).expect("a spec");
    let of = spec(silent.line("standard"));
    let error = ended(
        |flag| {
            let stopped = || {
                let again = Snowflake::open_spec(of.clone(), Duration::ZERO);
                assert_eq!(again.unwrap_err().kind(), ErrorKind::WouldBlock);
                flag.load(Ordering::Relaxed)
            };
            Snowflake::open_spec(of.clone(), Wait::until(Duration::MAX, &stopped)).map(drop)
        },
        stop,
    );
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let stores = format!("tag wait=60s store='etcd://{} etcd://{}'", silent.0.local_addr().unwrap(), other.0.local_addr().unwrap());
    let tickets = Numbers::open(Supply::Tickets, spec(stores), Duration::MAX).expect("it calls no store");
    let error = ended(
        |flag| tickets.next_id_for(Wait::until(Duration::MAX, &|| tickets.prepared().is_ok() && flag.load(Ordering::Relaxed))).map(drop),
        stop,
    );
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    // The callback may even close the handle.
    let closing = || {
        tickets.close();
        false
    };
    assert_eq!(tickets.next_id_for(Wait::until(Duration::MAX, &closing)).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn closing_a_handle_ends_its_waits_and_long_batches() {
    for other_handle in [false, true] {
        let ids = slow(if other_handle { 2 } else { 3 });
        let kept = other_handle.then(|| ids.clone());
        let error = ended(|_| ids.batch_for(1000, Duration::MAX).map(drop), |_| ids.close());
        assert_eq!((error.kind(), error.written()), (ErrorKind::Closed, 0));
        assert!(kept.is_none_or(|kept| kept.next_id().is_ok()), "another handle is another's");
    }
    let ring = frazil::Buffered::open("layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=5 size=2 empty=wait:60s").unwrap();
    let error = ended(|_| ring.batch_for(1000, Duration::MAX).map(drop), |_| ring.close());
    assert_eq!(error.kind(), ErrorKind::Closed);
    // A batch that never waits ends, too.
    let fast = Snowflake::open("layout='time:41@1ms node:2 sequence:20 epoch:2025-01-01' node=1").unwrap();
    let error = ended(
        |_| {
            let mut buffer = vec![0i64; 1 << 16];
            loop {
                fast.fill_for(&mut buffer, Duration::MAX)?;
            }
            #[allow(unreachable_code)]
            Ok(())
        },
        |_| fast.close(),
    );
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[test]
fn pending_calls_end_as_blocking_calls() {
    let folder = Folder::new("pending");
    let line = |what: &str| format!("{what} store=file:{}", folder.0.display());
    let spec = |line: &str| Spec::parse(line).unwrap();

    let of = spec(&line("standard namespace=a"));
    let (_call, open) = start(LONG, move |wait| Snowflake::open_within(of.clone(), wait));
    let ids = result_of(&open).0.unwrap();
    let (before, node) = (ids.next_id().unwrap(), ids.node().unwrap());
    let handle = ids.clone();
    let (_call, released) = start(LONG, move |wait| async move { handle.discard_within(wait).await });
    result_of(&released).0.unwrap();
    let handle = ids.clone();
    let (_call, next) = start(LONG, move |wait| async move { handle.next_id_within(wait).await });
    assert!(result_of(&next).0.unwrap() > before);
    let handle = ids.clone();
    drop(ids);
    let (_call, closed) = start(LONG, move |wait| async move { handle.close_within(wait).await });
    result_of(&closed).0.unwrap();
    let again = Snowflake::open(&format!("standard store=file:{} namespace=a node={node}", folder.0.display()));
    assert_eq!(again.unwrap().node().unwrap(), node, "it was released");

    let of = spec(&line("orders step=2"));
    let (_call, open) = start(LONG, |wait| Numbers::open_within(Supply::Segment, of, wait));
    let orders = result_of(&open).0.unwrap();
    let (_call, batch) = start(LONG, move |wait| async move { orders.batch_within::<Id>(100, wait).await });
    let batch: Vec<i64> = result_of(&batch).0.unwrap().into_iter().map(Id::get).collect();
    assert_eq!(batch, (1..=100).collect::<Vec<_>>());

    let of = spec(&format!("photos store='file:{0}/a file:{0}/b'", folder.0.display()));
    let tickets = Numbers::open(Supply::Tickets, of, Duration::ZERO).unwrap();
    let mut drawn = std::collections::HashSet::new();
    for _ in 0..3 {
        let tickets = tickets.clone();
        let (_call, next) = start(LONG, move |wait| async move { tickets.next_id_within(wait).await });
        drawn.insert(result_of(&next).0.unwrap());
    }
    assert_eq!(drawn.len(), 3);

    let (_call, fixed) = start(LONG, move |wait| async move { Snowflake::open_within(Spec::parse("standard node=900")?, wait).await });
    result_of(&fixed).0.unwrap().next_id().unwrap();
}

#[test]
fn close_ends_when_the_store_has_answered() {
    let folder = Folder::new("closing");
    let ids = Snowflake::open(&format!("standard store=file:{} window=60s renew=10s", folder.0.display())).unwrap();
    let silent = std::fs::File::options().read(true).write(true).open(folder.0.join("default/.lock")).unwrap();
    silent.lock().unwrap();
    for wait in [0, 100, 0, 100, 100] {
        let closed = ids.close_for(Duration::from_millis(wait));
        assert_eq!(closed.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    let (_call, closed) = start(Duration::from_millis(300), move |wait| async move { ids.close_within(wait).await });
    let (result, took) = result_of(&closed);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(took >= Duration::from_millis(300));
    silent.unlock().unwrap();
}

#[test]
fn one_thread_ends_many_calls_in_time() {
    let silent = Silent::new();
    let orders = {
        let one = silent.line("orders wait=1s");
        let address = one.split_once("store=").unwrap().1;
        let spec = Spec::parse(&format!("orders wait=1s store='{address} {address}/two'")).unwrap();
        Numbers::open(Supply::Tickets, spec, Duration::ZERO).unwrap()
    };
    let calls: Vec<_> = (0..60)
        .map(|_| {
            let orders = orders.clone();
            start(Duration::MAX, move |wait| async move { orders.next_id_within(wait).await })
        })
        .collect();
    for (_, call) in &calls {
        let (result, after) = result_of(call);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SegmentExhausted, "{error}");
        assert!(after >= Duration::from_secs(1) && after < LONG / 4, "{after:?}");
    }
}

#[test]
fn call_that_would_take_longer_than_it_may_is_refused_at_once() {
    let ids = Snowflake::open(
        "layout='time:31@1h node:20 sequence:4 epoch:2025-01-01' node=6 exhausted=wait:2h start=zero detached=true clock=manual",
    );
    let ids = ids.unwrap();
    ids.set_time(1_800_000_000_000).unwrap();
    while ids.next_id_for(Duration::ZERO).is_ok() {}
    let (_call, next) = start(Duration::MAX, move |wait| async move { ids.next_id_within(wait).await });
    assert_eq!(result_of(&next).0.unwrap_err().kind(), ErrorKind::WouldBlock, "only set_time moves this clock");
    let ids = slow(8);
    let (_call, next) = start(Duration::from_millis(1), move |wait| async move { ids.batch_within::<i64>(1000, wait).await });
    let (result, after) = result_of(&next);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(after < LONG / 4, "{after:?}");
}

#[test]
fn cancelled_call_runs_no_callback() {
    let slow = slow(7);
    let (call, next) = start(LONG, move |wait| async move { slow.batch_within::<Id>(1000, wait).await });
    call.cancel();
    // The callback is dropped, and the sender with it.
    assert!(matches!(next.recv_timeout(LONG), Err(std::sync::mpsc::RecvTimeoutError::Disconnected)));
}

#[test]
fn panic_of_one_call_ends_no_other() {
    let (_call, panics) = start(LONG, async |_| -> Result<()> { panic!("on purpose") });
    assert_eq!(result_of(&panics).0.unwrap_err().kind(), ErrorKind::Internal);
    let (_call, continues) = start(LONG, async |_| Ok(7));
    assert_eq!(result_of(&continues).0, Ok(7));
}

/// A callback runs on the thread that polls all calls.
#[cfg(unix)]
#[test]
fn callback_may_fork_and_leaves_other_calls_to_the_parent() {
    let (parent, mut ends) = (std::process::id(), [0; 2]);
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [read, write] = ends;
    let (other, looks) = (slow(11), AtomicBool::new(false));
    let look = move |wait| async move {
        let mut batch = pin!(other.batch_within::<Id>(1000, wait));
        poll_fn(|context| {
            if std::process::id() != parent && !looks.swap(true, Ordering::Relaxed) {
                // SAFETY: the descriptor is open, and there is one byte.
                unsafe { libc::write(write, c"x".as_ptr().cast(), 1) };
            }
            batch.as_mut().poll(context)
        })
        .await
    };
    let (_other, last) = start(LONG, look);
    let (sender, forked) = std::sync::mpsc::channel();
    let fork = move |_| {
        // SAFETY: the child returns to frazil on this thread alone, and ends with it. A child that
        // does not end is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: this is a plain system call.
            unsafe { libc::alarm(30) };
        } else {
            sender.send(child).unwrap();
        }
    };
    let _pending = frazil::Pending::start(async { Ok(()) }, fork).unwrap();
    let (child, mut status) = (forked.recv_timeout(LONG).unwrap(), -1);
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    let mut looked = -1;
    // SAFETY: the descriptor is open, and the pointer is valid.
    assert_eq!(unsafe { libc::ioctl(read, libc::FIONREAD, &raw mut looked) }, 0);
    assert_eq!((status, looked), (0, 0), "it ended, and looked at nothing");
    assert!(last.try_recv().is_err(), "the parent looks on");
}

/// A batch is made in several polls, and the process forks between two of them.
#[cfg(unix)]
#[test]
fn forked_child_makes_a_different_batch() {
    let folder = Folder::new("fork");
    let orders = frazil::Segment::open(&format!("orders step=10 store=file:{} wait=60s", folder.0.display())).unwrap();
    let mut batch = Box::pin(orders.batch_within::<Id>(100, LONG.into()));
    // The first poll takes the prefetched numbers, which are not enough.
    assert!(poll_once(batch.as_mut()).is_none());
    let mut batch = || loop {
        match poll_once(batch.as_mut()) {
            Some(batch) => return batch,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let file = folder.0.join("ids");
    // SAFETY: the child continues on this thread alone, and `_exit`s.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: this is a plain system call. A child that hangs is killed.
        unsafe { libc::alarm(60) };
        let theirs: Vec<_> = batch().into_iter().flatten().map(|id| id.to_string()).collect();
        let done = std::fs::write(file, theirs.join(" ")).is_ok();
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mine = batch().unwrap();
    let mut status = -1;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    let theirs: Vec<Id> = std::fs::read_to_string(file).unwrap().split(' ').map(|id| id.parse().unwrap()).collect();
    let all: std::collections::HashSet<_> = mine.iter().chain(&theirs).collect();
    assert_eq!((mine.len(), theirs.len(), all.len()), (100, 100, 200));
}

#[test]
fn close_all_releases_all_numbers_at_the_end_of_a_program() {
    if std::env::var_os("FRAZIL_TEST_CLOSES_ALL").is_none() {
        // The test runs in a separate process, because it closes all generators.
        let me = std::env::current_exe().unwrap();
        let name = "close_all_releases_all_numbers_at_the_end_of_a_program";
        let done =
            std::process::Command::new(me).args(["--exact", name, "--nocapture"]).env("FRAZIL_TEST_CLOSES_ALL", "1").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let (a, b) = (Folder::new("all-a"), Folder::new("all-b"));
    let open = |folder: &Folder, more: &str| Snowflake::open(&format!("standard store=file:{} {more}", folder.0.display()));
    let (one, two) = (open(&a, "node=1").unwrap(), open(&b, "node=2").unwrap());
    let clone = one.clone();
    let ring = frazil::Buffered::open(&format!("standard store=file:{} node=3", a.0.display())).unwrap();
    let given = Snowflake::open("standard node=4").unwrap();
    let orders = frazil::Segment::open(&format!("orders store=file:{}", a.0.display())).unwrap();
    frazil::close_all(LONG).unwrap();
    for closed in [one.next_id(), two.next_id(), clone.next_id(), one.clone().next_id()] {
        assert_eq!(closed.unwrap_err().kind(), ErrorKind::Closed);
    }
    let last = std::iter::repeat_with(|| ring.next_id()).take(1 << 20).find_map(Result::err);
    assert_eq!(last.expect("a ring runs out").kind(), ErrorKind::Closed);
    assert!(given.next_id().is_ok() && orders.next_id().is_ok());
    // The numbers are free at once, for this process and others.
    for (folder, node) in [(&a, 1), (&b, 2), (&a, 3)] {
        open(folder, &format!("node={node}")).unwrap().next_id().unwrap();
    }
    frazil::close_all(LONG).unwrap();
    frazil::close_all(Duration::ZERO).unwrap();
    drop((one, two, clone, ring));
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("frazil-waits-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn detached_generator_is_opened_without_a_thread() {
    let line = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=10 detached=true";
    let (_call, open) = start(LONG, move |wait| async move { Snowflake::open_within(Spec::parse(line)?, wait).await });
    result_of(&open).0.unwrap().next_id().unwrap();
}

#[test]
fn openers_of_one_line_do_not_wait_for_each_other() {
    for line in ["standard node=901 size=500", "orders store=memory namespace=openers step=10"] {
        let supply = if line.contains("size") { Supply::Buffered } else { Supply::Segment };
        let calls: Vec<_> = (0..20).map(|_| start(LONG, |wait| Numbers::open_within(supply, Spec::parse(line).unwrap(), wait))).collect();
        for (_call, open) in &calls {
            result_of(open).0.unwrap().next_id().unwrap();
        }
    }
}

#[test]
fn open_after_close_waits_until_the_number_is_released() {
    let folder = Folder::new("close");
    let ids = Snowflake::open(&format!("standard store=file:{} window=64s renew=16s", folder.0.display())).unwrap();
    let lock = std::fs::File::open(folder.0.join("default/.lock")).unwrap();
    lock.lock().unwrap();
    for wait in [0, 50, 50] {
        let error = ids.close_for(Duration::from_millis(wait)).expect_err("the store cannot answer");
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    }
    lock.unlock().unwrap();
    ids.close_for(LONG).unwrap();
}
