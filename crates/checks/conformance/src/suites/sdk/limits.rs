//! Commands whose time is over (`agent-server-workspace-api` 4.3).

use std::time::{Duration, Instant};

use serde_json::json;

use super::calls::{ended, execute_with, ok, text};
use crate::{Check, bench::Bench, check::Problem};

const SPEC: &str = "agent-server-workspace-api 4.3";

pub(super) fn checks() -> Vec<Check> {
    let second = json!({"timeout": 1});
    vec![
        // Ours says so in the other stream, too.
        Check::new("limits/output", "what was printed until then is kept, and nothing that comes later", SPEC)
            .send(execute_with("echo a; sleep 100; echo later", &second), ended(-1).is("/stdout", "a\n")),
        Check::new("limits/soon", "a command ends soon after its time is over", SPEC)
            .code(|bench| Box::pin(ends(bench, "echo a; sleep 100"))),
        Check::new("limits/deaf", "a command that does not hear the first signal is killed", SPEC)
            .code(|bench| Box::pin(ends(bench, "trap '' TERM; echo a; sleep 100; sleep 100"))),
        Check::new("limits/trapped", "a command that hears the first signal has lost its exit code", SPEC).send(
            execute_with("trap 'exit 3' TERM; echo a; sleep 100 & wait", &second),
            ended(-1).is("/stdout", "a\n"),
        ),
        Check::new("limits/tidy", "a command that hears the first signal can tidy up", SPEC)
            .send(execute_with("trap 'echo x > \"{dir}/tidied\"; exit 3' TERM; sleep 100 & wait", &second), ended(-1))
            .prepare("test -e '{dir}/tidied'"),
        Check::new("limits/group", "all processes of a command are ended", SPEC).code(|bench| Box::pin(group(bench))),
    ]
}

async fn ends(bench: &Bench, command: &str) -> Result<(), Problem> {
    let began = Instant::now();
    let event = ok(bench, &execute_with(command, &json!({"timeout": 1}))).await?;
    let took = began.elapsed().as_secs_f64();
    let is_right = event["exit_code"] == -1 && text(&event, "stdout") == "a\n";
    Problem::unless(is_right, command, "exit code -1 and the output", &event.to_string())?;
    Problem::unless((0.9..6.0).contains(&took), command, "an end after 1 to 6 s", &format!("{took:.1} s"))
}

async fn group(bench: &Bench) -> Result<(), Problem> {
    let command = "sh -c 'sleep 3; touch \"{dir}/late\"; sleep 100'; echo";
    ok(bench, &execute_with(command, &json!({"timeout": 1}))).await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let late = bench.shell("test ! -e '{dir}/late' || echo it goes on").await?;
    Problem::unless(late.is_empty(), "four seconds later", "nothing", late.trim())
}
