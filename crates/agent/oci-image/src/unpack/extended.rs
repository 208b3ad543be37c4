//! Extended headers of POSIX: lines of a length, a key and a value.

use super::error::LayerError;

/// A time: seconds since 1970, and nanoseconds after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) nanoseconds: u32,
}

/// What extended headers say of the entry after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) name: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) user: Option<u64>,
    pub(super) group: Option<u64>,
    pub(super) modified: Option<Time>,
    pub(super) sparse: bool,
}

impl Extended {
    /// Takes what one header says.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), LayerError> {
        while !bytes.is_empty() {
            let (key, value, rest) =
                line(bytes).ok_or_else(|| LayerError::damaged("an extended header is not what it must be"))?;
            self.one(key, value)?;
            bytes = rest;
        }
        Ok(())
    }

    fn one(&mut self, key: &[u8], value: &[u8]) -> Result<(), LayerError> {
        let number = |what: &str| {
            let number = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            number
                .and_then(|text| text.parse::<u64>().ok())
                .filter(|number| i64::try_from(*number).is_ok())
                .ok_or_else(|| LayerError::damaged(&format!("{what} in an extended header is no number")))
        };
        // An empty value takes back what was said.
        let given = (!value.is_empty()).then(|| value.to_vec());
        match key {
            b"path" => self.name = given,
            b"linkpath" => self.link = given,
            b"size" => self.size = Some(number("a size")?),
            b"uid" => self.user = Some(number("the number of a user")?),
            b"gid" => self.group = Some(number("the number of a group")?),
            b"mtime" => self.modified = Some(time(value).ok_or_else(|| LayerError::damaged("a time is no number"))?),
            key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
            _ => {}
        }
        Ok(())
    }
}

/// The first line, which counts itself, as key and value; and what stands after it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = bytes.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(bytes.get(..blank)?).ok()?.parse().ok()?;
    let (line, rest) = bytes.split_at_checked(length)?;
    let text = line.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((text.get(..equals)?, text.get(equals + 1..)?, rest))
}

fn time(text: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanoseconds = nine.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    if whole.starts_with('-') && nanoseconds > 0 {
        return Some(Time { seconds: seconds.checked_sub(1)?, nanoseconds: 1_000_000_000 - nanoseconds });
    }
    Some(Time { seconds, nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_have_any_bytes_and_lines_must_count_themselves() {
        let mut extended = Extended::default();
        extended.take(b"12 path=a\nb\n14 mtime=-1.5\n8 uid=7\n").unwrap();
        let modified = Some(Time { seconds: -2, nanoseconds: 500_000_000 });
        assert_eq!(extended, Extended { name: Some(b"a\nb".into()), modified, user: Some(7), ..Extended::default() });
        for wrong in [
            b"12 path=a\nb".as_slice(),
            b"99999999999999999999 path=a\n",
            b"5 path=abc\n",
            b"1 \n",
            b"0 path=a\n",
            b"9 path=a",
            b"x",
            b"9 size=-1\n",
            b"27 size=9999999999999999999\n",
            b"11 mtime=x\n",
        ] {
            Extended::default().take(wrong).unwrap_err();
        }
    }
}
