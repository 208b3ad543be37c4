//! The agent of each sandbox: files, and processes in the Connect protocol with JSON.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{ChildStdin, Stdio},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::{
    body::{Body, Bytes},
    http::{Method, request::Parts},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_stand_ins::{
    answers::{refusal, told},
    children, signal,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Shared, lock, machine::Machine};

/// A process that was started.
struct Process {
    sandbox: String,
    config: Value,
    tag: Option<String>,
    stdin: Option<ChildStdin>,
}

/// All processes of all stand-ins of this test program, by their ids.
fn processes() -> &'static Mutex<BTreeMap<u32, Process>> {
    static ALL: OnceLock<Mutex<BTreeMap<u32, Process>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
}

fn with_all<T>(work: impl FnOnce(&mut BTreeMap<u32, Process>) -> T) -> T {
    work(&mut processes().lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn answer(world: &Shared, id: &str, parts: &Parts, body: &Bytes) -> Response {
    let machine = {
        let world = lock(world);
        let Some(sandbox) = world.sandboxes.get(id).filter(|sandbox| !sandbox.paused) else {
            return refusal(502, "The sandbox was not found");
        };
        let token = parts.headers.get("x-access-token").and_then(|token| token.to_str().ok());
        if token != Some(sandbox.agent_token.as_str()) {
            return refusal(401, "unauthorized access");
        }
        Arc::clone(&sandbox.machine)
    };
    let query: BTreeMap<String, String> =
        form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    match (&parts.method, parts.uri.path()) {
        (&Method::POST, "/files") => write(&machine, &query["path"], body),
        (&Method::GET, "/files") => match fs::read(machine.path(&query["path"])) {
            Ok(content) => Response::new(content.into()),
            Err(_) => refusal(404, "file not found"),
        },
        (&Method::POST, "/process.Process/Start") => start(id, machine, body),
        (&Method::POST, path) => {
            let Ok(body) = serde_json::from_slice::<Value>(body) else { return refusal(400, "no JSON") };
            unary(id, path, &body)
        }
        _ => refusal(404, "no such path"),
    }
}

fn write(machine: &Machine, path: &str, content: &[u8]) -> Response {
    let path = machine.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    told(200, &json!([{"name": path.file_name().unwrap().to_str(), "type": "file"}]))
}

fn unary(id: &str, path: &str, body: &Value) -> Response {
    let pid = body["process"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
    let known = with_all(|all| all.get(&pid).is_some_and(|process| process.sandbox == id));
    match path.trim_start_matches("/process.Process/") {
        "List" => {
            let listed = with_all(|all| {
                let ours = all.iter().filter(|(_, process)| process.sandbox == id);
                ours.map(|(pid, process)| json!({"pid": pid, "tag": process.tag, "config": process.config})).collect()
            });
            told(200, &json!({"processes": Value::Array(listed)}))
        }
        _ if !known => refusal(404, "process not found"),
        "SendInput" => {
            let text = STANDARD.decode(body["input"]["stdin"].as_str().unwrap_or_default()).unwrap();
            let written = with_all(|all| {
                all.get_mut(&pid).and_then(|process| process.stdin.as_mut()).map(|stdin| stdin.write_all(&text).is_ok())
            });
            if written == Some(true) { told(200, &json!({})) } else { refusal(400, "standard input is closed") }
        }
        "CloseStdin" => {
            with_all(|all| {
                if let Some(process) = all.get_mut(&pid) {
                    process.stdin = None;
                }
            });
            told(200, &json!({}))
        }
        "SendSignal" => {
            let name = body["signal"].as_str().unwrap_or_default().trim_start_matches("SIGNAL_SIG").to_owned();
            let mut tree = vec![pid];
            let mut at = 0;
            while let Some(pid) = tree.get(at) {
                tree.extend(children(*pid));
                at += 1;
            }
            signal(&name, &tree);
            told(200, &json!({}))
        }
        _ => refusal(404, "no such method"),
    }
}

fn envelope(flags: u8, message: &Value) -> Bytes {
    let message = message.to_string();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flags], &length[..], message.as_bytes()].concat().into()
}

fn start(id: &str, machine: Arc<Machine>, body: &[u8]) -> Response {
    let Some(Ok(body)) = body.get(5..).map(serde_json::from_slice::<Value>) else { return refusal(400, "no envelope") };
    let config = &body["process"];
    let mut command = machine.command(config["cmd"].as_str().unwrap(), config["cwd"].as_str().unwrap_or("/"));
    command.args(config["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
    command
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root");
    command.envs(
        config["envs"].as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?))),
    );
    // It is open unless it is said that it is not.
    let has_stdin = body["stdin"] != false;
    command.stdin(if has_stdin { Stdio::piped() } else { Stdio::null() });
    let mut child = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return refusal(400, &error.to_string()),
    };
    let (pid, stdin) = (child.id(), child.stdin.take());
    machine.started(pid);
    let tag = body["tag"].as_str().map(str::to_owned);
    with_all(|all| all.insert(pid, Process { sandbox: id.to_owned(), config: config.clone(), tag, stdin }));
    // What nobody reads is dropped, and the program goes on.
    let (tell, mut told) = mpsc::channel::<Bytes>(64);
    let _unread = tell.try_send(envelope(0, &json!({"event": {"start": {"pid": pid}}})));
    let readers = [
        read("stdout", child.stdout.take().unwrap(), tell.clone()),
        read("stderr", child.stderr.take().unwrap(), tell.clone()),
    ];
    let weak = Arc::downgrade(&machine);
    drop(machine);
    std::thread::spawn(move || {
        let status = child.wait().unwrap();
        // What it has started may hold its output.
        if let Some(machine) = weak.upgrade() {
            machine.ended(pid);
            for reader in readers {
                reader.join().unwrap();
            }
        }
        with_all(|all| all.remove(&pid));
        let mut end = json!({"exited": status.code().is_some(), "status": status.to_string()});
        // A field of this protocol that is 0 is left out.
        if let Some(code) = status.code().filter(|code| *code != 0) {
            end["exitCode"] = json!(code);
        }
        let _unread = tell.blocking_send(envelope(0, &json!({"event": {"end": end}})));
        let _unread = tell.blocking_send(envelope(2, &json!({})));
    });
    let stream = futures_util::stream::poll_fn(move |context| {
        told.poll_recv(context).map(|piece| piece.map(Ok::<_, std::io::Error>))
    });
    let mut answer = Response::new(Body::from_stream(stream));
    answer.headers_mut().insert("content-type", "application/connect+json".parse().unwrap());
    answer
}

fn read(
    name: &'static str,
    mut from: impl Read + Send + 'static,
    to: mpsc::Sender<Bytes>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 32 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let data = json!({name: STANDARD.encode(&buffer[..length])});
            let _nobody_reads = to.blocking_send(envelope(0, &json!({"event": {"data": data}})));
        }
    })
}
