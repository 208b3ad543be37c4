//! The command that starts our server: the entry point of a sandbox.

use std::collections::HashMap;

use gloveport_hosted::{
    fault::wrong,
    record::Record,
    server::{self, command},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxSpec};

/// The variable with what our server reads from its standard input. It is kept from the server and from all that it starts.
const INPUT: &str = "GLOVEPORT_INPUT";

/// Makes the workspace (`$1`), and becomes our server with the rest of the arguments, all of whose output is that of the sandbox. It
/// lives so many seconds from then on (`$2`; empty for as long as the sandbox does): what comes before is not the session's time. The
/// variables with which the sandbox has begun end with the shell, also for whoever reads those of its first process.
const START: &str = r#"mkdir -p "$1" || exit 1
lives=$2
shift 2
if test -n "$lives"; then set -- "$@" --expires "$(($(date +%s) + lives))"; fi
exec 2>&1
input=$GLOVEPORT_INPUT
unset GLOVEPORT_INPUT
if test -z "$input"; then exec "$@" </dev/null; fi
exec "$@" <<EOF
$input
EOF"#;

/// The arguments of a sandbox. Everybody of the workspace may see them, so no secret is in them.
pub(crate) fn arguments(record: &Record, spec: &SandboxSpec, program: String) -> Vec<String> {
    let mut words: Vec<String> = ["sh", "-c", START, "gloveport"].map(str::to_owned).into();
    words.push(record.workspace.clone());
    // The clock of a shell has whole seconds, of which the first has begun.
    let lives = spec.time_to_live.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0) + 1);
    words.push(lives.map(|seconds| seconds.to_string()).unwrap_or_default());
    let without_end = SandboxSpec { time_to_live: None, ..spec.clone() };
    words.extend(command(record, &without_end, program));
    words
}

/// The variables of a sandbox. Nobody can read them from the service.
pub(crate) fn variables(
    record: &Record,
    spec: &SandboxSpec,
    key: &Secret,
) -> Result<HashMap<String, String>, ProviderError> {
    let mut all: HashMap<String, String> = server::environment(record, spec, key).into_iter().collect();
    let input = server::input(spec).map_err(|error| wrong("secrets", error))?;
    // The shell adds the end of the line.
    all.extend(input.map(|input| (INPUT.to_owned(), input.trim_end().to_owned())));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_server_gets_its_input_whatever_is_in_it_and_nobody_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("a b/workspace");
        for input in ["{\"secrets\":{\"S\":\"it's $x `y` \\\\\"}}", "EOF", ""] {
            let script = r#"cat; printf '%s' "[$*|${GLOVEPORT_INPUT-none}]" >&2"#;
            let output = Command::new("sh")
                .args(["-c", START, "gloveport"])
                .arg(&workspace)
                .arg("")
                .args(["sh", "-c", script, "sh", "a b", "c"])
                .env(INPUT, input)
                .output()
                .unwrap();
            let line = if input.is_empty() { String::new() } else { format!("{input}\n") };
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{line}[a b c|none]"));
            assert!(output.stderr.is_empty() && workspace.is_dir());
        }
    }
}
