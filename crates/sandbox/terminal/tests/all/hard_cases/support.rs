//! A shell to try cases in, and what its reports are compared with.

use std::{
    ffi::OsString,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use gloveport_sys::{Exit, host};
use gloveport_terminal::{EXIT_WORD, Facts, RunEnd, RunReport, RunRequest, Shell, ShellOptions};
use gloveport_testing::user_name;
pub(crate) use gloveport_testing::{is_alive, until};
use tempfile::TempDir;

/// No request of any case takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// A shell with a home directory of its own, so that no start-up file of the machine has a say.
pub(crate) struct Lab {
    pub(crate) shell: Shell,
    _home: TempDir,
    pub(crate) work: PathBuf,
    /// Up to here the log was reported: the next report goes on where the one before ended.
    reported_to: AtomicU64,
    /// The word of a shell that was told to exit is no output of any command.
    exit_word: AtomicBool,
}

pub(crate) fn run(text: &str) -> RunRequest {
    RunRequest::command(text)
}

pub(crate) fn input(text: &str) -> RunRequest {
    RunRequest::input(text)
}

/// A hard time limit that is long enough for a program to do what it does, and short enough to wait for.
pub(crate) fn soon(request: RunRequest) -> RunRequest {
    request.at_most(Duration::from_millis(250))
}

/// The same for programs that take their time to start.
pub(crate) fn later(request: RunRequest) -> RunRequest {
    request.at_most(Duration::from_secs(1))
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::start(None, |_| {}).await
    }

    pub(crate) async fn start(bashrc: Option<&str>, adjust: impl FnOnce(&mut ShellOptions)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        fs::create_dir(&work).unwrap();
        if let Some(text) = bashrc {
            fs::write(home.path().join(".bashrc"), text).unwrap();
        }
        let mut options = ShellOptions::inherited(work.clone());
        options.environment = environment(home.path());
        adjust(&mut options);
        let shell = within("the start of a shell", Shell::start(options)).await.unwrap();
        Self { shell, _home: home, work, reported_to: AtomicU64::new(0), exit_word: AtomicBool::new(false) }
    }

    /// Runs a request, and checks what holds for every report.
    pub(crate) async fn run(&self, request: impl Into<Request>) -> RunReport {
        let request = request.into().0;
        let name = format!("{:?}", &request.text.get(..60).unwrap_or(&request.text));
        let report = within(&name, self.shell.run(request)).await.unwrap();
        let gap = report.range.start - self.reported_to.load(Relaxed);
        let word = self.exit_word.load(Relaxed) || report.loss.is_some_and(|loss| loss.before_command);
        assert!(gap == 0 || word && gap == EXIT_WORD.len() as u64, "{name}: a gap of {gap} bytes before {report:?}");
        let shows_output = !matches!(report.end, RunEnd::NothingToFetch | RunEnd::NothingToType | RunEnd::Several(_));
        if shows_output {
            self.reported_to.store(report.range.end, Relaxed);
            self.exit_word.store(report.loss.is_some(), Relaxed);
        }
        report
    }

    /// Runs a request and compares all of its report.
    #[track_caller]
    pub(crate) fn check(&self, request: impl Into<Request>, expected: Expected<'_>) -> impl Future<Output = RunReport> {
        let request = request.into();
        let place = std::panic::Location::caller();
        async move {
            let text = request.0.text.get(..200).unwrap_or(&request.0.text).to_owned();
            let seen = self.run(request).await;
            let expected = expected.report(self, &seen);
            assert_eq!(seen, expected, "{text} at {place}");
            seen
        }
    }

    /// Runs commands that complete: text, output, status.
    pub(crate) async fn check_table(&self, table: &[(&str, &str, i32)]) {
        for (text, output, status) in table {
            self.check(*text, done(output, *status)).await;
        }
    }

    /// Runs a command that only prepares something.
    pub(crate) async fn prepare(&self, text: &str) {
        let report = self.run(text).await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{text}: {report:?}");
    }

    /// Everything that the session's programs wrote, as text.
    pub(crate) fn log(&self) -> String {
        let log = self.shell.output();
        String::from_utf8_lossy(&self.bytes(log.start()..log.end())).into_owned()
    }

    /// A part of what the session's programs wrote.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let most = usize::try_from(range.end - at).unwrap();
            let piece = self.shell.output().read(at, most).unwrap();
            at += u64::try_from(piece.bytes.len()).unwrap();
            bytes.extend(piece.bytes);
        }
        bytes
    }

    /// The process id of the shell, which it tells itself.
    pub(crate) async fn shell_pid(&self) -> u32 {
        self.run("echo $$").await.output.parse().unwrap()
    }

    pub(crate) async fn close(self) {
        within("closing", self.shell.close()).await;
    }
}

