//! The environment of the tools: what a session puts there, and how it gets there unchanged (runtime-interface 6).

mod committer;
mod place;

use std::{collections::BTreeMap, fmt::Write as _};

use gloveport_event_stream::Masker;
use gloveport_protocol::{Action, ActionEvent, Observation, RunAction, RunIpythonAction, Secret};

pub use place::EnvironmentPlace;

use crate::{RuntimeError, SandboxConnection, execution::execute_in, quote};

/// What this session wrote into `~/.bashrc` is found again by this end of the line.
const OURS: &str = "# set by gloveport";
/// Prefix of variables of the backend that are passed on without it.
const PASSED_ON: &str = "SANDBOX_ENV_";

/// Variables that every session starts with (runtime-interface 6.1).
pub(crate) fn defaults(backend: &BTreeMap<String, String>, auto_lint: bool) -> BTreeMap<String, Secret> {
    let mut variables: BTreeMap<_, _> = backend
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(PASSED_ON)?.to_owned(), Secret::new(value))))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    if auto_lint {
        variables.insert("ENABLE_AUTO_LINT".to_owned(), Secret::new("true"));
    }
    variables
}

/// What a new sandbox needs before its first action: its variables, and who commits (runtime-interface 3). A sandbox
/// that was paused gets it again.
#[derive(Clone, Debug)]
pub struct InitialEnvironment {
    /// Variables in the order in which they are set.
    pub(crate) variables: Vec<BTreeMap<String, Secret>>,
    /// Whether there is a notebook.
    pub(crate) notebook: bool,
    /// Name and address of who commits; none leaves it to the machine.
    pub(crate) committer: Option<(String, String)>,
}

impl InitialEnvironment {
    /// Sets all of it up. That git does not know who commits is only a warning.
    pub async fn set_up(&self, sandbox: &dyn SandboxConnection) -> Result<(), RuntimeError> {
        for variables in &self.variables {
            set_variables(sandbox, self.notebook, variables).await?;
        }
        match &self.committer {
            Some((name, address)) if !sandbox.is_own_home() => committer::set_git_user(sandbox, name, address).await,
            _ => {}
        }
        Ok(())
    }
}

/// Sets variables in all tools of a sandbox, now and after their restart.
pub(crate) async fn set_variables(
    sandbox: &dyn SandboxConnection,
    notebook: bool,
    variables: &BTreeMap<String, Secret>,
) -> Result<(), RuntimeError> {
    let in_upper_case = checked(variables)?;
    if sandbox.keep_variables(variables) {
        return Ok(());
    }
    let variables = in_upper_case;
    if notebook {
        let cell = RunIpythonAction::new(notebook_cell(&variables));
        // The interface does not look at the result: a notebook that is not there is no reason to fail.
        let set = sandbox.execute(&Action::RunIpython(cell).into()).await;
        tracing::debug!(set = set.is_ok(), "told the notebook about the environment");
    }
    if variables.is_empty() {
        return Ok(());
    }
    set_in(sandbox, EnvironmentPlace::Shell, &variables, shell_command(&variables)).await?;
    if sandbox.is_own_home() {
        return Ok(());
    }
    set_in(sandbox, EnvironmentPlace::Bashrc, &variables, bashrc_command(&variables)).await
}

async fn set_in(
    sandbox: &dyn SandboxConnection,
    place: EnvironmentPlace,
    variables: &BTreeMap<String, Secret>,
    command: String,
) -> Result<(), RuntimeError> {
    let action = RunAction { hidden: true, ..RunAction::new(command) };
    let content = match execute_in(sandbox, &ActionEvent::from(Action::Run(action))).await? {
        Observation::Run(run) if run.metadata.exit_code == 0 => return Ok(()),
        other => other.content().to_owned(),
    };
    // Shells quote what they do not understand.
    let mut masker = Masker::default();
    masker.set(variables.clone());
    let content = masker.mask(&content).into_owned();
    Err(RuntimeError::Environment { names: variables.keys().cloned().collect(), place, content })
}

/// The variables with their names in upper case.
fn checked(variables: &BTreeMap<String, Secret>) -> Result<BTreeMap<String, Secret>, RuntimeError> {
    let mut result = BTreeMap::new();
    for (name, value) in variables {
        let name = name.to_uppercase();
        if !quote::is_variable_name(&name) {
            return Err(RuntimeError::VariableName { name });
        }
        if value.expose().contains('\0') {
            return Err(RuntimeError::VariableValue { name });
        }
        result.insert(name, value.clone());
    }
    Ok(result)
}

