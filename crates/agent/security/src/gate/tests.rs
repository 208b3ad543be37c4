use gloveport_protocol::{
    BoxFuture, BrowseAction, BrowseInteractiveAction, CallToolMcpAction, EditAction, EventSource, MessageAction,
    Observation, ReadAction, RunAction, RunIpythonAction, WriteAction,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    analyzer::{NoHistory, RuleMatch},
    analyzers::{Llm, UnknownAnalyzer},
    error::AnalyzerError,
};

/// An analyzer that always says the same, and says whether it can refuse.
struct Fixed(SecurityRisk, Unattended);

impl SecurityAnalyzer for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn assess<'a>(
        &'a self,
        _action: &'a ActionEvent,
        _history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        Box::pin(async { Ok(Assessment::of(self.0)) })
    }

    fn unattended(&self) -> Unattended {
        self.1
    }
}

fn gate(confirmation_mode: bool, cli_mode: bool, analyzer: Option<Arc<dyn SecurityAnalyzer>>) -> Gate {
    Gate::new(GateOptions { confirmation_mode, cli_mode, analyzer })
}

fn fixed(risk: SecurityRisk, unattended: Unattended) -> Arc<dyn SecurityAnalyzer> {
    Arc::new(Fixed(risk, unattended))
}

fn asked_kinds() -> Vec<Action> {
    vec![
        Action::Run(RunAction::new("ls")),
        Action::RunIpython(RunIpythonAction::new("1")),
        Action::BrowseInteractive(BrowseInteractiveAction::new("noop()")),
        Action::Edit(EditAction::new("/workspace/a")),
        Action::Read(ReadAction::new("/workspace/a")),
    ]
}

fn other_kinds() -> Vec<Action> {
    vec![
        Action::Write(WriteAction::new("/workspace/a", "")),
        Action::Browse(BrowseAction::new("http://localhost")),
        Action::CallToolMcp(CallToolMcpAction::new("tool")),
    ]
}

/// What became of an action: its verdict in one letter, its risk, and its state.
async fn outcome(gate: &Gate, action: Action) -> (char, Option<SecurityRisk>, ConfirmationState) {
    let mut event = ActionEvent::from(action);
    event.action.set_security_risk(SecurityRisk::Medium);
    let verdict = match gate.evaluate(&mut event, &NoHistory).await {
        Verdict::Proceed => 'p',
        Verdict::Confirm { assessment } => {
            assert_eq!(Some(assessment.risk), event.action.security_risk());
            'c'
        }
        Verdict::Refuse { .. } => 'r',
    };
    (verdict, event.action.security_risk(), event.confirmation())
}

#[tokio::test]
async fn every_row_of_the_decision_table_holds_for_all_five_kinds() {
    use ConfirmationState::{AwaitingConfirmation as Awaiting, Confirmed};
    use SecurityRisk::{High, Low, Medium, Unknown};
    let advise = |risk| Some(fixed(risk, Unattended::Proceed));
    let refuse = |risk| Some(fixed(risk, Unattended::Refuse));
    let failing: Option<Arc<dyn SecurityAnalyzer>> = Some(Arc::new(UnknownAnalyzer::new("x")));
    let llm: Option<Arc<dyn SecurityAnalyzer>> = Some(Arc::new(Llm));
    let rows = [
        (gate(true, false, advise(High)), ('c', Some(High), Awaiting)),
        (gate(true, false, advise(Medium)), ('p', Some(Medium), Confirmed)),
        (gate(true, false, advise(Low)), ('p', Some(Low), Confirmed)),
        (gate(true, false, advise(Unknown)), ('p', Some(Unknown), Confirmed)),
        (gate(true, false, failing.clone()), ('p', Some(Unknown), Confirmed)),
        (gate(true, false, llm.clone()), ('p', Some(Medium), Confirmed)),
        // The model's own rating counts only with an analyzer.
        (gate(true, false, None), ('c', Some(Unknown), Awaiting)),
        (gate(true, true, advise(Low)), ('c', Some(Low), Awaiting)),
        (gate(true, true, advise(Unknown)), ('c', Some(Unknown), Awaiting)),
        (gate(true, true, None), ('c', Some(Unknown), Awaiting)),
        // Without confirmation mode nothing is rated.
        (gate(false, false, advise(High)), ('p', Some(Medium), Confirmed)),
        (gate(false, true, advise(High)), ('p', Some(Medium), Confirmed)),
        (gate(false, false, None), ('p', Some(Medium), Confirmed)),
        // Unless the analyzer refuses.
        (gate(false, false, refuse(High)), ('r', Some(High), Confirmed)),
        (gate(false, false, refuse(Low)), ('p', Some(Low), Confirmed)),
        (gate(true, false, refuse(High)), ('c', Some(High), Awaiting)),
    ];
    for (row, (gate, expected)) in rows.iter().enumerate() {
        for action in asked_kinds() {
            let kind = action.kind();
            assert_eq!(outcome(gate, action).await, *expected, "row {row}, {kind}");
        }
    }
}

