//! The lines of the input, as bytes.

use super::code;
use super::interrupt;
use super::screen::Stop;
use std::io::{self, BufRead, BufReader};
use std::time::Duration;

pub(super) struct Input<'a>(BufReader<Box<dyn io::Read + 'a>>);

pub(super) enum Read {
    Line,
    End,
    Interrupted,
}

impl<'a> Input<'a> {
    pub(super) fn new(reader: impl io::Read + 'a) -> Self {
        Input(BufReader::with_capacity(1 << 16, Box::new(reader)))
    }

    /// Returns whether the next line may have to be waited for.
    pub(super) fn would_wait(&self) -> bool {
        !self.0.buffer().contains(&b'\n')
    }

    /// Reads a line with its end, if it has one.
    ///
    /// # Errors
    /// What the system says of the input.
    pub(super) fn line(&mut self, line: &mut Vec<u8>) -> Result<Read, Stop> {
        line.clear();
        loop {
            if interrupt::came() {
                return Ok(Read::Interrupted);
            }
            let (taken, ended) = match interrupt::awaiting(|| self.0.fill_buf()) {
                Ok([]) => return Ok(if line.is_empty() { Read::End } else { Read::Line }),
                Ok(bytes) => {
                    let end = bytes.iter().position(|&byte| byte == b'\n');
                    let taken = end.map_or(bytes.len(), |end| end + 1);
                    line.extend_from_slice(&bytes[..taken]);
                    (taken, end.is_some())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Another program that shares the pipe may have told it not to wait.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(error) => return Err(Stop::Failed(code::INPUT, format!("the input cannot be read: {error}"))),
            };
            self.0.consume(taken);
            if ended {
                return Ok(Read::Line);
            }
        }
    }
}
