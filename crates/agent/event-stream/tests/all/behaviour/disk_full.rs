//! A disk that is full, and then is not.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use gloveport_event_stream::{EventStore, Search};
use serde_json::{Value, json};

use crate::behaviour::{
    common::{local, said},
    crash::program,
};

/// A program that adds events on a small disk that only it has.
struct Writer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The disk as this process sees it.
    disk: PathBuf,
}

impl Writer {
    /// Starts it; nothing if the system does not allow that.
    fn start(mount_point: &Path) -> Option<Self> {
        let (point, program) = (mount_point.display(), program());
        let script = format!(
            "mount -t tmpfs -o size=512k tmpfs {point} && head -c 200000 /dev/zero > {point}/filler && \
             exec {} add {point}/root s",
            program.display()
        );
        let mut command = Command::new("unshare");
        // Others than root need a user namespace for it.
        command.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-mr" }).args(["sh", "-c", &script]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let disk = PathBuf::from(format!("/proc/{}/root{point}", child.id()));
        let mut writer = Self { child, input, output, disk };
        writer.add("first").map(|_| writer)
    }

    /// Adds a message; nothing if the program has ended.
    fn add(&mut self, text: &str) -> Option<Value> {
        let event = json!({"action": "message", "args": {"content": text}});
        writeln!(self.input, "{}", json!({"source": "user", "event": event})).ok()?;
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_adding_goes_on_when_there_is_room() {
    let point = tempfile::tempdir().unwrap();
    let Some(mut writer) = Writer::start(point.path()) else {
        println!("skipped: this system does not let the test mount a small disk");
        return;
    };
    let root = writer.disk.join("root");
    let store = EventStore::new(local(&root), "s", None);
    let mut expected = vec!["first".to_owned()];

    // One that is too large is refused, and the next one gets its number.
    let error = writer.add(&"x".repeat(400_000)).unwrap()["error"].as_str().unwrap().to_owned();
    assert!(
        error.starts_with("the event cannot be stored: cannot write '")
            && error.ends_with("No space left on device (os error 28)"),
        "{error}"
    );
    assert_eq!(writer.add("second").unwrap()["id"], json!(1));
    expected.push("second".to_owned());

    // Until the disk is full.
    let mut refused = 0;
    while refused < 5 {
        let text = format!("{} {}", expected.len(), "y".repeat(2_000));
        let answer = writer.add(&text).unwrap();
        if answer["error"].is_null() {
            assert_eq!(answer["id"], json!(expected.len()));
            expected.push(text);
        } else {
            refused += 1;
        }
        assert!(expected.len() < 1_000, "the disk is never full");
    }

    // What was refused is not shown, and what was taken is.
    let shown = |events: Vec<gloveport_protocol::Event>| events.iter().map(said).collect::<Vec<_>>();
    assert_eq!(shown(store.search(Search::default()).collect(10_000).await.unwrap()), expected);

    fs::remove_file(writer.disk.join("filler")).unwrap();
    for text in ["there", "is", "room"] {
        assert_eq!(writer.add(text).unwrap()["id"], json!(expected.len()));
        expected.push(text.to_owned());
    }
    assert_eq!(shown(store.search(Search::default()).collect(10_000).await.unwrap()), expected);
}
