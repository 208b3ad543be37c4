//! Walks through commands in the order in which a shell runs them.
//!
//! It runs nothing. It knows the values of variables that the text itself sets, follows `cd`, and notes what flows from
//! command to command, so that rules see `rm -rf /` also when it is written as `D=/; bash -c "rm -rf $D"`. Both
//! branches of a condition are taken, and a loop is walked through a few times.

use super::{
    call::Call,
    checks,
    machine::{Faults, Machine},
    shell::{Command, Fault, Parsed, Pipeline, Redirect, RedirectKind, Script, Simple, Stage, parse},
    table::Rule,
    value::{Flow, Value},
};

/// How deep texts that are themselves commands may nest.
const MAX_TEXTS: u32 = 8;
/// How often bodies of loops are walked through in all.
const MAX_TURNS: u32 = 64;

impl Machine<'_> {
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
        (self.run(&call), call.quote())
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
}
