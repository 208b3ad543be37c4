//! The session commands, and `run`, over a gateway that only the command line names.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::{
    gateway::{KEY, Program},
    support::{gloveport, text},
};

/// A gateway over a place of its own, and somebody who uses it from another home.
struct Service {
    /// Where the sandboxes are.
    place: TempDir,
    home: TempDir,
    key: PathBuf,
    program: Program,
}

impl Service {
    fn start() -> Self {
        let (place, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = home.path().join("key");
        fs::write(&key, format!("{KEY}\n")).unwrap();
        let mut command = isolated(place.path());
        command.args(["gateway", "--port", "0", "--key-file"]).arg(&key);
        let program = Program::start(command);
        Self { place, home, key, program }
    }

    /// A command of the user.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = isolated(self.home.path());
        command.args(words);
        command
    }

    /// A session command with the flags of the gateway.
    fn session(&self, words: &[&str]) -> Output {
        let mut command = self.command(&["session", "--gateway", &self.program.url, "--gateway-key-file"]);
        command.arg(&self.key).args(words).output().unwrap()
    }

    /// What a session command that succeeds prints.
    fn done(&self, words: &[&str]) -> String {
        let output = self.session(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    fn end(self) {
        let errors = self.program.end();
        assert!(!errors.contains(KEY), "{errors}");
        // Nothing of the sandboxes is on the side of the user, and nothing is left of them.
        assert!(!self.home.path().join("state/gloveport/local").exists());
        let sandboxes = self.place.path().join("state/gloveport/local/sandboxes");
        assert_eq!(fs::read_dir(sandboxes).unwrap().count(), 0);
    }
}

fn isolated(home: &Path) -> Command {
    let mut command = gloveport(home);
    command.env("XDG_STATE_HOME", home.join("state")).env_remove("XDG_RUNTIME_DIR").current_dir(home);
    command
}

#[test]
fn session_commands_work_over_a_gateway_as_over_an_engine_of_this_machine() {
    let service = Service::start();
    let id = service.done(&["start", "mine", "--label", "team=infra", "--port", "web", "--ttl", "1h", "--env", "A=b"]);
    assert_eq!(id, "mine");
    assert_eq!(service.done(&["exec", "mine", "--", "cd /tmp && x=5; echo $A"]), "b");
    assert_eq!(service.done(&["exec", "mine", "echo $x in $PWD"]), "5 in /tmp");
    // The beginning of an id is enough.
    assert_eq!(service.done(&["exec", "mi", "echo here"]), "here");
    for (words, expected) in [
        (&["ls", "-q"][..], "mine"),
        (&["ls", "-q", "--label", "team=infra"], "mine"),
        (&["ls", "-q", "--label", "team=web"], ""),
    ] {
        assert_eq!(service.done(words), expected, "{words:?}");
    }
    let shown: serde_json::Value = serde_json::from_str(&service.done(&["show", "mine", "--json"])).unwrap();
    let told = shown.to_string();
    assert!(told.contains("\"remote\"") && told.contains("infra") && !told.contains(KEY), "{told}");

    let file = service.home.path().join("notes.txt");
    fs::write(&file, "one\n").unwrap();
    service.done(&["cp", file.to_str().unwrap(), "mine:/tmp/notes-of-a-gateway.txt"]);
    assert_eq!(service.done(&["cp", "mine:/tmp/notes-of-a-gateway.txt", "-"]), "one");
    assert!(service.done(&["view", "mine", "/tmp/notes-of-a-gateway.txt"]).contains("one"));
    service.done(&["exec", "mine", "rm /tmp/notes-of-a-gateway.txt"]);
    assert!(service.done(&["url", "mine", "web"]).starts_with(&format!("{}/mine/web", service.program.url)));
    assert_eq!(service.done(&["url", "mine"]), format!("{}/mine", service.program.url));
    let log = service.place.path().join("state/gloveport/local/sandboxes/mine/log");
    fs::OpenOptions::new().append(true).open(log).unwrap().write_all(b"one\ntwo\n").unwrap();
    assert_eq!(service.done(&["logs", "mine", "--tail", "1"]), "two");
    let events = service.done(&["events", "mine"]);
    assert!(events.contains("echo $x in $PWD") && events.contains("5 in /tmp"), "{events}");

    service.done(&["pause", "mine"]);
    let paused = service.session(&["exec", "mine", "true"]);
    assert!(text(&paused.stderr).contains("paused"), "{}", text(&paused.stderr));
    service.done(&["resume", "mine"]);
    assert_eq!(service.done(&["exec", "mine", "echo $x"]), "5");
    // What the runtime behind the gateway cannot do is told.
    for words in [&["snapshot", "mine", "one"][..], &["fork", "mine"]] {
        let refused = service.session(words);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("has no support for"), "{}", text(&refused.stderr));
    }
    let refused = service.session(&["start", "--image", "debian:13"]);
    assert!(text(&refused.stderr).contains("no support for an image"), "{}", text(&refused.stderr));
    service.done(&["stop", "mine"]);
    assert_eq!(service.done(&["ls", "-q"]), "");
    service.end();
}

#[test]
fn variables_name_a_gateway_as_flags_do_and_contradictions_are_told() {
    let service = Service::start();
    let url = service.program.url.clone();
    let file = service.key.to_str().unwrap();
    let by_variables = |words: &[&str], more: &[(&str, &str)]| {
        let mut command = service.command(words);
        command.env("GLOVEPORT_GATEWAY", &url).env("GLOVEPORT_GATEWAY_KEY_FILE", file);
        command.envs(more.iter().copied()).output().unwrap()
    };
    let output = by_variables(&["session", "start", "a"], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (more, expected) in [(&[("GLOVEPORT_RUNTIME", "local")][..], "a"), (&[("GLOVEPORT_RUNTIME", "remote")], "a")] {
        assert_eq!(text(&by_variables(&["session", "ls", "-q"], more).stdout).trim(), expected, "{more:?}");
    }
    // A flag counts more than a variable.
    assert_eq!(text(&by_variables(&["session", "--runtime", "local", "ls", "-q"], &[]).stdout), "");
    let key = [("GLOVEPORT_GATEWAY_KEY", "a key that nobody has"), ("GLOVEPORT_GATEWAY_KEY_FILE", "")];
    let refused = by_variables(&["session", "ls"], &key);
    assert!(text(&refused.stderr).contains("refuses access"), "{}", text(&refused.stderr));
    let mut right = service.command(&["session", "--gateway", &url, "rm", "-f", "a"]);
    let removed = right.env("GLOVEPORT_GATEWAY_KEY", KEY).output().unwrap();
    assert!(removed.status.success(), "{}", text(&removed.stderr));

    // A command runs in a fresh sandbox there, which is gone afterwards.
    let gateway = ["run", "--gateway", &url, "--gateway-key-file", file];
    let ran = |words: &[&str]| service.command(&[&gateway[..], words].concat()).output().unwrap();
    let output = ran(&["echo in $(pwd)"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let place = fs::canonicalize(service.place.path()).unwrap();
    assert!(text(&output.stdout).contains(place.to_str().unwrap()), "{}", text(&output.stdout));
    assert_eq!(ran(&["exit 7"]).status.code(), Some(7));
    assert_eq!(text(&by_variables(&["run", "echo over there"], &[]).stdout), "over there\n");

    for (words, code, expected) in [
        (&["session", "--gateway", &url, "--runtime", "docker", "ls"][..], 2, "--runtime docker exclude each other"),
        (&["run", "--gateway", &url, "--runtime", "docker", "true"], 2, "--runtime docker exclude each other"),
        (
            &["run", "--gateway", &url, "--url", "http://127.0.0.1:1", "true"],
            2,
            "--url and --gateway exclude each other",
        ),
        (&["session", "--gateway", &url, "ls"], 1, "needs a key"),
        (&["session", "--gateway", "example.org", "--gateway-key-file", file, "ls"], 1, "its URL is none"),
        (&["session", "--gateway", &url, "--gateway-key-file", "/nonexistent", "ls"], 1, "/nonexistent"),
    ] {
        let output = service.command(words).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), errors.contains(expected)), (Some(code), true), "{words:?}: {errors}");
    }
    service.end();
}
