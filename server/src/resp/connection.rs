//! A connection: the commands of one read are answered in order, in one write.

use super::commands;
use super::parse::Parser;
use super::reply::Reply;
use super::session::Session;
use crate::access_log;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::stop::{CancelOn, Stop, lingering_close};
use crate::unread_answers::{self, BudgetShare};
use crate::yielding::PIECE;
use bytes::{Buf, BytesMut};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::coop::consume_budget;
use tokio::time::{timeout, timeout_at};

/// The initial size of the input buffer: small, because most of many connections are idle; it grows where a client fills it. A longer
/// pipeline is read and answered in several pieces.
const ROOM: usize = 512;
const MOST_ROOM: usize = 16 * 1024;
/// The size at which replies are sent, also within a pipeline. A client that does not read holds this much and one reply.
const FLUSH: usize = 64 * 1024;
/// The size at which replies are sent while the unread answers of all connections exceed their budget.
const SMALL_FLUSH: usize = 2 * 1024;
/// The number of commands after which the task yields.
const TURN: u64 = 256;
/// The capacity kept after a pipeline: enough for one of single IDs.
const KEPT: usize = 4 * 1024;

/// The time limits of a connection, after which it is closed.
#[derive(Clone, Copy)]
struct Timeouts {
    /// The limit of a login, where tokens are needed.
    login: Duration,
    /// The longest time in which nothing of an answer is read.
    untaken: Duration,
    /// The longest time without a command.
    idle: Option<Duration>,
}

const TIMEOUTS: Timeouts = Timeouts { login: Duration::from_secs(75), untaken: Duration::from_secs(75), idle: None };

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Serves a connection until the client closes it or the server stops; input that has arrived is answered first.
pub async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, stop: Stop, shared: Arc<Shared>) {
    let timeouts = Timeouts { idle: shared.limits.resp_idle, ..TIMEOUTS };
    serve_with(timeouts, stream, peer, stop, shared).await;
}

async fn serve_with(timeouts: Timeouts, mut stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, stop: Stop, shared: Arc<Shared>) {
    let mut session = Session::new(1 + CONNECTIONS.fetch_add(1, Ordering::Relaxed), peer);
    let (mut received, mut reply, mut parser) = (BytesMut::new(), Reply::default(), Parser::default());
    let mut room = ROOM;
    let (mut asked_last, mut logged_in_by) = (Instant::now(), Instant::now() + timeouts.login);
    let mut stopped = stop.clone();
    let stops = pin!(stopped.wait());
    let mut until = CancelOn::new(stops);
    let mut is_quiet = false;
    while !session.is_over && !stop.is_set() {
        received.reserve(room);
        let is_unknown = shared.gate.is_closed() && !session.token.is_some_and(|token| shared.gate.knows(&token));
        // Constant input does not extend the time for the login.
        if is_unknown && Instant::now() >= logged_in_by {
            break;
        }
        let read = until.work(stream.read_buf(&mut received));
        let by = timeouts.idle.map(|idle| asked_last + idle).into_iter().chain(is_unknown.then_some(logged_in_by)).min();
        let read = match by {
            Some(by) => timeout_at(by.into(), read).await.unwrap_or(None),
            None => read.await,
        };
        match read {
            Some(Ok(count)) if count > 0 => {}
            _ => {
                // A client that has sent half a command will send the rest.
                is_quiet = received.is_empty();
                break;
            }
        }
        let most = if unread_answers::are_over_budget() { SMALL_FLUSH } else { FLUSH };
        if received.len() == received.capacity() && most == FLUSH {
            room = (2 * room).min(MOST_ROOM);
        }
        let since = Instant::now();
        if !is_unknown {
            // RESET drops the login, and libraries log in again; so does a client whose token was replaced.
            logged_in_by = since + timeouts.login;
        }
        let login_ends = |session: &Session| (is_unknown && session.token.is_none()).then_some(logged_in_by);
        let (mut asked, mut refused, mut is_gone) = (0, 0, false);
        while !session.is_over && !is_gone {
            match parser.parse(&received) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    if !parser.words.is_empty() {
                        asked += 1;
                        if !commands::answer(&shared, &mut session, &received, &parser.words, &mut reply).await {
                            refused += 1;
                            // A search for a similar name takes as long as a hundred IDs.
                            consume_budget().await;
                        }
                    }
                    received.advance(length);
                }
                Err(broken) => {
                    reply.error(&format!("ERR Protocol error: {}", broken.0));
                    session.is_over = true;
                }
            }
            if let Some(permit) = session.permit.take() {
                is_gone = !is_sent(&mut stream, &mut reply, timeouts.untaken, Some(permit.until)).await;
            } else if reply.bytes.len() >= most || session.room.is_some() {
                is_gone = !is_sent(&mut stream, &mut reply, timeouts.untaken, login_ends(&session)).await;
                session.room = None;
                // A pipeline of large batches is long work: yield.
                tokio::task::yield_now().await;
            }
        }
        if asked > 0 {
            shared.metrics.resp.took(since);
            if shared.access_log {
                access_log::pipeline(peer, asked, refused, since);
            }
        }
        if is_gone || !is_sent(&mut stream, &mut reply, timeouts.untaken, login_ends(&session)).await {
            return;
        }
        if asked > 0 {
            // Sending the answer may have taken long.
            asked_last = Instant::now();
        }
        if asked >= TURN {
            // The pipeline may have more commands, and take long: yield.
            tokio::task::yield_now().await;
        }
        if received.is_empty() && received.capacity() > MOST_ROOM {
            received = BytesMut::new();
        }
    }
    // TLS ends with its own message.
    if stream.shutdown().await.is_ok() && !is_quiet {
        lingering_close(&mut stream).await;
    }
}

