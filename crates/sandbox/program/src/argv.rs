//! Accepts the argument lists of programs that start the OpenHands server.
//!
//! Containers are started with `…/micromamba run -n openhands poetry run python -u -m MODULE PORT …`, local servers
//! with `PYTHON -u -m MODULE PORT …`. A link of either name to this program is enough: everything before the port is
//! passed over (`action-execution-api` 1.2).
//!
//! A link of the name `swerex-remote` is the server of SWE-ReX; one of the name `agent-server` that of OpenHands' SDK 1.x, and
//! so is `PYTHON -m openhands.agent_server …`.

use std::{ffi::OsString, path::Path};

/// Name of the subcommand that such an argument list means.
pub const SERVER: &str = "action-execution-server";

/// Name of the subcommand that serves clients of SWE-ReX.
pub const SWEREX: &str = "swerex";

/// Name of the subcommand that serves clients of OpenHands' SDK 1.x.
pub const AGENT_SERVER: &str = "agent-server";

/// Names of programs that are the server of OpenHands' SDK 1.x.
const OF_SDK: [&str; 2] = [AGENT_SERVER, "openhands-agent-server"];

/// The module that is.
const MODULE_OF_SDK: &str = "openhands.agent_server";

/// Names of programs that are the server of SWE-ReX.
const OF_SWEREX: [&str; 2] = ["swerex-remote", "swe-rex"];

/// What the names of programs begin with that callers start the server by.
const LAUNCHERS: [&str; 4] = ["python", "micromamba", "poetry", "conda"];

/// The arguments as this program's own command line takes them.
pub fn normalize(arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name()).unwrap_or_default();
    if OF_SWEREX.iter().any(|known| name == *known) {
        let program = arguments.first().cloned().unwrap_or_default();
        // It listens on all addresses if nothing else is said.
        let all = [program, SWEREX.into(), "--host".into(), "0.0.0.0".into()];
        return all.into_iter().chain(arguments.into_iter().skip(1)).collect();
    }
    if OF_SDK.iter().any(|known| name == *known) {
        return as_command(AGENT_SERVER, arguments, 1);
    }
    if let Some(at) = arguments.windows(2).position(|pair| pair[0] == "-m" && pair[1] == MODULE_OF_SDK) {
        return as_command(AGENT_SERVER, arguments, at + 2);
    }
    let is_launcher = LAUNCHERS.iter().any(|launcher| name.to_string_lossy().starts_with(launcher));
    let module = arguments.iter().position(|argument| argument == "-m").map(|at| at + 2);
    let rest = arguments.get(1..).unwrap_or_default();
    let port = match module {
        Some(after) if arguments.get(after).is_some_and(is_port) => Some(after),
        _ if is_launcher => rest.iter().position(is_port).map(|at| at + 1),
        // Nothing else of ours begins with a number.
        _ => rest.first().filter(|first| is_port(first)).map(|_| 1),
    };
    match port {
        Some(port) => as_command(SERVER, arguments, port),
        None => arguments,
    }
}

/// The program with this command, and with its arguments from the one with this number on.
fn as_command(command: &str, arguments: Vec<OsString>, from: usize) -> Vec<OsString> {
    let program = arguments.first().cloned().unwrap_or_default();
    [program, command.into()].into_iter().chain(arguments.into_iter().skip(from)).collect()
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
            ("/x/micromamba run -n env server 3000".into(), format!("/x/micromamba {SERVER} 3000")),
            ("renamed view -n 2 file".into(), "renamed view -n 2 file".into()),
            ("renamed run sleep 3".into(), "renamed run sleep 3".into()),
            (
                "/usr/bin/swerex-remote --port 8880 --auth-token t".into(),
                "/usr/bin/swerex-remote swerex --host 0.0.0.0 --port 8880 --auth-token t".into(),
            ),
            ("swe-rex --version".into(), "swe-rex swerex --host 0.0.0.0 --version".into()),
            (
                "/usr/local/bin/openhands-agent-server --port 60000".into(),
                "/usr/local/bin/openhands-agent-server agent-server --port 60000".into(),
            ),
            (
                "/agent-server/.venv/bin/python -m openhands.agent_server --port 60000".into(),
                "/agent-server/.venv/bin/python agent-server --port 60000".into(),
            ),
            ("gloveport agent-server --port 1".into(), "gloveport agent-server --port 1".into()),
            ("gloveport swerex --port 1".into(), "gloveport swerex --port 1".into()),
        ] {
            assert_eq!(normalized(&line), expected);
        }
    }
}
