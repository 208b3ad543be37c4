//! An event with its number, its time, and its place in the chain.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::event::Event;

/// What stands between what is hashed and the hash.
const BEFORE_HASH: &str = ",\"hash\":\"";
/// Most bytes of a line. What is kept of texts is far shorter.
pub(crate) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// What stands behind the hash.
const END: &str = "\"}";

/// A line of a log. It is hashed as it stands, up to its own hash; the hash of the line before is a part of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// 1 for the first line of the file.
    pub number: u64,
    /// When it was written, by the clock of the machine.
    pub time: Timestamp,
    /// The session that the sandbox is for.
    pub session: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// The hash of the line before; zeros for the first.
    pub previous: Hash,
    /// SHA-256 of the line up to `,"hash":`.
    pub hash: Hash,
}

/// A record before it is hashed, with the fields in the order in which they are written.
#[derive(Serialize)]
struct Unhashed<'a> {
    number: u64,
    time: Timestamp,
    session: &'a str,
    #[serde(flatten)]
    event: &'a Event,
    previous: Hash,
}

/// A hash of the chain.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

/// A text that is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct NoHash;

impl FromStr for Hash {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Self, NoHash> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(NoHash);
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = match pair {
                [high, low] => digit(*high).ok_or(NoHash)? << 4 | digit(*low).ok_or(NoHash)?,
                _ => return Err(NoHash),
            };
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The line of an event behind a record of this hash, its line feed included, and its own hash.
pub(crate) fn line(
    number: u64,
    session: &str,
    event: &Event,
    previous: Hash,
) -> Result<(String, Hash), serde_json::Error> {
    let mut line = serde_json::to_string(&Unhashed { number, time: Timestamp::now(), session, event, previous })?;
    // Its brace comes behind the hash.
    line.pop();
    let hash = Hash::of(line.as_bytes());
    Ok((format!("{line}{BEFORE_HASH}{hash}{END}\n"), hash))
}

/// A line without its line feed, and whether its hash is its own; `None` if it is no record.
pub(crate) fn parse(line: &str) -> Option<(Record, bool)> {
    let record: Record = serde_json::from_str(line).ok()?;
    let (hashed, written) = line.rsplit_once(BEFORE_HASH)?;
    let is_own = written.strip_suffix(END)?.parse() == Ok(record.hash) && Hash::of(hashed.as_bytes()) == record.hash;
    Some((record, is_own))
}
