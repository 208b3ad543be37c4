//! The log of commands (`agent-server-workspace-api` 4.1 and 4.2).

use reqwest::Method;
use serde_json::{Value, json};

use super::calls::{EVENTS, SEARCH, execute, found, ok, outputs, same, started, text};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Want},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 4.2";
const UNKNOWN: &str = "00000000000000000000000000000007";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = searches();
    checks.extend(refusals());
    checks.extend(vec![
        Check::new("events/one", "an event is found by its id", SPEC).code(|bench| Box::pin(one(bench))),
        Check::new("events/unknown", "an unknown event is not found", SPEC)
            .send(Request::get(&format!("{EVENTS}/{UNKNOWN}")), Expect::status(404).want(Want::Present("/detail")))
            .send(Request::get(&format!("{EVENTS}/no-id")), Expect::status(404)),
        Check::new("events/several", "several events are found by their ids, null for each unknown", SPEC)
            .code(|bench| Box::pin(several(bench))),
        Check::new("events/clear", "the log is cleared, and what runs goes on", SPEC)
            .code(|bench| Box::pin(clear(bench))),
    ]);
    checks
}

fn searches() -> Vec<Check> {
    vec![
        Check::new("search/of-a-command", "by the id of a command its outputs are found, and not itself", SPEC)
            .code(|bench| Box::pin(of_a_command(bench))),
        Check::new("search/kinds", "events are found by their kind and time", SPEC)
            .code(|bench| Box::pin(kinds(bench))),
        Check::new("search/order", "events come by time, or backwards", SPEC).code(|bench| Box::pin(order(bench))),
        Check::new("search/pages", "pages follow each other without a gap", SPEC).code(|bench| Box::pin(pages(bench))),
        Check::new("search/unknown-page", "an unknown page is the first one", SPEC)
            .code(|bench| Box::pin(unknown_page(bench))),
        Check::new("search/time", "a time without a zone is one of UTC", SPEC).code(|bench| Box::pin(time(bench))),
        Check::new("search/nothing", "of an unknown command nothing is found", SPEC).send(
            Request::get(SEARCH).query("command_id__eq", UNKNOWN),
            Expect::whole(json!({"items": [], "next_page_id": null})),
        ),
    ]
}

fn refusals() -> Vec<Check> {
    let wrong = [
        ("limit", "0"),
        ("limit", "101"),
        ("limit", "x"),
        ("kind__eq", "BashError"),
        ("command_id__eq", "x"),
        ("timestamp__gte", "x"),
        ("order__gt", "1.5"),
        ("sort_order", "UP"),
    ];
    vec![wrong.into_iter().fold(
        Check::new("search/refused", "what is no search is refused, and what is wrong is named", SPEC),
        |check, (name, value)| {
            let refused = Expect::status(422).at("/detail/0/loc", json!(["query", name]));
            check.send(Request::get(SEARCH).query(name, value), refused)
        },
    )]
}

/// A command with three outputs: its id, and they.
async fn large(bench: &Bench) -> Result<(String, Vec<Value>), Problem> {
    let id = started(bench, "head -c 2200000 /dev/zero | tr '\\0' a").await?;
    let events = outputs(bench, &id).await?;
    same("the number of outputs", &json!(3), &json!(events.len()))?;
    Ok((id, events))
}

fn ids(events: &[Value]) -> Value {
    events.iter().map(|event| event["id"].clone()).collect()
}

async fn of_a_command(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("echo one")).await?;
    let (events, next) = found(bench, &[("command_id__eq", text(&output, "command_id"))]).await?;
    same("a search", &json!([output]), &Value::from(events))?;
    same("the next page", &Value::Null, &json!(next))?;
    let of_kind = [("command_id__eq", text(&output, "command_id")), ("kind__eq", "BashCommand")];
    same("a search for commands of a command", &json!([]), &Value::from(found(bench, &of_kind).await?.0))
}

async fn kinds(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("echo one")).await?;
    let command = ok(bench, &Request::get(&format!("{EVENTS}/{}", text(&output, "command_id")))).await?;
    for (kind, event) in [("BashCommand", &command), ("BashOutput", &output)] {
        let since = [("kind__eq", kind), ("timestamp__gte", text(event, "timestamp"))];
        let (events, _) = found(bench, &since).await?;
        let is_found = events.contains(event) && events.iter().all(|event| event["kind"] == kind);
        Problem::unless(
            is_found,
            &format!("a search for {kind}"),
            &event.to_string(),
            &Value::from(events).to_string(),
        )?;
        let before =
            [("kind__eq", kind), ("timestamp__lt", text(event, "timestamp")), ("sort_order", "TIMESTAMP_DESC")];
        let (events, _) = found(bench, &before).await?;
        let is_earlier = !events.contains(event);
        Problem::unless(is_earlier, "a search for what was before", "no such event", &event.to_string())?;
    }
    Ok(())
}

