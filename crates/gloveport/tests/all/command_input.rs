//! What a command gets to read, what happens to one that waits, and how others see and end it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::sessions::Home;
use crate::support::{LIMIT, Server, text, until, with_home};
use gloveport_client::{ActionExecutionClient, ClientOptions, ExecEvent};
use gloveport_protocol::exec::{ExecRequest, Session};
use gloveport_sys::Spawner;
use gloveport_terminal::{Terminal, TerminalOptions, WindowSize};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::{LocalModes, tcgetattr},
};
use serde_json::{Value, json};

/// The binary, killed when it takes longer than anything here may take. In the foreground, so that a signal is passed on
/// to it once: a second C-c means something else.
fn limited(home: &Path) -> Command {
    let mut command = with_home(Command::new("timeout"), home);
    command.args(["--foreground", "-s", "KILL", "60", env!("CARGO_BIN_EXE_gloveport")]);
    command
}

#[test]
fn a_command_without_input_gets_its_end_each_time_it_reads_here_and_on_a_server() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    for there in [&[][..], &["--url", url.as_str()]] {
        for (command, printed) in [("cat; echo done", "done\n"), ("read a; read b; echo \"<$a$b>\"", "<>\n")] {
            let output = limited(server.home.path()).arg("run").args(there).arg(command).output().unwrap();
            assert_eq!(
                (text(&output.stdout).as_str(), output.status.code()),
                (printed, Some(0)),
                "{there:?} {command}"
            );
        }
    }
}

#[test]
fn the_observation_of_a_command_without_input_comes_as_soon_as_it_has_read_the_end() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    for there in [&[][..], &["--url", url.as_str()], &["--runtime", "local"]] {
        for (flags, command, content, status) in [
            (&[][..], "cat; echo done", "done", 0),
            (&["--cwd", "/usr", "--env", "WORD=word"], "read -r a; echo \"$a$WORD\"; pwd; (exit 3)", "word\n/usr", 3),
        ] {
            let output = limited(server.home.path())
                .args(["run", "--json"])
                .args(there)
                .args(flags)
                .arg(command)
                .output()
                .unwrap();
            let observation: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(observation["content"], content, "{there:?} {command}");
            assert_eq!(observation["extras"]["metadata"]["exit_code"], status, "{there:?} {command}");
            assert_eq!(output.status.code(), Some(status), "{there:?} {command}");
        }
        let mut child = limited(server.home.path())
            .args(["run", "--json"])
            .args(there)
            .arg("read -r a; echo \"<$a>\"")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"from a pipe\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let observation: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(observation["content"], "<from a pipe>", "{there:?}");
    }
}

/// A program on a terminal of its own, as a person starts it.
fn on_terminal(home: &Path, program: &str, arguments: &[&str]) -> Terminal {
    let environment = [("PATH", std::env::var("PATH").unwrap()), ("HOME", home.display().to_string())];
    let name = Path::new(program).file_name().unwrap().to_owned();
    Terminal::start(TerminalOptions {
        spawner: Spawner::Direct,
        identity: None,
        program: program.into(),
        arguments: std::iter::once(name).chain(arguments.iter().map(Into::into)).collect(),
        environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: home.to_owned(),
        size: WindowSize { columns: 80, rows: 24 },
        memory_limit: None,
        spool_size: 1024 * 1024,
    })
    .unwrap()
}

