//! What the server tells of itself (`agent-server-workspace-api` 3 and 7).

use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{EVENTS, EXECUTE, SEARCH, START, execute, ok};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Want},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 3";
const REST: &str = "agent-server-workspace-api 7";

pub(super) fn checks() -> Vec<Check> {
    let status = |text: &str| Expect::whole(json!({ "status": text }));
    vec![
        Check::new("details/alive", "a live server says that it is ok", SPEC)
            .send(Request::get("/alive").without_key(), status("ok"))
            .send(Request::get("/health").without_key(), status("ok")),
        Check::new("details/ready", "a server that is ready says so", SPEC)
            .send(Request::get("/ready").without_key(), status("ready")),
        Check::new("details/server-info", "the server tells what it is, at two places", SPEC)
            .code(|bench| Box::pin(server_info(bench))),
        Check::new("details/idle-time", "a command ends the idle time", SPEC).code(|bench| Box::pin(idle_time(bench))),
        Check::new("details/openapi", "the document of OpenAPI has the routes and their parameters", SPEC)
            .code(|bench| Box::pin(openapi(bench))),
        Check::new("details/init", "a server that was started at once need not be begun", SPEC).send(
            Request::get("/api/init").without_key(),
            Expect::status(404)
                .want(Want::Present("/detail"))
                .or(Expect::status(200).want(Want::Present("/state")), "it is one of a pool"),
        ),
        Check::new("details/tools", "the names of the tools are a list", REST).code(|bench| Box::pin(tools(bench))),
        Check::new("details/editor", "the server tells whether it has an editor", REST)
            .code(|bench| Box::pin(editor(bench))),
    ]
}

async fn server_info(bench: &Bench) -> Result<(), Problem> {
    let step = "GET /server_info";
    let info = ok(bench, &Request::get("/server_info").without_key()).await?;
    let texts = ["title", "version", "sdk_version", "tools_version", "workspace_version", "docs", "redoc"];
    let lists = ["usable_tools", "available_conversation_runtimes", "capabilities"];
    for name in texts {
        Problem::unless(info[name].is_string(), step, &format!("a text as `{name}`"), &info[name].to_string())?;
    }
    for name in lists {
        Problem::unless(info[name].is_array(), step, &format!("a list as `{name}`"), &info[name].to_string())?;
    }
    let number = |name: &str| info[name].as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    let fits = number("uptime").zip(number("idle_time")).is_some_and(|(uptime, idle)| idle <= uptime);
    Problem::unless(fits, step, "whole seconds as `idle_time`, not more than `uptime`", &info.to_string())?;
    let names = |value: &Value| value.as_object().map(|members| members.keys().cloned().collect::<Vec<_>>());
    let root = ok(bench, &Request::get("/").without_key()).await?;
    Problem::unless(names(&root) == names(&info), "GET /", &info.to_string(), &root.to_string())
}

async fn idle_time(bench: &Bench) -> Result<(), Problem> {
    let idle = async || Ok::<_, Problem>(ok(bench, &Request::get("/server_info")).await?["idle_time"].as_f64());
    ok(bench, &execute("true")).await?;
    tokio::time::sleep(Duration::from_millis(2_300)).await;
    let before = idle().await?;
    let is_idle = before.is_some_and(|before| before >= 2.0);
    Problem::unless(is_idle, "a pause of 2.3 s", "an idle time of 2 s", &format!("{before:?}"))?;
    ok(bench, &execute("true")).await?;
    let after = idle().await?;
    let is_busy = after.is_some_and(|after| after < 2.0);
    Problem::unless(is_busy, "a command", "an idle time below 2 s", &format!("{after:?}"))
}

async fn openapi(bench: &Bench) -> Result<(), Problem> {
    let document = ok(bench, &Request::get("/openapi.json").without_key()).await?;
    let routes = [
        ("post", EXECUTE),
        ("post", START),
        ("get", SEARCH),
        ("delete", EVENTS),
        ("post", "/api/bash/bash_commands/{command_id}/stop"),
        ("post", "/api/file/upload"),
        ("get", "/api/file/download"),
        ("post", "/api/file/create_directory"),
        ("get", "/api/file/home"),
        ("get", "/api/file/search_subdirs"),
        ("get", "/api/git/changes"),
        ("get", "/api/git/diff"),
        ("get", "/api/git/commits"),
        ("post", "/api/hooks"),
    ];
    for (method, path) in routes {
        let is_there = document["paths"][path][method].is_object();
        Problem::unless(is_there, "GET /openapi.json", &format!("{method} {path}"), "no such route")?;
    }
    let parameters = document["paths"]["/api/file/upload"]["post"]["parameters"].as_array();
    let has_path = parameters.is_some_and(|all| all.iter().any(|one| one["name"] == "path" && one["in"] == "query"));
    Problem::unless(has_path, "GET /openapi.json", "the query parameter `path` of uploads", "none")
}

async fn tools(bench: &Bench) -> Result<(), Problem> {
    let tools = ok(bench, &Request::get("/api/tools/")).await?;
    let are_names = tools.as_array().is_some_and(|tools| tools.iter().all(Value::is_string));
    Problem::unless(are_names, "GET /api/tools/", "a list of names", &tools.to_string())
}

async fn editor(bench: &Bench) -> Result<(), Problem> {
    let status = ok(bench, &Request::get("/api/vscode/status")).await?;
    let tells = status["running"].is_boolean() && status["enabled"].is_boolean();
    Problem::unless(tells, "GET /api/vscode/status", "`running` and `enabled`", &status.to_string())
}
