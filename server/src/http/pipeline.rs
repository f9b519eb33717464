//! The answers to requests that came in one piece, in one write; and no more of them at once than a client takes.
//!
//! hyper has `pipeline_flush` for that, which keeps all answers back while anything of a further request has come: there is no limit to how
//! many, and those before a broken request, or before the end of the connection, are lost.

use bytes::Bytes;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// The size below which it may wait for more.
const MOST: usize = 16 * 1024;

/// A connection to a client of HTTP.
pub struct Pipeline<S> {
    /// Only `drop` takes it.
    stream: Option<S>,
    /// The bytes that were read before.
    begun: Bytes,
    /// The bytes that are kept back.
    held: Vec<u8>,
    /// The number of them that are sent.
    sent: usize,
    state: State,
    /// True if something was written since the last flush.
    wrote: bool,
    asks: Asks,
    /// The bytes that the stream has taken.
    written: Arc<AtomicU64>,
    left: Option<oneshot::Sender<Left<S>>>,
}

/// The rest of a connection after hyper. It ends one that was broken, or asked to be upgraded, without sending what is kept back, and closes
/// it without a word.
pub struct Left<S> {
    pub stream: S,
    pub held: Vec<u8>,
    /// The client has nothing to send, as far as is known.
    pub is_quiet: bool,
}

/// The next act of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Something came, and has no answer.
    Waits,
    /// There may be more than what has an answer.
    Maybe,
    /// There was no more, or never will be.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client has the answer to all that it has sent.
    Single,
    /// An answer was sent, and nothing has come since: if there is another one, then the requests came together.
    Answered,
    /// They do.
    Several,
    /// HTTP/2 gathers its frames itself.
    Http2,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pipeline<S> {
    /// With what is left of it at its end; `begun` was read of the stream already, and `written` counts the bytes that it takes.
    pub fn new(stream: S, begun: Bytes, is_2: bool, written: Arc<AtomicU64>) -> (Self, oneshot::Receiver<Left<S>>) {
        let (tell, left) = oneshot::channel();
        let (stream, left_here) = (Some(stream), Some(tell));
        let (state, asks) = (if is_2 { State::Http2 } else { State::Single }, Asks::Nothing);
        let pipeline = Pipeline { stream, begun, held: vec![], sent: 0, state, wrote: false, asks, written, left: left_here };
        (pipeline, left)
    }

    fn stream(&mut self) -> Pin<&mut S> {
        pinned(&mut self.stream)
    }

    fn count(&self, bytes: usize) {
        // Nobody else adds to it.
        self.written.store(self.written.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Sends what was kept back.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while self.sent < self.held.len() {
            match ready!(pinned(&mut self.stream).poll_write(context, &self.held[self.sent..]))? {
                0 => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                count => {
                    self.sent += count;
                    self.count(count);
                }
            }
        }
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
        // Requests go on coming only to who takes the answers.
        ready!(this.poll_send(context))?;
        let before = buffer.filled().len();
        let has_begun = !this.begun.is_empty();
        if has_begun {
            let begun = this.begun.split_to(this.begun.len().min(buffer.remaining()));
            buffer.put_slice(&begun);
        }
        // With the rest: hyper's buffer grows where a head comes in two pieces.
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
        this.state = match this.state {
            State::Http2 | State::Several => this.state,
            _ => State::Single,
        };
        read.map(Ok)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Pipeline<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = &mut *self;
        this.wrote = true;
        this.asks = Asks::Maybe;
        if this.state == State::Several && this.held.len() + bytes.len() <= MOST {
            this.held.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(this.poll_send(context))?;
        let count = ready!(this.stream().poll_write(context, bytes))?;
        this.count(count);
        Poll::Ready(Ok(count))
    }

    /// HTTP/2 alone asks for it.
    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        self.asks = Asks::Maybe;
        ready!(self.poll_send(context))?;
        let count = ready!(self.stream().poll_write_vectored(context, parts))?;
        self.count(count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        match this.state {
            _ if !std::mem::take(&mut this.wrote) => {}
            State::Single => this.state = State::Answered,
            State::Answered => this.state = State::Several,
            // The next answer may be there at once; if it is not, then this one is sent when hyper is asked again.
            State::Several => {
                context.waker().wake_by_ref();
                return Poll::Ready(Ok(()));
            }
            State::Http2 => {}
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
            // The connection's task may end by a panic, and wants it no more.
            let _ = left.send(Left { stream, held, is_quiet: self.asks == Asks::Nothing });
        }
    }
}
