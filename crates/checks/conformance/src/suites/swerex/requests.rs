//! Requests that are sent again (`swe-rex-api` 1).

use serde_json::{Value, json};

use super::calls::{in_session, run, shell};
use crate::{
    Check,
    bench::{Bench, random_name},
    check::Problem,
    server::Request,
};

const SPEC: &str = "swe-rex-api 1";

pub(super) fn checks() -> Vec<Check> {
    vec![
        in_session("requests/same-id", "a request with the same id does nothing twice", SPEC)
            .code(|bench| Box::pin(same_id(bench))),
        Check::new("requests/other-id", "requests with other ids are done each", SPEC)
            .code(|bench| Box::pin(other_ids(bench))),
    ]
}

async fn sent(bench: &Bench, request: Request, id: &str) -> Result<(u16, Value), Problem> {
    let answer = bench.send(&request.header("x-request-id", id)).await?;
    Ok((answer.status, answer.value()))
}

async fn same_id(bench: &Bench) -> Result<(), Problem> {
    let (one, other) = (random_name()?, random_name()?);
    let count = || run("N=$((N + 1)); echo $N");
    let first = sent(bench, count(), &one).await?;
    let again = sent(bench, count(), &one).await?;
    let next = sent(bench, count(), &other).await?;
    let outputs = json!([first.1["output"], again.1["output"], next.1["output"]]);
    let expected = json!(["1\n", "1\n", "2\n"]);
    Problem::unless(outputs == expected, "two requests and one again", &expected.to_string(), &outputs.to_string())
}

async fn other_ids(bench: &Bench) -> Result<(), Problem> {
    for _ in 0..3 {
        sent(bench, shell("echo x >> '{dir}/count'"), &random_name()?).await?;
    }
    let count = bench.shell("wc -l < '{dir}/count'").await?;
    Problem::unless(count.trim() == "3", "three requests", "3", count.trim())
}
