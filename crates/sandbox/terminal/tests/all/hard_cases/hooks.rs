//! A user who overrides, by accident or on purpose, everything that the shell reports with.

use std::fs;

use gloveport_terminal::{RunEnd, RunRequest};

use crate::hard_cases::support::{Lab, done, input, run, runs, soon};

/// Each of these in a shell of its own: after it commands complete with their own status and nothing else is shown.
#[tokio::test]
async fn no_change_of_prompts_options_or_names_loses_a_result() {
    for change in [
        "PS1='user$ '",
        "PS1=; PS2=; PS3=; PS4=",
        "unset PS1 PS2",
        "PS2='more> '",
        "PROMPT_COMMAND=",
        "PROMPT_COMMAND=:",
        "PROMPT_COMMAND='false'",
        "PROMPT_COMMAND='PS1=x'",
        "PROMPT_COMMAND=(true false)",
        "declare -a PROMPT_COMMAND=()",
        "unset PROMPT_COMMAND",
        "unset PROMPT_COMMAND PS1 PS2",
        "unset PROMPT_COMMAND; PS1='$ '",
        "PROMPT_COMMAND=; PS1=x",
        "export PROMPT_COMMAND PS1",
        "trap ':' DEBUG",
        "trap ':' ERR",
        "trap ':' RETURN; trap ':' EXIT",
        "trap 'false' DEBUG",
        "unset -f __gp_p",
        "unset -f __gp_p __gp_arm __gp_s",
        "unset PATH",
        "IFS=5",
        "IFS=",
        "unset IFS",
        "set -u",
        "set -f",
        "set -o pipefail",
        "set -E -T",
        "set +o history",
        "set +m",
        "set -o ignoreeof",
        "set -C",
        "set -k",
        "set -a",
        "set -o posix",
        "shopt -s extdebug",
        "shopt -s expand_aliases nullglob dotglob",
        "shopt -u promptvars",
        "shopt -u cmdhist",
        "shopt -s lithist",
        "alias printf='echo no' local='echo no' builtin='echo no' unset='echo no' set='echo no' eval='echo no'",
        "printf() { echo no; }",
        "echo2() { :; }; declare -r -f echo2",
        "return() { :; }",
        "LC_ALL=C; LANG=C; POSIXLY_CORRECT=1",
        "TERM=dumb",
        "TMOUT=100",
        "HISTCONTROL=ignoreboth; HISTSIZE=0",
        "HISTFILE=/dev/null; HISTIGNORE='*'",
        "umask 777",
        "ulimit -f 0",
    ] {
        let lab = Lab::new().await;
        // The change is made by a command that has a status of its own.
        let report = lab.run(RunRequest::script(format!("{change}\n(exit 9)"))).await;
        assert_eq!((report.end, report.loss), (RunEnd::Completed { status: 9 }, None), "{change}: {}", report.output);
        for (text, output, status) in [
            ("echo $?", "9", 0),
            ("echo ok", "ok", 0),
            ("(exit 7)", "", 7),
            ("echo $?", "7", 0),
            ("echo a && echo $((1 + 1))", "a\n2", 0),
            ("if :; then\necho b\nfi", "b", 0),
            ("false", "", 1),
            ("echo end", "end", 0),
        ] {
            let report = lab.run(text).await;
            assert_eq!(
                (report.output.as_str(), report.end, report.loss),
                (output, RunEnd::Completed { status }, None),
                "{text} after {change}"
            );
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn traps_and_prompt_commands_of_the_user_run_and_are_seen() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("trap 'echo dbg' DEBUG", "", 0),
        ("echo q", "dbg\nq", 0),
        ("echo q >&2; (exit 3)", "dbg\nq", 3),
        ("trap - DEBUG", "dbg", 0),
        ("trap 'echo err $?' ERR", "", 0),
        ("false", "err 1", 1),
        ("trap - ERR", "", 0),
        ("PROMPT_COMMAND='echo user'", "user", 0),
        ("echo z", "z\nuser", 0),
        ("unset PROMPT_COMMAND", "", 0),
        ("echo z", "z", 0),
    ])
    .await;
    lab.close().await;
}

