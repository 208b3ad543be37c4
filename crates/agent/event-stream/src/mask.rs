//! Secrets are hidden in what is written down or shown (event-stream 4.3).
//!
//! A secret is found as it is, and in the forms in which shells and programs print it:
//!
//! | form | printed by |
//! |---|---|
//! | literal, with `\n` or `\r\n` for a line break | everything; terminals |
//! | `'…'` with `'\''` or `'"'"'` for a quote | `${v@Q}`, `set`, `set -x`, `export -p` of other shells |
//! | backslash escapes of any kind, also mixed: `\c`, `\n`, `\x0a`, `\012`, `\u000a`, `\u{a}`, `\U0000000a` | `printf %q`, `declare -p`, `$'…'`, JSON, Python's `repr`, Rust, C |
//! | the same, escaped once more | JSON within JSON |
//! | `%XX`, `+` for a space | URLs, forms |
//! | `&amp;` and its like | HTML, XML |
//! | base64 of both alphabets, in any of the three alignments, padded or not, wrapped or not | `base64`, `Authorization: Basic`, Kubernetes secrets |
//! | hexadecimal of both cases, with or without separators | `xxd -p`, `od`, `hexdump` |
//! | each line of at least 16 characters | a part of a key file |
//! | without the blanks around it | `$(…)` |
//! | without the first and the last line of a PEM file, which say nothing | all but the literal form are made of this |
//!
//! Matches that overlap become one replacement, so a secret that contains another, or shares text with it, is hidden
//! whole.
//!
//! What is not found: a secret that a terminal wraps or a program cuts into pieces, compresses, encrypts, reverses or
//! changes the case of; a part of it (a single line of the base64 form); dumps with an offset before each row. In
//! base64 that has other text before the secret, the one symbol that both share is left: it shows at most four bits.
//!
//! Short forms would hide ordinary text: a form other than the literal one counts only if what it matches has at least
//! 6 bytes; base64 needs 6 symbols that the secret alone decides (5 bytes of secret), hexadecimal 8 digits. The literal
//! form is found at any length, also a secret of one character, as OpenHands does. Empty secrets are skipped.

mod coded;
mod escapes;
mod outcome;
mod patterns;
mod pieces;
mod stream;
mod units;

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use gloveport_protocol::Secret;
use serde_json::Value;

pub use stream::MaskStream;

use patterns::{Ending, Patterns, Resume};

/// What stands in the place of a secret (event-stream 4.3).
pub const HIDDEN: &str = "<secret_hidden>";

/// What is never masked at the top level of an event (event-stream 4.3).
const PROTECTED: [&str; 7] = ["timestamp", "id", "source", "cause", "action", "observation", "message"];

/// Hides secrets in text and in events.
///
/// The secrets and the forms made of them are wiped from memory when the last masker and stream that use them are
/// dropped. Not wiped: what the making of the forms leaves in freed memory when a list grows, and masked or unmasked
/// text that was handed out.
#[derive(Clone, Default)]
pub struct Masker {
    secrets: BTreeMap<String, Secret>,
    patterns: Arc<Patterns>,
}

impl Masker {
    /// Takes these secrets in the place of those before.
    pub fn set(&mut self, secrets: BTreeMap<String, Secret>) {
        self.patterns = Arc::new(Patterns::new(secrets.values().map(Secret::expose)));
        self.secrets = secrets;
    }

    /// Takes these secrets in addition; one with the name of an earlier one replaces it.
    pub fn update(&mut self, secrets: BTreeMap<String, Secret>) {
        let mut all = std::mem::take(&mut self.secrets);
        all.extend(secrets);
        self.set(all);
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The text with [`HIDDEN`] in the place of each secret.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(into_text(masked)),
        }
    }

    /// The same for bytes that need not be text.
    pub fn mask_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.patterns.first_match(bytes).is_none() {
            return Cow::Borrowed(bytes);
        }
        let mut masked = Vec::with_capacity(bytes.len());
        self.patterns.scan(bytes, Resume::default(), Ending::Here, &mut masked);
        Cow::Owned(masked)
    }

    /// Masks a serialised event: every text in it, however deep in maps and lists, but not the names of fields, and
    /// not these fields of the event itself: `timestamp`, `id`, `source`, `cause`, `action`, `observation`, `message`.
    pub fn mask_value(&self, event: &mut Value) {
        if self.is_empty() {
            return;
        }
        match event {
            Value::Object(fields) => {
                let open = fields.iter_mut().filter(|(name, _)| !PROTECTED.contains(&name.as_str()));
                open.for_each(|(_, value)| self.mask_all(value));
            }
            other => self.mask_all(other),
        }
    }

    /// Masks output that arrives in chunks. The stream keeps the secrets of now, whatever is set later.
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(Arc::clone(&self.patterns))
    }

    /// Masks every text of a value. The depth is bounded: `serde_json` reads at most 128 levels, and the callers build
    /// values of a few.
    fn mask_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_all(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_all(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masker").finish_non_exhaustive()
    }
}

/// Text from bytes that are text: every form of a secret begins and ends between characters.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
