//! Commands of sessions (`swe-rex-api` 3).

use serde_json::json;

use super::calls::{ended, gives, in_session, interrupt, numbers, raised, run, run_with, says};
use crate::{
    Check,
    check::{Text, Want},
};

const SPEC: &str = "swe-rex-api 3";

/// One session, and commands with their outputs and exit codes.
fn table(id: &'static str, title: &'static str, rows: &[(&str, &str, i64)]) -> Check {
    rows.iter().fold(in_session(id, title, SPEC), |check, (command, output, exit)| {
        check.send(run(command), gives(output, *exit))
    })
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = outputs();
    checks.extend(texts());
    checks.extend(exit_codes());
    checks.extend(syntax());
    checks.extend(limits());
    checks
}

fn outputs() -> Vec<Check> {
    vec![
        table(
            "commands/output",
            "the output is what was printed, not stripped",
            &[
                ("echo hi", "hi\n", 0),
                ("printf x", "x", 0),
                ("printf 'a\\nb\\n\\n'", "a\nb\n\n", 0),
                ("echo; echo a; echo", "\na\n\n", 0),
                ("true", "", 0),
            ],
        ),
        table(
            "commands/streams",
            "both streams are shown",
            &[("echo out; echo err >&2", "out\nerr\n", 0), ("echo err >&2; (exit 2)", "err\n", 2)],
        ),
        table(
            "commands/escapes",
            "escape sequences are removed",
            &[("printf '\\033[1;31mred\\033[0m\\n'", "red\n", 0), ("printf 'a\\033[2Kb\\n'", "ab\n", 0)],
        ),
        table(
            "commands/letters",
            "letters of other languages are whole",
            &[("printf 'gr\\303\\274n \\360\\237\\230\\200\\n'", "grün 😀\n", 0), ("echo grün 😀", "grün 😀\n", 0)],
        ),
        table(
            "commands/bytes",
            "bytes that are no text are shown by their numbers",
            &[("printf '\\377\\376'", "\\xff\\xfe", 0)],
        ),
        table(
            "commands/long",
            "long outputs are whole",
            &[
                ("seq 3000", &numbers(3000), 0),
                ("printf 'x%.0s' {1..5000}; echo", &format!("{}\n", "x".repeat(5000)), 0),
            ],
        ),
        in_session("commands/no-such", "a command that is not there is told by bash", SPEC).send(
            run("no-such-program-here"),
            ended(127).want(Want::Text("/output", Text::Ends("no-such-program-here: command not found\n".to_owned()))),
        ),
    ]
}

fn texts() -> Vec<Check> {
    vec![
        table(
            "commands/several",
            "several commands run one after the other, and the last exit code counts",
            &[
                ("echo a; echo b", "a\nb\n", 0),
                ("echo a\necho b", "a\nb\n", 0),
                ("false\ntrue", "", 0),
                ("true\nfalse", "", 1),
                ("echo a && false", "a\n", 1),
            ],
        ),
        table(
            "commands/nothing",
            "blanks and comments are no commands",
            &[("", "", 0), ("   \n  ", "", 0), ("# nothing", "", 0), ("echo a # and more", "a\n", 0)],
        ),
        table(
            "commands/compound",
            "commands of several lines are one",
            &[
                ("for i in 1 2; do echo $i; done", "1\n2\n", 0),
                ("f() {\n  echo in f\n}\nf", "in f\n", 0),
                ("if true\nthen\necho yes\nfi", "yes\n", 0),
                ("cat <<'END'\none\n  two\nEND", "one\n  two\n", 0),
                ("while read -r line; do echo \"got $line\"; done <<< one", "got one\n", 0),
            ],
        ),
        table(
            "commands/bash",
            "the grammar is that of bash",
            &[
                ("[[ abc == a* ]] && echo matches", "matches\n", 0),
                ("echo $((6 * 7))", "42\n", 0),
                ("x=(a b); echo ${#x[@]}", "2\n", 0),
                ("echo {1..3}", "1 2 3\n", 0),
                ("echo \"$(echo nested)\" 'a\"b'", "nested a\"b\n", 0),
                ("set -o pipefail; false | true", "", 1),
                ("set +o pipefail; false | true", "", 0),
                ("trap 'echo trapped' USR1; kill -USR1 $$; trap - USR1", "trapped\n", 0),
            ],
        ),
    ]
}

