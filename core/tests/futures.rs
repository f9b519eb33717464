//! The `_async` forms give the results of the blocking calls without a waiting thread, and end when
//! they are dropped.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/folder.rs"]
mod folder;

use folder::Folder;
use frazil::{Buffered, Error, ErrorKind, Id, Numbers, Pending, Segment, Snowflake, Spec, Supply, Tickets};
use std::collections::HashSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which is parked until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let since = Instant::now();
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        assert!(since.elapsed() < LONG, "it is woken");
        thread::park_timeout(LONG);
    }
}

/// Runs futures side by side on this thread. Returns their results in the order of arrival.
fn all<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut results = Vec::new();
    block_on(std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(result) => {
                results.push(result);
                false
            }
            Poll::Pending => true,
        });
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }));
    results
}

fn once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Asserts that one of ten tries takes less than its limit. A blocked call is late in each try. On
/// a busy machine, at least one call is in time.
fn assert_soon(mut took_and_limit: impl FnMut() -> (Duration, Duration)) {
    let mut late = Vec::new();
    while late.len() < 10 {
        let (took, limit) = took_and_limit();
        if took < limit {
            return;
        }
        late.push(took);
    }
    panic!("{late:?}");
}

/// A generator of 16 IDs a second.
fn slow(node: u64) -> Snowflake {
    let layout = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' exhausted=wait:60s start=zero";
    Snowflake::open(&format!("{layout} node={node}")).unwrap()
}

#[test]
fn each_async_form_gives_what_the_blocking_one_does() {
    block_on(async {
        let ids = Snowflake::open_async("standard store=memory namespace=futures").await?;
        let first = ids.next_id_async().await?;
        let batch = ids.batch_async(10_000).await?;
        assert!(batch.is_sorted() && first < batch[0] && batch.len() == 10_000);
        ids.release_node_async().await?;
        assert!(ids.next_id_async().await? > batch[9_999]);
        ids.close_async().await;
        assert_eq!(kind(ids.next_id_async().await), ErrorKind::Closed);
        assert_eq!(kind(ids.batch_async(1).await), ErrorKind::Closed);
        assert_eq!(kind(ids.release_node_async().await), ErrorKind::Closed);
        ids.close_async().await;

        let built = Snowflake::builder().store("memory").namespace("futures").open_async().await?;
        assert!(built.next_id_async().await?.get() > 0);
        assert_eq!(kind(Snowflake::open_async("standard").await), ErrorKind::NodeMissing);
        assert_eq!(kind(Snowflake::open_async("standard a=1 a=2").await), ErrorKind::Spec);

        let orders = Segment::open_async("futures store=memory step=100").await?;
        assert_eq!(orders.next_id_async().await?.get(), 1);
        assert_eq!(orders.batch_async(200).await?.last().map(|id| id.get()), Some(201));
        orders.discard_async().await?;
        assert!(orders.next_id_async().await?.get() > 201, "prefetched numbers are dropped");
        orders.close_async().await;
        assert_eq!(kind(orders.next_id_async().await), ErrorKind::Closed);

        let ring = Buffered::open_async("standard node=911 size=1024").await?;
        assert!(ring.next_id_async().await? < ring.next_id_async().await?);
        let tickets = Tickets::open_async("tickets store='memory memory'").await;
        assert_eq!(kind(tickets), ErrorKind::Spec, "one store twice");
        let numbers = Numbers::open_async(Supply::Segment, Spec::parse("other store=memory")?).await?;
        numbers.next_id_async().await
    })
    .unwrap();
}

/// The forms can be spawned on a runtime with several threads.
#[test]
fn each_form_is_send() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let (ids, orders) = (slow(912), Segment::open("send store=memory").unwrap());
    drop(send(Snowflake::open_async("standard")));
    drop(send(ids.next_id_async()));
    drop(send(ids.batch_async(1)));
    drop(send(ids.release_node_async()));
    drop(send(ids.close_async()));
    drop(send(orders.next_id_async()));
    drop(send(orders.discard_async()));
    drop(send(orders.close_async()));
    assert!(ids.next_id().is_ok() && orders.next_id().is_ok(), "a future that is not polled does nothing");
}

#[test]
fn many_wait_on_one_thread() {
    let ids = slow(913);
    let since = Instant::now();
    let calls = (0..40).map(|_| Box::pin(ids.next_id_async()) as Pin<Box<dyn Future<Output = _>>>).collect();
    let found: HashSet<Id> = all(calls).into_iter().map(Result::unwrap).collect();
    assert_eq!(found.len(), 40);
    assert!(since.elapsed() > Duration::from_secs(1), "three ticks of 16");
}

