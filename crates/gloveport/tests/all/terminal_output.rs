//! Foreign text on a person's terminal: what a terminal would obey is shown, and does nothing.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use crate::support::{run, text, with_home};

/// Sets the title of the window, clears it, writes over the line, and turns the direction of writing around.
const HOSTILE: &str = "a\u{1b}]0;pwned\u{7}\u{1b}[2Jb\rc\u{9b}31m\u{202e}d\u{2066}e\u{8}f";

/// What the binary writes to a terminal, both outputs together.
fn on_terminal(home: &Path, arguments: &[&str]) -> String {
    let quoted: Vec<String> =
        arguments.iter().map(|argument| format!("'{}'", argument.replace('\'', "'\\''"))).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_gloveport"), quoted.join(" "));
    let mut command = with_home(Command::new("script"), home);
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(home);
    command.env("PATH", format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap()));
    text(&command.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap().stdout)
}

/// Whether nothing of it can do more than show text in the colours that we use.
#[track_caller]
fn is_harmless(case: &str, output: &str) {
    let mut rest = output.replace("\r\n", "\n");
    for colour in ["0", "1", "2", "31", "32", "33", "36"] {
        rest = rest.replace(&format!("\u{1b}[{colour}m"), "");
    }
    let is_bad = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(rest.chars().find(is_bad), None, "{case}: {output:?}");
    assert!(output.contains("pwned"), "{case}: {output:?}");
}

/// A server that answers every request with an error that has a hostile text.
fn hostile_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _read = stream.read(&mut head).unwrap();
            let body = serde_json::json!({"detail": HOSTILE}).to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
            let _written = write!(stream, "{head}connection: close\r\n\r\n{body}");
        }
    });
    port
}

#[test]
fn what_a_terminal_would_obey_is_shown_and_does_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::create_dir(path("work")).unwrap();
    fs::write(path("work").join(HOSTILE.replace('/', "")), HOSTILE).unwrap();
    fs::write(path("file.txt"), format!("old {HOSTILE}\n")).unwrap();
    fs::create_dir(path("bin")).unwrap();
    let program = path("bin").join("gloveport-provider-evil");
    fs::write(&program, format!("#!/bin/sh\ncat >/dev/null\ncat >&2 <<'END'\n{HOSTILE}\nEND\nexit 3\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let url = format!("http://127.0.0.1:{}", hostile_server());
    let file = path("work").join(HOSTILE);
    for (case, arguments) in [
        ("contents", vec!["view", "file.txt"]),
        ("raw contents", vec!["view", "--raw", "file.txt"]),
        ("names in a tree", vec!["view", "work"]),
        ("names", vec!["ls", "work"]),
        ("names with details", vec!["ls", "-l", "work"]),
        ("names as JSON", vec!["ls", "--json", "work"]),
        ("a change", vec!["edit", "replace", "file.txt", "--old", "old", "--new", "new"]),
        ("a name in an error", vec!["view", "work/\u{1b}]0;pwned\u{7}\u{202e}"]),
        ("a view of a hostile name", vec!["view", file.to_str().unwrap()]),
        ("an error of a server", vec!["ls", ":/x", "--url", &url]),
        ("an error of a server to a command", vec!["run", "--url", &url, "true"]),
        ("an error of a program", vec!["provider", "ls", "evil"]),
        ("an error of a program at a start", vec!["session", "start", "--runtime", "evil"]),
        ("a program that is one of several", vec!["session", "ls"]),
    ] {
        is_harmless(case, &on_terminal(home.path(), &arguments));
    }
}

#[test]
fn programs_are_told_of_the_terminal_that_shows_their_output_and_of_no_pager() {
    let home = tempfile::tempdir().unwrap();
    let command = "echo \"<$TERM $PAGER $GIT_PAGER>\"";
    let seen = on_terminal(home.path(), &["run", command]);
    assert!(seen.contains("<xterm cat cat>"), "{seen}");
    let piped = run(&["run", command]);
    assert_eq!(text(&piped.stdout), "<dumb cat cat>\n");
    let asked = run(&["run", "--env", "PAGER=more", command]);
    assert_eq!(text(&asked.stdout), "<dumb more cat>\n");
    // Git shows its colours to a person, and no escape sequence to a pipe.
    let log = "git init -q r && cd r && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m one && git log";
    let seen = on_terminal(home.path(), &["run", log]);
    assert!(seen.contains("\u{1b}[33mcommit "), "{seen:?}");
    let mut piped = crate::support::gloveport(home.path());
    let piped = text(&piped.args(["run", "cd r && git log"]).current_dir(home.path()).output().unwrap().stdout);
    assert!(piped.starts_with("commit ") && !piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn without_a_terminal_output_and_errors_stay_apart_and_input_is_read() {
    let command = "echo out; echo err >&2; tty; exit 3";
    let output = run(&["run", "--no-tty", command]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("out\nnot a tty\n", Some(3)));
    assert_eq!(text(&output.stderr), "err\n");
    // In a terminal they are one.
    let output = run(&["run", "echo out; echo err >&2"]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("out\nerr\n", ""));
    // What the person's shell has beside a login is not handed on.
    let home = tempfile::tempdir().unwrap();
    let mut secret = crate::support::gloveport(home.path());
    secret.args(["run", "-T", "echo \"<$AWS_SECRET_ACCESS_KEY$A>\""]).env("AWS_SECRET_ACCESS_KEY", "x");
    assert_eq!(text(&secret.output().unwrap().stdout), "<>\n");
    let output = run(&["run", "--no-tty", "--image", "debian:13", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--image says what a sandbox is made from"));
    for elsewhere in [["--url", "http://127.0.0.1:1"], ["--runtime", "local"]] {
        let output = run(&["run", "--no-tty", elsewhere[0], elsewhere[1], "true"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("--no-tty runs a command on this machine"), "{told}");
    }
}
