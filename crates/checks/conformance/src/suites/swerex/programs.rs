//! Commands beside the sessions (`swe-rex-api` 2.1 and 3).

use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{execute, numbers, printed, raised_as, says, shell};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem},
};

const SPEC: &str = "swe-rex-api 3";

fn not_found(name: &str) -> Expect {
    raised_as("builtins.FileNotFoundError")
        .is("/swerexception/message", &format!("[Errno 2] No such file or directory: '{name}'"))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = runs();
    checks.extend(failures());
    checks.extend(surroundings());
    checks
}

fn runs() -> Vec<Check> {
    vec![
        Check::new("execute/shell", "a text with a shell is a command of `sh`", SPEC)
            .send(shell("echo $((6 * 7)) | cat"), printed("42\n", "", 0))
            .send(shell("echo out; echo err >&2; exit 3"), printed("out\n", "err\n", 3)),
        Check::new("execute/list", "a list is a program and its arguments as they are", SPEC)
            .send(execute(json!(["printf", "%s|", "a b", "$HOME", "*"]), &Value::Null), printed("a b|$HOME|*|", "", 0)),
        Check::new("execute/program", "a text without a shell is the name of a program", SPEC)
            .send(execute("true", &Value::Null), printed("", "", 0))
            .send(execute("echo hi", &Value::Null), not_found("echo hi")),
        Check::new("execute/signal", "the end by a signal is a negative exit code", SPEC)
            .send(execute(json!(["sh", "-c", "kill -9 $$"]), &Value::Null), printed("", "", -9))
            .send(execute(json!(["sh", "-c", "kill -15 $$"]), &Value::Null), printed("", "", -15)),
        Check::new("execute/merge", "both streams can be one", SPEC).send(
            execute("echo out; echo err >&2; echo out", &json!({"shell": true, "merge_output_streams": true})),
            printed("out\nerr\nout\n", "", 0),
        ),
        Check::new("execute/bytes", "bytes that are no text are shown by their numbers", SPEC)
            .send(shell("printf 'gr\\303\\274n \\377\\n'"), printed("grün \\xff\n", "", 0)),
        Check::new("execute/long", "long outputs are whole", SPEC)
            .send(shell("seq 20000"), printed(&numbers(20_000), "", 0)),
    ]
}

fn failures() -> Vec<Check> {
    vec![
        Check::new("execute/not-found", "a program that is not there is an error of Python", SPEC)
            .send(execute(json!(["no-such-program-here"]), &Value::Null), not_found("no-such-program-here")),
        Check::new("execute/permission", "a file that is no program is an error of Python", SPEC)
            .file("text", "text\n")
            .send(
                execute(json!(["{dir}/text"]), &Value::Null),
                raised_as("builtins.PermissionError")
                    .is("/swerexception/message", "[Errno 13] Permission denied: '{dir}/text'"),
            ),
        Check::new("execute/check", "a failure is raised where that is wanted", SPEC)
            .send(
                execute("echo out; echo err >&2; exit 4", &json!({"shell": true, "check": true})),
                says(
                    "NonZeroExitCodeError",
                    "Command 'echo out; echo err >&2; exit 4' failed with exit code 4. Stdout:\n'out\\n'\nStderr:\n'err\\n'",
                ),
            )
            .send(
                execute(json!(["false"]), &json!({"check": true, "error_msg": "While testing"})),
                says(
                    "NonZeroExitCodeError",
                    "While testing: Command ['false'] failed with exit code 1. Stdout:\n''\nStderr:\n''",
                ),
            )
            .send(execute(json!(["true"]), &json!({"check": true})), printed("", "", 0)),
        Check::new("execute/timeout", "a command whose time is over raises", SPEC).send(
            execute("sleep 100", &json!({"shell": true, "timeout": 0.5})),
            says("CommandTimeoutError", "Timeout (0.5s) exceeded while running command"),
        ),
        Check::new("execute/ended", "a command whose time is over is ended", SPEC).code(|bench| Box::pin(ended(bench))),
    ]
}

fn surroundings() -> Vec<Check> {
    vec![
        Check::new("execute/cwd", "the directory of a command can be told", SPEC)
            .send(execute(json!(["pwd"]), &json!({"cwd": "{dir}"})), printed("{dir}\n", "", 0))
            .send(execute(json!(["pwd"]), &Value::Null), printed("{workspace}\n", "", 0))
            .send(execute(json!(["pwd"]), &json!({"cwd": "{dir}/no such"})), not_found("{dir}/no such")),
        Check::new("execute/env", "an environment replaces that of the server", SPEC).send(
            execute(json!(["/bin/sh", "-c", "echo $A:$B:${HOME-none}"]), &json!({"env": {"A": "1", "B": "two words"}})),
            printed("1:two words:none\n", "", 0),
        ),
        Check::new("execute/stdin", "nothing can be read from the standard input", SPEC)
            .send(shell("cat; echo end"), printed("end\n", "", 0)),
        Check::new("execute/no-terminal", "there is no terminal", SPEC)
            .send(shell("test -t 0 || test -t 1 || test -t 2"), printed("", "", 1)),
        Check::new("execute/no-session", "no state passes from one command to the next", SPEC)
            .send(shell("X=1; export X; cd /"), printed("", "", 0))
            .send(shell("echo ${X-unset}; pwd"), printed("unset\n{workspace}\n", "", 0)),
    ]
}

async fn ended(bench: &Bench) -> Result<(), Problem> {
    let request = execute("sleep 3; touch '{dir}/late'", &json!({"shell": true, "timeout": 0.5}));
    bench.send(&request).await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let late = bench.shell("test ! -e '{dir}/late' || echo it goes on").await?;
    Problem::unless(late.is_empty(), "four seconds later", "nothing", late.trim())
}
