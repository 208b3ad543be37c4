//! The observation of a command whose output came while it ran. This is the one place that makes it.

use std::fmt;

use gloveport_event_stream::{MaskStream, Masker};
use gloveport_protocol::{CommandMetadata, Observation, RunAction, RunObservation, exec::ExecEnd};
use gloveport_screen::Excerpt;

/// Bytes that are kept of the beginning, and as many of the end: more than an observation shows.
pub(super) const KEPT: usize = 128 * 1024;
/// The same where the observation shows all of them.
const KEPT_IN_FULL: usize = 4 * 1024 * 1024;

/// How the words begin that say that a program had a terminal.
const HAD_TERMINAL: &str = "The command had a terminal";
const HAS_TERMINAL: &str = "The command has a terminal";
const ATTACHED: &str = "The user was attached to the terminal `";
/// How a command begins that names a terminal.
const TERMINAL: &str = "# attached to the terminal ";
/// Why nothing follows.
const NOT_KEPT: &str = "whose contents are not kept";

/// How following a command ended.
#[derive(Clone, Copy, Debug)]
pub enum RunEnd<'a> {
    /// It has ended.
    Ended(&'a ExecEnd),
    /// Its time was over. `None` if it did not even end when it was interrupted.
    TimedOut(Option<&'a ExecEnd>),
    /// It was interrupted twice, and is left to itself.
    Left,
    /// Nobody reads its output any more; it was interrupted.
    Unread,
    /// The shell waited for the rest of the command. It was interrupted.
    Unfinished,
    /// It was started, and nobody follows it.
    Detached {
        /// Its id.
        id: &'a str,
    },
    /// It is what was typed into a command that runs, whose observation has the output.
    Typed {
        /// The id of that command.
        id: &'a str,
    },
    /// It had a terminal, whose contents nobody keeps. The exit code is absent if it was left running.
    OnTerminal {
        /// Its exit code, if it has ended.
        exit_code: Option<i32>,
    },
    /// Somebody was attached to a terminal that others may use, too. Nobody keeps its contents. The exit code is absent
    /// if its program goes on.
    Attached {
        /// Name of the terminal.
        terminal: &'a str,
        /// The exit code of its program, if that has ended.
        exit_code: Option<i32>,
    },
    /// It could not be followed to its end.
    Lost {
        /// Why.
        reason: &'a str,
    },
}

/// The output of a command without secrets: its beginning and its end.
pub struct RunOutput {
    mask: Option<MaskStream>,
    /// The observation is not cut to what agents see.
    in_full: bool,
    excerpt: Excerpt,
}

impl fmt::Debug for RunOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RunOutput")
            .field("kept", &self.excerpt.kept())
            .field("lost", &self.excerpt.left_out())
            .finish_non_exhaustive()
    }
}

impl RunOutput {
    pub(super) const fn new(mask: MaskStream) -> Self {
        Self { mask: Some(mask), in_full: false, excerpt: Excerpt::new(KEPT) }
    }

    /// For the person who ran the command, who may see what it wrote: nothing is masked, and of the output more is kept
    /// than agents see.
    pub fn in_full() -> Self {
        Self { in_full: true, excerpt: Excerpt::new(KEPT_IN_FULL), ..Self::new(Masker::default().stream()) }
    }

    /// Takes what it wrote.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(mask) = &mut self.mask {
            self.excerpt.push(&mask.push_bytes(bytes));
        }
    }

    /// What a terminal would show of it.
    fn text(mut self) -> String {
        if let Some(mask) = self.mask.take() {
            self.excerpt.push(&mask.finish_bytes());
        }
        self.excerpt.text(|count| format!("[... {count} bytes are left out ...]"))
    }

    /// What came of the command.
    pub fn observation(self, command: &str, end: RunEnd<'_>) -> Observation {
        let known = match end {
            RunEnd::Ended(end) => Some(end),
            RunEnd::TimedOut(end) => end,
            _ => None,
        };
        let exit_code = match end {
            RunEnd::Ended(end) => end.exit_code,
            RunEnd::OnTerminal { exit_code } | RunEnd::Attached { exit_code, .. } => exit_code,
            _ => None,
        };
        let metadata = CommandMetadata {
            exit_code: exit_code.map_or(-1, i64::from),
            working_dir: known.map(|end| end.cwd.clone()).filter(|cwd| !cwd.is_empty()),
            suffix: suffix(end),
            ..CommandMetadata::default()
        };
        let in_full = self.in_full;
        Observation::Run(RunObservation::new(command, self.text(), in_full, metadata))
    }
}

