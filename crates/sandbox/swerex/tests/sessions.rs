//! Sessions, programs and files, over a real executor.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{sync::Arc, time::Duration};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_swerex::{
    Exception, MOST_SESSIONS, SweRex,
    types::{Command, CreateSession, Observation, SessionAction},
};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

struct Sandbox {
    swerex: Arc<SweRex>,
    executor: Arc<Executor>,
    directory: TempDir,
}

impl Sandbox {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = ExecutorOptions::inherited(directory.path().to_owned());
        // The start-up file of whoever runs the tests may take its time.
        options.environment.retain(|(name, _)| name != "HOME");
        options.environment.push(("HOME".into(), directory.path().into()));
        let executor = Executor::start(options).await.unwrap();
        let sandbox = Self { swerex: Arc::new(SweRex::new(Arc::clone(&executor))), executor, directory };
        sandbox.create("default").await.unwrap();
        sandbox
    }

    async fn create(&self, name: &str) -> Result<String, Exception> {
        let request = json!({"session": name, "session_type": "bash", "startup_timeout": 20});
        let request: CreateSession = from_value(request).unwrap();
        self.swerex.create_session(request).await.map(|created| created.output)
    }

    async fn act(&self, action: Value) -> Result<Observation, Exception> {
        let action: SessionAction = from_value(action).unwrap();
        self.swerex.run_in_session(&action).await
    }

    async fn run(&self, command: &str) -> Observation {
        self.act(json!({"action_type": "bash", "command": command, "check": "silent", "timeout": 30})).await.unwrap()
    }

    async fn interrupt(&self, more: Value) -> Observation {
        let mut action = json!({"action_type": "bash_interrupt"});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.act(action).await.unwrap()
    }

    async fn end(self) {
        self.swerex.close().await;
        self.executor.close().await;
    }
}

fn class(exception: &Exception) -> &str {
    exception.class_path.rsplit('.').next().unwrap()
}

#[tokio::test]
async fn a_command_whose_time_is_over_goes_on_and_nothing_of_its_output_is_lost_or_another_s() {
    let sandbox = Sandbox::start().await;
    let slow = json!({"action_type": "bash", "command": "echo begun; sleep 1; echo ended", "timeout": 0.5});
    let late = sandbox.act(slow).await.unwrap_err();
    assert_eq!((class(&late), &late.extra_info["output"]), ("CommandTimeoutError", &json!("begun\n")));
    // The next one waits, and has its own output alone.
    assert_eq!(sandbox.run("echo next").await.output, "next\n");
    // One that has no time for that is not run.
    let endless = json!({"action_type": "bash", "command": "echo begun; sleep 1000", "timeout": 0.5});
    sandbox.act(endless).await.unwrap_err();
    let late = json!({"action_type": "bash", "command": "touch never", "timeout": 0.1});
    assert_eq!(class(&sandbox.act(late).await.unwrap_err()), "CommandTimeoutError");
    let interrupted = sandbox.interrupt(json!({})).await;
    assert!(interrupted.output.starts_with("begun"), "{interrupted:?}");
    assert_eq!(sandbox.run("ls").await.output, "");
    sandbox.end().await;
}

#[tokio::test]
async fn an_interrupt_ends_what_somebody_waits_for_and_what_does_not_listen() {
    let sandbox = Sandbox::start().await;
    let swerex = Arc::clone(&sandbox.swerex);
    let waiting = tokio::spawn(async move {
        let command = "echo begun; touch there; sleep 1000";
        let action = json!({"action_type": "bash", "command": command, "check": "silent"});
        swerex.run_in_session(&from_value(action).unwrap()).await
    });
    while !sandbox.directory.path().join("there").exists() {
        sleep(Duration::from_millis(10)).await;
    }
    sandbox.interrupt(json!({"timeout": 5})).await;
    let ended = waiting.await.unwrap().unwrap();
    assert_eq!((ended.exit_code, ended.output.lines().next()), (Some(130), Some("begun")));

    // What runs in the background is nobody's to interrupt.
    sandbox.run("sleep 4321 & echo $! > background").await;
    for deaf in ["bash -c \"trap '' INT; while true; do sleep 0.1; done\"", "sleep 1000"] {
        let action = json!({"action_type": "bash", "command": deaf, "timeout": 0.3});
        assert_eq!(class(&sandbox.act(action).await.unwrap_err()), "CommandTimeoutError");
        sandbox.interrupt(json!({"timeout": 0.1, "n_retry": 2})).await;
        assert_eq!(sandbox.run("echo free; jobs -s").await.output, "free\n", "{deaf}");
    }
    // One that ends by itself at the key that would stop it: no job was stopped, and the last one is not killed for it.
    let polite = "bash -c 'trap \"exit 0\" TSTP; touch ready; while :; do :; done'";
    sandbox.act(json!({"action_type": "bash", "command": polite, "timeout": 0.01})).await.unwrap_err();
    while !sandbox.directory.path().join("ready").exists() {
        sleep(Duration::from_millis(10)).await;
    }
    sandbox.interrupt(json!({"timeout": 5, "n_retry": 0})).await;
    assert_eq!(sandbox.run("kill -0 $(cat background) && echo runs").await.output, "runs\n");
    assert_eq!(sandbox.interrupt(json!({})).await.output, "");
    sandbox.end().await;
}

