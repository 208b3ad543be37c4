//! POSIX shells, which serve where there is no bash: the cases of the other modules as far as they apply.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{Identity, process};
use gloveport_terminal::{Mode, RunEnd, RunRequest, ShellOptions};

use crate::hard_cases::support::{Lab, Lost, done, each, goes_on, input, is_alive, run, runs, soon, until};

/// The shells that are compared with bash, as far as they are installed.
fn shells() -> Vec<&'static str> {
    let installed = |path: &&str| {
        let found = Path::new(path).is_file();
        if !found {
            println!("skipped: {path} is not installed");
        }
        found
    };
    ["/bin/dash", "/bin/busybox"].into_iter().filter(installed).collect()
}

fn with(shell: &'static str) -> impl FnOnce(&mut ShellOptions) {
    move |options| options.shell = Some(PathBuf::from(shell))
}

async fn lab_of(shell: &'static str) -> Lab {
    Lab::start(None, with(shell)).await
}

#[tokio::test]
async fn a_posix_shell_keeps_its_state_and_reports_status_and_directory() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check_table(&[
            ("echo hi", "hi", 0),
            ("echo $0", "sh", 0),
            ("false", "", 1),
            ("(exit 7)", "", 7),
            ("echo $?", "7", 0),
            ("x=1; export y=2", "", 0),
            ("echo $x; env | grep ^y=", "1\ny=2", 0),
            ("f() { echo f $1; return 3; }", "", 0),
            ("f a", "f a", 3),
            ("alias e=echo", "", 0),
            ("e b", "b", 0),
            ("set -- one two", "", 0),
            ("echo $# $1", "2 one", 0),
        ])
        .await;
        lab.check("cd /; (exit 4)", done("", 4).in_directory("/")).await;
        lab.check("pwd", done("/", 0).in_directory("/")).await;
        lab.close().await;
    }
}

#[tokio::test]
async fn commands_of_many_lines_complete_once_in_a_posix_shell() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check_table(&[
            ("cat <<A; cat <<'B'\n$((1 + 1))\nA\n$((1 + 1))\nB", "2\n$((1 + 1))", 0),
            ("cat <<A <<B\na\nA\nb\nB", "b", 0),
            ("if true; then\n  for i in 1 2; do\n    echo $i\n  done\nfi", "1\n2", 0),
            ("f() {\n  echo \"in f: $1\"\n  return 3\n}", "", 0),
            ("f 'two\nlines'", "in f: two\nlines", 3),
            ("x=$(\n  echo a\n  echo b\n) && echo \"$x\"", "a\nb", 0),
            ("echo a &&\n\n\necho b", "a\nb", 0),
            ("(\necho sub\nexit 4\n)", "sub", 4),
            ("while read -r line; do\n  echo \"<$line>\"\ndone <<'E'\none\ntwo\nE", "<one>\n<two>", 0),
            ("printf '%s|' 'back\\slash' '%b' \"it's\" 'a\nb' '\\0101'", "back\\slash|%b|it's|a\nb|\\0101|", 0),
            ("(exit 9)", "", 9),
            // Evaluated as a whole.
            ("echo $? $((1 +\n1))", "9 2", 0),
            ("# a comment", "", 0),
            ("echo next", "next", 0),
        ])
        .await;
        let script = "echo a\nfalse\nx=5\ncd /\n\n# a comment\necho $x\n(exit 6)";
        lab.check(RunRequest::script(script), done("a\n5", 6).in_directory("/")).await;
        lab.check("echo $? $x", done("6 5", 0).in_directory("/")).await;
        lab.check("cd \"$OLDPWD\"", done("", 0)).await;
        let report = lab.run("echo a\necho b").await;
        assert_eq!(report.end, RunEnd::Several(vec!["echo a".into(), "echo b".into()]));
        lab.close().await;
    }
}

