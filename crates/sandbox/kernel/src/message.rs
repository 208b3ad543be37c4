//! Messages of a kernel, whatever is in them.
//!
//! A typed parser of whole messages would refuse one for one wrong field or one lone surrogate, and a cell whose reply
//! is refused would never end. Only what a cell's report needs is read here, and what is no JSON is mended first.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// A message, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Id of the request that it belongs to; empty if it belongs to none.
    pub(crate) parent: String,
    /// What it says.
    pub(crate) content: Content,
}

/// What a message says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text of a stream.
    Text {
        text: String,
        /// How much text the kernel had written up to its end (`journal`).
        end: Option<u64>,
        /// It was written to standard error.
        is_error: bool,
    },
    /// A result or a display.
    Display(Display),
    /// An exception.
    Error(Exception),
    /// The request is done, as the output channel sees it.
    Idle,
    /// The request is done, as the request channel sees it.
    Reply {
        raised: bool,
        /// The kernel is about to end: the cell has called `exit()`.
        leaves: bool,
    },
    /// Something else.
    Other,
}

/// A result or a display.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Display {
    pub(crate) text: String,
    pub(crate) images: Vec<Picture>,
    /// All of its forms, by type.
    pub(crate) forms: Map<String, Value>,
    /// It is the value of the cell's last expression.
    pub(crate) is_result: bool,
}

/// A picture in base64.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) media_type: &'static str,
    pub(crate) base64: String,
}

#[derive(Deserialize)]
struct Header {
    msg_type: String,
}

#[derive(Deserialize, Default)]
struct Parent {
    #[serde(default)]
    msg_id: String,
}

#[derive(Deserialize, Default)]
struct Metadata {
    end: Option<u64>,
}

#[derive(Deserialize)]
struct Stream {
    text: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    data: Map<String, Value>,
}

/// Text as one string or, as notebooks have it, as its lines.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// An exception.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Exception {
    #[serde(default)]
    pub(crate) traceback: Vec<String>,
    #[serde(default, rename = "ename")]
    pub(crate) name: String,
    #[serde(default, rename = "evalue")]
    pub(crate) value: String,
}

impl Exception {
    /// What is shown of it.
    pub(crate) fn text(&self) -> String {
        if self.traceback.is_empty() { format!("{}: {}", self.name, self.value) } else { self.traceback.join("\n") }
    }
}

#[derive(Deserialize)]
struct Status {
    execution_state: String,
}

#[derive(Deserialize)]
struct Reply {
    status: String,
    #[serde(default)]
    payload: Vec<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    source: String,
    #[serde(default)]
    keepkernel: bool,
}

/// Reads a message from its parts: header, parent header, metadata, content. `None` if even its kind is not readable.
pub(crate) fn read<B: AsRef<[u8]>>(parts: &[B]) -> Option<Message> {
    let part = |index: usize| parts.get(index).map_or(&b""[..], AsRef::as_ref);
    let header: Header = parse(part(0))?;
    let parent = parse::<Parent>(part(1)).unwrap_or_default().msg_id;
    let content = match header.msg_type.as_str() {
        "stream" => parse(part(3)).map(|stream: Stream| Content::Text {
            is_error: stream.name == "stderr",
            text: stream.text,
            end: parse::<Metadata>(part(2)).unwrap_or_default().end,
        }),
        kind @ ("execute_result" | "display_data") => {
            parse(part(3)).map(|Shown { data }| Content::Display(shown(data, kind == "execute_result")))
        }
        "error" => parse(part(3)).map(Content::Error),
        "status" => parse(part(3))
            .map(|status: Status| if status.execution_state == "idle" { Content::Idle } else { Content::Other }),
        // A reply that is not readable is still the end of its request.
        kind if kind.ends_with("_reply") => {
            let reply: Option<Reply> = parse(part(3));
            let leaves = |payload: &Payload| payload.source == "ask_exit" && !payload.keepkernel;
            Some(Content::Reply {
                raised: reply.as_ref().is_none_or(|reply| reply.status != "ok"),
                leaves: reply.is_some_and(|reply| reply.payload.iter().any(leaves)),
            })
        }
        _ => Some(Content::Other),
    };
    Some(Message { parent, content: content.unwrap_or(Content::Other) })
}

fn shown(forms: Map<String, Value>, is_result: bool) -> Display {
    let picture = |media_type| {
        // Python's base64 comes in lines.
        let base64 = text_of(forms.get(media_type)?).replace(['\n', '\r'], "");
        Some(Picture { media_type, base64 })
    };
    let images = ["image/png", "image/jpeg"].into_iter().filter_map(picture).collect();
    let text = forms.get("text/plain").map(text_of).unwrap_or_default();
    Display { text, images, forms, is_result }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(bytes))))
        .ok()
}

/// Replaces escapes of lone surrogates, which Python writes and JSON parsers refuse.
fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        at = start + 2;
        let Some(unit) = unit(json, start) else { continue };
        at = start + 6;
        if (0xd800..0xdc00).contains(&unit) && self::unit(json, at).is_some_and(|low| (0xdc00..0xe000).contains(&low)) {
            at += 6;
        } else if (0xd800..0xe000).contains(&unit) {
            mended.push_str(&json[kept..start]);
            mended.push_str("\\ufffd");
            kept = at;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[kept..]);
    Cow::Owned(mended)
}

