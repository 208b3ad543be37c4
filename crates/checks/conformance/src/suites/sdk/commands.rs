//! Commands that are waited for (`agent-server-workspace-api` 4.3).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::{ended, execute, execute_with, ok, printed, text};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Text, Want},
};

const MODEL: &str = "agent-server-workspace-api 4.1";
const SPEC: &str = "agent-server-workspace-api 4.3";

fn table(id: &'static str, title: &'static str, rows: &[(&str, &str, &str, i64)]) -> Check {
    rows.iter().fold(Check::new(id, title, SPEC), |check, (command, stdout, stderr, exit)| {
        check.send(execute(command), printed(stdout, stderr, *exit))
    })
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = outputs();
    checks.extend(processes());
    checks.extend(surroundings());
    checks
}

fn outputs() -> Vec<Check> {
    vec![
        table(
            "commands/streams",
            "both streams and the exit code come in one answer",
            &[
                ("echo out; echo err >&2; exit 3", "out\n", "err\n", 3),
                ("echo a\necho b", "a\nb\n", "", 0),
                ("printf x", "x", "", 0),
            ],
        ),
        table(
            "commands/nothing",
            "an output that is empty is null",
            &[("true", "", "", 0), ("", "", "", 0), ("# nothing", "", "", 0)],
        ),
        Check::new("commands/event", "the answer is an event with all its members", MODEL)
            .code(|bench| Box::pin(event(bench))),
        table(
            "commands/exit-codes",
            "exit codes are those of the shell",
            &[
                ("exit 1", "", "", 1),
                ("exit 7", "", "", 7),
                ("exit 255", "", "", 255),
                ("(exit 4); exit $?", "", "", 4),
            ],
        ),
        Check::new("commands/not-found", "a program that is not there is told by the shell", SPEC)
            .send(execute("no-such-program-here"), ended(127).has("/stderr", "no-such-program-here")),
        table(
            "commands/signals",
            "the end by a signal is a negative exit code",
            &[
                ("kill -9 $$", "", "", -9),
                ("kill -15 $$", "", "", -15),
                ("echo before; kill -TERM $$", "before\n", "", -15),
            ],
        ),
        table(
            "commands/letters",
            "letters of other languages are whole",
            &[("echo grün 😀 é", "grün 😀 é\n", "", 0), ("printf 'gr\\303\\274n\\n'", "grün\n", "", 0)],
        ),
        Check::new("commands/bytes", "bytes that are no text are replaced", SPEC)
            .send(execute("printf '\\377ok'"), printed("\u{fffd}ok", "", 0)),
        table(
            "commands/unchanged",
            "escape sequences and line ends are as they were printed",
            &[
                ("printf '\\033[1;31mred\\033[0m\\n'", "\u{1b}[1;31mred\u{1b}[0m\n", "", 0),
                ("printf 'a\\r\\nb\\r'", "a\r\nb\r", "", 0),
            ],
        ),
    ]
}

fn processes() -> Vec<Check> {
    let lead = "read -r line < /proc/$$/stat; set -- ${line##*)}; test $3 = $$ && test $4 = $$ && echo leads";
    vec![
        table(
            "commands/no-state",
            "no state passes from one command to the next",
            &[("X=1; export X; cd /", "", "", 0), ("echo ${X-unset}; pwd", "unset\n{workspace}\n", "", 0)],
        ),
        table("commands/stdin", "nothing can be read from the standard input", &[("cat; echo end", "end\n", "", 0)]),
        table("commands/terminal", "there is no terminal", &[("test -t 0 || test -t 1 || test -t 2", "", "", 1)]),
        table(
            "commands/group",
            "a command has a session and a group of processes of its own",
            &[(lead, "leads\n", "", 0)],
        ),
        Check::new("commands/together", "commands run at the same time", MODEL).code(|bench| Box::pin(together(bench))),
        Check::new("commands/pipe", "a command lasts until its streams are closed", SPEC)
            .code(|bench| Box::pin(took(bench, "sleep 2 & echo x", 2.0, 10.0))),
        Check::new("commands/background", "a job that holds no stream does not hold the command", SPEC)
            .code(|bench| Box::pin(took(bench, "sleep 6 >/dev/null 2>&1 & echo x", 0.0, 5.0))),
    ]
}

