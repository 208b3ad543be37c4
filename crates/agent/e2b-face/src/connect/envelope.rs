//! Messages of a stream: each has a byte of flags and its length before it.

use axum::body::{Body, BodyDataStream};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;

use super::error::{Code, ConnectError, MESSAGE, too_large};

/// Bytes before a message.
const HEAD: usize = 5;
const COMPRESSED: u8 = 1;
/// The flag of the last one of a server.
pub(super) const END: u8 = 2;

/// A message with what stands before it.
pub(super) fn envelope(flags: u8, message: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(HEAD + message.len());
    bytes.push(flags);
    bytes.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes.into()
}

/// The messages of a client as they come.
pub(crate) struct Envelopes {
    body: BodyDataStream,
    read: BytesMut,
}

impl Envelopes {
    pub(crate) fn new(body: Body) -> Self {
        Self { body: body.into_data_stream(), read: BytesMut::new() }
    }

    /// The next message; none behind the last one. May be given up and called again.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ConnectError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            match self.body.next().await {
                Some(Ok(piece)) => self.read.extend_from_slice(&piece),
                None if self.read.is_empty() => return Ok(None),
                Some(Err(_)) | None => return Err(ConnectError::wrong("the stream broke off within a message")),
            }
        }
    }

    fn take(&mut self) -> Result<Option<Bytes>, ConnectError> {
        let Some((flags, rest)) = self.read.split_first() else { return Ok(None) };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        // What is refused is refused before it is collected.
        if *flags & COMPRESSED != 0 {
            return Err(ConnectError::new(Code::Unimplemented, "messages must not be compressed"));
        }
        if *flags != 0 {
            return Err(ConnectError::wrong(format!("a message has the flags {flags}, which are none of a client's")));
        }
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > MESSAGE {
            return Err(too_large());
        }
        if self.read.len() < HEAD + length {
            return Ok(None);
        }
        self.read.advance(HEAD);
        Ok(Some(self.read.split_to(length).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn all(pieces: &[&[u8]]) -> Result<Vec<Bytes>, ConnectError> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
        let mut envelopes = Envelopes::new(Body::from_stream(stream::iter(pieces)));
        let mut found = Vec::new();
        while let Some(message) = envelopes.next().await? {
            found.push(message);
        }
        Ok(found)
    }

    #[tokio::test]
    async fn messages_are_found_however_they_are_cut() {
        let whole: Vec<u8> =
            [envelope(0, b"{}").to_vec(), envelope(0, b"").to_vec(), envelope(0, b"abc").to_vec()].concat();
        let expected = [&b"{}"[..], b"", b"abc"];
        for size in 1..=whole.len() {
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(all(&pieces).await.unwrap(), expected, "{size}");
        }
    }

    #[tokio::test]
    async fn what_is_too_large_compressed_or_cut_off_is_refused_from_its_head() {
        for (bytes, code) in [
            (&[0, 0xff, 0xff, 0xff, 0xff][..], Code::ResourceExhausted),
            (&[0, 0, 0x40, 0, 1], Code::ResourceExhausted),
            (&[1, 0, 0, 0, 1], Code::Unimplemented),
            (&[2, 0, 0, 0, 2, b'{', b'}'], Code::InvalidArgument),
            (&[0, 0, 0, 0, 2, b'{'], Code::InvalidArgument),
            (&[0, 0], Code::InvalidArgument),
        ] {
            assert_eq!(all(&[bytes]).await.unwrap_err().code, code, "{bytes:?}");
        }
    }
}
