//! Files when the server is killed, and when the disk is full.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::support::{LIMIT, Server, until, with_home};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Moments at which the server is killed.
const KILLS: usize = 100;
/// The same with `scripts/test --thorough`.
const THOROUGH_KILLS: usize = 500;
/// Kills of one server process would be one; so this many files are edited meanwhile.
const FILES: usize = 4;
/// Lines of each file.
const LINES: usize = 2_000;

fn action(action: &str, args: &Value) -> String {
    json!({"action": {"action": action, "args": args}}).to_string()
}

/// How a file gets its next version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a `write` of the whole. The version stands in several lines.
    Write,
    /// By a `str_replace` of the one line with the version.
    Edit,
}

/// The content of a file at a version.
fn content(way: Way, version: usize) -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let has_version = match way {
            Way::Write => line % 500 == 499,
            Way::Edit => line == LINES / 2,
        };
        let shown = if has_version { format!("version {version:06}") } else { format!("line {line:05}") };
        text.push_str(&shown);
        text.push_str(" of a file that is long enough to be written in several pieces\n");
    }
    text
}

/// Sends a request; whether it was answered with success.
fn post(port: u16, body: &str) -> bool {
    use std::io::Write as _;
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let _limit = stream.set_read_timeout(Some(LIMIT));
    let sent = write!(
        stream,
        "POST /execute_action HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    sent.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
}

/// Writes versions of one file until told to stop, or the server is gone. Answers with the last one that was begun.
fn write_versions(port: u16, path: &Path, way: Way, mut version: usize, stop: &AtomicBool) -> usize {
    while !stop.load(Ordering::Relaxed) {
        let old = format!("version {version:06}");
        version += 1;
        let body = match way {
            Way::Write => {
                action("write", &json!({"path": path, "content": content(way, version).trim_end_matches('\n')}))
            }
            Way::Edit => {
                let new = format!("version {version:06}");
                action("edit", &json!({"path": path, "command": "str_replace", "old_str": old, "new_str": new}))
            }
        };
        if !post(port, &body) {
            break;
        }
    }
    version
}

/// The version that a file holds as a whole.
#[track_caller]
#[expect(clippy::panic, reason = "a test stops at the first broken assumption")]
fn version_of(path: &Path, way: Way, name: &str) -> usize {
    let found = fs::read_to_string(path).unwrap_or_default();
    let version = found.lines().find_map(|line| line.strip_prefix("version ")?.get(..6)?.parse().ok());
    let version = version.unwrap_or_else(|| panic!("{name} has no version: {:?}", found.get(..200)));
    assert_eq!(found.len(), content(way, version).len(), "{name} is cut");
    assert_eq!(found, content(way, version), "{name} is mixed");
    version
}

#[test]
fn a_killed_server_leaves_each_file_old_or_new_and_the_next_start_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<(PathBuf, Way)> = (0..FILES)
        .map(|n| (directory.path().join(format!("file{n}")), if n % 2 == 0 { Way::Write } else { Way::Edit }))
        .collect();
    let mut versions = BTreeMap::new();
    for (path, way) in &files {
        fs::write(path, content(*way, 1)).unwrap();
        versions.insert(path.clone(), 1);
    }
    // The journal of temporary files is in the directory for those, which every start must share.
    let temporary = tempfile::tempdir().unwrap();
    let temporary = temporary.path().to_str().unwrap();
    let (mut leftovers, mut kills) = (0, 0);
    let enough = if std::env::var_os("GLOVEPORT_THOROUGH").is_some() { THOROUGH_KILLS } else { KILLS };
    while kills < enough {
        let mut server = Server::serve(&[], &[("TMPDIR", temporary)]);
        let names = |directory: &Path| fs::read_dir(directory).unwrap().count();
        until("nothing but the files is left", || names(directory.path()) == FILES);
        let stop = AtomicBool::new(false);
        let port = server.port;
        let begun: Vec<usize> = thread::scope(|scope| {
            let writers: Vec<_> = files
                .iter()
                .map(|(path, way)| {
                    let (version, stop) = (versions[path], &stop);
                    scope.spawn(move || write_versions(port, path, *way, version, stop))
                })
                .collect();
            // A different moment each time, spread over the life of several edits.
            thread::sleep(Duration::from_micros(500 + (kills as u64 * 7_919) % 20_000));
            let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
            stop.store(true, Ordering::Relaxed);
            server.child.wait().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        kills += 1;
        leftovers += names(directory.path()) - FILES;
        for ((path, way), begun) in files.iter().zip(begun) {
            let found = version_of(path, *way, &format!("{} after kill {kills}", path.display()));
            assert!(found >= versions[path] && found <= begun, "version {found} of {}..={begun}", versions[path]);
            versions.insert(path.clone(), found);
        }
    }
    let _last = Server::serve(&[], &[("TMPDIR", temporary)]);
    until("nothing but the files is left", || fs::read_dir(directory.path()).unwrap().count() == FILES);
    assert!(leftovers > 0, "no kill came in the middle of a write, so this test showed nothing");
    assert!(versions.values().all(|version| *version > 1), "{versions:?}");
}

#[test]
fn a_full_disk_is_told_and_every_file_stays_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let disk = home.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=256k tmpfs {}", disk.display());
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        // Others than root need a user namespace for it.
        command.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-mr" }).args(["sh", "-c", script]);
        with_home(command, home.path())
    };
    if !in_namespace(&mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("skipped: this system does not let the test mount a small disk");
        return;
    }
    let binary = env!("CARGO_BIN_EXE_gloveport");
    let mut command =
        in_namespace(&format!("{mount} && exec {binary} serve --no-key --port 0 --workspace {}", disk.display()));
    let server = Server::started(&mut command, home);
    let disk = server.home.path().join("disk");
    let execute = |kind: &str, args: Value| {
        let (status, body) = server.request("POST", "/execute_action", "", &action(kind, &args));
        (status, serde_json::from_str::<Value>(&body).unwrap_or_default())
    };
    let small = "s".repeat(1000);
    let path = disk.join("file");
    assert_eq!(execute("write", json!({"path": path, "content": small})).0, 200);
    let big = "b".repeat(300_000);
    let (status, answer) = execute("write", json!({"path": path, "content": big}));
    assert_eq!((status, &answer["detail"]), (500, &json!("Internal server error: [Errno 28] No space left on device")));
    let (_, answer) =
        execute("edit", json!({"path": path, "command": "str_replace", "old_str": small, "new_str": big}));
    let said = answer["content"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("ERROR:\nRan into [Errno 28] No space left on device")
            && said.contains("while trying to write to"),
        "{said}"
    );
    let (_, answer) = execute("edit", json!({"path": disk.join("new"), "command": "create", "file_text": big}));
    assert!(answer["content"].as_str().unwrap().starts_with("ERROR:\nRan into [Errno 28]"), "{answer}");
    let listing = server.run(&format!("ls -A {}; cat {}", disk.display(), path.display()), 10.0);
    assert_eq!(listing["content"], json!(format!("file\n{small}")));
}
