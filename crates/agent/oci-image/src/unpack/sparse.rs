//! Files with holes in GNU's old form: the header, and blocks after it, say where the contents belong.

use super::{
    error::LayerError,
    header::{Header, raw_block},
    stream::Input,
};

/// Most pieces of one file.
const MOST: usize = 65_536;

/// A piece of the contents, and its place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Reads where the contents, which have `size` bytes, belong; and the length of the file.
pub(super) fn read(input: &mut impl Input, header: &Header, size: u64) -> Result<(Vec<Segment>, u64), LayerError> {
    let wrong = || LayerError::damaged("it is a file with holes, and where they are makes no sense");
    let positive = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).ok_or_else(wrong);
    let whole = positive(header.number(483, 12))?;
    let (mut segments, mut end, mut stored) = (Vec::new(), 0, 0_u64);
    let mut block = None;
    let mut take = |header: &Header, from: usize, count: usize| {
        for at in (from..).step_by(24).take(count) {
            if header.text(at, 1).is_empty() {
                continue;
            }
            let (offset, length) = (positive(header.number(at, 12))?, positive(header.number(at + 12, 12))?);
            let next = offset.checked_add(length).filter(|next| *next <= whole && offset >= end).ok_or_else(wrong)?;
            end = next;
            stored += length;
            segments.push(Segment { offset, length });
        }
        if segments.len() > MOST { Err(wrong()) } else { Ok(()) }
    };
    take(header, 386, 4)?;
    let mut continues = header.flag(482);
    while continues {
        let read = block.insert(raw_block(input)?);
        take(read, 0, 21)?;
        continues = read.flag(504);
    }
    if stored == size { Ok((segments, whole)) } else { Err(wrong()) }
}
