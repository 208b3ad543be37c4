//! Answers of targets on their way in: nothing in them shows a value.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    Extensions, HeaderMap, HeaderValue, Method, Response, StatusCode, Version,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, TRANSFER_ENCODING},
};
use hyper::{
    body::{Body, Frame, SizeHint},
    ext::ReasonPhrase,
};

use super::{
    decode::{Coding, DecodeError, Decoder},
    mask::{Mask, Patterns},
    upstream::Lease,
};
use crate::{headers::drop_connection_headers, refusal::Refusal};
use gloveport_allow_list::Target;

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The connection to the target broke.
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// It cannot be decompressed.
    #[error(transparent)]
    Coding(#[from] DecodeError),
}

/// Makes the head of an answer one for the sandbox, and says how its body is compressed.
pub(crate) fn covered_head<B: Body>(
    response: &mut Response<B>,
    method: &Method,
    target: &Target,
    patterns: &Patterns,
) -> Result<Option<Coding>, Refusal> {
    let refused = |coding: String| Refusal::Coding { target: target.clone(), coding };
    let bare =
        method == Method::HEAD || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status());
    let coding = match Coding::of(response.headers()) {
        Err(coding) if !bare => return Err(refused(coding)),
        Err(_) => None,
        // A part of something compressed cannot be decompressed.
        Ok(Some(coding)) if response.headers().contains_key(CONTENT_RANGE) && !bare => {
            return Err(refused(format!("{coding:?} of a part")));
        }
        Ok(coding) => coding,
    };
    for coding in response.headers().get_all(TRANSFER_ENCODING) {
        if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(refused(String::from_utf8_lossy(coding.as_bytes()).into_owned()));
        }
    }
    let reason = response.extensions_mut().remove::<ReasonPhrase>();
    *response.extensions_mut() = Extensions::new();
    if let Some(reason) = reason.and_then(|reason| covered_reason(reason, patterns)) {
        response.extensions_mut().insert(reason);
    }
    // Versions below 1.1 would end the connection inside.
    *response.version_mut() = Version::HTTP_11;
    let headers = response.headers_mut();
    drop_connection_headers(headers);
    headers.remove(TRANSFER_ENCODING);
    if coding.is_some() {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
    }
    cover_headers(headers, patterns);
    Ok(coding.filter(|_| !bare))
}

fn covered_reason(reason: ReasonPhrase, patterns: &Patterns) -> Option<ReasonPhrase> {
    match patterns.cover(reason.as_bytes()) {
        Some(covered) => ReasonPhrase::try_from(covered).ok(),
        None => Some(reason),
    }
}

/// Overwrites values in headers.
pub(crate) fn cover_headers(headers: &mut HeaderMap, patterns: &Patterns) {
    for value in headers.values_mut() {
        // What was a header with other bytes is one with `*`.
        if let Some(Ok(covered)) = patterns.cover(value.as_bytes()).map(|text| HeaderValue::from_bytes(&text)) {
            *value = covered;
        }
    }
}

/// The body of an answer, decompressed, with values overwritten, and the connection that it comes from.
pub(crate) struct Answer<B: Body> {
    body: B,
    decoder: Option<Decoder>,
    mask: Mask,
    patterns: Patterns,
    /// Trailers that wait until what was held back is out.
    trailers: Option<HeaderMap>,
    ended: bool,
    lease: Option<Lease>,
}

impl<B: Body> Answer<B> {
    pub(crate) fn new(body: B, coding: Option<Coding>, patterns: &Patterns, lease: Option<Lease>) -> Self {
        let decoder = coding.map(Decoder::new);
        let (mask, patterns) = (Mask::new(patterns.clone()), patterns.clone());
        Self { body, decoder, mask, patterns, trailers: None, ended: false, lease }
    }

