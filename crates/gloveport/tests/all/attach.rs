//! The binary on a real terminal, attached to terminals of a real server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::support::{LIMIT, Server, gloveport, text};
use gloveport_sys::{Spawner, process};
use gloveport_terminal::{Terminal, TerminalOptions, WindowSize};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Somebody at a terminal who calls the binary from a shell, between two looks at the modes of the terminal.
struct Person {
    terminal: Terminal,
    /// Offset up to which everything was looked at.
    seen: u64,
}

/// What the shell does: the binary is `$GLOVEPORT`, with what is to be run behind it.
const SHELL: &str = "before=$(stty -g); \"$GLOVEPORT\" \"$@\"; code=$?; \
    if [ \"$(stty -g)\" = \"$before\" ]; then echo \"code $code, modes kept\"; else echo \"code $code, MODES LOST\"; fi";

impl Person {
    fn calls(server: &Server, arguments: &[&str]) -> Self {
        let url = server.url();
        let words = ["sh", "-c", SHELL, "sh", "run", "--url", &url, "-it"].into_iter().chain(arguments.iter().copied());
        let home = server.home.path();
        let environment = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", home.display().to_string()),
            ("GLOVEPORT", env!("CARGO_BIN_EXE_gloveport").to_owned()),
            ("TERM", "xterm-color".to_owned()),
        ];
        let terminal = Terminal::start(TerminalOptions {
            spawner: Spawner::Direct,
            identity: None,
            program: "/bin/sh".into(),
            arguments: words.map(Into::into).collect(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: home.to_owned(),
            size: WindowSize { columns: 83, rows: 27 },
            memory_limit: None,
            spool_size: 8 * 1024 * 1024,
        });
        Self { terminal: terminal.unwrap(), seen: 0 }
    }

    async fn types(&self, keys: impl AsRef<[u8]>) {
        self.terminal.write(keys.as_ref(), |_| {}).await.unwrap();
    }

    /// What is shown from the last look up to a text and with it.
    async fn sees(&mut self, wanted: &str) -> String {
        let look = async {
            let mut shown = Vec::new();
            loop {
                let piece = self.terminal.output().read(self.seen + shown.len() as u64, 1 << 20).unwrap();
                shown.extend(piece.bytes);
                if let Some(at) = shown.windows(wanted.len()).position(|window| window == wanted.as_bytes()) {
                    shown.truncate(at + wanted.len());
                    return shown;
                }
                let end = self.seen + shown.len() as u64;
                let grown = tokio::time::timeout(LIMIT, self.terminal.output().grown_beyond(end)).await;
                assert!(grown.is_ok(), "no {wanted:?} in {:?}", String::from_utf8_lossy(&shown));
            }
        };
        let shown = look.await;
        self.seen += shown.len() as u64;
        String::from_utf8(shown).unwrap()
    }

    /// The last words of the shell.
    async fn ends(&mut self, code: i32) -> String {
        self.sees(&format!("code {code}, modes kept\r\n")).await
    }

    /// The process of the binary.
    async fn process(&self) -> u32 {
        let shell = self.terminal.started().await.unwrap();
        let name = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.name == "gloveport");
        process::descendants(shell).into_iter().find(name).unwrap()
    }
}

fn terminals(server: &Server) -> Vec<Value> {
    let (_, body) = server.request("GET", "/v1/terminals", "", "");
    serde_json::from_str::<Value>(&body).unwrap()["terminals"].as_array().unwrap().clone()
}

/// A shell with a prompt that is known.
const PROMPT: &str = "PS1='re''ady> '; unset PROMPT_COMMAND; bind 'set enable-bracketed-paste off'\r";

async fn shell(server: &Server, arguments: &[&str]) -> Person {
    let mut person = Person::calls(server, arguments);
    // Typed at once: what is typed before the connection is there is not lost.
    person.types(PROMPT).await;
    person.sees("ready> ").await;
    person
}

