//! The suite and the comparison with a real server.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use gloveport_conformance::{
    CheckResult, RunOptions, Server, Verdict, Wire, checks,
    differ::{DifferOptions, Operation, compare, generate},
    run, select,
};
use gloveport_server::{ServerOptions, SessionKey};
use gloveport_testing::within;
use serde_json::json;

async fn live(key: Option<&str>) -> gloveport_testing::Server {
    let options = ServerOptions { session_key: key.map(SessionKey::new), ..ServerOptions::default() };
    gloveport_testing::Server::start_at("127.0.0.1:0", options, |mut tools| {
        tools.startup_commands.push("alias git=\"git --no-pager\"".into());
        tools.no_change = Duration::from_secs(2);
        tools
    })
    .await
}

/// Our server passes these checks as they stand, not by a behaviour that is allowed besides.
async fn passes(groups: &[&str], allowed: &[&str]) {
    let live = live(Some("s3cret")).await;
    let server = Server::new(&live.url(), Some("s3cret")).unwrap();
    for result in results(&server, groups, &RunOptions::default()).await {
        let passed = match &result.verdict {
            Verdict::Pass { deliberate } => deliberate.is_none() || allowed.contains(&result.id.as_str()),
            Verdict::Fail { .. } | Verdict::Skip { .. } => false,
        };
        assert!(passed, "{result:#?}");
        assert_eq!(result.attempts, 1);
    }
    live.stop().await;
}

async fn results(server: &Server, patterns: &[&str], options: &RunOptions) -> Vec<CheckResult> {
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let chosen = select(checks(Wire::V0), &patterns).unwrap();
    assert!(!chosen.is_empty());
    let mut told = 0;
    let results = run(server, &chosen, options, |_| told += 1).await.unwrap();
    assert_eq!((results.len(), told), (chosen.len(), chosen.len()));
    results
}

#[tokio::test]
async fn the_checks_of_requests_lists_and_transfers_pass() {
    passes(&["{info,auth,errors,list,upload,download}/*"], &[]).await;
}

#[tokio::test]
async fn the_checks_of_files_and_the_editor_pass() {
    passes(&["{read,write,editor}/*"], &[]).await;
}

#[tokio::test]
async fn the_checks_of_commands_pass() {
    passes(&["commands/*"], &[]).await;
}

#[tokio::test]
async fn what_does_not_hold_fails_with_what_was_expected_and_is_tried_again() {
    within(async {
        // A server without a key answers everybody.
        let live = live(None).await;
        let server = Server::new(&live.url(), Some("s3cret")).unwrap();
        let options = RunOptions { retries: 1, ..RunOptions::default() };
        let results = results(&server, &["auth/no-key"], &options).await;
        let Verdict::Fail { step, expected, got } = &results[0].verdict else { panic!("{results:#?}") };
        assert_eq!((step.as_str(), expected.as_str()), ("POST /execute_action", "status 403"));
        assert!(got.starts_with("status 200: {"), "{got}");
        assert_eq!(results[0].attempts, 2);
        live.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_check_without_an_end_is_ended() {
    within(async {
        let live = live(None).await;
        let server = Server::new(&live.url(), None).unwrap();
        // The limit is also that of what is prepared for a check: the first shell starts before it counts.
        mine_only(&server, "true").await;
        let options = RunOptions { limit: Duration::from_secs(2), ..RunOptions::default() };
        let results = results(&server, &["commands/blocking", "auth/no-key"], &options).await;
        let Verdict::Fail { expected, got, .. } = &results[1].verdict else { panic!("{results:#?}") };
        assert_eq!((expected.as_str(), got.as_str()), ("an end within 2 s", "no end"));
        assert_eq!(results[0].verdict, Verdict::Skip { reason: "no key is given".into() });
        live.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let server = Server::new("127.0.0.1:1", None).unwrap();
    let error = run(&server, &checks(Wire::V0), &RunOptions::default(), |_| {}).await.unwrap_err();
    assert!(error.to_string().starts_with("POST http://127.0.0.1:1/execute_action: "), "{error}");
}

#[tokio::test]
async fn two_servers_alike_answer_alike_and_a_difference_is_shown_with_its_place() {
    within(async {
        let (one, other) = (live(None).await, live(None).await);
        let (mine, theirs) = (Server::new(&one.url(), None).unwrap(), Server::new(&other.url(), None).unwrap());
        let commands: Vec<Operation> = generate(600, 5)
            .into_iter()
            .filter(|operation| matches!(operation, Operation::Action(action) if action["action"] == "run"))
            .collect();
        assert!(commands.len() > 20);
        let options = DifferOptions::default();
        let same = compare(&mine, &theirs, &commands, &options, |_| {}).await.unwrap();
        assert_eq!((same.same, same.different), (commands.len(), 0), "{}", same.text());
        assert!(same.known.is_empty());

        let state = |command: &str| Operation::Action(json!({"action": "run", "args": {"command": command}}));
        mine_only(&mine, "cd / && X=1").await;
        let found = compare(&mine, &theirs, &[state("echo ${X:-0}"), state("true")], &options, |_| {}).await.unwrap();
        let difference = &found.differences[0];
        assert_eq!((difference.number, difference.at.as_str()), (1, "/body/content"));
        assert_eq!((&difference.mine, &difference.theirs), (&json!("1"), &json!("0")));
        one.stop().await;
        other.stop().await;
    })
    .await;
}

/// Runs a command on one server alone.
async fn mine_only(server: &Server, command: &str) {
    use gloveport_client::{ActionExecutionClient, ClientOptions};
    use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, RunAction};
    let client = ActionExecutionClient::new(&ClientOptions::new(server.url())).unwrap();
    client.execute(&ActionEvent::from(Action::Run(RunAction::new(command)))).await.unwrap();
}
