//! Starts, ends and violent ends of the server.

use std::{io::Read as _, net::TcpStream};

use crate::support::{Server, alive, gloveport, run_body, text, until};
use gloveport_sys::process::Waiting;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A job in the background, one that ignores hang-ups, one that detached itself, and a command in the foreground.
const BUSY: &str = "sleep 600 & nohup sleep 601 >/dev/null 2>&1 & setsid -f sleep 602; (trap '' HUP TERM; sleep 603)";

/// A server that is busy in every way: its processes, and the connection of the client that waits.
fn busy(server: &Server) -> (Vec<u32>, TcpStream) {
    let client = server.send("POST", "/execute_action", "", &run_body(BUSY, 60.0));
    until("all sleepers run", || {
        let names = server.descendants().into_iter().filter_map(gloveport_sys::process::command_line);
        names.filter(|line| line.starts_with("sleep 60")).count() == 4
    });
    (server.descendants(), client)
}

#[test]
fn a_terminated_server_ends_all_its_processes_and_exits_with_0() {
    let mut server = Server::compat(&[], &[]);
    let (processes, _client) = busy(&server);
    send_signal(server.child.id(), Signal::TERM);
    let status = server.child.wait().unwrap();
    assert_eq!(processes.iter().filter(|pid| alive(**pid)).count(), 0);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn nothing_survives_a_killed_server() {
    let mut server = Server::compat(&[], &[]);
    let (processes, _client) = busy(&server);
    send_signal(server.child.id(), Signal::KILL);
    server.child.wait().unwrap();
    until("all processes are gone", || !processes.iter().any(|pid| alive(*pid)));
}

#[test]
fn nothing_survives_a_killed_owner_and_the_server_lives() {
    let server = Server::compat(&[], &[]);
    let (processes, mut client) = busy(&server);
    let owner = processes
        .iter()
        .copied()
        .find(|pid| gloveport_sys::process::stat(*pid).is_some_and(|stat| stat.name == "gloveport-owner"));
    let owner = owner.unwrap();
    let below = gloveport_sys::process::descendants(owner);
    assert!(below.len() >= 5);
    send_signal(owner, Signal::KILL);
    until("all its processes are gone", || !below.iter().any(|pid| alive(*pid)));
    // The client that waited is answered, too.
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.run("echo new shell", 10.0)["content"], "new shell");
}

#[test]
fn a_killed_shell_is_replaced_and_the_observation_says_so() {
    let server = Server::compat(&[], &[]);
    server.run("cd /usr", 10.0);
    let shell = server.run("echo $$", 10.0)["content"].as_str().unwrap().parse().unwrap();
    send_signal(shell, Signal::KILL);
    until("it is dead", || !alive(shell));
    let observation = server.run("pwd", 10.0);
    assert_eq!(observation["content"], "/usr");
    let prefix = observation["extras"]["metadata"]["prefix"].as_str().unwrap();
    assert_eq!(
        prefix,
        "[The shell had ended before this command: it was killed by signal 9. A new shell was started in /usr; \
         variables, functions and jobs of the old one are gone.]\n"
    );
}

#[test]
fn output_of_a_command_whose_client_left_is_there_afterwards() {
    let server = Server::compat(&[], &[]);
    let stream = server.send("POST", "/execute_action", "", &run_body("echo begun; read -r x; echo got $x", 60.0));
    until("the command runs", || {
        // Statistics answer while a command runs.
        server.request("GET", "/alive", "", "").0 == 200 && waiting_for_input(&server)
    });
    drop(stream);
    let body = serde_json::json!({"action": {"action": "run", "timeout": 20.0, "args": {"command": "there", "is_input": true}}});
    // The server sees the closed connection at once; until then the new request waits for the old one.
    let (status, answer) = server.request("POST", "/execute_action", "", &body.to_string());
    let observation: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, observation["content"].as_str()), (200, Some("begun\ngot there")));
    assert_eq!(observation["extras"]["metadata"]["exit_code"], 0);
}

fn waiting_for_input(server: &Server) -> bool {
    server.descendants().into_iter().any(|pid| {
        let bash = gloveport_sys::process::stat(pid).is_some_and(|stat| stat.name == "bash");
        // At its prompt it reads 1024 bytes at a time, in `read` another number.
        bash && matches!(gloveport_sys::process::waiting(pid), Some(Waiting::Read { most, .. }) if most != 1024)
    })
}

#[test]
fn the_port_is_closed_until_everything_is_ready_and_start_up_errors_end_the_process() {
    let home = tempfile::tempdir().unwrap();
    let fails = |arguments: &[&str], environment: (&str, &str), message: &str| {
        let output = gloveport(home.path())
            .arg("action-execution-server")
            .args(arguments)
            .env(environment.0, environment.1)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    };
    fails(&["1", "--plugins", "nonsense"], ("A", "b"), "Plugin nonsense not found");
    fails(
        &["1", "--username", "root"],
        ("RUNTIME_MAX_MEMORY_GB", "much"),
        "RUNTIME_MAX_MEMORY_GB must be a whole number",
    );
    fails(&["1", "--username", "root"], ("NO_CHANGE_TIMEOUT_SECONDS", "1.5"), "must be a whole number of seconds");
    fails(
        &["1", "--no-enable-browser", "--browsergym-eval-env", "x"],
        ("A", "b"),
        "Browser environment is not enabled in config, but browsergym_eval_env is set",
    );
}

#[test]
fn a_link_in_place_of_the_launcher_starts_the_server() {
    let home = tempfile::tempdir().unwrap();
    let launcher = home.path().join("micromamba");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gloveport"), &launcher).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let words = "run -n openhands poetry run python -u -m openhands.runtime.action_execution_server";
    let mut command = std::process::Command::new(&launcher);
    command.args(words.split(' ')).arg(port.to_string()).args(["--username", "root", "--working-dir"]).arg(home.path());
    command.env("HOME", home.path()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    send_signal(child.id(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_stopping_server_finishes_what_it_is_asked_and_then_refuses() {
    let mut server = Server::compat(&[], &[]);
    let mut stream = server.send("POST", "/execute_action", "", &run_body("sleep 0.5; echo finished", 20.0));
    until("the command runs", || {
        server
            .descendants()
            .into_iter()
            .any(|pid| gloveport_sys::process::stat(pid).is_some_and(|stat| stat.name == "sleep"))
    });
    send_signal(server.child.id(), Signal::TERM);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("finished"), "{answer}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(TcpStream::connect(("127.0.0.1", server.port)).is_err());
}