#[tokio::test]
async fn other_kinds_are_asked_about_only_by_an_analyzer_that_refuses() {
    use ConfirmationState::{AwaitingConfirmation as Awaiting, Confirmed};
    use SecurityRisk::{High, Medium};
    for action in other_kinds() {
        let silent = gate(true, true, Some(fixed(High, Unattended::Proceed)));
        assert_eq!(outcome(&silent, action.clone()).await, ('p', Some(Medium), Confirmed));
        let none = gate(true, false, None);
        assert_eq!(outcome(&none, action.clone()).await, ('p', Some(Medium), Confirmed));
        let asking = gate(true, false, Some(fixed(High, Unattended::Refuse)));
        assert_eq!(outcome(&asking, action.clone()).await, ('c', Some(High), Awaiting));
        let refusing = gate(false, false, Some(fixed(High, Unattended::Refuse)));
        assert_eq!(outcome(&refusing, action).await, ('r', Some(High), Confirmed));
    }
    let refusing = gate(false, false, Some(fixed(High, Unattended::Refuse)));
    let message = Action::Message(MessageAction::new("rm -rf /"));
    assert_eq!(outcome(&refusing, message).await, ('p', Some(Medium), Confirmed));
}

#[tokio::test]
async fn an_action_that_was_decided_on_goes_on_unchanged() {
    let gate = gate(true, false, None);
    for state in [ConfirmationState::Rejected, ConfirmationState::AwaitingConfirmation] {
        for action in asked_kinds() {
            let mut event = ActionEvent::from(action);
            event.set_confirmation(state);
            let before = event.clone();
            assert_eq!(gate.evaluate(&mut event, &NoHistory).await, Verdict::Proceed);
            assert_eq!(event, before);
        }
    }
}

/// A published action with every part that a second publication touches.
fn published(id: i64, mut action: Action) -> ActionEvent {
    let Value::Object(mut event) = ActionEvent::from(action.clone()).to_value() else { panic!("no object") };
    event["args"]["thought"] = json!("because");
    action = ActionEvent::from_value(Value::Object(event)).unwrap().action;
    ActionEvent {
        id: Some(id),
        timestamp: Some("2026-01-01T00:00:00".to_owned()),
        source: Some(EventSource::Agent),
        tool_call_metadata: Some(json!({"tool_call_id": "1"})),
        ..action.into()
    }
}

#[test]
fn what_the_user_decides_is_ready_for_its_second_publication_for_all_five_kinds() {
    let gate = gate(true, false, None);
    for state in [ConfirmationState::Confirmed, ConfirmationState::Rejected] {
        for action in asked_kinds() {
            let mut held = published(7, action);
            held.set_confirmation(ConfirmationState::AwaitingConfirmation);
            gate.hold(held.clone(), Assessment::of(SecurityRisk::High)).unwrap();
            let decided = match state {
                ConfirmationState::Confirmed => gate.confirm(7).unwrap(),
                _ => gate.reject(7).unwrap().0,
            };
            let mut expected = held;
            expected.id = None;
            expected.timestamp = None;
            expected.action.clear_thought();
            expected.set_confirmation(state);
            assert_eq!(decided, expected);
            assert_eq!(decided.action.thought(), "");
            assert_eq!(ActionEvent::from_value(decided.to_value()).unwrap().confirmation(), state);
        }
    }
    assert_eq!(gate.pending(), []);
}

