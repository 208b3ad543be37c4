//! Chromium alone, driven over the DevTools protocol with nothing between.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time for an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// A browser with one page. It ends with this value.
pub(super) struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last: u64,
    /// Its profile and its pipes.
    _directory: TempDir,
}

impl Chromium {
    pub(super) fn start(program: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let (to, from) = (directory.path().join("to"), directory.path().join("from"));
        for pipe in [&to, &from] {
            mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).context("cannot make a pipe")?;
        }
        let profile = format!("--user-data-dir={}", directory.path().join("profile").display());
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3<>\"$1\" 4<>\"$2\"; shift 2; exec \"$@\"", "sh"]).args([&to, &from]).arg(program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--window-size=1280,720",
        ]);
        command.arg(profile).arg("about:blank");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // Opened for both, so that neither side waits for the other.
        let open = |path| OpenOptions::new().read(true).write(true).open(path);
        let (to, from) = (open(&to)?, BufReader::new(open(&from)?));
        let mut chromium = Self { child, to, from, session: String::new(), last: 0, _directory: directory };
        let target = chromium.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let asked = json!({ "targetId": target["targetId"], "flatten": true });
        let session = chromium.call("Target.attachToTarget", &asked)?;
        session["sessionId"].as_str().context("Chromium names no session")?.clone_into(&mut chromium.session);
        chromium.call("Page.enable", &json!({}))?;
        Ok(chromium)
    }

    /// Goes to a page, and answers with what its title says behind these words as soon as it does.
    pub(super) fn title(&mut self, url: &str, words: &str) -> anyhow::Result<String> {
        self.call("Page.navigate", &json!({ "url": url }))?;
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let answer = self.call("Runtime.evaluate", &json!({ "expression": "document.title" }))?;
            if let Some(rest) =
                answer.pointer("/result/value").and_then(Value::as_str).and_then(|title| title.strip_prefix(words))
            {
                return Ok(rest.to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        anyhow::bail!("{url} does not say how long it took")
    }

    fn call(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes())?;
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes)?;
            bytes.pop();
            let mut answer: Value = serde_json::from_slice(&bytes).context("Chromium cannot be understood")?;
            if answer["id"] == json!(self.last) {
                anyhow::ensure!(answer.get("error").is_none(), "{method}: {answer}");
                return Ok(answer["result"].take());
            }
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}
