//! Sessions over HTTP, at the program itself: their whole life, their histories, and gateways that are killed.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gloveport_client::{Certificates, Pool};
use gloveport_testing::MCP_SERVER;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    gateway::{KEY, Program},
    sandboxes::LIMIT,
    support::{gloveport, text},
};

/// Where gateways and their sandboxes live; the sandboxes are gone with it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::write(home.path().join("key"), KEY).unwrap();
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self) -> Command {
        let mut command = gloveport(self.path());
        command.env("XDG_STATE_HOME", self.path()).env_remove("XDG_RUNTIME_DIR").current_dir(self.path());
        command
    }

    /// A gateway over the directory that all of them share.
    fn gateway(&self, more: &[&str]) -> At {
        let mut command = self.command();
        command.args(["gateway", "--port", "0", "--key-file", "key", "--sessions-directory", "sessions"]).args(more);
        At::new(Program::start(command))
    }

    /// Runs the program, and gives what it says.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _tried = self.command().args(["session", "gc", "--all", "--runtime", "local"]).output();
    }
}

/// A gateway, and a key for it.
struct At {
    program: Program,
    key: String,
}

/// What a gateway has answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    retry_after: Option<u64>,
    body: Value,
}

impl At {
    fn new(program: Program) -> Self {
        Self { program, key: KEY.to_owned() }
    }

    async fn send(&self, method: &str, path: &str, key: &str, body: Option<Value>) -> Answer {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let url = format!("{}/v1/sessions{path}", self.program.url);
        let mut request = pool.http().request(method.parse().unwrap(), url).header("X-API-Key", key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = timeout(LIMIT, request.send()).await.unwrap().unwrap();
        let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().parse().unwrap());
        let status = answer.status().as_u16();
        let body = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or(Value::Null);
        Answer { status, retry_after, body }
    }

    /// The answer, if there is one.
    async fn try_post(&self, path: &str, body: Value) -> Option<(u16, Value)> {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let url = format!("{}/v1/sessions{path}", self.program.url);
        let answer = pool.http().post(url).header("X-API-Key", &self.key).json(&body).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, serde_json::from_slice(&answer.bytes().await.ok()?).ok()?))
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.send(method, path, &self.key, body).await;
        (answer.status, answer.body)
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask("POST", path, Some(body)).await
    }

    /// A session that is ready.
    async fn start(&self, request: Value) -> Value {
        let (status, told) = self.post("?wait=30", request).await;
        assert_eq!((status, &told["state"]), (201, &json!("ready")), "{told}");
        told
    }

    /// Runs a command; number of the action, and what it has written.
    async fn run(&self, session: &str, command: &str) -> (i64, String) {
        let (status, told) = self.post(&format!("/{session}/actions?wait=30"), run(command)).await;
        assert_eq!(status, 200, "{told}");
        let content = told["observation"]["content"].as_str().unwrap().to_owned();
        (told["id"].as_i64().unwrap(), content)
    }

    async fn events(&self, session: &str) -> Vec<Value> {
        let told = self.get(&format!("/{session}/events?limit=500")).await;
        told["events"].as_array().unwrap().clone()
    }

    async fn follow(&self, session: &str, query: &str, last: Option<&str>) -> Result<Follower, u16> {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let url = format!("{}/v1/sessions/{session}/events{query}", self.program.url);
        let mut request = pool.http().get(url).header("X-API-Key", &self.key).header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let answer = request.send().await.unwrap();
        match answer.status().as_u16() {
            200 => Ok(Follower { answer, text: String::new() }),
            status => Err(status),
        }
    }

    async fn delete(&self, session: &str) {
        let (status, told) = self.ask("DELETE", &format!("/{session}"), None).await;
        assert_eq!((status, &told["state"]), (200, &json!("ended")), "{told}");
    }

    /// Ends it at once, as a machine does that loses its power.
    fn kill(mut self) {
        self.program.child.kill().unwrap();
        self.program.child.wait().unwrap();
    }

    fn end(self) -> String {
        self.program.end()
    }
}

/// Reads a stream of events.
struct Follower {
    answer: reqwest::Response,
    text: String,
}

impl Follower {
    /// The next event: its number as the stream says it, or its name, and its data; nothing after the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
                let read = field("id: ").or_else(|| field("event: ")).zip(field("data: "));
                let read = read.map(|(name, data)| (name, serde_json::from_str(&data).unwrap()));
                match read {
                    Some(read) => return Some(read),
                    // A sign of life.
                    None => continue,
                }
            }
            let chunk = timeout(LIMIT, self.answer.chunk()).await.unwrap().unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn numbers(&mut self, count: usize) -> Vec<i64> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (number, event) = self.next().await.unwrap();
            assert_eq!(event["id"].to_string(), number);
            numbers.push(number.parse().unwrap());
        }
        numbers
    }
}

fn run(command: &str) -> Value {
    json!({"action": "run", "args": {"command": command}})
}