#[tokio::test]
async fn a_program_is_talked_to_and_blanks_and_names_of_keys_reach_it_as_they_are() {
    let sandbox = Sandbox::start().await;
    let talk = |text: &str, expect: &str| json!({"action_type": "bash", "command": text, "is_interactive_command": true, "expect": [expect], "timeout": 20});
    let script = "while IFS= read -r -p 'say> ' line; do printf '[%s]\\n' \"$line\"; done";
    sandbox.act(talk(script, "say> ")).await.unwrap();
    for text in ["plain", "  two blanks  ", "C-c", "Up", "it's $HOME"] {
        let said = sandbox.act(talk(text, "say> ")).await.unwrap();
        assert!(said.output.contains(&format!("[{text}]")), "{text:?}: {said:?}");
        assert_eq!((said.exit_code, said.expect_string.as_str()), (Some(0), "say> "));
    }
    let ordinary = sandbox.act(json!({"action_type": "bash", "command": "echo"})).await.unwrap_err();
    assert!(ordinary.message.contains("is_interactive_quit"), "{ordinary:?}");
    sandbox.interrupt(json!({"timeout": 5})).await;
    assert_eq!(sandbox.run("echo after").await.output, "after\n");
    sandbox.end().await;
}

#[tokio::test]
async fn what_a_program_prints_stays_and_what_the_terminal_adds_does_not() {
    let sandbox = Sandbox::start().await;
    for (command, expected) in [
        (r"printf 'a\nb\n'", "a\nb\n"),
        (r"printf 'a\r\nb\n'", "a\r\nb\n"),
        (r"printf 'a\r\r\n\r\n\rb\r'", "a\r\r\n\r\n\rb\r"),
        ("stty -onlcr; echo a", "a\n"),
        ("stty onlcr; echo a", "a\n"),
        ("stty raw; echo a", "a\n"),
        ("echo a", "a\n"),
    ] {
        assert_eq!(sandbox.run(command).await.output, expected, "{command}");
    }
    let zero = sandbox.act(json!({"action_type": "bash", "command": "echo a\0b"})).await.unwrap_err();
    assert_eq!(zero.class_path, "builtins.ValueError");
    let action = json!({"action_type": "bash", "command": "echo a; cat", "is_interactive_command": true,
        "expect": ["a\r\n"], "timeout": 20});
    let found = sandbox.act(action).await.unwrap();
    assert_eq!((found.output.as_str(), found.expect_string.as_str()), ("", "a\r\n"));
    sandbox.interrupt(json!({"timeout": 5})).await;
    sandbox.end().await;
}

#[tokio::test]
async fn sessions_are_bounded_and_leave_nothing() {
    let sandbox = Sandbox::start().await;
    for number in 1..MOST_SESSIONS {
        sandbox.create(&number.to_string()).await.unwrap();
    }
    let full = sandbox.create("one more").await.unwrap_err();
    assert!(full.message.contains("close one first"), "{full:?}");
    sandbox.run("sleep 4321 & echo $! > pid").await;
    let pid = std::fs::read_to_string(sandbox.directory.path().join("pid")).unwrap();
    sandbox.swerex.close().await;
    // Whoever has become its parent may not have asked for its end yet.
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    assert_eq!(
        class(&sandbox.act(json!({"action_type": "bash", "command": "echo"})).await.unwrap_err()),
        "SessionDoesNotExistError"
    );
    sandbox.create("default").await.unwrap();
    // One that is not ready in time is not there.
    let late =
        json!({"session": "late", "session_type": "bash", "startup_source": ["/dev/stdin"], "startup_timeout": 0.2});
    let late = sandbox.swerex.create_session(from_value(late).unwrap()).await.unwrap_err();
    assert_eq!(class(&late), "CommandTimeoutError");
    sandbox.create("late").await.unwrap();
    sandbox.end().await;
}

#[tokio::test]
async fn a_program_ends_in_its_time_with_all_that_it_started() {
    let sandbox = Sandbox::start().await;
    let execute = async |command: Value| {
        let command: Command = from_value(command).unwrap();
        sandbox.swerex.execute(&command).await
    };
    let began = Instant::now();
    let late = execute(json!({"command": "sleep 1000 & sleep 1000", "shell": true, "timeout": 0.3})).await.unwrap_err();
    assert_eq!((class(&late), began.elapsed() < Duration::from_secs(20)), ("CommandTimeoutError", true));
    // What it leaves in the background does not hold the answer.
    let answer = execute(json!({"command": "sleep 1000 & echo $!", "shell": true})).await.unwrap();
    assert!(answer.exit_code == 0 && began.elapsed() < Duration::from_secs(30), "{answer:?}");
    let large = execute(json!({"command": "head -c 70000000 /dev/zero | tr '\\0' x", "shell": true})).await.unwrap();
    assert!(
        large.stdout.starts_with("[36445568 bytes of output before this are not shown]\nx"),
        "{}",
        &large.stdout[..80]
    );
    for wrong in [
        json!({"command": "true", "env": {"A=B": "C"}}),
        json!({"command": "true", "env": {"A": "B\0"}}),
        json!({"command": ["true", "a\0b"]}),
        json!({"command": "true", "cwd": "/tmp\0"}),
    ] {
        let refused = execute(wrong.clone()).await.unwrap_err();
        assert_eq!(refused.class_path, "builtins.ValueError", "{wrong}: {refused:?}");
    }
    assert_eq!(class(&execute(json!({"command": ["no-such"]})).await.unwrap_err()), "FileNotFoundError");
    sandbox.end().await;
}
