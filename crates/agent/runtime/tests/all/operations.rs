//! Commands with output as it comes are operations: rated, asked about, and written down without secrets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use crate::support::{History, Sandbox, Scripted, within};
use gloveport_event_stream::{EventStream, LocalStore, Search, SharedHistory};
use gloveport_protocol::{
    Action, Event, EventSource, Observation, Secret,
    exec::{ExecRequest, Session},
};
use gloveport_runtime::{
    Answer, Approver, Executed, InProcess, Nobody, Question, RefusedBy, Runtime, RuntimeError, RuntimeOptions,
};

/// Rated as high, and harmless: it never begins.
const RISKY: &str = "false && git push --force";

fn request(command: &str) -> ExecRequest {
    ExecRequest {
        id: None,
        command: command.to_owned(),
        session: Session::Main,
        cwd: None,
        env: BTreeMap::new(),
        timeout: None,
    }
}

async fn connected(mut options: RuntimeOptions, history: &History, analyzer: &str, confirmation: bool) -> Runtime {
    options.config.security.security_analyzer = Some(analyzer.to_owned());
    options.config.security.confirmation_mode = confirmation;
    options.attach_to_existing = true;
    let runtime = Runtime::new(options.with_stream(&history.stream)).unwrap();
    within(runtime.connect()).await.unwrap();
    runtime
}

/// Runs a command of the agent, and gives what became of it and what it wrote.
async fn exec(
    runtime: &Runtime,
    request: ExecRequest,
    approver: impl Approver + 'static,
) -> (Result<Executed, RuntimeError>, String) {
    let mut written = Vec::new();
    let mut take = |bytes: &[u8]| written.extend_from_slice(bytes);
    let executed = within(runtime.exec(request, EventSource::Agent, Arc::new(approver), &mut take)).await;
    (executed, String::from_utf8(written).unwrap().replace("\r\n", "\n"))
}

fn nobody_is_asked(question: Question<'_>) -> Answer {
    panic!("nobody is to be asked about {question:?}")
}

/// The events as a reader sees them: kind, cause, and state or content.
async fn told(stream: &EventStream) -> Vec<(String, Option<i64>, String)> {
    let mut found = stream.store().search(Search::default());
    let mut told = Vec::new();
    while let Some(event) = found.next().await.unwrap() {
        let what = match &event {
            Event::Action(action) => action.confirmation().as_str().to_owned(),
            Event::Observation(event) => match &event.observation {
                Observation::AgentStateChanged(state) => state.agent_state.clone(),
                other => other.content().trim_end().to_owned(),
            },
        };
        told.push((event.kind().to_owned(), event.cause(), what));
    }
    told
}

fn rows(rows: &[(&str, Option<i64>, &str)]) -> Vec<(String, Option<i64>, String)> {
    rows.iter().map(|(kind, cause, what)| ((*kind).to_owned(), *cause, (*what).to_owned())).collect()
}

