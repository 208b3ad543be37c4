//! What is wrong with a request of the native API is told in one form, and is never a failure of the server.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::fs;

use crate::common::{Answer, Server, request, within};
use gloveport_server::{ServerLimits, ServerOptions, SessionKey};

/// Status and code of an answer that has the form.
fn error(answer: &Answer, call: &str) -> (u16, String) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{call}");
    let body = answer.json();
    let members: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["error"], "{call}: {body}");
    for name in ["code", "message", "hint"] {
        assert!(!body["error"][name].as_str().unwrap().is_empty(), "{call}: {body}");
    }
    (answer.status.as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn every_error_of_a_native_call_has_one_form() {
    within(async {
        let limits = ServerLimits { json_body: 1000, ..ServerLimits::default() };
        let server = Server::with(ServerOptions { limits, ..ServerOptions::default() }).await;
        let long = format!("{{\"command\": \"{}\"}}", "x".repeat(2000));
        for (method, path, body, status, code) in [
            ("GET", "/v1/nowhere", "", 404, "unknown_path"),
            ("GET", "/v1/", "", 404, "unknown_path"),
            ("GET", "/v1/exec/", "", 404, "unknown_path"),
            ("DELETE", "/v1/exec", "", 405, "method_not_allowed"),
            ("PATCH", "/v1/files/content?path=a", "", 405, "method_not_allowed"),
            ("POST", "/ready", "", 405, "method_not_allowed"),
            ("POST", "/metrics", "", 405, "method_not_allowed"),
            ("GET", "/v1/exec/none", "", 404, "unknown_exec"),
            ("GET", "/v1/exec/%ff", "", 400, "invalid_path"),
            ("POST", "/v1/exec", "", 400, "invalid_request"),
            ("POST", "/v1/exec", "{", 400, "invalid_request"),
            ("POST", "/v1/exec", "[]", 400, "invalid_request"),
            ("POST", "/v1/exec", "{}", 400, "invalid_request"),
            ("POST", "/v1/exec", "{\"command\": 1}", 400, "invalid_request"),
            ("POST", "/v1/exec", "{\"command\": \"a\", \"other\": 1}", 400, "invalid_request"),
            ("POST", "/v1/exec", long.as_str(), 413, "body_too_large"),
            ("POST", "/v1/exec?follow=maybe", "{\"command\": \"a\"}", 400, "invalid_query"),
            ("POST", "/v1/exec?folow=true", "{\"command\": \"a\"}", 400, "invalid_query"),
            ("GET", "/v1/files/stat", "", 400, "invalid_path"),
            ("GET", "/v1/files/stat?path=", "", 400, "invalid_path"),
            ("GET", "/v1/files/list?depth=-1", "", 400, "invalid_query"),
            ("PUT", "/v1/files/content", "", 400, "invalid_path"),
            ("POST", "/v1/files/glob", "", 400, "invalid_request"),
            ("POST", "/v1/files/grep", "", 400, "invalid_request"),
            ("POST", "/v1/files/move", "", 400, "invalid_request"),
            ("POST", "/v1/files/remove", "", 400, "invalid_request"),
            ("POST", "/v1/files/mkdir", "", 400, "invalid_request"),
            ("POST", "/v1/terminals", "", 400, "invalid_request"),
            ("GET", "/v1/terminals/none/attach", "", 404, "unknown_terminal"),
            ("POST", "/v1/kernels/a/execute", "", 400, "invalid_request"),
            ("POST", "/v1/kernels/a/execute", "{\"code\": \"1\"}", 404, "no_notebook"),
            ("GET", "/v1/plugins/none/logs", "", 404, "unknown_plugin"),
        ] {
            let call = format!("{method} {path} {body}");
            let answer = server.connect().await.request(request(method, path, body.to_owned())).await;
            assert_eq!(error(&answer, &call), (status, code.to_owned()), "{call}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_wrong_key_is_told_in_the_form_of_the_interface_that_was_asked() {
    within(async {
        let key = Some(SessionKey::new("secret"));
        let server = Server::with(ServerOptions { session_key: key, ..ServerOptions::default() }).await;
        for path in ["/v1/exec", "/v1/nowhere", "/v1/files/list", "/ready", "/metrics"] {
            let answer = server.connect().await.request(request("GET", path, "")).await;
            assert_eq!(error(&answer, path), (403, "forbidden".to_owned()), "{path}");
        }
        for path in ["/list_files", "/nowhere", "/openapi.json"] {
            let answer = server.connect().await.request(request("GET", path, "")).await;
            assert_eq!(answer.json(), serde_json::json!({"detail": "Invalid API Key"}), "{path}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn what_no_file_can_be_done_with_is_refused_and_no_failure_of_the_server() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::create_dir_all(directory.join("d/e")).unwrap();
        fs::write(directory.join("f"), "").unwrap();
        let (name, deep) = ("n".repeat(300), "x/".repeat(3000));
        let from = |from: &str, to: &str| format!("{{\"from\": \"{from}\", \"to\": \"{to}\", \"overwrite\": true}}");
        let mut wrong = Vec::new();
        for (method, path, body, status, code) in [
            ("POST", "move", from(".", "./x"), 400, "invalid_request"),
            ("POST", "move", from("d", "d/e/f"), 400, "invalid_request"),
            ("POST", "move", from("d/.", "other"), 400, "invalid_request"),
            ("POST", "move", from("d/..", "other"), 400, "invalid_request"),
            ("POST", "move", from("/", "other"), 400, "invalid_request"),
            ("POST", "move", from("f", "d/e/."), 400, "invalid_request"),
            ("POST", "move", from("f", "d"), 409, "is_a_directory"),
            ("POST", "move", from("d", "f"), 409, "not_a_directory"),
            ("POST", "move", from("f", &name), 400, "name_too_long"),
            ("POST", "mkdir", format!("{{\"path\": \"{name}\"}}"), 400, "name_too_long"),
            ("POST", "mkdir", format!("{{\"path\": \"{deep}\", \"parents\": true}}"), 400, "name_too_long"),
            ("POST", "mkdir", "{\"path\": \"f/x\"}".to_owned(), 409, "not_a_directory"),
            ("POST", "mkdir", "{\"path\": \"/proc/x\"}".to_owned(), 404, "not_found"),
            ("POST", "remove", "{\"path\": \"/proc/self/mem\"}".to_owned(), 403, "permission_denied"),
            ("GET", "content?path=/proc/self/mem", String::new(), 409, "file_refused"),
            ("GET", "content?path=d", String::new(), 409, "is_a_directory"),
            ("PUT", "content?path=/proc/self/mem", "x".to_owned(), 409, "file_refused"),
            ("PUT", "content?path=/proc/x", "x".to_owned(), 404, "not_found"),
            ("PUT", "content?path=d", "x".to_owned(), 409, "is_a_directory"),
            ("PUT", &format!("content?path={name}"), "x".to_owned(), 400, "name_too_long"),
            ("PUT", "archive?path=/proc/x&parents=true", String::new(), 404, "no_such_path"),
            ("PUT", "archive?path=f", String::new(), 409, "not_a_directory"),
            ("PUT", &format!("archive?path={name}"), String::new(), 400, "name_too_long"),
            ("PUT", "archive?path=d", "no archive".to_owned(), 400, "damaged_archive"),
            ("GET", &format!("stat?path={name}"), String::new(), 400, "name_too_long"),
            ("GET", &format!("watch?path={name}"), String::new(), 400, "name_too_long"),
        ] {
            let call = format!("{method} {path:.60} {body:.60}");
            let path = format!("/v1/files/{path}");
            let answer = server.connect().await.request(request(method, &path, body)).await;
            let found = error(&answer, &call);
            if found != (status, code.to_owned()) {
                wrong.push(format!("{call}: {found:?}, and not {status} {code}"));
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert!(directory.join("d/e").is_dir() && directory.join("f").is_file(), "nothing has been moved");
        server.stop().await;
    })
    .await;
}
