//! The key of a sandbox, as its label carries it.
//!
//! Every backend with the same API key must find the key of a sandbox again, also of one that rests. Labels are the one place
//! for that, and are shown on dashboards and to everybody of the team; so the key is encrypted there with one that follows from
//! the API key.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gloveport_protocol::Secret;
use gloveport_provider::SessionId;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

/// The system gives no random numbers.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct Failed;

impl From<Unspecified> for Failed {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

fn cipher(purpose: &str, api_key: &Secret) -> Result<LessSafeKey, Unspecified> {
    let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, api_key.expose().as_bytes()), purpose.as_bytes());
    UnboundKey::new(&CHACHA20_POLY1305, derived.as_ref()).map(LessSafeKey::new)
}

/// The key of a session's sandbox for its label. `purpose` says what the API key is used for here: of two purposes, neither opens
/// what the other one has sealed.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn seal(purpose: &str, api_key: &Secret, session: &SessionId, key: &Secret) -> Result<String, Failed> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce)?;
    let mut text = key.expose().as_bytes().to_vec();
    let session = Aad::from(session.as_str());
    cipher(purpose, api_key)?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), session, &mut text)?;
    Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat()))
}

/// The key that a label carries; none if it was sealed for another purpose, with another API key, or for another session.
pub fn open(purpose: &str, api_key: &Secret, session: &SessionId, sealed: &str) -> Option<Secret> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>()?;
    let mut text = text.to_vec();
    let cipher = cipher(purpose, api_key).ok()?;
    let session = Aad::from(session.as_str());
    let opened = cipher.open_in_place(Nonce::assume_unique_for_key(*nonce), session, &mut text).ok()?;
    std::str::from_utf8(opened).ok().map(Secret::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: &str = "gloveport: keys of E2B sandboxes, 1";

    #[test]
    fn a_sealed_key_opens_with_the_same_api_key_for_the_same_session_alone() {
        let session = |name: &str| SessionId::new(name).unwrap();
        let (api_key, key) = (Secret::new("e2b_1"), Secret::new("key-of-the-sandbox"));
        let sealed = seal(PURPOSE, &api_key, &session("s"), &key).unwrap();
        assert!(!sealed.contains("key-of"), "{sealed}");
        assert_ne!(seal(PURPOSE, &api_key, &session("s"), &key).unwrap(), sealed);
        assert_eq!(open(PURPOSE, &api_key, &session("s"), &sealed), Some(key));
        assert_eq!(open("another purpose", &api_key, &session("s"), &sealed), None);
        assert_eq!(open(PURPOSE, &Secret::new("e2b_2"), &session("s"), &sealed), None);
        assert_eq!(open(PURPOSE, &api_key, &session("t"), &sealed), None);
        for broken in ["", "x", "!", &sealed[1..], &sealed[..sealed.len() - 2]] {
            assert_eq!(open(PURPOSE, &api_key, &session("s"), broken), None, "{broken}");
        }
    }

    #[test]
    fn what_earlier_builds_have_sealed_is_still_opened() {
        let (api_key, session) = (Secret::new("e2b_1"), SessionId::new("s").unwrap());
        let sealed = "AAECAwQFBgcICQoLkeRTV9jv6lbuZ_96TC3z4DBmfUdfTYddv8FgHNy3A38QXw";
        assert_eq!(open(PURPOSE, &api_key, &session, sealed), Some(Secret::new("key-of-the-sandbox")));
    }
}
