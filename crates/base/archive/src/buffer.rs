//! Moving bytes with few calls and one buffer.

use std::io::{self, Read};

/// Reads until the buffer is full or the input has ended, and tells how much there is.
pub(crate) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads once, at most `most` bytes.
pub(crate) fn read_some(input: &mut impl Read, buffer: &mut [u8], most: u64) -> io::Result<usize> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
    loop {
        match input.read(&mut buffer[..most]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
