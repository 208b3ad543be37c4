//! The command that starts our server, at the first start of a sandbox and after each rest.

use std::collections::BTreeMap;

use gloveport_hosted::{
    record::Record,
    server::{self, SERVE},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxSpec};

/// The variable with what our server reads from its standard input. It is kept from the server itself.
const INPUT: &str = "GLOVEPORT_INPUT";

/// Makes the sandbox's own directory (`$1`) and the workspace (`$2`), takes a copy of our program (`$3`) that may be executed and
/// that a rest does not lose, and starts it with the rest of the arguments by the script `$4`. The sandbox runs for the service when
/// this has ended: by then it can be seen that our server runs.
const START: &str = r#"set -e
own=$1 workspace=$2 mounted=$3 serve=$4
shift 4
make() {
  mkdir -p "$1" 2>/dev/null || sudo -n mkdir -p "$1"
  test -w "$1" || sudo -n chown "$(id -u):$(id -g)" "$1"
}
make "$own"
make "$workspace"
chmod 700 "$own"
if ! test -x "$own/program"; then
  cp "$mounted" "$own/program.new"
  chmod 755 "$own/program.new"
  mv -f "$own/program.new" "$own/program"
fi
rm -f "$own/pid" "$own/ended"
input=$GLOVEPORT_INPUT
unset GLOVEPORT_INPUT
if command -v setsid >/dev/null; then apart=setsid; else apart=nohup; fi
if test -n "$input"; then
  printf '%s' "$input" | $apart sh -c "$serve" serve "$own" "$own/program" "$@" >/dev/null 2>&1 &
else
  $apart sh -c "$serve" serve "$own" "$own/program" "$@" </dev/null >/dev/null 2>&1 &
fi
left=100
until test -s "$own/pid" || test $left -eq 0; do
  sleep 0.05 2>/dev/null || sleep 1
  left=$((left - 1))
done"#;

/// Says what became of our server (`$1`: the sandbox's own directory).
pub(crate) const STATE: &str = r#"if test -e "$1/ended"; then echo "ended $(cat "$1/ended")"
elif test -e "$1/pid" && kill -0 "$(cat "$1/pid")" 2>/dev/null; then echo runs
elif test -e "$1/pid"; then echo ended
else echo missing; fi"#;

/// A script with its arguments as one command of a shell.
pub(crate) fn script(script: &str, arguments: &[&str]) -> String {
    let words = ["sh", "-c", script, "gloveport"].into_iter().chain(arguments.iter().copied());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The command that starts our server. Everybody of the account can read it, so no secret is in it.
pub(crate) fn command(record: &Record, spec: &SandboxSpec, mounted: &str) -> String {
    let words = server::command(record, spec, mounted.to_owned());
    let mut arguments = vec![record.directory.as_str(), &record.workspace, mounted, SERVE];
    // The first word is the program itself, of which the script makes a copy.
    arguments.extend(words.iter().skip(1).map(String::as_str));
    script(START, &arguments)
}

/// The variables of a sandbox. Nobody can read them from the service.
pub(crate) fn environment(
    record: &Record,
    spec: &SandboxSpec,
    key: &Secret,
) -> Result<BTreeMap<String, String>, ProviderError> {
    let mut all = server::environment(record, spec, key);
    let failed = |error| gloveport_hosted::fault::wrong("secrets", error);
    all.extend(server::input(spec).map_err(failed)?.map(|input| (INPUT.to_owned(), input)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_script_gets_its_arguments_whatever_is_in_them() {
        let arguments = ["a b", "it's", "", "$HOME", "`id`", "plain", "\n"];
        let command = script(r#"printf '%s|' "$@""#, &arguments);
        let output = Command::new("sh").arg("-c").arg(command).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}|", arguments.join("|")));
    }
}
