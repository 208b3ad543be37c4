//! The tokens of a sandbox. They follow from the key of its server, so every gateway over the engine knows the same ones, and
//! they end with the sandbox.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use gloveport_provider::Sandbox;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Files, processes and the code interpreter (`X-Access-Token`).
    Agent,
    /// The code interpreter and the ports (`E2B-Traffic-Access-Token`).
    Traffic,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Traffic => "traffic",
        }
    }
}

/// The token of a sandbox; none where its server has no key, as then nothing is secret of which it could be made.
pub(crate) fn of(sandbox: &Sandbox, purpose: Purpose) -> Option<String> {
    let key = sandbox.session_key.as_ref().filter(|key| !key.is_empty())?;
    let mut digest = Sha256::new();
    for part in ["gloveport e2b", purpose.word(), sandbox.id.as_str(), key.expose()] {
        // No two lists of parts are one text.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut token = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing into a string cannot fail.
        let _ = write!(token, "{byte:02x}");
    }
    Some(token)
}

/// Whether a token is that of the sandbox.
pub(crate) fn is_of(sandbox: &Sandbox, purpose: Purpose, shown: Option<&str>) -> bool {
    let (Some(token), Some(shown)) = (of(sandbox, purpose), shown) else { return false };
    token.as_bytes().ct_eq(shown.as_bytes()).into()
}

/// What a signed URL of a file says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) path: &'a str,
    /// `read` or `write`.
    pub(crate) operation: &'a str,
    pub(crate) user: &'a str,
    pub(crate) signature: &'a str,
    /// In seconds since 1970.
    pub(crate) expiration: Option<&'a str>,
}

impl Signed<'_> {
    /// Whether it was signed with the token of the sandbox, and its time is not over.
    pub(crate) fn is_good(&self, sandbox: &Sandbox) -> bool {
        let Some(token) = of(sandbox, Purpose::Agent) else { return false };
        let Self { path, operation, user, signature, expiration } = *self;
        let over = expiration.map(|text| text.parse::<i64>().map(|until| until < Timestamp::now().as_second()));
        if !matches!(over, None | Some(Ok(false))) {
            return false;
        }
        let until = expiration.map(|until| format!(":{until}")).unwrap_or_default();
        let digest = Sha256::digest(format!("{path}:{operation}:{user}:{token}{until}"));
        let expected = format!("v1_{}", STANDARD_NO_PAD.encode(digest));
        expected.as_bytes().ct_eq(signature.as_bytes()).into()
    }
}