/// Numbers of the events, which are one after the other, and each action has one observation at most.
fn check_history(events: &[Value]) {
    let numbers: Vec<i64> = events.iter().map(|event| event["id"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (0..i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
    let mut causes: Vec<i64> = events
        .iter()
        .filter(|event| event["observation"].is_string() && event["observation"] != "agent_state_changed")
        .map(|event| event["cause"].as_i64().unwrap())
        .collect();
    let count = causes.len();
    causes.sort_unstable();
    causes.dedup();
    assert_eq!(causes.len(), count, "{events:#?}");
}

/// Asks until an answer is as it is to be.
async fn until(what: &str, mut ask: impl AsyncFnMut() -> Option<Value>) -> Value {
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lives_its_whole_life_over_http() {
    let home = Home::new();
    let at = home.gateway(&[]);
    assert_eq!(at.get("").await, json!({"sessions": [], "next": null}));
    let (status, told) = at.post("", json!({"session_id": "one", "environment": {"MINE": "yes"}})).await;
    assert_eq!((status, &told["id"]), (201, &json!("one")), "{told}");
    // Actions of a session that is being started wait for it.
    let (id, content) = at.run("one", "x=5; echo $MINE").await;
    assert_eq!((id, content.as_str()), (0, "yes"));
    assert_eq!(at.run("one", "echo $x").await, (2, "5".to_owned()));
    let (status, told) =
        at.post("/one/actions", json!({"action": "message", "args": {"content": "hello"}, "source": "user"})).await;
    assert_eq!((status, &told["id"], &told["observation"]), (202, &json!(4), &Value::Null), "{told}");
    let write = json!({"action": "write", "args": {"path": "notes.txt", "content": "a\nb\n"}});
    let (_, told) = at.post("/one/actions?wait=30", write).await;
    assert_eq!(told["observation"]["observation"], "write", "{told}");
    let shown = at.get("/one").await;
    assert_eq!(
        (&shown["state"], &shown["status"], &shown["last_event_id"], &shown["open"]),
        (&json!("ready"), &json!("STATUS$READY"), &json!(6), &json!([]))
    );
    let (_, again) = at.post("", json!({"session_id": "one"})).await;
    assert!(again["error"]["message"].as_str().unwrap().contains("already"), "{again}");
    assert_eq!(again["error"]["code"], "session_exists", "{again}");
    assert!(again["error"]["request_id"].as_str().unwrap().len() > 8, "{again}");
    let (status, told) = at.ask("PUT", "/one", None).await;
    assert_eq!((status, &told["error"]["code"]), (405, &json!("method_not_allowed")), "{told}");
    let (status, told) = at.post("/one/actions?wait=0", json!({"action": "fly"})).await;
    assert_eq!((status, &told["error"]["code"]), (400, &json!("invalid")), "{told}");
    // Variables and microagents.
    assert_eq!(at.post("/one/environment", json!({"variables": {"LATER": "it's $HOME"}})).await.0, 200);
    assert_eq!(at.run("one", "echo \"$LATER\"").await.1, "it's $HOME");
    at.run("one", "mkdir -p .openhands/microagents; echo 'Be kind.' > .openhands/microagents/repo.md").await;
    let microagents = at.get("/one/microagents").await;
    assert_eq!(microagents["microagents"][0]["kind"], "repo", "{microagents}");
    assert!(microagents["microagents"][0]["content"].as_str().unwrap().contains("Be kind."), "{microagents}");
    // A second one, and pages.
    at.start(json!({"session_id": "two"})).await;
    let page = at.get("?limit=1").await;
    assert_eq!((&page["sessions"][0]["id"], &page["next"]), (&json!("one"), &json!("one")));
    let page = at.get("?limit=1&after=one").await;
    assert_eq!((&page["sessions"][0]["id"], &page["next"]), (&json!("two"), &Value::Null));
    // It rests and goes on, with what its shell knows.
    let (status, told) = at.ask("POST", "/one/pause", None).await;
    assert_eq!((status, &told["state"]), (200, &json!("paused")), "{told}");
    assert_eq!(at.get("?state=paused").await["sessions"].as_array().unwrap().len(), 1);
    let (status, told) = at.post("/one/actions", run("echo no")).await;
    assert!(status == 409 && told["error"]["message"].as_str().unwrap().contains("resume it first"), "{told}");
    let (status, told) = at.ask("POST", "/one/resume", None).await;
    assert_eq!((status, &told["state"], &told["status"]), (200, &json!("ready"), &json!("STATUS$READY")), "{told}");
    assert_eq!(at.run("one", "echo $x").await.1, "5");
    // It ends, and its history stays until that is removed, too.
    at.delete("one").await;
    at.delete("two").await;
    let events = at.events("one").await;
    check_history(&events);
    assert_eq!(events[0]["args"]["command"], "x=5; echo $MINE");
    let (status, told) = at.post("/one/actions", run("echo no")).await;
    assert!(status == 409 && told["error"]["message"].as_str().unwrap().contains("has ended"), "{told}");
    assert_eq!(at.ask("DELETE", "/one?history=true", None).await.0, 200);
    for path in ["/one", "/one/events", "/one/questions", "/one/microagents"] {
        assert_eq!(at.ask("GET", path, None).await.0, 404, "{path}");
    }
    assert_eq!(at.get("").await["sessions"].as_array().unwrap().len(), 1);
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_sandbox_was_deleted_says_so() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "one"})).await;
    let sandbox = at.get("/one").await["sandbox"].as_str().unwrap().to_owned();
    assert_eq!(at.ask("DELETE", &format!("/../sandboxes/{sandbox}"), None).await.0, 204);
    for (path, body) in [("/one/microagents", None), ("/one/environment", Some(json!({"variables": {"A": "b"}})))] {
        let method = if body.is_some() { "POST" } else { "GET" };
        let (status, told) = at.ask(method, path, body).await;
        assert_eq!((status, &told["error"]["code"]), (409, &json!("wrong_state")), "{path}: {told}");
        assert_eq!(told["error"]["message"], "the sandbox of the session is gone", "{path}");
    }
    at.delete("one").await;
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_followed_from_any_number_and_nothing_of_it_is_lost() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "a"})).await;
    let mut first = at.follow("a", "", None).await.unwrap();
    // One that reads nothing as long as it does not have to.
    let mut slow = at.follow("a", "?from=0", None).await.unwrap();
    for number in 0..20 {
        at.run("a", &format!("echo {number}; head -c 20000 /dev/zero | tr '\\0' x")).await;
    }
    assert_eq!(first.numbers(40).await, (0..40).collect::<Vec<_>>());
    let mut middle = at.follow("a", "?from=33", None).await.unwrap();
    let mut back = at.follow("a", "?from=5", Some("37")).await.unwrap();
    assert_eq!(middle.numbers(7).await, (33..40).collect::<Vec<_>>());
    assert_eq!(back.numbers(2).await, [38, 39]);
    at.run("a", "echo last").await;
    for follower in [&mut first, &mut middle, &mut back] {
        assert_eq!(follower.numbers(2).await, [40, 41]);
    }
    assert_eq!(slow.numbers(42).await, (0..42).collect::<Vec<_>>());
    // Pages say where they go on.
    let page = at.get("/a/events?from=10&limit=5").await;
    let numbers: Vec<i64> = page["events"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect();
    assert_eq!((numbers, &page["next"], &page["last_event_id"]), ((10..15).collect(), &json!(15), &json!(41)));
    assert_eq!(at.get("/a/events?from=42").await, json!({"events": [], "next": 42, "last_event_id": 41}));
    assert_eq!(at.ask("GET", "/a/events?limit=501", None).await.0, 400);
    at.delete("a").await;
    for follower in [&mut first, &mut middle, &mut back, &mut slow] {
        assert_eq!(follower.next().await.unwrap(), ("end".to_owned(), json!({"state": "ended"})));
        assert!(follower.next().await.is_none());
    }
    // What was is told, and then the end; who knows all of it need not come back.
    let mut after = at.follow("a", "?from=40", None).await.unwrap();
    assert_eq!(after.numbers(2).await, [40, 41]);
    assert_eq!(after.next().await.unwrap().0, "end");
    assert_eq!(at.follow("a", "", Some("41")).await.err(), Some(204));
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_and_unanswered_actions_of_a_session_are_bounded() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "a"})).await;
    let mut followers = Vec::new();
    for _ in 0..64 {
        followers.push(at.follow("a", "", None).await.unwrap());
    }
    assert_eq!(at.follow("a", "", None).await.err(), Some(429));
    followers.truncate(10);
    // A place comes back.
    until("a place of a follower", async || at.follow("a", "", None).await.ok().map(|_| Value::Null)).await;
    let mut accepted = 0;
    let refused = loop {
        let (status, told) = at.post("/a/actions", run("sleep 0.2")).await;
        if status != 202 {
            break (status, told);
        }
        accepted += 1;
        assert!(accepted < 200, "there is no bound");
    };
    assert_eq!(refused.0, 429, "{}", refused.1);
    assert!(accepted >= 64, "{accepted}");
    // All that was accepted is answered when the session is deleted.
    at.delete("a").await;
    let events = at.events("a").await;
    check_history(&events);
    assert_eq!(events.len(), 2 * accepted);
    drop(followers);
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn risky_actions_wait_for_a_decision_and_a_late_or_wrong_one_is_told() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "a", "security": {"confirmation_mode": true, "analyzer": "rules"}})).await;
    let (status, told) = at.post("/a/actions?wait=5", run("echo fine")).await;
    assert_eq!((status, &told["outcome"]), (200, &json!("accepted")), "{told}");
    let risky = "rm -rf /etc/passwd-none /usr";
    let (status, told) = at.post("/a/actions?wait=5", run(risky)).await;
    assert_eq!((status, &told["outcome"], &told["risk"]), (202, &json!("awaiting"), &json!("high")), "{told}");
    let id = told["id"].as_i64().unwrap();
    assert_eq!(at.get("/a").await["pending"], json!([id]));
    let questions = at.get("/a/questions").await;
    let question = &questions["questions"][0];
    assert_eq!((&question["event_id"], &question["action"]["args"]["command"]), (&json!(id), &json!(risky)));
    assert!(!question["reason"].as_str().unwrap().is_empty(), "{question}");
    // What does not wait cannot be decided on.
    for wrong in [0, id + 1, 99, -1] {
        let (status, told) = at.post("/a/confirm", json!({"event_id": wrong, "decision": "accept"})).await;
        assert!(status == 409 && told["error"]["message"].as_str().unwrap().contains("waits for the user"), "{told}");
    }
    assert_eq!(at.post("/a/confirm", json!({"event_id": id, "decision": "maybe"})).await.0, 400);
    let (status, told) = at.post("/a/confirm?wait=10", json!({"event_id": id, "decision": "reject"})).await;
    assert_eq!((status, &told["observation"]["observation"]), (200, &json!("user_rejected")), "{told}");
    let (status, told) = at.post("/a/confirm", json!({"event_id": id, "decision": "accept"})).await;
    assert!(status == 409 && told["error"]["message"].as_str().unwrap().contains("decided on already"), "{told}");
    assert_eq!(at.get("/a/questions").await, json!({"questions": []}));
    // One that is let pass is executed under its new number.
    let mischief = "git push --force 2>/dev/null; echo pushed";
    let (_, told) = at.post("/a/actions", run(mischief)).await;
    assert_eq!(told["outcome"], "awaiting", "{told}");
    let (status, done) = at.post("/a/confirm?wait=20", json!({"event_id": told["id"], "decision": "accept"})).await;
    assert_eq!((status, &done["observation"]["content"]), (200, &json!("pushed")), "{done}");
    assert_eq!(done["observation"]["cause"], done["id"]);
    // Where nobody is asked, the rules refuse.
    at.start(json!({"session_id": "b", "security": {"analyzer": "rules"}})).await;
    let (status, told) = at.post("/b/actions?wait=10", run(risky)).await;
    assert_eq!((status, &told["outcome"]), (200, &json!("refused")), "{told}");
    for session in ["a", "b"] {
        check_history(&at.events(session).await);
        at.delete(session).await;
    }
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_never_told_and_are_hidden_in_a_history_also_by_the_next_gateway() {
    let home = Home::new();
    let secrets = ["hunter2-hunter2", "correct-horse-battery", "ghp_abcdefghijkl"];
    let at = home.gateway(&[]);
    let request = json!({"session_id": "a", "secrets": {"FIRST": secrets[0]}, "git_tokens": {"github": secrets[2]}});
    let mut told = vec![at.start(request).await.to_string()];
    let (status, set) = at.post("/a/secrets", json!({"variables": {"SECOND": secrets[1]}})).await;
    assert_eq!((status, &set), (200, &json!({"set": ["SECOND"]})));
    let show = "echo $FIRST $SECOND $GITHUB_TOKEN; echo $FIRST | base64; echo $SECOND | xxd -p";
    let content = at.run("a", show).await.1;
    assert!(content.contains("<secret_hidden> <secret_hidden> <secret_hidden>"), "{content}");
    told.push(content);
    told.push(at.get("").await.to_string());
    told.push(at.get("/a").await.to_string());
    at.kill();
    // The next one knows what to hide.
    let at = home.gateway(&[]);
    let content = at.run("a", show).await.1;
    assert!(content.contains("<secret_hidden> <secret_hidden> <secret_hidden>"), "{content}");
    let (_, refused) =
        at.post("/a/actions", json!({"action": "run", "args": {"command": secrets[0], "x": [secrets[1]]}})).await;
    told.push(refused.to_string());
    told.extend([content, at.get("/a/events?limit=500").await.to_string()]);
    let kept = home.path().join("sessions/secrets/default/a.json");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path().join("sessions")).unwrap().permissions().mode() & 0o777, 0o700);
    at.delete("a").await;
    assert!(!kept.exists());
    told.push(at.end());
    let history = home.path().join("sessions/users/default/conversations/a");
    for entry in fs::read_dir(history.join("events")).unwrap() {
        told.push(text(&fs::read(entry.unwrap().path()).unwrap()));
    }
    told.push(text(&fs::read(history.join("session.json")).unwrap()));
    for (text, secret) in told.iter().flat_map(|text| secrets.map(|secret| (text, secret))) {
        // What a client names an unknown field is its own business, and told to it alone.
        assert!(!text.contains(secret) || text == &refused.to_string(), "{secret} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_other_tenants_are_not_there_and_quotas_and_audit_are_those_of_sandboxes() {
    let home = Home::new();
    let database = ["--database", "gateway.db"];
    let with = |arguments: &[&'static str]| [arguments, &database[..]].concat();
    home.done(&with(&["gateway", "tenant", "create", "one", "--running", "1", "--allow-image", "good/*"]));
    home.done(&with(&["gateway", "tenant", "create", "two"]));
    let keys =
        ["one", "two"].map(|tenant| home.done(&["gateway", "key", "create", tenant, "--database", "gateway.db"]));
    let mut at = home.gateway(&database);
    at.key.clone_from(&keys[0]);
    at.start(json!({"session_id": "same"})).await;
    at.run("same", "echo of one > mine").await;
    for (method, path, body) in [
        ("GET", "/same", None),
        ("DELETE", "/same", None),
        ("POST", "/same/pause", None),
        ("POST", "/same/resume", None),
        ("POST", "/same/actions", Some(run("cat mine"))),
        ("GET", "/same/events", None),
        ("GET", "/same/questions", None),
        ("POST", "/same/confirm", Some(json!({"event_id": 0, "decision": "accept"}))),
        ("POST", "/same/environment", Some(json!({"variables": {"A": "b"}}))),
        ("POST", "/same/secrets", Some(json!({"variables": {"A": "b"}}))),
        ("GET", "/same/microagents", None),
    ] {
        for key in [keys[1].as_str(), KEY] {
            let answer = at.send(method, path, key, body.clone()).await;
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
        let answer = at.send(method, path, "no key", body).await;
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
    // The other one may have the same name, and has another sandbox.
    let answer = at.send("POST", "?wait=30", &keys[1], Some(json!({"session_id": "same"}))).await;
    assert_eq!(answer.body["state"], "ready", "{answer:?}");
    let answer = at.send("POST", "/same/actions?wait=30", &keys[1], Some(run("cat mine || true"))).await;
    assert!(answer.body["observation"]["content"].as_str().unwrap().contains("No such file"), "{answer:?}");
    // A quota refuses at once, and nothing is left of what it has refused.
    let answer = at.send("POST", "?wait=30", &at.key, Some(json!({"session_id": "more"}))).await;
    assert!(answer.status == 429 && answer.retry_after.is_some(), "{answer:?}");
    assert!(answer.body["error"]["message"].as_str().unwrap().contains("1 of 1 sandboxes"), "{answer:?}");
    assert_eq!(at.ask("GET", "/more", None).await.0, 404);
    let answer = at.send("POST", "", &at.key, Some(json!({"session_id": "more", "image": "evil/x"}))).await;
    assert!(answer.status == 403 && answer.body["error"]["message"].as_str().unwrap().contains("evil/x"), "{answer:?}");
    assert_eq!(at.get("").await["sessions"].as_array().unwrap().len(), 1);
    // One that rests does not count, and comes back only where there is room.
    assert_eq!(at.ask("POST", "/same/pause", None).await.0, 200);
    at.start(json!({"session_id": "more"})).await;
    let answer = at.send("POST", "/same/resume", &at.key, None).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    at.delete("more").await;
    assert_eq!(at.ask("POST", "/same/resume", None).await.1["state"], "ready");
    assert_eq!(at.run("same", "cat mine").await.1, "of one");
    at.delete("same").await;
    assert_eq!(at.send("DELETE", "/same", &keys[1], None).await.status, 200);
    at.end();
    let audit = home.done(&with(&["gateway", "audit", "--json", "--tenant", "one"]));
    let lines: Vec<Value> = serde_json::from_str(&audit).unwrap();
    let told: Vec<(&str, &str)> = lines
        .iter()
        .rev()
        .filter(|line| ["start", "stop", "pause", "resume"].contains(&line["action"].as_str().unwrap()))
        .map(|line| (line["action"].as_str().unwrap(), line["result"].as_str().unwrap()))
        .collect();
    let expected = [
        ("start", "done"),
        ("start", "429"),
        ("start", "403"),
        ("pause", "done"),
        ("start", "done"),
        ("resume", "429"),
        ("stop", "done"),
        ("resume", "done"),
        ("stop", "done"),
    ];
    assert_eq!(told, expected);
    let key = keys[0].split('_').nth(1).unwrap();
    assert!(lines.iter().filter(|line| line["action"] == "start").all(|line| line["key"] == key), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_its_gateway_was_killed_in_the_midst_of_an_action() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "a", "security": {"confirmation_mode": true, "analyzer": "rules"}})).await;
    let workspace = PathBuf::from(at.run("a", "x=5; pwd").await.1);
    let (_, asked) = at.post("/a/actions", run("git push --force 2>/dev/null; echo pushed $x")).await;
    assert_eq!(asked["outcome"], "awaiting", "{asked}");
    // One is being executed, and one waits behind it.
    let (_, first) = at.post("/a/actions", run("echo begun > begun; sleep 1; echo done >> begun")).await;
    let (_, second) = at.post("/a/actions", run("echo never > never")).await;
    let before = at.events("a").await;
    let begun = workspace.join("begun");
    until("it is begun", async || begun.exists().then_some(Value::Null)).await;
    at.kill();
    let at = home.gateway(&[]);
    // Nobody has to ask for it.
    let events = until("what was left is answered", async || {
        let events = at.events("a").await;
        (events.len() == before.len() + 2).then(|| json!(events))
    })
    .await;
    let events = events.as_array().unwrap();
    assert_eq!(events[..before.len()], before);
    check_history(events);
    for (event, cause) in events[before.len()..].iter().zip([&first["id"], &second["id"]]) {
        assert_eq!((&event["cause"], &event["observation"]), (cause, &json!("error")));
        assert!(event["content"].as_str().unwrap().contains("not known"), "{event}");
    }
    // The question waits again, under the same number, and the shell knows what it knew.
    assert_eq!(at.get("/a").await["pending"], json!([asked["id"]]));
    let questions = at.get("/a/questions").await;
    assert!(!questions["questions"][0]["reason"].as_str().unwrap().is_empty(), "{questions}");
    // The sandbox has gone on with what was begun.
    let read = json!({"action": "read", "args": {"path": "begun"}});
    until("what was begun is done", async || {
        let (_, told) = at.post("/a/actions?wait=10", read.clone()).await;
        told["observation"]["content"].as_str().is_some_and(|text| text.contains("done")).then_some(told)
    })
    .await;
    let (status, done) = at.post("/a/confirm?wait=20", json!({"event_id": asked["id"], "decision": "accept"})).await;
    assert_eq!((status, &done["observation"]["content"]), (200, &json!("pushed 5")), "{done}");
    assert_eq!(at.get("/a").await["pending"], json!([]));
    // What was not begun is not done, and what was begun once.
    assert!(at.run("a", "cat begun; ls never").await.1.contains("begun\ndone\nls: cannot access 'never'"));
    check_history(&at.events("a").await);
    at.delete("a").await;
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_asked_to_end_answers_what_is_being_done() {
    let home = Home::new();
    let at = home.gateway(&["--drain", "1s"]);
    at.start(json!({"session_id": "a"})).await;
    let (_, told) = at.post("/a/actions", run("sleep 60")).await;
    let began = Instant::now();
    let log = at.end();
    assert!(began.elapsed() < Duration::from_secs(20), "{log}");
    assert!(!home.path().join("sessions/served/default/a").exists());
    let at = home.gateway(&[]);
    let events = at.events("a").await;
    check_history(&events);
    assert_eq!((events.len(), &events[1]["cause"]), (2, &told["id"]));
    assert!(events[1]["content"].as_str().unwrap().contains("the gateway ended"), "{events:?}");
    // The command goes on in the sandbox, and can be interrupted.
    let interrupt = json!({"action": "run", "args": {"command": "C-c", "is_input": true}});
    assert_eq!(at.post("/a/actions?wait=20", interrupt).await.0, 200);
    assert_eq!(at.run("a", "echo free").await.1, "free");
    at.delete("a").await;
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_a_killed_gateway_has_begun_is_finished_by_the_next_one() {
    let home = Home::new();
    let at = home.gateway(&[]);
    let (status, _) = at.post("", json!({"session_id": "a", "environment": {"MINE": "yes"}})).await;
    assert_eq!(status, 201);
    let (status, told) = at.post("/a/actions", run("echo $MINE")).await;
    assert_eq!(status, 202, "{told}");
    at.kill();
    let at = home.gateway(&[]);
    let state = until("it is ready", async || {
        let told = at.get("/a").await;
        (told["state"] == "ready").then_some(told)
    });
    state.await;
    assert_eq!(at.run("a", "echo $MINE").await.1, "yes");
    check_history(&at.events("a").await);
    at.delete("a").await;
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_gateway_at_a_time_serves_a_session_and_hands_it_over_when_nothing_is_done() {
    let home = Home::new();
    let [one, two] = [home.gateway(&[]), home.gateway(&[])];
    one.start(json!({"session_id": "a"})).await;
    one.run("a", "x=5; echo first").await;
    // Who does not serve it reads it, follows it, and says when to come back.
    let mut follower = two.follow("a", "", None).await.unwrap();
    assert_eq!(follower.numbers(2).await, [0, 1]);
    assert_eq!(one.post("/a/actions", run("sleep 7; echo second")).await.0, 202);
    for (method, path, body) in [("POST", "/a/actions", Some(run("echo no"))), ("DELETE", "/a", None)] {
        let answer = two.send(method, path, KEY, body).await;
        assert!(answer.status == 503 && answer.retry_after.is_some(), "{answer:?}");
        assert!(answer.body["error"]["message"].as_str().unwrap().contains("another gateway"), "{answer:?}");
    }
    let shown = two.get("/a").await;
    assert_eq!((&shown["state"], &shown["last_event_id"]), (&json!("ready"), &json!(2)), "{shown}");
    assert_eq!(follower.numbers(2).await, [2, 3]);
    // Behind a balancer that knows nothing of sessions, each has its turn.
    let mut number = 4;
    for at in [&two, &one, &one, &two, &one, &two] {
        assert_eq!(at.run("a", "echo $x").await, (number, "5".to_owned()));
        number += 2;
    }
    assert_eq!(follower.numbers(12).await, (4..16).collect::<Vec<_>>());
    // One that ends lets go, and keeps nobody waiting who follows.
    let mut ends = two.follow("a", "?from=15", None).await.unwrap();
    assert_eq!(ends.numbers(1).await, [15]);
    let began = Instant::now();
    two.end();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(ends.next().await.is_none());
    assert_eq!(one.run("a", "echo $x").await, (16, "5".to_owned()));
    // When one is killed, the next one goes on at once.
    let three = home.gateway(&[]);
    one.kill();
    assert_eq!(three.run("a", "echo $x").await, (18, "5".to_owned()));
    check_history(&three.events("a").await);
    three.delete("a").await;
    three.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_which_nothing_happens_is_let_go_and_comes_back_when_it_is_asked() {
    let home = Home::new();
    let at = home.gateway(&["--session-idle", "200ms"]);
    at.start(json!({"session_id": "a"})).await;
    let mut follower = at.follow("a", "", None).await.unwrap();
    // As long as something is done, it is not idle.
    assert_eq!(at.run("a", "x=5; sleep 1; echo done").await, (0, "done".to_owned()));
    let mark = home.path().join("sessions/served/default/a");
    until("it is let go", async || (!mark.exists()).then_some(Value::Null)).await;
    assert_eq!(at.get("/a").await["status"], Value::Null);
    assert_eq!(at.run("a", "echo $x").await, (2, "5".to_owned()));
    assert!(mark.exists());
    assert_eq!(follower.numbers(4).await, [0, 1, 2, 3]);
    at.delete("a").await;
    assert_eq!(follower.next().await.unwrap().0, "end");
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_servers_of_a_session_run_in_its_sandbox_and_the_next_gateway_knows_them() {
    let home = Home::new();
    let at = home.gateway(&[]);
    let script = home.path().join("server.py");
    fs::write(&script, MCP_SERVER).unwrap();
    let server =
        json!({"name": "demo", "command": "python3", "args": [script, "demo"], "env": {"DEMO_KEY": "hunter2-hunter2"}});
    at.start(json!({"session_id": "a", "mcp_servers": [server]})).await;
    let call = |tool: &str| json!({"action": "call_tool_mcp", "args": {"name": tool, "arguments": {"text": "hello"}}});
    let (status, told) = at.post("/a/actions?wait=30", call("echo")).await;
    assert_eq!(status, 200, "{told}");
    assert!(told["observation"]["content"].as_str().unwrap().contains("demo: hello"), "{told}");
    let script = home.path().join("server.py").display().to_string();
    let shown = format!("tr '\\0' '\\n' < /proc/$(pgrep -f 'python3 {script} demo' | head -1)/environ | grep DEMO_KEY");
    assert_eq!(at.run("a", &shown).await.1, "DEMO_KEY=<secret_hidden>");
    at.kill();
    let at = home.gateway(&[]);
    let (status, told) = at.post("/a/actions?wait=30", call("echo")).await;
    assert_eq!(status, 200, "{told}");
    assert!(told["observation"]["content"].as_str().unwrap().contains("demo: hello"), "{told}");
    at.delete("a").await;
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_repository_cannot_be_had_fails_with_words_and_leaves_no_sandbox() {
    let home = Home::new();
    let at = home.gateway(&[]);
    // No host of repositories is reached here, and none has this one.
    let request = json!({"session_id": "a", "repository": {"name": "nobody-here/nothing", "branch": "main"}});
    let (status, told) = at.post("?wait=60", request).await;
    assert_eq!((status, &told["state"]), (201, &json!("failed")), "{told}");
    assert!(!told["reason"].as_str().unwrap().is_empty(), "{told}");
    let (status, told) = at.post("/a/actions", run("echo no")).await;
    assert!(status == 409 && told["error"]["message"].as_str().unwrap().contains("has failed"), "{told}");
    let pool = Pool::new(Certificates::Checked).unwrap();
    let list = pool.http().get(format!("{}/list", at.program.url)).header("X-API-Key", KEY).send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap(), json!({"runtimes": []}));
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_started_at_two_gateways_at_once_is_one() {
    let home = Home::new();
    let [one, two] = [home.gateway(&[]), home.gateway(&[])];
    for round in 0..5 {
        let request = json!({"session_id": format!("s{round}")});
        let starts = [&one, &two, &one, &two].map(|at| at.post("?wait=30", request.clone()));
        let answers = join_all(starts).await;
        let mut made = 0;
        for (status, told) in &answers {
            match status {
                201 => made += 1,
                409 => assert!(told["error"]["message"].as_str().unwrap().contains("already"), "{told}"),
                // Whoever has begun it is at it.
                503 => {}
                other => panic!("{other}: {told}"),
            }
        }
        assert_eq!(made, 1, "{answers:?}");
        assert_eq!(one.run(&format!("s{round}"), "echo here").await, (0, "here".to_owned()));
        one.delete(&format!("s{round}")).await;
    }
    one.end();
    two.end();
}

/// What a client has learned of an action that it has sent.
#[derive(Debug)]
enum Sent {
    /// It is in the history under this number.
    Accepted(i64),
    /// It may be there.
    Unknown,
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_that_are_killed_again_and_again_lose_nothing_and_do_nothing_twice() {
    let home = Home::new();
    let mut gateways = [home.gateway(&[]), home.gateway(&[])];
    gateways[0].start(json!({"session_id": "a"})).await;
    let mut sent = Vec::new();
    let rounds = if std::env::var_os("GLOVEPORT_THOROUGH").is_some() { 60 } else { 12 };
    for round in 0..rounds {
        // The one that serves it is killed with an action in the midst, and others behind it.
        for part in 0..3 {
            let number = round * 3 + part;
            let command = format!("echo {number} >> done; sleep 0.0{}", number % 7);
            let at = &gateways[round % 2];
            let answer = timeout(LIMIT, at.try_post("/a/actions", run(&command))).await.unwrap();
            sent.push((
                number,
                match answer {
                    Some((202, told)) => Sent::Accepted(told["id"].as_i64().unwrap()),
                    Some((503, _)) | None => Sent::Unknown,
                    Some((status, told)) => panic!("{status}: {told}"),
                },
            ));
        }
        let fresh = home.gateway(&[]);
        std::mem::replace(&mut gateways[round % 2], fresh).kill();
    }
    let at = &gateways[0];
    let all_answered = until("all is answered", async || {
        let (status, told) = at.ask("GET", "/a", None).await;
        (status == 200 && told["open"] == json!([])).then_some(told)
    });
    all_answered.await;
    let lines = until("the shell is free", async || {
        let (_, told) = at.post("/a/actions?wait=20", run("cat done")).await;
        let is_done = told["observation"]["extras"]["metadata"]["exit_code"] == 0;
        is_done.then(|| told["observation"]["content"].clone())
    });
    let lines = lines.await;
    let mut done: Vec<usize> = lines.as_str().unwrap().lines().map(|line| line.trim().parse().unwrap()).collect();
    let count = done.len();
    done.sort_unstable();
    done.dedup();
    assert_eq!(done.len(), count, "something was done twice: {lines}");
    let events = at.events("a").await;
    check_history(&events);
    let answer_of = |id: i64| events.iter().find(|event| event["cause"] == id && event["observation"].is_string());
    for (number, sent) in &sent {
        let Sent::Accepted(id) = sent else { continue };
        let event = &events[usize::try_from(*id).unwrap()];
        let command = event["args"]["command"].as_str().unwrap();
        assert!(command.starts_with(&format!("echo {number} >> done;")), "{command}");
        let answer = answer_of(*id).unwrap();
        // What is told as done is done.
        assert!(answer["extras"]["metadata"]["exit_code"] != 0 || done.contains(number), "{number}: {answer}");
    }
    // Each action of the history is answered, also those of which no client has heard.
    for action in events.iter().filter(|event| event["action"].is_string()) {
        assert!(answer_of(action["id"].as_i64().unwrap()).is_some(), "{action}");
    }
    let accepted = sent.iter().filter(|(_, sent)| matches!(sent, Sent::Accepted(_))).count();
    assert!(accepted > rounds, "only {accepted} actions were accepted");
    at.delete("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_sandbox_is_gone_says_so_and_answers_its_actions() {
    let home = Home::new();
    let at = home.gateway(&["--session-idle", "300ms"]);
    let told = at.start(json!({"session_id": "a"})).await;
    let pool = Pool::new(Certificates::Checked).unwrap();
    let stop = pool.http().post(format!("{}/stop", at.program.url)).header("X-API-Key", KEY);
    assert_eq!(stop.json(&json!({"runtime_id": told["sandbox"]})).send().await.unwrap().status(), 200);
    let (status, told) = at.post("/a/actions?wait=60", run("echo no")).await;
    assert_eq!((status, &told["observation"]["observation"]), (200, &json!("error")), "{told}");
    let failed = until("it has failed", async || {
        let (status, told) = at.post("/a/actions", run("echo no")).await;
        if status == 202 {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        (status == 409).then_some(told)
    });
    let failed = failed.await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("is gone"), "{failed}");
    check_history(&at.events("a").await);
    // It stays what it is when it is deleted.
    let (status, told) = at.ask("DELETE", "/a", None).await;
    assert_eq!((status, &told["state"]), (200, &json!("failed")), "{told}");
    at.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_and_bodies_make_nothing_and_are_told_what_is_wrong() {
    let home = Home::new();
    let at = home.gateway(&[]);
    at.start(json!({"session_id": "a"})).await;
    for id in ["..", "%2e%2e", "..%2f..%2fetc", "a%2f..%2fa", "a%00", "%ff", "a'%20OR%201=1", &"x".repeat(200), "-a"] {
        for (method, path) in
            [("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/actions"), ("POST", "/pause")]
        {
            let status = at.ask(method, &format!("/{id}{path}"), (method == "POST").then(|| run("id"))).await.0;
            assert!((400..500).contains(&status), "{method} {id}{path}: {status}");
        }
    }
    for (body, words) in [
        (json!({"session_id": "../../x"}), "session"),
        (json!({"session_id": "b", "workspace": "/etc"}), "unknown field"),
        (json!({"session_id": "b", "mounts": []}), "unknown field"),
        (json!(["b"]), "JSON object"),
        (json!({"session_id": "b", "environment": {"PATH\n": "x"}}), "variable"),
    ] {
        let (status, told) = at.post("", body).await;
        assert!(status == 400 && told["error"]["message"].as_str().unwrap().contains(words), "{told}");
    }
    for (path, body, words) in [
        ("/a/actions", json!({"action": "fly"}), "no action"),
        ("/a/actions", json!({"action": "run", "args": {}}), "no action"),
        ("/a/actions", json!({"action": "run", "args": {"command": "id"}, "source": "environment"}), "source"),
        ("/a/actions", json!("run"), "JSON object"),
        ("/a/confirm", json!({"event_id": "0; DROP"}), "not as it must be"),
        ("/a/environment", json!({"variables": {"A": 1}}), "not as it must be"),
        ("/a/secrets", json!({"variables": {"A;id": "x"}}), "variable"),
        ("/a/actions?wait=forever", run("id"), "query"),
        ("/a/actions?wait=-1", run("id"), "wait"),
        ("/a/actions?wait=1e300", run("id"), "wait"),
        ("/a/actions?wait=NaN", run("id"), "wait"),
        ("/a/actions?key=x", run("id"), "query"),
    ] {
        let (status, told) = at.post(path, body).await;
        assert!(status == 400 && told["error"]["message"].as_str().unwrap().contains(words), "{path}: {status} {told}");
    }
    // A client does not say which number an event has, and when it was.
    let forged = json!({"action": "run", "id": 77, "cause": 3, "timestamp": "1999-01-01T00:00:00", "args": {"command": "echo one"}});
    let (status, told) = at.post("/a/actions?wait=20", forged).await;
    assert_eq!((status, &told["id"], &told["observation"]["content"]), (200, &json!(0), &json!("one")), "{told}");
    // More than a body may have is refused before it comes.
    let address = at.program.url.strip_prefix("http://").unwrap().to_owned();
    let head = format!(
        "POST /v1/sessions/a/actions HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nContent-Length: 5242880\r\n\r\n"
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    });
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 413"));
    let names: Vec<String> =
        ["users", "users/default", "users/default/conversations", "served/default", "secrets/default"]
            .iter()
            .flat_map(|path| fs::read_dir(home.path().join("sessions").join(path)).unwrap())
            .map(|entry| entry.unwrap().file_name().display().to_string())
            .collect();
    assert_eq!(names, ["default", "conversations", "a", "a", "a.json"]);
    at.delete("a").await;
    at.end();
}
