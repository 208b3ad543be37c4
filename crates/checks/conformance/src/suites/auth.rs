//! The key (`action-execution-api` 2.2).

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    Check,
    check::Expect,
    server::{Request, run_action},
};

const SPEC: &str = "action-execution-api 2.2";
const REFUSED: &str = "Invalid API Key";

fn without_key(request: Request) -> Request {
    Request { with_key: false, ..request }
}

fn with_wrong_key(mut request: Request, key: &str) -> Request {
    request.headers.push(("x-session-api-key", key.to_owned()));
    without_key(request)
}

fn action() -> Request {
    Request::post("/execute_action", json!({"action": run_action("true", &Value::Null)}).to_string())
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new("auth/no-key", "an action without the key is refused", SPEC)
            .with_key()
            .send(without_key(action()), Expect::detail(403, REFUSED)),
        Check::new("auth/wrong-key", "an action with a wrong key is refused", SPEC)
            .with_key()
            .send(with_wrong_key(action(), "wrong"), Expect::detail(403, REFUSED))
            .send(with_wrong_key(action(), ""), Expect::detail(403, REFUSED)),
        Check::new("auth/every-path", "every other path needs the key, even one that does not exist", SPEC)
            .with_key()
            .send(without_key(Request::post("/list_files", "{}")), Expect::detail(403, REFUSED))
            .send(without_key(Request::upload("{dir}", "file", "a", b"a")), Expect::detail(403, REFUSED))
            .send(without_key(Request::get("/download_files").query("path", "{dir}")), Expect::detail(403, REFUSED))
            .send(without_key(Request::post("/update_mcp_server", "[]")), Expect::detail(403, REFUSED))
            .send(without_key(Request::get("/vscode/connection_token")), Expect::detail(403, REFUSED))
            .send(without_key(Request::get("/does-not-exist")), Expect::detail(403, REFUSED))
            .send(without_key(Request::new(Method::DELETE, "/execute_action")), Expect::detail(403, REFUSED)),
        Check::new("auth/open-paths", "two paths need no key", SPEC)
            .send(without_key(Request::get("/alive")), Expect::whole(json!({"status": "ok"})))
            .send(without_key(Request::get("/server_info")), Expect::status(200)),
        Check::new("auth/right-key", "the key opens", SPEC)
            .with_key()
            .send(Request::post("/list_files", "{}"), Expect::status(200)),
    ]
}
