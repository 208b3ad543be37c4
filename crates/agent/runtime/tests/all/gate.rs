//! Risky actions wait for the user or are refused, whichever way they come (security 4).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use crate::support::{History, Scripted, within};
use gloveport_config::Config;
use gloveport_protocol::{
    Action, ActionEvent, ChangeAgentStateAction, ConfirmationState, EditAction, Event, EventSource, Observation,
    ReadAction, RunAction, SecurityRisk, WriteAction,
};
use gloveport_runtime::{Runtime, RuntimeOptions, Submitted};

async fn session(analyzer: &str, confirmation: bool) -> (Scripted, History, Runtime) {
    let (sandbox, history) = (Scripted::obedient(), History::new().await);
    let mut config = Config::default();
    config.security.security_analyzer = (!analyzer.is_empty()).then(|| analyzer.to_owned());
    config.security.confirmation_mode = confirmation;
    let options = RuntimeOptions {
        attach_to_existing: true,
        ..RuntimeOptions::new(config, sandbox.clone()).with_stream(&history.stream)
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    (sandbox, history, runtime)
}

fn run(command: &str, risk: SecurityRisk) -> Action {
    Action::Run(RunAction { security_risk: risk, thought: "because".to_owned(), ..RunAction::new(command) })
}

async fn awaiting(runtime: &Runtime, action: Action) -> i64 {
    match runtime.submit(action, EventSource::Agent).await.unwrap() {
        Submitted::Awaiting { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_an_analyzer_everything_is_asked_for_and_runs_when_it_is_let_pass() {
    let (sandbox, history, runtime) = session("", true).await;
    let edit = || Action::Edit(EditAction { command: "view".to_owned(), ..EditAction::new("/f") });
    for action in [run("a", SecurityRisk::Low), Action::Read(ReadAction::new("/f")), edit()] {
        let kind = action.kind();
        let id = awaiting(&runtime, action).await;
        let published = history.next().await;
        let Event::Action(event) = &*published else { unreachable!() };
        assert_eq!((event.id, event.confirmation()), (Some(id), ConfirmationState::AwaitingConfirmation), "{kind}");
        let asked = history.observation().await;
        assert_eq!((asked.kind(), asked.cause()), ("agent_state_changed", Some(id)));
        assert_eq!(sandbox.asked(), []);

        runtime.confirm(id).await.unwrap();
        let again = history.next().await;
        let Event::Action(event) = &*again else { unreachable!() };
        assert_eq!((event.confirmation(), event.action.thought()), (ConfirmationState::Confirmed, ""));
        assert!(event.id > Some(id));
        assert_eq!(history.observation().await.cause(), event.id);
        assert_eq!(sandbox.asked().len(), 1);
        sandbox.forget();
        runtime.confirm(id).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_rejected_action_is_answered_and_not_executed() {
    let (sandbox, history, runtime) = session("llm", true).await;
    let id = awaiting(&runtime, run("a", SecurityRisk::High)).await;
    runtime.reject(id).await.unwrap();
    let observation = loop {
        let event = history.observation().await;
        if event.kind() == "user_rejected" {
            break event;
        }
    };
    let Event::Observation(event) = &*observation else { unreachable!() };
    let expected = "Action has been rejected by the user! Waiting for further user input.";
    assert_eq!(event.observation.content(), expected);
    assert_eq!(sandbox.asked(), []);
}

#[tokio::test]
async fn a_rejection_names_the_rules_for_which_the_user_was_asked() {
    let (sandbox, history, runtime) = session("rules", true).await;
    let submitted = runtime.submit(run("rm -rf /", SecurityRisk::Low), EventSource::Agent).await.unwrap();
    let Submitted::Awaiting { id, assessment } = submitted else { panic!("{submitted:?}") };
    assert_eq!(history.observation().await.kind(), "agent_state_changed");
    runtime.reject(id).await.unwrap();
    let observation = history.observation().await;
    let Event::Observation(event) = &*observation else { unreachable!() };
    let rules: Vec<_> = assessment.rules.iter().map(|found| found.rule).collect();
    assert!(!rules.is_empty());
    let expected = format!(
        "Action has been rejected by the user! Waiting for further user input.\nThe user was asked because of: {}.",
        rules.join(", ")
    );
    assert_eq!((event.observation.kind(), event.observation.content()), ("user_rejected", expected.as_str()));
    assert!(observation.cause() > Some(id), "it answers the second publication");
    assert_eq!(sandbox.asked(), []);
}

#[tokio::test]
async fn harmless_and_unasked_actions_run_at_once() {
    let (_sandbox, history, runtime) = session("llm", true).await;
    for action in [run("a", SecurityRisk::Low), run("b", SecurityRisk::Medium), run("c", SecurityRisk::Unknown)] {
        let submitted = runtime.submit(action, EventSource::Agent).await.unwrap();
        assert!(matches!(submitted, Submitted::Accepted { .. }), "{submitted:?}");
        assert_eq!(history.observation().await.kind(), "run");
    }
    // What the user does is not asked about.
    runtime.submit(run("d", SecurityRisk::High), EventSource::User).await.unwrap();
    assert_eq!(history.observation().await.kind(), "run");
}

#[tokio::test]
async fn an_action_that_goes_past_the_gate_is_stopped_at_its_turn() {
    let (sandbox, history, runtime) = session("llm", true).await;
    let added = history.stream.add(run("a", SecurityRisk::High), EventSource::Agent).await.unwrap();
    let asked = history.observation().await;
    assert_eq!((asked.kind(), asked.cause()), ("agent_state_changed", added.id()));
    assert_eq!(sandbox.asked(), []);
    // Only the user decides, not the agent.
    let decision = || Action::ChangeAgentState(ChangeAgentStateAction::new("user_confirmed"));
    history.stream.add(decision(), EventSource::Agent).await.unwrap();
    history.stream.add(run("b", SecurityRisk::Low), EventSource::Agent).await.unwrap();
    assert_eq!(history.observation().await.kind(), "run");
    assert_eq!(sandbox.commands(), ["b"]);
    history.stream.add(decision(), EventSource::User).await.unwrap();
    assert_eq!(history.observation().await.kind(), "run");
    assert_eq!(sandbox.commands(), ["b", "a"]);
    drop(runtime);
}

#[tokio::test]
async fn an_action_that_is_refused_is_recorded_so_that_no_replay_of_the_history_executes_it() {
    let (sandbox, history, runtime) = session("rules", false).await;
    let write = Action::Write(WriteAction::new("/etc/passwd", "root::0:0::/:/bin/sh\n"));
    for action in [run("rm -rf /", SecurityRisk::Low), write] {
        let kind = action.kind();
        let submitted = runtime.submit(action, EventSource::Agent).await.unwrap();
        let Submitted::Refused { id, .. } = submitted else { panic!("{kind}: {submitted:?}") };
        let stored = history.stream.store().event(id).await.unwrap();
        let Event::Action(stored) = stored else { panic!("{stored:?}") };
        assert_eq!(stored.confirmation(), ConfirmationState::Rejected, "{kind}");
        // As the file is read again, and executed once more without its number.
        let read = Event::from_value(Event::from(stored).to_value()).unwrap();
        let Event::Action(read) = read else { panic!("{read:?}") };
        let again = ActionEvent { id: None, ..read };
        let performed = runtime.perform(again, EventSource::Agent).await.unwrap();
        assert_eq!(performed.kind(), "user_rejected", "{kind}");
    }
    assert_eq!(sandbox.asked(), []);
}

#[tokio::test]
async fn rules_refuse_what_is_destructive_and_name_themselves() {
    let (sandbox, history, runtime) = session("rules", false).await;
    let submitted = runtime.submit(run("rm -rf / --no-preserve-root", SecurityRisk::Low), EventSource::Agent).await;
    let Submitted::Refused { id, assessment } = submitted.unwrap() else { panic!("not refused") };
    let observation = history.observation().await;
    assert_eq!((observation.kind(), observation.cause()), ("error", Some(id)));
    let Event::Observation(event) = &*observation else { unreachable!() };
    let Observation::Error(error) = &event.observation else { unreachable!() };
    assert!(!assessment.rules.is_empty());
    for rule in &assessment.rules {
        assert!(error.content.contains(rule.rule), "{}", error.content);
    }
    // Also past the gate.
    history.stream.add(run("rm -rf ~", SecurityRisk::Low), EventSource::Agent).await.unwrap();
    assert_eq!(history.observation().await.kind(), "error");
    runtime.submit(run("rm -rf build", SecurityRisk::Low), EventSource::Agent).await.unwrap();
    assert_eq!(history.observation().await.kind(), "run");
    assert_eq!(sandbox.commands(), ["rm -rf build"]);
}
