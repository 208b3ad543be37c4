//! bash: the first choice.

use super::{StartupFiles, by_its_name, quoted};

/// The start-up file: the lesson, then the user's own file, then the arming (so that the user's file can not undo it).
pub(super) fn startup(nonce: &str, files: StartupFiles, terminal: &str) -> String {
    let lesson = lesson(nonce, terminal);
    let user = match files {
        StartupFiles::User => "if [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n",
        StartupFiles::None => "",
    };
    format!("exec 3<&-\n{lesson}{user}__gp_arm \"$?\"\n")
}

/// Functions that make bash report before each prompt. Nothing of that reaches anything but the terminal.
///
/// * `__gp_p STATUS OPTIONS` writes the report to the terminal by name, so redirecting the shell's own output does not
///   lose it. The user's tracing, error and export options are off inside of it. It sets the prompts last: a user may
///   have made them read-only, which ends it there. A `PATH` that is too long for a report is left out.
/// * bash shows its prompts on its standard error, which is descriptor 9 for the hook. Only where that is the terminal
///   itself a report may stand in the prompt. Elsewhere the prompt runs what writes to the terminal by name, which takes
///   longer, and leaves nothing to show: `__gp_q OPTIONS` sets it.
/// * A shell that shows what it reads (`set -v`) would show the line that calls these functions, and one whose standard
///   error is closed (no options are given then) cannot run it, so there the prompt makes the whole report. [`hook`] is
///   what such a shell has shown by then.
/// * `__gp_arm STATUS` installs it. The history file is the person's, and forgotten before bash would read it (after the
///   start-up file) or write it (at its end); the list in memory stays.
///   Since bash 5.1 `PROMPT_COMMAND` is a list: ours is a late element, so that a plain
///   assignment to the variable replaces the user's first element only. The prompt itself carries a second, shorter
///   report, from which a lost hook is noticed.
/// * `__gp_f STATUS` takes the line that taught a shell out of its history again.
/// * `__gp_s STATUS` sets `$?`.
/// * `__gp_h FILE STATUS [ENTRY]` makes a command that is handed over in a file ready in `__gp_c`, and puts it (or the
///   entry) into the history in place of the line that calls it. A shell that traces its commands stops that here and
///   goes on with it inside of the command.
///
/// What the prompt runs begins with a bracket, and no brace: it may stand in the middle of a word, where that is none.
pub(crate) fn lesson(nonce: &str, terminal: &str) -> String {
    let hook = hook(nonce);
    let own = quoted(terminal);
    let displayed = format!(r"\builtin printf '\033]7777;{nonce};D\037%s\037{nonce}\a'");
    let prompt = format!(r#"$( ( ({displayed} "$?" >/dev/tty) ) >/dev/null 2>&1)"#);
    let continuation =
        format!(r"$( ( (\builtin printf '\033]7777;{nonce};C\037\037{nonce}\a' >/dev/tty) ) >/dev/null 2>&1)");
    // A substitution does not see that option, so it is noted before: as a number, behind the end of a short text.
    let verbose = r#"${__gp_x:1+(__gp_verbose=36#0${-//[^v]})}$( (__gp_v "$?") >/dev/null 2>&1)"#.to_owned();
    let prompts = r#"if [[ /dev/fd/9 -ef $__gp_terminal ]]; then
    \builtin export -n PS1 PS2 PROMPT_COMMAND
    PS1=$__gp_ps1 PS2=$__gp_ps2
  else
    __gp_q "$2"
  fi"#;
    let [prompt, continuation, verbose] = [prompt, continuation, verbose].map(|text| quoted(&text));
    let lesson = format!(
        r#"__gp_s() {{ return "$1"; }}
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
__gp_p() {{
  local -
  set +aeuxET
  if [[ $2 == *v* ]]; then __gp_q "$2"; return; fi
  local __gp_path=
  if [[ $PATH != "$__gp_last_path" && ${{#PATH}} -lt 65536 ]]; then __gp_last_path=$PATH __gp_path=$PATH; fi
  \builtin printf '\033]7777;{nonce};P\037%s\037%s\037%s\037%s\037%s\037{nonce}\a' "$1" "$!" "$2" "$__gp_path" "$PWD" >/dev/tty
  {prompts}
}}
else
__gp_p() {{
  if [[ $2 == *v* ]]; then __gp_q "$2"; return; fi
  \builtin printf '\033]7777;{nonce};P\037%s\037\037%s\037%s\037%s\037{nonce}\a' "$1" "$2" "${{PATH-}}" "${{PWD-}}" >/dev/tty
  {prompts}
}}
fi
__gp_q() {{
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  if [[ -z $1 || $1 == *v* ]]; then
    if [[ -z $1 ]]; then :
    elif [[ ${{PROMPT_COMMAND[9]-}} ]]; then \builtin unset 'PROMPT_COMMAND[9]'; else PROMPT_COMMAND=; fi
    __gp_x=x
    PS1=$__gp_ps1_verbose PS2=$__gp_ps2_apart
  elif \builtin shopt -q promptvars; then
    PS1=$__gp_ps1_apart PS2=$__gp_ps2_apart
  else
    PS1= PS2=
  fi
}}
__gp_v() {{
  __gp_letters=$-
  set +aeuxET
  __gp_path=${{PATH-}}
  if [[ ${{#__gp_path}} -ge 65536 ]]; then __gp_path=; fi
  if ((__gp_verbose)); then __gp_letters+=v; fi
  \builtin printf '\033]7777;{nonce};P\037%s\037%s\037%s\037%s\037%s\037{nonce}\a' "$1" "$!" "$__gp_letters" "$__gp_path" "${{PWD-}}" >/dev/tty
  {displayed} "$1" >/dev/tty
}}
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
  {{ \builtin unset -v HISTFILE || :; }} 2>/dev/null
  __gp_last_path= __gp_terminal={own}
  __gp_ps1='\[\e]7777;{nonce};D\037$?\037{nonce}\a\]' __gp_ps2='\[\e]7777;{nonce};C\037\037{nonce}\a\]'
  __gp_ps1_apart={prompt} __gp_ps2_apart={continuation} __gp_ps1_verbose={verbose}
  unset PROMPT_COMMAND
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=([9]='{hook}')
  else
    PROMPT_COMMAND='{hook}'
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
    );
    by_its_name(lesson, terminal)
}

/// The line that bash runs before each prompt. Its second part is for a standard error that is closed.
pub(crate) fn hook(nonce: &str) -> String {
    format!(r#"{{ __gp_p "$?" "$-" {nonce} || :; }} 9>&2 >/dev/null 2>&1 || __gp_q """#)
}
