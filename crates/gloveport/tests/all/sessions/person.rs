//! Somebody at a real terminal.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use gloveport_sys::Spawner;
use gloveport_terminal::{Terminal, TerminalOptions, WindowSize};

use super::Home;
use crate::support::LIMIT;

/// Somebody who calls the binary at a terminal.
pub(crate) struct Person {
    terminal: Terminal,
    seen: u64,
}

impl Person {
    pub(crate) fn calls(home: &Home, words: &[&str]) -> Self {
        // The shell tells the exit code also after C-c.
        let script = "trap : INT; \"$GLOVEPORT\" \"$@\"; echo \"code $?\"";
        let words: Vec<&str> = ["-c", script, "sh"].into_iter().chain(words.iter().copied()).collect();
        Self::at(home, "/bin/sh", &words, &[])
    }

    /// Somebody whose terminal runs this program, with these variables added.
    pub(crate) fn at(home: &Home, program: &str, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let environment = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", home.path().display().to_string()),
            ("TMPDIR", home.path().display().to_string()),
            ("GLOVEPORT", env!("CARGO_BIN_EXE_gloveport").to_owned()),
            ("TERM", "xterm".to_owned()),
        ];
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let terminal = Terminal::start(TerminalOptions {
            spawner: Spawner::Direct,
            identity: None,
            program: program.into(),
            arguments: [program].iter().chain(words).map(Into::into).collect(),
            environment: environment
                .into_iter()
                .chain(variables)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory: home.path().to_owned(),
            size: WindowSize { columns: 90, rows: 30 },
            memory_limit: None,
            spool_size: 1 << 20,
        });
        Self { terminal: terminal.unwrap(), seen: 0 }
    }

    pub(crate) async fn types(&self, keys: &str) {
        self.terminal.write(keys.as_bytes(), |_| {}).await.unwrap();
    }

    pub(crate) async fn sees(&mut self, wanted: &str) {
        let mut shown = Vec::new();
        loop {
            let piece = self.terminal.output().read(self.seen + shown.len() as u64, 1 << 20).unwrap();
            shown.extend(piece.bytes);
            if let Some(at) = shown.windows(wanted.len()).position(|window| window == wanted.as_bytes()) {
                self.seen += (at + wanted.len()) as u64;
                return;
            }
            let end = self.seen + shown.len() as u64;
            let grown = tokio::time::timeout(LIMIT, self.terminal.output().grown_beyond(end)).await;
            assert!(grown.is_ok(), "no {wanted:?} in {:?}", String::from_utf8_lossy(&shown));
        }
    }
}
