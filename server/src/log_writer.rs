//! Lines on their way to a stream that may be slow, so that a pipe without a reader delays neither requests nor leases.
//!
//! `tracing-appender` 0.2.5 loses lines without a count where a write fails, or where the stream is non-blocking and full; it joins a line that a
//! full disk has cut with the next one; and its queue is bounded in lines, not in bytes.

use std::io::{ErrorKind, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes that wait, enough for ten thousand requests in the access log. Further lines are dropped and counted.
const MOST: usize = 4 * 1024 * 1024;
/// The size that a pipe takes whole even with several writers. Capacity beyond it is released afterwards.
const PIECE: usize = 4096;
/// The pause between two tries on a full stream that another process has made non-blocking, as ssh does.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Default)]
pub struct LogWriter {
    queue: Mutex<Queue>,
    /// Signals that lines wait.
    more: Condvar,
    /// Signals that all lines are written.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<u8>,
    dropped: u64,
    is_writing: bool,
    /// The number of pieces that were written or failed.
    pieces: u64,
}

impl LogWriter {
    /// Queues a line, which ends with `\n`; returns `false` if it is dropped.
    pub fn push(&self, line: &str) -> bool {
        let mut queue = self.lock();
        if queue.waiting.len() + line.len() > MOST {
            queue.dropped += 1;
            return false;
        }
        let wakes = queue.waiting.is_empty();
        queue.waiting.extend_from_slice(line.as_bytes());
        drop(queue);
        if wakes {
            self.more.notify_one();
        }
        true
    }

    /// Writes lines for ever. `after_dropped` makes the line that replaces dropped ones. `failed` gets the number of lines that could not be
    /// written.
    pub fn write(&self, out: &mut impl Write, after_dropped: impl Fn(u64) -> String, failed: impl Fn(u64)) {
        let mut batch = vec![];
        let mut is_cut = false;
        loop {
            let dropped = self.take(&mut batch);
            if dropped > 0 {
                batch.extend(after_dropped(dropped).bytes());
            }
            for piece in pieces(&batch) {
                if is_cut {
                    // The disk was full in the middle of a line: end that line first.
                    is_cut = write_piece(out, b"\n") == 0;
                }
                let (taken, lost) = piece.split_at(write_piece(out, piece));
                if !lost.is_empty() {
                    failed(lost.iter().filter(|&&byte| byte == b'\n').count() as u64);
                    is_cut |= taken.last().is_some_and(|&byte| byte != b'\n');
                }
                self.lock().pieces += 1;
            }
            batch.clear();
            batch.shrink_to(PIECE);
        }
    }

    /// Waits for lines and takes all of them; returns how many were dropped after them.
    fn take(&self, batch: &mut Vec<u8>) -> u64 {
        let mut queue = self.lock();
        queue.is_writing = false;
        self.done.notify_all();
        let mut queue = self.more.wait_while(queue, |queue| queue.waiting.is_empty()).unwrap_or_else(PoisonError::into_inner);
        queue.is_writing = true;
        std::mem::swap(&mut queue.waiting, batch);
        std::mem::take(&mut queue.dropped)
    }

    /// Waits until all lines are written, or no progress was made for `timeout`.
    pub fn finish(&self, timeout: Duration) {
        let mut queue = self.lock();
        loop {
            let before = queue.pieces;
            let is_busy = |queue: &mut Queue| queue.is_writing || !queue.waiting.is_empty();
            let (now, waited) = self.done.wait_timeout_while(queue, timeout, is_busy).unwrap_or_else(PoisonError::into_inner);
            if !waited.timed_out() || now.pieces == before {
                return;
            }
            queue = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a piece; returns how many bytes were written before an error, if any.
fn write_piece(out: &mut impl Write, piece: &[u8]) -> usize {
    let mut taken = 0;
    while taken < piece.len() {
        match out.write(&piece[taken..]) {
            Ok(0) => break,
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
    taken
}

/// Splits into pieces of whole lines, each written at once. A longer line is a piece by itself.
fn pieces(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let fits = &lines[..lines.len().min(PIECE)];
        let end = fits.iter().rposition(|&byte| byte == b'\n').or_else(|| lines.iter().position(|&byte| byte == b'\n'))?;
        let (piece, rest) = lines.split_at(end + 1);
        lines = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Result;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    #[test]
    fn pieces_are_whole_lines() {
        let long = "x".repeat(2 * PIECE) + "\n";
        let lines = ["a\n".repeat(PIECE), long.clone(), "b\n".to_owned()].concat();
        let split: Vec<_> = pieces(lines.as_bytes()).collect();
        assert_eq!(split.concat(), lines.as_bytes());
        assert!(split.iter().all(|piece| piece.ends_with(b"\n") && (piece.len() <= PIECE || *piece == long.as_bytes())));
    }

    /// A stream that takes a piece only when the test allows it.
    struct GatedStream {
        let_on: mpsc::Receiver<()>,
        came: mpsc::Sender<Vec<u8>>,
        breaks: bool,
    }

    impl Write for GatedStream {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            let _ = self.let_on.recv();
            if self.breaks {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let _ = self.came.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// Starts a writer. Returns its queue, the permission to continue, the written pieces, and the number of failed lines.
    fn written(breaks: bool) -> (Arc<LogWriter>, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>, Arc<AtomicU64>) {
        let (lines, failed) = (Arc::new(LogWriter::default()), Arc::new(AtomicU64::new(0)));
        let ((go, let_on), (came, out)) = (mpsc::channel(), mpsc::channel());
        let (its, counted) = (Arc::clone(&lines), Arc::clone(&failed));
        std::thread::spawn(move || {
            let notice = |dropped| format!("{dropped} dropped\n");
            its.write(&mut GatedStream { let_on, came, breaks }, notice, |lines| _ = counted.fetch_add(lines, Ordering::Relaxed));
        });
        (lines, go, out, failed)
    }

    #[test]
    fn a_blocked_stream_delays_no_caller_and_dropped_lines_are_reported() {
        let (lines, go, out, failed) = written(false);
        let line = "y".repeat(1023) + "\n";
        assert!(lines.push(&line));
        // Wait for the writer to take this line alone, because a second batch would report the missing lines in two places.
        while !lines.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        let waiting = (0..3 * MOST / line.len()).filter(|_| lines.push(&line)).count();
        let dropped = 3 * MOST / line.len() - waiting;
        assert_eq!(waiting * line.len(), MOST);
        lines.finish(Duration::from_millis(1));
        drop(go);
        lines.finish(Duration::MAX);
        let text = String::from_utf8(out.try_iter().flatten().collect()).unwrap();
        assert_eq!(text.matches(&line).count(), 1 + waiting);
        assert!(text.ends_with(&format!("\n{dropped} dropped\n")), "{:?}", &text[text.len() - 40..]);
        assert!(lines.push(&line));
        lines.finish(Duration::MAX);
        assert_eq!((out.try_iter().flatten().count(), failed.load(Ordering::Relaxed)), (line.len(), 0));
    }

    /// A stream that is full at every other try, and then takes one byte.
    struct Full {
        is_full: bool,
        came: mpsc::Sender<u8>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.is_full = !self.is_full;
            if self.is_full {
                return Err(ErrorKind::WouldBlock.into());
            }
            let _ = self.came.send(bytes[0]);
            Ok(1)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn would_block_of_a_stream_is_retried() {
        let (lines, (came, out)) = (Arc::new(LogWriter::default()), mpsc::channel());
        let its = Arc::clone(&lines);
        std::thread::spawn(move || its.write(&mut Full { is_full: false, came }, |_| String::new(), |_| ()));
        assert!(lines.push("a line\n"));
        lines.finish(Duration::MAX);
        assert_eq!(out.try_iter().collect::<Vec<_>>(), b"a line\n");
    }

    /// A disk that takes as much as it has room for.
    struct Disk {
        room: Arc<AtomicUsize>,
        came: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            let count = self.room.load(Ordering::Relaxed).min(bytes.len());
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.room.fetch_sub(count, Ordering::Relaxed);
            let _ = self.came.send(bytes[..count].to_vec());
            Ok(count)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_is_cut_leaves_the_next_one_intact() {
        let (lines, failed, room) = (Arc::new(LogWriter::default()), Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(10)));
        let (its, counted, (came, out)) = (Arc::clone(&lines), Arc::clone(&failed), mpsc::channel());
        let mut disk = Disk { room: Arc::clone(&room), came };
        assert!(lines.push("a line\na second line\na third line\n"));
        std::thread::spawn(move || its.write(&mut disk, |_| String::new(), |lines| _ = counted.fetch_add(lines, Ordering::Relaxed)));
        for line in ["a fourth line\n", "a fifth line\n"] {
            lines.finish(Duration::MAX);
            if line.contains("fifth") {
                room.store(1000, Ordering::Relaxed);
            }
            assert!(lines.push(line));
        }
        lines.finish(Duration::MAX);
        let text = String::from_utf8(out.try_iter().flatten().collect()).unwrap();
        assert_eq!((text.as_str(), failed.load(Ordering::Relaxed)), ("a line\na s\na fifth line\n", 3));
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let (lines, go, _out, failed) = written(true);
        drop(go);
        for _ in 0..3 {
            assert!(lines.push("a line\n"));
        }
        lines.finish(Duration::MAX);
        assert_eq!(failed.load(Ordering::Relaxed), 3);
    }
}