#[test]
fn an_action_is_decided_on_once() {
    let gate = gate(true, false, None);
    let action = published(3, Action::Run(RunAction::new("ls")));
    let assessment = Assessment::of(SecurityRisk::High);
    gate.hold(action.clone(), assessment.clone()).unwrap();
    assert_eq!(gate.hold(action.clone(), assessment.clone()), Err(GateError::AlreadyPending { id: 3 }));
    assert_eq!(gate.pending(), [PendingAction { id: 3, action: action.clone(), assessment: assessment.clone() }]);
    assert_eq!(gate.confirm(4), Err(GateError::NotPending { id: 4 }));
    gate.confirm(3).unwrap();
    assert_eq!(gate.confirm(3), Err(GateError::NotPending { id: 3 }));
    assert_eq!(gate.reject(3), Err(GateError::NotPending { id: 3 }));
    gate.hold(action, assessment).unwrap();
    assert_eq!(gate.discard(3).unwrap().id, 3);
    assert!(gate.discard(3).is_none());
}

#[test]
fn a_bounded_number_of_actions_can_wait() {
    let gate = gate(true, false, None);
    let hold = |id| gate.hold(published(id, Action::Run(RunAction::new("ls"))), Assessment::of(SecurityRisk::High));
    let limit = i64::try_from(MAX_PENDING).unwrap();
    for id in 0..limit {
        hold(id).unwrap();
    }
    assert_eq!(hold(limit), Err(GateError::TooMany { limit: MAX_PENDING }));
    gate.reject(0).unwrap();
    hold(limit).unwrap();
    assert_eq!(gate.pending().len(), MAX_PENDING);
    let without = ActionEvent::from(Action::Run(RunAction::new("ls")));
    assert_eq!(gate.hold(without, Assessment::of(SecurityRisk::High)), Err(GateError::WithoutId));
}

#[tokio::test(start_paused = true)]
async fn an_analyzer_that_never_answers_means_an_unknown_risk() {
    struct Silent;
    impl SecurityAnalyzer for Silent {
        fn name(&self) -> &'static str {
            "silent"
        }
        fn assess<'a>(
            &'a self,
            _action: &'a ActionEvent,
            _history: &'a dyn History,
        ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
            Box::pin(std::future::pending())
        }
    }
    let gate = gate(true, false, Some(Arc::new(Silent)));
    let mut event = ActionEvent::from(Action::Run(RunAction::new("ls")));
    assert_eq!(gate.evaluate(&mut event, &NoHistory).await, Verdict::Proceed);
    assert_eq!(event.action.security_risk(), Some(SecurityRisk::Unknown));
}

#[test]
fn a_rejection_has_the_text_of_the_reference_first() {
    let pinned = "Action has been rejected by the user! Waiting for further user input.";
    let rule =
        RuleMatch { rule: "delete-root", risk: SecurityRisk::High, explanation: "`rm -rf /` deletes all.".to_owned() };
    let named = Assessment { risk: SecurityRisk::High, rules: vec![rule] };
    assert_eq!(rejection(None).content(), pinned);
    assert_eq!(rejection(Some(&Assessment::of(SecurityRisk::High))).content(), pinned);
    assert_eq!(rejection(Some(&named)).content(), format!("{pinned}\nThe user was asked because of: delete-root."));
    assert_eq!(rejection(None).kind(), "user_rejected");
    let Observation::Error(refused) = refusal(&named) else { panic!("no error") };
    assert_eq!(
        refused.content,
        "The action was not executed: its risk is high, and there is no one to confirm it.\n\
         - delete-root: `rm -rf /` deletes all.\n\
         Find another way, or ask the user to do this."
    );
}
