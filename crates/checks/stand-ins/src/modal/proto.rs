//! Messages by the numbers of their fields, without knowing what they are called: what a client of whatever making has sent can be
//! looked at, and compared with what another one sends.

use axum::body::Bytes;
use serde_json::{Map, Value, json};

/// What a field has.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// A whole number, or a flag.
    Number(u64),
    /// Eight bytes.
    Double([u8; 8]),
    /// Four bytes.
    Float([u8; 4]),
    /// A text, bytes, or a message.
    Bytes(Vec<u8>),
}

/// A message: its fields in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message(Vec<(u32, Content)>);

/// Deepest message in a message that is looked into.
const DEPTH: usize = 12;

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for at in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << (7 * at);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Message {
    /// The message that bytes are; none if they are none.
    pub(super) fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes)?;
            let field = u32::try_from(key >> 3).ok().filter(|field| *field > 0)?;
            let content = match key & 7 {
                0 => Content::Number(number(&mut bytes)?),
                1 => {
                    let (taken, rest) = bytes.split_first_chunk()?;
                    bytes = rest;
                    Content::Double(*taken)
                }
                2 => {
                    let length = usize::try_from(number(&mut bytes)?).ok()?;
                    let (taken, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    Content::Bytes(taken.to_vec())
                }
                5 => {
                    let (taken, rest) = bytes.split_first_chunk()?;
                    bytes = rest;
                    Content::Float(*taken)
                }
                _ => return None,
            };
            fields.push((field, content));
        }
        Some(Self(fields))
    }

    fn all(&self, field: u32) -> impl DoubleEndedIterator<Item = &Content> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, content)| content)
    }

    /// A whole number; 0 where there is none.
    pub(super) fn number(&self, field: u32) -> u64 {
        match self.all(field).next_back() {
            Some(Content::Number(number)) => *number,
            _ => 0,
        }
    }

    /// A number of seconds, in whatever format; 0 where there is none.
    pub(super) fn seconds(&self, field: u32) -> f64 {
        match self.all(field).next_back() {
            Some(Content::Float(bytes)) => f64::from(f32::from_le_bytes(*bytes)),
            Some(Content::Double(bytes)) => f64::from_le_bytes(*bytes),
            _ => 0.0,
        }
    }

    /// Bytes; none where there are none.
    pub(super) fn bytes(&self, field: u32) -> Option<&[u8]> {
        match self.all(field).next_back() {
            Some(Content::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// A text; empty where there is none.
    pub(super) fn text(&self, field: u32) -> String {
        String::from_utf8_lossy(self.bytes(field).unwrap_or_default()).into_owned()
    }

    /// All texts of a field.
    pub(super) fn texts(&self, field: u32) -> Vec<String> {
        let texts = self.all(field).filter_map(|content| match content {
            Content::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        });
        texts.collect()
    }

    /// All messages of a field.
    pub(super) fn messages(&self, field: u32) -> Vec<Self> {
        let messages = self.all(field).filter_map(|content| match content {
            Content::Bytes(bytes) => Self::read(bytes),
            _ => None,
        });
        messages.collect()
    }

    /// A message; an empty one where there is none.
    pub(super) fn message(&self, field: u32) -> Self {
        self.messages(field).pop().unwrap_or_default()
    }

    /// Names and values: of a map, of variables, of tags.
    pub(super) fn pairs(&self, field: u32) -> Vec<(String, String)> {
        self.messages(field).iter().map(|pair| (pair.text(1), pair.text(2))).collect()
    }

    /// This with a number more. What is 0 is left out, as it is the same.
    pub(super) fn with_number(mut self, field: u32, number: u64) -> Self {
        if number != 0 {
            self.0.push((field, Content::Number(number)));
        }
        self
    }

    /// This with a time more.
    pub(super) fn with_seconds(mut self, field: u32, seconds: f64) -> Self {
        self.0.push((field, Content::Double(seconds.to_le_bytes())));
        self
    }

    /// This with bytes more.
    pub(super) fn with_bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.0.push((field, Content::Bytes(bytes.to_vec())));
        self
    }

    /// This with a text more.
    pub(super) fn with(self, field: u32, text: &str) -> Self {
        self.with_bytes(field, text.as_bytes())
    }

    /// This with a message more.
    pub(super) fn with_message(self, field: u32, message: &Self) -> Self {
        let bytes = message.written();
        self.with_bytes(field, &bytes)
    }

    /// Its bytes.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (field, content) in &self.0 {
            let kind = match content {
                Content::Number(_) => 0,
                Content::Double(_) => 1,
                Content::Bytes(_) => 2,
                Content::Float(_) => 5,
            };
            write(&mut bytes, u64::from(field << 3 | kind));
            match content {
                Content::Number(number) => write(&mut bytes, *number),
                Content::Double(eight) => bytes.extend_from_slice(eight),
                Content::Float(four) => bytes.extend_from_slice(four),
                Content::Bytes(content) => {
                    write(&mut bytes, content.len().try_into().unwrap());
                    bytes.extend_from_slice(content);
                }
            }
        }
        bytes
    }

    /// It as JSON: an object of its fields by number, with a list where one came more than once.
    pub(super) fn told(&self) -> Value {
        self.told_at(0)
    }

    fn told_at(&self, depth: usize) -> Value {
        let mut all = Map::new();
        for (field, content) in &self.0 {
            let value = match content {
                Content::Number(number) => json!(number),
                Content::Double(bytes) => json!(f64::from_le_bytes(*bytes)),
                Content::Float(bytes) => json!(f32::from_le_bytes(*bytes)),
                Content::Bytes(bytes) => told(bytes, depth),
            };
            match all.get_mut(&field.to_string()) {
                None => {
                    all.insert(field.to_string(), value);
                }
                Some(Value::Array(several)) => several.push(value),
                Some(one) => *one = json!([one.take(), value]),
            }
        }
        Value::Object(all)
    }
}

fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
}

/// Bytes as what they seem to be: a text, a message, or how many there are.
fn told(bytes: &[u8], depth: usize) -> Value {
    let is_plain = |text: &str| !text.chars().any(|it| it.is_control() && !"\n\t\r".contains(it));
    let message = || Message::read(bytes).filter(|_| depth < DEPTH && !bytes.is_empty());
    match std::str::from_utf8(bytes) {
        // A message that begins with its first field begins with the end of a line.
        Ok(text) if is_plain(text) && !(text.starts_with('\n') && message().is_some()) => json!(text),
        _ => match message() {
            Some(message) => message.told_at(depth + 1),
            None => json!(format!("{} bytes", bytes.len())),
        },
    }
}

/// The messages that a body has in its frames; none if it is broken.
pub(super) fn unframed(mut body: &[u8]) -> Option<Vec<Message>> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let (head, rest) = body.split_first_chunk::<5>()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let (message, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        // Nobody has said that anything may be compressed.
        if head[0] != 0 {
            return None;
        }
        messages.push(Message::read(message)?);
        body = rest;
    }
    Some(messages)
}

/// A message in its frame.
pub(super) fn framed(message: &Message) -> Bytes {
    let bytes = message.written();
    let length = u32::try_from(bytes.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), &bytes].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let inner = Message::default().with(1, "name").with(2, "value");
        let message = Message::default()
            .with(1, "a")
            .with_number(2, 300)
            .with_seconds(3, 1.5)
            .with_message(4, &inner)
            .with_message(4, &inner)
            .with_bytes(5, b"\0\xff");
        let read = unframed(&framed(&message)).unwrap().remove(0);
        assert_eq!(read, message);
        assert_eq!((read.text(1), read.number(2), read.seconds(3)), ("a".to_owned(), 300, 1.5));
        assert_eq!(read.pairs(4), [("name".to_owned(), "value".to_owned()), ("name".to_owned(), "value".to_owned())]);
        let pair = json!({"1": "name", "2": "value"});
        assert_eq!(read.told(), json!({"1": "a", "2": 300, "3": 1.5, "4": [pair, pair], "5": "2 bytes"}));
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let bytes = Message::default().with(1, "abc").with_number(2, 300).written();
        for end in [1, 2, 4, bytes.len() - 1] {
            assert_eq!(Message::read(&bytes[..end]), None, "{end}");
        }
        assert_eq!(unframed(&[0, 0, 0, 0, 9, 1]), None);
        assert_eq!(unframed(&[1, 0, 0, 0, 0]), None);
    }
}