async fn order(bench: &Bench) -> Result<(), Problem> {
    let (id, mut events) = large(bench).await?;
    events.reverse();
    let backwards = [("command_id__eq", id.as_str()), ("sort_order", "TIMESTAMP_DESC")];
    same("a search backwards", &ids(&events), &ids(&found(bench, &backwards).await?.0))?;
    let newest = [("command_id__eq", id.as_str()), ("sort_order", "TIMESTAMP_DESC"), ("limit", "1")];
    same("the newest output", &ids(&events[..1]), &ids(&found(bench, &newest).await?.0))
}

async fn pages(bench: &Bench) -> Result<(), Problem> {
    let (id, events) = large(bench).await?;
    for (limit, sizes) in [("1", json!([1, 1, 1])), ("2", json!([2, 1])), ("3", json!([3]))] {
        let (mut seen, mut lengths, mut page) = (Vec::new(), Vec::new(), None::<String>);
        // More pages than there can be are an end that does not come.
        for _ in 0..4 {
            let mut query = vec![("command_id__eq", id.as_str()), ("limit", limit)];
            query.extend(page.as_deref().map(|page| ("page_id", page)));
            let (items, next) = found(bench, &query).await?;
            lengths.push(items.len());
            seen.extend(items);
            page = next;
            if page.is_none() {
                break;
            }
        }
        same(&format!("the lengths of pages of {limit}"), &sizes, &json!(lengths))?;
        same(&format!("pages of {limit}"), &ids(&events), &ids(&seen))?;
    }
    Ok(())
}

async fn unknown_page(bench: &Bench) -> Result<(), Problem> {
    let (id, events) = large(bench).await?;
    let query = [("command_id__eq", id.as_str()), ("limit", "1"), ("page_id", "no-such-page")];
    same("an unknown page", &ids(&events[..1]), &ids(&found(bench, &query).await?.0))
}

async fn time(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("echo one")).await?;
    let (id, time) = (text(&output, "command_id"), text(&output, "timestamp"));
    let plain = time.trim_end_matches('Z');
    for (query, expected) in [
        (("timestamp__gte", time), 1),
        (("timestamp__gte", plain), 1),
        (("timestamp__lt", plain), 0),
        (("timestamp__lt", "2001-01-01"), 0),
        (("timestamp__gte", "2001-01-01T00:00:00+02:00"), 1),
    ] {
        let (events, _) = found(bench, &[("command_id__eq", id), query]).await?;
        same(&format!("a search with {}={}", query.0, query.1), &json!(expected), &json!(events.len()))?;
    }
    Ok(())
}

async fn one(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("echo one")).await?;
    let stored = ok(bench, &Request::get(&format!("{EVENTS}/{}", text(&output, "id")))).await?;
    same("the output by its id", &output, &stored)?;
    let command = ok(bench, &Request::get(&format!("{EVENTS}/{}", text(&output, "command_id")))).await?;
    let got = json!([command["kind"], command["command"], command["cwd"], command["timeout"]]);
    same("the command by its id", &json!(["BashCommand", "echo one", null, 30]), &got)
}

async fn several(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("echo one")).await?;
    let body = json!([output["id"], UNKNOWN, output["id"]]).to_string();
    let request = Request { method: Method::GET, ..Request::post(&format!("{EVENTS}/"), body) };
    same("several events", &json!([output, null, output]), &ok(bench, &request).await?)
}

async fn clear(bench: &Bench) -> Result<(), Problem> {
    let output = ok(bench, &execute("true")).await?;
    let running = started(bench, "sleep 1; echo after").await?;
    let clear = Request::new(Method::DELETE, EVENTS);
    let cleared = ok(bench, &clear).await?;
    let are_several = cleared["cleared_count"].as_u64().is_some_and(|count| count >= 3);
    Problem::unless(are_several, "DELETE", "at least 3 events as `cleared_count`", &cleared.to_string())?;
    let answer = bench.send(&Request::get(&format!("{EVENTS}/{}", text(&output, "id")))).await?;
    Problem::unless(answer.status == 404, "an event of before", "status 404", &format!("status {}", answer.status))?;
    let events = outputs(bench, &running).await?;
    let printed: Value = events.iter().map(|event| event["stdout"].clone()).collect();
    same("the output of what ran", &json!(["after\n"]), &printed)
}
