//! Programs that are talked to (`swe-rex-api` 3).

use serde_json::json;

use super::calls::{ended, gives, in_session, interrupt, raised, run, run_with, talk};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem},
    server::Request,
};

const SPEC: &str = "swe-rex-api 3";

pub(super) fn checks() -> Vec<Check> {
    vec![
        in_session("talks/expect", "a program is awaited by what it asks", SPEC)
            .send(talk("read -p 'name? ' N", &["name\\? "]), ended(0).is("/expect_string", "name\\? "))
            .send(talk("Ada", &[]), ended(0))
            .send(run("echo \"$N\""), gives("Ada\n", 0)),
        in_session("talks/which", "the expression that matched is told", SPEC)
            .send(
                talk("read -p 'colour: ' C", &["never", "c.l(ou|o)r: "]),
                ended(0).is("/expect_string", "c.l(ou|o)r: "),
            )
            .send(talk("red", &["never"]), ended(0))
            .send(run("echo \"$C\""), gives("red\n", 0)),
        in_session("talks/prompt", "the shell's prompt ends the wait, too, and the output is stripped", SPEC)
            .send(talk("echo a", &["never"]), gives("a", 0)),
        in_session("talks/timeout", "nothing that is awaited comes: the time is over", SPEC)
            .send(
                run_with("cat", &json!({"is_interactive_command": true, "timeout": 0.5, "expect": ["never"]})),
                raised("CommandTimeoutError"),
            )
            .send(interrupt(), ended(0))
            .send(run("echo after"), gives("after\n", 0)),
        in_session("talks/no-expression", "what is no expression is an exception", SPEC)
            .send(talk("echo a", &["("]), Expect::status(511)),
        in_session("talks/python", "an interpreter keeps its state until it is left", SPEC)
            .code(|bench| Box::pin(python(bench))),
    ]
}

async fn python(bench: &Bench) -> Result<(), Problem> {
    const PROMPT: &str = ">>> ";
    if bench.shell("command -v python3 || true").await?.is_empty() {
        return Err(Problem::skip("there is no python3 in the sandbox"));
    }
    let quit = run_with("quit()", &json!({"is_interactive_quit": true}));
    let steps: [(Request, Expect); 5] = [
        (talk("python3 -q", &[PROMPT]), ended(0).is("/expect_string", PROMPT)),
        (talk("x = 6", &[PROMPT]), ended(0)),
        (talk("print(x * 7)", &[PROMPT]), ended(0).has("/output", "42")),
        (quit, Expect::status(200)),
        (run("echo after"), gives("after\n", 0)),
    ];
    for (request, expect) in steps {
        let answer = bench.send(&request).await?;
        expect.judge(&String::from_utf8_lossy(&request.body), &answer, bench)?;
    }
    Ok(())
}
