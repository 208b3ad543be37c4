//! Who answers: the executor, our scripts, or the reference's.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, BoxFuture, Observation, RunAction, RunObservation};
use serde_json::Value;
use tempfile::TempDir;

/// What a backend runs to see the changes.
pub(crate) const CHANGES: &str = "python3 /openhands/code/openhands/runtime/utils/git_changes.py";

/// What a backend runs to see the difference of a file.
pub(crate) fn diff_command(file: &str) -> String {
    format!("python3 /openhands/code/openhands/runtime/utils/git_diff.py \"{file}\"")
}

/// A file as it was and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) original: String,
    pub(crate) modified: String,
}

/// Answers the two questions of a backend.
pub(crate) trait Answerer {
    fn name(&self) -> &'static str;
    fn changes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Value>;
    fn diff<'a>(&'a self, directory: &'a Path, file: &'a str) -> BoxFuture<'a, Result<Difference, String>>;
}

fn difference(text: &str) -> Difference {
    let value: Value = serde_json::from_str(text).expect(text);
    let member = |name: &str| value[name].as_str().expect(text).to_owned();
    Difference { original: member("original"), modified: member("modified") }
}

/// Directories with repositories, and a home directory with settings of its own.
pub(crate) struct Lab {
    directory: TempDir,
}

impl Lab {
    /// Runs a shell script that makes the repositories.
    pub(crate) fn new(build: &str) -> Self {
        let lab = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(lab.path("home")).unwrap();
        std::fs::create_dir(lab.path("lab")).unwrap();
        let settings = "[user]\n name = n\n email = e@example.com\n[init]\n defaultBranch = main\n[protocol \"file\"]\n \
                        allow = always\n";
        std::fs::write(lab.path("home/.gitconfig"), settings).unwrap();
        let output = lab.command("bash").args(["-euc", build]).current_dir(lab.path("lab")).output().unwrap();
        assert!(output.status.success(), "{build}\n{}", String::from_utf8_lossy(&output.stderr));
        Self { directory: lab.directory }
    }

    /// A place among the repositories.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let inside = if name.starts_with("home") || name == "lab" { "" } else { "lab" };
        self.directory.path().join(inside).join(name)
    }

    fn environment(&self) -> [(&'static str, String); 2] {
        [("HOME", self.path("home").display().to_string()), ("GIT_CONFIG_NOSYSTEM", "1".to_owned())]
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment());
        command
    }

    /// The executor.
    pub(crate) async fn native(&self) -> Native {
        self.native_with_path(&env::var("PATH").unwrap()).await
    }

    /// The executor, with another path for programs.
    pub(crate) async fn native_with_path(&self, path: &str) -> Native {
        let mut options = ExecutorOptions::inherited(self.path("lab"));
        let own = self.environment();
        options.environment.retain(|(key, _)| key != "PATH" && !own.iter().any(|(name, _)| key == name));
        options.environment.extend(own.map(|(key, value)| (key.into(), value.into())));
        options.environment.push(("PATH".into(), path.into()));
        Native { executor: Executor::start(options).await.unwrap() }
    }

    /// Our scripts.
    pub(crate) fn scripts(&self) -> Scripts<'_> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agent/runtime/src/git_scripts");
        Scripts { name: "scripts", lab: self, python: python(), folder }
    }

    /// The reference's scripts.
    pub(crate) fn with<'a>(&'a self, reference: &Reference) -> Scripts<'a> {
        Scripts { name: "reference", lab: self, python: reference.python.clone(), folder: reference.folder.clone() }
    }
}

/// The interpreter behind `python3`: the name itself may be a program that looks for it in the home directory.
fn python() -> PathBuf {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

pub(crate) struct Native {
    executor: Arc<Executor>,
}

impl Native {
    /// Runs a command as a backend does.
    pub(crate) async fn observe(&self, command: &str, directory: &Path) -> RunObservation {
        let cwd = Some(directory.display().to_string());
        let run = RunAction { is_static: true, hidden: true, cwd, ..RunAction::new(command) };
        let event = ActionEvent { timeout: Some(120.0), ..Action::Run(run).into() };
        let limit = Duration::from_mins(1);
        let observation = tokio::time::timeout(limit, self.executor.execute(&event)).await.unwrap().unwrap();
        match observation {
            Observation::Run(run) => run,
            other => unreachable!("{other:?}"),
        }
    }
}

impl Answerer for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn changes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Value> {
        Box::pin(async {
            let run = self.observe(CHANGES, directory).await;
            assert_eq!(run.metadata.exit_code, 0, "{}", run.content);
            serde_json::from_str(&run.content).expect(&run.content)
        })
    }

    fn diff<'a>(&'a self, directory: &'a Path, file: &'a str) -> BoxFuture<'a, Result<Difference, String>> {
        Box::pin(async move {
            let run = self.observe(&diff_command(file), directory).await;
            if run.metadata.exit_code == 0 { Ok(difference(&run.content)) } else { Err(run.content) }
        })
    }
}

/// The reference's interpreter and scripts.
pub(crate) struct Reference {
    python: PathBuf,
    folder: PathBuf,
}

/// The reference, where it is installed.
pub(crate) fn reference() -> Option<Reference> {
    let venv = Path::new(&env::var_os("HOME")?).join(".cache/gloveport/reference/venv");
    let libraries = std::fs::read_dir(venv.join("lib")).ok()?.flatten();
    let folders = libraries.map(|entry| entry.path().join("site-packages/openhands/runtime/utils"));
    let folder = folders.into_iter().find(|folder| folder.join("git_changes.py").exists())?;
    Some(Reference { python: venv.join("bin/python"), folder })
}

pub(crate) struct Scripts<'a> {
    name: &'static str,
    lab: &'a Lab,
    python: PathBuf,
    folder: PathBuf,
}

impl Scripts<'_> {
    async fn run(&self, script: &str, directory: &Path, arguments: &[&str]) -> Output {
        let mut command = self.lab.command(&self.python);
        command.arg(self.folder.join(script)).args(arguments).current_dir(directory);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

impl Answerer for Scripts<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn changes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Value> {
        Box::pin(async {
            let output = self.run("git_changes.py", directory, &[]).await;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        })
    }

    fn diff<'a>(&'a self, directory: &'a Path, file: &'a str) -> BoxFuture<'a, Result<Difference, String>> {
        Box::pin(async move {
            let output = self.run("git_diff.py", directory, &[file]).await;
            if output.status.success() {
                Ok(difference(std::str::from_utf8(&output.stdout).unwrap()))
            } else {
                Err(String::from_utf8_lossy(&output.stderr).into_owned())
            }
        })
    }
}
