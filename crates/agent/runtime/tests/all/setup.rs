//! What is set up before work begins (runtime-interface 9, 10, 12, 13, 14).
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::support::{History, Sandbox, Scripted, output, within};
use gloveport_config::{Config, McpSseServer, McpStdioServer};
use gloveport_protocol::{Event, EventSource, Observation};
use gloveport_runtime::{
    ChangeStatus, GitChange, Runtime, RuntimeOptions, SelectedRepository, StatusLevel,
    git_providers::{GitProviders, ProviderToken, ProviderTokens, ProviderType},
};

fn file(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[tokio::test]
async fn the_set_up_script_runs_once_in_the_shell_and_is_shown() {
    let sandbox = Sandbox::with(|options| options.no_change = Duration::from_secs(1)).await;
    let history = History::new().await;
    let statuses: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&statuses);
    let mut options = sandbox.options().with_stream(&history.stream);
    options.status_callback = Some(Arc::new(move |level: StatusLevel, status, text| {
        told.lock().unwrap().push(format!("{} {status} {text}", level.as_str()));
    }));
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    within(runtime.maybe_run_setup_script()).await.unwrap();
    assert!(history.rest().await.is_empty(), "there is no script yet");
    statuses.lock().unwrap().clear();

    // Longer than the time without output that ends other commands.
    let script = sandbox.home().join(".openhands/setup.sh");
    file(&script, "echo run >> log\nsleep 3\nexport FROM_SETUP=yes\n");
    within(runtime.maybe_run_setup_script()).await.unwrap();
    assert_eq!(fs::read_to_string(sandbox.home().join("log")).unwrap(), "run\n");
    assert_eq!(output(&runtime, "echo $FROM_SETUP").await.trim(), "yes");
    assert_eq!(*statuses.lock().unwrap(), ["info STATUS$SETTING_UP_WORKSPACE Setting up workspace..."]);

    let events = history.rest().await;
    let [action, observation] = &events[..] else { panic!("{events:?}") };
    let Event::Action(event) = &**action else { unreachable!() };
    assert_eq!((event.source, event.timeout), (Some(EventSource::Environment), Some(600.0)));
    let Event::Observation(event) = &**observation else { unreachable!() };
    assert_eq!((event.cause, event.source), (action.id(), Some(EventSource::Environment)));
    assert!(matches!(&event.observation, Observation::Run(run) if run.metadata.exit_code == 0));
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn the_hook_of_a_repository_is_installed_and_one_of_somebody_else_is_kept() {
    let sandbox = Sandbox::start().await;
    let home = sandbox.home().to_owned();
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    within(runtime.maybe_set_up_git_hooks()).await.unwrap();
    assert!(!home.join(".git").exists());

    git(&home, &["init", "-q"]);
    file(&home.join(".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n");
    file(&home.join(".openhands/pre-commit.sh"), "test ! -e forbidden\n");
    for _ in 0..2 {
        within(runtime.maybe_set_up_git_hooks()).await.unwrap();
    }
    assert_eq!(fs::read_to_string(home.join(".git/hooks/pre-commit.local")).unwrap(), "#!/bin/sh\nexit 1\n");
    let commit = "git add -A; git commit -qm x >/dev/null 2>&1; echo $?";
    assert_eq!(output(&runtime, commit).await.trim(), "0");
    assert_eq!(
        output(&runtime, "touch forbidden; git add -A; git commit -qm y >/dev/null 2>&1; echo $?").await.trim(),
        "1"
    );
    // The user that the session has named.
    assert_eq!(
        output(&runtime, "git --no-pager log -1 --format='%an <%ae>'").await.trim(),
        "openhands <openhands@all-hands.dev>"
    );
    runtime.close().await;
    sandbox.stop().await;
}

/// A provider without a token: the repository cannot be looked up here, so tests name its server.
fn tokens(provider: ProviderType, token: &str) -> ProviderTokens {
    let token = ProviderToken { token: Some(token.into()), ..ProviderToken::default() };
    [(provider, token)].into_iter().collect()
}

#[tokio::test]
async fn an_empty_workspace_becomes_a_repository_only_where_it_should() {
    for (init, expected) in
        [(false, vec![]), (true, vec!["git init && git config --global --add safe.directory /workspace".to_owned()])]
    {
        let sandbox = Scripted::obedient();
        let config = Config { init_git_in_empty_workspace: init, ..Config::default() };
        let options = RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(config, sandbox.clone()) };
        let runtime = Runtime::new(options).unwrap();
        within(runtime.connect()).await.unwrap();
        assert_eq!(within(runtime.clone_or_init_repo(None)).await.unwrap(), "");
        assert_eq!(sandbox.commands(), expected);
    }
}

#[tokio::test]
async fn a_branch_that_is_an_option_is_refused() {
    let sandbox = Scripted::obedient();
    let options =
        RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(Config::default(), sandbox.clone()) };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let selected = SelectedRepository { name: "o/r".to_owned(), branch: Some("--orphan".to_owned()) };
    let error = within(runtime.clone_or_init_repo(Some(&selected))).await.unwrap_err();
    assert_eq!(error.to_string(), "`--orphan` cannot be the name of a branch");
    assert!(sandbox.commands().is_empty());
}