#[tokio::test]
async fn an_unfinished_command_asks_a_posix_shell_for_its_rest() {
    let rows = [
        ("if true; then", ["echo a", "fi"].as_slice(), "a"),
        ("echo \"a", &["b\""], "a\nb"),
        ("echo 'a", &["", "b'"], "a\nb"),
        ("cat <<E", &["one", "two", "E"], "one\ntwo"),
        ("for i in 1 2", &["do", "echo $i", "done"], "1\n2"),
        ("echo a &&", &["echo b"], "a\nb"),
        ("echo a \\", &["b"], "a b"),
        ("f() {", &["echo f", "}"], ""),
        ("echo \"a\nb", &["c\""], "a\nb\nc"),
    ];
    for shell in shells() {
        each(rows, async move |(begin, rest, output)| {
            let lab = lab_of(shell).await;
            lab.check(soon(run(begin)), runs("")).await;
            let (last, lines) = rest.split_last().unwrap();
            for line in lines {
                lab.check(soon(input(line)), goes_on("")).await;
            }
            lab.check(input(last), done(output, 0).after_reports()).await;
            lab.check(soon(run(begin)), runs("")).await;
            let report = lab.run(input(if begin.len() % 2 == 0 { "C-c" } else { "C-d" })).await;
            assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 130 }, "^C"), "{begin}");
            lab.check("echo next", done("next", 0)).await;
            lab.close().await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_posix_shell_names_its_errors_as_it_does_for_a_person() {
    for (shell, table) in [
        (
            "/bin/dash",
            [
                ("echo )", "sh: 1: Syntax error: \")\" unexpected", 2),
                ("fi", "sh: 1: Syntax error: \"fi\" unexpected", 2),
                ("nonexistent", "sh: 1: nonexistent: not found", 127),
                ("set -u; echo $nowhere", "sh: 2: nowhere: parameter not set", 2),
                ("a=(1 2)", "sh: 3: Syntax error: \"(\" unexpected", 2),
                ("echo next", "next", 0),
            ],
        ),
        (
            "/bin/busybox",
            [
                ("echo )", "sh: line 1: syntax error: unexpected \")\"", 2),
                ("fi", "sh: line 1: syntax error: unexpected \"fi\"", 2),
                ("nonexistent", "sh: line 1: nonexistent: not found", 127),
                ("set -u; echo $nowhere", "sh: line 2: nowhere: parameter not set", 2),
                ("a=(1 2)", "sh: line 3: syntax error: unexpected \"(\"", 2),
                ("echo next", "next", 0),
            ],
        ),
    ] {
        if shells().contains(&shell) {
            let lab = lab_of(shell).await;
            lab.check_table(&table).await;
            lab.close().await;
        }
    }
}

#[tokio::test]
async fn a_command_of_a_megabyte_arrives_whole_in_a_posix_shell() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        let long = "x".repeat(1_000_000);
        lab.check(run(&format!("a='{long}'; echo ${{#a}}")), done("1000000", 0)).await;
        lab.check(run(&format!("wc -c <<'E'\n{long}\nE")), done("1000001", 0)).await;
        let lines: Vec<String> = (0..20_000).map(|number| format!("b={number}")).collect();
        lab.check(RunRequest::script(format!("{}\necho $b", lines.join("\n"))), done("19999", 0)).await;
        lab.check("echo ${#a} $b", done("1000000 19999", 0)).await;
        for length in [1_022, 1_023, 1_024, 4_095, 4_096, 8_192, 65_536] {
            let command = format!("printf %s {} | wc -c", "x".repeat(length));
            lab.check(run(&command), done(&length.to_string(), 0)).await;
        }
        let control = "printf '%s' 'a\u{3}b\u{4}c\u{1a}d\u{15}e\u{7f}f\rg\tj' | od -An -c | tr -d ' \\n'";
        lab.check(control, done(r"a003b004c032d025e177f\rg\tj", 0)).await;
        lab.close().await;
    }
}

