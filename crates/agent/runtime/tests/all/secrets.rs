//! What is secret is seen nowhere: not in events, logs, errors, `Debug` output or arguments of processes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::support::{History, Sandbox, hex, output, within};
use gloveport_client::ClientOptions;
use gloveport_protocol::{Action, EventSource, RunAction, Secret};
use gloveport_runtime::{
    Runtime, RuntimeOptions, SelectedRepository, ServerAt,
    git_providers::{ProviderToken, ProviderTokens, ProviderType},
};

/// The secrets, by the variables that hold them.
const SECRETS: [(&str, &str); 5] = [
    ("PLAIN_SECRET", "s3cr3t-plain-value-0001"),
    ("HOSTILE_SECRET", "p@ss \"w'o$rd`\\ üñ%!x"),
    ("KEY_SECRET", "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nqw/8+ZZtop_secret_tail==\n-----END KEY-----"),
    ("GITHUB_TOKEN", "ghp_0123456789abcdefABCDEF"),
    ("DATABASE_SECRET", "postgres://u:pa%20ss@db/x?y=1&z"),
];

/// How a shell, or what is at hand in one, prints a variable.
const FORMS: [&str; 16] = [
    "printf '%s\\n' \"$V\"",
    "printf '%q\\n' \"$V\"",
    "echo \"${V@Q}\"",
    "echo \"${V@A}\"",
    "declare -p V",
    "export -p | grep -A5 ' V='",
    "set | grep -A5 '^V='",
    "( set -x; : \"$V\" ) 2>&1",
    "( set -x; : x\"$V\"y; X=$V ) 2>&1",
    "printf %s \"$V\" | base64 -w0; echo",
    "printf %s \"xy$V\" | base64; echo",
    "printf 'u:%s' \"$V\" | base64 -w0 | tr -d =; echo",
    "printf %s \"$V\" | od -An -v -tx1 | tr -d ' \\n'; echo",
    "alias a=\"$V\"; alias a; unalias a",
    "trap -- \": '$V'\" USR1 2>/dev/null; trap; trap - USR1",
    "printf '%s' \"${V:0:7}\"; sleep 0.3; printf '%s\\n' \"${V:7}\"",
];

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The arguments of all processes of this machine, collected until it is stopped.
struct Arguments {
    stop: Arc<AtomicBool>,
    collector: std::thread::JoinHandle<String>,
}

impl Arguments {
    fn collect() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let collector = std::thread::spawn(move || {
            let mut seen = std::collections::BTreeSet::new();
            while !stopped.load(Ordering::Acquire) {
                for entry in fs::read_dir("/proc").unwrap().flatten() {
                    if let Ok(line) = fs::read(entry.path().join("cmdline")) {
                        seen.insert(String::from_utf8_lossy(&line).into_owned());
                    }
                }
            }
            seen.into_iter().collect::<Vec<_>>().join("\n")
        });
        Self { stop, collector }
    }

    fn finish(self) -> String {
        self.stop.store(true, Ordering::Release);
        self.collector.join().unwrap()
    }
}

/// Everything that a shell prints of the secrets, by the form.
fn printed() -> Vec<(&'static str, &'static str, String)> {
    let mut printed = Vec::new();
    for (name, value) in SECRETS {
        for form in FORMS {
            let script = Command::new("bash")
                .args(["--norc", "-c", form])
                .env("V", value)
                .env("LC_ALL", "C.UTF-8")
                .output()
                .unwrap();
            let text = String::from_utf8(script.stdout).unwrap();
            printed.push((name, form, text));
        }
    }
    printed
}

/// The pieces of a secret that nobody may see, in every form that can be computed here.
fn needles() -> Vec<(&'static str, String)> {
    let mut needles = Vec::new();
    for (name, value) in SECRETS {
        needles.extend(value.lines().filter(|line| !line.starts_with("-----")).map(|line| (name, line.to_owned())));
        let hex = hex(value);
        needles.push((name, hex[8..hex.len() - 8].to_owned()));
        let encoded =
            Command::new("bash").args(["-c", "printf %s \"$V\" | base64 -w0"]).env("V", value).output().unwrap();
        let encoded = String::from_utf8(encoded.stdout).unwrap();
        needles.push((name, encoded[4..encoded.len() - 6].to_owned()));
    }
    needles
}

fn assert_hidden(what: &str, text: &str) {
    for (name, needle) in needles() {
        assert!(!text.contains(&needle), "{what} shows {name} as {needle:?}:\n{}", around(text, &needle));
    }
}

