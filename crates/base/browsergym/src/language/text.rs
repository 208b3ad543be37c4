//! The texts of a call: where one ends, and what its escapes stand for.

use super::ActionError;

/// Where the text that starts with a quote ends, behind its last quote, if it does, and how many bytes were looked at.
pub(super) struct Extent {
    pub(super) end: Option<usize>,
    pub(super) looked_at: usize,
    /// The number of quotes on each side.
    pub(super) quotes: usize,
}

/// Measures the text that starts at the first byte of `rest`, which is a quote.
pub(super) fn extent(rest: &str, quote: u8) -> Extent {
    let bytes = rest.as_bytes();
    if bytes.starts_with(&[quote; 3]) {
        let (end, looked_at) = triple_end(bytes, quote);
        // If three quotes do not end again, two of them are an empty text.
        return Extent { end: end.or(Some(2)), looked_at, quotes: if end.is_some() { 3 } else { 1 } };
    }
    let (end, looked_at) = single_end(bytes, quote);
    Extent { end, looked_at, quotes: 1 }
}

fn triple_end(bytes: &[u8], quote: u8) -> (Option<usize>, usize) {
    let mut at = 3;
    while let Some(byte) = bytes.get(at) {
        match byte {
            // The reference's reader stops at a continued line.
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => break,
            b'\\' => at += 2,
            byte if *byte == quote && bytes.get(at + 1..at + 3) == Some(&[quote; 2]) => return (Some(at + 3), at + 3),
            _ => at += 1,
        }
    }
    (None, at.min(bytes.len()))
}

fn single_end(bytes: &[u8], quote: u8) -> (Option<usize>, usize) {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' | b'\r' => break,
            b'\\' if bytes.get(at + 1) == Some(&b'x') && !bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit) => break,
            b'\\' => at += 2,
            byte if *byte == quote => return (Some(at + 1), at + 1),
            _ => at += 1,
        }
    }
    (None, at.min(bytes.len()))
}

/// What the text between the quotes stands for.
pub(super) fn unescape(body: &str) -> Result<String, ActionError> {
    if body.contains('\0') {
        return Err(ActionError::syntax("source code string cannot contain null bytes"));
    }
    let mut reader = Reader { body, at: 0, place: 0, out: Units::default() };
    while let Some(c) = reader.next() {
        match c {
            '\\' => reader.escape()?,
            c => reader.out.push(u32::from(c)),
        }
    }
    Ok(reader.out.finish())
}

/// Python's line ends are one character.
struct Reader<'a> {
    body: &'a str,
    at: usize,
    /// Where Python's decoder is, which sees characters beyond ASCII as escapes of ten bytes.
    place: usize,
    out: Units,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.body.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.place += if c.is_ascii() { 1 } else { 10 };
        if c != '\r' {
            return Some(c);
        }
        if self.peek() == Some('\n') {
            self.at += 1;
        }
        Some('\n')
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<(), ActionError> {
        let start = self.place - 1;
        if self.peek().is_some_and(|c| !c.is_ascii()) {
            // The decoder sees the backslash as `\u005c` then.
            self.place += 5;
        }
        let code = match self.next() {
            Some('\n') => return Ok(()),
            Some(c @ ('\\' | '\'' | '"')) => u32::from(c),
            Some('a') => 0x07,
            Some('b') => 0x08,
            Some('f') => 0x0c,
            Some('n') => 0x0a,
            Some('r') => 0x0d,
            Some('t') => 0x09,
            Some('v') => 0x0b,
            Some('x') => self.hexadecimal(start, 2, r"truncated \xXX escape")?,
            Some('u') => self.hexadecimal(start, 4, r"truncated \uXXXX escape")?,
            Some('U') => self.hexadecimal(start, 8, r"truncated \UXXXXXXXX escape")?,
            Some('N') => return Err(self.named(start)),
            Some(first @ '0'..='7') => self.octal(first),
            Some(other) => {
                self.out.push(u32::from('\\'));
                u32::from(other)
            }
            // A text never ends in a single backslash, which would have escaped its quote.
            None => u32::from('\\'),
        };
        self.out.push(code);
        Ok(())
    }

    fn hexadecimal(&mut self, start: usize, length: u32, truncated: &str) -> Result<u32, ActionError> {
        let mut code = 0_u32;
        for _ in 0..length {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(undecodable(start, self.place, truncated));
            };
            self.next();
            // Eight digits fit.
            code = (code << 4) | digit;
        }
        if code > u32::from(char::MAX) {
            Err(undecodable(start, self.place, "illegal Unicode character"))
        } else {
            Ok(code)
        }
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            self.next();
            code = code * 8 + digit;
        }
        code
    }

    /// A character by its name. The names would need a large table, so each is unknown.
    fn named(&mut self, start: usize) -> ActionError {
        const MALFORMED: &str = r"malformed \N character escape";
        if self.peek() != Some('{') {
            return undecodable(start, self.place, MALFORMED);
        }
        self.next();
        if self.peek() == Some('}') {
            return undecodable(start, self.place, MALFORMED);
        }
        while let Some(c) = self.next() {
            if c == '}' {
                return undecodable(start, self.place, "unknown Unicode character name");
            }
        }
        undecodable(start, self.place, MALFORMED)
    }
}

/// The bytes from `start` up to before `end` are no escape.
fn undecodable(start: usize, end: usize, why: &str) -> ActionError {
    let last = end.saturating_sub(1);
    ActionError::syntax(format!(
        "(unicode error) 'unicodeescape' codec can't decode bytes in position {start}-{last}: {why} (<unknown>, line 1)"
    ))
}

/// Collects code points. Two surrogates that belong together are one character, as they are for the page; a lone one
/// becomes the replacement character.
#[derive(Default)]
struct Units {
    text: String,
    high: Option<u32>,
}

impl Units {
    fn push(&mut self, code: u32) {
        match (self.high.take(), code) {
            (Some(high), low @ 0xdc00..=0xdfff) => {
                self.append(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                return;
            }
            (Some(_), _) => self.text.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        if (0xd800..=0xdbff).contains(&code) {
            self.high = Some(code);
        } else {
            self.append(code);
        }
    }

    fn append(&mut self, code: u32) {
        self.text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }

    fn finish(mut self) -> String {
        if self.high.is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.text
    }
}
