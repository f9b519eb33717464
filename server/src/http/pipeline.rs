//! The answers to a pipeline of requests, gathered into one write, and never more of them than the client reads.
//!
//! hyper's `pipeline_flush` does not suffice. Without a limit, it holds all answers back while a part of a further request has arrived. It
//! also loses those before a broken request or before the end of the connection.

use super::backpressure::Backpressure;
use crate::unread_answers::{self, BudgetShare};
use bytes::Bytes;
use std::future::Future;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// The size up to which answers wait for further ones.
const MOST: usize = 16 * 1024;
/// The bytes of HTTP/2 that are read at once while the server is over its budget: a few requests, or a few frames about answers that were
/// read. h2 never frees the memory of the most streams that it had at once.
const FEW_BYTES: usize = 64;
/// The pause before more is read from a client with unread answers, and the bytes of answers that it must read to avoid the pause.
const PAUSE: Duration = Duration::from_secs(2);
const PROGRESS: u64 = 1024;

/// A connection to a client of HTTP.
pub struct Pipeline<S> {
    /// Only `drop` takes it.
    stream: Option<S>,
    /// The bytes that were read before.
    begun: Bytes,
    /// The bytes that are held back.
    held: Vec<u8>,
    /// The number of held bytes that are sent.
    sent: usize,
    phase: Phase,
    /// True if something was written since the last flush.
    wrote: bool,
    budget: Budget,
    asks: Asks,
    backpressure: Backpressure,
    left: Option<oneshot::Sender<Left<S>>>,
}

/// The state of a connection while the server is over its budget.
#[derive(Default)]
struct Budget {
    /// The bytes that are counted, because the socket accepts no more.
    unread: BudgetShare,
    /// True if the socket did not accept the last write.
    is_blocked: bool,
    /// True if a few bytes were read whose requests are answered before more is read.
    has_read: bool,
    pause: Option<Pin<Box<Sleep>>>,
    /// The bytes that the stream had accepted before the last pause, and the requests that had begun.
    written_before: u64,
    begun_before: usize,
}

/// The rest of a connection after hyper. hyper ends a broken connection, or one with an upgrade, without sending the bytes that are held back.
pub struct Left<S> {
    pub stream: S,
    pub held: Vec<u8>,
    /// True if the client has sent no input that is known to be unread.
    pub is_quiet: bool,
}

/// The next act of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// A request has no answer yet.
    Waits,
    /// There may be further requests.
    Maybe,
    /// All requests are answered, or the client has ended its side.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// All requests are answered.
    Single,
    /// An answer was sent, and nothing was read since. If hyper sends another answer, the requests arrived together.
    Answered,
    /// The requests arrived together.
    Several,
    /// HTTP/2 gathers its frames itself.
    Http2,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pipeline<S> {
    /// Returns the pipeline, and the receiver of the rest at its end. `begun` was read from the stream before. `backpressure` counts the bytes
    /// that the stream accepts.
    pub fn new(stream: S, begun: Bytes, is_2: bool, backpressure: Backpressure) -> (Self, oneshot::Receiver<Left<S>>) {
        let (sender, rest) = oneshot::channel();
        let (phase, budget) = (if is_2 { Phase::Http2 } else { Phase::Single }, Budget::default());
        let (stream, held, asks, left) = (Some(stream), vec![], Asks::Nothing, Some(sender));
        let pipeline = Pipeline { stream, begun, held, sent: 0, phase, wrote: false, budget, asks, backpressure, left };
        (pipeline, rest)
    }

    fn stream(&mut self) -> Pin<&mut S> {
        pinned(&mut self.stream)
    }

    /// Records the result of a write.
    fn wrote(&mut self, context: &Context<'_>, wrote: Poll<Result<usize>>) -> Poll<Result<usize>> {
        if std::mem::replace(&mut self.budget.is_blocked, wrote.is_pending()) && wrote.is_ready() {
            // `poll_read_few` waits until the socket accepts bytes.
            context.waker().wake_by_ref();
        }
        if let Poll::Ready(Ok(count)) = wrote {
            self.backpressure.add_written(count);
        }
        wrote
    }

    /// Counts the bytes of answers while the socket accepts none of them.
    fn count_unread(&mut self, bytes: usize) {
        if self.phase != Phase::Http2 {
            self.budget.unread.set(bytes);
            self.backpressure.set_unread(usize::from(bytes > 0));
        }
    }

    /// Reads a few bytes of HTTP/2, if the socket accepts answers, and lets other tasks answer them before it reads more.
    fn poll_read_few(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        if self.budget.is_blocked {
            return Poll::Pending;
        }
        if std::mem::take(&mut self.budget.has_read) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // The rest of a request comes without a pause: its time is limited.
        let asks = self.backpressure.has_unread() && self.backpressure.begun() != self.budget.begun_before;
        if asks && self.backpressure.written() - self.budget.written_before < PROGRESS {
            ready!(self.budget.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE))).as_mut().poll(context));
        }
        self.budget.pause = None;
        (self.budget.written_before, self.budget.begun_before) = (self.backpressure.written(), self.backpressure.begun());
        let mut few = [0; FEW_BYTES];
        let mut few = ReadBuf::new(&mut few[..FEW_BYTES.min(buffer.remaining())]);
        if self.begun.is_empty() {
            ready!(self.stream().poll_read(context, &mut few))?;
        } else {
            few.put_slice(&self.begun.split_to(self.begun.len().min(few.remaining())));
        }
        (self.budget.has_read, self.asks) = (true, Asks::Waits);
        buffer.put_slice(few.filled());
        Poll::Ready(Ok(()))
    }

    /// Sends the bytes that are held back.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while let rest @ [_, ..] = &self.held[self.sent..] {
            let wrote = pinned(&mut self.stream).poll_write(context, rest);
            match self.wrote(context, wrote)? {
                Poll::Pending => {
                    self.count_unread(self.held.len());
                    return Poll::Pending;
                }
                Poll::Ready(0) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                Poll::Ready(count) => self.sent += count,
            }
        }
        self.count_unread(0);
        self.held.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

