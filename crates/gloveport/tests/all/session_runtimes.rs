//! Sessions of several runtimes at once, some of which do not work.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Output,
    thread,
};

use crate::sessions::Home;
use crate::support::text;
use serde_json::json;

/// A home with programs in its `PATH` that are providers: name and text of each.
fn home_with(programs: &[(&str, &str)]) -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("bin")).unwrap();
    for (name, script) in programs {
        let path = home.path().join("bin").join(format!("gloveport-provider-{name}"));
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home
}

fn session(home: &Home, words: &[&str]) -> Output {
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap());
    home.command(words).env("PATH", path).output().unwrap()
}

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/providers").join(name)).unwrap()
}

#[test]
fn sessions_of_all_runtimes_are_found_and_one_that_fails_is_a_warning() {
    let home = home_with(&[("process", &example("process.py")), ("broken", "#!/bin/sh\necho no engine >&2\nexit 3\n")]);
    assert!(session(&home, &["start", "--id", "alpha"]).status.success());
    let started = session(&home, &["start", "--runtime", "process", "--id", "alps"]);
    assert!(started.status.success(), "{}", text(&started.stderr));

    let listed = session(&home, &["ls", "-q"]);
    assert_eq!((text(&listed.stdout).as_str(), listed.status.code()), ("alpha\nalps\n", Some(0)));
    assert!(text(&listed.stderr).contains("the runtime `broken` could not be asked"), "{}", text(&listed.stderr));
    assert_eq!(text(&session(&home, &["ls", "-q", "--runtime", "process"]).stdout), "alps\n");

    let done = session(&home, &["exec", "alps", "echo over there"]);
    assert_eq!((text(&done.stdout).as_str(), done.status.code()), ("over there\n", Some(0)), "{}", text(&done.stderr));
    let refused = session(&home, &["exec", "alp", "true"]);
    assert!(text(&refused.stderr).contains("it fits alpha (local), alps (process)"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(125));
    let missing = session(&home, &["url", "nobody"]);
    assert!(text(&missing.stderr).contains("the runtime `broken` did not answer"), "{}", text(&missing.stderr));

    let removed = session(&home, &["rm", "-f", "alpha", "alps"]);
    assert_eq!((text(&removed.stdout).as_str(), removed.status.code()), ("alpha\nalps\n", Some(0)));
    // That not all could be asked is a failure of `gc`, and no runtime at all is no empty list.
    assert_eq!(session(&home, &["gc"]).status.code(), Some(1));
    assert_eq!(session(&home, &["ls", "--runtime", "broken"]).status.code(), Some(1));
}

#[test]
fn a_session_that_may_run_keeps_its_history_and_one_that_ended_is_listed_until_it_is_removed() {
    let home = home_with(&[("process", &example("process.py"))]);
    assert!(session(&home, &["start", "--runtime", "process", "--id", "far"]).status.success());
    assert!(session(&home, &["exec", "far", "echo kept"]).status.success());
    let history = home.path().join(".openhands/sessions/far/events/1.json");

    // It runs, and is looked for where it is not.
    let refused = session(&home, &["rm", "--runtime", "local", "far"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("in the runtime `process`; remove it with"), "{}", text(&refused.stderr));
    // Its runtime cannot be asked.
    let program = home.path().join("bin/gloveport-provider-process");
    let hidden = home.path().join("bin/hidden");
    fs::rename(&program, &hidden).unwrap();
    let refused = session(&home, &["rm", "far"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("may run in the runtime `process`"), "{}", text(&refused.stderr));
    assert!(history.exists());
    fs::rename(&hidden, &program).unwrap();

    assert!(session(&home, &["stop", "far"]).status.success());
    assert_eq!(text(&session(&home, &["ls", "-q"]).stdout), "");
    assert_eq!(text(&session(&home, &["ls", "-q", "--all"]).stdout), "far\n");
    assert_eq!(text(&session(&home, &["ls", "-q", "--all", "--runtime", "local"]).stdout), "");
    assert!(text(&session(&home, &["ls", "--all"]).stdout).contains("ended, history kept"));
    let listed: serde_json::Value = serde_json::from_slice(&session(&home, &["ls", "--all", "--json"]).stdout).unwrap();
    assert_eq!(listed, json!([{"session_id": "far", "provider": "process", "state": "ended", "history": true}]));
    assert_eq!(text(&session(&home, &["rm", "far"]).stdout), "far\n");
    assert!(!history.exists());
    assert_eq!(text(&session(&home, &["ls", "-q", "--all"]).stdout), "");
}

/// A server of the OpenHands interface alone, with one fixed observation of each kind.
fn foreign_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ran = json!({
        "observation": "run", "content": "from afar",
        "extras": {"command": "x", "hidden": true, "metadata": {"exit_code": 6}},
    });
    let cell = json!({
        "observation": "run_ipython", "content": "a far cell",
        "extras": {"code": "x", "image_urls": ["data:image/png;base64,AAAA"]},
    });
    let read = json!({
        "observation": "read", "content": "a far file\n", "extras": {"path": "/far", "impl_source": "default"},
    });
    let written = json!({"observation": "write", "content": "", "extras": {"path": "/far"}});
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), Vec::new());
            let mut piece = [0; 8192];
            // A request is whole when its head and as much as it announces are there.
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                request.extend_from_slice(&piece[..count]);
                let seen = String::from_utf8_lossy(&request).to_lowercase();
                let Some((head, body)) = seen.split_once("\r\n\r\n") else { continue };
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break;
                }
            }
            let path = String::from_utf8_lossy(&request).split(' ').nth(1).unwrap_or_default().to_owned();
            let body = String::from_utf8_lossy(&request).replace(' ', "");
            let asked = |kind: &str| body.contains(&format!("\"action\":\"{kind}\""));
            let (status, body) = match path.as_str() {
                "/alive" => ("200 OK", json!({"status": "ok"})),
                "/execute_action" if asked("run_ipython") => ("200 OK", cell.clone()),
                "/execute_action" if asked("read") => ("200 OK", read.clone()),
                "/execute_action" if asked("write") => ("200 OK", written.clone()),
                "/execute_action" => ("200 OK", ran.clone()),
                _ => ("404 Not Found", json!({"detail": "Not Found"})),
            };
            let body = body.to_string();
            let length = body.len();
            let _gone = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

