//! What a project wants to be run beside its agent (`agent-server-workspace-api` 7).

use serde_json::{Value, json};

use super::calls::EXECUTE;
use crate::{Check, check::Expect, server::Request};

const SPEC: &str = "agent-server-workspace-api 7";
const FILE: &str = ".openhands/hooks.json";

fn ask() -> Request {
    Request::json("/api/hooks", &json!({"project_dir": "{dir}"}))
}

fn none() -> Expect {
    Expect::whole(json!({"hook_config": null}))
}

/// A check of a file with hooks.
fn of_file(id: &'static str, title: &'static str, content: impl Into<Vec<u8>>, expect: Expect) -> Check {
    Check::new(id, title, SPEC).file(FILE, content).send(ask(), expect)
}

/// One hook of one kind, normalised.
fn normalised(kind: &str, matcher: &str, hook: &Value) -> Expect {
    let mut full = json!({
        "type": "command", "name": null, "command": "", "prompt": null, "system_prompt": null, "tools": [],
        "timeout": 60, "max_iterations": 3, "async": false,
    });
    if let (Some(full), Some(hook)) = (full.as_object_mut(), hook.as_object()) {
        full.extend(hook.clone());
    }
    let mut config = json!({
        "pre_tool_use": [], "post_tool_use": [], "user_prompt_submit": [], "session_start": [], "session_end": [],
        "stop": [],
    });
    config[kind] = json!([{"matcher": matcher, "hooks": [full]}]);
    Expect::whole(json!({ "hook_config": config }))
}

pub(super) fn checks() -> Vec<Check> {
    let hook = json!({"type": "command", "command": "a", "timeout": 5});
    let plain = json!({"pre_tool_use": [{"matcher": "terminal", "hooks": [hook]}]}).to_string();
    let camel = json!({"PreToolUse": [{"hooks": [{"command": "a", "async": true}]}]}).to_string();
    let below =
        json!({"hooks": {"SessionStart": [{"matcher": "*", "hooks": [{"command": "a", "name": "n"}]}]}}).to_string();
    let both = json!({"Stop": [{"hooks": [{"command": "a"}]}], "stop": []}).to_string();
    let unknown = json!({"other": [], "stop": [{"hooks": [{"command": "a"}]}]}).to_string();
    vec![
        Check::new("hooks/none", "a project without hooks has none", SPEC)
            .send(ask(), none())
            .send(Request::json("/api/hooks", &json!({"project_dir": "{dir}/no such"})), none())
            .send(Request::json("/api/hooks", &json!({"project_dir": null})), none()),
        of_file(
            "hooks/plain",
            "hooks come with all their members",
            plain,
            normalised("pre_tool_use", "terminal", &json!({"command": "a", "timeout": 5})),
        ),
        of_file(
            "hooks/camel-case",
            "names may be written in the other way",
            camel,
            normalised("pre_tool_use", "*", &json!({"command": "a", "async": true})),
        ),
        of_file(
            "hooks/below",
            "they may stand below `hooks`",
            below,
            normalised("session_start", "*", &json!({"command": "a", "name": "n"})),
        ),
        of_file("hooks/both", "a name in both ways is broken", both, none()),
        of_file("hooks/unknown", "an unknown name is broken", unknown, none()),
        of_file("hooks/broken", "what is no JSON is broken", "{", none()),
        of_file("hooks/empty", "an empty file is none", "", none()),
        Check::new("hooks/refused", "what does not name a project is refused", SPEC)
            .send(Request::json("/api/hooks", &json!({"project_dir": 7})), Expect::status(422))
            .send(Request::json("/api/hooks", &json!([])), Expect::status(422))
            .send(Request::post("/api/hooks", "{"), Expect::status(422)),
        Check::new("hooks/not-run", "nothing of it is run", SPEC)
            .file(FILE, r#"{"session_start": [{"hooks": [{"command": "touch '{dir}/ran'"}]}]}"#)
            .send(ask(), Expect::status(200))
            .send(
                Request::json(EXECUTE, &json!({"command": "test ! -e '{dir}/ran'"})),
                Expect::status(200).at("/exit_code", 0),
            ),
    ]
}
