//! The client with a real server.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use gloveport_client::{ActionExecutionClient, ClientError, ClientOptions, ExecEvent};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, ExecuteError, RunAction,
    exec::{ExecEnd, ExecRequest, ExecState, Session},
};
use gloveport_server::{ServerOptions, SessionKey};
use gloveport_testing::{Server, within};

fn options(key: Option<&str>) -> ServerOptions {
    ServerOptions { session_key: key.map(SessionKey::new), ..ServerOptions::default() }
}

fn client(server: &Server, key: Option<&str>) -> ActionExecutionClient {
    ActionExecutionClient::new(&ClientOptions::new(server.address.to_string()).with_key(key)).unwrap()
}

fn run(command: &str) -> ActionEvent {
    ActionEvent::from(Action::Run(RunAction::new(command)))
}

fn exec(command: &str) -> ExecRequest {
    ExecRequest { id: None, command: command.into(), session: Session::Main, cwd: None, env: [].into(), timeout: None }
}

#[tokio::test]
async fn actions_are_executed_and_the_caller_does_not_see_where() {
    within(async {
        let server = Server::start(options(None)).await;
        let client = client(&server, None);
        client.alive().await.unwrap();
        let here: &dyn ActionExecutor = &*server.executor;
        let there: &dyn ActionExecutor = &client;
        for executor in [here, there] {
            let observation = executor.execute(&run("cd /usr; echo hi; false")).await.unwrap();
            let value = gloveport_protocol::ObservationEvent::from(observation).to_value();
            assert_eq!(value["content"], "hi");
            assert_eq!(value["extras"]["metadata"]["exit_code"], 1);
            assert_eq!(value["extras"]["metadata"]["working_dir"], "/usr");
        }
        let info = client.server_info().await.unwrap();
        assert!(info.uptime > 0.0 && info.resources.memory.rss > 0);
        std::fs::write(server.directory.path().join("b.txt"), "").unwrap();
        std::fs::create_dir(server.directory.path().join("d")).unwrap();
        assert_eq!(client.list_files(None).await.unwrap(), ["d/", "b.txt"]);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_wrong_key_is_told() {
    within(async {
        let server = Server::start(options(Some("s3cret"))).await;
        client(&server, Some("wrong")).alive().await.unwrap();
        let error = client(&server, Some("wrong")).execute(&run("true")).await.unwrap_err();
        let ExecuteError::Status { status, detail, .. } = error else { panic!("another error") };
        assert_eq!((status, detail.as_deref()), (403, Some("Invalid API Key")));
        client(&server, Some("s3cret")).execute(&run("true")).await.unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_starts_later_is_waited_for() {
    within(async {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let client = ActionExecutionClient::new(&ClientOptions::new(&address)).unwrap();
        assert!(client.alive().await.is_err());
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.wait_until_alive(Duration::from_secs(30)).await }
        });
        let server = Server::start_at(&address, options(None), |tools| tools).await;
        waiting.await.unwrap().unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_native_command_is_followed_typed_into_and_interrupted() {
    within(async {
        let server = Server::start(options(None)).await;
        let client = client(&server, None);
        let mut stream = client.exec(exec("echo first; read -r line; echo \"got $line\"; sleep 1000")).await.unwrap();
        let id = stream.id().to_owned();
        let mut output = Vec::new();
        let mut typed = false;
        let end = loop {
            match stream.next().await.unwrap().unwrap() {
                ExecEvent::Output { bytes, offset: _ } => {
                    output.extend_from_slice(&bytes);
                    if output.ends_with(b"got typed\n") {
                        client.exec_interrupt(&id).await.unwrap();
                    }
                }
                ExecEvent::Waiting(true) if !typed => {
                    typed = true;
                    client.exec_input(&id, "typed").await.unwrap();
                }
                ExecEvent::Waiting(_) | ExecEvent::WaitingForSecret | ExecEvent::Gap { .. } => {}
                ExecEvent::Ended(end) => break end,
            }
        };
        assert_eq!(end.exit_code, Some(130));
        assert!(output.starts_with(b"first\ngot typed\n"), "{output:?}");
        let status = client.exec_status(&id).await.unwrap();
        assert!(matches!(status.state, ExecState::Ended(_)), "{status:?}");
        assert_eq!(client.execs().await.unwrap(), [status]);
        assert_eq!(client.exec_status("a/../b c").await.unwrap_err().status().unwrap(), 404);
        server.stop().await;
    })
    .await;
}

/// The end of a command that was started without being followed.
async fn end_of(client: &ActionExecutionClient, id: &str) -> ExecEnd {
    loop {
        if let ExecState::Ended(end) = client.exec_status(id).await.unwrap().state {
            return end;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_is_given_up_before_its_turn_never_runs() {
    within(async {
        let server = Server::start(options(None)).await;
        let client = client(&server, None);
        let named = |id: &str, command: &str| ExecRequest { id: Some(id.to_owned()), ..exec(command) };
        let mut first = client.exec(named("first", "read -r line; echo \"got $line\"")).await.unwrap();
        while !matches!(first.next().await.unwrap().unwrap(), ExecEvent::Waiting(true)) {}
        let late = ExecRequest { timeout: Some(0.2), ..named("late", "echo late >> ran") };
        let late = client.exec(late).await.unwrap();
        let _cancelled = client.exec(named("cancelled", "echo cancelled >> ran")).await.unwrap();
        assert!(matches!(client.exec_status("cancelled").await.unwrap().state, ExecState::Queued));
        client.exec_cancel("cancelled").await.unwrap();
        for (id, reason, message) in [
            (late.id(), "timed_out", "the time limit passed: it never began, because another command ran"),
            ("cancelled", "cancelled", "it was cancelled: it never began, because another command ran"),
        ] {
            let end = end_of(&client, id).await;
            assert_eq!((end.exit_code, &*end.reason, end.message.as_deref()), (None, reason, Some(message)));
        }
        client.exec_input("first", "typed").await.unwrap();
        assert_eq!(end_of(&client, "first").await.exit_code, Some(0));
        // What has ended stays as it is.
        client.exec_cancel("first").await.unwrap();
        assert_eq!(end_of(&client, "first").await.exit_code, Some(0));
        assert_eq!(client.exec_cancel("unknown").await.unwrap_err().status().unwrap(), 404);
        let after =
            client.exec(named("after", "test ! -e ran")).await.unwrap().finish(|_| Ok::<_, ClientError>(())).await;
        assert_eq!(after.unwrap().exit_code, Some(0), "a command that was given up ran later");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_command_that_is_given_up_is_interrupted_then_quit_and_the_session_goes_on() {
    within(async {
        let server = Server::start(options(None)).await;
        let client = client(&server, None);
        let stubborn =
            "python3 -c 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(1000)'";
        // The first interrupt reaches a program of the loop that goes on with it, as one does that comes between two programs.
        let repeated = "rm -f seen; while :; do \
            bash -c 'trap \"touch seen; exit\" INT; test ! -e seen || trap - INT; sleep 1000 & wait'; done";
        for (number, command) in ["sleep 1000", stubborn, "sleep 1000; sleep 1000", repeated].into_iter().enumerate() {
            let request = ExecRequest { timeout: Some(0.5), ..exec(command) };
            let late = client.exec(request).await.unwrap().finish(|_| Ok::<_, ClientError>(())).await.unwrap();
            let found = (late.exit_code, &*late.reason, late.message.as_deref());
            assert_eq!(found, (None, "timed_out", Some("the time limit passed: it was interrupted")), "{command}");
            let id = format!("cancelled-{number}");
            let request = ExecRequest { id: Some(id.clone()), ..exec(&format!("echo begins; {command}")) };
            let mut stream = client.exec(request).await.unwrap();
            while !matches!(stream.next().await.unwrap().unwrap(), ExecEvent::Output { .. }) {}
            client.exec_cancel(&id).await.unwrap();
            let end = end_of(&client, &id).await;
            assert_eq!((end.exit_code, &*end.reason), (None, "cancelled"), "{command}: {end:?}");
            let next = client.exec(exec("true")).await.unwrap().finish(|_| Ok::<_, ClientError>(())).await.unwrap();
            assert_eq!(next.exit_code, Some(0), "{command}");
        }
        server.stop().await;
    })
    .await;
}
