//! Runs operations on both servers and compares the answers.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Operation, Rule,
    normal::{Host, normal},
    rules::Case,
};
use crate::{
    Check, ConformanceError, Server,
    bench::{Bench, Scratch},
    ground,
    server::run_action,
};

/// How servers are compared.
#[derive(Debug, Clone)]
pub struct DifferOptions {
    /// Time limit of one operation.
    pub limit: Duration,
    /// Wait after each command.
    pub pause: Duration,
    /// Most differences that are kept.
    pub most: usize,
}

impl Default for DifferOptions {
    fn default() -> Self {
        Self { limit: Duration::from_mins(1), pause: Duration::ZERO, most: 50 }
    }
}

/// What came of a comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Comparison {
    /// Operations whose answers are the same.
    pub same: usize,
    /// Operations whose answers differ as a rule says, by the name of the rule.
    pub known: BTreeMap<&'static str, usize>,
    /// Operations whose answers differ otherwise.
    pub different: usize,
    /// The first of these.
    pub differences: Vec<Difference>,
}

/// One operation that two servers answer differently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Which operation, counted from 1.
    pub number: usize,
    /// The operation.
    pub operation: Value,
    /// Where the answers differ first, as a JSON pointer.
    pub at: String,
    /// What is there in the answer of the server that is looked at.
    pub mine: Value,
    /// What is there in the answer of the other.
    pub theirs: Value,
}

/// How often a shell that answers the command before is asked again.
const SYNCHRONISATIONS: usize = 8;
/// Operations without an answer, one after the other, after which the rest is not tried.
const SILENCES: usize = 3;

/// Compares what two servers answer to the same operations, tells how far it is, and cleans up.
pub async fn compare(
    mine: &Server,
    theirs: &Server,
    operations: &[Operation],
    options: &DifferOptions,
    mut told: impl FnMut(usize),
) -> Result<Comparison, ConformanceError> {
    let (my_bench, their_bench) = tokio::try_join!(bench(mine, options), bench(theirs, options))?;
    let result = both(&my_bench, &their_bench, operations, options, &mut told).await;
    let removed = async { tokio::join!(my_bench.scratch.remove(), their_bench.scratch.remove()) };
    // Whether it could be cleaned up says nothing about the differences.
    let _removed = tokio::time::timeout(options.limit, removed).await;
    result
}

async fn bench(server: &Server, options: &DifferOptions) -> Result<Bench, ConformanceError> {
    let made = async {
        let scratch = Scratch::make(server, options.pause).await?;
        scratch.bench(&Check::new("same", "", ""), 1).await
    };
    let late = |_| ConformanceError::Scratch {
        url: server.url().to_owned(),
        reason: format!("no answer within {} s", options.limit.as_secs()),
    };
    tokio::time::timeout(options.limit, made).await.map_err(late)?
}

async fn both(
    mine: &Bench,
    theirs: &Bench,
    operations: &[Operation],
    options: &DifferOptions,
    told: &mut impl FnMut(usize),
) -> Result<Comparison, ConformanceError> {
    let probe = run_action("true", &Value::Null);
    let (one, other) = tokio::try_join!(mine.server().execute(&probe), theirs.server().execute(&probe))?;
    let (one, other) = (one.value(), other.value());
    let (my_host, their_host) = (Host::of(&one, &other), Host::of(&other, &one));
    let mut comparison = Comparison::default();
    let mut silent = 0;
    for (at, operation) in operations.iter().enumerate() {
        // At the same time, so that what runs on has run equally long on both.
        let (my_answer, their_answer) =
            tokio::join!(ask(operation, mine, &my_host, options), ask(operation, theirs, &their_host, options));
        silent = if my_answer.is_ok() && their_answer.is_ok() { 0 } else { silent + 1 };
        if silent >= SILENCES {
            my_answer?;
            their_answer?;
            break;
        }
        let shown = |answer: Result<Value, ConformanceError>| {
            answer.unwrap_or_else(|error| json!({ "no_answer": error.to_string() }))
        };
        let (my_answer, their_answer) = (shown(my_answer), shown(their_answer));
        let known = comparison.take(at + 1, operation, &my_answer, &their_answer, options.most);
        if operation.is_command() {
            Server::rest(options.pause).await;
        }
        if known == Some("prompt-race") {
            tokio::join!(synchronise(mine, options), synchronise(theirs, options));
        }
        told(at + 1);
    }
    Ok(comparison)
}

async fn ask(
    operation: &Operation,
    bench: &Bench,
    host: &Host,
    options: &DifferOptions,
) -> Result<Value, ConformanceError> {
    match tokio::time::timeout(options.limit, operation.ask(bench)).await {
        Ok(answer) => Ok(normal(&answer?, bench, host)),
        Err(_) => Err(ConformanceError::NoAnswer {
            method: "operation".to_owned(),
            url: bench.server().url().to_owned(),
            reason: format!("no answer within {} s", options.limit.as_secs()),
        }),
    }
}

/// Asks a shell until it answers the command that it was asked, and not the one before.
async fn synchronise(bench: &Bench, options: &DifferOptions) {
    for number in 0..SYNCHRONISATIONS {
        Server::rest(options.pause.max(Duration::from_millis(300))).await;
        let text = format!("synchronised-{number}");
        let command = format!("echo {text}");
        let asked = ground::shell(bench.server(), &command);
        if matches!(tokio::time::timeout(options.limit, asked).await, Ok(Ok((_, output))) if output == text) {
            return;
        }
    }
}

