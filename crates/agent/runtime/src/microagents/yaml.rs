//! YAML to values, in memory that does not depend on what the text wants.
//!
//! The syntax is the library's. What a scalar means, merged maps and repeated keys are as in PyYAML's safe loader, which
//! reads front matter in the reference.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use super::{data::Data, yaml_scalar};

/// Most levels of lists and maps.
const MAX_DEPTH: usize = 32;
/// Most memory of all values, in which an alias counts like what it stands for. The unit is a byte of text, a value
/// counts as [`VALUE_COST`] of them.
const MAX_COST: usize = 1024 * 1024;
const VALUE_COST: usize = 32;
/// Most keys of a map.
const MAX_KEYS: usize = 1_000;

/// Why a text is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum YamlError {
    #[error("{} at line {}, column {}", .0.info(), .0.marker().line(), .0.marker().col() + 1)]
    Syntax(#[from] ScanError),
    #[error("it has more than one document")]
    Documents,
    #[error("it has more than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("its values take too much memory")]
    TooLarge,
    #[error("a map has more than {MAX_KEYS} keys")]
    TooManyKeys,
    #[error("an alias stands for what it is in")]
    Recursive,
    #[error("a list or a map is a key")]
    Key,
    #[error("what is merged is neither a map nor a list of maps")]
    Merge,
    #[error("the tag `{0}` is not known")]
    Tag(String),
    #[error("`{text}` is no {tag}")]
    Scalar { text: String, tag: String },
}

/// The value of the only document; nothing if there is none.
pub(super) fn read(text: &str) -> Result<Data, YamlError> {
    let mut loader = Loader::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event?;
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(YamlError::Documents);
                }
            }
            Event::Alias(anchor) => {
                let value = loader.anchors.get(&anchor).cloned().ok_or(YamlError::Recursive)?;
                loader.put(value, 0, Origin::Other)?;
            }
            Event::Scalar(text, style, anchor, tag) => loader.scalar(&text, style, anchor, tag.as_deref())?,
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag, "seq")?;
                loader.open(Open { anchor, content: Content::List(Vec::new()) })?;
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag, "map")?;
                loader.open(Open { anchor, content: Content::Map { entries: Vec::new(), key: None } })?;
            }
            Event::SequenceEnd | Event::MappingEnd => loader.close()?,
        }
    }
    Ok(loader.root.unwrap_or(Data::Null))
}

fn check_tag(tag: Option<Cow<'_, Tag>>, expected: &str) -> Result<(), YamlError> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => Err(YamlError::Tag(tag.to_string())),
        _ => Ok(()),
    }
}

/// Whether a scalar is the sign of a merged map, where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    MergeSign,
    Other,
}

#[derive(Debug)]
enum Key {
    Merge,
    Name(Data),
}

/// A list or a map that has begun.
#[derive(Debug)]
struct Open {
    /// Zero is none.
    anchor: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    List(Vec<Data>),
    Map { entries: Vec<(Key, Data)>, key: Option<Key> },
}

#[derive(Debug, Default)]
struct Loader {
    root: Option<Data>,
    open: Vec<Open>,
    anchors: HashMap<usize, Data>,
    cost: usize,
}

