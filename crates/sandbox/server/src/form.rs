//! The parts of a form, read in bounded memory.
//!
//! The parser takes everything that is there before it looks at it, and keeps what it has not understood yet. So pieces
//! are handed to it one at a time, and what stands before the contents of a part is bounded.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::CONTENT_DISPOSITION;

use crate::{body::BodyError, transfer::Feeder};

/// What the parser takes from a stream that fails.
type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Bytes between the contents of two parts, and in pieces that begin with contents.
const HEAD: usize = 1024 * 1024;
/// Parts of a form.
const PARTS: usize = 1000;

/// Why a form can not be read.
#[derive(Debug)]
pub(crate) enum FormError {
    Body(BodyError),
    Malformed(String),
}

impl From<multer::Error> for FormError {
    fn from(error: multer::Error) -> Self {
        match error {
            multer::Error::StreamReadFailed(source) => match source.downcast::<BodyError>() {
                Ok(error) => Self::Body(*error),
                Err(other) => Self::Malformed(other.to_string()),
            },
            other => Self::Malformed(other.to_string()),
        }
    }
}

/// A form that arrives.
pub(crate) struct Form {
    multipart: multer::Multipart<'static>,
    /// Bytes that may still arrive before the contents of the next part.
    head: Arc<AtomicUsize>,
    parts: usize,
}

/// A part of it.
pub(crate) struct Part {
    field: multer::Field<'static>,
}

impl Form {
    pub(crate) fn new(pieces: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static, boundary: String) -> Self {
        let head = Arc::new(AtomicUsize::new(HEAD));
        let left = Arc::clone(&head);
        // Before the end, too: the parser overlooks what is there when it learns of the end in the same moment.
        let paced = stream::unfold(Box::pin(pieces), async |mut pieces| {
            tokio::task::yield_now().await;
            pieces.next().await.map(|piece| (piece, pieces))
        });
        let bounded = paced.map(move |piece| {
            let piece: Bytes = piece.map_err(Problem::from)?;
            let allowed = left.load(Relaxed);
            if piece.len() > allowed {
                return Err(Problem::from("what stands before a part is too long"));
            }
            if allowed < usize::MAX {
                left.store(allowed - piece.len(), Relaxed);
            }
            Ok(piece)
        });
        Self { multipart: multer::Multipart::new(bounded, boundary), head, parts: 0 }
    }

    /// The next part, after the contents of the one before were taken; `None` at the end of the form.
    pub(crate) async fn next(&mut self) -> Result<Option<Part>, FormError> {
        self.parts += 1;
        if self.parts > PARTS {
            return Err(FormError::Malformed(format!("there are more than {PARTS} parts")));
        }
        self.head.store(HEAD, Relaxed);
        let field = self.multipart.next_field().await?;
        self.head.store(usize::MAX, Relaxed);
        Ok(field.map(|field| Part { field }))
    }

    /// Hands on the contents of a part, and reads the rest of the form.
    pub(crate) async fn hand_on(&mut self, mut content: Part, feeder: &Feeder) -> Result<(), FormError> {
        while let Some(piece) = content.piece().await? {
            if feeder.send(piece).await.is_err() {
                // Who failed says why, and needs nothing more.
                return Ok(());
            }
        }
        drop(content);
        while let Some(mut part) = self.next().await? {
            while part.piece().await?.is_some() {}
        }
        Ok(())
    }
}

impl Part {
    pub(crate) fn name(&self) -> Option<&str> {
        self.field.name()
    }

    /// The name of the file, if this is one.
    pub(crate) fn filename(&self) -> Option<String> {
        let disposition = self.field.headers().get(CONTENT_DISPOSITION).map(http::HeaderValue::as_bytes);
        // The extended form is more exact where both are given.
        disposition.and_then(extended_filename).or_else(|| self.field.file_name().map(str::to_owned))
    }

    /// The next piece of its contents.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, FormError> {
        Ok(self.field.chunk().await?)
    }
}

/// A boolean as the clients write it.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// The value of `filename*=utf-8''na%C3%AFve.txt` (RFC 5987).
fn extended_filename(disposition: &[u8]) -> Option<String> {
    const NAME: &str = "filename*=";
    let text = std::str::from_utf8(disposition).ok()?;
    let at = text.to_ascii_lowercase().find(NAME)?;
    let value = text.get(at + NAME.len()..)?.split(';').next()?.trim().trim_matches('"');
    let (charset, rest) = value.split_once('\'')?;
    let (_language, encoded) = rest.split_once('\'')?;
    let bytes = percent_decoded(encoded.as_bytes());
    if charset.eq_ignore_ascii_case("iso-8859-1") {
        return Some(bytes.into_iter().map(char::from).collect());
    }
    String::from_utf8(bytes).ok()
}

fn percent_decoded(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        let code = rest.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                text = &rest[2..];
            }
            _ => {
                bytes.push(*first);
                text = rest;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_names_are_decoded() {
        for (header, expected) in [
            ("form-data; name=\"file\"; filename*=utf-8''na%C3%AFve%20a.txt", Some("naïve a.txt")),
            ("form-data; filename=\"x\"; FileName*=UTF-8'en'%e2%82%ac; name=file", Some("€")),
            ("form-data; filename*=iso-8859-1''caf%E9", Some("café")),
            ("form-data; filename*=utf-8''100%", Some("100%")),
            ("form-data; filename*=utf-8''%ff", None),
            ("form-data; filename*=nothing", None),
            ("form-data; filename=\"plain\"", None),
        ] {
            assert_eq!(extended_filename(header.as_bytes()).as_deref(), expected, "{header}");
        }
    }

    #[tokio::test]
    async fn a_form_whose_head_does_not_end_is_not_collected() {
        let endless = stream::repeat_with(|| Ok(Bytes::from(vec![b'x'; 100_000])));
        let mut form = Form::new(endless, "b".into());
        let Err(FormError::Malformed(text)) = form.next().await.map(|_| ()) else { panic!() };
        assert!(text.contains("what stands before a part is too long"), "{text}");
    }

    #[tokio::test]
    async fn a_form_with_endless_parts_ends() {
        let part = "--b\r\ncontent-disposition: form-data; name=x\r\n\r\n\r\n";
        let mut form = Form::new(stream::repeat_with(move || Ok(Bytes::from(part))), "b".into());
        let mut parts = 0;
        let error = loop {
            match form.next().await {
                Ok(Some(mut part)) => while part.piece().await.unwrap().is_some() {},
                Ok(None) => panic!("it has no end"),
                Err(FormError::Malformed(text)) => break text,
                Err(FormError::Body(error)) => panic!("{error}"),
            }
            parts += 1;
        };
        assert_eq!((parts, error.as_str()), (1000, "there are more than 1000 parts"));
    }
}
