//! What a check is, and what it expects.

use std::time::Duration;

use serde_json::{Value, json};

use gloveport_protocol::BoxFuture;

use crate::{
    bench::Bench,
    server::{Answer, Request, run_action, shown},
};

/// One statement about a server.
pub struct Check {
    /// Group and name, such as `editor/insert-out-of-range`.
    pub id: &'static str,
    /// The statement.
    pub title: &'static str,
    /// Where it is written, such as `file-editor 3.6`.
    pub spec: &'static str,
    /// Only where a key is given.
    pub(crate) needs_key: bool,
    pub(crate) steps: Vec<Step>,
}

/// One step of a check.
pub(crate) enum Step {
    /// A file with these bytes, below the scratch directory.
    File(&'static str, Vec<u8>),
    /// A command that prepares something and must succeed.
    Prepare(String),
    /// An action.
    Act(Value, Expect),
    /// Any request.
    Send(Request, Expect),
    /// What cannot be said with the others.
    Code(Code),
}

/// A part of a check that is a function.
pub(crate) type Code = for<'a> fn(&'a Bench) -> BoxFuture<'a, Result<(), Problem>>;

/// Why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// What came is not what had to come.
    Different {
        /// Where.
        step: String,
        /// What had to come.
        expected: String,
        /// What came.
        got: String,
    },
    /// It cannot be found out, for this reason.
    Skip(String),
}

impl Problem {
    /// A difference; of long texts a report shows the beginning.
    pub fn new(step: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Different {
            step: step.into(),
            expected: shown(&expected.into()).to_owned(),
            got: shown(&got.into()).to_owned(),
        }
    }

    /// What cannot be found out, and why.
    pub fn skip(reason: impl Into<String>) -> Self {
        Self::Skip(reason.into())
    }

    /// Something that did not end in time.
    pub fn late(step: &str, limit: Duration) -> Self {
        Self::new(step, format!("an end within {} s", limit.as_secs()), "no end")
    }

    pub(crate) fn unless(same: bool, step: &str, expected: &str, got: &str) -> Result<(), Self> {
        if same { Ok(()) } else { Err(Self::new(step, expected, got)) }
    }
}

impl From<crate::ConformanceError> for Problem {
    fn from(error: crate::ConformanceError) -> Self {
        Self::new("a request", "an answer", error.to_string())
    }
}

impl Check {
    pub(crate) const fn new(id: &'static str, title: &'static str, spec: &'static str) -> Self {
        Self { id, title, spec, needs_key: false, steps: Vec::new() }
    }

