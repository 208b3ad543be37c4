//! Digests: what images and their parts are called, and checked by.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::words;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its 64 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        gloveport_ids::hex(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shown = || words::shown(text, 100);
        let Some(hex) = text.strip_prefix("sha256:") else {
            return Err(format!("`{}` is no SHA-256 digest, and no others are supported", shown()));
        };
        let wrong = || format!("`{}` is no digest: `sha256:` and 64 lower-case hexadecimal digits are one", shown());
        if hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = hex.get(at * 2..at * 2 + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// The digest and length of bytes that pass by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passing {
    hash: Sha256,
    bytes: u64,
}

impl Passing {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
    }

    /// How many bytes have passed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(self.hash.finalize().into())
    }
}

/// A reader whose bytes are counted and hashed as they are read.
pub(crate) struct Hashing<R> {
    inner: R,
    passing: Passing,
}

impl<R> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, passing: Passing::default() }
    }

    pub(crate) fn passed(self) -> Passing {
        self.passing
    }
}

impl<R: io::Read> io::Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.passing.update(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written_and_nothing_else_is_one() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(text.parse::<Digest>().unwrap(), Digest::of(b""));
        assert_eq!(Digest::of(b"").to_string(), text);
        let upper = text.to_uppercase().replace("SHA", "sha");
        for wrong in ["", "sha256:", "sha256:../../etc/passwd", "sha512:00", &text[..70], &format!("{text}0"), &upper] {
            wrong.parse::<Digest>().unwrap_err();
        }
    }
}
