//! Text that a kernel had written and not sent when it died.
//!
//! The launcher writes all text into a ring in a file before it queues it, and tells with each message how much text
//! there was up to its end. So what has not arrived is known, also after `kill -9`.

use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

/// Bytes of text in the ring. What is on its way to us is less (`launcher.py`: `PIECE`, `WINDOW`).
const ROOM: u64 = 4 * 1024 * 1024;
/// Bytes of the count before it.
const HEAD: u64 = 8;

/// The ring of one kernel.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// How much of the text has arrived.
    received: u64,
}

/// Text that has not arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// How many bytes the ring does not have any more.
    pub(crate) lost: u64,
    /// The rest.
    pub(crate) text: String,
}

impl Journal {
    /// Makes the file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(HEAD + ROOM)?;
        Ok(Self { file, received: 0 })
    }

    /// A message has arrived whose text ends here. Answers how much text before it has not arrived.
    pub(crate) fn arrived(&mut self, length: usize, end: u64) -> u64 {
        let begin = end.saturating_sub(length as u64);
        let gap = begin.saturating_sub(self.received);
        self.received = self.received.max(end);
        gap
    }

    /// What was written and has not arrived. Counts it as arrived.
    pub(crate) fn missing(&mut self) -> io::Result<Missing> {
        let mut head = [0; 8];
        self.file.read_exact_at(&mut head, 0)?;
        // The kernel's user may write anything there, so nothing is believed that cannot be.
        let count = u64::from_le_bytes(head);
        let begin = self.received.max(count.saturating_sub(ROOM));
        let mut bytes = vec![0; usize::try_from(count.saturating_sub(begin)).unwrap_or(0)];
        let room_at_end = usize::try_from(ROOM - begin % ROOM).unwrap_or(usize::MAX).min(bytes.len());
        let (first, second) = bytes.split_at_mut(room_at_end);
        self.file.read_exact_at(first, HEAD + begin % ROOM)?;
        self.file.read_exact_at(second, HEAD)?;
        let lost = if count > self.received { begin - self.received } else { 0 };
        self.received = self.received.max(count);
        Ok(Missing { lost, text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(journal: &Journal, count: u64, text: &[u8]) {
        let start = (count - text.len() as u64) % ROOM;
        for (index, byte) in (0..).zip(text) {
            journal.file.write_all_at(&[*byte], HEAD + (start + index) % ROOM).unwrap();
        }
        journal.file.write_all_at(&count.to_le_bytes(), 0).unwrap();
    }

    #[test]
    fn what_has_not_arrived_is_told_also_around_the_end_of_the_ring() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join("journal")).unwrap();
        assert_eq!(journal.missing().unwrap(), Missing { lost: 0, text: String::new() });
        write(&journal, 5, b"hello");
        assert_eq!(journal.arrived(2, 2), 0);
        assert_eq!(journal.missing().unwrap(), Missing { lost: 0, text: "llo".into() });
        assert_eq!(journal.arrived(2, 9), 2);
        journal.arrived(1, ROOM - 2);
        write(&journal, ROOM + 2, b"abcd");
        assert_eq!(journal.missing().unwrap(), Missing { lost: 0, text: "abcd".into() });
        write(&journal, 3 * ROOM, b"z");
        let missing = journal.missing().unwrap();
        assert_eq!((missing.lost, missing.text.len() as u64), (ROOM - 2, ROOM));
        assert!(missing.text.ends_with('z'));
        write(&journal, 3, b"abc");
        assert_eq!(journal.missing().unwrap(), Missing { lost: 0, text: String::new() });
    }
}