#[test]
fn dropped_future_cancels_its_call() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (ids, ended) = (slow(914), Arc::new(AtomicUsize::new(0)));
    ids.batch(16).unwrap();
    let mut calls: Vec<_> = (0..20)
        .map(|_| {
            let (ids, counted) = (ids.clone(), Counted(Arc::clone(&ended)));
            Box::pin(Pending::future(async move {
                let _held = counted;
                ids.batch_within::<i64>(1_000, LONG.into()).await
            }))
        })
        .collect();
    assert!(calls.iter_mut().all(|call| once(call.as_mut()).is_pending()));
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    drop(calls);
    let since = Instant::now();
    while ended.load(Ordering::SeqCst) < 20 {
        assert!(since.elapsed() < LONG / 10, "{ended:?} of 20");
        thread::yield_now();
    }
}

#[test]
fn closing_a_handle_ends_its_futures_and_no_others() {
    let (ids, other) = (slow(917), slow(917));
    ids.batch(16).unwrap();
    let mut own = [Box::pin(ids.next_id_async()) as Pin<Box<dyn Future<Output = _>>>, Box::pin(ids.next_id_async())];
    let mut batch = Box::pin(ids.batch_async(1_000));
    let mut others = Box::pin(other.next_id_async());
    assert!(own.iter_mut().all(|call| once(call.as_mut()).is_pending()));
    assert!(once(batch.as_mut()).is_pending() && once(others.as_mut()).is_pending());
    ids.close();
    assert!(all(own.into()).into_iter().all(|id| kind(id) == ErrorKind::Closed));
    assert_eq!(kind(block_on(batch)), ErrorKind::Closed);
    assert!(block_on(others).is_ok());
}

/// An answer from before the fork belongs to the parent, because the child must not have the same
/// ID.
#[test]
fn forked_child_takes_no_answer_of_its_parent() {
    let ids = slow(918);
    ids.batch(16).unwrap();
    let mut future = Box::pin(ids.next_id_async());
    assert!(once(future.as_mut()).is_pending());
    // The answer has arrived, and was not taken yet.
    thread::sleep(Duration::from_millis(1_500));
    // SAFETY: the child polls a future that it inherited, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_forked = matches!(once(future.as_mut()), Poll::Ready(Err(error)) if error.kind() == ErrorKind::Forked);
        // SAFETY: this ends the child, and runs none of the parent's handlers.
        unsafe { libc::_exit(i32::from(!is_forked)) };
    }
    let mut status = -1;
    // SAFETY: the child belongs to this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child has the parent's answer");
    assert!(once(future.as_mut()).is_ready());
}

