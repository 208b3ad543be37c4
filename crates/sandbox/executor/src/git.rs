//! Changes and differences of git repositories, without Python in the sandbox (`runtime-interface` §12).
//!
//! A backend asks for both with fixed commands that run scripts of the reference's image. Where those files are not, the
//! commands are answered here, with the same output.

mod changes;
mod command;
mod diff;
mod reference;

use std::{borrow::Cow, path::Path, time::Duration};

use gloveport_protocol::{CommandMetadata, Observation, RunAction, RunObservation};
use gloveport_terminal::{Facts, ShellOptions};
use tokio::time::Instant;

use self::command::Git;

/// Where the reference's image has its scripts, and how they are called.
const CHANGES_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_changes.py";
const DIFF_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_diff.py";
const INTERPRETER: &str = "python3 ";

/// Longest time for one answer.
const LIMIT: Duration = Duration::from_mins(1);

/// What a backend wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Which files changed.
    Changes,
    /// A file as it was and as it is.
    Diff {
        /// The file, as the command names it.
        file: String,
    },
}

/// What `git` may print, read as the list of changes.
#[cfg(fuzzing)]
pub fn fuzz_changes(output: &[u8]) -> usize {
    changes::fuzz(output)
}

/// Recognises the commands of a backend. A script that is there is run and not stood in for.
pub(crate) fn question(action: &RunAction) -> Option<Question> {
    if !action.is_static || action.is_input {
        return None;
    }
    let (question, script) = parse(&action.command)?;
    (!Path::new(script).exists()).then_some(question)
}

/// The question that a text is, and the script that it names. The backend puts the name of the file between double
/// quotes as it is, so everything between the first and the last one is the name.
fn parse(command: &str) -> Option<(Question, &'static str)> {
    let call = command.trim().strip_prefix(INTERPRETER)?;
    if call == CHANGES_SCRIPT {
        return Some((Question::Changes, CHANGES_SCRIPT));
    }
    let file = call.strip_prefix(DIFF_SCRIPT)?.strip_prefix(" \"")?.strip_suffix('"')?;
    (!file.is_empty()).then(|| (Question::Diff { file: file.to_owned() }, DIFF_SCRIPT))
}

/// What a script would print, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    content: String,
    exit_code: i64,
}

/// Answers a question as the command would, as the user of the shells and with their environment.
pub(crate) async fn answer(
    question: &Question,
    action: &RunAction,
    timeout: Option<Duration>,
    shells: &ShellOptions,
    facts: &Facts,
) -> Observation {
    let directory = match &action.cwd {
        Some(cwd) => shells.directory.join(cwd),
        None => shells.directory.clone(),
    };
    let deadline = Instant::now() + timeout.map_or(LIMIT, |limit| limit.min(LIMIT));
    let git = Git::new(shells, deadline);
    let answer = match question {
        Question::Changes => changes::answer(&git, &directory).await,
        Question::Diff { file } => diff::answer(&git, &directory, &meant(file, &directory)).await,
    };
    observe(&answer, action, &directory, facts)
}

/// The file that a backend means. OpenHands does not escape what a shell would expand between double quotes; our own
/// backend does. A file with the name as it stands comes first.
fn meant<'a>(file: &'a str, directory: &Path) -> Cow<'a, str> {
    if !file.contains('\\') || directory.join(file).symlink_metadata().is_ok() {
        return Cow::Borrowed(file);
    }
    let mut plain = String::with_capacity(file.len());
    let mut rest = file.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = rest.next_if(|next| c == '\\' && matches!(next, '"' | '\\' | '$' | '`'));
        plain.push(escaped.unwrap_or(c));
    }
    Cow::Owned(plain)
}

fn observe(answer: &Answer, action: &RunAction, directory: &Path, facts: &Facts) -> Observation {
    let metadata = CommandMetadata {
        exit_code: answer.exit_code,
        username: Some(facts.user_name.clone()),
        hostname: Some(facts.host_name.clone()),
        working_dir: Some(directory.display().to_string()),
        py_interpreter_path: Some(String::new()),
        suffix: format!("\n[The command completed with exit code {}.]", answer.exit_code),
        ..CommandMetadata::default()
    };
    Observation::Run(RunObservation::new(action.command.trim(), &answer.content, action.hidden, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_escaped_unless_a_file_has_it_as_it_stands() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a\\$b"), "").unwrap();
        for (file, expected) in
            [("a\\$b", "a\\$b"), ("c\\$\\\"\\\\\\`d", "c$\"\\`d"), ("x y", "x y"), ("e\\n\\", "e\\n\\")]
        {
            assert_eq!(meant(file, directory.path()), expected, "{file}");
        }
    }

    #[test]
    fn exactly_the_commands_of_a_backend_are_recognised() {
        let diff = |file: &str| Some(Question::Diff { file: file.to_owned() });
        let rows = [
            (format!("python3 {CHANGES_SCRIPT}"), Some(Question::Changes)),
            (format!("python3 {DIFF_SCRIPT} \"a b/c.txt\""), diff("a b/c.txt")),
            (format!("python3 {DIFF_SCRIPT} \"/w/$x `y` \"z\".txt\""), diff("/w/$x `y` \"z\".txt")),
            (format!("python3 {DIFF_SCRIPT} \"\""), None),
            (format!("python3 {DIFF_SCRIPT} a"), None),
            (format!("python3 {DIFF_SCRIPT}"), None),
            (format!("python3 {CHANGES_SCRIPT} --help"), None),
            (format!("python3  {CHANGES_SCRIPT}"), None),
            (format!("python {CHANGES_SCRIPT}"), None),
            (CHANGES_SCRIPT.to_owned(), None),
            (format!("python3 {CHANGES_SCRIPT}; ls"), None),
            ("python3 /tmp/tmp.x/git_changes.py".to_owned(), None),
            ("git status".to_owned(), None),
        ];
        for (command, expected) in rows {
            let fixed = RunAction { is_static: true, ..RunAction::new(command.as_str()) };
            assert_eq!(question(&fixed), expected, "{command}");
            assert_eq!(question(&RunAction { is_static: false, ..fixed.clone() }), None, "{command}");
            assert_eq!(question(&RunAction { is_input: true, ..fixed }), None, "{command}");
        }
    }
}