/// Sends all replies; returns `false` if the client takes nothing for too long, or not all by `by`, and then the connection is closed.
async fn is_sent(stream: &mut (impl AsyncWrite + Unpin), reply: &mut Reply, untaken: Duration, by: Option<Instant>) -> bool {
    let sent = send(stream, reply, untaken);
    match by {
        Some(by) => matches!(timeout_at(by.into(), sent).await, Ok(Ok(()))),
        None => sent.await.is_ok(),
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), reply: &mut Reply, untaken: Duration) -> io::Result<()> {
    let unread = reply.bytes.capacity();
    for (turn, mut piece) in reply.bytes.chunks(PIECE).enumerate() {
        // Yield within a large batch.
        if turn > 0 {
            tokio::task::yield_now().await;
        }
        while !piece.is_empty() {
            match within(untaken, unread, stream.write(piece)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => piece = &piece[count..],
            }
        }
    }
    within(untaken, unread, stream.flush()).await?;
    reply.bytes.clear();
    reply.bytes.shrink_to(KEPT);
    Ok(())
}

/// Waits for a write, and for no longer than a limit, or half of it while unread answers exceed their budget. A write that need not wait
/// takes no timer, and its `unread` bytes are not counted.
async fn within<T>(limit: Duration, unread: usize, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut work = pin!(work);
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return done;
    }
    let _unread = BudgetShare::new(unread.min(FLUSH));
    for is_last in [false, true] {
        match timeout(limit / 2, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) if is_last || unread_answers::are_over_budget() => break,
            Err(_) => {}
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Name, Plan};
    use crate::shared::Limits;
    use crate::stop;
    use crate::tokens::Gate;
    use crate::yielding;
    use std::path::PathBuf;
    use std::pin::Pin;
    use std::task::{Context, ready};
    use tokio::io::{DuplexStream, ReadBuf};
    use tokio::task::JoinHandle;

    fn shared(gate: Gate) -> Arc<Shared> {
        Arc::new(Shared::new(Limits { count: 1, connections: 1, ..Limits::default() }, gate, None, vec![], false))
    }

    /// A file that is deleted when the test ends.
    struct File(PathBuf);

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Makes a server that admits only the token `0123456789abcdef`.
    fn guarded(test: &str) -> (Arc<Shared>, File) {
        let file = File(std::env::temp_dir().join(format!("frazil-{test}-{}.toml", std::process::id())));
        std::fs::write(&file.0, "[a]\nsecret='0123456789abcdef'").unwrap();
        (shared(Gate::new(Some(file.0.clone()), vec![]).unwrap()), file)
    }

    fn runtime() -> tokio::runtime::Runtime {
        // A task that yields lets one other task run, not 61.
        tokio::runtime::Builder::new_current_thread().event_interval(1).enable_all().build().unwrap()
    }

    const SHORT: Timeouts = Timeouts { login: Duration::from_millis(300), ..TIMEOUTS };

    fn begin(shared: &Arc<Shared>, timeouts: Timeouts, stop: Stop) -> (DuplexStream, JoinHandle<()>) {
        let (client, server) = tokio::io::duplex(4096);
        let peer = Peer::Local;
        (client, tokio::spawn(serve_with(timeouts, server, peer, stop, Arc::clone(shared))))
    }

    #[test]
    fn a_client_that_does_not_log_in_is_closed() {
        let shared = guarded("login").0;
        let (_stopper, stop) = stop::channel();
        let begin = || begin(&shared, SHORT, stop.clone()).0;
        runtime().block_on(async {
            let (mut known, mut silent, mut received) = (begin(), begin(), [0; 7]);
            known.write_all(b"AUTH 0123456789abcdef\r\n").await.unwrap();
            known.read_exact(&mut received[..5]).await.unwrap();
            assert_eq!(silent.read(&mut received).await.unwrap(), 0);
            known.write_all(b"PING\r\n").await.unwrap();
            known.read_exact(&mut received).await.unwrap();
            assert_eq!(&received, b"+PONG\r\n");
            // A pool does this with a returned connection. The time limit for the login starts again.
            known.write_all(b"RESET\r\n").await.unwrap();
            known.read_exact(&mut [0; 8]).await.unwrap();
            known.write_all(b"AUTH 0123456789abcdef\r\n").await.unwrap();
            known.read_exact(&mut received[..5]).await.unwrap();
            assert_eq!(&received[..5], b"+OK\r\n");
        });
    }

    #[test]
    fn an_idle_client_is_closed_after_resp_idle() {
        let shared = shared(Gate::new(None, vec![]).unwrap());
        let (_stopper, stop) = stop::channel();
        let timeouts = Timeouts { idle: Some(Duration::from_millis(300)), ..TIMEOUTS };
        runtime().block_on(async {
            let begin = || begin(&shared, timeouts, stop.clone()).0;
            let (mut steady, mut idle, mut talker, mut received) = (begin(), begin(), begin(), [0; 7]);
            idle.write_all(b"PING\r\n").await.unwrap();
            idle.read_exact(&mut received).await.unwrap();
            for _ in 0..6 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                // An empty line is not a command.
                let _ = talker.write_all(b"\r\n").await;
                steady.write_all(b"PING\r\n").await.unwrap();
                steady.read_exact(&mut received).await.unwrap();
                assert_eq!(&received, b"+PONG\r\n");
            }
            assert_eq!(idle.read(&mut received).await.unwrap(), 0);
            assert_eq!(talker.read(&mut received).await.unwrap(), 0);
        });
    }

    #[test]
    fn a_slow_reader_is_not_idle() {
        let shared = shared(Gate::new(None, vec![]).unwrap());
        let (_stopper, stop) = stop::channel();
        let timeouts = Timeouts { idle: Some(Duration::from_millis(300)), ..TIMEOUTS };
        runtime().block_on(async {
            let (mut client, _serving) = begin(&shared, timeouts, stop);
            let (text, mut received) = ("x".repeat(6_000), vec![0; 6_009]);
            client.write_all(request(&["ECHO", &text]).as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            client.read_exact(&mut received).await.unwrap();
            client.write_all(b"PING\r\n").await.unwrap();
            client.read_exact(&mut received[..7]).await.unwrap();
            assert_eq!(&received[..7], b"+PONG\r\n");
        });
    }

    /// A client that always sends, and yields as a socket does.
    struct Talker;

    impl AsyncRead for Talker {
        fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            ready!(pin!(consume_budget()).poll(context));
            let count = room.remaining() / b"PING\r\n".len();
            room.put_slice(&b"PING\r\n".repeat(count));
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_talkative_client_that_does_not_log_in_is_closed() {
        let shared = guarded("talker").0;
        let (_stopper, stop) = stop::channel();
        runtime().block_on(async {
            let (stream, peer) = (tokio::io::join(Talker, tokio::io::sink()), Peer::Local);
            let serving = tokio::spawn(serve_with(SHORT, stream, peer, stop, shared));
            tokio::time::timeout(Duration::from_secs(60), serving).await.expect("its time is over").unwrap();
        });
    }

    #[test]
    fn a_client_that_reads_nothing_and_does_not_log_in_is_closed() {
        let shared = guarded("unknown").0;
        let (_stopper, stop) = stop::channel();
        runtime().block_on(async {
            for count in [300, 3000] {
                let (mut client, serving) = begin(&shared, SHORT, stop.clone());
                // More than the buffers on the way hold.
                let asked = tokio::spawn(async move {
                    let _ = client.write_all(&b"PING\r\n".repeat(count)).await;
                    client
                });
                tokio::time::timeout(Duration::from_secs(10), serving).await.expect("its time is over").unwrap();
                drop(asked);
            }
        });
    }

    /// A revoked token is rejected from its next command on, and its connection is closed.
    #[test]
    fn a_client_with_a_revoked_token_is_closed() {
        let (shared, file) = guarded("revoked");
        let (_stopper, stop) = stop::channel();
        runtime().block_on(async {
            let (mut client, serving) = begin(&shared, SHORT, stop);
            let mut received = [0; 34];
            client.write_all(b"AUTH 0123456789abcdef\r\nPING\r\n").await.unwrap();
            client.read_exact(&mut received[..12]).await.unwrap();
            assert_eq!(&received[..12], b"+OK\r\n+PONG\r\n");
            std::fs::write(&file.0, "[b]\nsecret='fedcba9876543210'").unwrap();
            shared.gate.reload().unwrap();
            client.write_all(b"PING\r\n").await.unwrap();
            client.read_exact(&mut received[..34]).await.unwrap();
            assert_eq!(&received[..34], b"-NOAUTH Authentication required.\r\n");
            tokio::time::timeout(Duration::from_secs(60), serving).await.expect("its time is over").unwrap();
        });
    }

    fn request(words: &[&str]) -> String {
        let words: Vec<_> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        format!("*{}\r\n{}", words.len(), words.concat())
    }

    #[test]
    fn refusals_yield_to_other_tasks() {
        const COUNT: usize = 10_000;
        let shared = shared(Gate::new(None, vec![]).unwrap());
        let (_stopper, stop) = stop::channel();
        runtime().block_on(async {
            // Large, so that the server waits for no reading and no writing.
            let (client, server) = tokio::io::duplex(1024 * 1024);
            let peer = Peer::Local;
            tokio::spawn(serve(server, peer, stop, shared));
            let (mut answers, mut client) = tokio::io::split(client);
            let turns = yielding::counted();
            let asking = tokio::spawn(async move { client.write_all(&b"INCR x\r\n".repeat(COUNT)).await });
            let mut received = vec![];
            while received.iter().filter(|&&byte| byte == b'\n').count() < COUNT {
                assert!(answers.read_buf(&mut received).await.unwrap() > 0);
            }
            asking.await.unwrap().unwrap();
            assert!(turns.load(Ordering::Relaxed) >= COUNT as u64 / 128);
        });
    }

    #[test]
    fn a_client_that_reads_nothing_is_closed_and_a_slow_reader_is_not() {
        let shared = shared(Gate::new(None, vec![]).unwrap());
        let timeouts = Timeouts { untaken: Duration::from_millis(300), ..TIMEOUTS };
        let (_stopper, stop) = stop::channel();
        let pings = || b"PING\r\n".repeat(6000);
        runtime().block_on(async {
            let (mut client, serving) = begin(&shared, timeouts, stop.clone());
            client.write_all(&pings()[..6000]).await.unwrap();
            tokio::time::timeout(Duration::from_secs(60), serving).await.expect("its time is over").unwrap();

            let (mut answers, mut client) = tokio::io::split(begin(&shared, timeouts, stop).0);
            let asking = tokio::spawn(async move { client.write_all(&pings()).await });
            let mut received = vec![0; 4096];
            // About 1 s in total.
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                answers.read_exact(&mut received).await.unwrap();
            }
            answers.read_exact(&mut [0; 7 * 6000 - 40_960]).await.unwrap();
            asking.await.unwrap().unwrap();
        });
    }

    /// Answers of a store may be large, and unread ones stay in memory.
    #[test]
    fn a_client_that_does_not_read_a_stores_answer_is_closed() {
        let folder = std::env::temp_dir().join(format!("frazil-unread-{}", std::process::id()));
        let plan = Plan::new("shop".to_owned(), &format!("lend store=file:{}", folder.display())).unwrap();
        let shared = shared(Gate::new(None, vec![]).unwrap());
        let name = Arc::new(Name::new(plan));
        name.open(Duration::ZERO.into()).unwrap();
        shared.serve(vec![name]);
        let (_stopper, stop) = stop::channel();
        let end = i64::MAX.to_string();
        let swap =
            |key: &str, meta: &str, new: &str| request(&["FRAZIL.STORE", "SWAP", "shop", "60000", "", key, "-", meta, new, "0", &end]);
        let record = "x".repeat(3900);
        runtime().block_on(async {
            let (mut client, serving) = begin(&shared, TIMEOUTS, stop);
            for question in [swap("meta", "-", "m"), swap("1", "+m", &record), swap("2", "+m", &record)] {
                client.write_all(question.as_bytes()).await.unwrap();
                let mut received = vec![];
                while !received.ends_with(b"done\r\n") {
                    assert!(client.read_buf(&mut received).await.unwrap() > 0);
                }
            }
            client.write_all(request(&["FRAZIL.STORE", "LOAD", "shop", "4000", "page:0"]).as_bytes()).await.unwrap();
            tokio::time::timeout(Duration::from_secs(60), serving).await.expect("its time is over").unwrap();
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}
