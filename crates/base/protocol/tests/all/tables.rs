//! Tables of single facts that the golden files do not cover.

#![expect(clippy::expect_used, reason = "functions that tests share stop at the first broken assumption, too")]

use std::error::Error;

use gloveport_protocol::python::{float_text, parse_float};
use gloveport_protocol::{
    Action, ActionEvent, AgentState, AliveBody, CallToolMcpAction, CommandMetadata, CondensationAction,
    ConnectionToken, ErrorBody, ErrorObservation, ExecuteActionRequest, ExecuteError, ListFilesRequest, Observation,
    ObservationEvent, RunAction, RunObservation, SecurityRisk, UpdateMcpResponse, ValidationErrorBody,
    truncate_content,
};
use serde_json::{Value, json};

#[test]
fn truncation_keeps_half_the_limit_of_each_end() {
    let notice = "\n[... Observation truncated due to length ...]\n";
    let table = [
        ("", 10, String::new()),
        ("0123456789", 10, "0123456789".to_owned()),
        ("0123456789a", 10, format!("01234{notice}6789a")),
        ("0123456789a", 9, format!("0123{notice}789a")),
        ("äöü€äöü€äöü", 10, format!("äöü€ä{notice}ü€äöü")),
        ("ab", 1, notice.to_owned()),
        ("ab", 0, notice.to_owned()),
    ];
    for (content, limit, expected) in table {
        assert_eq!(truncate_content(content, limit), expected, "{content:?} {limit}");
    }
}

#[test]
fn a_truncated_content_stays_as_it_is_when_truncated_again() {
    let content: String = ('a'..='z').cycle().take(70_000).collect();
    let once = RunObservation::new("c", content, false, CommandMetadata::default());
    let again = RunObservation::new("c", once.content.clone(), false, CommandMetadata::default());
    assert_eq!(once.content.chars().count(), 30_047);
    assert_eq!(once, again);
}

#[test]
fn floats_are_read_as_python_reads_them() {
    let table = [
        ("1", Some(1.0)),
        (" -2.5\n", Some(-2.5)),
        ("1e3", Some(1000.0)),
        ("1_0.5_0", Some(10.5)),
        ("1__0", None),
        ("_1", None),
        ("1_", None),
        ("1_.5", None),
        ("", None),
        ("0x1", None),
        ("inf", Some(f64::INFINITY)),
    ];
    for (text, expected) in table {
        assert_eq!(parse_float(text), expected, "{text:?}");
    }
}

#[test]
fn floats_that_json_cannot_hold_have_a_text() {
    assert_eq!(float_text(f64::NAN), "nan");
    assert_eq!(float_text(f64::INFINITY), "inf");
    assert_eq!(float_text(f64::NEG_INFINITY), "-inf");
}

