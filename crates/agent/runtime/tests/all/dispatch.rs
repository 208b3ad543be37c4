//! Actions of the stream are executed and answered (runtime-interface 4, 5, 7).
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::sync::{Arc, Mutex};

use crate::support::{History, Sandbox, Scripted, succeed, within};
use gloveport_config::Config;
use gloveport_protocol::{
    Action, ActionEvent, BrowseAction, ConfirmationState, EditAction, Event, EventSource, ExecuteError, FileEditSource,
    FinishAction, MessageAction, Observation, ReadAction, RunAction, TaskTrackingAction, ThinkAction,
};
use gloveport_runtime::{Runtime, RuntimeError, RuntimeOptions, StatusLevel};
use serde_json::json;

type Statuses = Arc<Mutex<Vec<String>>>;

fn options(sandbox: &Scripted, history: &History) -> (RuntimeOptions, Statuses) {
    let statuses = Statuses::default();
    let told = Arc::clone(&statuses);
    let options = RuntimeOptions {
        attach_to_existing: true,
        status_callback: Some(Arc::new(move |level: StatusLevel, status, text| {
            told.lock().unwrap().push(format!("{} {status} {text}", level.as_str()));
        })),
        ..RuntimeOptions::new(Config::default(), sandbox.clone()).with_stream(&history.stream)
    };
    (options, statuses)
}

fn run(command: &str) -> Action {
    Action::Run(RunAction::new(command))
}

#[tokio::test]
async fn an_action_of_the_stream_is_executed_and_its_observation_follows() {
    let (sandbox, history) = (Sandbox::start().await, History::new().await);
    let runtime = Runtime::new(sandbox.options().with_stream(&history.stream)).unwrap();
    let mut action = ActionEvent::from(run("echo hello; exit_code() { return 3; }; exit_code"));
    action.tool_call_metadata = Some(json!({"tool_call_id": "x"}));
    // Before it is connected, actions wait.
    let added = history.stream.add(action, EventSource::User).await.unwrap();
    within(runtime.connect()).await.unwrap();
    let observation = history.observation().await;
    let Event::Observation(event) = &*observation else { unreachable!() };
    assert_eq!((event.cause, event.source), (added.id(), Some(EventSource::User)));
    assert_eq!(event.tool_call_metadata, Some(json!({"tool_call_id": "x"})));
    let Observation::Run(run) = &event.observation else { unreachable!() };
    assert_eq!((run.content.trim(), run.metadata.exit_code), ("hello", 3));
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn actions_get_the_configured_limit_and_do_not_block() {
    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    let runtime = Runtime::new(options(&sandbox, &history).0).unwrap();
    within(runtime.connect()).await.unwrap();
    let blocking = Action::Run(RunAction { blocking: true, ..RunAction::new("a") });
    history.stream.add(blocking.clone(), EventSource::Agent).await.unwrap();
    history.observation().await;
    let limited = ActionEvent { timeout: Some(7.0), ..blocking.into() };
    history.stream.add(limited, EventSource::Agent).await.unwrap();
    history.observation().await;
    let seen: Vec<_> = sandbox
        .asked()
        .into_iter()
        .map(|event| (event.timeout, matches!(event.action, Action::Run(RunAction { blocking: true, .. }))))
        .collect();
    assert_eq!(seen, [(Some(120.0), false), (Some(7.0), true)]);
}

#[tokio::test]
async fn the_decision_table_holds() {
    let (sandbox, history) = (
        Scripted::new(|event| match &event.action {
            Action::Browse(_) => Err(ExecuteError::NotRunnable { kind: "browse" }),
            _ => Ok(succeed(event)),
        }),
        History::new().await,
    );
    let runtime = Runtime::new(options(&sandbox, &history).0).unwrap();
    within(runtime.connect()).await.unwrap();
    let state = |action: Action, state| {
        let mut event = ActionEvent::from(action);
        event.set_confirmation(state);
        event
    };
    let (awaiting, rejected) = (ConfirmationState::AwaitingConfirmation, ConfirmationState::Rejected);
    let refused = "Action has been rejected by the user! Waiting for further user input.";
    let read = || Action::Read(ReadAction::new("f"));
    for (event, kind, content) in [
        (Action::Think(ThinkAction::default()).into(), "think", "Your thought has been logged."),
        (Action::Null.into(), "null", ""),
        (Action::Finish(FinishAction::default()).into(), "null", ""),
        (Action::Message(MessageAction::new("hello")).into(), "null", ""),
        (state(run("a"), awaiting), "null", ""),
        (state(read(), awaiting), "null", ""),
        (state(run("a"), rejected), "user_rejected", refused),
        (state(read(), rejected), "user_rejected", refused),
        (
            Action::Browse(BrowseAction::new("http://x")).into(),
            "error",
            "Action browse is not supported in the current runtime.",
        ),
        (
            Action::TaskTracking(TaskTrackingAction { command: "shout".to_owned(), ..TaskTrackingAction::default() })
                .into(),
            "task_tracking",
            "Unknown command: shout",
        ),
        (
            Action::Edit(EditAction { impl_source: FileEditSource::LlmBasedEdit, ..EditAction::new("f") }).into(),
            "error",
            "Edits by a model are off: set `enable_llm_editor = true` in the section [agent] of the configuration, \
             and name the model in [llm.draft_editor].",
        ),
        (run("a").into(), "run", ""),
    ] {
        let event: ActionEvent = event;
        let observation = within(runtime.run_action(&event)).await.unwrap();
        assert_eq!((observation.kind(), observation.content()), (kind, content), "{event:?}");
    }
}

#[tokio::test]
async fn the_list_of_tasks_is_kept_beside_the_history() {
    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    let (mut options, _) = options(&sandbox, &history);
    options.sid = "s".to_owned();
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let track = async |command: &str, tasks| {
        let action =
            TaskTrackingAction { command: command.to_owned(), task_list: tasks, ..TaskTrackingAction::default() };
        within(runtime.run_action(&Action::TaskTracking(action).into())).await.unwrap().content().to_owned()
    };
    assert_eq!(track("view", vec![]).await, "No task list found. Use the \"plan\" command to create one.");
    let tasks = vec![json!({"id": "1", "title": "one", "status": "done", "notes": "n"})];
    let stored = "Task list has been updated with 1 items. Stored in session directory: sessions/s/TASKS.md";
    assert_eq!(track("plan", tasks).await, stored);
    assert_eq!(track("view", vec![]).await, "# Task List\n\n1. ✅ one\nn\n");
    let file = history.directory.path().join("sessions/s/TASKS.md");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "# Task List\n\n1. ✅ one\nn\n");
}

