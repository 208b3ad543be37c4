//! A session in a sandbox whose server is an `agent-server` of OpenHands' SDK 1.x, which has commands and files and no tools.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::support::{Server, gloveport, until};
use gloveport_client::ClientOptions;
use gloveport_config::Config;
use gloveport_protocol::{Action, ActionEvent, Observation, ReadAction, RunAction, Secret, WriteAction};
use gloveport_runtime::{BroughtTools, Runtime, RuntimeError, RuntimeOptions, ServerAt};
use gloveport_sys::process;
use gloveport_testing::within;

const KEY: &str = "the key of the sandbox";

/// An `agent-server` whose temporary directory, where tools are brought to, is below its home.
fn agent_server() -> Server {
    let home = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for name in ["tmp", "work"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    let mut command = gloveport(home.path());
    command.args(["agent-server", "--host", "127.0.0.1", "--port", &port.to_string()]);
    command.env("OH_SESSION_API_KEYS_0", KEY).env("OH_BASH_EVENTS_DIR", home.path().join("events"));
    command.env("TMPDIR", home.path().join("tmp")).env("GLOVEPORT_AGENT_SERVER", "none");
    command.current_dir(home.path().join("work")).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server { child: command.spawn().unwrap(), port, home };
    until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

fn session(server: &Server, key: &str, tools: bool) -> Runtime {
    let connector = ServerAt::new(ClientOptions::new(server.url()).with_key(Some(key)));
    let brought = || BroughtTools::of_program(env!("CARGO_BIN_EXE_gloveport").into()).in_workspace(work(server));
    let connector = if tools { connector.bringing(brought()) } else { connector };
    let options = RuntimeOptions {
        sid: "a session/with \u{e9}".to_owned(),
        env_vars: [("initial".to_owned(), Secret::new("hidden value"))].into(),
        ..RuntimeOptions::new(Config::default(), connector)
    };
    Runtime::new(options).unwrap()
}

fn work(server: &Server) -> String {
    server.home.path().join("work").display().to_string()
}

async fn act(runtime: &Runtime, action: Action) -> Result<Observation, RuntimeError> {
    within(runtime.run_action(&action.into())).await
}

async fn run(runtime: &Runtime, command: &str) -> String {
    act(runtime, Action::Run(RunAction::new(command))).await.unwrap().content().to_owned()
}

/// The directories of servers that were brought.
fn brought(server: &Server) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(server.home.path().join("tmp")).unwrap() {
        let below = fs::read_dir(entry.unwrap().path()).into_iter().flatten().flatten();
        found.extend(below.map(|entry| entry.path()).filter(|path| path.join("lock").exists()));
    }
    found
}

/// The processes of servers that were brought.
fn relayed(server: &Server) -> Vec<u32> {
    let place = server.home.path().display().to_string();
    let is_one = |pid: &u32| {
        let line = process::command_line(*pid).unwrap_or_default();
        line.contains(" relayed-server ") && line.contains(&place)
    };
    process::all().into_iter().filter(is_one).collect()
}

/// Whether a text is in a file below a directory.
fn contains(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return contains(&path, text);
        }
        fs::read(path).is_ok_and(|content| String::from_utf8_lossy(&content).contains(text))
    })
}