#[tokio::test]
async fn keys_reach_a_posix_shell_and_its_programs() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check("(exit 3)", done("", 3)).await;
        lab.check("C-c", done("^C", 130)).await;
        for key in ["C-z", "C-\\", "C-l", "C-u"] {
            lab.check(key, done("", 130)).await;
        }
        lab.check("echo $?", done("130", 0)).await;
        lab.check("(exit 5)", done("", 5)).await;
        lab.check("C-d", done("", 5).with_loss(Lost::Exited(5))).await;
        lab.check("echo next", done("next", 0)).await;
        lab.close().await;
        let rows = [
            ("sleep 100", "C-c", "^C", 130),
            ("sleep 100; echo no", "C-c", "^C", 130),
            ("cat", "C-d", "", 0),
            ("cat", "C-c", "^C", 130),
            ("read x", "C-c", "^C", 130),
            ("read x", "C-d", "", 1),
            ("while :; do :; done", "C-c", "^C", 130),
            ("sh -c 'trap \"echo caught\" INT; sleep 100; exit 9'", "C-c", "^Ccaught", 9),
        ];
        each(rows, async move |(command, key, output, status)| {
            let lab = lab_of(shell).await;
            lab.check(soon(run(command)), runs("")).await;
            lab.check(input(key), done(output, status).after_reports()).await;
            lab.check("echo next", done("next", 0)).await;
            lab.close().await;
        })
        .await;
    }
}

#[tokio::test]
async fn programs_under_a_posix_shell_read_what_is_typed_and_the_shell_does_not() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check(soon(run("cat")), runs("")).await;
        lab.check(soon(input("one")), goes_on("one")).await;
        lab.check(input("C-d"), done("", 0).after_reports()).await;
        lab.check(soon(run("read -r line; echo \"<$line>\"")), runs("")).await;
        lab.check(input("A B"), done("<A B>", 0).after_reports()).await;
        let line = "0123456789".repeat(10_240);
        lab.check(soon(run("cat > f")), runs("")).await;
        lab.check(soon(input(&line)), goes_on("")).await;
        lab.check(input("C-d"), done("", 0).after_reports()).await;
        assert!(fs::read_to_string(lab.work.join("f")).unwrap() == format!("{line}\n"), "the line is not the same");
        // What nobody reads is thrown away with the next command, also an end of input.
        lab.check(soon(run("sleep 0.5; (exit 3)")), runs("")).await;
        lab.shell.type_in("echo typed").await.unwrap();
        lab.check(input("C-d"), done("", 3).after_reports()).await;
        for number in 0..5 {
            lab.check(run(&format!("echo {number}")), done(&number.to_string(), 0)).await;
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn jobs_of_a_posix_shell_stop_go_on_and_end_without_harm() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check(soon(run("cat")), runs("")).await;
        let report = lab.run(input("C-z")).await;
        assert_eq!(report.end, RunEnd::Completed { status: 148 });
        assert!(report.output.starts_with("^Z\n[1]") && report.output.contains("Stopped"), "{}", report.output);
        lab.check("echo between", done("between", 0)).await;
        lab.check(soon(run("fg")), runs("cat")).await;
        lab.check(soon(input("hello")), goes_on("hello")).await;
        lab.check(input("C-d"), done("", 0).after_reports()).await;
        // The end of a job, while the shell is at its prompt and while it asks for more.
        let job = lab.run("sleep 0.1 &").await.facts.background_pid.unwrap();
        until("the end of the job", || !is_alive(job)).await;
        let report = lab.run("echo next").await;
        assert!(report.output.starts_with("next") && report.output.contains("Done"), "{}", report.output);
        let job = lab.run("{ sleep 0.3; echo late; } &").await.facts.background_pid.unwrap();
        lab.check(soon(run("echo 'a")), runs("")).await;
        until("the end of the job", || !is_alive(job)).await;
        let report = lab.run(input("b'")).await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 });
        assert!(report.output.starts_with("late\na\nb"), "{}", report.output);
        lab.prepare("sleep 1000 &").await;
        let pid = lab.shell_pid().await;
        let processes = [vec![pid], process::descendants(pid)].concat();
        assert!(processes.len() >= 2, "{processes:?}");
        lab.close().await;
        assert!(processes.iter().all(|pid| !is_alive(*pid)));
    }
}