impl Loader {
    fn open(&mut self, open: Open) -> Result<(), YamlError> {
        if self.open.len() == MAX_DEPTH {
            return Err(YamlError::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(Open { anchor, content }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Data::List(items),
            Content::Map { entries, .. } => merged(entries)?,
        };
        self.put(value, anchor, Origin::Other)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>) -> Result<(), YamlError> {
        let plain = style == ScalarStyle::Plain;
        let origin = if plain && tag.is_none() && text == "<<" { Origin::MergeSign } else { Origin::Other };
        let value = match tag {
            None if plain => yaml_scalar::resolve(text).ok_or_else(|| wrong(text, "date"))?,
            None => Data::Text(text.to_owned()),
            // A lone `!` says that it is a text.
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Data::Text(text.to_owned()),
            Some(tag) if tag.is_yaml_core_schema() => tagged(text, &tag.suffix)?,
            Some(tag) => return Err(YamlError::Tag(tag.to_string())),
        };
        self.put(value, anchor, origin)
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, value: Data, anchor: usize, origin: Origin) -> Result<(), YamlError> {
        let (cost, depth) = measure(&value);
        if self.open.len() + depth > MAX_DEPTH {
            return Err(YamlError::TooDeep);
        }
        self.cost += cost;
        if anchor > 0 {
            self.cost += cost;
            self.anchors.insert(anchor, value.clone());
        }
        if self.cost > MAX_COST {
            return Err(YamlError::TooLarge);
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Map { entries, key }) => match key.take() {
                Some(key) => entries.push((key, value)),
                None if origin == Origin::MergeSign => *key = Some(Key::Merge),
                None if matches!(value, Data::List(_) | Data::Map(_)) => return Err(YamlError::Key),
                None => *key = Some(Key::Name(value)),
            },
        }
        Ok(())
    }
}

/// Memory and levels of a value. Its levels are bounded, so this ends soon.
///
/// A list counts its items again although they were counted when they were put into it: the sum is then bounded by the
/// number of levels, which does for a limit.
fn measure(value: &Data) -> (usize, usize) {
    let inner = |values: &mut dyn Iterator<Item = &Data>| {
        let (cost, depth) =
            values.map(measure).fold((0, 0), |(cost, depth), (more, deep)| (cost + more, depth.max(deep)));
        (VALUE_COST + cost, depth + 1)
    };
    match value {
        Data::Null | Data::Bool(_) | Data::Integer(_) | Data::Float(_) => (VALUE_COST, 0),
        Data::Text(text) | Data::Date(text) => (VALUE_COST + text.len(), 0),
        Data::List(items) => inner(&mut items.iter()),
        Data::Map(entries) => inner(&mut entries.iter().flat_map(|(key, value)| [key, value])),
    }
}

/// A map without merge signs and repeated keys. Own keys win over merged ones, later over earlier ones; of merged maps
/// the first wins.
fn merged(entries: Vec<(Key, Data)>) -> Result<Data, YamlError> {
    let mut map = Vec::new();
    for (_, value) in entries.iter().filter(|(key, _)| matches!(key, Key::Merge)) {
        let maps = match value {
            Data::List(maps) => maps.as_slice(),
            other => std::slice::from_ref(other),
        };
        for merged in maps.iter().rev() {
            let Data::Map(merged) = merged else { return Err(YamlError::Merge) };
            merged.iter().try_for_each(|(key, value)| insert(&mut map, key.clone(), value.clone()))?;
        }
    }
    for (key, value) in entries {
        if let Key::Name(key) = key {
            insert(&mut map, key, value)?;
        }
    }
    Ok(Data::Map(map))
}

fn insert(map: &mut Vec<(Data, Data)>, key: Data, value: Data) -> Result<(), YamlError> {
    if let Some((_, old)) = map.iter_mut().find(|(known, _)| *known == key) {
        *old = value;
    } else if map.len() == MAX_KEYS {
        return Err(YamlError::TooManyKeys);
    } else {
        map.push((key, value));
    }
    Ok(())
}

/// A scalar that says what it is.
fn tagged(text: &str, tag: &str) -> Result<Data, YamlError> {
    if tag == "str" {
        return Ok(Data::Text(text.to_owned()));
    }
    let value = yaml_scalar::resolve(text);
    match (tag, value) {
        ("null", _) => Ok(Data::Null),
        ("bool", Some(value @ Data::Bool(_)))
        | ("int", Some(value @ Data::Integer(_)))
        | ("float", Some(value @ Data::Float(_)))
        | ("timestamp", Some(value @ Data::Date(_))) => Ok(value),
        ("float", Some(Data::Integer(_))) => {
            text.replace('_', "").parse().map(Data::Float).map_err(|_| wrong(text, tag))
        }
        ("bool" | "int" | "float" | "timestamp", _) => Err(wrong(text, tag)),
        _ => Err(YamlError::Tag(format!("!!{tag}"))),
    }
}

fn wrong(text: &str, tag: &str) -> YamlError {
    YamlError::Scalar { text: text.to_owned(), tag: tag.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read() {
        for (text, expected) in [
            ("", json!(null)),
            ("# nothing", json!(null)),
            ("a: 1\nb: [x, 'y', \"z\\n\"]", json!({"a": 1, "b": ["x", "y", "z\n"]})),
            ("a:\n- b: 1\n  c: 2\n-\n  - d", json!({"a": [{"b": 1, "c": 2}, ["d"]]})),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y", json!({"a": "x\ny\n", "b": "x y"})),
            ("a: 1\na: 2", json!({"a": 2})),
            ("a: &x [1]\nb: *x", json!({"a": [1], "b": [1]})),
            ("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}", json!({"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}})),
            ("b: {<<: [{k: 1}, {k: 2, l: 2}]}", json!({"b": {"k": 1, "l": 2}})),
            (
                "a: !!str 1\nb: ! 2\nc: !!int '3'\nd: !!float 4\ne: !!seq [5]",
                json!({"a": "1", "b": "2", "c": 3, "d": 4.0, "e": [5]}),
            ),
            ("'<<': 1", json!({"<<": 1})),
            ("1: a\n~: b", json!({"1": "a", "None": "b"})),
        ] {
            assert_eq!(read(text).unwrap().to_json(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (text, expected) in [
            ("a: 1\n--- \nb: 2", "it has more than one document"),
            ("a: !foo 1", "the tag `!foo` is not known"),
            (
                "a: !!python/object/apply:os.system [x]",
                "the tag `tag:yaml.org,2002:!python/object/apply:os.system` is not known",
            ),
            ("? [a]\n: 1", "a list or a map is a key"),
            ("a: &x [*x]", "an alias stands for what it is in"),
            ("<<: 1", "what is merged is neither a map nor a list of maps"),
            ("a: !!int x", "`x` is no int"),
            ("a: 2024-02-30", "`2024-02-30` is no date"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
        }
        for text in ["a: b: c", "a: [1", "a: 'x", "a: *x", "- a\nb: 1", "a: @b"] {
            assert!(matches!(read(text), Err(YamlError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn a_text_cannot_stand_for_more_than_the_limit() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, last) in ('b'..='i').zip('a'..) {
            let aliases = vec![format!("*{last}"); 9].join(", ");
            writeln!(bomb, "{name}: &{name} [{aliases}]").unwrap();
        }
        assert!(matches!(read(&bomb), Err(YamlError::TooLarge)));
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(40_000), vec!["*a"; 1_000].join(", "));
        assert!(matches!(read(&long), Err(YamlError::TooLarge)));
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        assert!(matches!(read(&deep), Err(YamlError::TooDeep)));
        let mut chain = "a0: &a0 [x]\n".to_owned();
        for level in 1..60 {
            writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
        }
        assert!(matches!(read(&chain), Err(YamlError::TooDeep)));
        let keys = (0..=MAX_KEYS).map(|key| format!("k{key}: 1")).collect::<Vec<_>>().join("\n");
        assert!(matches!(read(&keys), Err(YamlError::TooManyKeys)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([a-z0-9:\\-,&*!<>|?#%@`\"' \\[\\]{}~.\\n\\t]|\\PC){0,80}") {
            let _read_or_refused = read(&text);
        }

        #[test]
        fn a_quoted_text_comes_back(text in "\\PC{0,40}") {
            let quoted = format!("a: '{}'", text.replace('\'', "''"));
            prop_assert_eq!(read(&quoted).unwrap().to_json(), json!({ "a": text }));
        }
    }
}
