//! What is sent for an action, what is answered without asking, and the other endpoints (`action-execution-client` 3 to
//! 8).

use crate::common::{Peer, Reply, within};
use gloveport_client::{ActionExecutionClient, ClientOptions};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, CallToolMcpAction, ConfirmationState, EditAction, ErrorObservation,
    ExecuteError, FileEditSource, McpServerEntry, Observation, RunAction, ThinkAction, ThinkObservation,
    UserRejectedObservation,
};
use serde_json::{Value, json};

fn run(change: impl FnOnce(&mut RunAction)) -> ActionEvent {
    let mut action = RunAction::new("echo hi");
    change(&mut action);
    ActionEvent::from(Action::Run(action))
}

fn ran(content: &str) -> String {
    json!({"observation": "run", "message": "", "content": content, "extras": {"command": "c", "metadata": {"exit_code": 0}}})
        .to_string()
}

#[tokio::test]
async fn an_action_without_a_limit_gets_that_of_the_sandbox_and_does_not_block() {
    within(async {
        let peer = Peer::start([Reply::ok(&ran("hi")), Reply::ok(&ran("hi"))]).await;
        let client = peer.client();
        assert_eq!(client.last_execution(), None);
        let event = ActionEvent { id: Some(7), ..run(|_| {}) };
        let observation = client.send_action(&event).await.unwrap();
        assert_eq!((observation.cause, observation.observation.content()), (Some(7), "hi"));
        assert!(client.last_execution().is_some());
        let event = ActionEvent { timeout: Some(2.5), ..run(|run| run.blocking = true) };
        client.execute(&event).await.unwrap();
        let sent: Vec<Value> = peer.asked().iter().map(|asked| asked.json()["action"].clone()).collect();
        let facts = |sent: &Value| json!([sent["id"], sent["timeout"], sent["args"]["blocking"], sent["action"]]);
        assert_eq!(facts(&sent[0]), json!([7, 120.0, false, "run"]));
        assert_eq!(facts(&sent[1]), json!([null, 2.5, true, "run"]));

        let error = client.execute(&run(|run| run.blocking = true)).await.unwrap_err();
        assert_eq!(error, ExecuteError::BlockingWithoutTimeout);
        assert_eq!(error.to_string(), "Blocking command with no timeout set");
        assert_eq!(peer.lines().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_executed_is_answered_without_asking() {
    within(async {
        let peer = Peer::start([]).await;
        let client = peer.client();
        let cases = [
            (
                ActionEvent::from(Action::Think(ThinkAction { thought: "x".into() })),
                Observation::Think(ThinkObservation { content: "Your thought has been logged.".into() }),
            ),
            (ActionEvent::from(Action::Null), Observation::Null),
            (ActionEvent::from(Action::CondensationRequest), Observation::Null),
            (run(|run| run.confirmation_state = ConfirmationState::AwaitingConfirmation), Observation::Null),
            (
                run(|run| run.confirmation_state = ConfirmationState::Rejected),
                Observation::UserRejected(UserRejectedObservation {
                    content: "Action has been rejected by the user! Waiting for further user input.".into(),
                }),
            ),
            (
                ActionEvent::from(Action::CallToolMcp(CallToolMcpAction::new("t"))),
                Observation::Error(ErrorObservation {
                    content: "Action call_tool_mcp is not supported in the current runtime.".into(),
                    error_id: "AGENT_ERROR$BAD_ACTION".into(),
                }),
            ),
        ];
        for (event, expected) in cases {
            assert_eq!(client.execute(&event).await.unwrap(), expected, "{event:?}");
        }
        let edit = EditAction { impl_source: FileEditSource::LlmBasedEdit, ..EditAction::new("/a") };
        let error = client.execute(&ActionEvent::from(Action::Edit(edit))).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "an edit with the source `llm_based_edit` is made by the runtime and not by a sandbox"
        );
        assert_eq!(peer.lines(), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn the_output_of_a_hidden_command_is_not_cut_and_an_error_in_its_place_can_be_read() {
    within(async {
        let long = "x".repeat(40_000);
        let error = json!({"observation": "error", "content": "no", "extras": {"error_id": ""}}).to_string();
        let peer = Peer::start([Reply::ok(&ran(&long)), Reply::ok(&ran(&long)), Reply::ok(&error)]).await;
        let client = peer.client();
        let hidden = run(|run| run.hidden = true);
        assert_eq!(client.execute(&hidden).await.unwrap().content().len(), 40_000);
        assert_eq!(client.execute(&run(|_| {})).await.unwrap().content().len(), 30_047);
        let expected = ErrorObservation { content: "no".into(), error_id: String::new() };
        assert_eq!(client.execute(&hidden).await.unwrap(), Observation::Error(expected));
    })
    .await;
}

#[tokio::test]
async fn a_status_that_is_no_success_keeps_its_detail() {
    within(async {
        let peer =
            Peer::start([Reply::json("500 Internal Server Error", r#"{"detail": "Internal server error: x"}"#)]).await;
        let ExecuteError::Status { status, detail, .. } = peer.client().execute(&run(|_| {})).await.unwrap_err() else {
            panic!("another error")
        };
        assert_eq!((status, detail.as_deref()), (500, Some("Internal server error: x")));
    })
    .await;
}

#[tokio::test]
async fn one_action_at_a_time_is_in_flight_and_other_requests_go_on() {
    within(async {
        let peer = Peer::start([Reply::Silence, Reply::ok(&ran("second"))]).await;
        let client = peer.client();
        let first = tokio::spawn({
            let client = client.clone();
            async move { client.execute(&run(|_| {})).await }
        });
        while peer.lines().is_empty() {
            tokio::task::yield_now().await;
        }
        let event = run(|_| {});
        let mut second = std::pin::pin!(client.execute(&event));
        let waits = futures_util::poll!(&mut second).is_pending();
        assert!(waits && peer.lines().len() == 1);
        // The peer takes one connection at a time, and goes on when the first client has left.
        first.abort();
        assert_eq!(second.await.unwrap().content(), "second");
    })
    .await;
}

#[tokio::test]
async fn the_key_and_other_headers_are_sent_with_every_request_and_kept_out_of_logs() {
    within(async {
        let peer = Peer::start([Reply::ok(r#"{"status": "ok"}"#), Reply::ok("[]")]).await;
        let options = ClientOptions {
            session_key: Some("s3cret".into()),
            headers: vec![("X-API-Key".into(), "k3y".into())],
            ..peer.options()
        };
        let client = ActionExecutionClient::new(&options).unwrap();
        client.alive().await.unwrap();
        client.list_files(Some("a b")).await.unwrap();
        for asked in peer.asked() {
            assert_eq!((asked.header("x-session-api-key"), asked.header("x-api-key")), (Some("s3cret"), Some("k3y")));
        }
        assert_eq!(peer.lines(), ["GET /alive", "POST /list_files"]);
        assert_eq!(peer.asked()[1].json(), json!({"path": "a b"}));
        assert!(!format!("{options:?} {client:?}").contains("s3cret"));
    })
    .await;
}

#[tokio::test]
async fn a_server_may_stand_behind_a_prefix_and_a_url_must_be_one() {
    within(async {
        let peer = Peer::start([Reply::ok("{}")]).await;
        let options = ClientOptions { url: format!("{}/a/b", peer.url), ..peer.options() };
        ActionExecutionClient::new(&options).unwrap().alive().await.unwrap();
        assert_eq!(peer.lines(), ["GET /a/b/alive"]);
        let text = |url: &str| ActionExecutionClient::new(&ClientOptions::new(url)).unwrap_err().to_string();
        assert_eq!(text("http://"), "`http://` is not a URL such as http://127.0.0.1:8000");
        assert_eq!(text("ftp://a/b"), "ftp://a/b: only http and https can be used");
    })
    .await;
}

#[tokio::test]
async fn a_closed_client_opens_again() {
    within(async {
        let peer = Peer::start([Reply::ok("[]"), Reply::ok("[]")]).await;
        let client = peer.client();
        client.close();
        client.close();
        client.list_files(None).await.unwrap();
        client.list_files(None).await.unwrap();
        assert_eq!(peer.asked()[0].json(), json!({}));
    })
    .await;
}

#[tokio::test]
async fn a_token_is_remembered_and_its_absence_is_not() {
    within(async {
        let token = |text: &str| Reply::ok(&json!({ "token": text }).to_string());
        let peer = Peer::start([Reply::ok(r#"{"token": null}"#), token(""), token("never asked")]).await;
        let client = peer.client();
        for _ in 0..4 {
            assert_eq!(client.vscode_token().await.unwrap(), "");
        }
        assert_eq!(peer.lines(), ["GET /vscode/connection_token"; 2]);
        let peer = Peer::start([token("t"), token("never asked")]).await;
        let client = peer.client();
        assert_eq!(
            (client.vscode_token().await.unwrap(), client.vscode_token().await.unwrap()),
            ("t".into(), "t".into())
        );
    })
    .await;
}

#[tokio::test]
async fn mcp_servers_are_sent_sorted_by_name() {
    within(async {
        let peer = Peer::start([Reply::ok(r#"{"detail": "d", "router_error_log": "some"}"#)]).await;
        let entry = |name: &str| McpServerEntry {
            name: name.into(),
            command: "c".into(),
            args: vec!["a".into()],
            env: [("K".into(), "v".into())].into(),
        };
        let answer = peer.client().update_mcp_servers(&[entry("b"), entry("a")]).await.unwrap();
        assert_eq!((answer.detail.as_str(), answer.router_error_log.as_str()), ("d", "some"));
        let one = |name: &str| json!({"name": name, "command": "c", "args": ["a"], "env": {"K": "v"}});
        assert_eq!(peer.asked()[0].json(), json!([one("a"), one("b")]));
    })
    .await;
}

#[tokio::test]
async fn a_copy_is_a_temporary_zip_file_and_an_error_is_none() {
    within(async {
        let refused = Reply::json("500 Internal Server Error", r#"{"detail": "404: File not found"}"#);
        let zip = || Reply::with("application/zip", "200 OK", b"PK zip");
        let peer = Peer::start([zip()]).await;
        let small = ActionExecutionClient::new(&ClientOptions { max_copy: 5, ..peer.options() }).unwrap();
        let error = small.copy_from("/d").await.unwrap_err().to_string();
        assert!(error.ends_with("/download_files?path=%2Fd has more than 5 bytes"), "{error}");
        let peer = Peer::start([zip(), refused]).await;
        let client = peer.client();
        let zip = client.copy_from("/d e").await.unwrap();
        assert!(zip.to_string_lossy().ends_with(".zip"));
        assert_eq!(std::fs::read(&zip).unwrap(), b"PK zip");
        let kept = zip.to_path_buf();
        drop(zip);
        assert!(!kept.exists());
        let error = client.copy_from("/none").await.unwrap_err().to_string();
        assert!(error.ends_with("\nDetails: 404: File not found"), "{error}");
        assert_eq!(peer.lines(), ["GET /download_files?path=%2Fd+e", "GET /download_files?path=%2Fnone"]);
    })
    .await;
}