#[tokio::test]
async fn a_posix_shell_that_ends_reports_its_status_and_is_replaced_where_it_was() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.prepare("mkdir d && cd d && x=1").await;
        let d = lab.work.join("d");
        for (text, output, lost) in [
            ("exit", "", Lost::Exited(0)),
            ("exit 3", "", Lost::Exited(3)),
            ("echo exit; exit 0", "exit", Lost::Exited(0)),
            ("echo before; exit 4", "before", Lost::Exited(4)),
            ("exec true", "", Lost::Exited(0)),
            ("kill -9 $$", "", Lost::Killed(9)),
            ("echo last words; kill -9 $$; echo never", "last words", Lost::Killed(9)),
            ("set -e; (exit 7)", "", Lost::Exited(7)),
            ("echo a\nexit 9\necho b", "a", Lost::Exited(9)),
        ] {
            let status = match lost {
                Lost::Exited(code) => code,
                Lost::Killed(signal) => 128 + signal,
                Lost::ExitedBefore(_) | Lost::KilledBefore(_) => unreachable!("the commands end it"),
            };
            let request = RunRequest { mode: Mode::Script, ..run(text) };
            lab.check(request, done(output, status).in_directory(&d).with_loss(lost)).await;
            lab.check("echo \"[$x]\"", done("[]", 0).in_directory(&d)).await;
        }
        lab.check(soon(run("exec cat")), runs("").in_directory(&d)).await;
        lab.check(soon(input("hello")), goes_on("hello").in_directory(&d)).await;
        lab.check(input("C-d"), done("", 0).after_reports().in_directory(&d).with_loss(Lost::Exited(0))).await;
        lab.check("echo next", done("next", 0).in_directory(&d)).await;
        lab.close().await;
    }
}

#[tokio::test]
async fn a_bash_that_takes_the_place_of_a_posix_shell_is_taught_to_report() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.prepare("export kept=1; lost=1").await;
        lab.check("exec bash", done("", 0)).await;
        lab.check("echo \"[$kept$lost]\" ${BASH_VERSION:+bash}", done("[1] bash", 0)).await;
        lab.check("(exit 3)", done("", 3)).await;
        lab.check("cat <<'E'\na\nE", done("a", 0)).await;
        lab.close().await;
        // By then the shell's own lesson is in the pipe, which the new shell does not read.
        let lab = lab_of(shell).await;
        lab.check("sleep 0.5; exec bash", done("", 0)).await;
        lab.check("echo ${BASH_VERSION:+bash}", done("bash", 0)).await;
        lab.close().await;
    }
}

/// Each of these in a shell of its own: after it commands complete with their own status and nothing else is shown.
#[tokio::test]
async fn no_change_of_prompts_options_or_names_loses_a_result_of_a_posix_shell() {
    for shell in shells() {
        for change in [
            "PS1=; PS2=; PS4=",
            "unset PS1 PS2",
            "PS2='more> '",
            "export PS1",
            "trap ':' EXIT",
            "unset -f __gp_arm __gp_s",
            "unset PATH",
            "IFS=5",
            "unset IFS",
            "set -u",
            "set -f",
            "set +m",
            "set -C",
            "set -a",
            "alias printf='echo no' command='echo no' eval='echo no' set='echo no' unset='echo no' case='echo no'",
            "printf() { echo no; }",
            "LC_ALL=C; LANG=C; POSIXLY_CORRECT=1",
            "TERM=dumb",
            "umask 777",
            "ulimit -f 0",
            "exec 3>&1",
            "stty sane 2>/dev/null",
            "stty raw 2>/dev/null",
        ] {
            let lab = lab_of(shell).await;
            let report = lab.run(RunRequest::script(format!("{change}\n(exit 9)"))).await;
            assert_eq!(
                (report.end, report.loss),
                (RunEnd::Completed { status: 9 }, None),
                "{shell}: {change}: {}",
                report.output
            );
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
                    "{shell}: {text} after {change}"
                );
            }
            lab.close().await;
        }
    }
}

