//! The frames of gRPC, and how a call has ended (`hosted-apis` 5.1).

use std::{borrow::Cow, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use prost::Message;

use crate::wire::{RetryPolicy, RichStatus};

/// Largest message that is taken (`hosted-apis` 5.1).
const MESSAGE: usize = 100 * 1024 * 1024;
/// Most of what an error repeats of an answer.
const SHOWN: usize = 500;
/// The flag and the length before a message.
const HEAD: usize = 5;

/// Why a call has not succeeded, in the numbers of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Code {
    fn of(number: &str) -> Self {
        match number {
            "1" => Self::Cancelled,
            "3" => Self::InvalidArgument,
            "4" => Self::DeadlineExceeded,
            "5" => Self::NotFound,
            "6" => Self::AlreadyExists,
            "7" => Self::PermissionDenied,
            "8" => Self::ResourceExhausted,
            "9" => Self::FailedPrecondition,
            "10" => Self::Aborted,
            "11" => Self::OutOfRange,
            "12" => Self::Unimplemented,
            "13" => Self::Internal,
            "14" => Self::Unavailable,
            "15" => Self::DataLoss,
            "16" => Self::Unauthenticated,
            _ => Self::Unknown,
        }
    }

    /// What an answer of something between here and the service means, which does not speak gRPC.
    fn of_http(status: StatusCode) -> Self {
        match status.as_u16() {
            400 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502..=504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

/// How a call has failed.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The service says when the call is to be repeated.
    pub(crate) retry_after: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The service said so.
    Status(Status),
    /// The connection failed.
    Network(String),
}

impl Failure {
    pub(crate) fn code(&self) -> Option<Code> {
        match self {
            Self::Status(status) => Some(status.code),
            Self::Network(_) => None,
        }
    }

    fn broken(reason: impl Into<String>) -> Self {
        Self::Network(reason.into())
    }

    fn internal(message: String) -> Self {
        Self::Status(Status { code: Code::Internal, message, retry_after: None })
    }
}

/// A message as it is sent.
pub(crate) fn framed<M: Message>(message: &M) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(HEAD + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.put(message.encode_to_vec().as_slice());
    frame.freeze()
}

/// How a call has ended, by its trailers or by a head that has them.
fn ended(headers: &HeaderMap) -> Option<Result<(), Failure>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status")?;
    if code == "0" {
        return Some(Ok(()));
    }
    let message = text("grpc-message").map_or(Cow::Borrowed(""), |text| percent_decode_str(text).decode_utf8_lossy());
    let message = message.chars().take(SHOWN).collect();
    let details = text("grpc-status-details-bin").and_then(|text| {
        let bytes = STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        RichStatus::decode(bytes.as_slice()).ok()
    });
    let policy = details.iter().flat_map(|status| &status.details).find_map(|detail| {
        let is_policy = detail.type_url.ends_with("modal.client.RPCRetryPolicy");
        is_policy.then(|| RetryPolicy::decode(detail.value.as_slice()).ok()).flatten()
    });
    let retry_after = policy.and_then(|policy| Duration::try_from_secs_f32(policy.retry_after_secs).ok());
    Some(Err(Failure::Status(Status { code: Code::of(code), message, retry_after })))
}

/// The messages of an answer, as they come.
pub(crate) struct Messages<M> {
    body: Incoming,
    buffer: BytesMut,
    is_over: bool,
    of: std::marker::PhantomData<fn() -> M>,
}

impl<M: Message + Default> Messages<M> {
    /// Those of an answer that has begun.
    pub(crate) fn of(answer: Response<Incoming>) -> Result<Self, Failure> {
        let (head, body) = answer.into_parts();
        if let Some(Err(failure)) = ended(&head.headers) {
            return Err(failure);
        }
        if head.status != StatusCode::OK {
            let message = format!("it answers with the HTTP status {}", head.status);
            return Err(Failure::Status(Status { code: Code::of_http(head.status), message, retry_after: None }));
        }
        Ok(Self { body, buffer: BytesMut::new(), is_over: false, of: std::marker::PhantomData })
    }

    /// The next one; none at the end of a call that has succeeded.
    pub(crate) async fn next(&mut self) -> Result<Option<M>, Failure> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            if self.is_over {
                return Ok(None);
            }
            let frame = match self.body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Failure::broken(gloveport_client::causes(&error))),
                None => return Err(Failure::broken("the answer ended before its end")),
            };
            match frame.into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    ended(&trailers).unwrap_or_else(|| Err(Failure::broken("the answer has no status")))?;
                    self.is_over = true;
                }
            }
        }
    }

    /// A message that has come whole.
    fn whole(&mut self) -> Result<Option<M>, Failure> {
        let Some((head, rest)) = self.buffer.split_at_checked(HEAD) else { return Ok(None) };
        let length = head.get(1..).map_or(0, |mut bytes| bytes.get_u32());
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if head.first() != Some(&0) {
            return Err(Failure::internal("its answer is compressed, which nobody asked for".to_owned()));
        }
        if length > MESSAGE {
            return Err(Failure::internal(format!("its answer has more than {MESSAGE} bytes")));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let message = self.buffer.split_to(length);
        let not_understood = |error| Failure::internal(format!("its answer is not understood: {error}"));
        M::decode(message).map(Some).map_err(not_understood)
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::wire::{AnyMessage, Text};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_status_has_its_words_and_says_when_to_come_again() {
        let detail = AnyMessage {
            type_url: "type.googleapis.com/modal.client.RPCRetryPolicy".to_owned(),
            value: RetryPolicy { retry_after_secs: 1.5 }.encode_to_vec(),
        };
        let rich = RichStatus { code: 8, message: String::new(), details: vec![detail] }.encode_to_vec();
        for encoded in [STANDARD.encode(&rich), STANDARD_NO_PAD.encode(&rich)] {
            let told = headers(&[
                ("grpc-status", "8"),
                ("grpc-message", "too%20many"),
                ("grpc-status-details-bin", encoded.as_str()),
            ]);
            let Some(Err(Failure::Status(status))) = ended(&told) else { panic!("{told:?}") };
            assert_eq!((status.code, status.message.as_str()), (Code::ResourceExhausted, "too many"));
            assert_eq!(status.retry_after, Some(Duration::from_millis(1500)));
        }
        assert!(matches!(ended(&headers(&[("grpc-status", "0")])), Some(Ok(()))));
        assert!(ended(&HeaderMap::new()).is_none());
    }

    #[test]
    fn details_that_nobody_understands_are_passed_over() {
        for details in ["!", "AAAA", ""] {
            let told = headers(&[("grpc-status", "99"), ("grpc-status-details-bin", details)]);
            let Some(Err(Failure::Status(status))) = ended(&told) else { panic!("{told:?}") };
            assert_eq!((status.code, status.retry_after), (Code::Unknown, None));
        }
    }

    #[test]
    fn a_frame_is_a_flag_a_length_and_the_message() {
        let frame = framed(&Text { text: "abc".to_owned() });
        assert_eq!(&frame[..], b"\0\0\0\0\x05\x0a\x03abc");
    }
}