/// A home with a session `far`, whose server is such a one.
fn far() -> Home {
    let sandbox =
        json!({"id": "far-1", "session_id": "far", "state": "running", "url": foreign_server(), "lifetime": "kept"});
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\ncase $1 in\n\
         describe) echo '{}' ;;\n\
         find-session|find) echo '{}' ;;\n\
         list) echo '{}' ;;\n\
         *) echo '{{\"error\": {{\"code\": \"unsupported\", \"message\": \"this\"}}}}' ;;\nesac\n",
        json!({"protocol": 1, "protocols": [1], "capabilities": {}}),
        json!({"sandbox": sandbox}),
        json!({"sandboxes": [sandbox]}),
    );
    home_with(&[("far", &script)])
}

#[test]
fn a_server_that_has_only_the_openhands_interface_runs_commands_too() {
    let home = far();
    let done = session(&home, &["exec", "far", "x"]);
    assert_eq!((text(&done.stdout).as_str(), done.status.code()), ("from afar\n", Some(6)), "{}", text(&done.stderr));
    let events = text(&session(&home, &["events", "far"]).stdout);
    assert!(events.contains("$ x\n") && events.contains("from afar\n[exit code 6]"), "{events}");
    let refused = session(&home, &["exec", "--cwd", "/", "far", "x"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("only the OpenHands interface"), "{}", text(&refused.stderr));
}

#[test]
fn cells_and_files_of_a_server_that_has_only_the_openhands_interface_are_actions() {
    let home = far();
    let pictures = home.path().join("pictures").display().to_string();
    let cell = session(&home, &["ipython", "--images", &pictures, "far", "x"]);
    assert_eq!((text(&cell.stdout).as_str(), cell.status.code()), ("a far cell", Some(0)), "{}", text(&cell.stderr));
    assert_eq!(std::fs::read(home.path().join("pictures/1.png")).unwrap(), [0, 0, 0]);
    let refused = session(&home, &["ipython", "--kernel", "mine", "far", "x"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("only the OpenHands interface"), "{}", text(&refused.stderr));
    assert_eq!(text(&session(&home, &["view", "--raw", "far", "/far"]).stdout), "a far file\n");
    let written = session(&home, &["write", "-n", "1", "--text", "x", "far", "/far"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let shown = text(&session(&home, &["events", "far"]).stdout);
    assert!(shown.contains(">>> x\n") && shown.contains("a far cell\n") && shown.contains("a far file\n"), "{shown}");
    let written = session(&home, &["events", "--json", "--kind", "write", "far"]);
    assert_eq!(text(&written.stdout).lines().count(), 2);
}
