//! The OpenHands API, row by row (`action-execution-api` 2.1 to 2.6 and 5.2).

use std::sync::Arc;

use crate::common::{Server, request, run, within};
use bytes::Bytes;
use gloveport_executor::plugins::{FirstKernel, Notebook};
use gloveport_server::{ServerOptions, SessionKey};
use serde_json::{Value, json};

const UNEXPECTED: &str = "An unexpected error occurred. Please try again later.";

#[tokio::test]
async fn every_path_answers_with_its_status_and_its_whole_body() {
    within(async {
        let server = Server::start().await;
        let mut client = server.connect().await;
        for (method, path, body, status, answer) in [
            ("GET", "/alive", "", 200, json!({"status": "ok"})),
            ("GET", "/vscode/connection_token", "", 200, json!({"token": null})),
            ("GET", "/nowhere", "", 404, json!({"detail": "Not Found"})),
            ("POST", "/alive", "", 405, json!({"detail": "Method Not Allowed"})),
            ("GET", "/execute_action", "", 405, json!({"detail": "Method Not Allowed"})),
            ("POST", "/list_files", "{}", 200, json!([])),
            ("POST", "/list_files", "", 500, json!({"detail": UNEXPECTED})),
            ("POST", "/list_files", "[null]", 500, json!({"detail": UNEXPECTED})),
            ("POST", "/list_files", "{\"path\": 1}", 500, json!({"detail": UNEXPECTED})),
            ("POST", "/list_files", "{\"path\": \"/nowhere\"}", 200, json!([])),
            ("POST", "/list_files", "{\"path\": \"a\\u0000b\"}", 200, json!([])),
            (
                "POST",
                "/update_mcp_server",
                "[]",
                200,
                json!({"detail": "MCP server updated successfully", "router_error_log": ""}),
            ),
            ("POST", "/update_mcp_server", "{}", 400, json!({"detail": "Request must be a list of MCP tools to sync"})),
            (
                "POST",
                "/update_mcp_server",
                "[{\"name\": \"a b\", \"command\": \"c\"}]",
                500,
                json!({"detail": UNEXPECTED}),
            ),
            ("POST", "/update_mcp_server", "nonsense", 500, json!({"detail": UNEXPECTED})),
            (
                "POST",
                "/update_mcp_server",
                "[{\"name\": \"a\", \"command\": \"c\", \"args\": \"-x 'y z'\", \"env\": \"K=V\"}]",
                200,
                json!({
                    "detail": "MCP server updated successfully",
                    "router_error_log": "a: `c` is not installed in the sandbox",
                }),
            ),
        ] {
            let found = client.request(request(method, path, Bytes::from_static(body.as_bytes()))).await;
            assert_eq!((found.status.as_u16(), found.json()), (status, answer), "{method} {path} {body}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_command_is_answered_with_its_whole_observation() {
    within(async {
        let server = Server::start().await;
        let mut observation = server.run("echo hi").await;
        let metadata = observation["extras"]["metadata"].as_object_mut().unwrap();
        for name in ["username", "hostname", "py_interpreter_path"] {
            assert!(metadata[name].is_string(), "{name}");
            metadata[name] = "*".into();
        }
        let directory = server.directory.path().to_str().unwrap();
        let expected = json!({
            "message": "Command `echo hi` executed with exit code 0.",
            "observation": "run",
            "content": "hi",
            "extras": {
                "command": "echo hi",
                "metadata": {
                    "exit_code": 0, "pid": -1, "username": "*", "hostname": "*", "working_dir": directory,
                    "py_interpreter_path": "*", "prefix": "",
                    "suffix": "\n[The command completed with exit code 0.]",
                },
                "hidden": false,
            },
            "success": true,
        });
        assert_eq!(observation, expected);

        let nul = server.run("echo a\0b").await;
        assert_eq!(nul["observation"], "error");
        assert!(nul["content"].as_str().unwrap().contains("NUL byte"), "{nul}");
        let read =
            server.post("/execute_action", "{\"action\": {\"action\": \"read\", \"args\": {\"path\": \"/x\"}}}").await;
        assert_eq!((read.status.as_u16(), &read.json()["observation"]), (200, &json!("error")));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_key_is_asked_for_before_anything_else() {
    within(async {
        let key = Some(SessionKey::new("secret"));
        let server = Server::with(ServerOptions { session_key: key, ..ServerOptions::default() }).await;
        let refusal = json!({"detail": "Invalid API Key"});
        for (method, path, key, status) in [
            ("GET", "/alive", None, 200),
            ("GET", "/server_info", None, 200),
            ("GET", "/ready", None, 403),
            ("GET", "/metrics", None, 403),
            ("GET", "/docs", None, 403),
            ("GET", "/openapi.json", None, 403),
            ("GET", "/v1/exec", None, 403),
            ("POST", "/execute_action", None, 403),
            ("GET", "/execute_action", None, 403),
            ("GET", "/nowhere", None, 403),
            ("GET", "/alive/", None, 403),
            ("POST", "/list_files", Some("Secret"), 403),
            ("POST", "/list_files", Some(""), 403),
            ("GET", "/nowhere", Some("secret"), 404),
            ("GET", "/execute_action", Some("secret"), 405),
            ("POST", "/list_files", Some("secret"), 200),
            ("GET", "/ready", Some("secret"), 200),
            ("GET", "/metrics", Some("secret"), 200),
            ("GET", "/docs", Some("secret"), 200),
        ] {
            let mut request = request(method, path, "{}");
            if let Some(key) = key {
                request.headers_mut().insert("X-Session-API-Key", key.parse().unwrap());
            }
            let answer = server.connect().await.request(request).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path} {key:?}");
            let is_native = path.starts_with("/v1/") || ["/ready", "/metrics"].contains(&path);
            if status == 403 && is_native {
                assert_eq!(answer.json()["error"]["message"], refusal["detail"], "{path}");
                assert_eq!(answer.json()["error"]["code"], "forbidden", "{path}");
            } else if status == 403 {
                assert_eq!(answer.json(), refusal);
            }
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_page_of_another_origin_can_not_use_a_server_without_a_key() {
    within(async {
        let server = Server::start().await;
        let mut foreign = request("POST", "/execute_action", run("touch made"));
        foreign.headers_mut().insert("origin", "https://example.org".parse().unwrap());
        assert_eq!(server.connect().await.request(foreign).await.status, 403);
        assert_eq!(server.post("/list_files", "{}").await.json(), json!([]));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_idle_time_counts_from_the_last_action_that_was_understood() {
    within(async {
        let server = Server::start().await;
        let info = |value: &Value| (value["uptime"].as_f64().unwrap(), value["idle_time"].as_f64().unwrap());
        let first = server.get("/server_info").await.json();
        let (uptime, idle) = info(&first);
        assert!((uptime - idle).abs() < 0.01, "{first}");
        server.post("/execute_action", "{\"action\": {\"action\": \"dance\"}}").await;
        let (uptime, idle) = info(&server.get("/server_info").await.json());
        assert!((uptime - idle).abs() < 0.01);
        server.run("true").await;
        let second = server.get("/server_info").await.json();
        let (uptime, idle) = info(&second);
        assert!(idle < uptime - 0.2, "{second}");
        let resources = &second["resources"];
        for pointer in ["/memory/rss", "/memory/vms", "/memory/percent", "/disk/total", "/disk/used", "/disk/percent"] {
            assert!(resources.pointer(pointer).unwrap().as_f64().unwrap() > 0.0, "{pointer} {resources}");
        }
        for pointer in ["/cpu_percent", "/disk/free", "/io/read_bytes", "/io/write_bytes"] {
            assert!(resources.pointer(pointer).unwrap().as_f64().unwrap() >= 0.0, "{pointer} {resources}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn health_and_documents_tell_how_the_server_stands() {
    within(async {
        let server = Server::with_executor(ServerOptions::default(), |mut options| {
            let python = Some("/no/such/python".into());
            let notebook = Notebook::new(None, python, FirstKernel::AtOnce);
            options.plugins.all.push(Arc::clone(&notebook) as _);
            options.plugins.notebook = Some(notebook);
            options
        })
        .await;
        let body = loop {
            let ready = server.get("/ready").await;
            assert_eq!(ready.status, 503);
            let body = ready.json();
            if body["status"] != "starting" {
                break body;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        assert_eq!((&body["status"], &body["parts"][0]["state"]), (&json!("failed"), &json!("ready")));
        assert_eq!((&body["parts"][1]["name"], &body["parts"][1]["state"]), (&json!("jupyter"), &json!("failed")));
        let told = body["parts"][1]["reason"].as_str().unwrap();
        assert!(told.contains("/no/such/python"), "{told}");
        server.run("echo hi").await;
        let metrics = server.get("/metrics").await.text();
        for line in [
            "gloveport_requests_total{group=\"v0\",status=\"2xx\"} 1",
            "gloveport_action_duration_seconds_count{kind=\"run\"} 1",
            "gloveport_actions_in_flight 0",
            "gloveport_execs_running 0",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
        }
        assert_eq!(server.get("/openapi.json").await.json()["info"]["title"], "gloveport");
        let page = server.get("/docs").await.text();
        assert!(page.contains("/v1/exec/{id}/output"), "{page}");
        server.stop().await;
    })
    .await;
}