/// A shell of which nothing has been heard for a while is taught again behind its command.
#[tokio::test]
async fn a_long_command_of_a_posix_shell_is_complete_once_and_keeps_its_status() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        for round in 0..3 {
            lab.check("sleep 0.3; (exit 9)", done("", 9)).await;
            lab.check("echo $?", done("9", 0)).await;
            lab.check(run(&format!("sleep 0.2{round}; echo {round}")), done(&round.to_string(), 0)).await;
        }
        lab.check("trap '' INT; sleep 0.6; trap - INT; (exit 8)", done("", 8)).await;
        lab.check(soon(run("trap '' INT; sleep 0.6; trap - INT; (exit 8)")), runs("")).await;
        lab.check(input("C-c"), done("^C", 8).after_reports()).await;
        lab.check("set -e; sleep 0.3; false || sleep 0.3", done("", 0)).await;
        lab.check("set -x; sleep 0.3; set +x", done("+ sleep 0.3\n+ set +x", 0)).await;
        for number in 0..5 {
            lab.check(run(&format!("echo {number}")), done(&number.to_string(), 0)).await;
        }
        let log = lab.log();
        assert!(!log.contains("__gp") && !log.contains("7777;"), "{shell}: {log}");
        lab.close().await;
    }
}

#[tokio::test]
async fn a_huge_environment_and_a_huge_path_do_no_harm_to_a_posix_shell() {
    for shell in shells() {
        let variables = (0..200).map(|number| (format!("BIG{number}").into(), "x".repeat(5_000).into()));
        let lab = Lab::start(None, |options| {
            options.shell = Some(PathBuf::from(shell));
            options.environment.extend(variables);
        })
        .await;
        lab.check_table(&[
            ("echo ${#BIG199}", "5000", 0),
            ("x=/x:/x:/x:/x; i=0; while [ $i -lt 14 ]; do x=$x:$x; i=$((i + 1)); done; echo ${#x}", "196607", 0),
            ("PATH=$PATH:$x", "", 0),
            ("(exit 3)", "", 3),
            ("PATH=/usr/bin:/bin; echo ok", "ok", 0),
        ])
        .await;
        lab.prepare("mkdir gone && cd gone && rmdir ../gone").await;
        let gone = lab.work.join("gone");
        lab.check("echo here; (exit 3)", done("here", 3).in_directory(&gone)).await;
        lab.check("cd ..", done("", 0)).await;
        lab.close().await;
    }
}

/// `dash` shows a prompt of the user's before it is replaced.
#[tokio::test]
async fn timed_a_prompt_of_the_users_is_replaced_within_half_a_second() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        let began = std::time::Instant::now();
        let report = lab.run("PS1='user$ '; (exit 9)").await;
        assert_eq!(report.end, RunEnd::Completed { status: 9 });
        assert!(report.output.is_empty() || report.output == "user$", "{}", report.output);
        assert!(began.elapsed() < Duration::from_secs(2).mul_f64(gloveport_testing::pace()), "{:?}", began.elapsed());
        lab.check("echo $?", done("9", 0)).await;
        lab.close().await;
    }
}

