//! The lines of the input, as bytes.

use super::code;
use super::interrupt;
use super::screen::Stop;
use std::io::{self, BufRead, BufReader};
use std::time::Duration;

pub(super) struct Input<'a>(BufReader<Box<dyn io::Read + 'a>>);

pub(super) enum ReadLine {
    Line,
    End,
    Interrupted,
}

impl<'a> Input<'a> {
    pub(super) fn new(reader: impl io::Read + 'a) -> Self {
        Input(BufReader::with_capacity(1 << 16, Box::new(reader)))
    }

    /// Returns whether reading the next line may wait.
    pub(super) fn would_wait(&self) -> bool {
        !self.0.buffer().contains(&b'\n')
    }

    /// Reads a line with its end, if it has one.
    ///
    /// # Errors
    /// `INPUT` if the input cannot be read.
    pub(super) fn line(&mut self, line: &mut Vec<u8>) -> Result<ReadLine, Stop> {
        line.clear();
        loop {
            if interrupt::is_requested() {
                return Ok(ReadLine::Interrupted);
            }
            let (taken, ended) = match interrupt::awaiting(|| self.0.fill_buf()) {
                Ok([]) => return Ok(if line.is_empty() { ReadLine::End } else { ReadLine::Line }),
                Ok(mut bytes) => {
                    // Bytes in memory can be read without an error.
                    let taken = bytes.read_until(b'\n', line).unwrap_or_default();
                    (taken, line.ends_with(b"\n"))
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Another program that shares the pipe may have made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(error) => return Err(Stop::Failed(code::INPUT, format!("the input cannot be read: {error}"))),
            };
            self.0.consume(taken);
            if ended {
                return Ok(ReadLine::Line);
            }
        }
    }
}
