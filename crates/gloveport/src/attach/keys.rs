//! The keys that leave a terminal without ending it, in Docker's notation.

use std::{fmt, str::FromStr};

/// Keys that have to be typed one after the other; without any there is no way to leave but the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKeys(Vec<u8>);

impl Default for DetachKeys {
    /// `ctrl-p,ctrl-q`.
    fn default() -> Self {
        Self(vec![0x10, 0x11])
    }
}

impl DetachKeys {
    /// None at all.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }
}

impl FromStr for DetachKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::none());
        }
        text.split(',').map(key).collect::<Result<_, _>>().map(Self)
    }
}

fn key(text: &str) -> Result<u8, String> {
    let control = |name: &str| match name.as_bytes() {
        [letter @ (b'a'..=b'z' | b'A'..=b'Z')] => Some(letter.to_ascii_uppercase() - b'@'),
        [sign @ (b'@' | b'[' | b'\\' | b']' | b'^' | b'_')] => Some(sign - b'@'),
        _ => None,
    };
    let code = match (text.strip_prefix("ctrl-"), text.as_bytes()) {
        (Some(name), _) => control(name),
        (None, [letter @ 0x21..=0x7e]) => Some(*letter),
        _ => None,
    };
    code.ok_or_else(|| {
        format!(
            "`{text}` is no key: write one character, or ctrl- and a letter or one of @ [ \\ ] ^ _, separated by commas, \
             such as ctrl-p,ctrl-q"
        )
    })
}

impl fmt::Display for DetachKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match key {
                0..=0x1f => write!(formatter, "{comma}ctrl-{}", char::from(key + b'@').to_ascii_lowercase())?,
                _ => write!(formatter, "{comma}{}", char::from(*key))?,
            }
        }
        Ok(())
    }
}

/// Looks for the keys in what is typed.
#[derive(Debug)]
pub(super) struct Watch {
    keys: Vec<u8>,
    /// A beginning of the keys that was typed last and not passed on.
    held: Vec<u8>,
}

impl Watch {
    pub(super) fn new(keys: DetachKeys) -> Self {
        Self { keys: keys.0, held: Vec::new() }
    }

    /// Passes on what is not for us. Answers whether the keys were typed; what is typed behind them is for nobody.
    pub(super) fn feed(&mut self, typed: &[u8], passed: &mut Vec<u8>) -> bool {
        if self.keys.is_empty() {
            passed.extend_from_slice(typed);
            return false;
        }
        for byte in typed {
            self.held.push(*byte);
            while !self.keys.starts_with(&self.held) {
                passed.push(self.held.remove(0));
            }
            if self.held == self.keys {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_docker_writes_them() {
        for (text, codes) in [
            ("ctrl-p,ctrl-q", &[0x10, 0x11][..]),
            ("ctrl-P", &[0x10]),
            ("ctrl-@,ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_", &[0, 27, 28, 29, 30, 31]),
            ("a,Z,5,~", b"aZ5~"),
            ("", &[]),
        ] {
            assert_eq!(text.parse(), Ok(DetachKeys(codes.to_vec())), "{text}");
        }
        for text in ["ctrl-", "ctrl-pp", "ctrl-1", "alt-x", "ab", "a,,b", "ä", " "] {
            assert!(text.parse::<DetachKeys>().is_err_and(|error| error.contains("no key")), "{text}");
        }
        assert_eq!(DetachKeys::default(), "ctrl-p,ctrl-q".parse().unwrap());
        assert_eq!("ctrl-p,a,ctrl-]".parse::<DetachKeys>().unwrap().to_string(), "ctrl-p,a,ctrl-]");
    }

    #[test]
    fn what_turns_out_not_to_be_the_keys_is_passed_on_however_it_is_cut() {
        for (keys, typed, passed, detached) in [
            ("ctrl-p,ctrl-q", &b"ab\x10\x11cd"[..], &b"ab"[..], true),
            ("ctrl-p,ctrl-q", b"\x10x\x11", b"\x10x\x11", false),
            ("ctrl-p,ctrl-q", b"\x10\x10\x11", b"\x10", true),
            ("ctrl-p,ctrl-q", b"\x10", b"", false),
            ("a,a,b", b"aaab", b"a", true),
            ("a,b,a,c", b"ababac", b"ab", true),
            ("", b"\x10\x11", b"\x10\x11", false),
        ] {
            for size in 1..=typed.len() {
                let mut watch = Watch::new(keys.parse().unwrap());
                let mut out = Vec::new();
                let found = typed.chunks(size).any(|piece| watch.feed(piece, &mut out));
                assert_eq!((out.as_slice(), found), (passed, detached), "{keys} {typed:?} {size}");
            }
        }
    }
}
