//! Terminals over WebSockets: bytes, sizes, offsets, keys and ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::time::Duration;

use crate::common::{Answer, Server, within};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_executor::ExecutorOptions;
use gloveport_server::{DrainEnd, ServerLimits, ServerOptions, SessionKey};
use http::{HeaderValue, Request};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _, protocol::CloseFrame},
};

/// A client that is attached, and what it got.
struct Attached {
    socket: WebSocketStream<TcpStream>,
    /// Output since the start.
    bytes: Vec<u8>,
    messages: Vec<Value>,
    close: Option<(u16, String)>,
}

impl Attached {
    async fn connect(server: &Server, path: &str) -> Self {
        Self::with(server, path, |_| {}).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn with(server: &Server, path: &str, change: impl FnOnce(&mut Request<()>)) -> Result<Self, Error> {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
        change(&mut request);
        let (socket, _) = client_async(request, stream).await?;
        let mut attached = Self { socket, bytes: Vec::new(), messages: Vec::new(), close: None };
        attached.step().await;
        assert_eq!(attached.messages[0]["type"], "start");
        Ok(attached)
    }

    /// Takes one message. False at the end.
    async fn step(&mut self) -> bool {
        match self.socket.next().await {
            Some(Ok(Message::Binary(bytes))) => self.bytes.extend_from_slice(&bytes),
            Some(Ok(Message::Text(text))) => self.messages.push(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(frame))) => {
                self.close = frame.map(|CloseFrame { code, reason }| (code.into(), reason.as_str().to_owned()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
        true
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    async fn until(&mut self, text: &str) {
        while !self.text().contains(text) {
            assert!(self.step().await, "no {text:?} in {:?}", self.text());
        }
    }

    /// Everything to the end; the message `exit`.
    async fn exit(&mut self) -> Value {
        while self.step().await {}
        assert_eq!(self.close.as_ref().map(|(code, _)| *code), Some(1000), "{:?} {:?}", self.close, self.messages);
        self.messages.last().unwrap().clone()
    }

    async fn type_in(&mut self, bytes: &[u8]) {
        self.socket.send(Message::Binary(bytes.to_vec().into())).await.unwrap();
    }

    async fn say(&mut self, message: Value) {
        self.socket.send(Message::Text(message.to_string().into())).await.unwrap();
    }

    async fn message(&mut self, kind: &str) -> Value {
        loop {
            if let Some(message) = self.messages.iter().find(|message| message["type"] == kind) {
                return message.clone();
            }
            assert!(self.step().await, "no {kind} in {:?}", self.messages);
        }
    }
}

async fn start(server: &Server, body: Value) -> Value {
    let answer = server.post("/v1/terminals", body.to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

fn sh(id: &str, script: &str) -> Value {
    json!({"id": id, "argv": ["sh", "-c", script]})
}

async fn delete(server: &Server, path: &str) -> Answer {
    server.connect().await.request(crate::common::request("DELETE", path, "")).await
}

fn code(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert!(
        !body["error"]["message"].as_str().unwrap().is_empty() && !body["error"]["hint"].as_str().unwrap().is_empty()
    );
    (answer.status.as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_shell_is_started_where_the_session_is_and_tells_its_exit() {
    within(async {
        let server = Server::start().await;
        std::fs::create_dir(server.directory.path().join("inner")).unwrap();
        server.run("cd inner").await;
        let status = start(&server, json!({"columns": 91, "rows": 31, "env": {"TERM": "xterm", "WORD": "grün"}})).await;
        let id = status["id"].as_str().unwrap();
        assert_eq!(
            (&status["state"], &status["columns"], &status["attached"]),
            (&json!("running"), &json!(91), &json!(0))
        );
        let mut attached = Attached::connect(&server, &format!("/v1/terminals/{id}/attach")).await;
        attached.type_in("pwd; stty size; echo \"<$TERM $WORD>\"; exit 3\r".as_bytes()).await;
        let exit = attached.exit().await;
        assert_eq!(exit, json!({"type": "exit", "exit_code": 3, "signal": null}));
        let text = attached.text();
        let inner = server.directory.path().join("inner");
        assert!(text.contains(&format!("{}\r\n31 91\r\n<xterm grün>\r\n", inner.display())), "{text}");
        let listed = server.get("/v1/terminals").await.json();
        assert_eq!(
            (&listed["terminals"][0]["state"], &listed["terminals"][0]["exit_code"]),
            (&json!("ended"), &json!(3))
        );
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_same_id_is_attached_to_and_never_started_twice() {
    within(async {
        let server = Server::start().await;
        let body = sh("one", "echo run >>runs; read x; echo got $x; read x");
        let (first, second) = tokio::join!(
            server.post("/v1/terminals", body.to_string()),
            server.post("/v1/terminals", body.to_string())
        );
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 201]);
        assert_eq!(first.json()["pid"], second.json()["pid"]);
        // What it is looked at with does not matter; what runs does.
        let mut other = body.clone();
        other["columns"] = json!(100);
        other["env"] = json!({"TERM": "vt100"});
        assert_eq!(server.post("/v1/terminals", other.to_string()).await.status, 200);
        for change in [json!({"argv": ["sh"]}), json!({"cwd": "/"}), json!({"env": {"A": "b"}})] {
            let mut other = body.clone();
            other.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let answer = server.post("/v1/terminals", other.to_string()).await;
            assert_eq!(code(&answer), (409, "id_conflict".to_owned()), "{change}");
        }
        let mut attached = Attached::connect(&server, "/v1/terminals/one/attach").await;
        attached.type_in(b"x\r").await;
        attached.until("got x\r\n").await;
        assert_eq!(std::fs::read_to_string(server.directory.path().join("runs")).unwrap(), "run\n");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn two_clients_see_the_same_and_both_can_type_and_resize() {
    within(async {
        let server = Server::start().await;
        start(&server, sh("two", "stty -echo; echo ready; while read x; do echo \"[$x]\"; stty size; done")).await;
        let mut one = Attached::connect(&server, "/v1/terminals/two/attach").await;
        let mut two = Attached::connect(&server, "/v1/terminals/two/attach?columns=100&rows=40").await;
        one.until("ready").await;
        one.type_in("ä\r".as_bytes()).await;
        for attached in [&mut one, &mut two] {
            attached.until("[ä]\r\n40 100\r\n").await;
        }
        one.say(json!({"type": "resize", "columns": 77, "rows": 7})).await;
        one.type_in(b"y\r").await;
        for attached in [&mut one, &mut two] {
            attached.until("[y]\r\n7 77\r\n").await;
        }
        let resized = server.post("/v1/terminals/two/resize", json!({"columns": 5, "rows": 6}).to_string()).await;
        assert_eq!((&resized.json()["columns"], &resized.json()["attached"]), (&json!(5), &json!(2)));
        two.type_in(b"z\r\x04").await;
        for attached in [&mut one, &mut two] {
            assert_eq!(attached.exit().await["exit_code"], 0);
            assert!(attached.text().ends_with("[z]\r\n6 5\r\n"), "{}", attached.text());
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_came_meanwhile_from_its_offset() {
    within(async {
        let server = Server::start().await;
        start(&server, sh("back", "echo before; read x; seq 1 20000; read y; echo end")).await;
        let mut attached = Attached::connect(&server, "/v1/terminals/back/attach").await;
        attached.until("before\r\n").await;
        let seen = attached.bytes.len();
        attached.type_in(b"go\r").await;
        drop(attached);
        let mut attached = Attached::connect(&server, &format!("/v1/terminals/back/attach?offset={seen}")).await;
        assert_eq!(attached.messages[0]["offset"], seen);
        attached.until("\r\n20000\r\n").await;
        let numbers = (1..=20000).map(|number| number.to_string()).collect::<Vec<_>>().join("\r\n");
        assert_eq!(attached.text(), format!("go\r\n{numbers}\r\n"));
        attached.type_in(b"\r").await;
        assert_eq!(attached.exit().await["exit_code"], 0);
        // What ended can still be read, from any offset.
        let mut late = Attached::connect(&server, "/v1/terminals/back/attach").await;
        assert_eq!(late.exit().await["exit_code"], 0);
        assert!(late.text().starts_with("before\r\ngo\r\n1\r\n") && late.text().ends_with("\r\nend\r\n"));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_comes_again_is_told_how_much_of_its_input_arrived() {
    within(async {
        let server = Server::start().await;
        start(&server, sh("input", "stty -echo; echo ready; while read x; do echo \"[$x]\"; done")).await;
        let path = "/v1/terminals/input/attach?client=me";
        let mut first = Attached::connect(&server, path).await;
        assert_eq!(first.messages[0]["input"], 0);
        first.until("ready").await;
        first.type_in(b"one\r").await;
        first.until("[one]").await;
        let mut second = Attached::connect(&server, path).await;
        assert_eq!(second.messages[0]["input"], 4);
        while first.step().await {}
        assert_eq!(first.close.as_ref().unwrap().0, 4001);
        second.type_in(&b"xxx\r".repeat(2000)).await;
        assert_eq!(second.message("input").await["offset"], 8004);
        // Others are counted for themselves.
        let other = Attached::connect(&server, "/v1/terminals/input/attach?client=other").await;
        assert_eq!(other.messages[0]["input"], 0);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_client_holds_up_nobody_and_is_told_what_it_missed() {
    const SIZE: u64 = 100_000_000;
    within(async {
        let server = Server::with_executor(ServerOptions::default(), |options| ExecutorOptions {
            spool_size: 4 * 1024 * 1024,
            ..options
        })
        .await;
        start(&server, sh("slow", "stty raw; read x; head -c 100000000 /dev/zero; printf end; read y")).await;
        let mut slow = Attached::connect(&server, "/v1/terminals/slow/attach").await;
        let mut typist = Attached::connect(&server, "/v1/terminals/slow/attach").await;
        typist.type_in(b"\n").await;
        // The slow one takes nothing while all of it is written.
        let end = async {
            while server.get("/v1/terminals/slow").await.json()["end"].as_u64().unwrap() < SIZE + 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = end => {}
            () = async { while typist.step().await {} } => panic!("it ended"),
        }
        slow.until("end").await;
        let lost: u64 = slow
            .messages
            .iter()
            .filter(|message| message["type"] == "gap")
            .map(|gap| gap["to"].as_u64().unwrap() - gap["from"].as_u64().unwrap())
            .sum();
        assert!(lost > 0);
        let echoed = slow.messages[0]["offset"].as_u64().unwrap();
        assert!(slow.bytes.len() as u64 + lost + echoed >= SIZE + 3, "{} {lost}", slow.bytes.len());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn input_that_no_program_reads_is_not_read_from_the_client() {
    within(async {
        let server = Server::start().await;
        start(&server, sh("flood", "stty raw -echo; echo ready; sleep 1000")).await;
        let mut flooder = Attached::connect(&server, "/v1/terminals/flood/attach?client=flooder").await;
        flooder.until("ready").await;
        let chunk = Message::Binary(vec![b'x'; 64 * 1024].into());
        let flood = async { while flooder.socket.send(chunk.clone()).await.is_ok() {} };
        assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
        // Another client is served, and can end it.
        let mut other = Attached::connect(&server, "/v1/terminals/flood/attach").await;
        other.say(json!({"type": "signal", "name": "TERM"})).await;
        let exit = other.exit().await;
        assert_eq!((&exit["exit_code"], &exit["signal"]), (&json!(143), &json!(15)));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_key_is_needed_in_the_header_or_as_a_protocol() {
    within(async {
        let options = ServerOptions { session_key: Some(SessionKey::new("secret")), ..ServerOptions::default() };
        let server = Server::with(options).await;
        let mut post = crate::common::request("POST", "/v1/terminals", sh("key", "read x").to_string());
        post.headers_mut().insert("x-session-api-key", HeaderValue::from_static("secret"));
        assert_eq!(server.connect().await.request(post).await.status, 201);
        let path = "/v1/terminals/key/attach";
        for (header, protocols, admitted) in [
            (None, None, false),
            (Some("wrong"), None, false),
            (Some("secret"), None, true),
            (None, Some("gloveport.key.d3Jvbmc"), false),
            (None, Some("gloveport.terminal.v1, gloveport.key.d3Jvbmc"), false),
            (None, Some("gloveport.terminal.v1, gloveport.key.c2VjcmV0"), true),
        ] {
            let result = Attached::with(&server, path, |request| {
                let headers = [("x-session-api-key", header), ("sec-websocket-protocol", protocols)];
                for (name, value) in headers.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                    request.headers_mut().insert(name, HeaderValue::from_static(value));
                }
            })
            .await;
            match result {
                Ok(_) => assert!(admitted, "{header:?} {protocols:?}"),
                Err(Error::Http(response)) => assert_eq!((response.status().as_u16(), admitted), (403, false)),
                Err(error) => panic!("{header:?} {protocols:?}: {error}"),
            }
        }
        let url = server.get("/v1/terminals/key/attach?key=secret").await;
        assert_eq!(url.status, 403);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_attach_to_a_server_without_a_key() {
    within(async {
        let server = Server::start().await;
        start(&server, sh("page", "read x")).await;
        let result = Attached::with(&server, "/v1/terminals/page/attach", |request| {
            request.headers_mut().insert("origin", HeaderValue::from_static("https://example.org"));
        })
        .await;
        assert!(matches!(result, Err(Error::Http(response)) if response.status() == 403));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_deleted_terminal_leaves_nothing_and_its_clients_are_told() {
    within(async {
        let server = Server::start().await;
        let status = start(&server, sh("gone", "trap '' HUP TERM; echo ready; sleep 999; sleep 999")).await;
        let mut attached = Attached::connect(&server, "/v1/terminals/gone/attach").await;
        attached.until("ready").await;
        let answer = delete(&server, "/v1/terminals/gone").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["exit_code"]), (200, &json!(137)));
        let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
        assert!(gloveport_sys::process::in_session(pid).is_empty());
        assert_eq!(attached.exit().await["signal"], 9);
        assert_eq!(code(&delete(&server, "/v1/terminals/gone").await), (404, "unknown_terminal".to_owned()));
        assert_eq!(code(&server.get("/v1/terminals/gone").await), (404, "unknown_terminal".to_owned()));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn timed_a_server_that_stops_closes_with_1001_and_ends_the_programs() {
    within(async {
        let server = Server::start().await;
        let status = start(&server, sh("stop", "echo ready; sleep 999")).await;
        let mut attached = Attached::connect(&server, "/v1/terminals/stop/attach").await;
        attached.until("ready").await;
        let began = std::time::Instant::now();
        let (end, ()) = tokio::join!(server.stop(), async { while attached.step().await {} });
        assert_eq!(end, DrainEnd::Drained);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(attached.close.unwrap().0, 1001);
        let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
        assert!(gloveport_sys::process::in_session(pid).is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_attached_client_may_be_idle_for_longer_than_a_connection_and_silence_is_an_end() {
    within(async {
        let second = Duration::from_secs(1);
        let limits = ServerLimits { idle_timeout: second, header_timeout: second / 10, ..ServerLimits::default() };
        let server = Server::with(ServerOptions { limits, ..ServerOptions::default() }).await;
        start(&server, sh("idle", "stty -echo; echo ready; while read x; do echo \"[$x]\"; done")).await;
        let mut attached = Attached::connect(&server, "/v1/terminals/idle/attach").await;
        attached.until("ready").await;
        // Anything counts, so also the answer to a ping.
        for _round in 0..6 {
            tokio::time::sleep(second / 4).await;
            attached.socket.send(Message::Pong(Vec::new().into())).await.unwrap();
        }
        attached.type_in(b"there\r").await;
        attached.until("[there]").await;
        server.until_metric("gloveport_connections_open", 2.0).await;
        while attached.step().await {}
        assert_eq!(attached.close.unwrap().0, 4000);
        server.until_metric("gloveport_connections_open", 1.0).await;
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn wrong_requests_and_messages_are_refused_with_a_reason() {
    within(async {
        let server = Server::start().await;
        for (body, expected) in [
            (json!({"argv": []}), (400, "invalid_request")),
            (json!({"argv": ["no-such-program"]}), (400, "no_such_program")),
            (json!({"argv": ["/no/such/program"]}), (400, "no_such_program")),
            (json!({"argv": ["a\0b"]}), (400, "invalid_request")),
            (json!({"cwd": "/no/such"}), (400, "no_such_directory")),
            (json!({"env": {"A=B": ""}}), (400, "invalid_request")),
            (json!({"columns": 0}), (400, "invalid_request")),
            (json!({"id": "a/b"}), (400, "invalid_request")),
            (json!({"argv": ["/etc/passwd"]}), (400, "no_such_program")),
        ] {
            let answer = server.post("/v1/terminals", body.to_string()).await;
            assert_eq!(code(&answer), (expected.0, expected.1.to_owned()), "{body}");
        }
        assert_eq!(server.get("/v1/terminals").await.json(), json!({"terminals": []}));
        start(&server, sh("w", "echo ready; read x")).await;
        for (query, status) in [
            ("?offset=99999", 416),
            ("?columns=3", 400),
            ("?columns=0&rows=1", 400),
            ("?client=a%2Fb", 400),
            ("?x=1", 400),
        ] {
            let path = format!("/v1/terminals/w/attach{query}");
            match Attached::with(&server, &path, |_| {}).await {
                Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status, "{query}"),
                other => panic!("{query}: {}", other.is_ok()),
            }
        }
        assert_eq!(code(&server.get("/v1/terminals/w/attach").await), (426, "not_a_websocket".to_owned()));
        let mut attached = Attached::connect(&server, "/v1/terminals/w/attach").await;
        attached.say(json!({"type": "signal", "name": "SEGV"})).await;
        assert!(attached.message("error").await["message"].as_str().unwrap().contains("SEGV"));
        attached.say(json!({"type": "dance"})).await;
        while attached.step().await {}
        let (code, reason) = attached.close.clone().unwrap();
        assert!(code == 1008 && reason.contains("dance"), "{code} {reason}");
        let mut attached = Attached::connect(&server, "/v1/terminals/w/attach").await;
        let _broken = attached.socket.send(Message::Binary(vec![0; 300 * 1024].into())).await;
        while attached.step().await {}
        assert!(attached.close.is_none_or(|(code, _)| code == 1008));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn there_is_a_bound_on_terminals_and_ended_ones_are_forgotten() {
    within(async {
        let server = Server::start().await;
        for number in 0..64 {
            start(&server, sh(&format!("t{number}"), "read x")).await;
        }
        let answer = server.post("/v1/terminals", sh("more", "read x").to_string()).await;
        assert_eq!(code(&answer), (429, "too_many_terminals".to_owned()));
        for number in 0..40 {
            assert_eq!(delete(&server, &format!("/v1/terminals/t{number}")).await.status, 200);
        }
        for number in 0..40 {
            start(&server, sh(&format!("e{number}"), "exit 0")).await;
            let mut attached = Attached::connect(&server, &format!("/v1/terminals/e{number}/attach")).await;
            attached.exit().await;
        }
        let list = server.get("/v1/terminals").await.json();
        let ended = list["terminals"].as_array().unwrap().iter().filter(|one| one["state"] == "ended").count();
        assert_eq!(ended, 32);
        assert_eq!(list["terminals"].as_array().unwrap().len(), 24 + 32);
        server.stop().await;
    })
    .await;
}