/// Runs a test that restores its process in a separate process, which has no other test's
/// generators.
fn in_a_separate_process(name: &str, test: impl FnOnce()) {
    const OWN: &str = "FRAZIL_TEST_COPIED";
    if std::env::var_os(OWN).is_some() {
        return test();
    }
    let me = std::env::current_exe().unwrap();
    let done = std::process::Command::new(me).args(["--exact", name]).env(OWN, "1").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// A leased generator of 16 IDs a second.
fn leased(namespace: &str) -> Snowflake {
    let layout = "layout='time:31@1s node:10 sequence:4 epoch:2025-01-01' exhausted=wait:60s start=zero";
    Snowflake::open(&format!("{layout} store=memory namespace={namespace}")).unwrap()
}

/// An answer from before the copy is in the original, too.
#[test]
fn copy_of_the_machine_takes_no_earlier_answer() {
    in_a_separate_process("copy_of_the_machine_takes_no_earlier_answer", || {
        let ids = leased("copied");
        let mut future = Box::pin(async {
            let _ = ids.batch(16);
            ids.next_id_async().await
        });
        assert!(once(future.as_mut()).is_pending());
        thread::sleep(Duration::from_millis(1_500));
        frazil::restored();
        assert_eq!(kind(block_on(future)), ErrorKind::Copied);
    });
}

/// The copy is made when the call has its ID and has not returned it yet.
#[test]
fn answer_of_a_call_that_is_copied_is_refused() {
    in_a_separate_process("answer_of_a_call_that_is_copied_is_refused", || {
        let ids = leased("within");
        ids.batch(16).unwrap();
        let call = async move { ids.next_id_within(LONG.into()).await.inspect(|_| frazil::restored()) };
        assert_eq!(kind(block_on(Pending::future(call))), ErrorKind::Copied);
    });
}

/// Covers each kind of answer. IDs and handles are in every copy. After an answer without a value,
/// no second call is needed.
#[test]
fn each_answer_with_a_value_is_refused_in_a_copy() {
    in_a_separate_process("each_answer_with_a_value_is_refused_in_a_copy", || {
        /// Makes a call, copies the machine once the answer is there, and takes the answer. A call
        /// that need not wait is answered in place.
        fn copied<T: Send + 'static>(call: impl Future<Output = frazil::Result<T>> + Send + 'static) -> String {
            let (answered, is_answered) = channel();
            // This is sent when the call is dropped. After that, its answer is delivered.
            struct Answered(std::sync::mpsc::Sender<()>);
            impl Drop for Answered {
                fn drop(&mut self) {
                    let _ = self.0.send(());
                }
            }
            let answered = Answered(answered);
            let mut future = Box::pin(Pending::future(async move {
                let _held = answered;
                call.await
            }));
            if once(future.as_mut()).is_ready() {
                return "answered in place".to_owned();
            }
            is_answered.recv_timeout(LONG).unwrap();
            frazil::restored();
            block_on(future).map_or_else(|error| error.kind().name().to_owned(), |_| "taken".to_owned())
        }
        /// Makes calls until one has to wait.
        fn waited(mut call: impl FnMut() -> String) -> String {
            (0..1000).map(|_| call()).find(|answer| answer != "answered in place").unwrap()
        }
        // The fixed numbers are opened after the last copy, so they are not refused.
        let line = |node: u64| format!("layout='time:40@20ms node:16 sequence:1 epoch:2025-01-01' node={node} detached=true");
        let ids = |node: u64| Snowflake::open(&line(node)).unwrap();
        let spec = |line: String| Spec::parse(&line).unwrap();
        let ring = |node: u64| format!("{} size=4", line(node));
        let batch = ids(1);
        let many = |batch: &Snowflake| {
            let batch = batch.clone();
            copied(async move { batch.batch_within::<Id>(2, LONG.into()).await })
        };
        assert_eq!(waited(|| many(&batch)), "COPIED");
        assert_eq!(waited(|| copied(Snowflake::open_within(spec(line(3)), LONG.into()))), "COPIED");
        assert_eq!(waited(|| copied(Numbers::open_within(Supply::Buffered, spec(ring(4)), LONG.into()))), "COPIED");
        let (closed, discarded) = (ids(5), Buffered::open(&ring(6)).unwrap());
        let (close, discard) =
            (async move { closed.close_within(LONG.into()).await }, async move { discarded.discard_within(LONG.into()).await });
        for done in [copied(close), copied(discard)] {
            assert_ne!(done, "COPIED");
        }
    });
}

/// During the wait, no future of another call waits, and the thread that drops one does not wait.
#[test]
fn untaken_handle_does_not_delay_other_calls() {
    assert_soon(|| {
        let folder = Folder::new("untaken");
        let line = format!("layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' {} detached=true", folder.store());
        let mut opens = Box::pin(Snowflake::open_async(&line));
        assert!(once(opens.as_mut()).is_pending());
        thread::sleep(Duration::from_millis(500));
        let held = folder.lock();
        let since = Instant::now();
        drop(opens);
        let others =
            all((0..50).map(|_| Box::pin(Pending::future(async { Ok(Instant::now()) })) as Pin<Box<dyn Future<Output = _>>>).collect());
        let longest = others.into_iter().map(|at: frazil::Result<Instant>| at.unwrap() - since).max().unwrap();
        drop(held);
        // The number is released.
        let all = [(); 2].map(|()| Snowflake::open(&line));
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        (longest, Duration::from_millis(150))
    });
}

