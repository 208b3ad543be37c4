//! IPython kernels and plugins in the native interface.

use std::sync::Arc;

use crate::common::{Server, request, within};
use gloveport_executor::plugins::{AgentSkills, FirstKernel, Notebook, PluginOptions};
use gloveport_server::ServerOptions;
use gloveport_testing::python;
use serde_json::{Value, json};

async fn serve() -> Server {
    Server::with_executor(ServerOptions::default(), |mut options| {
        let skills = AgentSkills::new();
        let notebook = Notebook::new(Some(Arc::clone(&skills)), Some(python()), FirstKernel::WhenNeeded);
        options.plugins = PluginOptions {
            all: vec![skills, Arc::clone(&notebook) as _],
            notebook: Some(notebook),
            ..PluginOptions::default()
        };
        options
    })
    .await
}

async fn cell(server: &Server, name: &str, body: Value) -> Value {
    let answer = server.post(&format!("/v1/kernels/{name}/execute"), body.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_run_in_kernels_by_name_and_each_end_is_told_apart() {
    within(async {
        let server = serve().await;
        assert_eq!(server.get("/v1/kernels").await.json(), json!({"kernels": []}));
        let first = cell(&server, "one", json!({"code": "x = 1; print('a'); x"})).await;
        let interpreter = python().display().to_string();
        let expected = json!({
            "text": "a\n1", "images": [], "end": "completed", "kernel_lost_before": false, "interpreter": interpreter,
        });
        assert_eq!(first, expected);
        for (code, timeout, end) in [
            ("1/0", None, "raised"),
            ("while True: pass", Some(0.5), "timed_out"),
            ("import os; os._exit(1)", None, "died"),
            ("'x' in globals()", None, "completed"),
        ] {
            assert_eq!(cell(&server, "one", json!({"code": code, "timeout": timeout})).await["end"], end, "{code}");
        }
        let kernels = server.get("/v1/kernels").await.json();
        assert_eq!((&kernels["kernels"][0]["name"], &kernels["kernels"][0]["state"]), (&json!("one"), &json!("ready")));
        let mut client = server.connect().await;
        let removed = client.request(request("DELETE", "/v1/kernels/one", "")).await;
        assert_eq!(removed.json(), json!({"name": "one", "state": "closed"}));
        assert_eq!(server.get("/v1/kernels").await.json(), json!({"kernels": []}));
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_that_is_over_before_the_cell_began_is_no_failure_of_the_server() {
    within(async {
        let server = serve().await;
        for timeout in [1e-9, 1e-6] {
            // The kernel is not there yet.
            let body = json!({"code": "open('ran', 'w')", "timeout": timeout}).to_string();
            let answer = server.post("/v1/kernels/late/execute", body).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (409, &json!("kernel_not_ready")));
        }
        for timeout in [0.0, -1.0, 5e-324] {
            let body = json!({"code": "open('ran', 'w')", "timeout": timeout}).to_string();
            let answer = server.post("/v1/kernels/late/execute", body).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!("invalid_timeout")));
        }
        assert!(!server.directory.path().join("ran").exists());
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_is_followed_as_it_shows_things_and_a_kernel_is_interrupted_and_restarted() {
    within(async {
        let server = serve().await;
        let code = "print('one', flush=True)\nimport time; time.sleep(60)";
        let path = "/v1/kernels/k/execute?follow=true";
        let mut client = server.connect().await;
        let running = client.request(request("POST", path, json!({"code": code}).to_string()));
        let interrupt = async {
            // The cell is on its way once the kernel is there.
            loop {
                let kernels = server.get("/v1/kernels").await.json();
                if kernels["kernels"][0]["state"] == "ready" {
                    let answer = server.post("/v1/kernels/k/interrupt", "").await;
                    assert_eq!(answer.status, 202);
                }
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            }
        };
        let answer = tokio::select! {
            answer = running => answer,
            () = interrupt => return,
        };
        let text = answer.text();
        assert!(text.starts_with("event: text\ndata: {\"text\":\"one\\n\"}\n\n"), "{text}");
        assert!(text.contains("KeyboardInterrupt"), "{text}");
        assert!(text.contains("event: end\ndata: {\"text\":\"\",\"images\":[],\"end\":\"raised\""), "{text}");
        cell(&server, "k", json!({"code": "kept = 1"})).await;
        assert_eq!(server.post("/v1/kernels/k/restart", "").await.status, 202);
        assert_eq!(cell(&server, "k", json!({"code": "'kept' in globals()"})).await["text"], "False");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_is_told_and_starts_nothing() {
    within(async {
        let server = serve().await;
        for (method, path, body, status, code) in [
            ("POST", "/v1/kernels/k/execute", "{}", 400, "invalid_request"),
            ("POST", "/v1/kernels/k/execute", r#"{"code": "1", "colour": 1}"#, 400, "invalid_request"),
            ("POST", "/v1/kernels/k/execute", r#"{"code": "1", "timeout": 0}"#, 400, "invalid_timeout"),
            ("POST", "/v1/kernels/k/execute", r#"{"code": "1", "timeout": -1}"#, 400, "invalid_timeout"),
            ("POST", "/v1/kernels/k/execute?follow=1x", r#"{"code": "1"}"#, 400, "invalid_query"),
            ("POST", "/v1/kernels/%20/execute", r#"{"code": "1"}"#, 400, "invalid_name"),
            ("POST", "/v1/kernels/k/interrupt", "", 404, "unknown_kernel"),
            ("POST", "/v1/kernels/k/restart", "", 404, "unknown_kernel"),
            ("DELETE", "/v1/kernels/k", "", 404, "unknown_kernel"),
            ("GET", "/v1/plugins/none/logs", "", 404, "unknown_plugin"),
            ("GET", "/v1/plugins/jupyter/logs", "", 404, "unknown_plugin"),
        ] {
            let answer = server.connect().await.request(request(method, path, body)).await;
            let found = (answer.status.as_u16(), answer.json()["error"]["code"].clone());
            assert_eq!(found, (status, json!(code)), "{method} {path} {body}");
        }
        assert_eq!(server.get("/v1/kernels").await.json(), json!({"kernels": []}));
        let plugins = server.get("/v1/plugins").await.json();
        let names: Vec<(&Value, &Value)> =
            plugins["plugins"].as_array().unwrap().iter().map(|it| (&it["name"], &it["state"])).collect();
        assert_eq!(names, [(&json!("agent_skills"), &json!("idle")), (&json!("jupyter"), &json!("idle"))]);
        server.stop().await;

        let without = Server::start().await;
        let answer = without.post("/v1/kernels/k/execute", r#"{"code": "1"}"#).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (404, &json!("no_notebook")));
        without.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_in_detail_has_its_streams_results_and_exceptions_apart() {
    within(async {
        let server = serve().await;
        let code = "import sys\nprint('out'); print('err', file=sys.stderr)\n\
            from IPython.display import HTML, display\ndisplay(HTML('<b>'))\n1 / 0";
        let path = "/v1/kernels/k/execute?follow=true&detail=true";
        let events = server.events(path, &json!({"code": code}), None).await.until("end").await;
        let of =
            |name: &str| events.iter().filter(|event| event.name == name).map(|event| &event.data).collect::<Vec<_>>();
        let streams: Vec<(&Value, &Value)> = of("stream").iter().map(|data| (&data["stream"], &data["text"])).collect();
        assert_eq!(streams, [(&json!("stdout"), &json!("out\n")), (&json!("stderr"), &json!("err\n"))]);
        let [shown] = of("display")[..] else { panic!("{events:?}") };
        assert_eq!((&shown["data"]["text/html"], &shown["is_result"]), (&json!("<b>"), &json!(false)));
        let [raised] = of("raised")[..] else { panic!("{events:?}") };
        assert_eq!((&raised["name"], &raised["value"]), (&json!("ZeroDivisionError"), &json!("division by zero")));
        assert_eq!(events.last().unwrap().data["end"], "raised");
        let events = server.events(path, &json!({"code": "40 + 2"}), None).await.until("end").await;
        assert_eq!((&events[0].data["data"]["text/plain"], &events[0].data["is_result"]), (&json!("42"), &json!(true)));
        server.stop().await;
    })
    .await;
}