#[tokio::test]
async fn a_posix_shell_that_can_not_be_taught_completes_its_commands() {
    // So few descriptors are too few for the redirections of the shell itself.
    let changes = [("readonly PS1='> '", true), ("ulimit -n 8", false)];
    let rows =
        shells().into_iter().flat_map(|shell| changes.map(|(change, all_is_known)| (shell, change, all_is_known)));
    each(rows, async |(shell, change, all_is_known)| {
        let lab = lab_of(shell).await;
        let report = lab.run(change).await;
        assert!(matches!(report.end, RunEnd::Completed { .. }), "{shell}: {change}: {report:?}");
        for (text, output, expected) in [("echo ok; (exit 7)", "ok", 7), ("echo next", "next", 0)] {
            let report = lab.run(text).await;
            let RunEnd::Completed { status } = report.end else { panic!("{shell}: {change}: {report:?}") };
            let as_it_was = report.output.contains(output) && status == expected;
            assert!(as_it_was || !all_is_known, "{shell}: {report:?}");
        }
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_descriptors_of_a_posix_shell_may_be_redirected_and_closed() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.check_table(&[
            ("exec >/dev/null", "", 0),
            ("echo n", "", 0),
            ("(exit 3)", "", 3),
            ("exec >/dev/tty", "", 0),
            ("echo m", "m", 0),
            ("exec 2>/dev/null", "", 0),
            ("nonexistent", "", 127),
            ("exec 2>&-", "", 0),
            ("(exit 5)", "", 5),
            ("exec >&-", "", 0),
            ("(exit 4)", "", 4),
            ("exec >/dev/tty 2>&1", "", 0),
            ("echo q; echo q >&2", "q\nq", 0),
            ("exec </dev/null; (exit 7)", "", 7),
            ("cat", "", 0),
            ("exec </dev/tty", "", 0),
        ])
        .await;
        lab.close().await;
    }
}

#[tokio::test]
async fn the_machinery_of_a_posix_shell_is_not_seen() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        let report = lab.run("env; ls -l /proc/self/fd").await;
        for word in ["__gp", "7777;", "gloveport", "ENV=", "PS1", "PS2", "startup"] {
            assert!(!report.output.contains(word), "{shell}: {word}: {}", report.output);
        }
        lab.prepare("set -x").await;
        lab.check("echo a", done("+ echo a\na", 0)).await;
        lab.check("(exit 3)", done("+ exit 3", 3)).await;
        lab.check("echo $?\necho $((1))", done("+ echo 3\n3\n+ echo 1\n1", 0)).await;
        lab.check("set +x", done("+ set +x", 0)).await;
        let log = lab.log();
        assert!(!log.contains("__gp") && !log.contains("7777;"), "{shell}: {log}");
        lab.close().await;
    }
}

#[tokio::test]
async fn a_nested_shell_under_a_posix_shell_is_talked_to_by_input() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        lab.prepare("set -a; export PS1 PS2; unset PS1").await;
        let name = if shell.ends_with("busybox") { "busybox sh -i" } else { "dash" };
        for nested in [name, "dash", "bash --norc --noediting"] {
            let report = lab.run(soon(run(nested))).await;
            assert_eq!(report.end, RunEnd::TimedOut, "{nested}: {}", report.output);
            let report = lab.run(soon(input("echo $((6 * 7))"))).await;
            assert_eq!(report.end, RunEnd::TimedOut, "{nested}: {}", report.output);
            assert!(report.output.contains("42"), "{nested}: {}", report.output);
            let report = lab.run(input("exit 4")).await;
            assert_eq!(report.end, RunEnd::Completed { status: 4 }, "{nested}: {}", report.output);
            lab.check("echo outer", done("outer", 0)).await;
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn an_imitated_report_under_a_posix_shell_is_only_output() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        for kind in ["P\\0370\\037\\037mi\\037\\037/tmp", "D\\0370", "C\\037"] {
            let nonce = "0123456789abcdef0123456789abcdef";
            let command = format!("printf '\\033]7777;{nonce};{kind}\\037{nonce}\\a'; sleep 0.1; echo real; (exit 3)");
            lab.check(run(&command), done("real", 3)).await;
        }
        let report = lab.run("set; echo \"$PS1$PS2\"; echo END; (exit 5)").await;
        assert_eq!(report.end, RunEnd::Completed { status: 5 });
        assert!(report.output.ends_with("END"), "{}", report.output);
        lab.check("echo next", done("next", 0)).await;
        lab.close().await;
    }
}