    /// What can go out of what has come; `None` if there is nothing of it.
    fn decoded(&mut self) -> Option<Result<Bytes, DecodeError>> {
        let decoder = self.decoder.as_mut()?;
        loop {
            match decoder.next() {
                Ok(Some(piece)) => {
                    let shown = self.mask.pass(piece);
                    if !shown.is_empty() {
                        return Some(Ok(shown));
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Takes what the target sent.
    fn take(&mut self, data: Bytes) -> Option<Bytes> {
        if let Some(decoder) = &mut self.decoder {
            decoder.push(data);
            return None;
        }
        Some(self.mask.pass(data)).filter(|shown| !shown.is_empty())
    }

    /// The last frames: what was held back, and trailers.
    fn last(&mut self) -> Option<Frame<Bytes>> {
        let rest = self.mask.rest();
        if !rest.is_empty() {
            return Some(Frame::data(rest));
        }
        self.trailers.take().map(Frame::trailers)
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), DecodeError> {
        self.ended = true;
        self.trailers = trailers;
        if let Some(trailers) = &mut self.trailers {
            cover_headers(trailers, &self.patterns);
        }
        self.decoder.as_ref().map_or(Ok(()), Decoder::end)
    }
}

impl<B> Body for Answer<B>
where
    B: Body<Data = Bytes> + Unpin,
    BodyError: From<B::Error>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.last().map(Ok));
            }
            if let Some(decoded) = self.decoded() {
                return Poll::Ready(Some(decoded.map(Frame::data).map_err(BodyError::Coding)));
            }
            let ended = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data().map_err(Frame::into_trailers) {
                    Ok(data) => match self.take(data) {
                        Some(shown) => return Poll::Ready(Some(Ok(Frame::data(shown)))),
                        None => continue,
                    },
                    Err(trailers) => self.end(trailers.ok()),
                },
                None => self.end(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            };
            if let Err(error) = ended {
                return Poll::Ready(Some(Err(BodyError::Coding(error))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let come = self.ended || self.body.is_end_stream() && self.decoder.as_ref().is_none_or(Decoder::is_new);
        come && self.mask.waiting() == 0 && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let waiting = u64::try_from(self.mask.waiting()).unwrap_or(u64::MAX);
        let mut hint = SizeHint::default();
        if self.decoder.is_none() {
            let body = self.body.size_hint();
            hint.set_lower(body.lower().saturating_add(waiting));
            if let Some(upper) = body.upper() {
                hint.set_upper(upper.saturating_add(waiting));
            }
        }
        hint
    }
}

impl<B: Body> Drop for Answer<B> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && (self.ended || self.body.is_end_stream())
        {
            lease.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, StreamBody};

    fn patterns() -> Patterns {
        Patterns::new([b"secret-1".to_vec()].into()).unwrap()
    }

    async fn through(
        frames: Vec<Frame<Bytes>>,
        coding: Option<Coding>,
    ) -> Result<(Bytes, Option<HeaderMap>), BodyError> {
        let body = StreamBody::new(futures_util::stream::iter(frames.into_iter().map(Ok::<_, hyper::Error>)));
        let collected = Answer::new(body, coding, &patterns(), None).collect().await?;
        let trailers = collected.trailers().cloned();
        Ok((collected.to_bytes(), trailers))
    }

    #[tokio::test]
    async fn what_was_held_back_goes_out_before_trailers_which_are_covered_too() {
        let data = |text: &'static [u8]| Frame::data(Bytes::from_static(text));
        let trailers: HeaderMap = [(http::header::ETAG, HeaderValue::from_static("secret-1"))].into_iter().collect();
        let (body, end) =
            through(vec![data(b"a sec"), data(b"ret-1 secret-"), Frame::trailers(trailers)], None).await.unwrap();
        assert_eq!(body, "a ******** secret-");
        assert_eq!(end.unwrap()["etag"], "********");
    }

    #[tokio::test]
    async fn a_compressed_body_that_ends_early_is_an_error() {
        let begun = Frame::data(Bytes::from_static(b"\x1f\x8b\x08\0\0\0\0\0\0\x03"));
        let error = through(vec![begun], Some(Coding::Gzip)).await.unwrap_err();
        assert!(error.to_string().contains("too early"), "{error}");
        assert_eq!(through(Vec::new(), Some(Coding::Gzip)).await.unwrap().0, "");
    }
}