fn around(text: &str, needle: &str) -> String {
    let at = text.find(needle).unwrap_or_default();
    let (start, end) =
        (text.floor_char_boundary(at.saturating_sub(200)), text.ceil_char_boundary((at + 400).min(text.len())));
    text[start..end].to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_seen_nowhere() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).init();
    let arguments = Arguments::collect();
    let (sandbox, history) = (Sandbox::start().await, History::new().await);
    let secrets: BTreeMap<String, Secret> = SECRETS
        .into_iter()
        .filter(|(name, _)| *name != "GITHUB_TOKEN")
        .map(|(name, value)| (name.to_owned(), Secret::new(value)))
        .collect();
    let token = ProviderToken { token: Some(SECRETS[3].1.into()), ..ProviderToken::default() };
    let mut config = sandbox.config();
    config.sandbox.api_key = Some(SECRETS[0].1.into());
    config.search_api_key = Some(SECRETS[4].1.into());
    let key = ClientOptions::new(sandbox.0.url()).with_key(Some(SECRETS[0].1));
    let options = RuntimeOptions {
        secrets,
        git_provider_tokens: ProviderTokens::from_iter([(ProviderType::Github, token)]),
        ..RuntimeOptions::new(config, ServerAt::new(key)).with_stream(&history.stream)
    };
    let mut shown = vec![format!("{options:?} {:?} {:?}", options.config, options.git_provider_tokens)];
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    shown.push(format!("{runtime:?} {:?} {:?}", runtime.config(), runtime.session_api_key()));

    // The tools have them ...
    for (name, value) in SECRETS {
        assert_eq!(output(&runtime, &format!("printf %s \"${name}\"")).await, value.trim_end());
    }
    // ... and whatever they print of them is not what the history keeps.
    let mut expected = 0;
    for (name, _) in SECRETS {
        for form in FORMS {
            let command = form
                .replace("$V", &format!("${name}"))
                .replace("{V", &format!("{{{name}"))
                .replace(" V", &format!(" {name}"))
                .replace("^V", &format!("^{name}"));
            history.stream.add(Action::Run(RunAction::new(command)), EventSource::Agent).await.unwrap();
            history.observation().await;
            expected += 1;
        }
    }
    for (_, value) in SECRETS {
        history.stream.add(Action::Run(RunAction::new(format!("echo {value:?}"))), EventSource::User).await.unwrap();
        history.observation().await;
        expected += 1;
    }
    history.stream.add(Action::Run(RunAction::new("cat ~/.bashrc; env; set")), EventSource::Agent).await.unwrap();
    history.observation().await;
    expected += 1;

    let repository = SelectedRepository { name: "no such/repository'".to_owned(), branch: None };
    shown.push(format!(
        "{:?}",
        within(runtime.clone_or_init_repo(Some(&repository))).await.map_err(|error| format!("{error} {error:?}"))
    ));
    shown.push(format!("{:?}", runtime.add_env_vars(&BTreeMap::from([("A-B".to_owned(), SECRETS[0].1.into())])).await));
    within(runtime.close()).await;
    within(history.stream.close()).await;
    sandbox.stop().await;

    let mut events = String::new();
    let mut count = 0;
    for entry in fs::read_dir(history.directory.path().join("sessions/test/events")).unwrap().flatten() {
        // JSON escapes would hide what is there.
        let event: serde_json::Value = serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap();
        count += usize::from(event.get("observation").is_some());
        flatten(&event, &mut events);
    }
    assert_eq!(count, expected);
    assert_hidden("an event", &events);
    for (name, form, text) in printed() {
        // The session's variables have other names: what counts stands behind them.
        let pieces =
            text.lines().map(|line| line.split_once(" V=").or(line.split_once("V=")).map_or(line, |(_, piece)| piece));
        // The last word of a command (`_`) is no secret, though it stands behind one.
        for line in pieces.filter(|piece| piece.len() > 12 && !piece.contains("KEY-----") && !piece.starts_with("_=")) {
            assert!(!events.contains(line), "{name} is seen in the form {form}: {line}");
        }
    }
    let mut stored = Vec::new();
    for entry in walk(history.directory.path()) {
        stored.extend(fs::read(entry).unwrap());
    }
    assert_hidden("a file of the history", &String::from_utf8_lossy(&stored));
    assert_hidden("`Debug` or an error", &shown.join("\n"));
    assert_hidden("the log", &String::from_utf8_lossy(&log.0.lock().unwrap()));
    assert_hidden("the arguments of a process", &arguments.finish());
}

fn flatten(value: &serde_json::Value, text: &mut String) {
    match value {
        serde_json::Value::String(part) => {
            text.push_str(part);
            text.push('\n');
        }
        serde_json::Value::Array(parts) => parts.iter().for_each(|part| flatten(part, text)),
        serde_json::Value::Object(parts) => parts.values().for_each(|part| flatten(part, text)),
        _ => {}
    }
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files.extend(walk(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}
