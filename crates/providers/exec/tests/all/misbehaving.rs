//! Programs that do not keep the protocol: each is a clear error, and nothing of them goes on.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::support::{Program, exec, spec};
use futures_util::StreamExt as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    LogOptions, Phase, Progress, Provider as _, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState,
};
use gloveport_provider_exec::Exec;

/// A description with less patience.
const IMPATIENT: &str = r#"{"protocol": 1, "capabilities": {"logs": true, "pause": true},
    "limits": {"create": 1, "logs": 1}}"#;

async fn create(exec: &Exec, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    exec.create(spec, &Progress::silent()).await
}

/// Waits for the end of a process, of which no event tells.
async fn ended(pid: &str) {
    let pid: u32 = pid.trim().parse().unwrap();
    let gone = async {
        while gloveport_sys::process::stat(pid).is_some_and(|stat| stat.state != 'Z') {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_that_says_why_and_what_the_program_wrote_last() {
    let table: &[(&str, &[&str])] = &[
        ("echo one >&2; echo boom >&2; exit 3", &["exit status: 3", "no answer", "one\nboom"]),
        ("exit 0", &["it wrote no answer"]),
        ("echo hello", &["not a JSON object", "hello"]),
        ("echo '{\"sandbox\": '", &["not a JSON object"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX} and more\"", &["not a JSON object"]),
        ("kill -9 $$", &["signal: 9"]),
        ("head -c 20000000 /dev/zero; sleep 1000", &["more than 16 MiB"]),
        ("echo '{\"sandbox\": 5}'", &["cannot be read"]),
        ("echo '{\"sandbox\": null}'", &["no sandbox"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX}\"; exit 4", &["exit status: 4"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX}\" | sed s/running/dancing/", &["`dancing` is not a state"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX}\" | sed 's/\"s\"/\"t\"/'", &["for the session `t`"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX}\" | sed 's/\"b\"/\"..\\/b\"/'", &["`../b`", "id of a sandbox"]),
        ("echo \"{\\\"sandbox\\\": $SANDBOX}\" | sed s/http:/file:/", &["`file://127.0.0.1:1`", "http://"]),
        ("echo '{\"error\": {\"message\": \"x\"}}'", &["its error cannot be read", "code"]),
        ("echo '{\"error\": {\"code\": \"new-in-2\", \"message\": \"m\", \"hint\": \"h\"}}'", &["m (new-in-2); h"]),
    ];
    for (body, expected) in table {
        let (program, exec) = exec(body);
        let error = create(&exec, &spec()).await.unwrap_err().to_string();
        let name = program.path.display().to_string();
        assert!(expected.iter().all(|part| error.contains(part)) && error.contains(&name), "{body}: {error}");
    }
}

#[tokio::test]
async fn what_a_program_that_answered_leaves_in_its_group_is_ended_and_a_session_of_its_own_goes_on() {
    let body = "sleep 1000 >/dev/null 2>&1 <&- & echo $! > $DIR/left
        setsid sleep 1001 >/dev/null 2>&1 <&- & echo $! > $DIR/kept
        echo \"{\\\"sandbox\\\": $SANDBOX}\"";
    let (program, exec) = exec(body);
    create(&exec, &spec()).await.unwrap();
    let pid = |name| program.file(name).trim().parse::<u32>().unwrap();
    ended(&program.file("left")).await;
    let kept = gloveport_sys::process::stat(pid("kept")).unwrap();
    assert_eq!((kept.name.as_str(), kept.session), ("sleep", pid("kept")));
    let kept = rustix::process::Pid::from_raw(pid("kept").cast_signed()).unwrap();
    rustix::process::kill_process(kept, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn each_code_of_an_error_is_its_own_kind_whatever_the_exit_code() {
    let id = SandboxId::new("b").unwrap();
    let error = async |fields: &str| {
        let (_program, exec) = exec(&format!("echo '{{\"error\": {{{fields}}}}}'; exit 1"));
        (create(&exec, &spec()).await.unwrap_err(), exec.pause(&id).await.unwrap_err())
    };
    let (made, _) = error(r#""code": "unsupported", "message": "magic""#).await;
    assert!(
        matches!(made, ProviderError::Unsupported { provider, what } if provider == "exec:test" && what == "magic")
    );
    let (made, _) = error(r#""code": "invalid-spec", "field": "image", "message": "no tag""#).await;
    assert!(matches!(made, ProviderError::Spec { field, reason } if field == "image" && reason == "no tag"));
    let (made, _) = error(r#""code": "session-exists", "id": "other""#).await;
    assert!(matches!(made, ProviderError::SessionExists { session, sandbox }
        if session.as_str() == "s" && sandbox.as_str() == "other"));
    let (_, paused) = error(r#""code": "not-found""#).await;
    assert!(matches!(paused, ProviderError::NotFound(found) if found == id));
    let (_, paused) = error(r#""code": "wrong-state", "state": "stopped", "reason": "full""#).await;
    assert!(matches!(paused, ProviderError::State { action: "pause", state, .. }
        if state == SandboxState::Stopped("full".to_owned())));
    let (made, _) = error(r#""code": "start-failed", "message": "no", "log": "last words""#).await;
    assert!(matches!(made, ProviderError::Start { reason, log } if reason == "no" && log == "last words"));
    let (made, _) = error(r#""code": "access", "message": "expired", "hint": "log in""#).await;
    assert!(matches!(made, ProviderError::Access { reason, hint, .. } if reason == "expired" && hint == "log in"));
    let (made, _) = error(r#""code": "unreachable", "message": "no route""#).await;
    assert!(made.is_temporary() && made.to_string().contains("no route"), "{made}");
    let (made, _) = error(r#""code": "timeout", "message": "pulling""#).await;
    assert!(matches!(&made, ProviderError::Timeout { action, .. } if action.contains("pulling")), "{made}");
}

#[tokio::test]
async fn a_program_that_does_not_answer_in_time_ends_with_its_whole_group() {
    for how in
        ["wait", "trap '' TERM; wait; sleep 1000", "while :; do echo '{\"phase\": \"creating\"}'; sleep 0.01; done"]
    {
        let body = format!("sleep 1000 & echo $$ $! > $DIR/pids; echo slow >&2; {how}");
        let program = Program::new(IMPATIENT, &body);
        let exec = program.start().unwrap();
        let error = create(&exec, &spec()).await.unwrap_err();
        assert!(
            matches!(&error, ProviderError::Timeout { action, limit }
            if action.contains("slow") && *limit == Duration::from_secs(1)),
            "{error}"
        );
        for pid in program.file("pids").split_whitespace() {
            ended(pid).await;
        }
    }
}

#[tokio::test]
async fn a_create_that_is_given_up_is_told_so_and_may_take_back_what_it_began() {
    let (program, exec) = exec("trap 'echo taken > $DIR/back; exit 1' TERM; echo $$ > $DIR/pid; sleep 1000 & wait");
    let spec = spec();
    let progress = Progress::silent();
    let made = exec.create(&spec, &progress);
    let begun = async {
        while program.file("pid").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        made = made => panic!("{made:?}"),
        () = begun => {}
    }
    let pid = program.file("pid");
    ended(&pid).await;
    assert_eq!(program.file("back"), "taken\n");
}

#[tokio::test]
async fn a_process_that_holds_the_output_open_does_not_hold_up_the_answer() {
    let (_program, exec) = exec("sleep 20 & echo \"{\\\"sandbox\\\": $SANDBOX}\"");
    let began = Instant::now();
    assert_eq!(create(&exec, &spec()).await.unwrap().id.as_str(), "b");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let (_program, exec) = exec("echo \"{\\\"sandbox\\\": $SANDBOX}\"");
    let environment = [("LONG".to_owned(), "x".repeat(4 * 1024 * 1024))].into();
    create(&exec, &SandboxSpec { environment, ..spec() }).await.unwrap();
}

#[tokio::test]
async fn progress_comes_before_an_answer_of_one_or_many_lines_and_fields_of_the_future_are_passed_over() {
    let body = "echo '{\"phase\": \"preparing-image\", \"detail\": \"50 %\"}'; echo; echo '{\"phase\": \"started\"}'\n\
                printf '{\\n  \"new\": 1,\\n  \"sandbox\": %s\\n}\\n' \"$SANDBOX\" | sed 's/\"id\"/\"newer\": [], \"id\"/'";
    let (_program, exec) = exec(body);
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let told = Arc::clone(&told);
        Progress::to(Arc::new(move |report| told.lock().unwrap().push((report.phase, report.detail.to_owned()))))
    };
    let sandbox = exec.create(&spec(), &progress).await.unwrap();
    assert_eq!((sandbox.url.as_deref(), sandbox.provider.as_str()), (Some("http://127.0.0.1:1"), "exec:test"));
    let expected = [(Phase::Creating, ""), (Phase::PreparingImage, "50 %"), (Phase::Started, "")];
    assert_eq!(*told.lock().unwrap(), expected.map(|(phase, detail)| (phase, detail.to_owned())));
}

#[tokio::test]
async fn what_a_program_repeats_of_secrets_is_in_no_error() {
    let secrets = || SandboxSpec {
        secrets: [("TOKEN".to_owned(), Secret::new("hunter2"))].into(),
        session_key: Some(Secret::new("the-key")),
        ..spec()
    };
    for body in [
        "cat >&2; exit 1",
        "cat",
        "read -r line; echo '{\"error\": {\"code\": \"failed\", \"message\": \"hunter2\", \"hint\": \"the-key\"}}'",
        "echo '{\"error\": {\"code\": \"start-failed\", \"message\": \"x\", \"log\": \"hunter2 the-key\"}}'",
        "cat >&2; sleep 1000",
    ] {
        let program = Program::new(IMPATIENT, body);
        let exec = program.start().unwrap();
        let error = create(&exec, &secrets()).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2") && !text.contains("the-key"), "{body}: {text}");
    }
}

#[tokio::test]
async fn a_log_ends_with_the_error_in_the_last_line_of_standard_error() {
    let id = SandboxId::new("b").unwrap();
    let found = "if test $1 = find; then echo \"{\\\"sandbox\\\": $SANDBOX}\"; exit; fi; echo one;";
    for (ending, expected) in [
        ("exit 0", None),
        ("echo note >&2; exit 5", Some("exit status: 5")),
        ("echo '{\"error\": {\"code\": \"failed\", \"message\": \"rotated\"}}' >&2; exit 1", Some("rotated")),
        ("sleep 1000", Some("took longer than 1 s")),
    ] {
        let program = Program::new(IMPATIENT, &format!("{found} {ending}"));
        let exec = program.start().unwrap();
        let pieces: Vec<_> = exec.logs(&id, LogOptions::default()).await.unwrap().collect().await;
        assert_eq!(pieces[0].as_deref().unwrap(), b"one\n", "{ending}");
        let error = pieces.get(1).map(|piece| piece.as_ref().unwrap_err().to_string());
        match (&error, expected) {
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{ending}: {error}"),
            (None, None) => {}
            other => panic!("{ending}: {other:?}"),
        }
    }
    let (_program, exec) = exec("echo '{\"sandbox\": null}'");
    let missing = exec.logs(&id, LogOptions::default()).await.map(drop);
    assert!(matches!(missing, Err(ProviderError::NotFound(found)) if found == id));
}

#[tokio::test]
async fn a_program_that_follows_a_log_ends_when_nobody_reads_it_any_more() {
    let id = SandboxId::new("b").unwrap();
    let described = r#"{"protocol": 1, "capabilities": {"logs": true, "follow_logs": true}}"#;
    let body = "if test $1 = find; then echo \"{\\\"sandbox\\\": $SANDBOX}\"; exit; fi\necho $$ > $DIR/pid; echo x; sleep 1000";
    let program = Program::new(described, body);
    let exec = program.start().unwrap();
    let mut log = exec.logs(&id, LogOptions { follow: true, tail: None }).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap(), "x\n");
    drop(log);
    ended(&program.file("pid")).await;
}

#[test]
fn a_program_whose_description_cannot_be_used_makes_no_provider() {
    for (described, expected) in [
        (r#"{"protocol": 2}"#, "version 2"),
        (r#"{"capabilities": {}}"#, "protocol"),
        (r#"{"protocol": 1, "capabilities": {"logs": "yes"}}"#, "capabilities"),
        (r#"{"protocol": 1, "capabilities": {"warm": true}}"#, "`warm`"),
        (r#"{"error": {"code": "protocol", "message": "too old"}}"#, "too old"),
        ("", "no answer"),
        ("[]", "describe"),
    ] {
        let error = Program::new(described, "").start().unwrap_err().to_string();
        assert!(error.contains(expected), "{described}: {error}");
    }
    let unknown = r#"{"protocol": 1, "capabilities": {"telepathy": true, "isolation": "container"}, "more": 1}"#;
    Program::new(unknown, "").start().unwrap();
    let mut options = Program::new(unknown, "").options();
    options.program = "/nonexistent/program".into();
    let error = Exec::start(options).unwrap_err().to_string();
    assert!(error.contains("cannot run the provider program /nonexistent/program"), "{error}");
}
