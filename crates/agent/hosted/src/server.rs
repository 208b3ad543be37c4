//! Our program as the server of a sandbox: its command, its variables, its scripts, and what its end means.
//!
//! The scripts need a shell and the small programs that every Linux has. A script's arguments are `$1` and so on.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use gloveport_protocol::Secret;
use gloveport_provider::{
    SandboxSpec, SandboxState,
    container::{EXPIRED, Input, KEY, UNUSED},
};

use crate::{
    ports::{EDITOR, WORK},
    record::{self, Record},
};

/// How long the making of a sandbox may take before it is taken for one that was given up.
const MAKING: Duration = Duration::from_mins(15);
/// Why a sandbox has ended whose time is over.
pub const OVER: &str = "its time is over";

/// Makes our directories and the workspace (`$1`: that of all, `$2`: the sandbox's own, `$3`: the workspace), gives the latter
/// two to the user `$4`, and says whether the program `$5` is there.
pub const PREPARE: &str = r#"set -e
mkdir -p "$1/bin" "$2" "$3"
chmod 755 "$1" "$1/bin"
chmod 700 "$2"
chown "$4" "$2" "$3"
if test -x "$5"; then echo there; else echo missing; fi"#;

/// Gives an upload (`$1`) its name (`$2`): a program that runs cannot be written to.
pub const PLACE: &str = r#"set -e
chmod 755 "$1"
mv -f "$1" "$2""#;

/// Runs our server with its output in a file that stays short, and keeps its exit code (`$1`: the sandbox's directory; then
/// the command). Its standard input is that of the script.
pub const SERVE: &str = r#"dir=$1
shift
echo $$ >"$dir/pid"
: >>"$dir/log"
# It ends with this script, also if that is killed.
while sleep 20 && kill -0 $$; do
  if test "$(wc -c <"$dir/log")" -gt 8388608; then tail -c 4194304 "$dir/log" >"$dir/log.1"; : >"$dir/log"; fi
done </dev/null >/dev/null 2>&1 &
"$@" >>"$dir/log" 2>&1
echo $? >"$dir/ended.new"
mv "$dir/ended.new" "$dir/ended"
kill $!"#;

/// The end of a log (`$1`).
pub const LAST: &str = r#"tail -n 20 "$1""#;

/// The last lines (`$2`) of both files of a directory (`$1`).
pub const READ: &str = r#"cat "$1/log.1" "$1/log" 2>/dev/null | tail -n "$2""#;
/// The command of our server (`gloveport_contract::container`).
pub fn command(record: &Record, spec: &SandboxSpec, program: String) -> Vec<String> {
    let mut words = vec![program, "container-server".to_owned()];
    words.extend(["--port".to_owned(), record.port.to_string()]);
    words.extend(["--workspace".to_owned(), record.workspace.clone()]);
    words.extend(spec.plugins.iter().flat_map(|plugin| ["--plugin".to_owned(), plugin.clone()]));
    // The upload of our program is not the session's time. The clock goes on while a sandbox rests.
    let expires = expires(spec, SystemTime::now());
    words.extend(expires.into_iter().flat_map(|at| ["--expires".to_owned(), at.to_string()]));
    let idle = spec.idle_stop.map(|idle| idle.as_secs_f64());
    words.extend(idle.into_iter().flat_map(|idle| ["--idle-stop".to_owned(), idle.to_string()]));
    if !spec.secrets.is_empty() {
        words.push("--input".to_owned());
    }
    words
}

/// The variables of our server and its tools.
pub fn environment(record: &Record, spec: &SandboxSpec, key: &Secret) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    set("port", record.port.to_string());
    set("PYTHONUNBUFFERED", "1".to_owned());
    set("PIP_BREAK_SYSTEM_PACKAGES", "1".to_owned());
    set("OPENHANDS_SESSION_ID", spec.session_id.to_string());
    for (name, variables) in [
        (EDITOR.0, &["VSCODE_PORT"][..]),
        (WORK[0].0, &["APP_PORT_1", "WORK_PORT_1"]),
        (WORK[1].0, &["APP_PORT_2", "WORK_PORT_2"]),
    ] {
        for variable in variables {
            if let Some(port) = record.ports.get(name) {
                set(variable, port.to_string());
            }
        }
    }
    all.extend(spec.environment.clone());
    all.insert(KEY.to_owned(), key.expose().to_owned());
    all
}

/// When a sandbox with this time to live ends, in seconds since 1970.
pub fn expires(spec: &SandboxSpec, now: SystemTime) -> Option<f64> {
    spec.time_to_live.and_then(|time| now.checked_add(time)).map(record::seconds)
}

/// What our server reads from its standard input, in one line: the secrets; none if there are none.
///
/// # Errors
///
/// They cannot be written as JSON.
pub fn input(spec: &SandboxSpec) -> serde_json::Result<Option<String>> {
    if spec.secrets.is_empty() {
        return Ok(None);
    }
    let secrets = spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    serde_json::to_string(&Input { secrets, audit: None }).map(|line| Some(line + "\n"))
}

/// The state of a sandbox that runs and in which our server was never seen.
pub fn not_yet(record: &Record) -> SandboxState {
    let made = record::time(record.created).and_then(|made| made.elapsed().ok());
    if made.is_none_or(|since| since < MAKING) {
        SandboxState::Pending
    } else {
        SandboxState::Failed("its server was never started; who made it gave up".to_owned())
    }
}

/// Whether the time of a sandbox is over.
pub fn is_over(record: &Record) -> bool {
    record.expires.is_some_and(|expires| expires <= record::seconds(SystemTime::now()))
}

/// What the exit code of our server means.
pub fn ended(code: &str) -> SandboxState {
    match code.parse::<i64>() {
        Ok(EXPIRED) => SandboxState::Stopped(OVER.to_owned()),
        Ok(UNUSED) => SandboxState::Stopped("nobody used it".to_owned()),
        Ok(0) => SandboxState::Stopped("its server was told to end".to_owned()),
        Ok(code) => SandboxState::Failed(format!(
            "its server ended with code {code}; its log has the reason, as long as it is there"
        )),
        Err(_) => SandboxState::Failed("its server ended, and how is not known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_server_says_why_it_has_ended() {
        for (code, word, reason) in [
            ("80", "stopped", OVER),
            ("81", "stopped", "nobody used it"),
            ("0", "stopped", "its server was told to end"),
            ("137", "failed", "its server ended with code 137"),
            ("", "failed", "how is not known"),
        ] {
            let state = ended(code);
            assert!(state.word() == word && state.reason().contains(reason), "{code}: {state}");
        }
    }
}