fn exit_codes() -> Vec<Check> {
    let fails = "echo a; (exit 3)";
    let message = "Command 'echo a; (exit 3)' failed with exit code 3. Here is the output:\n'a\\n'";
    vec![
        table(
            "exit/silent",
            "the exit code is in the answer",
            &[("(exit 7)", "", 7), ("false", "", 1), ("(exit 255)", "", 255)],
        ),
        in_session("exit/raise", "a failure is raised where that is wanted", SPEC)
            .send(run_with(fails, &json!({"check": "raise"})), says("NonZeroExitCodeError", message))
            .send(run_with("echo a", &json!({"check": "raise"})), gives("a\n", 0)),
        in_session("exit/message", "the message of a failure begins with the words of the client", SPEC).send(
            run_with(fails, &json!({"check": "raise", "error_msg": "While testing"})),
            says("NonZeroExitCodeError", &format!("While testing: {message}")),
        ),
        in_session("exit/ignore", "an exit code that does not matter is not told", SPEC)
            .send(run_with(fails, &json!({"check": "ignore"})), gives("a\n", json!(null))),
        in_session("exit/default", "without a word a failure is raised", SPEC).send(
            crate::server::Request::json(
                "/run_in_session",
                &json!({"command": "false", "session": "{session}", "timeout": 20, "action_type": "bash"}),
            ),
            raised("NonZeroExitCodeError"),
        ),
        table(
            "exit/last",
            "the exit code of the last command is known to the next",
            &[("false", "", 1), ("(exit 4)\necho $?", "4\n", 0)],
        ),
    ]
}

fn syntax() -> Vec<Check> {
    let refused = ["if true", "echo 'a", "echo )", "for", "echo a\necho (", "echo $("];
    let mut check = in_session("syntax/refused", "what bash cannot read is refused", SPEC);
    for text in refused {
        check = check.send(
            run(text),
            raised("BashIncorrectSyntaxError")
                .starts("/swerexception/message", "Error (exit code ")
                .want(Want::Text("/swerexception/extra_info/bash_stdout", Text::Is(String::new())))
                .want(Want::Text("/swerexception/extra_info/bash_stderr", Text::Has("bash: ".to_owned()))),
        );
    }
    vec![
        check,
        in_session("syntax/nothing-runs", "of what bash cannot read nothing runs", SPEC)
            .send(run("touch '{dir}/ran'\necho ("), raised("BashIncorrectSyntaxError"))
            .send(run("test -e '{dir}/ran'"), gives("", 1))
            .send(run("echo still here"), gives("still here\n", 0)),
    ]
}

fn limits() -> Vec<Check> {
    let message = "timeout after 0.5 seconds while running command 'echo begun; sleep 100'";
    vec![
        in_session("limits/raised", "a command whose time is over raises", SPEC)
            .send(run_with("echo begun; sleep 100", &json!({"timeout": 0.5})), says("CommandTimeoutError", message)),
        in_session("limits/interrupt", "after an interrupt the session works again", SPEC)
            .send(run_with("echo begun; sleep 100", &json!({"timeout": 0.5})), raised("CommandTimeoutError"))
            .send(interrupt(), ended(0))
            .send(run("echo next"), gives("next\n", 0)),
        in_session("limits/none", "a command without a limit has none", SPEC)
            .send(run_with("sleep 1; echo slept", &json!({"timeout": null})), gives("slept\n", 0)),
    ]
}