impl Comparison {
    /// Takes both answers to an operation, and gives the name of the rule that the difference follows.
    fn take(
        &mut self,
        number: usize,
        operation: &Operation,
        mine: &Value,
        theirs: &Value,
        most: usize,
    ) -> Option<&'static str> {
        if mine == theirs {
            self.same += 1;
            return None;
        }
        if let Some(name) = Rule::of(&Case { operation, mine, theirs }) {
            *self.known.entry(name).or_default() += 1;
            return Some(name);
        }
        self.different += 1;
        if self.differences.len() < most {
            let (at, mine, theirs) = first_difference(mine, theirs);
            self.differences.push(Difference { number, operation: bounded(&operation.to_value()), at, mine, theirs });
        }
        None
    }

    /// The differences for people, and the closing line. Operations that differ as a rule says count as passed.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        for difference in &self.differences {
            let Difference { number, operation, at, mine, theirs } = difference;
            let _ = writeln!(
                text,
                "FAILED  operation {number}: {operation}\n        at        {at}\n        mine      {mine}\n        theirs    {theirs}"
            );
        }
        if self.different > self.differences.len() {
            let _ = writeln!(text, "        and {} more", self.different - self.differences.len());
        }
        for (name, count) in &self.known {
            let _ = writeln!(text, "known   {name}: {count}");
        }
        let known: usize = self.known.values().sum();
        let _ = writeln!(text, "{} the same, {known} known differences", self.same);
        let _ = writeln!(text, "{} passed, {} failed, 0 skipped", self.same + known, self.different);
        text
    }
}

/// Where two values differ first, and what is there.
fn first_difference(mine: &Value, theirs: &Value) -> (String, Value, Value) {
    let below = |key: String, mine: &Value, theirs: &Value| {
        let (at, mine, theirs) = first_difference(mine, theirs);
        (format!("/{key}{at}"), mine, theirs)
    };
    match (mine, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let (mine, theirs) = (one.get(key), other.get(key));
                if mine != theirs {
                    let absent = Value::String("(absent)".to_owned());
                    let key = key.replace('~', "~0").replace('/', "~1");
                    return below(key, mine.unwrap_or(&absent), theirs.unwrap_or(&absent));
                }
            }
            (String::new(), Value::Null, Value::Null)
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let differs = one.iter().zip(other).position(|(mine, theirs)| mine != theirs);
            let at = differs.unwrap_or_default();
            match (one.get(at), other.get(at)) {
                (Some(mine), Some(theirs)) => below(at.to_string(), mine, theirs),
                _ => (String::new(), Value::Null, Value::Null),
            }
        }
        (Value::String(one), Value::String(other)) => {
            let (mine, theirs) = around(one, other);
            (String::new(), Value::String(mine), Value::String(theirs))
        }
        _ => (String::new(), bounded(mine), bounded(theirs)),
    }
}

/// Most characters of a text that are shown.
const SHOWN: usize = 400;

/// Both texts, from a little before the place where they differ.
fn around(one: &str, other: &str) -> (String, String) {
    let equal = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let skip = equal.saturating_sub(SHOWN / 2);
    let part = |text: &str| {
        let mut part: String = text.chars().skip(skip).take(SHOWN).collect();
        if skip > 0 {
            part.insert_str(0, "[…]");
        }
        if text.chars().count() > skip + SHOWN {
            part.push_str("[…]");
        }
        part
    };
    (part(one), part(other))
}

/// A value whose texts are cut.
fn bounded(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > SHOWN => {
            Value::String(text.chars().take(SHOWN).chain("[…]".chars()).collect())
        }
        Value::Array(elements) => elements.iter().take(SHOWN).map(bounded).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().take(SHOWN).map(|(key, member)| (key.clone(), bounded(member))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown_with_its_place() {
        let cases = [
            (json!({"a": 1, "b": {"c": [1, 2]}}), json!({"a": 1, "b": {"c": [1, 3]}}), "/b/c/1", json!(2), json!(3)),
            (json!({"a/b": 1}), json!({}), "/a~1b", json!(1), json!("(absent)")),
            (json!({}), json!({"x": "y"}), "/x", json!("(absent)"), json!("y")),
            (json!([1]), json!([1, 2]), "", json!([1]), json!([1, 2])),
        ];
        for (mine, theirs, at, one, other) in cases {
            assert_eq!(first_difference(&mine, &theirs), (at.to_owned(), one, other));
        }
        let long = "x".repeat(1000);
        let (mine, theirs) = around(&format!("{long}a"), &format!("{long}b"));
        assert_eq!(mine, format!("[…]{}a", "x".repeat(200)));
        assert_eq!(theirs, format!("[…]{}b", "x".repeat(200)));
    }

    #[test]
    fn known_differences_count_as_passed_and_others_do_not() {
        let mut comparison = Comparison::default();
        let view = Operation::Action(json!({"action": "edit", "args": {}}));
        assert_eq!(comparison.take(1, &view, &json!(1), &json!(1), 1), None);
        assert_eq!(comparison.take(2, &view, &json!("a\r"), &json!("a"), 1), Some("carriage-returns-kept"));
        assert_eq!(comparison.take(3, &view, &json!("a"), &json!("b"), 1), None);
        assert_eq!(comparison.take(4, &view, &json!("a"), &json!("c"), 1), None);
        let expected = "\
FAILED  operation 3: {\"action\":\"edit\",\"args\":{}}
        at        
        mine      \"a\"
        theirs    \"b\"
        and 1 more
known   carriage-returns-kept: 1
1 the same, 1 known differences
2 passed, 2 failed, 0 skipped
";
        assert_eq!(comparison.text(), expected);
    }
}
