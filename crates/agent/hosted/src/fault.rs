//! Which error an answer of the service is (`hosted-apis` 7).

use std::fmt::Display;

use gloveport_provider::ProviderError;
use http::StatusCode;
use serde::Deserialize;

/// Most characters of what an error repeats of an answer.
const SHOWN: usize = 500;

/// The words of messages about a service: what it is called, and what to do where it refuses something.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What it is called.
    pub name: &'static str,
    /// There is no key.
    pub no_key: &'static str,
    /// The key is not known (401).
    pub wrong_key: &'static str,
    /// The key may not do this (403).
    pub forbidden: &'static str,
    /// Something is to be paid (402).
    pub payment: &'static str,
    /// There are too many sandboxes or requests (429).
    pub quota: &'static str,
    /// It cannot be reached.
    pub network: &'static str,
    /// A disk is full (507).
    pub disk: &'static str,
}

/// A setting or a wish that cannot be met.
pub fn wrong(field: impl Into<String>, reason: impl Display) -> ProviderError {
    ProviderError::Spec { field: field.into(), reason: reason.to_string() }
}

/// The service failed, or what it answered is of no use.
pub fn failed(engine: &str, action: &str, reason: impl Display) -> ProviderError {
    ProviderError::Engine { engine: engine.to_owned(), action: action.to_owned(), reason: reason.to_string() }
}

/// What the body of a refusal says: `message`, which may be a list of texts.
pub fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Message {
        One(String),
        Several(Vec<String>),
    }
    #[derive(Deserialize)]
    struct Told {
        message: Message,
    }
    let told = serde_json::from_slice::<Told>(body).map(|told| match told.message {
        Message::One(text) => text,
        Message::Several(texts) => texts.join("; "),
    });
    let text = told.unwrap_or_else(|_| String::from_utf8_lossy(body).trim().to_owned());
    text.chars().take(SHOWN).collect()
}

/// The error that a status is. `engine` is the service with its address.
pub fn refused(words: &Words, engine: &str, action: &str, status: StatusCode, body: &[u8]) -> ProviderError {
    let told = message(body);
    let reason = if told.is_empty() { format!("status {status}") } else { format!("{told} (status {status})") };
    let access =
        |hint: &str| ProviderError::Access { engine: engine.to_owned(), reason: reason.clone(), hint: hint.to_owned() };
    let later = |hint: &str| ProviderError::Unreachable {
        engine: engine.to_owned(),
        source: reason.clone().into(),
        hint: hint.to_owned(),
    };
    match status {
        StatusCode::UNAUTHORIZED => access(words.wrong_key),
        StatusCode::FORBIDDEN => access(words.forbidden),
        StatusCode::PAYMENT_REQUIRED => access(words.payment),
        StatusCode::TOO_MANY_REQUESTS => later(words.quota),
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => later("try it later"),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            wrong("a wish", format!("{engine} does not {action}: {reason}"))
        }
        StatusCode::CONFLICT => failed(engine, action, format!("{reason}; it is doing something else, try it again")),
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            failed(engine, action, format!("{reason}; it does not offer that"))
        }
        StatusCode::INSUFFICIENT_STORAGE => failed(engine, action, format!("{reason}; {}", words.disk)),
        _ => failed(engine, action, reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words {
        name: "E2B",
        no_key: "",
        wrong_key: "look at E2B_API_KEY",
        forbidden: "the key may not do this",
        payment: "look at the billing",
        quota: "as many sandboxes or requests as its plan allows",
        network: "",
        disk: "take a larger disk",
    };

    #[test]
    fn every_status_says_what_to_do() {
        let body = br#"{"code": 1, "message": "because"}"#;
        for (status, temporary, expected) in [
            (402, false, "look at the billing"),
            (401, false, "refuses access: because (status 401 Unauthorized); look at E2B_API_KEY"),
            (403, false, "the key may not do this"),
            (400, false, "a wish of the sandbox cannot be used: E2B does not make one: because"),
            (404, false, "E2B could not make one: because (status 404 Not Found)"),
            (409, false, "try it again"),
            (429, true, "as many sandboxes or requests as its plan allows"),
            (500, false, "E2B could not make one: because (status 500 Internal Server Error)"),
            (502, true, "try it later"),
            (503, true, "try it later"),
            (504, true, "try it later"),
            (507, false, "a larger disk"),
        ] {
            let error = refused(&WORDS, "E2B", "make one", StatusCode::from_u16(status).unwrap(), body);
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.is_temporary(), temporary, "{error}");
        }
        let long = "x".repeat(10_000);
        assert_eq!(message(long.as_bytes()).len(), SHOWN);
        assert_eq!(message(b""), "");
        assert_eq!(message(br#"{"message": ["a", "b"]}"#), "a; b");
    }
}