fn pinned<S: Unpin>(stream: &mut Option<S>) -> Pin<&mut S> {
    Pin::new(stream.as_mut().expect("only `drop` takes it"))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Pipeline<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        // Nothing is read from a client that reads no answers.
        ready!(this.poll_send(context))?;
        if this.phase == Phase::Http2 && unread_answers::are_over_budget() {
            return this.poll_read_few(context, buffer);
        }
        let before = buffer.filled().len();
        let has_begun = !this.begun.is_empty();
        if has_begun {
            let begun = this.begun.split_to(this.begun.len().min(buffer.remaining()));
            buffer.put_slice(&begun);
        }
        // Both pieces at once, because hyper's buffer grows where a head comes in two pieces.
        let read = match this.stream().poll_read(context, buffer)? {
            Poll::Pending if has_begun => Poll::Ready(()),
            read => read,
        };
        if read.is_pending() {
            this.held = vec![];
        }
        this.asks = match this.asks {
            _ if buffer.filled().len() > before => Asks::Waits,
            Asks::Maybe => Asks::Nothing,
            _ if read.is_ready() => Asks::Nothing,
            asks => asks,
        };
        this.phase = match this.phase {
            Phase::Http2 | Phase::Several => this.phase,
            _ => Phase::Single,
        };
        read.map(Ok)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Pipeline<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = &mut *self;
        this.wrote = true;
        this.asks = Asks::Maybe;
        if this.phase == Phase::Several && this.held.len() + bytes.len() <= MOST && !unread_answers::are_over_budget() {
            this.held.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(this.poll_send(context))?;
        let wrote = this.stream().poll_write(context, bytes);
        this.count_unread(if wrote.is_pending() { bytes.len() } else { 0 });
        this.wrote(context, wrote)
    }

    /// Only HTTP/2 calls it.
    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        self.asks = Asks::Maybe;
        ready!(self.poll_send(context))?;
        let wrote = self.stream().poll_write_vectored(context, parts);
        self.wrote(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        match this.phase {
            _ if !std::mem::take(&mut this.wrote) => {}
            Phase::Single => this.phase = Phase::Answered,
            Phase::Answered => this.phase = Phase::Several,
            // The next answer may follow at once. Otherwise the next poll sends this one.
            Phase::Several => {
                context.waker().wake_by_ref();
                return Poll::Ready(Ok(()));
            }
            Phase::Http2 => {}
        }
        ready!(this.poll_send(context))?;
        this.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_send(context))?;
        self.stream().poll_shutdown(context)
    }
}

impl<S> Drop for Pipeline<S> {
    fn drop(&mut self) {
        if let (Some(stream), Some(left)) = (self.stream.take(), self.left.take()) {
            let held = self.held.split_off(self.sent);
            // The receiver is gone if the connection's task has panicked.
            let _ = left.send(Left { stream, held, is_quiet: self.asks == Asks::Nothing });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    #[test]
    fn an_answer_is_unread_while_the_socket_accepts_none_of_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(16);
            let backpressure = Backpressure::default();
            let (mut pipeline, _left) = Pipeline::new(server, Bytes::new(), false, backpressure.clone());
            assert!(timeout(Duration::from_millis(20), pipeline.write_all(&[0; 40])).await.is_err());
            assert!(backpressure.has_unread());
            client.read_exact(&mut [0; 16]).await.unwrap();
            // The next request is read meanwhile.
            assert!(timeout(Duration::from_millis(20), pipeline.read(&mut [0; 16])).await.is_err());
            assert!(backpressure.has_unread());
            pipeline.write_all(&[0; 16]).await.unwrap();
            assert!(!backpressure.has_unread());
        });
    }
}
