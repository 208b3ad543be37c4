//! Pages that may ask (`agent-server-workspace-api` 2).

use reqwest::Method;

use super::calls::{EXECUTE, execute};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Text, Want},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 2";

fn header(name: &'static str, value: &str) -> Want {
    Want::Header(name, Text::Is(value.to_owned()))
}

fn preflight(origin: &str) -> Request {
    Request::new(Method::OPTIONS, EXECUTE)
        .without_key()
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "X-Session-API-Key, Content-Type")
}

fn allowed(origin: &str) -> Expect {
    Expect::status(200)
        .want(header("access-control-allow-origin", origin))
        .want(header("access-control-allow-credentials", "true"))
}

pub(super) fn checks() -> Vec<Check> {
    let local = ["http://localhost:3000", "https://127.0.0.1"];
    vec![
        // A server without a key has other rules for pages here and there.
        local.iter().fold(
            Check::new("origins/preflight", "pages of this machine may ask with the key", SPEC).with_key(),
            |check, origin| {
                let allows = |name| Want::Header(name, Text::Has("POST".to_owned()));
                check.send(
                    preflight(origin),
                    allowed(origin)
                        .want(allows("access-control-allow-methods"))
                        .want(Want::Header("access-control-allow-headers", Text::Has("X-Session-API-Key".to_owned()))),
                )
            },
        ),
        local.iter().fold(
            Check::new("origins/answer", "pages of this machine may read the answer", SPEC).with_key(),
            |check, origin| check.send(execute("true").header("origin", *origin), allowed(origin)),
        ),
        Check::new("origins/others", "pages of others may not read the answer", SPEC)
            .with_key()
            .code(|bench| Box::pin(others(bench))),
        Check::new("origins/none", "who is no page gets no such headers", SPEC).code(|bench| Box::pin(none(bench))),
    ]
}

async fn untold(bench: &Bench, request: &Request) -> Result<(), Problem> {
    let told = bench.send(request).await?.header("access-control-allow-origin");
    let step = format!("{} {}", request.method, request.path);
    Problem::unless(told.is_none(), &step, "no access-control-allow-origin", &format!("{told:?}"))
}

async fn others(bench: &Bench) -> Result<(), Problem> {
    for origin in ["https://other.example", "http://localhost.example", "null"] {
        untold(bench, &preflight(origin)).await?;
        untold(bench, &Request::get("/alive").header("origin", origin)).await?;
    }
    Ok(())
}

async fn none(bench: &Bench) -> Result<(), Problem> {
    untold(bench, &Request::get("/alive")).await
}
