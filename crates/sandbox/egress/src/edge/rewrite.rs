//! Placeholders in the head of a request become values.

use std::{collections::BTreeSet, sync::Arc};

use aho_corasick::AhoCorasick;
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{
    HeaderName, HeaderValue,
    header::{AUTHORIZATION, HOST},
    uri::PathAndQuery,
};

use gloveport_edge::EdgeSecret;

use super::{
    error::EdgeError,
    head::Head,
    mask::Patterns,
    spelling::{in_path, in_query, spellings},
};
use crate::refusal::Refusal;

/// Base64 as programs write it, with `=` at the end or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secrets of one target.
pub(crate) struct Bound {
    secrets: Vec<Arc<EdgeSecret>>,
    placeholders: AhoCorasick,
    answers: Patterns,
}

/// What a request got.
#[derive(Default)]
pub(crate) struct PutIn {
    /// Which secrets, as numbers of [`Bound`].
    used: BTreeSet<usize>,
    /// Credentials in Base64 that a value is in.
    credentials: Vec<Vec<u8>>,
}

impl Bound {
    pub(crate) fn new(secrets: Vec<Arc<EdgeSecret>>) -> Result<Self, EdgeError> {
        let too_many = |error: aho_corasick::BuildError| EdgeError::Secret {
            name: secrets.first().map(|secret| secret.name.clone()).unwrap_or_default(),
            reason: format!("there is too much to look for: {error}"),
        };
        let placeholders = AhoCorasick::new(secrets.iter().map(|secret| &secret.placeholder)).map_err(too_many)?;
        let texts = secrets.iter().flat_map(|secret| spellings(&secret.value)).collect();
        let answers = Patterns::new(texts).map_err(too_many)?;
        Ok(Self { secrets, placeholders, answers })
    }

    /// Puts the values into the head of a request, which has at most `limit` bytes then.
    pub(crate) fn put_in(&self, head: &mut Head, limit: usize) -> Result<PutIn, Refusal> {
        let mut put_in = PutIn::default();
        if let Some(path) = self.path(&head.path, &mut put_in) {
            check_size(path.len(), limit)?;
            head.path = path.try_into().map_err(|_| Refusal::HeadTooLarge { limit })?;
        }
        for (name, value) in &mut head.headers {
            if *name != HOST
                && let Some(replaced) = self.header(name, value, &mut put_in)?
            {
                *value = replaced;
            }
        }
        if !put_in.used.is_empty() {
            let bytes = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
            check_size(bytes, limit)?;
        }
        Ok(put_in)
    }

    /// The names of those that were used.
    pub(crate) fn names(&self, put_in: &PutIn) -> impl Iterator<Item = &str> {
        put_in.used.iter().filter_map(|index| self.secrets.get(*index)).map(|secret| secret.name.as_str())
    }

    /// What must not be in the answer to a request.
    pub(crate) fn answers(&self, put_in: PutIn) -> Patterns {
        // More patterns than can be looked for were refused when the edge was made; one more is not too much.
        self.answers.with(put_in.credentials).unwrap_or_else(|_| self.answers.clone())
    }

    fn path(&self, path: &PathAndQuery, put_in: &mut PutIn) -> Option<Vec<u8>> {
        let whole = path.as_str();
        if !self.placeholders.is_match(whole) {
            return None;
        }
        let (before, query) = whole.split_at(whole.find('?').unwrap_or(whole.len()));
        let replaced = |text: &str, spell: fn(&str) -> String, put_in: &mut PutIn| {
            let value = |secret: &EdgeSecret| spell(&secret.value).into_bytes();
            self.replace(text.as_bytes(), value, put_in).unwrap_or_else(|| text.as_bytes().to_vec())
        };
        let before = replaced(before, in_path, put_in);
        Some([before, replaced(query, in_query, put_in)].concat())
    }

    fn header(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
        put_in: &mut PutIn,
    ) -> Result<Option<HeaderValue>, Refusal> {
        let mut here = PutIn::default();
        let basic = if *name == AUTHORIZATION { self.basic(value.as_bytes(), &mut here) } else { None };
        let as_it_is = |secret: &EdgeSecret| secret.value.as_bytes().to_vec();
        let Some(text) = basic.or_else(|| self.replace(value.as_bytes(), as_it_is, &mut here)) else { return Ok(None) };
        let Ok(mut replaced) = HeaderValue::from_bytes(&text) else {
            let secrets: Vec<_> = self.names(&here).collect();
            return Err(Refusal::NoHeader { header: name.clone(), secrets: secrets.join(", ") });
        };
        // It is not put into tables of compression, and not shown.
        replaced.set_sensitive(true);
        put_in.used.append(&mut here.used);
        put_in.credentials.append(&mut here.credentials);
        Ok(Some(replaced))
    }

    /// `Basic` credentials with the values inside.
    fn basic(&self, value: &[u8], put_in: &mut PutIn) -> Option<Vec<u8>> {
        let space = memchr::memchr(b' ', value)?;
        let (scheme, token) = value.split_at(space);
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let decoded = BASE64.decode(token.trim_ascii()).ok()?;
        let as_it_is = |secret: &EdgeSecret| secret.value.as_bytes().to_vec();
        let token = BASE64.encode(self.replace(&decoded, as_it_is, put_in)?);
        put_in.credentials.push(token.trim_end_matches('=').as_bytes().to_vec());
        Some([scheme, b" ", token.as_bytes()].concat())
    }

    /// A text with the values in place of their placeholders, if there are any.
    fn replace(&self, text: &[u8], value: impl Fn(&EdgeSecret) -> Vec<u8>, put_in: &mut PutIn) -> Option<Vec<u8>> {
        let mut replaced = Vec::new();
        let mut at = 0;
        for found in self.placeholders.find_iter(text) {
            let index = found.pattern().as_usize();
            let secret = self.secrets.get(index)?;
            replaced.extend_from_slice(&text[at..found.start()]);
            replaced.extend_from_slice(&value(secret));
            put_in.used.insert(index);
            at = found.end();
        }
        (at > 0).then(|| {
            replaced.extend_from_slice(&text[at..]);
            replaced
        })
    }
}

fn check_size(bytes: usize, limit: usize) -> Result<(), Refusal> {
    if bytes > limit { Err(Refusal::HeadTooLarge { limit }) } else { Ok(()) }
}
