//! A linter for Python files: flake8 if it is installed, else whether the text compiles (file-editor 3.10).

use std::{ffi::OsString, path::Path, time::Duration};

#[cfg(target_os = "linux")]
use gloveport_sys::Identity;

use super::{Issue, Linter, process::Program};

/// How long each of the two programs may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What is worth a report: names that do not exist or twice, indentation, syntax, and text that can not be read.
const CODES: &str = "F821,F822,F831,E112,E113,E999,E902";

/// Most issues of one text.
const ISSUES: usize = 200;

/// Compiles what it reads without running it, and prints where that fails: where the faulty part ends, if that is known.
const COMPILE: &str = "\
import sys
try:
    compile(sys.stdin.buffer.read(), sys.argv[1], 'exec', dont_inherit=True)
except SyntaxError as error:
    line, column = error.lineno or 1, (error.offset or 0) + 1
    end = getattr(error, 'end_offset', None)
    if end is not None and end < 0:
        column = error.offset or 1
    elif end is not None:
        line, column = error.end_lineno or line, end or 1
    print(line, column, error.msg, sep=':')
except (ValueError, RecursionError, MemoryError) as error:
    print(1, 1, error, sep=':')
";

/// Judges files whose name ends with `.py`, with the Python of the PATH.
#[derive(Debug, Clone)]
pub struct PythonLinter {
    /// Name or path of the interpreter.
    pub interpreter: String,
    /// How long one of its two runs may take.
    pub time_limit: Duration,
    /// The user that it runs as; `None` for that of this process. Only Linux has a choice.
    #[cfg(target_os = "linux")]
    pub identity: Option<Identity>,
    /// Its whole environment; `None` for that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
}

impl Default for PythonLinter {
    fn default() -> Self {
        Self {
            interpreter: "python3".to_owned(),
            time_limit: TIME_LIMIT,
            #[cfg(target_os = "linux")]
            identity: None,
            environment: None,
        }
    }
}

impl Linter for PythonLinter {
    fn lint(&self, path: &Path, text: &str) -> Vec<Issue> {
        if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("py")) {
            return Vec::new();
        }
        let name = path.display().to_string();
        let (select, shown) = (format!("--select={CODES}"), format!("--stdin-display-name={name}"));
        let format = "--format=%(row)d:%(col)d:%(code)s %(text)s";
        let flake8 = self.run(&["-m", "flake8", "--isolated", &select, format, &shown, "-"], text);
        if !flake8.is_empty() {
            return flake8;
        }
        self.run(&["-I", "-c", COMPILE, &name], text)
    }
}

impl PythonLinter {
    fn run(&self, arguments: &[&str], text: &str) -> Vec<Issue> {
        let program = Program {
            name: &self.interpreter,
            #[cfg(target_os = "linux")]
            identity: self.identity.as_ref(),
            environment: self.environment.as_deref(),
        };
        match program.output(arguments, text, self.time_limit) {
            Ok(output) => output.lines().filter_map(parse).take(ISSUES).collect(),
            Err(error) => {
                tracing::debug!(%error, interpreter = self.interpreter, "a linter does not answer");
                Vec::new()
            }
        }
    }
}

/// An issue of the form `line:column:message`; other lines are none.
fn parse(line: &str) -> Option<Issue> {
    let mut parts = line.splitn(3, ':');
    let number = |text: Option<&str>| text?.parse::<usize>().ok();
    let issue = Issue { line: number(parts.next())?, column: number(parts.next())?, message: parts.next()?.to_owned() };
    (issue.line > 0 && !issue.message.is_empty()).then_some(issue)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn issue(line: usize, column: usize, message: &str) -> Issue {
        Issue { line, column, message: message.to_owned() }
    }

    /// A linter whose interpreter is a script.
    fn scripted(script: &str) -> (tempfile::TempDir, PythonLinter) {
        let directory = tempfile::tempdir().unwrap();
        let interpreter = directory.path().join("python");
        std::fs::write(&interpreter, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&interpreter, std::fs::Permissions::from_mode(0o755)).unwrap();
        let linter = PythonLinter { interpreter: interpreter.display().to_string(), ..PythonLinter::default() };
        (directory, linter)
    }

    #[test]
    fn what_flake8_says_is_taken_and_nothing_else_is_asked() {
        let (_directory, linter) =
            scripted("[ \"$2\" = flake8 ] && cat >/dev/null && echo '2:3:F821 undefined name: x'\n");
        assert_eq!(linter.lint(Path::new("/a.py"), "text"), [issue(2, 3, "F821 undefined name: x")]);
        assert_eq!(linter.lint(Path::new("/a.txt"), "text"), []);
    }

    #[test]
    fn without_flake8_the_text_is_compiled() {
        let (_directory, linter) = scripted(
            "[ \"$2\" = flake8 ] && echo 'No module named flake8' && exit 1\ncat >/dev/null; echo \"3:5:$4\"\n",
        );
        assert_eq!(linter.lint(Path::new("/a.py"), "text"), [issue(3, 5, "/a.py")]);
    }

    #[test]
    fn a_linter_that_does_not_end_or_does_not_exist_finds_nothing() {
        let (_directory, mut linter) = scripted("sleep 600\n");
        linter.time_limit = Duration::from_millis(50);
        assert_eq!(linter.lint(Path::new("/a.py"), "text"), []);
        linter.interpreter = "/nothing/python3".to_owned();
        assert_eq!(linter.lint(Path::new("/a.py"), "text"), []);
    }

    #[test]
    fn it_runs_with_the_environment_that_it_is_given() {
        let (_directory, mut linter) = scripted("cat >/dev/null; echo \"1:1:$NAME, $HOME\"\n");
        linter.environment = Some(vec![("NAME".into(), "value".into())]);
        assert_eq!(linter.lint(Path::new("/a.py"), "text"), [issue(1, 1, "value, ")]);
    }

    #[test]
    fn endless_output_is_cut() {
        let (_directory, linter) = scripted("while :; do echo '1:1:again'; done\n");
        assert_eq!(linter.lint(Path::new("/a.py"), "text").len(), ISSUES);
    }
}
