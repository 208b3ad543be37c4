//! Large outputs, which come in pieces of 1,048,576 characters (`agent-server-workspace-api` 4.3).

use serde_json::{Value, json};

use super::calls::{execute, found, ok, outputs, same, shapes, started, text};
use crate::{Check, bench::Bench, check::Problem};

const SPEC: &str = "agent-server-workspace-api 4.3";
const LIMIT: u64 = 1_048_576;

/// A command that prints so many of a letter.
fn letters(count: u64, letter: char) -> String {
    format!("head -c {count} /dev/zero | tr '\\0' {letter}")
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new("chunks/several", "a large output is several events, the last of which has the exit code", SPEC)
            .code(|bench| Box::pin(several(bench))),
        Check::new("chunks/joined", "the answer to a command that is waited for has all of it", SPEC)
            .code(|bench| Box::pin(joined(bench))),
        Check::new("chunks/exact", "a piece that is just full is the last one", SPEC)
            .code(|bench| Box::pin(come(bench, letters(LIMIT, 'a'), json!([[0, LIMIT, 0, 0]])))),
        Check::new("chunks/one-more", "one character more is a piece more", SPEC)
            .code(|bench| Box::pin(come(bench, letters(LIMIT + 1, 'a'), json!([[0, LIMIT, 0, null], [1, 1, 0, 0]])))),
        Check::new("chunks/characters", "characters are counted, not bytes", SPEC).code(|bench| {
            let command = format!("yes é | tr -d '\\n' | head -c {}", 2 * LIMIT + 4);
            Box::pin(come(bench, command, json!([[0, LIMIT, 0, null], [1, 2, 0, 0]])))
        }),
        Check::new("chunks/order", "times and orders of a command grow together", SPEC)
            .code(|bench| Box::pin(order(bench))),
        Check::new("chunks/later", "what has come later is found by its order", "agent-server-workspace-api 4.2")
            .code(|bench| Box::pin(later(bench))),
    ]
}

async fn come(bench: &Bench, command: String, expected: Value) -> Result<(), Problem> {
    let id = started(bench, &command).await?;
    let events = outputs(bench, &id).await?;
    same(&format!("the outputs of `{command}`: order, characters, exit code"), &expected, &shapes(&events))
}

fn both() -> String {
    format!("{}; {} >&2; exit 7", letters(2_500_000, 'a'), letters(1_200_000, 'b'))
}

async fn several(bench: &Bench) -> Result<(), Problem> {
    let expected = json!([[0, LIMIT, 0, null], [1, LIMIT, 0, null], [2, 0, LIMIT, null], [3, 402_848, 151_424, 7]]);
    come(bench, both(), expected).await
}

async fn joined(bench: &Bench) -> Result<(), Problem> {
    let event = ok(bench, &execute(&both())).await?;
    let shape = shapes(std::slice::from_ref(&event));
    same("a large output", &json!([[3, 2_500_000, 1_200_000, 7]]), &shape)?;
    let events = outputs(bench, text(&event, "command_id")).await?;
    let last = events.last().cloned().unwrap_or_default();
    let told = |event: &Value| json!([event["id"], event["timestamp"], event["order"]]);
    same("the answer and the last event", &told(&last), &told(&event))
}

async fn order(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, &letters(3 * LIMIT + 1, 'a')).await?;
    let events = outputs(bench, &id).await?;
    let orders: Value = events.iter().map(|event| event["order"].clone()).collect();
    same("the orders", &json!([0, 1, 2, 3]), &orders)?;
    let grows = events.is_sorted_by_key(|event| text(event, "timestamp"));
    let times: Vec<&str> = events.iter().map(|event| text(event, "timestamp")).collect();
    Problem::unless(grows, "the times of the outputs", "times that grow", &format!("{times:?}"))
}

async fn later(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, &letters(2 * LIMIT + 1, 'a')).await?;
    outputs(bench, &id).await?;
    for (least, expected) in [("-1", json!([0, 1, 2])), ("0", json!([1, 2])), ("1", json!([2])), ("99", json!([]))] {
        let (events, _) = found(bench, &[("command_id__eq", &id), ("order__gt", least)]).await?;
        let orders: Value = events.iter().map(|event| event["order"].clone()).collect();
        same(&format!("a search with order__gt={least}"), &expected, &orders)?;
    }
    Ok(())
}
