//! A shell whose own output goes to files, or that shows what it reads: no byte of the machinery is in any of them.

use std::{fs, time::Duration};

use gloveport_terminal::{RunEnd, RunRequest};

use crate::hard_cases::support::{Lab, done, each, goes_on, input, run, runs, soon, until};

/// What bash writes by itself when an interactive one is told to.
const NOT_FOUND: &str = "bash: nosuch: command not found\n";

#[tokio::test]
async fn files_to_which_a_shell_is_redirected_hold_what_its_commands_wrote_and_nothing_else() {
    let rows = [
        ("exec > f", "ab\nc\nlast\n", "", "bash: nosuch: command not found"),
        ("exec 2> f", NOT_FOUND, "ab\nc", "last"),
        ("exec > f 2>&1", "ab\nc\nbash: nosuch: command not found\nlast\n", "", ""),
        ("exec 3>&1 > f", "ab\nc\nlast\n", "", "bash: nosuch: command not found"),
        ("exec 3>&2 2> f", NOT_FOUND, "ab\nc", "last"),
        ("exec &>> f", "ab\nc\nbash: nosuch: command not found\nlast\n", "", ""),
        ("exec 2> >(cat > f)", NOT_FOUND, "ab\nc", "last"),
    ];
    each(rows, async |(redirection, file, shown, shown_last)| {
        let lab = Lab::new().await;
        lab.check(redirection, done("", 0)).await;
        // Of many lines, unfinished, handed over, and with statuses of their own.
        lab.check(
            "printf a\nif true; then\necho b\nfi".replace("a\n", "a;\\\n").as_str(),
            done(&shown[..shown.len().min(2)], 0),
        )
        .await;
        lab.check("(exit 7)", done("", 7)).await;
        lab.check("echo $? >/dev/null; (exit 8)", done("", 8)).await;
        lab.check(soon(run("echo c; read -r x; (exit \"$x\")")), runs(shown.get(3..).unwrap_or_default())).await;
        lab.check(input("9"), done("", 9).after_reports()).await;
        lab.check(soon(run("true 'x")), runs("")).await;
        lab.check(input("y'; (exit 5)"), done("", 5).after_reports()).await;
        lab.check(RunRequest::script("x=1\n# a comment\n(exit 4)"), done("", 4)).await;
        lab.run("nosuch").await;
        let report = lab.run("echo last").await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 });
        assert!(shown_last.is_empty() == report.output.is_empty() || shown_last.contains("nosuch"), "{report:?}");
        // Behind a pipe it may take a moment.
        let held = || fs::read_to_string(lab.work.join("f")).unwrap();
        until(redirection, || held().len() >= file.len()).await;
        assert_eq!(held(), file, "{redirection}");
        assert!(!lab.log().contains("7777") && !lab.log().contains("__gp"), "{}", lab.log());
        lab.check("exec >/dev/tty 2>&1; echo back", done("back", 0)).await;
        lab.check("(exit 3)", done("", 3)).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn closed_outputs_keep_no_command_from_its_end() {
    let lab = Lab::new().await;
    for closing in
        ["exec >&-", "exec 2>&-", "exec >&- 2>&-", "set -e; exec 2>&-; set +e", "shopt -u promptvars; exec 2>f"]
    {
        lab.check(closing, done("", 0)).await;
        lab.check("(exit 7)", done("", 7)).await;
        lab.check("if true; then\n(exit 6)\nfi", done("", 6)).await;
        lab.check("exec >/dev/tty 2>&1; shopt -s promptvars; echo back", done("back", 0)).await;
    }
    assert_eq!(fs::read_to_string(lab.work.join("f")).unwrap(), "");
    lab.close().await;
}

#[tokio::test]
async fn a_shell_that_shows_what_it_reads_shows_no_line_of_ours() {
    let lab = Lab::new().await;
    lab.check("set -v", done("", 0)).await;
    for (text, output, status) in [
        ("echo a", "echo a\na", 0),
        ("(exit 3)", "(exit 3)", 3),
        ("echo $?", "echo $?\n3", 0),
        ("if true; then\necho b\nfi", "if true; then\necho b\nfi\nb", 0),
        ("echo $((1))\necho c", "echo $((1))\n1\necho c\nc", 0),
        ("PROMPT_COMMAND='echo user'", "PROMPT_COMMAND='echo user'\necho user\nuser", 0),
        ("PROMPT_COMMAND=", "PROMPT_COMMAND=", 0),
        ("PS1=x", "PS1=x", 0),
        ("echo d", "echo d\nd", 0),
        ("cd /", "cd /", 0),
    ] {
        let report = lab.run(text).await;
        assert_eq!(
            (report.output.trim_end_matches('x').trim_end(), report.end),
            (output, RunEnd::Completed { status }),
            "{text}"
        );
    }
    let report = lab.run("cd - >/dev/null; set -x").await;
    assert_eq!(
        (report.output.as_str(), report.facts.directory == lab.work.display().to_string()),
        ("cd - >/dev/null; set -x", true)
    );
    lab.check("echo e", done("echo e\n+ echo e\ne", 0)).await;
    lab.check("exec 2>f", done("exec 2>f\n+ exec", 0)).await;
    lab.check("echo g", done("g", 0)).await;
    lab.check("(exit 5)", done("", 5)).await;
    lab.check(soon(run("echo 'h")), runs("")).await;
    lab.check(input("i'"), done("h\ni", 0).after_reports()).await;
    lab.check("set +vx", done("", 0)).await;
    lab.check("echo j\necho $((2))", done("j\n2", 0)).await;
    let file = fs::read_to_string(lab.work.join("f")).unwrap();
    let expected = "echo g\n+ echo g\n(exit 5)\n+ exit 5\necho 'h\ni'\n+ echo 'h\ni'\nset +vx\n+ set +vx\n";
    assert_eq!(file, expected);
    let log = lab.log();
    assert!(!log.contains("__gp") && !log.contains("gloveport") && !log.contains("7777"), "{log}");
    lab.close().await;
}

#[tokio::test]
async fn redirections_of_a_shell_that_traces_are_the_users_alone() {
    let lab = Lab::new().await;
    lab.check("exec 2> f; set -x", done("", 0)).await;
    lab.check("echo a", done("a", 0)).await;
    lab.check("if true; then\n(exit 4)\nfi", done("", 4)).await;
    lab.check(soon(run("cat")).no_change_after(Duration::from_secs(9)), runs("")).await;
    lab.check(soon(input("b")), goes_on("b")).await;
    lab.check(input("C-d"), done("", 0).after_reports()).await;
    lab.check("set +x; exec 2>/dev/tty", done("", 0)).await;
    let file = fs::read_to_string(lab.work.join("f")).unwrap();
    assert_eq!(file, "+ echo a\n+ true\n+ exit 4\n+ cat\n+ set +x\n+ exec\n".replace("+ exec\n", ""));
    lab.close().await;
}
