//! Programs with pipes in the native interface.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use crate::common::{Event, Server, request, within};
use serde_json::{Value, json};

async fn start(server: &Server, body: Value) -> Value {
    let answer = server.post("/v1/processes", body.to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// All that a process does, to its end.
async fn to_its_end(server: &Server, started: &Value) -> Vec<Event> {
    let path = format!("/v1/processes/{}/output", started["id"].as_str().unwrap());
    server.stream(&path).await.until("exit").await
}

fn text(events: &[Event], stream: &str) -> String {
    let of_it = events.iter().filter(|event| event.name == "output" && event.data["stream"] == stream);
    of_it.map(|event| event.data["text"].as_str().unwrap()).collect()
}

fn shell(script: &str) -> Value {
    json!({"argv": ["sh", "-c", script]})
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_apart_and_the_end_is_told_with_its_status_or_signal() {
    within(async {
        let server = Server::start().await;
        let body =
            json!({"argv": ["sh", "-c", "echo $A; pwd; echo err >&2; cat; exit 3"], "env": {"A": "b"}, "cwd": "/"});
        let events = to_its_end(&server, &start(&server, body).await).await;
        assert_eq!((text(&events, "stdout").as_str(), text(&events, "stderr").as_str()), ("b\n/\n", "err\n"));
        assert_eq!(events.last().unwrap().data, json!({"exit_code": 3, "signal": null}));
        let events = to_its_end(&server, &start(&server, shell("kill -TERM $$")).await).await;
        assert_eq!(events.last().unwrap().data, json!({"exit_code": null, "signal": 15}));
        let late = json!({"argv": ["sleep", "60"], "timeout": 0.2});
        let events = to_its_end(&server, &start(&server, late).await).await;
        assert_eq!(events.last().unwrap().data["timed_out"], true);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_taken_until_it_is_closed() {
    within(async {
        let server = Server::start().await;
        let started = start(&server, json!({"argv": ["cat"], "stdin": true, "tag": "t"})).await;
        let path = format!("/v1/processes/{}/input", started["id"].as_str().unwrap());
        assert_eq!(server.post(&path, "one ").await.status, 200);
        assert_eq!(server.post(&path, "two").await.status, 200);
        for _twice in 0..2 {
            let mut client = server.connect().await;
            assert_eq!(client.request(request("DELETE", &path, "")).await.status, 200);
        }
        let refused = server.post(&path, "three").await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (409, &json!("no_input")));
        let events = to_its_end(&server, &started).await;
        assert_eq!(text(&events, "stdout"), "one two");
        let listed = server.get("/v1/processes").await.json();
        assert_eq!(
            (&listed["processes"][0]["tag"], &listed["processes"][0]["end"]["exit_code"]),
            (&json!("t"), &json!(0))
        );
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lives_on_without_followers_until_it_gets_a_signal_or_is_removed() {
    within(async {
        let server = Server::start().await;
        let started = start(&server, shell("echo here; sleep 60")).await;
        let path = format!("/v1/processes/{}", started["id"].as_str().unwrap());
        let mut first = server.stream(&format!("{path}/output")).await;
        assert_eq!(first.next().await.unwrap().data["text"], "here\n");
        drop(first);
        assert_eq!(server.get(&path).await.json()["end"], Value::Null);
        let unknown = server.post(&format!("{path}/signal"), json!({"name": "STOPP"}).to_string()).await;
        assert_eq!(unknown.status, 400);
        let mut second = server.stream(&format!("{path}/output?from=now")).await;
        let kill = json!({"name": "KILL", "group": true}).to_string();
        assert_eq!(server.post(&format!("{path}/signal"), kill.clone()).await.status, 200);
        assert_eq!(second.until("exit").await.last().unwrap().data["signal"], 9);
        assert_eq!(server.post(&format!("{path}/signal"), kill).await.status, 409);
        let other = start(&server, shell("sleep 60")).await;
        let path = format!("/v1/processes/{}", other["id"].as_str().unwrap());
        let mut client = server.connect().await;
        let removed = client.request(request("DELETE", &path, "")).await;
        assert!(removed.status == 200 && !removed.json()["end"].is_null(), "{}", removed.text());
        assert_eq!(server.get(&path).await.status, 404);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_leaves_in_the_background_goes_on_and_does_not_hold_back_its_end() {
    within(async {
        let server = Server::start().await;
        let directory = tempfile::tempdir().unwrap();
        let left = directory.path().join("left");
        let text = format!("(sleep 0.5; echo x > {}; sleep 60) & exit 0", left.display());
        let events = to_its_end(&server, &start(&server, shell(&text)).await).await;
        assert_eq!(events.last().unwrap().data["exit_code"], 0);
        while !left.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_start_nothing_and_say_why() {
    within(async {
        let server = Server::start().await;
        for (body, code) in [
            (json!({"argv": []}), "invalid_request"),
            (json!({"argv": ["a\0b"]}), "invalid_request"),
            (json!({"argv": ["true"], "env": {"A=B": "c"}}), "invalid_request"),
            (json!({"argv": ["true"], "timeout": 0}), "invalid_request"),
            (json!({"argv": ["true"], "cwd": "relative"}), "invalid_request"),
            (json!({"argv": ["true"], "tag": "x".repeat(300)}), "invalid_request"),
            (json!({"argv": ["true"], "shell": true}), "invalid_request"),
            (json!({"argv": ["true"], "cwd": "/no/such"}), "no_such_directory"),
            (json!({"argv": ["no-such-program"]}), "no_such_program"),
        ] {
            let answer = server.post("/v1/processes", body.to_string()).await;
            assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!(code)), "{body}");
        }
        assert_eq!(server.get("/v1/processes/none").await.status, 404);
        assert_eq!(server.get("/v1/processes").await.json()["processes"], json!([]));
        server.stop().await;
    })
    .await;
}
