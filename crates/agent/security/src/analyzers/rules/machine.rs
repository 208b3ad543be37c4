//! Walks through commands in the order in which a shell runs them.
//!
//! It runs nothing. It knows the values of variables that the text itself sets, follows `cd`, and notes what flows from
//! command to command, so that rules see `rm -rf /` also when it is written as `D=/; bash -c "rm -rf $D"`. Both
//! branches of a condition are taken, and a loop is walked through a few times.

use std::collections::{BTreeMap, HashMap};

use super::{
    call::Call,
    checks, dispatch,
    place::{Location, Map},
    shell::{Command, Fault, Parsed, Pipeline, Redirect, RedirectKind, Script, Simple, Stage, parse},
    table::Rule,
    value::{Flow, Value},
};
use crate::analyzer::RuleMatch;

/// How deep texts that are themselves commands may nest.
const MAX_TEXTS: u32 = 8;
/// How often bodies of loops are walked through in all.
const MAX_TURNS: u32 = 64;
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
    texts: u32,
    turns: u32,
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

    /// Walks through a text as a shell would.
    pub(super) fn text(&mut self, text: &str, input: &Value, faults: Faults) -> Value {
        if self.texts >= MAX_TEXTS || !self.afford(text.len()) {
            self.report(Rule::TooComplex, text);
            return Value::unknown(Flow::default());
        }
        self.texts += 1;
        let Parsed { script, fault } = parse(text);
        let output = self.script(&script, input);
        match fault {
            Some(Fault::TooDeep) => self.report(Rule::TooComplex, text),
            Some(Fault::Syntax) if faults == Faults::Reported => self.report(Rule::Unparsable, text),
            _ => {}
        }
        self.texts -= 1;
        output
    }

    /// Commands one after the other; the outputs of all.
    pub(super) fn script(&mut self, script: &Script, input: &Value) -> Value {
        let mut output = Value::default();
        for pipeline in &script.pipelines {
            let more = self.pipeline(pipeline, input);
            self.append(&mut output, &more);
        }
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: &Value) -> Value {
        let mut flowing = None;
        for stage in &pipeline.stages {
            flowing = Some(self.stage(stage, flowing.as_ref().unwrap_or(input)));
        }
        flowing.unwrap_or_default()
    }

    fn stage(&mut self, stage: &Stage, input: &Value) -> Value {
        let redirected = self.redirected_input(&stage.redirects);
        let input = redirected.as_ref().unwrap_or(input);
        let (output, quotation) = match &stage.command {
            Command::Simple(simple) => self.simple(simple, &stage.redirects, input),
            Command::Group(script) => (self.script(script, input), String::new()),
            Command::Subshell(script) => (self.scoped(|machine| machine.script(script, input)), String::new()),
            Command::Loop { name, words, body } => (self.turns(name, words, body, input), String::new()),
            Command::Function { name, body } => {
                checks::system::function(self, name, body);
                self.scoped(|machine| machine.script(body, &Value::unknown(Flow::default())));
                (Value::default(), String::new())
            }
        };
        self.redirected_output(&stage.redirects, output, &quotation)
    }

    /// Does something in a directory that does not last.
    pub(super) fn scoped<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let directory = self.directory.clone();
        let result = walk(self);
        self.directory = directory;
        result
    }

    fn turns(&mut self, name: &str, words: &[super::shell::Word], body: &Script, input: &Value) -> Value {
        let mut values: Vec<Value> = words.iter().flat_map(|word| self.fields(word)).collect();
        if values.is_empty() {
            values.push(Value::unknown(Flow::default()));
        }
        let mut output = Value::default();
        for value in values {
            self.turns += 1;
            let out_of_turns = self.turns > MAX_TURNS;
            let value = if out_of_turns { Value::unknown(value.flow) } else { value };
            self.set(name, value);
            let more = self.script(body, input);
            self.append(&mut output, &more);
            if out_of_turns {
                break;
            }
        }
        output
    }

    fn simple(&mut self, simple: &Simple, redirects: &[Redirect], input: &Value) -> (Value, String) {
        for (name, word) in &simple.assignments {
            let value = self.value(word);
            self.set(name, value);
        }
        let words: Vec<Value> = simple.words.iter().flat_map(|word| self.fields(word)).collect();
        let call = Call { words: &words, input };
        if words.is_empty() {
            return (Value::default(), String::new());
        }
        checks::network::shell_redirects(self, &call, redirects);
        (dispatch::run(self, &call), call.quote())
    }

    /// What flows into a command by its own redirections.
    fn redirected_input(&mut self, redirects: &[Redirect]) -> Option<Value> {
        let mut input = None;
        for redirect in redirects {
            let Some(word) = redirect.word() else { continue };
            match redirect.kind {
                RedirectKind::Read => {
                    let name = self.value(word);
                    input = Some(self.content(&name));
                }
                RedirectKind::Text => input = Some(self.value(word)),
                RedirectKind::Write | RedirectKind::Duplicate => {}
            }
        }
        input
    }

    /// Puts the output of a command where its redirections say; what is left flows on.
    fn redirected_output(&mut self, redirects: &[Redirect], output: Value, quotation: &str) -> Value {
        let mut left = output;
        for redirect in redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write) {
            let Some(word) = redirect.word() else { continue };
            let target = self.value(word);
            let quotation = format!("{quotation} > {}", target.text).trim().replace(super::place::UNKNOWN, "…");
            let content = if redirect.only_errors { Value::unknown(Flow::default()) } else { left };
            checks::write::target(self, &target, &quotation);
            checks::network::redirect(self, &target, content.flow, &quotation);
            self.fill(&target, &content);
            left = if redirect.only_errors { content } else { Value::default() };
        }
        left
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