/// What came of a command that was executed as an action, for lack of a better way: its whole output came at the end, and
/// is made as long as agents see it.
pub fn observed(command: &str, observation: Observation) -> Observation {
    match observation {
        Observation::Run(run) => Observation::Run(RunObservation::new(command, run.content, false, run.metadata)),
        other => other,
    }
}

/// The action of somebody who attaches to the terminal of this name: a command line that says so and does nothing, since
/// what is typed there is not known beforehand, and not kept.
pub fn attaching(terminal: &str) -> RunAction {
    // A line break would end the comment.
    let name: String = terminal.chars().filter(|character| !character.is_control()).collect();
    RunAction::new(format!("{TERMINAL}{name}"))
}

/// The terminal that [`attaching`] named in an action.
pub fn attached_terminal(action: &RunAction) -> Option<&str> {
    action.command.strip_prefix(TERMINAL).filter(|name| !name.contains(char::is_control))
}

/// Whether an observation is that of a program on a terminal, which cannot be done again: what was typed is not kept.
pub fn had_terminal(observation: &Observation) -> bool {
    match observation {
        Observation::Run(run) => {
            let suffix = run.metadata.suffix.trim_start_matches(['\n', '[']);
            [HAD_TERMINAL, HAS_TERMINAL, ATTACHED].iter().any(|start| suffix.starts_with(start))
        }
        _ => false,
    }
}

fn suffix(end: RunEnd<'_>) -> String {
    let text = match end {
        RunEnd::Ended(ExecEnd { exit_code: Some(code), .. }) => format!("The command completed with exit code {code}."),
        RunEnd::Ended(end) => {
            let why = end.message.as_deref().unwrap_or(&end.reason);
            format!("The command did not end by itself: {why}.")
        }
        RunEnd::TimedOut(Some(_)) => "The command timed out and was interrupted.".to_owned(),
        RunEnd::TimedOut(None) => "The command timed out; it was interrupted and still runs.".to_owned(),
        RunEnd::Unfinished => "The command is not complete, and was interrupted.".to_owned(),
        RunEnd::Left => "The user left the command to itself; it may still run.".to_owned(),
        RunEnd::Unread => "The user read no further; the command was interrupted.".to_owned(),
        RunEnd::Detached { id } => format!("The command was started as {id}, and its output is not followed."),
        RunEnd::Typed { id } => format!("It was typed into the command {id}, whose observation has the output."),
        RunEnd::OnTerminal { exit_code: Some(code) } => {
            format!("{HAD_TERMINAL}, {NOT_KEPT}, and completed with exit code {code}.")
        }
        RunEnd::OnTerminal { exit_code: None } => {
            format!("{HAS_TERMINAL}, {NOT_KEPT}; the user left it, and it goes on.")
        }
        RunEnd::Attached { terminal, exit_code: Some(code) } => {
            format!("{ATTACHED}{terminal}`, {NOT_KEPT}; its program completed with exit code {code}.")
        }
        RunEnd::Attached { terminal, exit_code: None } => {
            format!("{ATTACHED}{terminal}`, {NOT_KEPT}; the user left it, and it goes on.")
        }
        RunEnd::Lost { reason } => format!("What became of the command is not known: {reason}."),
    };
    format!("\n[{text}]")
}

#[cfg(test)]
mod tests {
    use gloveport_event_stream::Masker;
    use gloveport_protocol::Secret;

