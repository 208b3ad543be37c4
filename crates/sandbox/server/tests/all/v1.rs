//! The native API: streams that survive a lost connection.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use crate::common::{Event, Server, request, text, within};
use gloveport_server::ServerOptions;
use serde_json::{Value, json};

fn error(answer: &crate::common::Answer) -> (u16, String) {
    let body = answer.json();
    for field in ["message", "hint"] {
        assert!(!body["error"][field].as_str().unwrap().is_empty(), "{body}");
    }
    (answer.status.as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[tokio::test]
async fn a_stream_tells_start_output_and_exit_with_their_offsets() {
    within(async {
        let server = Server::start().await;
        let mut events =
            server.events("/v1/exec", &json!({"id": "a", "command": "printf 'x=\\303\\237\\n'; false"}), None).await;
        assert_eq!(events.id, "a");
        let all = events.until("exit").await;
        assert_eq!(events.next().await, None);
        let start = all[0].clone();
        assert_eq!(start.data, json!({"id": "a", "offset": start.id, "repeated": false}));
        assert_eq!(text(&all), "x=ß\n");
        let mut offset = start.id;
        for event in all.iter().filter(|event| event.name == "output") {
            assert_eq!(event.data["offset"], offset);
            offset += event.data["text"].as_str().unwrap().len() as u64;
            assert_eq!(event.id, offset);
        }
        let exit = all.last().unwrap();
        assert_eq!(exit.id, offset);
        assert_eq!(
            (&exit.data["exit_code"], &exit.data["reason"], &exit.data["start"], &exit.data["end"]),
            (&json!(1), &json!("exited"), &json!(start.id), &json!(offset))
        );
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_lost_stream_continues_behind_the_last_event_and_the_command_runs_once() {
    within(async {
        let server = Server::start().await;
        let body = json!({"id": "once", "command": "echo run >> count; echo one; read x; echo \"two $x\""});
        let mut events = server.events("/v1/exec", &body, None).await;
        let seen = events.until("waiting").await;
        assert_eq!(seen.last().unwrap().data, json!({"waiting_for_input": true}));
        assert_eq!(text(&seen), "one\n");
        let last = seen.last().unwrap().id;
        drop(events);

        let mut again = server.events("/v1/exec", &body, Some(last)).await;
        let start = again.next().await.unwrap();
        assert_eq!(start.data, json!({"id": "once", "offset": last, "repeated": true}));
        again.until("waiting").await;
        let sent = server.post("/v1/exec/once/input", "{\"text\": \"more\"}").await;
        assert_eq!((sent.status.as_u16(), &sent.json()["state"]), (202, &json!("running")));
        let more = again.until("exit").await;
        assert!(text(&more).ends_with("two more\n"), "{more:?}");
        assert!(!text(&more).contains("one"), "{more:?}");

        // From the beginning, when everything is over.
        let mut whole = server.events("/v1/exec", &body, None).await;
        let whole = whole.until("exit").await;
        assert_eq!(whole[0].data["repeated"], true);
        assert_eq!(text(&whole), format!("{}{}", text(&seen), text(&more)));
        // Behind the end there is only the end.
        let mut end = server.events("/v1/exec", &body, Some(whole.last().unwrap().id)).await;
        assert_eq!(names(&end.until("exit").await), ["start", "exit"]);

        let count = std::fs::read_to_string(server.directory.path().join("count")).unwrap();
        assert_eq!(count, "run\n");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_character_that_arrives_in_two_parts_is_one_event() {
    within(async {
        let server = Server::start().await;
        let command = "printf 'a\\342\\202'; read -s x; printf '\\254b'";
        let mut events = server.events("/v1/exec", &json!({"command": command}), None).await;
        assert_eq!(text(&events.until("waiting").await), "a");
        server.post(&format!("/v1/exec/{}/input", events.id), "{\"text\": \"\"}").await;
        let rest = events.until("exit").await;
        let all: Vec<&str> = rest
            .iter()
            .filter(|event| event.name == "output")
            .map(|event| event.data["text"].as_str().unwrap())
            .collect();
        assert!(all.concat().ends_with('b') && all[0].starts_with('€'), "{rest:?}");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_text_come_as_base64_and_all_of_them() {
    within(async {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let server = Server::start().await;
        let mut events = server.events("/v1/exec", &json!({"command": "printf '\\377\\376ok\\303'"}), None).await;
        let all = events.until("exit").await;
        let bytes: Vec<u8> = all
            .iter()
            .filter(|event| event.name == "output")
            .flat_map(|event| match event.data["text"].as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => STANDARD.decode(event.data["base64"].as_str().unwrap()).unwrap(),
            })
            .collect();
        assert_eq!(bytes, b"\xff\xfeok\xc3");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_interrupt_ends_a_command_and_dropping_the_stream_does_not() {
    within(async {
        let server = Server::start().await;
        let body = json!({"id": "long", "command": "echo on; sleep 1000"});
        let mut events = server.events("/v1/exec", &body, None).await;
        events.until("output").await;
        drop(events);
        let status = server.get("/v1/exec/long").await.json();
        assert_eq!((&status["state"], &status["command"]), (&json!("running"), &json!("echo on; sleep 1000")));
        assert_eq!(server.get("/v1/exec").await.json()["execs"][0]["id"], "long");
        let mut events = server.events("/v1/exec", &body, None).await;
        events.until("output").await;
        assert_eq!(server.post("/v1/exec/long/interrupt", "").await.status, 202);
        assert_eq!(events.until("exit").await.last().unwrap().data["exit_code"], 130);
        let refused = server.post("/v1/exec/long/interrupt", "").await;
        assert_eq!(error(&refused), (409, "not_running".into()));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn wrong_requests_are_refused_with_a_code_and_the_field() {
    within(async {
        let server = Server::start().await;
        server.events("/v1/exec", &json!({"id": "known", "command": "echo 1"}), None).await.until("exit").await;
        for (method, path, body, status, code, part) in [
            ("POST", "/v1/exec", "{\"command\": \"a\", \"colour\": 1}", 400, "invalid_request", "`colour`"),
            ("POST", "/v1/exec", "{\"command\": 1}", 400, "invalid_request", "string"),
            ("POST", "/v1/exec", "{}", 400, "invalid_request", "`command`"),
            ("POST", "/v1/exec", "{", 400, "invalid_request", "EOF"),
            ("POST", "/v1/exec", "{\"command\": \" \"}", 400, "invalid_request", "command is empty"),
            ("POST", "/v1/exec", "{\"command\": \"a\", \"cwd\": \"/\"}", 400, "invalid_request", "new"),
            ("POST", "/v1/exec", "{\"command\": \"a\", \"timeout\": -1}", 400, "invalid_request", "timeout"),
            (
                "POST",
                "/v1/exec",
                "{\"command\": \"a\", \"session\": \"new\", \"cwd\": \"/nowhere\"}",
                400,
                "no_such_directory",
                "/nowhere",
            ),
            ("POST", "/v1/exec?follow=perhaps", "{\"command\": \"a\"}", 400, "invalid_query", "follow"),
            ("POST", "/v1/exec?colour=1", "{\"command\": \"a\"}", 400, "invalid_query", "`colour`"),
            ("POST", "/v1/exec", "{\"id\": \"known\", \"command\": \"echo 2\"}", 409, "id_conflict", "`known`"),
            ("POST", "/v1/exec", "{\"id\": \"a/b\", \"command\": \"echo 2\"}", 400, "invalid_request", "id"),
            ("GET", "/v1/exec/unknown", "", 404, "unknown_exec", "`unknown`"),
            ("GET", "/v1/exec/unknown/output", "", 404, "unknown_exec", "`unknown`"),
            ("POST", "/v1/exec/unknown/input", "{\"text\": \"\"}", 404, "unknown_exec", "`unknown`"),
            ("POST", "/v1/exec/known/input", "{\"text\": \"\"}", 409, "not_running", "`known`"),
            ("POST", "/v1/exec/known/input", "{\"key\": \"\"}", 400, "invalid_request", "`key`"),
            ("GET", "/v1/exec/%ff", "", 400, "invalid_path", "UTF-8"),
            ("GET", "/v1/exec/known/output?offset=x", "", 400, "invalid_query", "offset"),
            ("GET", "/v1/exec/known/output?offset=99999999", "", 416, "offset_ahead", "99999999"),
        ] {
            let answer = server.connect().await.request(request(method, path, body)).await;
            assert_eq!(error(&answer), (status, code.to_owned()), "{method} {path} {body}");
            let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(part), "{message} has no {part}");
        }
        for (body, last, status, code) in [
            ("{\"id\": \"known\", \"command\": \"echo 1\"}", "x", 400, "invalid_last_event_id"),
            ("{\"id\": \"known\", \"command\": \"echo 1\"}", "99999999", 416, "offset_ahead"),
            ("{\"command\": \"touch made\"}", "1", 400, "invalid_last_event_id"),
            ("{\"id\": \"forgotten\", \"command\": \"touch made\"}", "1", 404, "unknown_exec"),
        ] {
            let mut wrong = request("POST", "/v1/exec", body);
            wrong.headers_mut().insert("last-event-id", last.parse().unwrap());
            let answer = server.connect().await.request(wrong).await;
            assert_eq!(error(&answer), (status, code.to_owned()), "{body} {last}");
        }
        assert!(!server.directory.path().join("made").exists());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn output_can_be_read_from_any_offset() {
    within(async {
        let server = Server::start().await;
        server.run("echo before").await;
        let body = json!({"id": "r", "command": "echo 0123456789"}).to_string();
        let started = server.post("/v1/exec?follow=false", body).await;
        assert_eq!((started.status.as_u16(), &started.json()["id"]), (202, &json!("r")));
        let whole = server.get("/v1/exec/r/output?follow=true").await;
        assert_eq!(whole.text(), "0123456789\n");
        assert_eq!(whole.header("x-output-next"), None);

        let first = server.get("/v1/exec/r/output?max=4").await;
        // Offsets are those of this command, whatever the session has shown before it.
        assert_eq!((first.text(), first.header("content-type")), ("0123".into(), Some("application/octet-stream")));
        assert_eq!((first.header("x-output-offset"), first.header("x-output-next")), (Some("0"), Some("4")));
        assert_eq!(first.header("x-output-state"), Some("ended"));
        assert_eq!(server.get("/v1/exec/r/output?offset=0").await.text(), "0123456789\n");
        assert_eq!(server.get("/v1/exec/r/output?offset=4").await.text(), "456789\n");
        let none = server.get("/v1/exec/r/output?offset=11").await;
        assert_eq!((none.text(), none.header("x-output-next")), (String::new(), Some("11")));
        let ahead = server.get("/v1/exec/r/output?offset=12").await;
        assert_eq!(error(&ahead), (416, "offset_ahead".into()));
        let status = server.get("/v1/exec/r").await.json();
        assert_eq!((&status["start"], &status["end"]), (&json!(0), &json!(11)));

        let mut events = request("GET", "/v1/exec/r/output?offset=8", "");
        events.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
        let events = server.events_of(events).await.until("exit").await;
        assert_eq!(text(&events), "89\n");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn output_that_is_gone_is_a_gap_in_a_stream_and_410_elsewhere() {
    within(async {
        let server = Server::with_executor(ServerOptions::default(), |options| gloveport_executor::ExecutorOptions {
            spool_size: 100_000,
            ..options
        })
        .await;
        let body = json!({"id": "big", "command": "head -c 2000000 /dev/zero | tr '\\0' x"});
        server.events("/v1/exec", &body, None).await.until("exit").await;
        let mut events = server.events("/v1/exec", &body, None).await;
        let all = events.until("exit").await;
        assert_eq!(names(&all)[..2], ["start", "gap"]);
        let (start, gap) = (all[0].id, &all[1]);
        assert_eq!((&gap.data["from"], &gap.data["to"]), (&json!(start), &json!(gap.id)));
        assert_eq!(text(&all).len() as u64, all.last().unwrap().id - gap.id);
        let gone = server.get("/v1/exec/big/output").await;
        assert_eq!(error(&gone), (410, "output_gone".into()));
        let kept = server.get(&format!("/v1/exec/big/output?offset={}", gap.id)).await;
        assert!(kept.body.iter().all(|byte| *byte == b'x') && !kept.body.is_empty());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_session_of_its_own_has_its_directory_and_variables() {
    within(async {
        let server = Server::start().await;
        let body = json!({"command": "pwd; echo $K", "session": "new", "cwd": "/", "env": {"K": "v"}});
        let mut events = server.events("/v1/exec", &body, None).await;
        let all = events.until("exit").await;
        assert_eq!(text(&all), "/\nv\n");
        assert_eq!(all.last().unwrap().data["exit_code"], Value::from(0));
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_nothing_of_the_command_behind_it() {
    within(async {
        let server = Server::start().await;
        for round in 0..100 {
            let (first, second) = (format!("a{round}"), format!("b{round}"));
            let body = json!({"id": first, "command": "echo first"});
            let mut events = server.events("/v1/exec", &body, None).await;
            let body = json!({"id": second, "command": "echo second"}).to_string();
            server.post("/v1/exec?follow=false", body).await;
            let all = events.until("exit").await;
            assert_eq!(text(&all), "first\n");
            assert_eq!(all.last().unwrap().id, all.last().unwrap().data["end"].as_u64().unwrap());
            assert_eq!(server.get(&format!("/v1/exec/{second}/output?follow=true")).await.text(), "second\n");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_silent_stream_has_comments() {
    within(async {
        let server = Server::start().await;
        let mut events = server.events("/v1/exec", &json!({"command": "echo on; sleep 1000"}), None).await;
        events.until("output").await;
        // From here on time passes as soon as nothing else happens.
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        assert_eq!(events.frame().await, ": keep-alive\n\n");
        // It counts from the output, which was a moment before.
        let silence = began.elapsed().as_secs_f64();
        assert!((14.0..15.5).contains(&silence), "{silence}");
        tokio::time::resume();
        server.stop().await;
    })
    .await;
}