#[tokio::test]
async fn directories_with_any_name_are_reported_by_a_posix_shell_and_survive_a_new_one() {
    for shell in shells() {
        let lab = lab_of(shell).await;
        for name in ["a b", "it's", "a\"b$c`d\\e", "line\nfeed", "é漢字😀", "bell\u{7}x", "\u{1b}]0;title", "-n", "*"]
        {
            let directory = lab.work.join(name);
            fs::create_dir(&directory).unwrap();
            let path = directory.display().to_string().replace('\'', r"'\''");
            lab.check(run(&format!("cd -- '{path}' && (exit 3)")), done("", 3).in_directory(&directory)).await;
            let ended = done("", 0).in_directory(&directory).with_loss(Lost::Exited(0));
            lab.check("exit 0", ended).await;
            lab.check("[ . -ef \"$PWD\" ] && echo same", done("same", 0).in_directory(&directory)).await;
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn start_up_files_of_a_posix_shell_are_read_and_do_no_harm() {
    for shell in shells() {
        for (file, output) in [
            ("export A=1; f() { echo f; }; PS1='> '; echo seen", "1 f"),
            // What only bash can read is left out.
            ("export A=1\na=(1 2)\nf() { echo f; }", ""),
            ("exit 3", ""),
            ("exec true", ""),
            ("sleep 1000", ""),
            ("read answer", ""),
            ("export A=1; f() { echo f; }; set -o nosuchoption", "1 f"),
        ] {
            for place in [".bashrc", "profile"] {
                let home = tempfile::tempdir().unwrap();
                fs::write(home.path().join(place), file).unwrap();
                let lab = Lab::start(None, |options| {
                    options.shell = Some(PathBuf::from(shell));
                    options.startup_limit = Duration::from_millis(600);
                    options.environment.retain(|(key, _)| key != "HOME");
                    options.environment.push(("HOME".into(), home.path().into()));
                    options.environment.push(("ENV".into(), home.path().join("profile").into()));
                })
                .await;
                let report = lab.run("echo $A $(f 2>/dev/null)").await;
                let whole = report.output == output;
                // A file that `ENV` names is read up to the line that the shell can not read.
                let part = place == "profile" && file.contains("a=(") && report.output == "1";
                assert!(whole || part, "{shell}: {place}: {file}: {}", report.output);
                let env = format!("{}/profile", home.path().display());
                lab.check("echo $ENV; (exit 3)", done(&env, 3)).await;
                lab.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_posix_shell_of_another_user_works_like_any_other() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    for shell in shells() {
        let lab = Lab::start(None, |options| {
            options.shell = Some(PathBuf::from(shell));
            options.identity = Some(Identity { uid: 65534, gid: 65534, groups: vec![65534] });
            options.directory = "/tmp".into();
        })
        .await;
        for (text, output, status) in [
            ("id -u; id -g", "65534\n65534", 0),
            ("echo $((1\n))\necho b", "1\nb", 0),
            ("echo c >/dev/stdout; echo d >/dev/tty", "c\nd", 0),
            ("cat /etc/shadow 2>/dev/null", "", 1),
            (&format!("echo {} | wc -c", "x".repeat(9_000)), "9001", 0),
            ("echo $OLDPWD", "", 0),
        ] {
            let request = RunRequest { mode: Mode::Script, ..run(text) };
            lab.check(request, done(output, status).in_directory("/tmp")).await;
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn limits_of_time_and_bad_start_directories_do_the_same_to_a_posix_shell() {
    for shell in shells() {
        let lab = Lab::start(None, |options| {
            options.shell = Some(PathBuf::from(shell));
            options.directory = "/does/not/exist".into();
        })
        .await;
        let own = std::env::current_dir().unwrap();
        lab.check("pwd", done(&own.display().to_string(), 0).in_directory(own.clone())).await;
        let no_change = Duration::from_millis(400);
        let command = run("for i in 1 2 3 4; do sleep 0.2; echo $i; done; sleep 100").no_change_after(no_change);
        let report = lab.run(command).await;
        assert_eq!((report.end, report.output.as_str()), (RunEnd::NoChange, "1\n2\n3\n4"));
        let report = lab.run("echo refused").await;
        assert_eq!(report.end, RunEnd::Refused);
        lab.check(input("C-c"), done("^C", 130).after_reports().in_directory(own.clone())).await;
        lab.check("echo next", done("next", 0).in_directory(own)).await;
        lab.close().await;
    }
}
