//! Messages as they travel.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct SessionId(Arc<str>);

impl From<String> for SessionId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for SessionId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A call.
#[derive(Serialize)]
pub(super) struct Outgoing<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) params: Value,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<&'a SessionId>,
}

/// What Chromium says.
pub(super) enum Incoming {
    Answer(Answer),
    Event { session: Option<SessionId>, method: String, parameters: Value },
}

/// The answer to a call.
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Refusal>,
}

#[derive(Deserialize)]
pub(super) struct Refusal {
    #[serde(default)]
    pub(super) message: String,
}

impl Incoming {
    /// Reads a message; none if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Message {
            id: Option<u64>,
            method: Option<String>,
            #[serde(rename = "sessionId")]
            session: Option<SessionId>,
            #[serde(default)]
            params: Value,
            result: Option<Value>,
            error: Option<Refusal>,
        }
        let message = serde_json::from_slice::<Message>(bytes).or_else(|error| {
            // A text of a page may have the half of a character.
            whole_characters(bytes).map_or(Err(error), |bytes| serde_json::from_slice(&bytes))
        });
        match message {
            Ok(Message { id: Some(id), result, error, .. }) => Some(Self::Answer(Answer { id, result, error })),
            Ok(Message { method: Some(method), session, params, .. }) => {
                Some(Self::Event { session, method, parameters: params })
            }
            Ok(_) => None,
            // Something of a page is nested deeper than a reader goes: whoever asked for it is told.
            Err(error) => {
                let message = format!("the answer cannot be read: {error}");
                Some(Self::Answer(Answer { id: leading_id(bytes)?, result: None, error: Some(Refusal { message }) }))
            }
        }
    }
}

/// The same with U+FFFD in the place of each half of a character (`\ud800` to `\udfff` without the other half); none if
/// there is no such half.
fn whole_characters(bytes: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut found = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(b"\\ufffd");
                found = true;
                at += 6;
                continue;
            }
            // An escape is taken whole, so that the second of two backslashes begins nothing.
            _ if *byte == b'\\' => 2,
            _ => 1,
        };
        out.extend_from_slice(bytes.get(at..(at + length).min(bytes.len())).unwrap_or_default());
        at += length;
    }
    found.then_some(out)
}

/// The id of an answer, which comes first.
fn leading_id(bytes: &[u8]) -> Option<u64> {
    let rest = bytes.strip_prefix(br#"{"id":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_nested_too_deeply_is_a_refusal_of_its_call() {
        let deep = format!(r#"{{"id":17,"result":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        let Some(Incoming::Answer(answer)) = Incoming::read(deep.as_bytes()) else { panic!("no answer") };
        assert_eq!((answer.id, answer.result), (17, None));
        assert!(answer.error.unwrap().message.starts_with("the answer cannot be read"));
    }

    #[test]
    fn halves_of_characters_are_replaced_and_whole_ones_are_kept() {
        let message = br#"{"method":"A.b","params":["\ud83d\ude00 \ud83d \ude00x","\\ud83d","\u0041\ud83d\u0041"]}"#;
        let Some(Incoming::Event { parameters, .. }) = Incoming::read(message) else { panic!("no event") };
        assert_eq!(parameters, serde_json::json!(["\u{1f600} \u{fffd} \u{fffd}x", "\\ud83d", "A\u{fffd}A"]));
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        for bytes in ["", "{", "[]", "{}", r#"{"result":{}}"#, "null", r#"{"id":-1}"#] {
            assert!(Incoming::read(bytes.as_bytes()).is_none(), "{bytes}");
        }
    }
}