/// A request, or the text of a command without limits.
pub(crate) struct Request(RunRequest);

impl From<&str> for Request {
    fn from(text: &str) -> Self {
        Self(run(text))
    }
}

impl From<RunRequest> for Request {
    fn from(request: RunRequest) -> Self {
        Self(request)
    }
}

/// What of a report is expected; the rest follows from it.
pub(crate) struct Expected<'a> {
    end: RunEnd,
    output: &'a str,
    continued: bool,
    directory: Option<PathBuf>,
    lost: Option<Lost>,
}

/// How a shell ended that was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Exited(i32),
    Killed(i32),
    ExitedBefore(i32),
    KilledBefore(i32),
}

/// A command that completed.
pub(crate) fn done(output: &str, status: i32) -> Expected<'_> {
    Expected { end: RunEnd::Completed { status }, output, continued: false, directory: None, lost: None }
}

/// A command that still runs when the hard limit passes, for the first time.
pub(crate) fn runs(output: &str) -> Expected<'_> {
    Expected { end: RunEnd::TimedOut, output, continued: false, directory: None, lost: None }
}

/// A command that still runs when the hard limit passes again.
pub(crate) fn goes_on(output: &str) -> Expected<'_> {
    Expected { continued: true, ..runs(output) }
}

impl Expected<'_> {
    /// The command followed reports that it still runs.
    pub(crate) fn after_reports(self) -> Self {
        Self { continued: true, ..self }
    }

    pub(crate) fn in_directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    pub(crate) fn ending(self, end: RunEnd) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn with_loss(self, lost: Lost) -> Self {
        Self { lost: Some(lost), ..self }
    }

    fn report(self, lab: &Lab, seen: &RunReport) -> RunReport {
        let status = match self.end {
            RunEnd::Completed { status } => status,
            _ => seen.facts.status,
        };
        let directory = self.directory.unwrap_or_else(|| lab.work.clone());
        RunReport {
            end: self.end,
            output: self.output.to_owned(),
            continued: self.continued,
            lines_kept: None,
            facts: Facts {
                status,
                background_pid: seen.facts.background_pid,
                directory: directory.to_string_lossy().into_owned(),
                python: seen.facts.python.clone(),
                user_name: user_name(),
                host_name: host::short_host_name(),
            },
            // What a shell used until its end is not known beforehand.
            loss: match (self.lost, seen.loss) {
                (Some(lost), Some(told)) if Some(lost) == describe(told.exit, told.before_command) => Some(told),
                (Some(lost), _) => panic!("expected {lost:?}, seen {:?}", seen.loss),
                (None, _) => None,
            },
            range: seen.range.clone(),
            usage: None,
        }
    }
}

fn describe(exit: Exit, before_command: bool) -> Option<Lost> {
    match (exit.code, exit.signal, before_command) {
        (Some(code), None, false) => Some(Lost::Exited(code)),
        (None, Some(signal), false) => Some(Lost::Killed(signal)),
        (Some(code), None, true) => Some(Lost::ExitedBefore(code)),
        (None, Some(signal), true) => Some(Lost::KilledBefore(signal)),
        _ => None,
    }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(LIMIT, future).await;
    result.unwrap_or_else(|_elapsed| panic!("{what} took more than {LIMIT:?}"))
}

/// Runs a case for each row at the same time; the cases mostly wait.
pub(crate) async fn each<T, F>(rows: impl IntoIterator<Item = T>, case: impl Fn(T) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let running: Vec<_> = rows.into_iter().map(|row| tokio::spawn(case(row))).collect();
    let mut failed = 0;
    for case in running {
        failed += u32::from(case.await.is_err());
    }
    assert_eq!(failed, 0, "rows failed; the reasons are above");
}

/// Where a program is, or a word on the standard output that the case is skipped.
pub(crate) fn installed(program: &str) -> bool {
    let found = host::find_program(program, SYSTEM_PATH, Path::new("/")).is_some();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    [("HOME", home.as_os_str().to_owned()), ("PATH", SYSTEM_PATH.into()), ("LANG", "C.UTF-8".into())]
        .map(|(key, value)| (key.into(), value))
        .to_vec()
}