fn surroundings() -> Vec<Check> {
    let missing = "Error executing command: [Errno 2] No such file or directory: '{dir}/no such'";
    let cwd = |path: &str| json!({ "cwd": path });
    vec![
        Check::new("commands/cwd", "the directory of a command can be told", SPEC)
            .send(execute_with("pwd", &cwd("{dir}")), printed("{dir}\n", "", 0))
            .send(execute_with("pwd", &json!({"cwd": null})), printed("{workspace}\n", "", 0))
            .send(execute("pwd"), printed("{workspace}\n", "", 0)),
        Check::new("commands/cwd-missing", "a directory that is not there is told as an output", SPEC)
            .send(execute_with("true", &cwd("{dir}/no such")), printed("", missing, -1)),
        Check::new("commands/cwd-tilde", "a tilde is no home", SPEC)
            .send(execute_with("pwd", &cwd("~")), ended(-1).has("/stderr", "No such file or directory: '~'")),
        Check::new("commands/environment", "commands do not see keys and secrets of the server", SPEC)
            .code(|bench| Box::pin(environment(bench))),
        Check::new("commands/ai-agent", "commands see that an agent runs them", SPEC)
            .send(execute("printf %s \"$AI_AGENT\""), ended(0).want(Want::Text("/stdout", Text::Has(String::new())))),
        Check::new("commands/shell", "a syntax error is one of the shell", SPEC).send(
            execute("if true"),
            Expect::status(200).at("/exit_code", 2).want(Want::Text("/stderr", Text::Has(String::new()))),
        ),
    ]
}

async fn event(bench: &Bench) -> Result<(), Problem> {
    let event = ok(bench, &execute("echo hi")).await?;
    let mut members: Vec<&String> = event.as_object().map(|members| members.keys().collect()).unwrap_or_default();
    let mut expected = ["id", "timestamp", "command_id", "order", "exit_code", "stdout", "stderr", "kind"];
    expected.sort_unstable();
    members.sort_unstable();
    Problem::unless(members == expected, "an output", &format!("{expected:?}"), &format!("{members:?}"))?;
    let ids = [text(&event, "id"), text(&event, "command_id")];
    let is_id =
        |id: &&str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let are_ids = ids.iter().all(is_id) && ids[0] != ids[1];
    Problem::unless(are_ids, "an output", "two ids without hyphens", &format!("{ids:?}"))?;
    let time = text(&event, "timestamp");
    let digits: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_time = digits == "0000-00-00T00:00:00.000000Z";
    Problem::unless(is_time, "an output", "a time with microseconds and a Z", time)?;
    Problem::unless(event["order"] == 0, "an output", "order 0", &event["order"].to_string())
}

async fn together(bench: &Bench) -> Result<(), Problem> {
    let began = Instant::now();
    let sleep = execute("sleep 1.5");
    tokio::try_join!(bench.send(&sleep), bench.send(&sleep), bench.send(&sleep))?;
    let took = began.elapsed();
    let is_together = took < Duration::from_secs(4);
    Problem::unless(is_together, "three commands of 1.5 s", "less than 4 s", &format!("{:.1} s", took.as_secs_f64()))
}

/// A command that prints `x` and takes so many seconds.
async fn took(bench: &Bench, command: &str, least: f64, most: f64) -> Result<(), Problem> {
    let began = Instant::now();
    let event = ok(bench, &execute(command)).await?;
    let took = began.elapsed().as_secs_f64();
    Problem::unless(text(&event, "stdout") == "x\n", command, "x", &event.to_string())?;
    let fits = (least - 0.1..most).contains(&took);
    Problem::unless(fits, command, &format!("from {least} to {most} s"), &format!("{took:.1} s"))
}

/// Only the names of variables are asked for: their values may be secrets, and the answer is kept in the server's log.
async fn environment(bench: &Bench) -> Result<(), Problem> {
    let names = ok(bench, &execute("env | sed -n 's/^\\([A-Za-z_0-9]*\\)=.*/\\1/p'")).await?;
    let secret = |name: &&str| {
        name.starts_with("OH_SESSION_API_KEYS_")
            || ["SESSION_API_KEY", "OH_SECRET_KEY", "LMNR_PROJECT_API_KEY"].contains(name)
            || ["OTEL_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"].contains(name)
    };
    let seen: Value = text(&names, "stdout").lines().filter(secret).collect();
    Problem::unless(seen == json!([]), "the names of variables", "no key and no secret", &seen.to_string())
}