#[tokio::test]
async fn a_command_that_reads_from_the_terminal_gets_the_end_unless_input_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    for (words, typed, shown) in [
        (&["run", "cat; echo d''one"][..], &b""[..], "done"),
        (&["run", "-i", "read -r x; echo \"got $x\""], b"answer\n", "got answer"),
    ] {
        let terminal = on_terminal(home.path(), env!("CARGO_BIN_EXE_gloveport"), words);
        if !typed.is_empty() {
            terminal.write(typed, |_| {}).await.unwrap();
        }
        let mut seen = String::new();
        let mut offset = 0;
        while !seen.contains(shown) {
            tokio::time::timeout(LIMIT, terminal.output().grown_beyond(offset))
                .await
                .unwrap_or_else(|_| panic!("{words:?} showed only {seen:?}"));
            let piece = terminal.output().read(offset, 65_536).unwrap();
            offset += piece.bytes.len() as u64;
            seen += &text(&piece.bytes);
        }
        terminal.close(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_shown_while_it_is_typed_and_the_terminal_shows_again_what_is_typed_later() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::serve(&[], &[]);
    for there in [String::new(), format!("--url {}", server.url())] {
        let script = format!(
            "tty; {} run {there} -i 'read -rsp \"Password: \" x; echo \"got ${{#x}}\"; read -rp \"Name: \" y; \
             echo \"<$y>\"'; stty -a",
            env!("CARGO_BIN_EXE_gloveport")
        );
        let terminal = on_terminal(home.path(), "/bin/sh", &["-c", &script]);
        let seen = || text(&terminal.output().read(0, 65_536).unwrap().bytes);
        until("the password is asked for", || seen().contains("Password: "));
        let ours = seen().lines().next().unwrap().trim().to_owned();
        let shows = || tcgetattr(std::fs::File::open(&ours).unwrap()).unwrap().local_modes.contains(LocalModes::ECHO);
        until("the terminal hides what is typed", || !shows());
        terminal.write(b"hunter2\n", |_| {}).await.unwrap();
        until("the name is asked for", || seen().contains("Name: "));
        terminal.write(b"some", |_| {}).await.unwrap();
        // By now it is known that the program waits, and for what.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(shows(), "{there}");
        terminal.write(b"body\n", |_| {}).await.unwrap();
        until("the modes at the end", || seen().contains("echonl"));
        let seen = seen();
        assert!(seen.contains("got 7") && seen.contains("<somebody>"), "{there} {seen}");
        assert!(!seen.contains("hunter2"), "{there} {seen}");
        assert_eq!(seen.matches("somebody").count(), 2, "what is no secret is shown: {there} {seen}");
        assert!(seen.contains(" echo ") && !seen.contains("-echo "), "{there} {seen}");
        terminal.close(Duration::from_secs(1)).await;
    }
}

#[test]
fn an_unfinished_command_is_given_up_and_the_shell_goes_on() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    for there in [&[][..], &["--url", url.as_str()]] {
        for command in ["echo \"abc", "if true; then", "cat <<X\nabc"] {
            let output = limited(server.home.path()).arg("run").args(there).arg(command).output().unwrap();
            assert_eq!(output.status.code(), Some(125), "{there:?} {command} {}", text(&output.stderr));
            let told = text(&output.stderr);
            assert!(told.contains("the command is not complete (an open quote?)"), "{there:?} {command} {told}");
        }
    }
    let output = limited(server.home.path()).args(["run", "--url", &url, "x=5; echo on"]).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("on\n", Some(0)));

    let home = Home::new();
    home.start("open");
    assert_eq!(home.exec("open", "x=7"), (Some(0), String::new()));
    assert_eq!(home.exec("open", "echo \"abc").0, Some(125));
    assert_eq!(home.exec("open", "cat; echo $x"), (Some(0), "7\n".to_owned()));
}

#[test]
fn lines_of_a_pipe_reach_a_command_on_a_server_as_they_do_here() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    let input = server.home.path().join("input");
    std::fs::write(&input, "a b\nlast").unwrap();
    for there in [&[][..], &["--url", url.as_str()]] {
        let mut command = limited(server.home.path());
        command.arg("run").args(there).arg("while read -r x; do echo \"<$x>\"; done; cat; echo end");
        let output = command.stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
        assert_eq!(text(&output.stdout), "<a b>\n<last>\nend\n", "{there:?} {}", text(&output.stderr));
    }
}

