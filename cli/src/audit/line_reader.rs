//! Lines of a file as slices of one buffer.

use frazil::admin::foreign::digits;
use memchr::memchr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// The size of the buffer at the beginning. It grows up to the longest line.
const BUFFER: usize = 1 << 20;

pub(super) struct LineReader<'f> {
    file: &'f File,
    /// The most bytes of a line that are returned at once.
    longest: usize,
    buffer: Vec<u8>,
    /// The range of `buffer` that was read from the file and not returned yet.
    from: usize,
    to: usize,
    /// The length of the last line.
    length: usize,
}

impl<'f> LineReader<'f> {
    /// Reads from a position in the file.
    pub(super) fn new(mut file: &'f File, at: u64, longest: usize) -> io::Result<Self> {
        file.seek(SeekFrom::Start(at))?;
        Ok(LineReader { file, longest, buffer: vec![0; BUFFER], from: 0, to: 0, length: 0 })
    }

    /// Returns the bytes of the file that are in memory, without taking them. Call this first.
    pub(super) fn beginning(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        Ok(&self.buffer[self.from..self.to])
    }

    /// Skips bytes of [`beginning`](Self::beginning).
    pub(super) fn skip(&mut self, bytes: usize) {
        self.from += bytes;
    }

    /// Takes the next line if it is a number as long as the line before it, as most are, so that no search for its end is needed. Returns
    /// the number and the length of the line.
    #[inline]
    pub(super) fn number(&mut self) -> Option<(u64, usize)> {
        let line = self.buffer[self.from..self.to].get(..self.length)?;
        let number = digits(line.strip_suffix(b"\n")?)?;
        self.from += self.length;
        Some((number, self.length))
    }

    /// Returns the next line with its line end; the rest of the file if that has none, and nothing at its end. Of a line that is too long,
    /// each call returns the next `longest` bytes.
    #[inline]
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.from..self.to];
            let end = memchr(b'\n', &rest[searched..]).map(|at| searched + at + 1);
            searched = rest.len();
            if end.is_some() || searched >= self.longest || !self.fill()? {
                let line = self.from..self.from + end.unwrap_or(searched).min(self.longest);
                (self.from, self.length) = (line.end, line.len());
                return Ok(&self.buffer[line]);
            }
        }
    }

    /// Reads more of the file, and returns whether there was more.
    #[cold]
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to == self.buffer.len() {
            self.buffer.resize(2 * self.to, 0);
        }
        loop {
            match self.file.read(&mut self.buffer[self.to..]) {
                Ok(read) => {
                    self.to += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn lines_are_those_of_the_text(lines in prop::collection::vec((prop::sample::select(vec!["", "7", "\r"]), 0_usize..40), 0..30), is_ended: bool, from in 0_usize..20) {
            let mut text: Vec<u8> = lines.iter().flat_map(|(word, times)| [word.repeat(*times).as_bytes(), b"\n"].concat()).collect();
            if !is_ended {
                text.extend(b"123");
            }
            let path = std::env::temp_dir().join(format!("frazil-audit-lines-{}", std::process::id()));
            std::fs::write(&path, &text).unwrap();
            let file = File::open(&path).unwrap();
            let from = from.min(text.len());
            let mut reader = LineReader::new(&file, from as u64, 16).unwrap();
            // A small buffer meets every case at its end.
            reader.buffer = vec![0; 4];
            let mut read = Vec::new();
            loop {
                let line = reader.next().unwrap().to_vec();
                if line.is_empty() {
                    break;
                }
                prop_assert!(line.len() <= 16 && !line[..line.len() - 1].contains(&b'\n'));
                read.push(line);
            }
            let expected: Vec<_> = text[from..].split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(16)).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
