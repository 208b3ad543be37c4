//! Raw terminals: programs get a real terminal, and nothing is read into their bytes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::time::Duration;

use gloveport_sys::{Spawner, process};
use gloveport_terminal::{Terminal, TerminalError, TerminalOptions, TerminalState, WindowSize};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

fn start(script: &str) -> Terminal {
    start_as(&["sh", "-c", script])
}

fn start_as(words: &[&str]) -> Terminal {
    let program = if words[0] == "missing" { "/nonexistent/missing".into() } else { format!("/bin/{}", words[0]) };
    Terminal::start(TerminalOptions {
        spawner: Spawner::Direct,
        identity: None,
        program: program.into(),
        arguments: words.iter().map(Into::into).collect(),
        environment: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("TERM".into(), "xterm".into()),
            ("HOME".into(), "/nonexistent".into()),
        ],
        directory: "/".into(),
        size: WindowSize { columns: 81, rows: 25 },
        memory_limit: None,
        spool_size: 8 * 1024 * 1024,
    })
    .unwrap()
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("not within {LIMIT:?}: {what}"))
}

fn output(terminal: &Terminal) -> String {
    let (log, mut bytes) = (terminal.output(), Vec::new());
    loop {
        let piece = log.read(bytes.len() as u64, usize::MAX >> 1).unwrap().bytes;
        if piece.is_empty() {
            return String::from_utf8_lossy(&bytes).into();
        }
        bytes.extend(piece);
    }
}

async fn until_output(terminal: &Terminal, text: &str) {
    within(text, async {
        loop {
            let end = terminal.output().end();
            if output(terminal).contains(text) {
                return;
            }
            terminal.output().grown_beyond(end).await;
        }
    })
    .await;
}

async fn ended(terminal: &Terminal) -> i32 {
    let mut state = terminal.watch();
    let end = within("the end", state.wait_for(|state| matches!(state, TerminalState::Ended { .. }))).await;
    match &*end.unwrap() {
        TerminalState::Ended { exit, .. } => exit.shell_status(),
        other => panic!("{other:?}"),
    }
}

async fn type_in(terminal: &Terminal, bytes: &[u8]) {
    terminal.write(bytes, |_| {}).await.unwrap();
}

#[tokio::test]
async fn a_program_has_a_controlling_terminal_of_the_right_size_in_sane_modes() {
    let terminal =
        start("tty >/dev/tty; stty size; stty -a | tr ' ' '\\n' | grep -x -e echo -e icanon -e onlcr; exit 7");
    assert_eq!(ended(&terminal).await, 7);
    let text = output(&terminal);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{text}");
    let mut rest = lines[1..].to_vec();
    rest.sort_unstable();
    assert_eq!(rest, ["25 81", "echo", "icanon", "onlcr"]);
    assert!(text.ends_with("\r\n"));
}

#[tokio::test]
async fn the_sequences_of_full_screen_programs_pass_byte_for_byte() {
    let screen = "\\033[?1049h\\033[22;0;0t\\033[1;25r\\033[2J\\033[H~\\033[7m\\303\\244\\360\\237\\246\\200\\377\\001\\033[m\\033[?1049l";
    let terminal = start(&format!("printf '{screen}'"));
    assert_eq!(ended(&terminal).await, 0);
    let bytes = terminal.output().read(0, 1000).unwrap().bytes;
    let expected =
        b"\x1b[?1049h\x1b[22;0;0t\x1b[1;25r\x1b[2J\x1b[H~\x1b[7m\xc3\xa4\xf0\x9f\xa6\x80\xff\x01\x1b[m\x1b[?1049l";
    assert_eq!(bytes, expected);
}

#[tokio::test]
async fn programs_see_a_new_size_and_are_told_of_it() {
    let terminal = start("trap 'stty size; exit 0' WINCH; echo ready; while :; do read x; done");
    until_output(&terminal, "ready").await;
    let mut sizes = terminal.watch_size();
    let size = WindowSize { columns: 132, rows: 43 };
    terminal.resize(size).unwrap();
    assert!(sizes.has_changed().unwrap());
    assert_eq!((*sizes.borrow_and_update(), terminal.size()), (size, size));
    until_output(&terminal, "43 132").await;
    assert_eq!(ended(&terminal).await, 0);
}