/// Nothing can take a read-only prompt away, so it is seen; the results are right.
#[tokio::test]
async fn a_prompt_that_is_read_only_does_not_lose_a_result() {
    for change in ["readonly PS1='> '", "readonly PS1='> '; unset PROMPT_COMMAND"] {
        let lab = Lab::new().await;
        lab.prepare(change).await;
        for (text, output, status) in [("echo ok", "ok", 0), ("(exit 7)", "", 7), ("echo $?", "7", 0)] {
            let report = lab.run(text).await;
            let shown = report.output.trim_start_matches(['>', ' ', '\n']);
            assert_eq!((shown, report.end), (output, RunEnd::Completed { status }), "{text} after {change}");
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn a_file_that_is_sourced_may_set_all_of_it() {
    let lab = Lab::new().await;
    fs::write(
        lab.work.join("rc"),
        "PS1='rc> '\nPS2='...'\nPROMPT_COMMAND='true'\ntrap ':' DEBUG\nset -u\nalias ls='ls -a'\nrc() { echo rc $1; }\n",
    )
    .unwrap();
    lab.prepare(". ./rc").await;
    lab.check_table(&[("rc 1", "rc 1", 0), ("ls", ".  ..  rc", 0), ("(exit 7)", "", 7), ("echo $?", "7", 0)]).await;
    lab.close().await;
}

#[tokio::test]
async fn a_debug_trap_that_forbids_everything_forbids_the_commands_and_the_session_goes_on() {
    let lab = Lab::new().await;
    lab.prepare("shopt -s extdebug; f() { return ${forbid-0}; }; trap f DEBUG").await;
    lab.prepare("forbid=1").await;
    for _again in 0..3 {
        lab.check("echo no", done("", 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn unset_variables_are_errors_with_set_u_and_the_shell_lives() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("set -u", "", 0),
        ("echo $nowhere", "bash: nowhere: unbound variable", 1),
        ("echo \"${USER-none}\"", "none", 0),
        ("set +u; echo \"[$nowhere]\"", "[]", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn status_pipe_statuses_and_last_argument_are_those_of_the_users_command() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("false | true | (exit 3)", "", 3),
        ("echo ${PIPESTATUS[@]}", "1 0 3", 0),
        ("echo a b", "a b", 0),
        ("echo $_", "b", 0),
        ("(exit 9)", "", 9),
        ("echo $?", "9", 0),
        ("(exit 9)", "", 9),
        // Handed over in a file.
        ("echo $?\nx=$((1 + 1))\necho $x", "9\n2", 0),
        // There the statuses of a pipeline are lost: no shell lets them be set without running one.
        ("false | (exit 3)", "", 3),
        ("echo ${PIPESTATUS[@]} $((1))\necho $((2))", "3 1\n2", 0),
        ("set -- one two", "", 0),
        ("echo $# $1 $-", "2 one himBHs", 0),
        ("declare x=1 y", "", 0),
        ("declare z=4\ndeclare w=$((5))", "", 0),
        ("echo $x$z$w", "145", 0),
        ("echo $SHLVL $BASH_SUBSHELL ${#FUNCNAME[@]}", "1 0 0", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn a_huge_environment_and_a_huge_path_do_no_harm() {
    let variables = (0..200).map(|number| (format!("BIG{number}").into(), "x".repeat(5_000).into()));
    let lab = Lab::start(None, |options| options.environment.extend(variables)).await;
    lab.check_table(&[
        ("env | wc -c | tr -d '0-9'", "", 0),
        ("echo ${#BIG199}", "5000", 0),
        ("PATH=$PATH:$(printf ':/x%.0s' {1..100000})", "", 0),
        ("(exit 3)", "", 3),
        ("PATH=/usr/bin:/bin; echo ok", "ok", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn directories_with_any_name_are_reported_as_they_are_and_survive_a_new_shell() {
    let lab = Lab::new().await;
    for name in
        ["a b", "it's", "a\"b$c`d\\e", "line\nfeed", "é漢字😀", "bell\u{7}x", "\u{1b}]0;title", "a;b&c|d", "-n", "*"]
    {
        let directory = lab.work.join(name);
        fs::create_dir(&directory).unwrap();
        let quoted = name.replace('\'', r"'\''");
        let command = format!("cd \"$OLDROOT\"; cd -- '{quoted}' && (exit 3)");
        lab.prepare(&format!("cd / && OLDROOT='{}'", lab.work.display())).await;
        lab.check(run(&command), done("", 3).in_directory(&directory)).await;
        let ended = done("", 0).in_directory(&directory).with_loss(crate::hard_cases::support::Lost::Exited(0));
        lab.check("exit 0", ended).await;
        lab.check("[ . -ef \"$PWD\" ] && echo same", done("same", 0).in_directory(&directory)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn a_directory_that_is_deleted_under_the_shell_is_left_again() {
    let lab = Lab::new().await;
    lab.prepare("mkdir gone && cd gone && rmdir ../gone").await;
    let gone = lab.work.join("gone");
    lab.check("echo here; (exit 3)", done("here", 3).in_directory(&gone)).await;
    let text = gone.display().to_string();
    lab.check("pwd", done(&text, 0).in_directory(&gone)).await;
    lab.check("cd ..", done("", 0)).await;
    // A new shell cannot start there, so it starts where it can and says where that is.
    lab.prepare("mkdir gone && cd gone && rmdir ../gone").await;
    let report = lab.run("exit 3").await;
    assert_eq!(report.loss.map(|loss| loss.exit.code), Some(Some(3)));
    let seen = lab.run("pwd -P").await;
    assert_eq!(seen.output, seen.facts.directory);
    assert!(std::path::Path::new(&seen.output).is_dir());
    lab.close().await;
}

#[tokio::test]
async fn a_prompt_of_the_users_is_not_shown_while_more_is_asked_for() {
    let lab = Lab::new().await;
    lab.prepare("PS1='one> '; PS2='two> '").await;
    lab.check(soon(run("echo 'a")), runs("")).await;
    lab.check(input("b'"), done("a\nb", 0).after_reports()).await;
    lab.close().await;
}