fn refusal(value: Value) -> String {
    ActionEvent::from_value(value).expect_err("it is refused").to_string()
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_field() {
    let table = [
        (
            json!({"action": "run", "args": {"command": 5}}),
            "action={'action': 'run', 'args': {'command': 5}} has the wrong arguments: \
             CmdRunAction.command must be a string, not an integer",
        ),
        (
            json!({"action": "run", "args": {"command": "c", "cwd": false}}),
            "action={'action': 'run', 'args': {'command': 'c', 'cwd': False}} has the wrong arguments: \
             CmdRunAction.cwd must be a string or null, not a boolean",
        ),
        (
            json!({"action": "read", "args": {"path": "p", "view_range": "1"}}),
            "action={'action': 'read', 'args': {'path': 'p', 'view_range': '1'}} has the wrong arguments: \
             FileReadAction.view_range must be an array (each element any value) or null, not a string",
        ),
        (
            json!({"action": "read", "args": {"path": "p", "impl_source": "x"}}),
            "action={'action': 'read', 'args': {'path': 'p', 'impl_source': 'x'}} has the wrong arguments: \
             FileReadAction.impl_source must be one of 'oh_aci', 'default', not 'x'",
        ),
        (
            json!({"action": "edit", "args": {"path": "p", "insert_line": 1.5}}),
            "action={'action': 'edit', 'args': {'path': 'p', 'insert_line': 1.5}} has the wrong arguments: \
             FileEditAction.insert_line must be an integer or a string or null, not a number with a fraction",
        ),
        (
            json!({"action": "run", "args": {"command": "c", "action": "edit"}}),
            "action={'action': 'run', 'args': {'command': 'c', 'action': 'edit'}} has the wrong arguments: \
             CmdRunAction.__init__() got an unexpected keyword argument 'action'",
        ),
        (json!({"action": "run", "args": null}), "the event's 'args' must be an object, not null"),
        (
            json!({"action": "run", "args": {"command": "c"}, "timeout": "soon"}),
            "the event's 'timeout' must be a number or null, not a string",
        ),
        (
            json!({"action": "run", "args": {"command": "c"}, "timeout": "inf"}),
            "the event's 'timeout' must be a number or null, not a string",
        ),
        (
            json!({"action": "run", "args": {"command": "c"}, "id": "1"}),
            "the event's 'id' must be an integer or null, not a string",
        ),
        (json!(["run"]), "an event must be an object, not an array"),
        (json!({"observation": "error", "content": "x", "extras": {}}), "400: Invalid action type"),
    ];
    for (value, expected) in table {
        assert_eq!(refusal(value.clone()), expected, "{value}");
    }
}

#[test]
fn the_free_text_of_an_object_ends_after_two_thousand_characters() {
    let text = refusal(json!({"action": "run", "args": {"cmd": "ä".repeat(5_000)}}));
    let object = format!("{{'action': 'run', 'args': {{'cmd': '{}", "ä".repeat(5_000));
    let kept: String = object.chars().take(2_000).collect();
    assert_eq!(
        text,
        format!(
            "action={kept} has the wrong arguments: CmdRunAction.__init__() got an unexpected keyword argument 'cmd'"
        )
    );
    let key = "k".repeat(5_000);
    assert!(refusal(json!({"action": "null", "args": {key.as_str(): 1}})).len() < 4_500);
    assert!(refusal(json!({"action": key})).len() < 4_500);
    assert!(refusal(json!({key.as_str(): 1})).len() < 2_500);
}

#[test]
fn metadata_of_the_model_is_carried_whatever_it_is() {
    let value = json!({
        "action": "null", "args": {}, "message": "No action", "tool_call_metadata": 5, "llm_metrics": ["odd"],
    });
    assert_eq!(ActionEvent::from_value(value.clone()).expect("it is accepted").to_value(), value);
}

#[test]
fn nul_bytes_are_left_to_who_executes() {
    let value = json!({"action": "run", "args": {"command": "a\u{0}b"}});
    let event = ActionEvent::from_value(value).expect("it is accepted");
    assert_eq!(event, ActionEvent::from(Action::Run(RunAction::new("a\u{0}b"))));
}

#[test]
fn an_observation_without_a_known_kind_is_refused() {
    let table = [
        (json!({"content": "x"}), "the object has no 'observation' key: {'content': 'x'}"),
        (json!({"observation": "chat", "content": "x"}), "'chat' is not an observation"),
        (
            json!({"observation": "error", "content": 5}),
            "the 'error' observation has the wrong fields: ErrorObservation.content must be a string, not an integer",
        ),
        (
            json!({"observation": "error", "extras": {"content": "y"}}),
            "the event's 'extras' must be an object, not an object with a second 'content'",
        ),
        (
            json!({"observation": "recall", "extras": {"recall_type": "knowledge", "microagent_knowledge": [{}]}}),
            "the 'recall' observation has the wrong fields: RecallObservation.microagent_knowledge must be an array (each \
          element an object with name, trigger and content), not an array that holds an object that does not fit: \
          MicroagentKnowledge.__init__() missing 3 required positional arguments: 'name', 'trigger', and 'content'",
        ),
    ];
    for (value, expected) in table {
        let error = ObservationEvent::from_value(value.clone()).expect_err("it is refused");
        assert_eq!(error.to_string(), expected, "{value}");
    }
}

#[test]
fn deep_nesting_in_an_old_edit_is_refused_without_exhausting_the_stack() {
    let code = format!("print(file_editor(**{}{}))", "[".repeat(100_000), "]".repeat(100_000));
    let event = ActionEvent::from_value(json!({"action": "null", "args": {"translated_ipython_code": code}}));
    assert_eq!(event, Ok(ActionEvent::from(Action::Null)));
}

#[test]
fn a_range_of_any_size_has_a_short_message() {
    let message = Action::Condensation(CondensationAction::of_range(i64::MIN, i64::MAX)).message();
    assert!(message.starts_with("Condenser is dropping the events: [-9223372036854775808, -"));
    assert!(message.len() < 31_000);
}

#[test]
fn the_executing_side_can_run_eight_kinds() {
    let mut action = RunAction::new("ls");
    action.hidden = true;
    action.thought = "look".to_owned();
    let run = Action::Run(action);
    assert_eq!((run.kind(), run.is_runnable(), run.hidden(), run.thought()), ("run", true, true, "look"));
    let mcp = Action::CallToolMcp(CallToolMcpAction::new("fetch"));
    assert_eq!((mcp.kind(), mcp.is_runnable(), mcp.hidden(), mcp.thought()), ("call_tool_mcp", true, false, ""));
    assert!(!Action::Null.is_runnable());
}

#[test]
fn enumerations_have_the_names_of_the_wire() {
    assert_eq!(AgentState::parse("rate_limited"), Some(AgentState::RateLimited));
    assert_eq!(AgentState::parse("RateLimited"), None);
    assert_eq!(json!(AgentState::ALL), json!(AgentState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>()));
    assert_eq!(json!([SecurityRisk::Unknown, SecurityRisk::High]), json!([-1, 2]));
    assert_eq!(serde_json::from_value::<SecurityRisk>(json!(1)).ok(), Some(SecurityRisk::Medium));
    assert!(serde_json::from_value::<SecurityRisk>(json!(3)).is_err());
}

#[test]
fn an_error_observation_has_the_form_of_the_server() {
    let event = ObservationEvent::from(Observation::Error(ErrorObservation::new("no")));
    assert_eq!(
        event.to_value().to_string(),
        r#"{"message":"no","observation":"error","content":"no","extras":{"error_id":""}}"#
    );
}

#[test]
fn execution_errors_read_as_the_server_says_them() {
    let table = [
        (ExecuteError::NotRunnable { kind: "think" }, "'ActionExecutor' object has no attribute 'think'"),
        (
            ExecuteError::PluginMissing("JupyterRequirement not found. Unable to run IPython action.".to_owned()),
            "JupyterRequirement not found. Unable to run IPython action.",
        ),
        (ExecuteError::Failed(String::new()), ""),
    ];
    for (error, expected) in table {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_wrong_argument_keeps_its_cause() {
    let error = ActionEvent::from_value(json!({"action": "run"})).expect_err("it is refused");
    let cause = error.source().expect("it has a cause").to_string();
    assert_eq!(cause, "CmdRunAction.__init__() missing 1 required positional argument: 'command'");
}

#[test]
fn http_bodies_have_the_keys_of_the_wire() {
    assert_eq!(json!(ErrorBody::new("Invalid API Key")), json!({"detail": "Invalid API Key"}));
    assert_eq!(json!(ValidationErrorBody::new("e")), json!({"detail": "Invalid request parameters", "errors": "e"}));
    assert_eq!(json!(AliveBody::ok()), json!({"status": "ok"}));
    assert_eq!(json!(ConnectionToken::default()), json!({"token": null}));
    assert_eq!(
        json!(UpdateMcpResponse::updated("")),
        json!({"detail": "MCP server updated successfully", "router_error_log": ""})
    );
    assert_eq!(serde_json::from_value::<ListFilesRequest>(json!({})).ok(), Some(ListFilesRequest { path: None }));
    assert!(serde_json::from_value::<ExecuteActionRequest>(json!({"action": {}})).is_ok());
    assert!(serde_json::from_value::<ExecuteActionRequest>(json!({"action": []})).is_err());
    assert!(serde_json::from_value::<ExecuteActionRequest>(json!({})).is_err());
}