#[tokio::test]
async fn a_person_gets_a_shell_with_sizes_signals_and_its_exit_code() {
    let server = Server::serve(&[], &[]);
    let mut person = shell(&server, &["--env", "WORD=grün"]).await;
    person.types("stty size; echo \"<$TERM $WORD>\"\r").await;
    person.sees("27 83\r\n<xterm-color grün>\r\nready> ").await;
    person.terminal.resize(WindowSize { columns: 120, rows: 50 }).unwrap();
    person.types("while [ \"$(stty size)\" != '50 120' ]; do sleep 0.01; done; echo resized\r").await;
    person.sees("\r\nresized\r\n").await;
    person.sees("ready> ").await;
    // C-c goes to the program and not to us; C-z stops it and `fg` brings it back.
    person.types("sleep 600; echo \"status $?\"\r").await;
    foreground(&server, "sleep").await;
    person.types("\x03").await;
    person.sees("^C").await;
    person.sees("ready> ").await;
    person.types("echo status $?\r").await;
    person.sees("\r\nstatus 130\r\n").await;
    person.types("sleep 601\r").await;
    foreground(&server, "sleep").await;
    person.types("\x1a").await;
    person.sees("Stopped").await;
    person.types("kill %1; exit 7\r").await;
    person.types("exit 7\r").await;
    person.ends(7).await;
}