fn notebook_cell(variables: &BTreeMap<String, Secret>) -> String {
    let mut cell = String::from("import os\n");
    for (name, value) in variables {
        writeln!(cell, "os.environ[\"{name}\"] = {}", quote::python_text(value.expose())).unwrap_or(());
    }
    cell
}

fn shell_command(variables: &BTreeMap<String, Secret>) -> String {
    let exports: Vec<_> = variables.iter().map(|(name, value)| export(name, value) + ";").collect();
    exports.join(" ")
}

fn export(name: &str, value: &Secret) -> String {
    format!("export {name}={}", quote::bash_value(value.expose()))
}

/// Puts one line for each variable into `~/.bashrc`, in place of the line that an earlier call put there.
///
/// All is prepared in a new file first, so that a full disk leaves the old one as it is; then the content is copied,
/// so that a link, the owner and the mode stay. Only builtins see the values: none is an argument of a process.
fn bashrc_command(variables: &BTreeMap<String, Secret>) -> String {
    let names: Vec<_> = variables.keys().map(String::as_str).collect();
    let lines: Vec<_> =
        variables.iter().map(|(name, value)| quote::bash_word(&format!("{} {OURS}", export(name, value)))).collect();
    format!(
        "( umask 077; f=~/.bashrc; n=~/.bashrc.gloveport.$BASHPID; touch \"$f\" && \
         {{ grep -v '^export \\({}\\)=.* {OURS}$' \"$f\" || [ $? -eq 1 ]; }} > \"$n\" && \
         {{ [ -z \"$(tail -c 1 \"$n\")\" ] || echo; printf '%s\\n' {}; }} >> \"$n\" && \
         cat \"$n\" > \"$f\"; s=$?; rm -f \"$n\"; exit $s )",
        names.join("\\|"),
        lines.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    fn one(name: &str, value: &str) -> BTreeMap<String, Secret> {
        BTreeMap::from([(name.to_owned(), Secret::new(value))])
    }

    #[test]
    fn what_has_the_prefix_is_passed_on_without_it() {
        let backend = [("SANDBOX_ENV_FOO", "1"), ("SANDBOX_ENV_b", "2"), ("SANDBOX_ENV_", "3"), ("PATH", "4")];
        let backend = backend.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let expected = [("FOO", "1"), ("b", "2")].map(|(name, value)| (name.to_owned(), Secret::new(value)));
        assert_eq!(defaults(&backend, false), expected.clone().into());
        let mut linted = BTreeMap::from(expected);
        linted.insert("ENABLE_AUTO_LINT".to_owned(), Secret::new("true"));
        assert_eq!(defaults(&backend, true), linted);
    }

    #[test]
    fn ordinary_values_are_set_in_the_words_of_the_interface() {
        let variables = one("A", "x").into_iter().chain(one("B", "1.5")).collect();
        assert_eq!(shell_command(&variables), "export A=\"x\"; export B=\"1.5\";");
        assert_eq!(notebook_cell(&variables), "import os\nos.environ[\"A\"] = \"x\"\nos.environ[\"B\"] = \"1.5\"\n");
    }

    #[test]
    fn names_that_no_shell_accepts_are_refused_with_nothing_set() {
        for name in ["A B", "A;id", "", "1A", "A-B", "Ä"] {
            let error = checked(&one(name, "x")).unwrap_err().to_string();
            assert!(error.contains(&format!("`{}`", name.to_uppercase())), "{error}");
        }
        let error = checked(&one("A", "sec\0ret")).unwrap_err().to_string();
        assert!(error.contains("`A`") && !error.contains("sec"), "{error}");
    }

    #[test]
    fn the_file_keeps_what_others_wrote_and_has_one_line_for_each_variable() {
        let home = tempfile::tempdir().unwrap();
        let bashrc = home.path().join(".bashrc");
        let run = |variables: &BTreeMap<String, Secret>| -> Output {
            Command::new("bash")
                .args(["--norc", "-c", &bashrc_command(variables)])
                .env("HOME", home.path())
                .output()
                .unwrap()
        };
        std::fs::write(&bashrc, "alias x=y\nexport TOKEN=mine\nlast line").unwrap();
        for (value, line) in [("a", "\"a\""), ("b c", "$'b c'"), ("d'\n$x", "$'d\\x27\\n$x'")] {
            let output = run(&one("TOKEN", value));
            assert!(output.status.success(), "{output:?}");
            let expected = format!("alias x=y\nexport TOKEN=mine\nlast line\nexport TOKEN={line} # set by gloveport\n");
            assert_eq!(std::fs::read_to_string(&bashrc).unwrap(), expected);
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
