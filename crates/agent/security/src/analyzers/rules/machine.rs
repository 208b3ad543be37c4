//! What is known at a point of a walk through commands: directory, variables, files, and what was found.

use std::collections::{BTreeMap, HashMap};

use super::{
    checks,
    place::{Location, Map},
    table::Rule,
    value::{Flow, Value},
};
use crate::analyzer::RuleMatch;

/// How often commands are judged that `find` runs, for each place where it looks, in all. They may be `find` again.
const MAX_REPEATS: u32 = 256;
/// How deep programs may run each other (`nice nohup find / -exec …`).
const MAX_CALLS: u32 = 64;
/// Most bytes of words that are put together in all.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Most names of variables and files that are remembered.
const MAX_NAMES: usize = 4096;

/// What is known at a point of the walk.
pub(super) struct Machine<'a> {
    pub(super) map: &'a Map,
    /// Where commands run; none if nobody knows.
    pub(super) directory: Option<String>,
    pub(super) variables: HashMap<String, Value>,
    files: HashMap<String, Value>,
    found: BTreeMap<Rule, RuleMatch>,
    /// Texts that are walked through inside of each other, and bodies of loops so far.
    pub(super) texts: u32,
    pub(super) turns: u32,
    repeats: u32,
    calls: u32,
    bytes: usize,
}

/// Whether a text that cannot be read is a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Faults {
    /// It is.
    Reported,
    /// It is not: the text may be meant for something else than a shell.
    Tolerated,
}

impl<'a> Machine<'a> {
    pub(super) fn new(map: &'a Map, directory: Option<String>) -> Self {
        Self {
            map,
            directory,
            variables: HashMap::new(),
            files: HashMap::new(),
            found: BTreeMap::new(),
            texts: 0,
            turns: 0,
            repeats: 0,
            calls: 0,
            bytes: 0,
        }
    }

    /// What was found, the worst first.
    pub(super) fn into_findings(self) -> Vec<RuleMatch> {
        let mut found: Vec<_> = self.found.into_values().collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.risk));
        found
    }

    /// Notes that a rule applies. The first place where it does is kept.
    pub(super) fn report(&mut self, rule: Rule, quotation: &str) {
        self.found.entry(rule).or_insert_with(|| rule.seen(quotation));
    }

    /// Does something in a directory that does not last.
    pub(super) fn scoped<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let directory = self.directory.clone();
        let result = walk(self);
        self.directory = directory;
        result
    }

    /// Remembers what a variable holds.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        if self.variables.len() < MAX_NAMES || self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), value);
        }
    }

    /// Remembers what a file holds.
    pub(super) fn fill(&mut self, name: &Value, content: &Value) {
        let path = self.locate(&name.text).path;
        if path.is_empty() || !name.is_known() {
            return;
        }
        if self.files.len() < MAX_NAMES || self.files.contains_key(&path) {
            self.files.insert(path, content.clone());
        }
    }

    /// What a file that the same text wrote holds.
    pub(super) fn written(&mut self, name: &Value) -> Option<Value> {
        let path = self.locate(&name.text).path;
        let length = self.files.get(&path)?.text.len();
        if self.afford(length) { self.files.get(&path).cloned() } else { None }
    }

    /// What reading a file gives.
    pub(super) fn content(&mut self, name: &Value) -> Value {
        if let Some(content) = self.written(name) {
            return content;
        }
        let secret = checks::secret::is_secret(self, &name.text);
        Value::unknown(if secret { name.flow.and(Flow::SECRET) } else { name.flow })
    }

    /// Where a path leads that is used here.
    pub(super) fn locate(&self, path: &str) -> Location {
        Map::locate(path, self.directory.as_deref())
    }

    /// Judges what one program runs, which may run another one; `None` if they nest too deep.
    pub(super) fn nested<T>(&mut self, judge: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.calls >= MAX_CALLS {
            self.report(Rule::TooComplex, "the command");
            return None;
        }
        self.calls += 1;
        let result = judge(self);
        self.calls -= 1;
        Some(result)
    }

    /// Counts a command that is judged once more, for another place; false when there were too many.
    pub(super) fn repeats(&mut self) -> bool {
        self.repeats = self.repeats.saturating_add(1);
        if self.repeats > MAX_REPEATS {
            self.report(Rule::TooComplex, "the command");
            return false;
        }
        true
    }

    /// Counts bytes that are put together; false when there were too many.
    pub(super) fn afford(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            self.report(Rule::TooComplex, "the command");
            return false;
        }
        true
    }
}