async fn foreground(server: &Server, name: &str) {
    let wait = async {
        let runs = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.name == name && stat.state == 'S');
        while !server.descendants().iter().any(runs) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_input_key_ends_the_shell() {
    let server = Server::serve(&[], &[]);
    let mut person = shell(&server, &[]).await;
    person.types("\x04").await;
    person.ends(0).await;
    assert_eq!(terminals(&server)[0]["state"], "ended");
}

#[tokio::test]
async fn who_leaves_by_the_keys_comes_back_to_what_came_meanwhile() {
    let server = Server::serve(&[], &[]);
    let mut person = shell(&server, &["--terminal", "mine"]).await;
    person.types("echo early; read x; echo meanwhile; echo $x\r").await;
    person.sees("\r\nearly\r\n").await;
    // The first key alone is for the program, when another follows.
    person.types("word\x10x\x10\x11").await;
    let shown = person.ends(0).await;
    let again = format!("attach again with: gloveport run --url {} -it --terminal mine", server.url());
    assert!(shown.contains("left terminal mine") && shown.contains(&again), "{shown}");
    server.run(&format!("echo > {}/nothing", server.home.path().display()), 10.0);
    assert_eq!(terminals(&server)[0]["state"], "running");

    let mut person = Person::calls(&server, &["--terminal", "mine"]);
    person.sees("\r\nearly\r\n").await;
    person.sees("word").await;
    person.types("\r").await;
    person.sees("meanwhile\r\nword").await;
    person.types("exit 5\r").await;
    person.ends(5).await;
    // What has ended is shown once more, with its exit code.
    let mut person = Person::calls(&server, &["--terminal", "mine"]);
    person.sees("meanwhile\r\nword").await;
    person.ends(5).await;
}

#[tokio::test]
async fn other_keys_can_be_chosen_to_leave() {
    let server = Server::serve(&[], &[]);
    let mut person = shell(&server, &["--detach-keys", "ctrl-],x"]).await;
    person.types("echo a\x10\x11 b\x1d\x1d").await;
    person.types("x").await;
    person.ends(0).await;
    let output = crate::support::run(&["run", "--url", "http://127.0.0.1:1", "-t", "--detach-keys", "ctrl-1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`ctrl-1` is no key"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn what_a_killed_program_switched_on_in_our_terminal_is_switched_off() {
    let server = Server::serve(&[], &[]);
    let screen = "printf '\\033[?1049h\\033[?25l\\033[?1000;1006h\\033=grün 🦀'; kill -9 $$";
    let mut person = Person::calls(&server, &[screen]);
    person.sees("\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b=grün 🦀").await;
    let rest = person.ends(137).await;
    assert_eq!(rest, "\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l\x1b>code 137, modes kept\r\n");
}

#[tokio::test]
async fn a_terminated_client_brings_the_modes_back_and_the_terminal_lives_on() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let server = Server::serve(&[], &[]);
        let mut person = shell(&server, &["--terminal", "t"]).await;
        let pid = person.process().await;
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
        let shown = person.ends(code).await;
        assert!(shown.contains("left terminal t, which goes on"), "{shown}");
        assert_eq!(terminals(&server)[0]["state"], "running");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again_and_nothing_is_lost() {
    let server = Server::serve(&[], &[]);
    // The second connection is the WebSocket: it is cut in the middle of its output.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, port) = (format!("http://{}", listener.local_addr().unwrap()), server.port);
    let count = Arc::new(AtomicUsize::new(0));
    let proxy = tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let limit = if count.fetch_add(1, Relaxed) < 4 { 6000 } else { u64::MAX };
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let ((mut near_in, mut near_out), (far_in, mut far_out)) = (near.split(), far.split());
                let mut limited = far_in.take(limit);
                tokio::select! {
                    _ = tokio::io::copy(&mut near_in, &mut far_out) => {}
                    _ = tokio::io::copy(&mut limited, &mut near_out) => {}
                }
                let _closed = near_out.shutdown().await;
            });
        }
    });
    let home = tempfile::tempdir().unwrap();
    let mut binary = gloveport(home.path());
    binary.args(["run", "--url", &url, "-t", "stty -onlcr; seq 5000; exit 3"]);
    let output = tokio::task::spawn_blocking(move || binary.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(told.contains("the connection is lost") && told.contains("[connected again]"), "{told}");
    let shown = text(&output.stdout).replace("^D\x08\x08", "");
    let numbers = (1..=5000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    assert_eq!(shown, numbers + "\n");
    proxy.abort();
}

#[tokio::test]
async fn who_waits_for_a_lost_server_can_leave() {
    let mut server = Server::serve(&[], &[]);
    let mut person = shell(&server, &["--terminal", "t"]).await;
    server.child.kill().unwrap();
    person.sees("the connection is lost and made again").await;
    person.types("keys for nobody\x10\x11").await;
    person.ends(0).await;
}

#[test]
fn without_a_terminal_the_input_is_passed_on_with_its_end() {
    let server = Server::serve(&[], &[]);
    for (input, command, code, wanted) in [
        ("one\ntwo\n", "stty -echo; cat; exit 4", 4, "one\r\ntwo\r\n"),
        ("half", "stty -echo; read x; echo \"[$x]\"", 0, "[half]\r\n"),
        ("", "stty -echo; cat; exit 3", 3, ""),
    ] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("input");
        std::fs::write(&file, input).unwrap();
        let mut binary = gloveport(home.path());
        binary.args(["run", "--url", &server.url(), "-it", &format!("sleep 0.2; {command}")]);
        let output = binary.stdin(Stdio::from(std::fs::File::open(file).unwrap())).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        // What was typed before the echo was off is echoed.
        assert!(text(&output.stdout).ends_with(wanted), "{output:?}");
    }
}

#[test]
fn what_cannot_be_attached_to_is_told_with_a_reason() {
    let server = Server::serve(&[], &[("GLOVEPORT_KEY", "secret")]);
    let url = server.url();
    for (arguments, code, reason) in [
        (&["--url", url.as_str(), "-it", "true"][..], 125, "give the server's key with --key"),
        (&["--url", url.as_str(), "--key", "wrong", "-it", "true"], 125, "403"),
        (&["--url", url.as_str(), "--key", "secret", "-t", "--cwd", "/no/such", "true"], 125, "/no/such"),
        (&["--url", url.as_str(), "--key", "secret", "-t", "exit 9"], 9, ""),
        (&["--url", "http://127.0.0.1:1", "-t"], 125, "no server answers"),
        (&["-t", "true"], 2, "--url"),
        (&["--url", url.as_str(), "--key", "secret", "--terminal", "x", "true"], 2, "--tty"),
    ] {
        let output = crate::support::run(&[&["run"][..], arguments].concat());
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), told.contains(reason)), (Some(code), true), "{arguments:?} {told}");
        assert!(!told.contains("secret"), "{told}");
    }
}
