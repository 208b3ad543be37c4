//! Accepts the argument lists of programs that start the OpenHands server.
//!
//! Containers are started with `…/micromamba run -n openhands poetry run python -u -m MODULE PORT …`, local servers
//! with `PYTHON -u -m MODULE PORT …`. A link of either name to this program is enough: everything before the port is
//! passed over (`action-execution-api` 1.2).

use std::{ffi::OsString, path::Path};

/// Name of the subcommand that such an argument list means.
pub(crate) const SERVER: &str = "action-execution-server";

/// The arguments as this program's own command line takes them.
pub(crate) fn normalize(arguments: Vec<OsString>) -> Vec<OsString> {
    let own_name = arguments
        .first()
        .and_then(|program| Path::new(program).file_name())
        .is_some_and(|name| name.to_string_lossy().starts_with("gloveport"));
    let module = arguments.iter().position(|argument| argument == "-m").map(|at| at + 2);
    let rest = arguments.get(1..).unwrap_or_default();
    let port = match module {
        Some(after) if arguments.get(after).is_some_and(is_port) => Some(after),
        _ if own_name => None,
        _ => rest.iter().position(is_port).map(|at| at + 1),
    };
    let Some(port) = port else { return arguments };
    let program = arguments.first().cloned().unwrap_or_default();
    [program, SERVER.into()].into_iter().chain(arguments.into_iter().skip(port)).collect()
}

fn is_port(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        normalize(arguments).iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn launcher_words_before_the_port_are_passed_over() {
        let module = "openhands.runtime.action_execution_server";
        let tail = "3000 --working-dir /workspace --user-id 1000";
        for (line, expected) in [
            (
                format!(
                    "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m {module} {tail}"
                ),
                format!("/openhands/micromamba/bin/micromamba {SERVER} {tail}"),
            ),
            (format!("/usr/bin/python3 -u -m {module} {tail}"), format!("/usr/bin/python3 {SERVER} {tail}")),
            (format!("gloveport python -u -m my.server {tail}"), format!("gloveport {SERVER} {tail}")),
            (format!("/x/server {tail}"), format!("/x/server {SERVER} {tail}")),
            ("gloveport run 3000".into(), "gloveport run 3000".into()),
            ("gloveport run -- python -m http.server".into(), "gloveport run -- python -m http.server".into()),
            ("python --version".into(), "python --version".into()),
        ] {
            assert_eq!(normalized(&line), expected);
        }
    }
}
