//! Reads the records of a file, and checks the chain.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::Path,
};

use crate::record::{self, Hash, LONGEST_LINE, Record};

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It is none of a log.
    #[error("it is no record")]
    NoRecord,
    /// It has been changed.
    #[error("its hash is not that of what it says: it was changed")]
    Changed,
    /// It does not go on where the line before has ended.
    #[error("it does not follow the line before it: something was removed, inserted or moved")]
    NotNext,
    /// It has no end.
    #[error("it has no end: it was cut off")]
    CutOff,
}

/// Why a log cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The chain is broken.
    #[error("line {line}: {broken}")]
    Broken {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        broken: Broken,
    },
}

/// Reads records in their order, each of which follows the one before. Nothing is read behind the first error.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    number: u64,
    head: Hash,
    has_failed: bool,
}

impl Reader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// The system refuses, or it is no regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok(Self { file: BufReader::new(file), number: 0, head: Hash::default(), has_failed: false })
    }

    /// The hash of the last record that was read.
    pub fn head(&self) -> Hash {
        self.head
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        let mut line = Vec::new();
        (&mut self.file).take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let number = self.number + 1;
        let broken = |broken| ReadError::Broken { line: number, broken };
        let line = line.strip_suffix(b"\n").ok_or_else(|| broken(Broken::CutOff))?;
        let parsed = std::str::from_utf8(line).ok().and_then(record::parse);
        let (record, is_own) = parsed.ok_or_else(|| broken(Broken::NoRecord))?;
        if !is_own {
            return Err(broken(Broken::Changed));
        }
        if (record.number, record.previous) != (number, self.head) {
            return Err(broken(Broken::NotNext));
        }
        (self.number, self.head) = (number, record.hash);
        Ok(Some(record))
    }
}

impl Iterator for Reader {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read().transpose();
        self.has_failed = matches!(read, Some(Err(_)));
        read
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Event, Log, Text};

    /// The first error of a file of these lines, if there is one.
    fn verdict(lines: &[String]) -> Option<(u64, Broken)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, lines.concat()).unwrap();
        Reader::open(&path).unwrap().find_map(|read| match read {
            Ok(_) => None,
            Err(ReadError::Broken { line, broken }) => Some((line, broken)),
            Err(ReadError::Io(error)) => panic!("{error}"),
        })
    }

    #[test]
    fn whatever_is_done_to_a_line_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = Log::open(&path).unwrap();
        for number in 1..=4 {
            let text = Text::new(&format!("echo {number}"));
            log.add("s", &Event::Command { command: number, text }).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
        assert_eq!(verdict(&lines), None);
        let changed = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            change(&mut lines);
            verdict(&lines)
        };
        assert_eq!(changed(&|lines| lines[1] = lines[1].replace("echo 2", "echo 9")), Some((2, Broken::Changed)));
        assert_eq!(changed(&|lines| lines[1] = lines[1].replace("\"}", "\" }")), Some((2, Broken::NoRecord)));
        assert_eq!(changed(&|lines| drop(lines.remove(1))), Some((2, Broken::NotNext)));
        assert_eq!(changed(&|lines| drop(lines.remove(0))), Some((1, Broken::NotNext)));
        assert_eq!(changed(&|lines| lines.swap(1, 2)), Some((2, Broken::NotNext)));
        assert_eq!(changed(&|lines| lines.insert(2, lines[1].clone())), Some((3, Broken::NotNext)));
        assert_eq!(changed(&|lines| lines[2] = "{}\n".to_owned()), Some((3, Broken::NoRecord)));
        assert_eq!(changed(&|lines| lines[3] = lines[3].trim_end().to_owned()), Some((4, Broken::CutOff)));
        assert_eq!(changed(&|lines| lines.insert(0, "\n".to_owned())), Some((1, Broken::NoRecord)));
        // That the last ones are gone is seen by the hash that somebody has kept.
        assert_eq!(changed(&|lines| drop(lines.pop())), None);
    }
}