#[tokio::test]
async fn a_confirmed_command_runs_with_its_output_as_it_comes_and_the_history_has_question_and_answer() {
    let sandbox = Sandbox::start().await;
    let history = History::new().await;
    let runtime = connected(sandbox.options(), &history, "rules", true).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let approve = move |question: Question<'_>| {
        let rules = question.assessment.rules.iter().map(|found| found.rule).collect::<Vec<_>>();
        seen.lock().unwrap().push((question.action.id, rules));
        Answer::Confirm
    };
    let (executed, written) = exec(&runtime, request(&format!("{RISKY}; echo ran; (exit 3)")), approve).await;
    let Executed::Observed(event) = executed.unwrap() else { panic!("refused") };
    let Observation::Run(run) = &event.observation else { panic!("{event:?}") };
    assert_eq!((run.content.as_str(), run.metadata.exit_code, event.cause), ("ran", 3, Some(2)));
    assert_eq!(written, "ran\n");
    assert_eq!(*asked.lock().unwrap(), [(Some(0), vec!["force-push"])]);
    let expected = rows(&[
        ("run", None, "awaiting_confirmation"),
        ("agent_state_changed", Some(0), "awaiting_user_confirmation"),
        ("run", None, "confirmed"),
        ("run", Some(2), "ran"),
    ]);
    assert_eq!(told(&history.stream).await, expected);
    // What is harmless is not asked about, and goes through the same shell.
    let (executed, written) = exec(&runtime, request("echo $?"), nobody_is_asked).await;
    assert!(matches!(executed.unwrap(), Executed::Observed(_)));
    assert_eq!(written, "3\n");
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn a_command_that_deletes_everything_never_begins_when_it_is_rejected_or_nobody_can_be_asked() {
    for (attended, confirmation, by, answer) in [
        (true, true, RefusedBy::Approver, "user_rejected"),
        (false, true, RefusedBy::NobodyToAsk, "error"),
        (true, false, RefusedBy::Gate, "error"),
    ] {
        // It executes nothing, whatever it is told.
        let (sandbox, history) = (Scripted::obedient(), History::new().await);
        let options = RuntimeOptions::new(gloveport_config::Config::default(), sandbox.clone());
        let runtime = connected(options, &history, "rules", confirmation).await;
        let (executed, written) = if attended {
            exec(&runtime, request("rm -rf /"), |_: Question<'_>| Answer::Reject).await
        } else {
            exec(&runtime, request("rm -rf /"), Nobody).await
        };
        let Executed::Refused(refused) = executed.unwrap() else { panic!("executed") };
        assert_eq!(refused.by, by);
        assert_eq!(refused.assessment.rules[0].rule, "delete-root");
        assert_eq!((written.as_str(), sandbox.asked()), ("", vec![]));
        let told = told(&history.stream).await;
        let (last, before) = (&told[told.len() - 1], &told[told.len() - 2]);
        assert_eq!(last.0, answer);
        assert!(last.2.contains("delete-root"), "{last:?}");
        assert_eq!((before.0.as_str(), before.2.as_str()), ("run", "rejected"));
        assert_eq!(told.len(), if by == RefusedBy::Approver { 4 } else { 2 });
        // Nor does a replay of the history.
        let mut events = history.stream.store().search(Search::default());
        while let Some(event) = events.next().await.unwrap() {
            if let Event::Action(action) = event {
                runtime.run_action(&action).await.unwrap();
            }
        }
        assert_eq!(sandbox.asked(), []);
    }
}

#[tokio::test]
async fn secrets_are_in_neither_command_nor_output_of_the_history() {
    let sandbox = Sandbox::start().await;
    let history = History::new().await;
    let runtime = connected(sandbox.options(), &history, "", false).await;
    history.stream.update_secrets([("TOKEN".to_owned(), Secret::new("hunter2hunter2"))].into());
    let (executed, written) = exec(&runtime, request("echo hunter2hunter2"), nobody_is_asked).await;
    assert!(matches!(executed.unwrap(), Executed::Observed(_)));
    assert_eq!(written, "hunter2hunter2\n");
    let mut found = history.stream.store().search(Search::default());
    let mut texts = Vec::new();
    while let Some(event) = found.next().await.unwrap() {
        texts.push(event.to_value().to_string());
    }
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.contains("<secret_hidden>") && !text.contains("hunter2")), "{texts:?}");
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn the_tools_of_this_process_stream_and_foreign_servers_execute_an_action_instead() {
    let (home, history) = (tempfile::tempdir().unwrap(), History::new().await);
    let options = RuntimeOptions::new(gloveport_config::Config::default(), InProcess::in_directory(home.path()));
    let runtime = connected(options, &history, "", false).await;
    let (executed, written) = exec(&runtime, request("printf 'a\\nb'; (exit 4)"), nobody_is_asked).await;
    let Executed::Observed(event) = executed.unwrap() else { panic!("refused") };
    let Observation::Run(run) = &event.observation else { panic!("{event:?}") };
    assert_eq!((run.content.as_str(), run.metadata.exit_code, written.as_str()), ("a\nb", 4, "a\nb"));
    runtime.close().await;

    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    let options = RuntimeOptions::new(gloveport_config::Config::default(), sandbox.clone());
    let runtime = connected(options, &history, "", false).await;
    let (executed, _) = exec(&runtime, request("make"), nobody_is_asked).await;
    assert!(matches!(executed.unwrap(), Executed::Observed(_)));
    let asked = sandbox.asked();
    let [Action::Run(run)] = asked.iter().map(|event| &event.action).collect::<Vec<_>>()[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((run.command.as_str(), run.blocking, asked[0].timeout), ("make", true, Some(120.0)));
    // It has one shell, and no way to say where a command begins.
    let (executed, _) = exec(&runtime, ExecRequest { cwd: Some("/".into()), ..request("make") }, nobody_is_asked).await;
    assert!(matches!(executed.unwrap_err(), RuntimeError::OnlyActions));
    let last = told(&history.stream).await.pop().unwrap();
    assert_eq!((last.0.as_str(), last.1), ("run", Some(2)));
    assert_eq!(sandbox.commands(), ["make"]);
}

#[tokio::test]
async fn writers_of_a_shared_history_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(directory.path(), None).unwrap());
    let history = SharedHistory::new(store, "s");
    assert!(!history.exists().await.unwrap());
    let add = |number: usize| {
        let history = history.clone();
        let action = Action::Run(gloveport_protocol::RunAction::new(format!("echo {number} hunter2hunter2")));
        let secrets = BTreeMap::from([("TOKEN".to_owned(), Secret::new("hunter2hunter2"))]);
        async move { history.add(gloveport_protocol::ActionEvent::from(action), EventSource::User, secrets).await }
    };
    let added = within(futures_util::future::join_all((0..8).map(add))).await;
    let mut ids: Vec<_> = added.into_iter().map(|added| added.unwrap().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..8).collect::<Vec<i64>>());
    let mut found = history.events().search(Search::default());
    let mut count = 0;
    while let Some(event) = found.next().await.unwrap() {
        assert!(event.to_value().to_string().contains("<secret_hidden>"));
        count += 1;
    }
    assert_eq!(count, 8);
}
