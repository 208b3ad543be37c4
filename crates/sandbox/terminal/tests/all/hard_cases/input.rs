//! What is typed: many lines, unfinished commands, very long ones, and text that nobody reads.

use std::{fs, time::Duration};

use gloveport_terminal::{RunEnd, RunRequest};

use crate::hard_cases::support::{Lab, done, each, goes_on, input, run, runs, soon};

#[tokio::test]
async fn commands_of_many_lines_and_here_documents_complete_once() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("cat <<A; cat <<'B'\n$((1 + 1))\nA\n$((1 + 1))\nB", "2\n$((1 + 1))", 0),
        ("cat <<A <<B\na\nA\nb\nB", "b", 0),
        ("if true; then\n  for i in 1 2; do\n    echo $i\n  done\nfi", "1\n2", 0),
        ("f() {\n  echo \"in f: $1\"\n  return 3\n}", "", 0),
        ("f 'two\nlines'", "in f: two\nlines", 3),
        ("x=$(\n  echo a\n  echo b\n) && echo \"$x\"", "a\nb", 0),
        ("echo a &&\n\n\necho b", "a\nb", 0),
        ("case a in\na)\n  echo yes\n  ;;\nesac", "yes", 0),
        ("(\necho sub\nexit 4\n)", "sub", 4),
        ("while read -r line; do\n  echo \"<$line>\"\ndone <<'E'\none\ntwo\nE", "<one>\n<two>", 0),
        ("python3 - <<'E'\nimport sys\nprint('x', file=sys.stderr)\nsys.exit(5)\nE", "x", 5),
        ("echo next", "next", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn an_unfinished_command_asks_for_its_rest_and_completes_with_it() {
    let rows = [
        ("if true; then", ["echo a", "fi"].as_slice(), "a"),
        ("echo \"a", &["b\""], "a\nb"),
        ("echo 'a", &["", "b'"], "a\nb"),
        ("cat <<E", &["one", "two", "E"], "one\ntwo"),
        ("for i in 1 2", &["do", "echo $i", "done"], "1\n2"),
        ("echo a &&", &["echo b"], "a\nb"),
        ("echo a \\", &["b"], "a b"),
        ("f() {", &["echo f", "}"], ""),
    ];
    each(rows, async |(begin, rest, output)| {
        let lab = Lab::new().await;
        lab.check(soon(run(begin)), runs("")).await;
        let (last, lines) = rest.split_last().unwrap();
        for line in lines {
            lab.check(soon(input(line)), goes_on("")).await;
        }
        lab.check(input(last), done(output, 0).after_reports()).await;
        lab.check("echo next", done("next", 0)).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_command_before_an_unfinished_one_is_not_the_end() {
    let lab = Lab::new().await;
    lab.check(soon(run("echo a\nfor i in 1 2")), runs("a")).await;
    lab.check(soon(input("do echo $i")), goes_on("")).await;
    lab.check(input("done"), done("1\n2", 0).after_reports()).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_stray_bracket_is_a_syntax_error_and_nothing_more() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("echo )", "bash: syntax error near unexpected token `)'", 2),
        (";;", "bash: syntax error near unexpected token `;;'", 2),
        ("fi", "bash: syntax error near unexpected token `fi'", 2),
        ("echo next", "next", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn a_command_of_a_megabyte_arrives_whole() {
    let lab = Lab::new().await;
    let long = "x".repeat(1_000_000);
    lab.check(run(&format!("a='{long}'; echo ${{#a}}")), done("1000000", 0)).await;
    lab.check(run(&format!("wc -c <<'E'\n{long}\nE")), done("1000001", 0)).await;
    let lines: Vec<String> = (0..100_000).map(|number| format!("b={number}")).collect();
    lab.check(RunRequest::script(format!("{}\necho $b", lines.join("\n"))), done("99999", 0)).await;
    lab.check("echo ${#a} $b", done("1000000 99999", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn lines_around_the_bounds_of_the_terminals_own_line_buffer_arrive_whole() {
    let lab = Lab::new().await;
    for length in [3_900, 3_999, 4_000, 4_001, 4_095, 4_096, 4_097, 9_000] {
        let command = format!("echo {}", "x".repeat(length));
        lab.check(run(&format!("{command} | wc -c")), done(&(length + 1).to_string(), 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn control_characters_in_a_command_reach_the_shell_as_they_are() {
    let lab = Lab::new().await;
    lab.check_table(&[
        (
            "printf '%s' 'a\u{3}b\u{4}c\u{1a}d\u{15}e\u{7f}f\rg\tj' | od -An -c | tr -d ' \\n'",
            r"a003b004c032d025e177f\rg\tj",
            0,
        ),
        ("echo $'\\e[31m'x", "x", 0),
        ("echo é漢字😀 | wc -c", "13", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn an_input_line_of_100_kb_is_delivered_whole() {
    let lab = Lab::new().await;
    let line = "0123456789".repeat(10_240);
    lab.check(soon(run("cat > f")), runs("")).await;
    lab.check(soon(input(&line)), goes_on("")).await;
    lab.check(input("C-d"), done("", 0).after_reports()).await;
    assert!(fs::read_to_string(lab.work.join("f")).unwrap() == format!("{line}\n"), "the line is not the same");
    // A program that reads in pieces which end where the parts of the line do.
    lab.check(soon(run("dd bs=1000 status=none | wc -c")), runs("")).await;
    lab.check(soon(input(&line)), goes_on("")).await;
    lab.check(input("C-d"), done("102401", 0).after_reports()).await;
    lab.check(soon(run("read -r line")), runs("")).await;
    lab.check(input(&line), done("", 0).after_reports()).await;
    lab.check("echo ${#line}", done("102400", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn text_typed_ahead_runs_as_a_command_and_does_not_shift_later_results() {
    let lab = Lab::new().await;
    lab.check(soon(run("sleep 0.6")), runs("")).await;
    lab.check(input("echo typed; (exit 3)"), done("typed", 3).after_reports()).await;
    lab.check("echo next", done("next", 0)).await;
    // A program that reads a part of it.
    let seen = lab.shell.output().end();
    let (report, typed) = tokio::join!(lab.run("echo ready; read -r line; sleep 0.5; echo \"got $line\""), async {
        lab.shell.output().grown_beyond(seen).await;
        lab.shell.type_in("one\necho two\necho three").await
    });
    typed.unwrap();
    assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "ready\ngot one\ntwo\nthree"));
    // A command typed ahead that takes its time.
    let seen = lab.shell.output().end();
    let (report, typed) = tokio::join!(lab.run("echo ready; read -r line"), async {
        lab.shell.output().grown_beyond(seen).await;
        lab.shell.type_in("one\nsleep 1; echo late; (exit 7)").await
    });
    typed.unwrap();
    assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 7 }, "ready\nlate"));
    for number in 0..5 {
        lab.check(run(&format!("echo {number}")), done(&number.to_string(), 0)).await;
    }
    lab.close().await;
}

/// What a program leaves of a long line is a command, as on every terminal; it is not one that exists.
#[tokio::test]
async fn the_rest_of_a_long_line_that_a_program_leaves_does_not_shift_later_results() {
    let lab = Lab::new().await;
    for size in [5, 2_000, 50_000] {
        lab.check(soon(run(&format!("head -c {size} | wc -c"))), runs("")).await;
        let report = lab.run(input(&"x".repeat(100_000))).await;
        let RunEnd::Completed { status } = report.end else { panic!("{report:?}") };
        assert!(status == 126 || status == 127, "{status}: {}", report.output.get(..100).unwrap_or_default());
        assert!(report.output.starts_with(&format!("{size}\n")), "{}", report.output.get(..100).unwrap_or_default());
        for number in 0..5 {
            lab.check(run(&format!("echo {number}")), done(&number.to_string(), 0)).await;
        }
    }
    lab.close().await;
}

#[tokio::test]
async fn an_empty_request_and_input_have_no_effect_on_an_idle_shell() {
    let lab = Lab::new().await;
    for (request, end) in [
        (run("  \n "), RunEnd::NothingToFetch),
        (input(""), RunEnd::NothingToFetch),
        (input("x"), RunEnd::NothingToType),
        (input("C-c"), RunEnd::NothingToType),
        (run("echo a\necho b"), RunEnd::Several(vec!["echo a".into(), "echo b".into()])),
    ] {
        let report = lab.run(request).await;
        assert_eq!((report.end, report.output.as_str(), report.range), (end, "", 0..0));
    }
    lab.shell.type_in("echo nothing runs").await.unwrap();
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_script_of_many_commands_runs_to_its_end_and_reports_the_last_status() {
    let lab = Lab::new().await;
    let script = "echo a\nfalse\nx=5\ncd /\n\n# a comment\necho $x\n(exit 6)";
    lab.check(RunRequest::script(script), done("a\n5", 6).in_directory("/")).await;
    lab.check("echo $? $x", done("6 5", 0).in_directory("/")).await;
    let unfinished = RunRequest::script("echo a\necho 'b").at_most(Duration::from_secs(5));
    let report = lab.run(unfinished).await;
    assert!(matches!(report.end, RunEnd::Completed { .. } | RunEnd::TimedOut), "{report:?}");
    lab.close().await;
}

#[tokio::test]
async fn a_nul_byte_is_refused_by_name() {
    let lab = Lab::new().await;
    let error = lab.shell.run(run("echo a\0b")).await.unwrap_err();
    let expected = "the command contains a NUL byte at byte 6, which a shell cannot take; nothing was executed";
    assert_eq!(error.to_string(), expected);
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}
