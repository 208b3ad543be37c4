//! Makes an observation of what a command wrote.

use std::collections::{BTreeMap, VecDeque};

use gloveport_event_stream::{MaskStream, Masker};
use gloveport_protocol::{CommandMetadata, Observation, RunObservation, Secret, exec::ExecEnd};
use gloveport_terminal::render::{Renderer, Size};

use crate::follow::Followed;

/// Bytes that are kept of the beginning, and as many of the end: more than an observation shows.
const KEPT: usize = 128 * 1024;

/// The output of a command without secrets: its beginning and its end.
pub(super) struct Output {
    mask: Option<MaskStream>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes between the two.
    lost: u64,
}

impl Output {
    pub(super) fn new(secrets: BTreeMap<String, Secret>) -> Self {
        let mut masker = Masker::default();
        masker.set(secrets);
        Self { mask: Some(masker.stream()), head: Vec::new(), tail: VecDeque::new(), lost: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(mask) = &mut self.mask {
            let bytes = mask.push_bytes(bytes);
            self.keep(&bytes);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        // Of much at once only the end can stay.
        let skipped = rest.len().saturating_sub(KEPT);
        let rest = rest.get(skipped..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        self.tail.drain(..over);
        self.tail.extend(rest);
        self.lost += (skipped + over) as u64;
    }

    /// What a terminal would show of it.
    fn text(mut self) -> String {
        if let Some(mask) = self.mask.take() {
            let rest = mask.finish_bytes();
            self.keep(&rest);
        }
        // Each line has a byte at least.
        let mut screen = Renderer::new(Size { history: 3 * KEPT, ..Size::default() });
        screen.feed(&self.head);
        if self.lost > 0 {
            screen.feed(format!("\r\n[... {} bytes are left out ...]\r\n", self.lost).as_bytes());
        }
        let (one, other) = self.tail.as_slices();
        screen.feed(one);
        screen.feed(other);
        screen.text()
    }

    /// What came of the command.
    pub(super) fn observation(self, command: &str, followed: &Followed) -> Observation {
        let end = match followed {
            Followed::Ended(end) => Some(end),
            Followed::TimedOut(end) => end.as_ref(),
            Followed::Left | Followed::Unread | Followed::Unfinished => None,
        };
        let exit_code = match followed {
            Followed::Ended(end) => end.exit_code.map_or(-1, i64::from),
            _ => -1,
        };
        let metadata = CommandMetadata {
            exit_code,
            working_dir: end.map(|end| end.cwd.clone()).filter(|cwd| !cwd.is_empty()),
            suffix: suffix(followed),
            ..CommandMetadata::default()
        };
        Observation::Run(RunObservation::new(command, self.text(), false, metadata))
    }
}

fn suffix(followed: &Followed) -> String {
    match followed {
        Followed::Ended(ExecEnd { exit_code: Some(code), .. }) => {
            format!("\n[The command completed with exit code {code}.]")
        }
        Followed::Ended(end) => {
            let why = end.message.as_deref().unwrap_or(&end.reason);
            format!("\n[The command did not end by itself: {why}.]")
        }
        Followed::TimedOut(Some(_)) => "\n[The command timed out and was interrupted.]".to_owned(),
        Followed::TimedOut(None) => "\n[The command timed out; it was interrupted and still runs.]".to_owned(),
        Followed::Unfinished => "\n[The command is not complete, and was interrupted.]".to_owned(),
        Followed::Left => "\n[The user left the command to itself; it may still run.]".to_owned(),
        Followed::Unread => "\n[The user read no further; the command was interrupted.]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>) -> Followed {
        Followed::Ended(ExecEnd {
            exit_code: code,
            reason: "exited".into(),
            message: None,
            start: 0,
            end: 0,
            cwd: "/w".to_owned(),
            usage: None,
        })
    }

    fn content(observation: Observation) -> String {
        let Observation::Run(run) = observation else { panic!("no run") };
        run.content
    }

    #[test]
    fn a_secret_is_hidden_wherever_chunks_cut_it() {
        let mut output = Output::new([("TOKEN".to_owned(), Secret::new("hunter2hunter2"))].into());
        for piece in ["a hunter2", "hunt", "er2 b\r\n"] {
            output.push(piece.as_bytes());
        }
        assert_eq!(content(output.observation("x", &ended(Some(0)))), "a <secret_hidden> b");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let mut output = Output::new(BTreeMap::new());
        for line in 0..200_000 {
            output.push(format!("line {line}\r\n").as_bytes());
        }
        output.push(&vec![b'x'; 3 * KEPT]);
        output.push(b"\r\nlast\r\n");
        let text = output.text();
        assert!(text.starts_with("line 0\nline 1\n"), "{:?}", text.get(..40));
        assert!(text.ends_with("x\nlast"), "{:?}", text.get(text.len() - 40..));
        assert!(text.contains("bytes are left out"));
        assert!(text.len() < 3 * KEPT);
    }

    #[test]
    fn the_observation_tells_how_the_command_ended() {
        let observed = |followed: &Followed| {
            let Observation::Run(run) = Output::new(BTreeMap::new()).observation("make", followed) else { panic!() };
            (run.metadata.exit_code, run.metadata.working_dir, run.metadata.suffix)
        };
        let done = "\n[The command completed with exit code 3.]".to_owned();
        assert_eq!(observed(&ended(Some(3))), (3, Some("/w".to_owned()), done));
        assert_eq!(observed(&Followed::Left).0, -1);
        assert!(observed(&Followed::TimedOut(None)).2.contains("still runs"));
    }
}
