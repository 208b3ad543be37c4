//! What stands above the content, and where it ends (runtime-interface 13.3).

use std::borrow::Cow;

use super::{data::Data, error::MicroagentError, yaml};

/// Most bytes of front matter. Those in use have some hundred.
pub const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;

/// A text in its two parts.
#[derive(Debug, PartialEq)]
pub(super) struct Document {
    /// What the front matter says; an empty map without one, and if it is not a map.
    pub(super) metadata: Data,
    /// The content without blanks around it.
    pub(super) content: String,
}

/// The language of front matter, told by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Yaml,
    Toml,
    Json,
}

impl Language {
    const ALL: [Self; 3] = [Self::Yaml, Self::Json, Self::Toml];

    const fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
            Self::Json => "JSON",
        }
    }

    fn opens(self, line: &str) -> bool {
        match self {
            Self::Yaml => is_rule(line, '-'),
            Self::Toml => is_rule(line, '+'),
            Self::Json => line == "{",
        }
    }

    fn closes(self, line: &str) -> bool {
        match self {
            Self::Yaml | Self::Toml => self.opens(line),
            Self::Json => line == "}",
        }
    }

    fn read(self, text: &str) -> Result<Data, MicroagentError> {
        let wrong = |reason: String| MicroagentError::FrontMatter { language: self.name(), reason };
        match self {
            Self::Yaml => yaml::read(text).map_err(|error| wrong(error.to_string())),
            Self::Toml => {
                text.parse::<toml::Table>().map(Data::from).map_err(|error| wrong(error.message().to_owned()))
            }
            Self::Json => serde_json::from_str::<serde_json::Value>(&format!("{{{text}}}"))
                .map(Data::from)
                .map_err(|error| wrong(error.to_string())),
        }
    }
}

/// Takes a text apart. Front matter without an end is content.
pub(super) fn split(text: &str) -> Result<Document, MicroagentError> {
    let text = lines_end_at_lf(text);
    // Some editors put a mark of the encoding in front of all text. It is none of the text.
    let text = strip(text.strip_prefix('\u{feff}').unwrap_or(&text));
    let whole = || Document { metadata: Data::Map(Vec::new()), content: text.to_owned() };
    let Some((first, rest)) = text.split_once('\n') else { return Ok(whole()) };
    let Some(language) = Language::ALL.into_iter().find(|language| language.opens(first)) else { return Ok(whole()) };
    let Some((front, content)) = up_to(rest, |line| language.closes(line)) else { return Ok(whole()) };
    if front.len() > MAX_FRONT_MATTER_BYTES {
        return Err(MicroagentError::FrontMatterTooLarge { bytes: front.len(), limit: MAX_FRONT_MATTER_BYTES });
    }
    let metadata = match language.read(front)? {
        map @ Data::Map(_) => map,
        // Such as a comment alone, or a sentence between two rules.
        _ => Data::Map(Vec::new()),
    };
    Ok(Document { metadata, content: strip(content).to_owned() })
}

/// What stands before and behind the first line that closes.
fn up_to(text: &str, closes: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if closes(line.strip_suffix('\n').unwrap_or(line)) {
            return Some((&text[..start], &text[end..]));
        }
        start = end;
    }
    None
}

/// Three or more of a sign, and only blanks behind them.
fn is_rule(line: &str, sign: char) -> bool {
    let rest = line.trim_start_matches(sign);
    line.len() - rest.len() >= 3 && rest.chars().all(is_blank)
}

/// The text without the blanks around it that Python removes.
fn strip(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// White space in Python: Unicode's and the four separators of ASCII.
fn is_blank(sign: char) -> bool {
    sign.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&sign)
}

fn lines_end_at_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (Option<String>, String) {
        let document = split(text).unwrap();
        (document.metadata.get("name").map(Data::python_text), document.content)
    }

    #[test]
    fn front_matter_ends_at_the_next_rule() {
        for (text, name, content) in [
            ("---\nname: a\n---\nbody", Some("a"), "body"),
            ("\n \n---\nname: a\n---\n\n body \n", Some("a"), "body"),
            ("-----  \nname: a\n--- \t\nbody", Some("a"), "body"),
            ("---\r\nname: a\r\n---\r\nbody\r\nmore\r\n", Some("a"), "body\nmore"),
            ("\u{feff}---\nname: a\n---\nbody", Some("a"), "body"),
            ("---\nname: a\n---", Some("a"), ""),
            ("---\n---\nbody", None, "body"),
            ("---\n# only a comment\n---\nbody\n---\nmore", None, "body\n---\nmore"),
            ("---\njust a sentence\n---\nbody", None, "body"),
            ("+++\nname = \"a\"\n+++\nbody", Some("a"), "body"),
            ("{\n\"name\": \"a\"\n}\nbody", Some("a"), "body"),
            ("---\nname: a\nbody", None, "---\nname: a\nbody"),
            ("---", None, "---"),
            ("--\nname: a\n--\nbody", None, "--\nname: a\n--\nbody"),
            ("--- x\nname: a\n---\nbody", None, "--- x\nname: a\n---\nbody"),
            ("text\n---\nname: a\n---\n", None, "text\n---\nname: a\n---"),
            ("\u{1c}\u{a0}text\u{3000}", None, "text"),
            ("", None, ""),
        ] {
            assert_eq!(names(text), (name.map(str::to_owned), content.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn front_matter_that_is_too_large_is_refused() {
        let text = format!("---\nname: {}\n---\n", "a".repeat(MAX_FRONT_MATTER_BYTES));
        let error = split(&text).unwrap_err();
        assert_eq!(error.to_string(), "the front matter has 65543 bytes; at most 65536 are read");
    }

    #[test]
    fn what_is_wrong_with_front_matter_is_said_with_its_language() {
        for (text, start) in [
            ("---\nname: [a\n---\n", "the front matter is not valid YAML: "),
            ("+++\nname = \n+++\n", "the front matter is not valid TOML: "),
            ("{\nname\n}\n", "the front matter is not valid JSON: "),
        ] {
            let error = split(text).unwrap_err();
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }
}
