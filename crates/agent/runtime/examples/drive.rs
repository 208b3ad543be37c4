//! Drives the sandbox behind a server as a backend does, and says what did not come out as it should.
//!
//! `drive URL WORKSPACE` works with any server of the OpenHands interface, also the reference's. Last line:
//! `N passed, N failed, N skipped`. It changes `~/.bashrc` and the global git configuration of the sandbox's user.

#![expect(clippy::print_stdout, reason = "it shows what it found")]

use std::{collections::BTreeMap, error::Error, fmt::Debug, process::ExitCode, time::Duration};

use gloveport_client::ClientOptions;
use gloveport_config::Config;
use gloveport_protocol::{Action, Observation, RunAction, WriteAction};
use gloveport_runtime::{Runtime, RuntimeOptions, ServerAt};

/// The reference may answer a command that follows at once with the result of the one before.
const PAUSE: Duration = Duration::from_millis(400);
/// How often something is tried.
const TRIES: u32 = 4;

/// Values that a shell would take apart.
const VALUES: [(&str, &str); 6] = [
    ("PLAIN", "plain"),
    ("QUOTES", "a \"b\" 'c' `d`"),
    ("EXPANSION", "$HOME $(id) !x \\n"),
    ("NEWLINES", "one\ntwo\n\nthree"),
    ("LETTERS", "üñï 日本語"),
    ("BREAK", "'; touch /tmp/broken-out; echo '"),
];

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(workspace)) = (arguments.next(), arguments.next()) else {
        return Err("usage: drive URL WORKSPACE".into());
    };
    let config = Config { workspace_mount_path_in_sandbox: workspace.clone(), ..Config::default() };
    let runtime = Runtime::new(RuntimeOptions::new(config, ServerAt::new(ClientOptions::new(url))))?;
    runtime.connect().await?;
    let (mut passed, mut failed) = (0, 0);
    for (name, outcome) in checks(&runtime, &workspace).await {
        match outcome {
            Ok(()) => passed += 1,
            Err(reason) => {
                failed += 1;
                println!("FAILED  {name}: {reason}");
            }
        }
    }
    runtime.close().await;
    println!("{passed} passed, {failed} failed, 0 skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn checks(runtime: &Runtime, workspace: &str) -> Vec<(String, Result<(), String>)> {
    let mut checks = Vec::new();
    for (name, value) in VALUES {
        let set = BTreeMap::from([(name.to_owned(), value.into())]);
        tokio::time::sleep(PAUSE).await;
        let outcome = runtime.add_env_vars(&set).await.map_err(|error| error.to_string());
        checks.push((format!("setting {name}"), outcome));
        let shown = format!("printf %s \"${name}\" | od -An -v -tx1 | tr -d ' \\n'; echo");
        checks.push((format!("value of {name}"), expect(runtime, &shown, &hex(value)).await));
        let file = format!(
            "env -i HOME=\"$HOME\" PATH=\"$PATH\" bash --norc -c '. ~/.bashrc; {}'",
            shown.replace('\'', "'\\''")
        );
        checks.push((format!("{name} in ~/.bashrc"), expect(runtime, &file, &hex(value)).await));
    }
    checks.push(("nothing ran".to_owned(), expect(runtime, "ls /tmp/broken-out 2>/dev/null; echo end", "end").await));
    checks.push(("git user".to_owned(), expect(runtime, "git config --global user.name", "openhands").await));

    let script =
        Action::Write(WriteAction::new(format!("{workspace}/.openhands/setup.sh"), "echo run >> ran; export SETUP=1"));
    let prepared = async {
        tokio::time::sleep(PAUSE).await;
        runtime.run_action(&script.into()).await?;
        runtime.maybe_run_setup_script().await
    };
    checks.push(("set-up script".to_owned(), prepared.await.map_err(|error| error.to_string())));
    checks.push(("it ran once".to_owned(), expect(runtime, "cat ran; echo $SETUP", "run\n1").await));

    let repository = "mkdir repo && cd repo && git init -q && echo x > 'a b' && git add -A && git commit -qm c && echo y >> 'a b' && cd .. && echo made";
    checks.push(("repository".to_owned(), expect(runtime, repository, "made").await));
    let directory = format!("{workspace}/repo");
    let changes = runtime.git_changes(&directory).await.map_err(|error| error.to_string());
    let paths =
        changes.map(|changes| changes.map(|changes| changes.into_iter().map(|change| change.path).collect::<Vec<_>>()));
    checks.push(("changes".to_owned(), same(&paths, &Ok(Some(vec!["a b".to_owned()])))));
    let diff = runtime.git_diff("a b", &directory).await.map_err(|error| error.to_string());
    checks.push(("diff".to_owned(), same(&diff.map(|diff| diff.modified), &Ok("x\ny".to_owned()))));
    let microagent =
        Action::Write(WriteAction::new(format!("{directory}/.openhands/microagents/tabs.md"), "Use tabs."));
    let found = async {
        runtime.run_action(&microagent.into()).await?;
        let found = runtime.microagents(Some("owner/repo")).await?;
        Ok::<_, gloveport_runtime::RuntimeError>(found.into_iter().map(|found| found.name).collect::<Vec<_>>())
    };
    let found = found.await.map_err(|error| error.to_string());
    checks.push(("microagents".to_owned(), same(&found, &Ok(vec!["tabs".to_owned()]))));
    checks
}

/// Whether a command prints this, at the latest when it is tried the last time.
async fn expect(runtime: &Runtime, command: &str, expected: &str) -> Result<(), String> {
    let mut outcome = Ok(());
    for _ in 0..TRIES {
        tokio::time::sleep(PAUSE).await;
        let run = RunAction { hidden: true, ..RunAction::new(command) };
        outcome = match runtime.run_action(&Action::Run(run).into()).await {
            Ok(Observation::Run(run)) => same(&run.content.trim(), &expected),
            Ok(other) => Err(other.content().to_owned()),
            Err(error) => Err(error.to_string()),
        };
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn same<T: Debug + PartialEq>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}")) }
}

fn hex(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
