//! How an event stands in the journal.
//!
//! A record is a mark, the length of the text, the number of the event, a checksum over all but the mark, and the text;
//! numbers are little-endian. What does not begin like this, is not all there or has another checksum is the end of
//! the journal: a write that was cut short.

use bytes::Bytes;

/// First bytes of a record. The digit is the version of the format.
const MARK: [u8; 4] = *b"GPJ1";
/// Bytes before the text: the mark, the length, the number, the checksum.
pub(crate) const HEADER: usize = 20;

/// Appends the record of an event.
pub(crate) fn encode(id: i64, text: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let length = u32::try_from(text.len()).map_err(|_| TooLong)?.to_le_bytes();
    let id = id.to_le_bytes();
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&length);
    out.extend_from_slice(&id);
    out.extend_from_slice(&checksum(length, id, text).to_le_bytes());
    out.extend_from_slice(text);
    Ok(())
}

/// The text has 4 GiB or more.
#[derive(Debug)]
pub(crate) struct TooLong;

/// A record that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: i64,
    pub(crate) text: Bytes,
}

/// Takes the next record off the front; nothing if there is no whole one.
pub(crate) fn decode(journal: &mut Bytes) -> Option<Record> {
    let (mark, rest) = journal.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (id, rest) = rest.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let text = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    if *mark != MARK || u32::from_le_bytes(*sum) != checksum(*length, *id, text) {
        return None;
    }
    let (id, end) = (i64::from_le_bytes(*id), HEADER + text.len());
    let text = journal.split_to(end).slice(HEADER..);
    Some(Record { id, text })
}

fn checksum(length: [u8; 4], id: [u8; 8], text: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(&id);
    hasher.update(text);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(texts: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (id, text) in (7..).zip(texts) {
            encode(id, text.as_bytes(), &mut bytes).unwrap();
        }
        bytes
    }

    fn read(bytes: Vec<u8>) -> (Vec<i64>, usize) {
        let mut rest = Bytes::from(bytes);
        let ids = std::iter::from_fn(|| decode(&mut rest)).map(|record| record.id).collect();
        (ids, rest.len())
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut rest = Bytes::from(journal(&["a", "", "{}"]));
        for (id, text) in [(7, "a"), (8, ""), (9, "{}")] {
            assert_eq!(decode(&mut rest), Some(Record { id, text: Bytes::from(text) }));
        }
        assert_eq!(decode(&mut rest), None);
    }

    #[test]
    fn a_journal_that_is_cut_anywhere_gives_its_whole_records() {
        let whole = journal(&["first", "second"]);
        for length in 0..whole.len() {
            let expected = if length < HEADER + 5 { vec![] } else { vec![7] };
            assert_eq!(read(whole[..length].to_vec()).0, expected, "{length}");
        }
    }

    #[test]
    fn a_changed_byte_ends_the_journal_before_its_record() {
        let whole = journal(&["first", "second"]);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let expected = if at < HEADER + 5 { vec![] } else { vec![7] };
            assert_eq!(read(changed).0, expected, "{at}");
        }
    }

    #[test]
    fn zeros_after_the_last_record_end_the_journal() {
        let mut bytes = journal(&["first"]);
        bytes.extend([0; 100]);
        assert_eq!(read(bytes), (vec![7], 100));
    }
}