/// A ring whose generator refuses is closed on the thread of pending calls, which does not wait for
/// stores.
#[test]
fn ring_that_cannot_be_filled_does_not_delay_other_calls() {
    assert_soon(|| {
        let folder = Folder::new("ring");
        drop(Snowflake::open(&format!("standard {}", folder.store())).unwrap());
        let ahead = std::time::SystemTime::now() + Duration::from_secs(15);
        let after =
            frazil::Layout::parse("standard").unwrap().min_id(ahead.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64);
        let line = format!(
            "standard {} detached=true size=64 empty=wait:50ms rollback=ahead:20s exhausted=wait:60s after={}",
            folder.store(),
            after.unwrap()
        );
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let longest = scope.spawn(|| {
                // The generator has its number, and a release would have to wait.
                let is_there = |stats: frazil::Stats| stats.kind == "buffered" && stats.spec.contains(&folder.store());
                while !is_over.load(Ordering::SeqCst) && !frazil::stats().into_iter().any(is_there) {
                    thread::sleep(Duration::from_millis(1));
                }
                let _held = folder.lock();
                let mut longest = Duration::ZERO;
                while !is_over.load(Ordering::SeqCst) {
                    let since = Instant::now();
                    block_on(Pending::future(async { Ok(()) })).unwrap();
                    longest = longest.max(since.elapsed());
                }
                longest
            });
            let refused = block_on(Buffered::open_async(&line));
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(kind(refused), ErrorKind::Exhausted);
            (longest.join().unwrap(), Duration::from_millis(150))
        })
    });
}

#[test]
fn large_batch_lets_other_calls_run() {
    let ids = Snowflake::open("standard node=919 exhausted=ahead:1h").unwrap();
    assert_soon(|| {
        let mut batch = Box::pin(ids.batch_async(1 << 22));
        let since = Instant::now();
        assert!(once(batch.as_mut()).is_pending());
        let first = since.elapsed();
        let found = block_on(batch).unwrap();
        assert!(found.len() == 1 << 22 && found.is_sorted());
        (first, since.elapsed() / 8)
    });
}

#[test]
fn limit_ends_a_future() {
    let ids = slow(915);
    let waits = Pending::future(async move { ids.batch_within::<i64>(1_000, Duration::from_millis(50).into()).await });
    assert_eq!(kind(block_on(waits)), ErrorKind::WouldBlock);
    let panics = Pending::future::<()>(async { panic!("on purpose") });
    assert_eq!(kind(block_on(panics)), ErrorKind::Internal);
}

/// The store does not answer while its locks are held.
#[test]
fn async_forms_never_block_the_tasks_thread() {
    let folder = Folder::new("thread");
    let line = format!("standard {}", folder.store());
    let ids = block_on(Snowflake::open_async(&line)).unwrap();
    block_on(ids.next_id_async()).unwrap();
    let held = folder.lock();
    let since = Instant::now();
    let other = format!("{line} detached=true");
    let (mut opens, mut closes) = (Box::pin(Snowflake::open_async(&other)), Box::pin(ids.close_async()));
    assert!(once(opens.as_mut()).is_pending() && once(closes.as_mut()).is_pending());
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    drop(held);
    assert!(block_on(opens).unwrap().next_id().is_ok());
    block_on(closes);
}

/// Without a timer, the task would never be polled again.
#[test]
fn task_may_poll_a_call_itself() {
    let ids = slow(920);
    ids.batch(16).unwrap();
    assert!(block_on(ids.next_id_within(LONG.into())).is_ok());
    let folder = Folder::new("itself");
    let line = format!("standard {}", folder.store());
    let _open = Snowflake::open(&line).unwrap();
    let held = folder.lock();
    let mut opens = Box::pin(Snowflake::open_within(Spec::parse(&format!("{line} detached=true")).unwrap(), LONG.into()));
    assert!(once(opens.as_mut()).is_pending());
    drop(held);
    assert!(block_on(opens).is_ok());
}

/// Covers calls that end while their task is polled, wakers that change, and futures that are
/// dropped at any moment. There are four IDs a millisecond.
#[test]
fn task_is_woken_for_each_answer() {
    let ids = Snowflake::open("layout='time:41@1ms node:20 sequence:2 epoch:2025-01-01' node=916 exhausted=wait:60s").unwrap();
    let ids = &ids;
    let found: Vec<Id> = thread::scope(|scope| {
        let task = move |number: usize| {
            let kept = (0..1_000).filter_map(move |round| {
                let mut future = Box::pin(ids.next_id_async());
                if round % 2 == number % 2
                    && let Poll::Ready(id) = once(future.as_mut())
                {
                    return Some(id.unwrap());
                }
                (round % 7 > 0).then(|| block_on(future).unwrap())
            });
            kept.collect::<Vec<_>>()
        };
        let tasks: Vec<_> = (0..4).map(|number| scope.spawn(move || task(number))).collect();
        tasks.into_iter().flat_map(|task| task.join().unwrap()).collect()
    });
    assert!(found.len() > 3_000);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
}
