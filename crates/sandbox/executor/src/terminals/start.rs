//! What a request for a terminal becomes.

use std::{
    ffi::OsString,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use gloveport_protocol::terminals::TerminalRequest;
use gloveport_sys::host::find_program;
use gloveport_terminal::{ShellOptions, TerminalOptions, WindowSize};

use super::SPOOL;
use crate::{error::TerminalsError, exec};

/// Terminal type of a client that does not tell its own.
const TERM: &str = "xterm-256color";
/// Where programs are looked for if there is no `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Checks what can be wrong with a request before anything is started.
pub(super) fn check(request: &TerminalRequest) -> Result<(), TerminalsError> {
    let invalid = |text: String| Err(TerminalsError::Invalid(text));
    if request.columns == 0 || request.rows == 0 {
        return invalid("columns and rows must be at least 1".into());
    }
    if let Some((key, _)) =
        request.env.iter().find(|(key, value)| key.is_empty() || key.contains(['=', '\0']) || value.contains('\0'))
    {
        return invalid(format!("env has an entry {key:?} that no environment can hold"));
    }
    if let Some(argv) = &request.argv {
        if argv.first().is_none_or(String::is_empty) {
            return invalid("argv is empty; leave it out for a shell".into());
        }
        if argv.iter().any(|word| word.contains('\0')) {
            return invalid("argv contains a NUL byte".into());
        }
    }
    match &request.cwd {
        Some(cwd) if !cwd.is_dir() => Err(TerminalsError::Directory(cwd.clone())),
        Some(cwd) if cwd.is_relative() => invalid(format!("cwd must be an absolute path, and is `{}`", cwd.display())),
        _ => Ok(()),
    }
}

/// The id of a request, or a new one.
pub(super) fn id_of(request: &TerminalRequest) -> Result<String, TerminalsError> {
    let invalid = |error: crate::ExecError| TerminalsError::Invalid(error.to_string());
    match &request.id {
        Some(id) => exec::check_id(id).map(|()| id.clone()).map_err(invalid),
        None => exec::random_id().map_err(invalid),
    }
}

/// Whether two requests ask for the same, whatever they are looked at with.
pub(super) fn is_same(one: &TerminalRequest, other: &TerminalRequest) -> bool {
    fn environment(request: &TerminalRequest) -> impl Iterator<Item = (&String, &String)> {
        request.env.iter().filter(|(name, _)| *name != "TERM")
    }
    one.argv == other.argv && one.cwd == other.cwd && environment(one).eq(environment(other))
}

/// How the terminal is started, and the words of its program.
pub(super) fn options(
    shell: &ShellOptions,
    request: &TerminalRequest,
    directory: &Path,
) -> Result<(TerminalOptions, Vec<String>), TerminalsError> {
    let environment = environment(shell, request);
    let value = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str());
    let path = value("PATH").map_or(PATH.into(), |path| path.to_string_lossy());
    let no_program = |name: &str| TerminalsError::NoProgram(name.to_owned());
    let (program, argv) = if let Some(argv) = &request.argv {
        let word = argv.first().map(String::as_str).unwrap_or_default();
        let found = if word.contains('/') {
            Some(directory.join(word)).filter(|program| is_program(program))
        } else {
            find_program(word, &path, directory)
        };
        match (found, argv.as_slice()) {
            (Some(program), _) => (program, argv.clone()),
            // What clients make of a text for the shell. Where there is no bash it is for the shell that is there.
            (None, [bash, flag, text]) if bash == "bash" && flag == "-c" => {
                let shell = find_program("sh", &path, directory).ok_or_else(|| no_program("bash or sh"))?;
                (shell, vec!["sh".to_owned(), flag.clone(), text.clone()])
            }
            (None, _) => return Err(no_program(word)),
        }
    } else {
        let own = value("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute() && shell.is_file());
        let shell = own
            .or_else(|| ["bash", "sh"].iter().find_map(|name| find_program(name, &path, directory)))
            .ok_or_else(|| no_program("bash or sh"))?;
        // Not as a login shell: the profile of many images would replace the `PATH` that the tools have.
        let name = shell.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (shell, vec![name])
    };
    let options = TerminalOptions {
        spawner: shell.spawner.clone(),
        identity: shell.identity.clone(),
        program,
        arguments: argv.iter().map(OsString::from).collect(),
        environment,
        directory: directory.to_owned(),
        size: WindowSize { columns: request.columns, rows: request.rows },
        memory_limit: shell.memory_limit,
        spool_size: shell.spool_size.min(SPOOL),
    };
    Ok((options, argv))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The environment of the tools, without what the terminal decides, and with what the request adds. A shell that nobody
/// named has no history file.
fn environment(shell: &ShellOptions, request: &TerminalRequest) -> Vec<(OsString, OsString)> {
    let decided = |key: &OsString| ["TERM", "COLUMNS", "LINES"].iter().any(|name| key == name);
    let added = |key: &OsString| request.env.keys().any(|own| key == own.as_str());
    let mut environment: Vec<(OsString, OsString)> =
        shell.environment.iter().filter(|(key, _)| !key.is_empty() && !decided(key) && !added(key)).cloned().collect();
    environment.extend(request.env.iter().map(|(key, value)| (key.into(), value.into())));
    if request.argv.is_none() && !request.env.contains_key("HISTFILE") {
        // A shell of ours leaves the history file alone, which may be that of a person. Without a value bash chooses one.
        environment.retain(|(key, _)| key != "HISTFILE");
        environment.push(("HISTFILE".into(), "".into()));
    }
    if !request.env.contains_key("TERM") {
        environment.push(("TERM".into(), TERM.into()));
    }
    environment
}
