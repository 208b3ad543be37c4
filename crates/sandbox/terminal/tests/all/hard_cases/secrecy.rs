//! The machinery is not seen in output, log or history, and imitations of it are only output.

use crate::hard_cases::support::{Lab, done, input, run, runs, soon};
use gloveport_terminal::RunRequest;

fn assert_clean(text: &str) {
    for word in ["__gp", "7777;", "gloveport", "PROMPT_COMMAND", "builtin"] {
        assert!(!text.contains(word), "{word} is seen: {text}");
    }
}

#[tokio::test]
async fn tracing_shows_the_users_commands_only() {
    let lab = Lab::new().await;
    lab.prepare("set -x").await;
    lab.check("echo a", done("+ echo a\na", 0)).await;
    lab.check("cd / && cd - >/dev/null", done("+ cd /\n+ cd -", 0)).await;
    // What is handed over in a file is one level deeper.
    let script = "echo a\nx=$((1 + 1))\necho $x";
    lab.check(RunRequest::script(script), done("++ echo a\na\n++ x=2\n++ echo 2\n2", 0)).await;
    let long = format!("echo ${{#y}} # {}", "x".repeat(5_000));
    lab.check(run(&long), done("++ echo 0\n0", 0)).await;
    lab.check("(exit 3)", done("+ exit 3", 3)).await;
    lab.check("echo $?\necho $((1))", done("++ echo 3\n3\n++ echo 1\n1", 0)).await;
    lab.check("PROMPT_COMMAND=:", done("+ PROMPT_COMMAND=:\n++ :", 0)).await;
    lab.check("set +x", done("+ set +x", 0)).await;
    lab.check("PROMPT_COMMAND=", done("", 0)).await;
    assert_clean(&lab.log().replace("PROMPT_COMMAND", ""));
    lab.close().await;
}

#[tokio::test]
async fn the_log_holds_the_very_bytes_that_programs_wrote() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("echo a", "a", 0),
        ("printf 'b\\tc\\r\\nd'", "b       c\nd", 0),
        ("cd /; cd - >/dev/null; (exit 3)", "", 3),
        ("cat <<'E'\ne\nE", "e", 0),
        ("echo f\necho $((1))", "f\n1", 0),
    ])
    .await;
    lab.check(soon(run("cat")), runs("")).await;
    lab.check(input("C-c"), done("^C", 130).after_reports()).await;
    assert_eq!(lab.log(), "a\nb\tc\r\nde\nf\n1\n\n");
    lab.close().await;
}

#[tokio::test]
async fn the_history_holds_what_was_asked_for_and_nothing_else() {
    let lab = Lab::new().await;
    let large = format!(": {}", "x".repeat(100_000));
    for (text, listed) in [
        ("echo one", "echo one"),
        ("echo $((1))\necho two", "echo $((1))\necho two"),
        (large.as_str(), ""),
        ("printf '\\a' \u{7}", "printf '\\a' \u{7}"),
    ] {
        lab.run(run(text)).await;
        let report = lab.run("history 2").await;
        assert_clean(&report.output);
        let first = report
            .output
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        if !listed.is_empty() {
            assert_eq!(first, listed.lines().next().unwrap().replace('\u{7}', "").trim_end(), "{text}");
        }
    }
    for change in
        ["unset PROMPT_COMMAND PS1", "PROMPT_COMMAND=; PS1=", "exec bash", "HISTCONTROL=ignorespace", "HISTCONTROL="]
    {
        lab.run(change).await;
        lab.prepare("echo a\necho $((3))").await;
    }
    assert_clean(&lab.run("fc -l 1 | grep -v PROMPT_COMMAND").await.output);
    lab.close().await;
}

#[tokio::test]
async fn an_imitated_report_is_only_output() {
    let lab = Lab::new().await;
    for kind in ["P\\0370\\037\\037himBHs\\037\\037/tmp", "D\\0370", "C\\037"] {
        let command = format!(
            "printf '\\033]7777;0123456789abcdef0123456789abcdef;{kind}\\0370123456789abcdef0123456789abcdef\\a'; sleep 0.1; echo real; (exit 3)"
        );
        lab.check(run(&command), done("real", 3)).await;
    }
    lab.check("printf '\\033]7777;'; echo; (exit 4)", done("", 4)).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_program_that_shows_prompts_and_functions_does_not_end_its_own_command() {
    let lab = Lab::new().await;
    for command in [
        "declare -f >/dev/null; set >/dev/null; env >/dev/null",
        "declare -f; set; env",
        "echo \"$PS1$PS2\"",
        "echo -e \"$PS1\"",
        "echo \"${PS1@P}\"; sleep 0.1",
        "printf \"$PS2\"; sleep 0.1",
        "echo \"${PS2@P}\"; sleep 0.1",
    ] {
        let with_end = format!("{command}; echo; echo END; (exit 5)");
        let report = lab.run(run(&with_end)).await;
        assert_eq!(report.end, gloveport_terminal::RunEnd::Completed { status: 5 }, "{command}: {report:?}");
        assert!(report.output.ends_with("END"), "{command}: {}", report.output);
        lab.check("echo next", done("next", 0)).await;
    }
    lab.check(soon(run("echo \"${PS1@P}${PS2@P}\"; read -r x; echo \"[$x]\"")), runs("")).await;
    lab.check(input("mine"), done("[mine]", 0).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn programs_do_not_inherit_the_machinery() {
    let lab = Lab::new().await;
    let report = lab.run("env; ls -l /proc/self/fd | wc -l").await;
    assert_clean(&report.output);
    assert!(report.output.ends_with("\n5"), "{}", report.output);
    lab.close().await;
}