#[tokio::test]
async fn a_session_has_all_tools_behind_an_agent_server_and_leaves_none_of_them() {
    let server = agent_server();
    let runtime = session(&server, KEY, true);
    within(runtime.connect()).await.unwrap();
    assert_eq!((brought(&server).len(), relayed(&server).is_empty()), (1, false));

    // One shell keeps its state, and has the session's variables.
    assert_eq!(run(&runtime, "mkdir -p deep && cd deep && export KEPT=yes").await, "");
    assert_eq!(run(&runtime, "echo $KEPT $INITIAL; basename $PWD").await, "yes hidden value\ndeep");
    let long = run(&runtime, "seq 1 400000 | tail -c 20; (exit 7)").await;
    assert!(long.ends_with("400000"), "{long}");

    // Files.
    let text = "one\n\u{e9} 'quoted' \"twice\"\n".repeat(20_000);
    let path = format!("{}/written.txt", work(&server));
    let written = act(&runtime, Action::Write(WriteAction::new(&path, &text))).await.unwrap();
    assert!(matches!(written, Observation::Write(_)), "{written:?}");
    // A write ends with a line end more, as in OpenHands.
    assert!(fs::read_to_string(&path).unwrap().trim_end() == text.trim_end(), "the file has another content");
    let short = format!("{}/short.txt", work(&server));
    fs::write(&short, "one\n\u{e9} 'quoted'\n").unwrap();
    let read = act(&runtime, Action::Read(ReadAction::new(&short))).await.unwrap();
    assert_eq!(read.content().trim_end(), "one\n\u{e9} 'quoted'");
    let missing = act(&runtime, Action::Read(ReadAction::new("/nonexistent"))).await.unwrap();
    assert!(matches!(missing, Observation::Error(_)), "{missing:?}");
    let listed = within(runtime.list_files(Some(&work(&server)))).await.unwrap();
    assert_eq!(listed, ["deep/", "short.txt", "written.txt"]);

    // Trees, in both directions.
    let source = tempfile::tempdir().unwrap();
    fs::create_dir_all(source.path().join("tree/below")).unwrap();
    fs::write(source.path().join("tree/below/file"), "carried").unwrap();
    within(runtime.copy_to(&source.path().join("tree"), &work(&server), true)).await.unwrap();
    assert_eq!(fs::read_to_string(server.home.path().join("work/tree/below/file")).unwrap(), "carried");
    let zip = within(runtime.copy_from(&format!("{}/tree", work(&server)))).await.unwrap();
    assert!(fs::metadata(&zip).unwrap().len() > 100);

    // Git.
    let made = "cd .. && git init -q repo && cd repo && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && \
                echo new > file && cd ..";
    assert_eq!(run(&runtime, made).await, "");
    let repository = format!("{}/repo", work(&server));
    let changes = within(runtime.git_changes(&repository)).await.unwrap().unwrap();
    assert_eq!(changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["file"]);
    assert_eq!(within(runtime.git_diff("file", &repository)).await.unwrap().modified.trim_end(), "new");

    // The `agent-server` keeps what commands it ran, and nothing of what went through them.
    let events = server.home.path().join("events");
    assert!(contains(&events, "relayed-call") && !contains(&events, "hidden value") && !contains(&events, "KEPT"));
    let left = fs::read_dir(&brought(&server)[0]).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name != "lock" && name != "address").collect();
    assert!(left.len() < 3, "{left:?}");

    runtime.close().await;
    until("its tools have ended", || brought(&server).is_empty());
    until("its processes have ended", || relayed(&server).is_empty());
}

#[tokio::test]
async fn a_command_that_takes_too_long_goes_on_and_can_be_interrupted() {
    let server = agent_server();
    let runtime = session(&server, KEY, true);
    within(runtime.connect()).await.unwrap();
    let action = Action::Run(RunAction::new("echo begun; sleep 600"));
    let event = ActionEvent { timeout: Some(1.0), ..ActionEvent::from(action) };
    let observation = within(runtime.run_action(&event)).await.unwrap();
    assert!(observation.content().contains("begun"), "{observation:?}");
    let interrupt = RunAction { is_input: true, ..RunAction::new("C-c") };
    act(&runtime, Action::Run(interrupt)).await.unwrap();
    assert_eq!(run(&runtime, "echo after").await, "after");
    runtime.close().await;
}

#[tokio::test]
async fn tools_that_were_killed_are_started_again_and_the_agent_is_told() {
    let server = agent_server();
    let runtime = session(&server, KEY, true);
    within(runtime.connect()).await.unwrap();
    run(&runtime, "cd /; export LOST=yes").await;
    fs::remove_dir_all(&brought(&server)[0]).unwrap();
    until("the tools have ended", || relayed(&server).is_empty());
    let told = act(&runtime, Action::Run(RunAction::new("echo lost"))).await.unwrap_err().to_string();
    assert!(told.contains("they were started again"), "{told}");
    assert_eq!(run(&runtime, "echo \"[$LOST]\"; pwd").await, format!("[]\n{}", work(&server)));
    runtime.close().await;
}

#[tokio::test]
async fn a_wrong_key_and_missing_tools_are_told_in_words() {
    let server = agent_server();
    let error = within(session(&server, "wrong", true).connect()).await.unwrap_err().to_string();
    assert!(error.contains("401"), "{error}");
    let error = within(session(&server, KEY, false).connect()).await.unwrap_err().to_string();
    assert!(error.contains("agent-server of OpenHands' SDK 1.x"), "{error}");
    assert!(brought(&server).is_empty() && relayed(&server).is_empty());
}