#[tokio::test]
async fn failures_are_statuses_and_never_observations() {
    let failures = [
        (
            ExecuteError::Unreachable("no route".to_owned()),
            "error STATUS$ERROR_RUNTIME_DISCONNECTED ConnectError: no route",
        ),
        (ExecuteError::ConnectionLost("cut".to_owned()), "error STATUS$ERROR_RUNTIME_DISCONNECTED ReadError: cut"),
        (
            ExecuteError::Disconnected("gone".to_owned()),
            "error STATUS$ERROR_RUNTIME_DISCONNECTED AgentRuntimeDisconnectedError: gone",
        ),
        (
            ExecuteError::Timeout { limit: std::time::Duration::from_secs(2) },
            "error STATUS$ERROR AgentRuntimeTimeoutError: Runtime failed to return execute_action before the \
             requested timeout of 2.0s",
        ),
        (
            ExecuteError::RetriesExhausted {
                attempts: 3,
                last: Box::new(ExecuteError::ConnectionLost("cut".to_owned())),
            },
            "error STATUS$ERROR RetryError: gave up after 3 attempts: cut",
        ),
        (
            ExecuteError::Status { status: 500, detail: None, text: "500: x".to_owned() },
            "error STATUS$ERROR RequestHTTPError: 500: x",
        ),
    ];
    let (errors, expected): (Vec<_>, Vec<_>) = failures.into_iter().unzip();
    let answers = Mutex::new(errors.into_iter());
    let sandbox = Scripted::new(move |event| match answers.lock().unwrap().next() {
        Some(error) => Err(error),
        None => Ok(succeed(event)),
    });
    let history = History::new().await;
    let (options, statuses) = options(&sandbox, &history);
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    for _ in 0..=expected.len() {
        history.stream.add(run("a"), EventSource::Agent).await.unwrap();
    }
    // Only the last one is answered.
    let observation = history.observation().await;
    assert_eq!(observation.cause(), Some(i64::try_from(expected.len()).unwrap()));
    assert_eq!(*statuses.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_second_session_of_the_same_name_is_refused() {
    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    let runtime = Runtime::new(options(&sandbox, &history).0).unwrap();
    assert!(matches!(Runtime::new(options(&sandbox, &history).0), Err(RuntimeError::Subscribe(_))));
    runtime.close().await;
    Runtime::new(options(&sandbox, &history).0).unwrap();
}

#[tokio::test]
async fn closing_ends_what_waits_and_happens_once() {
    let (sandbox, history) = (Sandbox::start().await, History::new().await);
    let runtime = Runtime::new(sandbox.options().with_stream(&history.stream)).unwrap();
    within(runtime.connect()).await.unwrap();
    history.stream.add(run("sleep 1000"), EventSource::Agent).await.unwrap();
    let other = runtime.clone();
    let waiting = tokio::spawn(async move { other.run_action(&run("sleep 1000").into()).await });
    history.next().await;
    let started = std::time::Instant::now();
    within(futures_util::future::join(runtime.close(), runtime.close())).await;
    assert!(matches!(within(waiting).await.unwrap(), Err(RuntimeError::Closed)));
    assert!(matches!(runtime.list_files(None).await, Err(RuntimeError::Closed)));
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    sandbox.stop().await;
}

#[tokio::test]
async fn sessions_that_are_dropped_or_left_open_give_their_sandbox_back() {
    let (dropped, left) = (Scripted::obedient(), Scripted::obedient());
    drop(Runtime::new(RuntimeOptions::new(Config::default(), dropped.clone())).unwrap());
    let runtime = Runtime::new(RuntimeOptions::new(Config::default(), left.clone())).unwrap();
    assert_eq!(gloveport_runtime::close_all(crate::support::LIMIT).await, 0);
    assert_eq!(left.closed(), 1);
    runtime.close().await;
    assert_eq!(left.closed(), 1);
    within(async {
        while dropped.closed() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