    pub(crate) const fn with_key(mut self) -> Self {
        self.needs_key = true;
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn file(self, name: &'static str, content: impl Into<Vec<u8>>) -> Self {
        self.step(Step::File(name, content.into()))
    }

    pub(crate) fn prepare(self, command: impl Into<String>) -> Self {
        self.step(Step::Prepare(command.into()))
    }

    pub(crate) fn act(self, action: Value, expect: impl Into<Expect>) -> Self {
        self.step(Step::Act(action, expect.into()))
    }

    pub(crate) fn send(self, request: Request, expect: impl Into<Expect>) -> Self {
        self.step(Step::Send(request, expect.into()))
    }

    pub(crate) fn code(self, code: Code) -> Self {
        self.step(Step::Code(code))
    }

    /// A command.
    pub(crate) fn run(self, command: &str, expect: impl Into<Expect>) -> Self {
        self.act(run_action(command, &json!({})), expect)
    }

    /// A command with more arguments of the action.
    pub(crate) fn run_with(self, command: &str, more: &Value, expect: impl Into<Expect>) -> Self {
        self.act(run_action(command, more), expect)
    }

    /// A command with a hard limit in seconds.
    pub(crate) fn run_limited(self, command: &str, more: &Value, limit: f64, expect: impl Into<Expect>) -> Self {
        let mut action = run_action(command, more);
        action["timeout"] = json!(limit);
        self.act(action, expect)
    }
}

/// What an answer must be.
#[derive(Debug, Clone)]
pub(crate) struct Expect {
    status: u16,
    wants: Vec<Want>,
    /// Another behaviour that the specification allows, and why it does.
    or: Option<(Box<Expect>, &'static str)>,
}

/// One thing that must hold.
#[derive(Debug, Clone)]
pub(crate) enum Want {
    /// The whole JSON of the body.
    Whole(Value),
    /// The value at a JSON pointer.
    At(&'static str, Value),
    /// The text at a JSON pointer.
    Text(&'static str, Text),
    /// A header.
    Header(&'static str, Text),
    /// An integer is at a JSON pointer.
    Integer(&'static str),
    /// The bytes of the body.
    Body(&'static [u8]),
    /// Anything is there.
    Present(&'static str),
    /// Nothing is there.
    Absent(&'static str),
}

/// What a text must be. `{dir}` stands for the scratch directory and `{workspace}` for the initial directory.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Is(String),
    Starts(String),
    Ends(String),
    Has(String),
    HasNot(String),
    /// Begins with the first and ends with the second, with only digits between.
    Number(String, String),
}

impl Text {
    fn fits(&self, text: &str, bench: &Bench) -> bool {
        match self {
            Self::Is(expected) => bench.fill(expected) == text,
            Self::Starts(expected) => text.starts_with(&bench.fill(expected)),
            Self::Ends(expected) => text.ends_with(&bench.fill(expected)),
            Self::Has(expected) => text.contains(&bench.fill(expected)),
            Self::HasNot(expected) => !text.contains(&bench.fill(expected)),
            Self::Number(start, end) => text
                .strip_prefix(&bench.fill(start))
                .and_then(|rest| rest.strip_suffix(&bench.fill(end)))
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())),
        }
    }

    fn described(&self, bench: &Bench) -> String {
        match self {
            Self::Is(expected) => format!("{:?}", bench.fill(expected)),
            Self::Starts(expected) => format!("a text that begins with {:?}", bench.fill(expected)),
            Self::Ends(expected) => format!("a text that ends with {:?}", bench.fill(expected)),
            Self::Has(expected) => format!("a text with {:?} in it", bench.fill(expected)),
            Self::HasNot(expected) => format!("a text without {:?} in it", bench.fill(expected)),
            Self::Number(start, end) => format!("{:?}, a number and {:?}", bench.fill(start), bench.fill(end)),
        }
    }
}

impl Expect {
    /// An answer with this status.
    pub(crate) const fn status(status: u16) -> Self {
        Self { status, wants: Vec::new(), or: None }
    }

    /// Status 200 and this whole body.
    pub(crate) fn whole(value: Value) -> Self {
        Self::status(200).want(Want::Whole(value))
    }

    /// A status with this whole body `{"detail": …}`.
    pub(crate) fn detail(status: u16, detail: &str) -> Self {
        Self::status(status).want(Want::Whole(json!({ "detail": detail })))
    }

    /// A `run` observation of a command that ended.
    pub(crate) fn ran(content: &str, exit: i64) -> Self {
        Self::ended(exit).is("/content", content)
    }

    /// A `run` observation of a command that ended, with any content.
    pub(crate) fn ended(exit: i64) -> Self {
        Self::status(200)
            .at("/observation", "run")
            .at("/extras/metadata/exit_code", exit)
            .at("/extras/metadata/prefix", "")
            .is("/extras/metadata/suffix", &format!("\n[The command completed with exit code {exit}.]"))
            .at("/success", exit == 0)
    }

    /// An `error` observation with this content.
    pub(crate) fn error(content: &str) -> Self {
        Self::whole(json!({"message": content, "observation": "error", "content": content, "extras": {"error_id": ""}}))
    }

    pub(crate) fn want(mut self, want: Want) -> Self {
        self.wants.push(want);
        self
    }

    pub(crate) fn at(self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.want(Want::At(pointer, value.into()))
    }

    pub(crate) fn is(self, pointer: &'static str, text: &str) -> Self {
        self.want(Want::Text(pointer, Text::Is(text.to_owned())))
    }

    pub(crate) fn starts(self, pointer: &'static str, text: &str) -> Self {
        self.want(Want::Text(pointer, Text::Starts(text.to_owned())))
    }

    pub(crate) fn ends(self, pointer: &'static str, text: &str) -> Self {
        self.want(Want::Text(pointer, Text::Ends(text.to_owned())))
    }

    pub(crate) fn has(self, pointer: &'static str, text: &str) -> Self {
        self.want(Want::Text(pointer, Text::Has(text.to_owned())))
    }

    pub(crate) fn has_not(self, pointer: &'static str, text: &str) -> Self {
        self.want(Want::Text(pointer, Text::HasNot(text.to_owned())))
    }

    /// Or another behaviour, and why the specification allows it.
    pub(crate) fn or(mut self, other: Self, why: &'static str) -> Self {
        self.or = Some((Box::new(other), why));
        self
    }

    /// Compares. The result is the reason of the other behaviour where that one was seen.
    pub(crate) fn judge(&self, step: &str, answer: &Answer, bench: &Bench) -> Result<Option<&'static str>, Problem> {
        match (self.problem(step, answer, bench), &self.or) {
            (None, _) => Ok(None),
            (Some(problem), None) => Err(problem),
            (Some(problem), Some((other, why))) => match other.judge(step, answer, bench) {
                Ok(inner) => Ok(Some(inner.unwrap_or(why))),
                Err(_) => Err(problem),
            },
        }
    }

    fn problem(&self, step: &str, answer: &Answer, bench: &Bench) -> Option<Problem> {
        let body = answer.value();
        if answer.status != self.status {
            return Some(Problem::new(
                step,
                format!("status {}", self.status),
                format!("status {}: {}", answer.status, body_text(&body)),
            ));
        }
        self.wants.iter().find_map(|want| {
            let (expected, got) = want.difference(answer, &body, bench)?;
            Some(Problem::new(step, expected, got))
        })
    }
}

impl Want {
    /// What was expected and what came, if that is not the same.
    fn difference(&self, answer: &Answer, body: &Value, bench: &Bench) -> Option<(String, String)> {
        match self {
            Self::Whole(expected) => {
                let expected = bench.fill_value(expected);
                (expected != *body).then(|| (expected.to_string(), body_text(body)))
            }
            Self::At(pointer, expected) => {
                let expected = bench.fill_value(expected);
                let got = body.pointer(pointer);
                (got != Some(&expected)).then(|| {
                    let got = got.map_or_else(|| format!("nothing in {}", body_text(body)), Value::to_string);
                    (format!("{expected} at {pointer}"), got)
                })
            }
            Self::Text(pointer, text) => {
                let got = body.pointer(pointer).and_then(Value::as_str);
                (!got.is_some_and(|got| text.fits(got, bench))).then(|| {
                    let got = got.map_or_else(|| format!("no text in {}", body_text(body)), |got| format!("{got:?}"));
                    (format!("{} at {pointer}", text.described(bench)), got)
                })
            }
            Self::Header(name, text) => {
                let got = answer.header(name);
                (!got.as_deref().is_some_and(|got| text.fits(got, bench)))
                    .then(|| (format!("the header {name}: {}", text.described(bench)), format!("{got:?}")))
            }
            Self::Integer(pointer) => {
                let got = body.pointer(pointer);
                (!got.is_some_and(Value::is_i64)).then(|| (format!("an integer at {pointer}"), format!("{got:?}")))
            }
            Self::Body(expected) => (answer.body != *expected).then(|| {
                let expected = String::from_utf8_lossy(expected);
                (format!("the body {expected:?}"), body_text(body))
            }),
            Self::Present(pointer) => {
                body.pointer(pointer).is_none().then(|| (format!("something at {pointer}"), body_text(body)))
            }
            Self::Absent(pointer) => {
                let got = body.pointer(pointer)?;
                Some((format!("nothing at {pointer}"), got.to_string()))
            }
        }
    }
}

fn body_text(body: &Value) -> String {
    match body {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
