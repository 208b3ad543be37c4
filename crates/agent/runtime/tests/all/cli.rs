//! A session over the cli runtime (local-and-cli-runtime B).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use gloveport_config::Config;
use gloveport_protocol::{Action, CallToolMcpAction, Observation, ReadAction, RunAction, Secret, WriteAction};
use gloveport_runtime::{Cli, Runtime, RuntimeOptions};

struct Connected {
    runtime: Runtime,
    statuses: Arc<Mutex<Vec<String>>>,
    workspace: String,
    _directory: tempfile::TempDir,
}

async fn connected(change: impl FnOnce(&mut RuntimeOptions)) -> Connected {
    let directory = tempfile::tempdir().unwrap();
    let workspace = fs::canonicalize(directory.path()).unwrap().join("ws").display().to_string();
    let config = Config { runtime: "cli".to_owned(), workspace_base: Some(workspace.clone()), ..Config::default() };
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&statuses);
    let cli = Cli::from_config(&config);
    let mut options = RuntimeOptions::new(config, cli);
    options.status_callback = Some(Arc::new(move |_, status, _| told.lock().unwrap().push(status.to_string())));
    change(&mut options);
    let runtime = Runtime::new(options).unwrap();
    runtime.connect().await.unwrap();
    Connected { runtime, statuses, workspace, _directory: directory }
}

async fn output(runtime: &Runtime, command: &str) -> String {
    match runtime.run_action(&Action::Run(RunAction::new(command)).into()).await.unwrap() {
        Observation::Run(run) => run.content,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_started_and_never_ready_and_its_workspace_stays() {
    for attach in [false, true] {
        let session = connected(|options| options.attach_to_existing = attach).await;
        assert_eq!(*session.statuses.lock().unwrap(), ["STATUS$STARTING_RUNTIME", "STATUS$RUNTIME_STARTED"]);
        assert_eq!(session.runtime.workspace_root(), session.workspace);
        let write = Action::Write(WriteAction::new("/workspace/f", "text"));
        session.runtime.run_action(&write.into()).await.unwrap();
        assert_eq!(session.runtime.list_files(None).await.unwrap(), [format!("{}/f", session.workspace)]);
        session.runtime.close().await;
        assert_eq!(fs::read_to_string(Path::new(&session.workspace).join("f")).unwrap(), "text");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_keep_their_names_and_leave_this_process_and_the_home_alone() {
    let home = tempfile::tempdir().unwrap();
    let session = connected(|options| {
        options.env_vars = BTreeMap::from([
            ("lower_Case".to_owned(), Secret::new("a b'$x")),
            ("HOME".to_owned(), Secret::new(home.path().to_str().unwrap())),
        ]);
    })
    .await;
    assert_eq!(output(&session.runtime, "printf %s \"$lower_Case\"").await, "a b'$x");
    let more = BTreeMap::from([("later".to_owned(), Secret::new("1"))]);
    session.runtime.add_env_vars(&more).await.unwrap();
    assert_eq!(output(&session.runtime, "echo $later; git config --global user.name").await, "1\n");
    let wrong = BTreeMap::from([("a b".to_owned(), Secret::new("1"))]);
    assert!(session.runtime.add_env_vars(&wrong).await.is_err());
    assert!(std::env::var_os("lower_Case").is_none());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_told_where_they_are_and_listeners_what_commands_say() {
    let session = connected(|_| {}).await;
    let expected = format!(
        "Your working directory is {}. You can only read and write files in this directory.\n\nYou are working directly on \
         the user's machine. In most cases, the working environment is already set up.",
        session.workspace
    );
    assert_eq!(session.runtime.additional_agent_instructions().unwrap(), expected);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let listen = Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()));
    assert!(session.runtime.subscribe_to_shell_stream(Some(listen)).unwrap());
    output(&session.runtime, "echo a; echo b").await;
    assert_eq!(*lines.lock().unwrap(), ["a\n", "b\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_an_observation_and_an_error_for_direct_callers() {
    let session = connected(|_| {}).await;
    let refused = format!("Invalid path: /etc/passwd. You can only work with files in {}.", session.workspace);
    let read = session.runtime.run_action(&Action::Read(ReadAction::new("/etc/passwd")).into()).await.unwrap();
    assert_eq!(read.content(), refused);
    assert_eq!(session.runtime.list_files(Some("/etc/passwd")).await.unwrap_err().to_string(), refused);
    assert_eq!(session.runtime.copy_from("/etc/passwd").await.unwrap_err().to_string(), refused);
    let copied = session.runtime.copy_to(Path::new("/etc/hostname"), "/etc/passwd", false).await;
    assert_eq!(copied.unwrap_err().to_string(), refused);
    let tool = session.runtime.run_action(&Action::CallToolMcp(CallToolMcpAction::new("t")).into()).await.unwrap();
    assert_eq!(tool.content(), "No MCP servers configured");
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_workspaces_of_a_conversation_are_deleted_and_no_others() {
    let one = Runtime::new(RuntimeOptions {
        sid: format!("cli-test-{}", std::process::id()),
        ..RuntimeOptions::new(Config::default(), Cli::from_config(&Config::default()))
    })
    .unwrap();
    one.connect().await.unwrap();
    let other = Runtime::new(RuntimeOptions {
        sid: format!("cli-test-{}-other", std::process::id()),
        ..RuntimeOptions::new(Config::default(), Cli::from_config(&Config::default()))
    })
    .unwrap();
    other.connect().await.unwrap();
    let (first, second) = (one.workspace_root().to_owned(), other.workspace_root().to_owned());
    let name = Path::new(&first).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("openhands_workspace_{}_", one.sid())), "{name}");
    one.close().await;
    assert!(Path::new(&first).is_dir());
    assert_eq!(Cli::delete(one.sid()).await.unwrap(), 1);
    assert!(!Path::new(&first).exists() && Path::new(&second).exists());
    assert_eq!(Cli::delete(other.sid()).await.unwrap(), 1);
}