#[tokio::test]
async fn keys_do_what_they_do_on_a_terminal() {
    let terminal = start_as(&["bash", "--norc", "--noprofile", "-i"]);
    type_in(&terminal, b"PS1='pro''mpt> '\r").await;
    until_output(&terminal, "prompt> ").await;
    type_in(&terminal, b"sleep 1000\r").await;
    until_output(&terminal, "sleep 1000\r\n").await;
    // C-z stops it and `fg` lets it go on; C-c ends it.
    let stopped = async |key: &[u8], text: &str| {
        let mut end = terminal.output().end();
        type_in(&terminal, key).await;
        within(text, async {
            while !output(&terminal).contains(text) {
                terminal.output().grown_beyond(end).await;
                end = terminal.output().end();
            }
        })
        .await;
    };
    until_foreground(&terminal, "sleep").await;
    stopped(b"\x1a", "Stopped").await;
    type_in(&terminal, b"fg\r").await;
    until_foreground(&terminal, "sleep").await;
    stopped(b"\x03", "^C").await;
    type_in(&terminal, "echo \"grün $?\"\r".as_bytes()).await;
    until_output(&terminal, "grün 130\r\n").await;
    type_in(&terminal, b"\x04").await;
    assert_eq!(ended(&terminal).await, 0);
}

async fn until_foreground(terminal: &Terminal, name: &str) {
    let pid = terminal.started().await.unwrap();
    within(name, async {
        let runs = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.name == name && stat.state == 'S');
        while !process::descendants(pid).iter().any(runs) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn all_output_of_a_program_is_there_when_it_has_ended() {
    let terminal = start("stty -opost; seq 300000; exit 3");
    assert_eq!(ended(&terminal).await, 3);
    let TerminalState::Ended { end, .. } = terminal.state() else { panic!() };
    let expected = (1..=300_000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!((end, output(&terminal) == expected), (expected.len() as u64, true));
}

#[tokio::test]
async fn what_a_program_left_behind_ends_with_it() {
    let terminal = start("(trap '' HUP TERM; sleep 999) & nohup sleep 999 >/dev/null 2>&1 & echo $$; exit 4");
    assert_eq!(ended(&terminal).await, 4);
    // It may have ended before anybody could ask for its id.
    let pid: u32 = output(&terminal).trim().parse().unwrap();
    assert_eq!(process::in_session(pid), Vec::<u32>::new());
    assert!(matches!(terminal.write(b"x", |_| {}).await, Err(TerminalError::Closed)));
    assert!(matches!(terminal.resize(WindowSize { columns: 1, rows: 1 }), Err(TerminalError::Closed)));
}

#[tokio::test]
async fn a_closed_terminal_and_a_dropped_one_leave_no_process() {
    let terminal = start("trap '' HUP TERM; echo ready; sleep 999; sleep 999");
    until_output(&terminal, "ready").await;
    let pid = terminal.started().await.unwrap();
    within("close", terminal.close(Duration::from_millis(10))).await;
    assert!(process::in_session(pid).is_empty());
    assert_eq!(ended(&terminal).await, 137);

    let terminal = start("echo ready; sleep 999");
    until_output(&terminal, "ready").await;
    let pid = terminal.started().await.unwrap();
    drop(terminal);
    within("drop", async {
        while !process::in_session(pid).is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn signals_reach_the_programs_in_the_foreground() {
    let terminal = start_as(&["bash", "--norc", "--noprofile", "-i"]);
    type_in(&terminal, b"sleep 1000\r").await;
    until_foreground(&terminal, "sleep").await;
    terminal.signal(Signal::TERM).unwrap();
    until_output(&terminal, "Terminated").await;
    type_in(&terminal, b"exit 9\r").await;
    assert_eq!(ended(&terminal).await, 9);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error_with_a_reason() {
    let terminal = start_as(&["missing"]);
    let error = terminal.started().await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/missing") && error.contains("No such file"), "{error}");
    assert!(matches!(terminal.state(), TerminalState::Failed { .. }));
}

#[tokio::test]
async fn input_that_nobody_reads_waits_and_what_was_taken_is_told() {
    let terminal = start("stty raw -echo; echo ready; read x </dev/tty; sleep 999");
    until_output(&terminal, "ready").await;
    let mut typed = 0;
    let flood = vec![b'x'; 1024 * 1024];
    let waiting = terminal.write(&flood, |count| typed += count);
    assert!(tokio::time::timeout(Duration::from_millis(300), waiting).await.is_err());
    assert!(typed > 0 && typed < flood.len(), "{typed}");
    within("close", terminal.close(Duration::ZERO)).await;
}

#[tokio::test]
async fn a_program_that_ends_while_input_waits_takes_the_input_with_it() {
    for _ in 0..20 {
        let terminal = start("stty raw -echo; echo ready; exec sleep 999");
        until_output(&terminal, "ready").await;
        let flood = vec![b'x'; 1024 * 1024];
        let mut typed = 0;
        let waiting = async { terminal.write(&flood, |count| typed += count).await };
        let ending = async {
            // As much is typed as the terminal takes.
            tokio::time::sleep(Duration::from_millis(20)).await;
            terminal.signal(Signal::TERM).unwrap();
        };
        let (result, ()) =
            within("the end of a program with unread input", async { tokio::join!(waiting, ending) }).await;
        assert!(matches!(result, Err(TerminalError::Closed)), "{result:?}");
        within("close", terminal.close(Duration::ZERO)).await;
    }
}