    use super::*;

    fn ended(code: Option<i32>) -> ExecEnd {
        ExecEnd {
            exit_code: code,
            reason: "exited".into(),
            message: None,
            start: 0,
            end: 0,
            cwd: "/w".to_owned(),
            usage: None,
        }
    }

    fn output() -> RunOutput {
        RunOutput::new(Masker::default().stream())
    }

    fn run(observation: Observation) -> RunObservation {
        let Observation::Run(run) = observation else { panic!("no run") };
        run
    }

    #[test]
    fn a_secret_is_hidden_wherever_chunks_cut_it() {
        let mut masker = Masker::default();
        masker.set([("TOKEN".to_owned(), Secret::new("hunter2hunter2"))].into());
        let mut output = RunOutput::new(masker.stream());
        for piece in ["a hunter2", "hunt", "er2 b\r\n"] {
            output.push(piece.as_bytes());
        }
        let end = ended(Some(0));
        assert_eq!(run(output.observation("x", RunEnd::Ended(&end))).content, "a <secret_hidden> b");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let mut output = output();
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
    fn in_full_nothing_is_left_out_of_what_agents_would_see_cut() {
        let mut output = RunOutput::in_full();
        for line in 0..100_000 {
            output.push(format!("line {line}\r\n").as_bytes());
        }
        let end = ended(Some(0));
        let content = run(output.observation("x", RunEnd::Ended(&end))).content;
        assert!(content.lines().enumerate().all(|(number, line)| line == format!("line {number}")));
        assert_eq!(content.lines().count(), 100_000);
    }

    #[test]
    fn the_observation_tells_how_the_command_ended() {
        let observed = |end: RunEnd<'_>| {
            let run = run(output().observation("make", end));
            (run.metadata.exit_code, run.metadata.working_dir, run.metadata.suffix)
        };
        let (three, none) = (ended(Some(3)), ended(None));
        let done = "\n[The command completed with exit code 3.]".to_owned();
        assert_eq!(observed(RunEnd::Ended(&three)), (3, Some("/w".to_owned()), done));
        assert_eq!(observed(RunEnd::Ended(&none)).0, -1);
        assert_eq!(observed(RunEnd::Left).0, -1);
        assert!(observed(RunEnd::TimedOut(None)).2.contains("still runs"));
        assert!(observed(RunEnd::Detached { id: "e1" }).2.contains("started as e1"));
        assert!(observed(RunEnd::Typed { id: "e1" }).2.contains("into the command e1"));
        assert_eq!(observed(RunEnd::OnTerminal { exit_code: Some(5) }).0, 5);
        assert_eq!(observed(RunEnd::OnTerminal { exit_code: None }).0, -1);
        let attached = |exit_code| observed(RunEnd::Attached { terminal: "main", exit_code });
        let left = "\n[The user was attached to the terminal `main`, whose contents are not kept; the user left it, and it \
                    goes on.]";
        assert_eq!((attached(Some(7)).0, attached(None).2.as_str()), (7, left));
    }

    #[test]
    fn what_was_done_on_a_terminal_is_known_by_its_observation_and_attaching_is_a_command_that_does_nothing() {
        let known = |end: RunEnd<'_>| had_terminal(&output().observation("vim", end));
        for exit_code in [None, Some(0)] {
            assert!(known(RunEnd::OnTerminal { exit_code }));
            assert!(known(RunEnd::Attached { terminal: "main", exit_code }));
        }
        let end = ended(Some(0));
        assert!(!known(RunEnd::Ended(&end)) && !known(RunEnd::Left));
        let attaching = attaching("a\nrm -rf x");
        assert_eq!(attaching.command, "# attached to the terminal arm -rf x");
        assert_eq!(attached_terminal(&attaching), Some("arm -rf x"));
        for command in ["# attached to the terminal x\nmake", "make"] {
            assert_eq!(attached_terminal(&RunAction::new(command)), None);
        }
    }
}
