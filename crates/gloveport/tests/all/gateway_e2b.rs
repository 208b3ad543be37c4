//! The API of E2B over real sandboxes of this machine: whose they are, who is let in, and what hostile clients may send. What the
//! SDKs do with it, tests/e2b proves.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_client::{Certificates, Pool};
use gloveport_e2b_face::FaceOptions;
use gloveport_gateway::GatewayOptions;
use gloveport_gateway_store::{AuditFilter, Limits};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    gateway::{KEY, Running},
    gateway_tenants::Tenants,
    sandboxes::LIMIT,
};

/// Asks again and again until it is so.
async fn until(is_so: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn with_e2b(options: &mut GatewayOptions) {
    options.e2b = Some(FaceOptions::default());
}

/// A sandbox as its client knows it.
struct Made {
    id: String,
    token: String,
}

impl Made {
    fn of(told: &Value) -> Self {
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        Self { id: text("sandboxID"), token: text("envdAccessToken") }
    }

    async fn new(running: &Running, body: Value) -> Self {
        let (status, told) = running.ask("POST", "/v2/sandboxes", Some(KEY), Some(body)).await;
        assert_eq!(status, 201, "{told}");
        Self::of(&told)
    }

    /// Status and body of a request for it.
    async fn send(&self, url: &str, path: &str, kind: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let request = pool.http().post(format!("{url}{path}")).header("E2b-Sandbox-Id", &self.id);
        let request = request.header("X-Access-Token", &self.token).header("Content-Type", kind).body(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
    }

    /// A unary call.
    async fn call(&self, url: &str, method: &str, message: &Value) -> (u16, Value) {
        let (status, body) = self.send(url, method, "application/json", message.to_string().into_bytes()).await;
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// A call that is answered with a stream: its messages, and the last one with the end.
    async fn stream(&self, url: &str, method: &str, messages: &[Vec<u8>]) -> Vec<Value> {
        let (status, body) = self.send(url, method, "application/connect+json", messages.concat()).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let (mut rest, mut found) = (&body[..], Vec::new());
        while let [flags, a, b, c, d, after @ ..] = rest {
            let (message, after) = after.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            found.push(serde_json::from_slice(message).unwrap());
            assert_eq!(*flags == 2, after.is_empty(), "the end is the last message");
            rest = after;
        }
        found
    }
}

fn envelope(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [&[0][..], &length, text.as_bytes()].concat()
}

fn start(script: &str) -> Value {
    json!({"process": {"cmd": "/bin/sh", "args": ["-c", script]}, "stdin": false})
}

/// What a stream of a process has told, and how it ended.
fn told(events: &[Value]) -> (String, String, &Value) {
    let all = |stream: &str| {
        let pieces = events.iter().filter_map(|event| event["event"]["data"][stream].as_str());
        pieces.map(|piece| String::from_utf8(STANDARD.decode(piece).unwrap()).unwrap()).collect::<String>()
    };
    let end =
        events.iter().find(|event| !event["event"]["end"].is_null()).map_or(&Value::Null, |it| &it["event"]["end"]);
    (all("stdout"), all("stderr"), end)
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_strangers_to_each_other_in_the_api_of_e2b_and_its_quotas_are_theirs() {
    let limits = Limits { running: Some(1), ..Limits::default() };
    let tenants = Tenants::start_with(limits, with_e2b).await;
    let [one, two] = &tenants.keys;
    let body = json!({"templateID": "base", "metadata": {"a": "b"}, "timeout": 300});
    let (status, theirs) = tenants.post(one, "/v2/sandboxes", body.clone()).await;
    assert_eq!(status, 201, "{theirs}");
    let theirs = Made::of(&theirs);
    // The quota is used up, and says when to come again.
    let pool = Pool::new(Certificates::Checked).unwrap();
    let url = tenants.running.url();
    let full =
        pool.http().post(format!("{url}/v2/sandboxes")).header("X-API-Key", one).json(&body).send().await.unwrap();
    assert_eq!(full.status(), 429);
    assert!(full.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let full: Value = serde_json::from_slice(&full.bytes().await.unwrap()).unwrap();
    assert_eq!(full["code"], 429, "{full}");
    // What is another's is like what is not.
    let path = format!("/sandboxes/{}", theirs.id);
    for (method, rest, body) in [
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/timeout", Some(json!({"timeout": 5}))),
        ("POST", "/refreshes", Some(json!({"duration": 5}))),
        ("POST", "/pause", Some(json!({}))),
        ("POST", "/resume", Some(json!({}))),
        ("POST", "/connect", Some(json!({"timeout": 5}))),
        ("POST", "/snapshots", Some(json!({}))),
        ("GET", "/logs", None),
        ("GET", "/metrics", None),
    ] {
        let (status, told) = tenants.ask(two, method, &format!("{path}{rest}"), body.clone()).await;
        let (missing, _) = tenants.ask(two, method, &format!("/sandboxes/nobody{rest}"), body).await;
        assert_eq!((status, missing, &told["code"]), (404, 404, &json!(404)), "{method} {rest} {told}");
    }
    assert_eq!(tenants.ask(two, "GET", "/v2/sandboxes", None).await, (200, json!([])));
    let (_, listed) = tenants.ask(one, "GET", "/v2/sandboxes?metadata=a%3Db", None).await;
    assert_eq!(listed[0]["sandboxID"], theirs.id);
    // The token of one opens no other, and is in no list.
    let (status, own) = tenants.post(two, "/v2/sandboxes", body).await;
    assert_eq!(status, 201, "{own}");
    let own = Made::of(&own);
    assert_ne!(own.token, theirs.token);
    assert!(!listed.to_string().contains(&theirs.token));
    let mixed = Made { id: theirs.id.clone(), token: own.token };
    assert_eq!(mixed.call(&url, "/process.Process/List", &json!({})).await.0, 401);
    assert_eq!(theirs.call(&url, "/process.Process/List", &json!({})).await.0, 200);
    assert_eq!(tenants.ask(one, "DELETE", &path, None).await.0, 204);
    let filter = AuditFilter { tenant: Some("one".to_owned()), ..AuditFilter::default() };
    let lines = tenants.audit(3, filter).await;
    let told: Vec<(&str, &str)> = lines.iter().map(|line| (line.action.as_str(), line.result.as_str())).collect();
    assert_eq!(told, [("stop", "done"), ("start", "429"), ("start", "done")]);
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_told_apart_by_its_streams_and_lives_on_when_nobody_listens() {
    let running = Running::with(with_e2b).await;
    let made = Made::new(&running, json!({"templateID": "base", "envVars": {"A": "of the sandbox"}})).await;
    let url = running.url();
    let script = envelope(&start("echo out; echo err >&2; echo $A; exit 3"));
    let events = made.stream(&url, "/process.Process/Start", &[script]).await;
    assert!(events[0]["event"]["start"]["pid"].as_u64().unwrap() > 1, "{events:?}");
    let (out, err, end) = told(&events);
    assert_eq!((out.as_str(), err.as_str()), ("out\nof the sandbox\n", "err\n"));
    assert_eq!((&end["exitCode"], &end["status"]), (&json!(3), &json!("exit status 3")));
    assert_eq!(events.last(), Some(&json!({})));

    // The client goes as soon as it knows the process.
    let pool = Pool::new(Certificates::Checked).unwrap();
    let request = pool.http().post(format!("{url}/process.Process/Start")).header("E2b-Sandbox-Id", &made.id);
    let request = request.header("X-Access-Token", &made.token).header("Content-Type", "application/connect+json");
    let mut answer = request.body(envelope(&start("sleep 60"))).send().await.unwrap();
    let first = answer.chunk().await.unwrap().unwrap();
    let first: Value = serde_json::from_slice(&first[5..]).unwrap();
    let pid = first["event"]["start"]["pid"].as_u64().unwrap();
    drop(answer);
    let list = async || made.call(&url, "/process.Process/List", &json!({})).await.1["processes"].clone();
    let there = list().await;
    assert_eq!(there[0]["pid"], pid, "{there}");
    assert_eq!(there[0]["config"]["args"], json!(["-c", "sleep 60"]));
    let kill = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    assert_eq!(made.call(&url, "/process.Process/SendSignal", &kill).await.0, 200);
    until(async || list().await == json!([])).await;
    assert_eq!(made.call(&url, "/process.Process/SendSignal", &kill).await.0, 404);
    running.end().await;
}

/// A client that ends its request late, and reads slowly.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_whole_when_its_request_ends_after_its_message() {
    let running = Running::with(with_e2b).await;
    let made = Made::new(&running, json!({"templateID": "base"})).await;
    let message = envelope(&start("head -c 3000000 /dev/zero | tr '\\0' x"));
    let mut connection = TcpStream::connect(running.url().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: {}\r\nX-Access-Token: {}\r\n\
         Content-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        made.id,
        made.token,
        message.len()
    );
    connection.write_all(&[head.as_bytes(), &message, b"\r\n"].concat()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // The end of the request, and the beginning of another one.
    connection.write_all(b"0\r\n\r\nPOST /process.Process/List HTTP/1.1\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut found = Vec::new();
    while !found.ends_with(b"{}\r\n0\r\n\r\n") {
        let mut piece = vec![0; 65536];
        let count = tokio::time::timeout(LIMIT, connection.read(&mut piece)).await.unwrap().unwrap();
        assert!(count > 0, "it ends after {} bytes", found.len());
        found.extend_from_slice(&piece[..count]);
    }
    // The output in base64, and what is around it.
    assert!(found.len() > 4_000_000, "{}", found.len());
    let two = [envelope(&start("true")), envelope(&start("true"))];
    let events = made.stream(&running.url(), "/process.Process/Start", &two).await;
    assert_eq!(events[0]["error"]["code"], "invalid_argument", "{events:?}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_oversized_messages_and_bad_bodies_are_refused_and_nothing_breaks() {
    let running = Running::with(with_e2b).await;
    let made = Made::new(&running, json!({"templateID": "base"})).await;
    let url = running.url();
    // A head that announces more than there may be is refused without its message.
    for (head, code) in [
        (vec![0, 0xff, 0xff, 0xff, 0xff], "resource_exhausted"),
        (vec![1, 0, 0, 0, 2], "unimplemented"),
        (vec![0, 0, 0, 0, 9, b'{'], "invalid_argument"),
        (vec![], "invalid_argument"),
    ] {
        let events = made.stream(&url, "/process.Process/Start", std::slice::from_ref(&head)).await;
        assert_eq!(events[0]["error"]["code"], code, "{head:?} {events:?}");
    }
    // Many small messages are input, one after another.
    let cat = json!({"process": {"cmd": "/bin/sh", "args": ["-c", "wc -c"]}, "stdin": true, "tag": "flood"});
    let started = [envelope(&cat)];
    let counting = made.stream(&url, "/process.Process/Start", &started);
    let flood = async {
        let find =
            async || made.call(&url, "/process.Process/List", &json!({})).await.1["processes"][0]["tag"] == "flood";
        until(find).await;
        let first = envelope(&json!({"start": {"process": {"tag": "flood"}}}));
        let one = envelope(&json!({"data": {"input": {"stdin": STANDARD.encode("0123456789")}}}));
        let messages: Vec<Vec<u8>> = std::iter::once(first).chain(std::iter::repeat_n(one, 2000)).collect();
        let answer = made.stream(&url, "/process.Process/StreamInput", &messages).await;
        assert_eq!(answer, [json!({}), json!({})]);
        let close = json!({"process": {"tag": "flood"}});
        assert_eq!(made.call(&url, "/process.Process/CloseStdin", &close).await.0, 200);
    };
    let (events, ()) = tokio::join!(counting, flood);
    assert_eq!(told(&events).0.trim(), "20000", "{events:?}");
    let orphan = envelope(&json!({"data": {"input": {"stdin": "QQ=="}}}));
    let answer = made.stream(&url, "/process.Process/StreamInput", &[orphan]).await;
    assert_eq!(answer[0]["error"]["code"], "invalid_argument");
    for (path, kind, body, expected) in [
        ("/filesystem.Filesystem/Stat", "application/json", "{", 400),
        ("/filesystem.Filesystem/Stat", "application/json", "[1]", 400),
        ("/filesystem.Filesystem/Stat", "application/json", "{\"path\": \"a\\u0000b\"}", 400),
        ("/filesystem.Filesystem/Stat", "application/proto", "", 415),
        ("/filesystem.Filesystem/Nothing", "application/json", "{}", 501),
        ("/process.Process/Start", "application/json", "{}", 415),
        ("/files?path=a", "text/plain", "x", 400),
        ("/files?path=a", "multipart/form-data; boundary=x", "no form", 400),
        ("/files", "application/octet-stream", "x", 400),
        ("/nowhere", "application/json", "{}", 404),
    ] {
        let (status, answer) = made.send(&url, path, kind, body.as_bytes().to_vec()).await;
        assert_eq!(status, expected, "{path} {kind} {body}: {}", String::from_utf8_lossy(&answer));
    }
    for body in [json!([]), json!({}), json!({"templateID": 5}), json!({"templateID": "base", "timeout": 1_000_000})] {
        let (status, answer) = running.ask("POST", "/v2/sandboxes", Some(KEY), Some(body.clone())).await;
        assert_eq!((status, &answer["code"]), (400, &json!(400)), "{body} {answer}");
    }
    assert_eq!(made.call(&url, "/process.Process/List", &json!({})).await.0, 200);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_lead_nowhere_else_and_files_stay_in_their_sandbox() {
    let running = Running::with(with_e2b).await;
    let made = Made::new(&running, json!({"templateID": "base"})).await;
    let url = running.url();
    for id in ["..", "../../etc", "a/b", "%2e%2e", "", "nobody"] {
        let other = Made { id: id.to_owned(), token: made.token.clone() };
        let (status, answer) = other.call(&url, "/process.Process/List", &json!({})).await;
        assert_eq!(status, 502, "{id} {answer}");
        assert!(answer["message"].as_str().unwrap().contains("was not found"), "{id} {answer}");
    }
    // A path is one of the sandbox, whatever is in it.
    let (status, stored) =
        made.send(&url, "/files?path=below%2F..%2Fa.txt", "application/octet-stream", b"x".to_vec()).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&stored));
    let (status, found) = made.call(&url, "/filesystem.Filesystem/Stat", &json!({"path": "a.txt"})).await;
    assert_eq!((status, &found["entry"]["size"]), (200, &json!("1")), "{found}");
    // A signature is for one file and one direction.
    let pool = Pool::new(Certificates::Checked).unwrap();
    let get = async |query: &str| {
        let request = pool.http().get(format!("{url}/files?{query}")).header("E2b-Sandbox-Id", &made.id);
        request.send().await.unwrap().status().as_u16()
    };
    let signature = "v1_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for query in ["path=a.txt", &format!("path=a.txt&signature={signature}"), "path=a.txt&signature="] {
        assert_eq!(get(query).await, 401, "{query}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_time_is_over_is_ended_or_paused_as_its_client_wants_it() {
    let running = Running::with(with_e2b).await;
    let short = Made::new(&running, json!({"templateID": "base", "timeout": 1})).await;
    let paused = Made::new(&running, json!({"templateID": "base", "timeout": 1, "autoPause": true})).await;
    let long = Made::new(&running, json!({"templateID": "base", "timeout": 1})).await;
    let path = |made: &Made, rest: &str| format!("/sandboxes/{}{rest}", made.id);
    let (status, _) = running.ask("POST", &path(&long, "/timeout"), Some(KEY), Some(json!({"timeout": 600}))).await;
    assert_eq!(status, 204);
    until(async || running.ask("GET", &path(&short, ""), Some(KEY), None).await.0 == 404).await;
    until(async || running.ask("GET", &path(&paused, ""), Some(KEY), None).await.1["state"] == "paused").await;
    let (status, told) =
        running.ask("POST", &path(&paused, "/connect"), Some(KEY), Some(json!({"timeout": 600}))).await;
    assert_eq!(status, 201, "{told}");
    // Both would have ended by their first times.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for made in [&paused, &long] {
        assert_eq!(running.ask("GET", &path(made, ""), Some(KEY), None).await.1["state"], "running");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_nothing_of_e2b_is_there() {
    let running = Running::start().await;
    let (status, _) = running.ask("POST", "/v2/sandboxes", Some(KEY), Some(json!({"templateID": "base"}))).await;
    assert_eq!(status, 404);
    running.end().await;
}
