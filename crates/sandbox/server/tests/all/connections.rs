//! Connections that are slow, many, large, or gone.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use crate::common::{Server, request, run, within};
use gloveport_server::{DrainEnd, ServerLimits, ServerOptions};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

fn limited(change: impl FnOnce(&mut ServerLimits)) -> ServerOptions {
    let mut options = ServerOptions::default();
    change(&mut options.limits);
    options
}

/// Everything that the server sends until it closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

fn named_pipe(server: &Server) -> std::path::PathBuf {
    let path = server.directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    path
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused_before_it_is_read() {
    within(async {
        let server = Server::start().await;
        let answer = server.post("/execute_action", vec![b'x'; 100_000_000]).await;
        let detail = "The request body is larger than 67108864 bytes";
        assert_eq!((answer.status.as_u16(), answer.json()), (413, json!({ "detail": detail })));
        let answer = server.post("/v1/exec", vec![b'x'; 100_000_000]).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (413, &json!("body_too_large")));
        assert!(server.metric("gloveport_process_resident_bytes").await > 0.0);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn texts_that_cost_many_times_their_length_are_refused_and_files_are_not() {
    within(async {
        let server = Server::start().await;
        let long = "x".repeat(17_000_000);
        let path = server.directory.path().join("file");
        for (kind, args, status) in [
            ("run", json!({"command": long}), 413),
            ("run_ipython", json!({"code": long}), 413),
            ("edit", json!({"path": path, "command": "str_replace", "old_str": "a", "new_str": long}), 413),
            ("edit", json!({"path": path, "command": "insert", "insert_line": 0, "new_str": long}), 413),
            ("write", json!({"path": path, "content": long}), 200),
        ] {
            let action = json!({"action": {"action": kind, "args": args}}).to_string();
            let answer = server.post("/execute_action", action).await;
            let text = answer.text();
            assert_eq!(answer.status.as_u16(), status, "{kind} {}", &text[..text.len().min(300)]);
        }
        for path in ["/v1/exec", "/v1/files/grep", "/v1/files/glob", "/v1/terminals"] {
            let body = json!({"command": long, "pattern": long}).to_string();
            let answer = server.post(path, body).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.json()["error"]["code"]),
                (413, &json!("body_too_large")),
                "{path}"
            );
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_chunked_body_is_refused_at_the_limit() {
    within(async {
        let server = Server::with(limited(|limits| limits.json_body = 100_000)).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream
            .write_all(b"POST /execute_action HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        let chunk = [b"1000\r\n".as_slice(), &[b'x'; 4096], b"\r\n"].concat();
        for _chunk in 0..50 {
            stream.write_all(&chunk).await.unwrap();
        }
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_idle_connections_do_not_hold_up_a_request() {
    within(async {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
        let server = Server::with(limited(|limits| limits.idle_timeout = Duration::from_secs(3))).await;
        let mut idle = Vec::new();
        for _connection in 0..1000 {
            idle.push(TcpStream::connect(server.address).await.unwrap());
        }
        assert_eq!(server.run("echo hi").await["content"], "hi");
        // None of them stays for ever.
        for mut stream in idle {
            assert_eq!(rest(&mut stream).await, "");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_head_of_one_byte_at_a_time_is_answered_with_408() {
    within(async {
        let server = Server::with(limited(|limits| limits.header_timeout = Duration::from_millis(300))).await;
        let (mut reader, mut writer) = TcpStream::connect(server.address).await.unwrap().into_split();
        let slow = tokio::spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(50));
            for byte in "GET /alive HTTP/1.1\r\nx-filler: ".bytes().chain(std::iter::repeat(b'x')) {
                pace.tick().await;
                if writer.write_all(&[byte]).await.is_err() {
                    break;
                }
            }
        });
        let mut bytes = Vec::new();
        // The connection may be reset after the answer, since the client goes on.
        let _end = reader.read_to_end(&mut bytes).await;
        let answer = String::from_utf8(bytes).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        slow.abort();
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_of_one_byte_at_a_time_is_answered_with_408_and_others_are_served() {
    within(async {
        let server = Server::with(limited(|limits| limits.body_timeout = Duration::from_millis(300))).await;
        let (mut reader, mut writer) = TcpStream::connect(server.address).await.unwrap().into_split();
        let head = b"POST /execute_action HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n";
        writer.write_all(head).await.unwrap();
        let slow = tokio::spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(50));
            loop {
                pace.tick().await;
                if writer.write_all(b" ").await.is_err() {
                    break;
                }
            }
        });
        assert_eq!(server.run("echo hi").await["content"], "hi");
        let mut answer = vec![0; 12];
        reader.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 408");
        slow.abort();
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    within(async {
        let server = Server::with(limited(|limits| limits.connections = 2)).await;
        let mut first = server.connect().await;
        let mut second = server.connect().await;
        for client in [&mut first, &mut second] {
            assert_eq!(client.request(request("GET", "/alive", "")).await.status, 200);
        }
        let answer = server.get("/alive").await;
        let detail = "Too many connections are open; try it later";
        assert_eq!((answer.status.as_u16(), answer.json()), (503, json!({ "detail": detail })));
        drop(second);
        let mut admitted = false;
        while !admitted {
            admitted = server.get("/alive").await.status == 200;
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn too_many_requests_are_refused_while_alive_is_answered() {
    within(async {
        let server = Server::with(limited(|limits| limits.requests = 1)).await;
        let pipe = named_pipe(&server);
        let mut busy = server.connect().await;
        let command = run(&format!("cat {}", pipe.display()));
        let running = tokio::spawn(async move { busy.request(request("POST", "/execute_action", command)).await });
        let mut refused = server.post("/list_files", "{}").await;
        while refused.status == 200 {
            refused = server.post("/list_files", "{}").await;
        }
        let detail = "Too many requests are worked on; try again later";
        assert_eq!((refused.status.as_u16(), refused.json()), (503, json!({ "detail": detail })));
        assert_eq!(server.get("/alive").await.status, 200);
        std::fs::write(&pipe, "done").unwrap();
        assert_eq!(running.await.unwrap().json()["content"], "done");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn timed_a_client_that_goes_away_is_noticed_and_the_output_stays() {
    within(async {
        let server = Server::start().await;
        let pipe = named_pipe(&server);
        let mut client = server.connect().await;
        let command = run(&format!("echo before; cat {}", pipe.display()));
        let pending = client.sender.send_request(request("POST", "/execute_action", command));
        let pending = tokio::spawn(pending);
        // Opening for writing returns when the command has opened for reading.
        let mut writer = tokio::task::spawn_blocking(move || std::fs::File::options().write(true).open(pipe).unwrap())
            .await
            .unwrap();
        server.until_metric("gloveport_actions_in_flight", 1.0).await;
        pending.abort();
        drop(client);
        let left = Instant::now();
        server.until_metric("gloveport_actions_in_flight", 0.0).await;
        assert!(left.elapsed() < Duration::from_secs(1).mul_f64(gloveport_testing::pace()), "{:?}", left.elapsed());
        assert!((server.metric("gloveport_actions_abandoned_total").await - 1.0).abs() < 0.1);
        writer.write_all(b"after\n").unwrap();
        drop(writer);
        let observation = server.run("").await;
        assert_eq!(observation["content"], "before\nafter", "{observation}");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_stop_closes_idle_connections_and_waits_for_answers() {
    within(async {
        let server = Server::start().await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        let mut used = server.connect().await;
        used.request(request("GET", "/alive", "")).await;
        let pipe = named_pipe(&server);
        let mut busy = server.connect().await;
        let command = run(&format!("cat {}", pipe.display()));
        let running = tokio::spawn(async move { busy.request(request("POST", "/execute_action", command)).await });
        server.until_metric("gloveport_actions_in_flight", 1.0).await;
        server.begin_to_stop();
        assert_eq!(rest(&mut idle).await, "");
        (&mut used.driver).await.unwrap();
        while TcpStream::connect(server.address).await.is_ok() {}
        std::fs::write(pipe, "done").unwrap();
        assert_eq!(running.await.unwrap().json()["content"], "done");
        assert_eq!(server.stop().await, DrainEnd::Drained);
    })
    .await;
}

#[tokio::test]
async fn timed_a_drain_without_connections_takes_no_time_and_one_with_a_long_request_is_cut_off() {
    within(async {
        let server = Server::start().await;
        server.run("true").await;
        let began = Instant::now();
        assert_eq!(server.stop().await, DrainEnd::Drained);
        assert!(
            began.elapsed() < Duration::from_millis(900).mul_f64(gloveport_testing::pace()),
            "{:?}",
            began.elapsed()
        );

        let server = Server::start().await;
        let mut busy = server.connect().await;
        let running = tokio::spawn(async move {
            let sent = busy.sender.send_request(request("POST", "/execute_action", run("sleep 100"))).await;
            sent.is_err()
        });
        server.until_metric("gloveport_actions_in_flight", 1.0).await;
        assert_eq!(server.stop().await, DrainEnd::CutOff { open: 1 });
        assert!(running.await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn requests_in_a_row_on_one_connection_are_answered_in_order() {
    within(async {
        let server = Server::start().await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let alive = "GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let last = "GET /nowhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{alive}{alive}{last}").as_bytes()).await.unwrap();
        let answers = rest(&mut stream).await;
        let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, ["200", "200", "404"]);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_is_left() {
    within(async {
        let server = Server::with(limited(|limits| limits.write_timeout = Duration::from_millis(300))).await;
        let body = json!({"id": "much", "command": "head -c 5000000 /dev/zero"}).to_string();
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!("POST /v1/exec HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        server.until_metric("gloveport_connections_open", 2.0).await;
        server.until_metric("gloveport_connections_open", 1.0).await;
        server.stop().await;
    })
    .await;
}