#[tokio::test]
async fn changes_diffs_and_branches_are_told_also_of_paths_with_spaces() {
    let sandbox = Sandbox::start().await;
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    let origin = sandbox.home().join("origin");
    file(&origin.join("with space.txt"), "old\n");
    file(&origin.join("gone"), "content\n");
    git(&origin, &["init", "-q"]);
    git(&origin, &["add", "-A"]);
    git(&origin, &["commit", "-qm", "first"]);
    git(sandbox.home(), &["clone", "-q", "origin", "clone"]);
    let clone = sandbox.home().join("clone");
    git(&clone, &["checkout", "-qb", "work"]);
    fs::write(clone.join("with space.txt"), "new\n").unwrap();
    fs::remove_file(clone.join("gone")).unwrap();
    file(&clone.join("$new \"file\""), "x");
    let directory = clone.to_str().unwrap();

    let changes = within(runtime.git_changes(directory)).await.unwrap().unwrap();
    let change = |status, path: &str| GitChange { status, path: path.to_owned() };
    assert_eq!(
        changes,
        [
            change(ChangeStatus::Added, "$new \"file\""),
            change(ChangeStatus::Deleted, "gone"),
            change(ChangeStatus::Modified, "with space.txt")
        ]
    );
    for (name, original, modified) in
        [("with space.txt", "old", "new"), ("gone", "content", ""), ("$new \"file\"", "", "x")]
    {
        let diff = within(runtime.git_diff(name, directory)).await.unwrap();
        assert_eq!((diff.original.as_str(), diff.modified.as_str()), (original, modified), "{name}");
    }
    assert_eq!(within(runtime.workspace_branch(Some("owner/clone"))).await.unwrap().as_deref(), Some("work"));
    assert_eq!(within(runtime.git_changes("/")).await.unwrap().unwrap_or_default(), []);
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn microagents_of_the_workspace_and_of_a_repository_are_found() {
    let sandbox = Sandbox::start().await;
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    let home = sandbox.home();
    assert!(within(runtime.microagents(None)).await.unwrap().is_empty());
    file(&home.join(".openhands/microagents/repo.md"), "Use tabs.");
    file(&home.join(".openhands/microagents/deep/db.md"), "---\ntriggers: [postgres]\n---\nUse it.");
    file(&home.join(".openhands_instructions"), "Old instructions.");
    file(&home.join("r/.openhands/microagents/own.md"), "Own.");
    let names = async |repository| -> Vec<String> {
        let found = within(runtime.microagents(repository)).await.unwrap();
        found.into_iter().map(|microagent| microagent.name).collect()
    };
    assert_eq!(names(None).await, ["repo_legacy", "repo", "deep/db"]);
    assert_eq!(names(Some("owner/r")).await, ["repo_legacy", "own"]);
    // One that is wrong takes the others of its directory with it.
    file(&home.join("r/.openhands/microagents/bad.md"), "---\ntype: strange\n---\n");
    assert_eq!(names(Some("owner/r")).await, ["repo_legacy"]);
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn the_sandbox_is_one_mcp_server_however_often_it_is_asked_for() {
    let sandbox = Scripted::obedient();
    let server = |name: &str| McpStdioServer {
        name: name.to_owned(),
        command: "npx".to_owned(),
        args: vec!["x".to_owned()],
        env: [("K".to_owned(), "v".into())].into(),
    };
    let mut config = Config::default();
    config.mcp.stdio_servers = vec![server("b")];
    config.mcp.sse_servers = vec![McpSseServer { url: "http://configured/sse".to_owned(), api_key: None }];
    let options = RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(config, sandbox.clone()) };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    for extra in [vec![], vec![], vec![server("a")], vec![server("a")], vec![]] {
        let config = within(runtime.mcp_config(&extra)).await.unwrap();
        let urls: Vec<_> = config.sse_servers.iter().map(|server| server.url.as_str()).collect();
        assert_eq!(urls, ["http://configured/sse", "http://sandbox/mcp/sse"]);
        assert_eq!(config.sse_servers[1].api_key, Some("session key".into()));
        assert_eq!(config.stdio_servers, [server("b")]);
    }
    let names: Vec<Vec<_>> =
        sandbox.updates().iter().map(|update| update.iter().map(|server| server.name.clone()).collect()).collect();
    assert_eq!(names, [vec!["b"], vec!["a", "b"]]);
}

#[tokio::test]
async fn a_token_is_refreshed_into_the_environment_and_joins_the_other_secrets() {
    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    history.stream.set_secrets([("custom".to_owned(), "custom value".into())].into());
    let options = RuntimeOptions {
        attach_to_existing: true,
        git_provider_tokens: tokens(ProviderType::Github, "ghp_secret"),
        ..RuntimeOptions::new(Config::default(), sandbox.clone()).with_stream(&history.stream)
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let run = |command: &str| gloveport_protocol::Action::Run(gloveport_protocol::RunAction::new(command));
    history.stream.add(run("echo nothing"), EventSource::Agent).await.unwrap();
    history.observation().await;
    assert_eq!(sandbox.commands(), ["echo nothing"]);
    history.stream.add(run("curl -u x:$GITHUB_TOKEN"), EventSource::Agent).await.unwrap();
    history.observation().await;
    let commands = sandbox.commands();
    assert_eq!(commands[1], "export GITHUB_TOKEN=\"ghp_secret\";");
    assert_eq!(commands.last().unwrap(), "curl -u x:$GITHUB_TOKEN");
    history.stream.add(run("echo ghp_secret custom value"), EventSource::User).await.unwrap();
    history.observation().await;
    assert_eq!(sandbox.commands().last().unwrap(), "echo <secret_hidden> <secret_hidden>");
}

/// The providers of a user whose GitHub has these repositories.
async fn github(token: &str, repositories: &'static [&'static str]) -> GitProviders {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let answer = move |axum::extract::Path(name): axum::extract::Path<String>| async move {
        if repositories.contains(&name.as_str()) {
            Ok(axum::Json(serde_json::json!({"full_name": name})))
        } else {
            Err(axum::http::StatusCode::NOT_FOUND)
        }
    };
    let router = axum::Router::new().route("/repos/{*name}", axum::routing::get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    GitProviders::new(tokens(ProviderType::Github, token))
        .unwrap()
        .with_api_base(ProviderType::Github, base.parse().unwrap())
}

#[tokio::test]
async fn a_clone_is_three_commands_none_of_which_has_the_token_among_its_arguments() {
    let sandbox = Scripted::obedient();
    let options = RuntimeOptions {
        attach_to_existing: true,
        git_providers: Some(github("tok'en", &["o/r"]).await),
        ..RuntimeOptions::new(Config::default(), sandbox.clone())
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let selected = |branch: &str| SelectedRepository { name: "o/r".to_owned(), branch: Some(branch.to_owned()) };
    assert_eq!(within(runtime.clone_or_init_repo(Some(&selected("it's; id")))).await.unwrap(), "r");
    let [clone, checkout, remote] = &sandbox.commands()[..] else { panic!("{:?}", sandbox.commands()) };
    let (before, arguments) = clone.split_once(" git clone ").unwrap();
    assert!(before.contains("GLOVEPORT_GIT_PASSWORD=$'tok\\x27en'"), "{before}");
    assert_eq!(arguments, "https://github.com/o/r.git /workspace/r");
    assert_eq!(checkout, "cd /workspace/r && git checkout $'it\\x27s; id'");
    assert!(
        remote.starts_with("cd /workspace/r && git remote set-url origin https://github.com/o/r.git && git config ")
    );
    assert!(!remote.contains("en'") && !remote.contains("x27en"), "{remote}");
    let missing = SelectedRepository { name: "o/other".to_owned(), branch: None };
    let error = within(runtime.clone_or_init_repo(Some(&missing))).await.unwrap_err();
    assert_eq!(error.to_string(), "Git provider authentication issue when getting remote URL");
}

#[tokio::test]
async fn a_repository_is_cloned_with_its_own_branch_and_its_owner_has_microagents() {
    let sandbox = Sandbox::start().await;
    let home = sandbox.home();
    for (name, path, text) in
        [("r", ".openhands/microagents/own.md", "Own."), (".openhands", "microagents/all.md", "For all.")]
    {
        let origin = home.join("origins").join(name);
        file(&origin.join(path), text);
        git(&origin, &["init", "-q"]);
        git(&origin, &["add", "-A"]);
        git(&origin, &["commit", "-qm", "first"]);
        let url = format!("url.file://{}.insteadOf", origin.display());
        let public = format!("https://github.com/o/{name}.git");
        let set = Command::new("git").args(["config", "--global", &url, &public]).env("HOME", home).status();
        assert!(set.unwrap().success());
    }
    let options = RuntimeOptions {
        git_providers: Some(github("ghp_token", &["o/r", "o/.openhands"]).await),
        ..sandbox.options()
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let selected = SelectedRepository { name: "o/r".to_owned(), branch: None };
    assert_eq!(within(runtime.clone_or_init_repo(Some(&selected))).await.unwrap(), "r");
    let branch = within(runtime.workspace_branch(Some("o/r"))).await.unwrap().unwrap();
    assert!(branch.starts_with("openhands-workspace-") && branch.len() == 28, "{branch}");
    let config = fs::read_to_string(home.join("r/.git/config")).unwrap();
    assert!(config.contains("url = https://github.com/o/r.git") && !config.contains("ghp_token"), "{config}");
    let asked = "printf 'protocol=https\\nhost=github.com\\n\\n' | git credential fill | grep password";
    assert_eq!(output(&runtime, asked).await.trim(), "password=ghp_token");

    let found = within(runtime.microagents(Some("o/r"))).await.unwrap();
    let names: Vec<_> = found.iter().map(|microagent| microagent.name.as_str()).collect();
    assert_eq!(names, ["all", "own"]);
    assert!(!home.join("org_openhands_o").exists());
    runtime.close().await;
    sandbox.stop().await;
}