#[test]
fn whoever_waits_is_told_what_for_and_the_command_in_front_can_be_seen_and_interrupted() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    let run = |words: &[&str]| {
        let mut command = limited(server.home.path());
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = run(&["run", "--url", &url, "echo begun; sleep 4321"]);
    let mut line = String::new();
    let mut printed = BufReader::new(first.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    let mut second = run(&["run", "--url", &url, "echo mine"]);
    line.clear();
    BufReader::new(second.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("gloveport: the command has been waiting for its turn for "), "{line}");
    assert!(line.contains("(since ") && line.contains("`echo begun; sleep 4321`"), "{line}");

    let shown = |words: &[&str]| text(&limited(server.home.path()).arg("session").args(words).output().unwrap().stdout);
    let table = shown(&["ps", "--url", &url]);
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("COMMAND") && rows.len() == 3, "{table}");
    assert!(rows[1].contains("runs") && rows[1].ends_with("echo begun; sleep 4321"), "{table}");
    assert!(rows[2].contains("waits for its turn") && rows[2].ends_with("echo mine"), "{table}");
    let known: Value = serde_json::from_str(&shown(&["ps", "--json", "--url", &url])).unwrap();
    let id = known[0]["id"].as_str().unwrap();
    assert_eq!((&known[0]["state"], &known[1]["state"]), (&"running".into(), &"queued".into()));

    assert_eq!(shown(&["interrupt", "--url", &url]), format!("{id}\n"));
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_eq!(text(&second.wait_with_output().unwrap().stdout), "mine\n");
    assert_eq!(shown(&["ps", "--url", &url]).lines().count(), 1);
    let idle = limited(server.home.path()).args(["session", "interrupt", "--url", &url]).output().unwrap();
    assert_eq!((idle.status.code(), text(&idle.stderr).as_str()), (Some(1), "gloveport: no command runs\n"));
}

#[test]
fn what_is_interrupted_before_its_turn_never_runs_and_what_is_killed_ends() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    let session = |words: &[&str]| limited(server.home.path()).arg("session").args(words).output().unwrap();
    let ps = || text(&session(&["ps", "--url", &url]).stdout);
    let run = |command: &str| {
        let mut child = limited(server.home.path());
        child.args(["run", "--url", &url, command]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = run("trap '' INT; sleep 4323");
    until("the first one runs", || ps().contains(" runs "));
    let second = run("touch ran");
    until("the second one waits", || ps().contains("waits for its turn"));
    let waiting = Pid::from_raw(second.id().try_into().unwrap()).unwrap();
    kill_process(waiting, Signal::INT).unwrap();
    let second = second.wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(130), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("it never began"), "{}", text(&second.stderr));
    // It takes no notice of C-c, and ends by the second key.
    let killed = session(&["kill", "--url", &url]);
    assert!(killed.status.success(), "{}", text(&killed.stderr));
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let after = run("test ! -e ran").wait().unwrap();
    assert_eq!(after.code(), Some(0), "a command that was given up ran later");
}

#[test]
fn commands_of_a_session_are_shown_and_interrupted_by_its_id() {
    let home = Home::new();
    home.start("busy");
    let id = home.ok(&["exec", "-d", "busy", "sleep 4322"]);
    until("it runs", || home.ok(&["ps", "busy"]).contains("sleep 4322"));
    assert_eq!(home.ok(&["interrupt", "busy", &id.trim()[..12]]), id);
    until("it has ended", || !home.ok(&["ps", "busy"]).contains("sleep 4322"));
    assert!(home.ok(&["ps", "-a", "busy"]).contains("ended with 130"));
    assert!(home.failed(&["interrupt", "busy", "nothing"]).1.contains("there is no command `nothing`"));
    assert_eq!(home.failed(&["ps"]).0, 2);
}

#[test]
fn a_command_whose_output_nobody_reads_ends_and_keeps_nobody_waiting() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    for there in [&[][..], &["--url", url.as_str()]] {
        let mut command = limited(server.home.path());
        let mut child = command
            .arg("run")
            .args(there)
            .arg("while :; do echo y; done")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 2];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((&some, output.status.code()), (b"y\n", Some(141)), "{there:?}");
        assert_eq!(text(&output.stderr), "", "{there:?}");
    }
    let next = limited(server.home.path()).args(["run", "--url", &url, "echo next"]).output().unwrap();
    assert_eq!(text(&next.stdout), "next\n");
}

