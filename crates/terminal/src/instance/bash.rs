//! bash: the first choice.

use super::StartupFiles;

/// The start-up file: the lesson, then the user's own file, then the arming (so that the user's file can not undo it).
pub(super) fn startup(nonce: &str, files: StartupFiles) -> String {
    let lesson = lesson(nonce);
    let user = match files {
        StartupFiles::User => "if [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n",
        StartupFiles::None => "",
    };
    format!("exec 3<&-\n{lesson}{user}__gp_arm \"$?\"\n")
}

/// Functions that make bash report before each prompt.
///
/// * `__gp_p STATUS OPTIONS` writes the report to the terminal by name, so redirecting the shell's own output does not
///   lose it. The user's tracing, error and export options are off inside of it. It sets the prompts last: a user may
///   have made them read-only, which ends it there. A `PATH` that is too long for a report is left out.
/// * `__gp_arm STATUS` installs it. Since bash 5.1 `PROMPT_COMMAND` is a list: ours is a late element, so that a plain
///   assignment to the variable replaces the user's first element only. The prompt itself carries a second, shorter
///   report, from which a lost hook is noticed.
/// * `__gp_f STATUS` takes the line that taught a shell out of its history again.
/// * `__gp_s STATUS` sets `$?`.
/// * `__gp_h FILE STATUS [ENTRY]` makes a command that is handed over in a file ready in `__gp_c`, and puts it (or the
///   entry) into the history in place of the line that calls it. A shell that traces its commands stops that here and
///   goes on with it inside of the command.
pub(super) fn lesson(nonce: &str) -> String {
    let quiet = "{ __gp_p \"$?\" \"$-\" || :; } >/dev/null 2>&1";
    format!(
        r#"__gp_s() {{ return "$1"; }}
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
__gp_p() {{
  local -
  set +aeuxET
  local __gp_path=
  if [[ $PATH != "$__gp_last_path" && ${{#PATH}} -lt 65536 ]]; then __gp_last_path=$PATH __gp_path=$PATH; fi
  \builtin printf '\033]7777;{nonce};P\037%s\037%s\037%s\037%s\037%s\037{nonce}\a' "$1" "$!" "$2" "$__gp_path" "$PWD" >/dev/tty
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  PS1=$__gp_ps1 PS2=$__gp_ps2
}}
else
__gp_p() {{
  \builtin printf '\033]7777;{nonce};P\037%s\037\037%s\037%s\037%s\037{nonce}\a' "$1" "$2" "${{PATH-}}" "${{PWD-}}" >/dev/tty
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  PS1=$__gp_ps1 PS2=$__gp_ps2
}}
fi
__gp_h() {{
  __gp_c=$(<"$1")
  \builtin history -s -- "${{3-$__gp_c}}"
  if [[ $- == *x* ]]; then
    __gp_c="{{ set -x; __gp_s $2; }} 2>/dev/null"$'\n'"$__gp_c"
    set +x
  fi
  return "$2"
}}
__gp_arm() {{
  __gp_last_path=
  __gp_ps1='\[\e]7777;{nonce};D\037$?\037{nonce}\a\]' __gp_ps2='\[\e]7777;{nonce};C\037\037{nonce}\a\]'
  unset PROMPT_COMMAND
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=([9]='{quiet}')
  else
    PROMPT_COMMAND='{quiet}'
  fi
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  return "$1"
}}
__gp_f() {{
  local last
  last=$(HISTTIMEFORMAT= \builtin history 1)
  if [[ $last =~ ^\ *([0-9]+).*/\.gloveport- ]]; then \builtin history -d "${{BASH_REMATCH[1]}}"; fi
  return "$1"
}}
"#
    )
}
