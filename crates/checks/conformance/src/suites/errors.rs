//! Requests that are refused (`action-execution-api` 2.1 and 2.4).

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    Check,
    check::{Expect, Text, Want},
    server::Request,
};

const GENERIC: &str = "action-execution-api 2.1";
const ACTIONS: &str = "action-execution-api 2.4";
const PREFIX: &str = "Internal server error: ";

fn body(text: &str) -> Request {
    Request::post("/execute_action", text.to_owned())
}

fn action(action: &Value) -> Request {
    body(&json!({ "action": action }).to_string())
}

fn invalid() -> Expect {
    Expect::status(422)
        .at("/detail", "Invalid request parameters")
        .want(Want::Text("/errors", Text::Has(String::new())))
}

fn failed(start: &str) -> Expect {
    Expect::status(500).starts("/detail", &format!("{PREFIX}{start}"))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = generic();
    checks.extend(bodies());
    checks.extend(actions());
    checks
}

fn generic() -> Vec<Check> {
    vec![
        Check::new("errors/unknown-path", "an unknown path is not found", GENERIC)
            .send(Request::get("/does-not-exist"), Expect::detail(404, "Not Found"))
            .send(Request::post("/does/not/exist", "{}"), Expect::detail(404, "Not Found"))
            .send(Request::get("/reset"), Expect::detail(404, "Not Found")),
        Check::new("errors/wrong-method", "a known path with another method is refused", GENERIC)
            .send(Request::get("/execute_action"), Expect::detail(405, "Method Not Allowed"))
            .send(Request::get("/list_files"), Expect::detail(405, "Method Not Allowed"))
            .send(Request::post("/alive", ""), Expect::detail(405, "Method Not Allowed"))
            .send(Request::new(Method::DELETE, "/server_info"), Expect::detail(405, "Method Not Allowed")),
        Check::new("errors/json-type", "errors are JSON", GENERIC).send(
            Request::get("/does-not-exist"),
            Expect::status(404).want(Want::Header("content-type", Text::Starts("application/json".to_owned()))),
        ),
    ]
}

fn bodies() -> Vec<Check> {
    vec![
        Check::new("errors/body-not-json", "a body that is not JSON is refused", ACTIONS)
            .send(body("{"), invalid())
            .send(body("nonsense"), invalid())
            .send(body(""), invalid()),
        Check::new("errors/body-not-an-object", "a body that is no object is refused", ACTIONS)
            .send(body("[1]"), invalid())
            .send(body("5"), invalid())
            .send(body("\"text\""), invalid())
            .send(body("null"), invalid()),
        Check::new("errors/no-action", "a body without an action object is refused", ACTIONS)
            .send(body("{}"), invalid())
            .send(body(r#"{"action": null}"#), invalid())
            .send(body(r#"{"action": "run"}"#), invalid())
            .send(body(r#"{"action": [1]}"#), invalid()),
    ]
}

fn actions() -> Vec<Check> {
    let lenient = "an unknown argument may be ignored";
    let mut not_runnable = Check::new("errors/not-runnable", "actions that nobody executes are errors", ACTIONS);
    for (kind, args) in not_runnable_actions() {
        let expected = format!("{PREFIX}'ActionExecutor' object has no attribute '{kind}'");
        not_runnable =
            not_runnable.send(action(&json!({"action": kind, "args": args})), Expect::detail(500, &expected));
    }
    vec![
        Check::new("errors/no-kind", "an object that is no event is an error", ACTIONS)
            .send(action(&json!({})), failed("Unknown event type: "))
            .send(action(&json!({"x": 1})), Expect::detail(500, &format!("{PREFIX}Unknown event type: {{'x': 1}}")))
            .send(action(&json!({"args": {"command": "true"}})), failed("Unknown event type: ")),
        Check::new("errors/unknown-kind", "an action of an unknown kind is an error that names it", ACTIONS)
            .send(
                action(&json!({"action": "nope", "args": {}})),
                failed("'action['action']='nope'' is not defined. Available actions: "),
            )
            .send(
                action(&json!({"action": "start", "args": {}})),
                failed("'action['action']='start'' is not defined. Available actions: "),
            )
            .send(
                action(&json!({"action": 7, "args": {}})),
                failed("'action['action']=7' is not defined. Available actions: "),
            )
            .send(action(&json!({"action": []})), failed("'action['action']=[]' is not defined. Available actions: ")),
        Check::new("errors/observation", "an observation is no action", ACTIONS).send(
            action(&json!({"observation": "run", "content": "x", "extras": {"command": "x"}})),
            Expect::detail(500, &format!("{PREFIX}400: Invalid action type")),
        ),
        Check::new("errors/missing-argument", "a missing argument is named", ACTIONS)
            .send(
                action(&json!({"action": "run", "args": {}})),
                Expect::detail(
                    500,
                    &format!(
                        "{PREFIX}action={{'action': 'run', 'args': {{}}}} has the wrong arguments: \
                         CmdRunAction.__init__() missing 1 required positional argument: 'command'"
                    ),
                ),
            )
            .send(
                action(&json!({"action": "write", "args": {}})),
                failed("action=").ends(
                    "/detail",
                    "FileWriteAction.__init__() missing 2 required positional arguments: 'path' and 'content'",
                ),
            ),
        Check::new("errors/unknown-argument", "an unknown argument is named", ACTIONS).send(
            action(&json!({"action": "run", "args": {"command": "true", "colour": 1}})),
            failed("action=")
                .ends(
                    "/detail",
                    "has the wrong arguments: CmdRunAction.__init__() got an unexpected keyword argument 'colour'",
                )
                .or(Expect::status(200), lenient),
        ),
        not_runnable,
        Check::new("errors/llm-edit", "an edit for a model is an error without a text", ACTIONS).send(
            action(&json!({"action": "edit", "args": {"path": "{dir}/a", "impl_source": "llm_based_edit"}})),
            Expect::detail(500, PREFIX),
        ),
        Check::new("errors/no-notebook", "a cell without the plugin is an error", ACTIONS).send(
            action(&json!({"action": "run_ipython", "args": {"code": "6*7"}, "timeout": 30.0})),
            Expect::detail(500, &format!("{PREFIX}JupyterRequirement not found. Unable to run IPython action."))
                .or(Expect::status(200).at("/observation", "run_ipython"), "the server has the plugin"),
        ),
    ]
}

fn not_runnable_actions() -> Vec<(&'static str, Value)> {
    vec![
        ("message", json!({"content": "hi"})),
        ("system", json!({"content": "you are"})),
        ("null", json!({})),
        ("think", json!({"thought": "x"})),
        ("finish", json!({})),
        ("reject", json!({})),
        ("delegate", json!({"agent": "a", "inputs": {}})),
        ("recall", json!({"recall_type": "knowledge"})),
        ("change_agent_state", json!({"agent_state": "running"})),
        ("condensation", json!({"forgotten_event_ids": [1]})),
        ("condensation_request", json!({})),
        ("call_tool_mcp", json!({"name": "t"})),
        ("task_tracking", json!({})),
        ("loop_recovery", json!({})),
    ]
}