/// The code unit of the escape `\uXXXX` that begins here.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_exception_is_shown_by_its_traceback_or_else_by_its_name() {
        let exception = |traceback: &[&str]| Exception {
            traceback: traceback.iter().map(|line| (*line).to_owned()).collect(),
            name: "E".into(),
            value: "v".into(),
        };
        assert_eq!(exception(&["a", "b"]).text(), "a\nb");
        assert_eq!(exception(&[]).text(), "E: v");
    }

    fn content(kind: &str, content: &str) -> Option<Content> {
        let header = format!("{{\"msg_type\":\"{kind}\"}}");
        let message = read(&[header.as_bytes(), b"{\"msg_id\":\"p\"}", b"{\"end\":7}", content.as_bytes()])?;
        assert_eq!(message.parent, "p");
        Some(message.content)
    }

    #[test]
    fn each_kind_is_read() {
        let picture = |media_type, base64: &str| Picture { media_type, base64: base64.into() };
        let display = |text: &str, images: Vec<Picture>, forms: Value, is_result| {
            let forms = forms.as_object().cloned().unwrap();
            Content::Display(Display { text: text.into(), images, forms, is_result })
        };
        let exception = |traceback: &[&str], name: &str, value: &str| {
            let traceback = traceback.iter().map(|line| (*line).to_owned()).collect();
            Content::Error(Exception { traceback, name: name.into(), value: value.into() })
        };
        for (kind, json, expected) in [
            (
                "stream",
                r#"{"name":"stdout","text":"a"}"#,
                Content::Text { text: "a".into(), end: Some(7), is_error: false },
            ),
            (
                "stream",
                r#"{"name":"stderr","text":"a"}"#,
                Content::Text { text: "a".into(), end: Some(7), is_error: true },
            ),
            (
                "display_data",
                r#"{"data":{"text/plain":"<F>","image/png":"AA\nBB\n","text/html":{"x":1}}}"#,
                display(
                    "<F>",
                    vec![picture("image/png", "AABB")],
                    json!({"text/plain": "<F>", "image/png": "AA\nBB\n", "text/html": {"x": 1}}),
                    false,
                ),
            ),
            (
                "execute_result",
                r#"{"data":{"text/plain":["a\n","b"],"image/jpeg":"CC"}}"#,
                display(
                    "a\nb",
                    vec![picture("image/jpeg", "CC")],
                    json!({"text/plain": ["a\n", "b"], "image/jpeg": "CC"}),
                    true,
                ),
            ),
            ("display_data", r#"{"data":{"text/plain":5}}"#, display("", vec![], json!({"text/plain": 5}), false)),
            ("display_data", "{}", display("", vec![], json!({}), false)),
            ("error", r#"{"traceback":["a","b"],"ename":"E"}"#, exception(&["a", "b"], "E", "")),
            ("error", r#"{"traceback":[],"ename":"E","evalue":"v"}"#, exception(&[], "E", "v")),
            ("status", r#"{"execution_state":"idle"}"#, Content::Idle),
            ("status", r#"{"execution_state":"busy"}"#, Content::Other),
            ("execute_reply", r#"{"status":"ok"}"#, Content::Reply { raised: false, leaves: false }),
            (
                "execute_reply",
                r#"{"status":"ok","payload":[{"source":"page"},{"source":"ask_exit","keepkernel":false}]}"#,
                Content::Reply { raised: false, leaves: true },
            ),
            (
                "execute_reply",
                r#"{"status":"ok","payload":[{"source":"ask_exit","keepkernel":true}]}"#,
                Content::Reply { raised: false, leaves: false },
            ),
            ("execute_reply", r#"{"status":"error"}"#, Content::Reply { raised: true, leaves: false }),
            ("execute_reply", "garbage", Content::Reply { raised: true, leaves: false }),
            ("stream", "garbage", Content::Other),
            ("clear_output", "{}", Content::Other),
        ] {
            assert_eq!(content(kind, json), Some(expected), "{kind} {json}");
        }
        assert_eq!(read(&[&b"garbage"[..]]), None);
    }

    #[test]
    fn lone_surrogates_and_broken_utf_8_are_replaced() {
        for (json, expected) in [
            (r#"{"text":"a\ud800b"}"#, "a\u{fffd}b"),
            (r#"{"text":"\udc00\ud83d\ude00\ud83d"}"#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#"{"text":"\ud83d\ud83d\ude00 \\ud800"}"#, "\u{fffd}\u{1f600} \\ud800"),
        ] {
            assert_eq!(
                content("stream", json),
                Some(Content::Text { text: expected.into(), end: Some(7), is_error: false }),
                "{json}"
            );
        }
        let parts: [&[u8]; 4] = [b"{\"msg_type\":\"stream\"}", b"", b"", b"{\"text\":\"a\xffb\"}"];
        assert_eq!(
            read(&parts),
            Some(Message {
                parent: String::new(),
                content: Content::Text { text: "a\u{fffd}b".into(), end: None, is_error: false }
            })
        );
    }
}
