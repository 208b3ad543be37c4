//! `/alive` and `/server_info` (`action-execution-api` 2.1 and 2.5).

use serde_json::{Value, json};

use crate::{
    Check, Server,
    bench::Bench,
    check::{Expect, Problem},
    server::Request,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new("info/alive", "a live server says that it is ok", "action-execution-api 2.1")
            .send(Request::get("/alive"), Expect::whole(json!({"status": "ok"}))),
        Check::new("info/server-info", "the server tells what it uses", "action-execution-api 2.5")
            .code(|bench| Box::pin(server_info(bench))),
        Check::new("info/idle-time", "an action ends the idle time, a listing does not", "action-execution-api 2.5")
            .code(|bench| Box::pin(idle_time(bench))),
    ]
}

async fn info(bench: &Bench) -> Result<Value, Problem> {
    Ok(bench.send(&Request::get("/server_info")).await?.value())
}

/// The members of an object at every level, with the kinds of their values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), shape(member))).collect(),
        Value::Number(number) if number.is_f64() => json!("float"),
        Value::Number(_) => json!("integer"),
        other => other.clone(),
    }
}

async fn server_info(bench: &Bench) -> Result<(), Problem> {
    let expected = json!({
        "uptime": "float", "idle_time": "float",
        "resources": {
            "cpu_percent": "float",
            "memory": {"rss": "integer", "vms": "integer", "percent": "float"},
            "disk": {"total": "integer", "used": "integer", "free": "integer", "percent": "float"},
            "io": {"read_bytes": "integer", "write_bytes": "integer"}
        }
    });
    let first = info(bench).await?;
    Problem::unless(shape(&first) == expected, "GET /server_info", &expected.to_string(), &first.to_string())?;
    let second = info(bench).await?;
    let uptime = |value: &Value| value["uptime"].as_f64().unwrap_or(-1.0);
    let grows = uptime(&first) > 0.0 && uptime(&second) > uptime(&first);
    Problem::unless(grows, "two GET /server_info", "an uptime that grows", &format!("{first} {second}"))?;
    let number = |pointer: &str| first.pointer(pointer).and_then(Value::as_f64).unwrap_or(-1.0);
    let sane = number("/resources/memory/rss") > 0.0
        && number("/resources/memory/vms") >= number("/resources/memory/rss")
        && (0.0..=100.0).contains(&number("/resources/disk/percent"))
        && number("/resources/disk/total") >= number("/resources/disk/used");
    Problem::unless(sane, "GET /server_info", "numbers that fit together", &first.to_string())
}

async fn idle_time(bench: &Bench) -> Result<(), Problem> {
    let idle = |value: &Value| value["idle_time"].as_f64().unwrap_or(f64::MAX);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    bench.send(&Request::post("/list_files", "{}")).await?;
    let before = info(bench).await?;
    Problem::unless(idle(&before) > 0.5, "a pause and a listing", "an idle time above 0.5", &before.to_string())?;
    let read = json!({"action": "read", "args": {"path": format!("{}/missing", bench.dir)}});
    bench.server().execute(&read).await?;
    let after = info(bench).await?;
    Server::rest(bench.scratch.pause).await;
    let smaller = idle(&after) < idle(&before) && idle(&after) < 0.5;
    Problem::unless(smaller, "an action", "an idle time below 0.5", &after.to_string())
}
