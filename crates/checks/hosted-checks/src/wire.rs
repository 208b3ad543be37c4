//! Requests, member by member, beside those that a service's own SDK sends for the same.

use std::{collections::BTreeSet, fs, path::Path};

use gloveport_stand_ins::Seen;
use serde_json::Value;

/// Requests of a service's own SDK, from a file below `tests`.
pub fn recorded(file: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests").join(file);
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Which members of bodies count.
pub struct Members<'a> {
    /// Members whose names are those of variables or labels, and not the service's.
    pub texts: &'a [&'a str],
    /// Whether a member that is null is one.
    pub nulls: bool,
}

impl Members<'_> {
    /// The members of a value, each with what it is: `a.b: text`.
    pub fn of(&self, at: &str, value: &Value, into: &mut BTreeSet<String>) {
        let word = match value {
            Value::Object(_) if self.texts.contains(&at.rsplit('.').next().unwrap_or_default()) => "texts",
            Value::Object(all) => {
                return all.iter().for_each(|(name, value)| self.of(&format!("{at}.{name}"), value, into));
            }
            Value::Array(all) => return all.iter().for_each(|value| self.of(&format!("{at}[]"), value, into)),
            Value::Null if self.nulls => "none",
            Value::Null => return,
            Value::Bool(_) => "flag",
            Value::Number(_) => "number",
            Value::String(_) => "text",
        };
        into.insert(format!("{at}: {word}"));
    }
}

/// No request has this text in its path, its headers or its body.
pub fn none_shows(seen: &[Seen], text: &str) {
    let shown: Vec<&str> =
        seen.iter().filter(|seen| format!("{seen:?}").contains(text)).map(|seen| seen.path.as_str()).collect();
    assert_eq!(shown, Vec::<&str>::new());
}

/// The names in the query of a path.
pub fn query(path: &str) -> impl Iterator<Item = &str> {
    let query = path.split_once('?').map(|(_, query)| query).unwrap_or_default();
    query.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| pair.split('=').next())
}

/// A path without its query.
pub fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// Each request has the shape of one of the same kind that the SDK sends; there are at least so many kinds.
pub fn are_those_of_the_sdk(
    seen: &[Seen],
    recorded: &[Value],
    kind: impl Fn(&str, &str) -> String,
    of_ours: impl Fn(&Seen) -> BTreeSet<String>,
    of_theirs: impl Fn(&Value) -> BTreeSet<String>,
    kinds: usize,
) {
    let mut compared = BTreeSet::new();
    for ours in seen {
        let kind_of_ours = kind(ours.method.as_str(), &ours.path);
        let same = |theirs: &&Value| {
            kind(theirs["method"].as_str().unwrap(), theirs["path"].as_str().unwrap()) == kind_of_ours
        };
        let theirs: Vec<BTreeSet<String>> = recorded.iter().filter(same).map(&of_theirs).collect();
        assert!(!theirs.is_empty(), "{kind_of_ours} is no request of the SDK");
        let found = of_ours(ours);
        assert!(theirs.contains(&found), "{kind_of_ours}: {found:#?}, and of the SDK {theirs:#?}");
        compared.insert(kind_of_ours);
    }
    assert!(compared.len() >= kinds, "{compared:#?}");
}