#[test]
fn a_command_that_takes_no_notice_of_its_time_limit_is_ended() {
    let server = Server::serve(&[], &[]);
    let url = server.url();
    for there in [&[][..], &["--url", url.as_str()]] {
        let mut command = limited(server.home.path());
        // The shell inside ignores C-c, and dies of C-\.
        command.arg("run").args(there).args([
            "--timeout",
            "0.3s",
            "sh -c 'trap \"\" INT; while :; do sleep 0.1; done'",
        ]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(124), "{there:?}");
        assert!(text(&output.stderr).contains("within the time limit"), "{}", text(&output.stderr));
    }
    let next = limited(server.home.path()).args(["run", "--url", &url, "echo next"]).output().unwrap();
    assert_eq!(text(&next.stdout), "next\n");
}

/// Runs Python's interpreter and gives it thirty inputs through actions; `false` if one was answered late.
fn python_by_actions(server: &Server) -> bool {
    let mut observed = server.run("python3 -q", 60.0);
    for number in 0..30 {
        let suffix = observed["extras"]["metadata"]["suffix"].as_str().unwrap_or_default();
        if !suffix.contains("waiting for input") {
            return false;
        }
        let args = json!({"command": format!("print({number} * 2)"), "is_input": true});
        let body = json!({"action": {"action": "run", "timeout": 60.0, "args": args}}).to_string();
        let (status, body) = server.request("POST", "/execute_action", "", &body);
        assert_eq!(status, 200, "{body}");
        observed = serde_json::from_str(&body).unwrap();
        let content = observed["content"].as_str().unwrap();
        assert!(content.contains(&(number * 2).to_string()), "{content}");
    }
    true
}

#[test]
fn an_action_whose_program_waits_is_answered_at_once_if_the_server_is_told_so() {
    let never = [("NO_CHANGE_TIMEOUT_SECONDS", "3600")];
    assert!(python_by_actions(&Server::serve(&["--answer-when-waiting"], &never)));
    assert!(python_by_actions(&Server::compat(&["--answer-when-waiting"], &never)));
    let by_environment = [never[0], ("GLOVEPORT_ANSWER_WHEN_WAITING", "yes")];
    assert!(python_by_actions(&Server::serve(&[], &by_environment)));
    // As OpenHands does it unless told otherwise, and no word of waiting then.
    let soon = ("NO_CHANGE_TIMEOUT_SECONDS", "1");
    assert!(!python_by_actions(&Server::serve(&[], &[soon])));
    assert!(!python_by_actions(&Server::serve(&[], &[soon, ("GLOVEPORT_ANSWER_WHEN_WAITING", "0")])));
}

#[tokio::test]
async fn a_client_of_the_native_calls_is_told_each_time_that_a_program_waits() {
    let server = Server::serve(&[], &[]);
    let client = ActionExecutionClient::new(&ClientOptions::new(server.url())).unwrap();
    let request = ExecRequest {
        id: Some("python".into()),
        command: "python3 -q".into(),
        session: Session::New,
        cwd: None,
        env: BTreeMap::new(),
        timeout: Some(60.0),
    };
    let mut stream = client.exec(request).await.unwrap();
    let (mut inputs, mut shown) = (0, Vec::new());
    let end = loop {
        match stream.next().await.unwrap().expect("the end comes before the stream ends") {
            ExecEvent::Waiting(true) if inputs < 30 => {
                client.exec_input("python", &format!("print({inputs} * 2)")).await.unwrap();
                inputs += 1;
            }
            ExecEvent::Waiting(true) => client.exec_input("python", "exit(7)").await.unwrap(),
            ExecEvent::Output { bytes, .. } => shown.extend(bytes),
            ExecEvent::Ended(end) => break end,
            ExecEvent::Waiting(false) | ExecEvent::WaitingForSecret | ExecEvent::Gap { .. } => {}
        }
    };
    assert_eq!((end.exit_code, inputs), (Some(7), 30), "{}", text(&shown));
    assert!(text(&shown).contains("58"), "{}", text(&shown));
}
