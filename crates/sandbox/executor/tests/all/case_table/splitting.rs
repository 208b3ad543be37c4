//! Rows 10 and 11, and the examples of `bash-session` §4: what is one command and what is several.

use crate::case_table::support::{Lab, Varied as _, input, nothing_to_fetch, run, several, timed_out};

#[tokio::test]
async fn several_commands_are_refused_and_none_is_executed() {
    let lab = Lab::new().await;
    for (row, text, pieces) in [
        ("10", "echo a\necho b", ["echo a", "echo b"].as_slice()),
        ("11", "ls\n\n# c\npwd", &["ls\n\n# c", "pwd"]),
        ("§4", "ls;\npwd", &["ls;", "pwd"]),
        ("§4", "ls &\npwd", &["ls &", "pwd"]),
        ("§4", "# c\nls", &["# c", "ls"]),
        ("§4", "echo \"Hello\" # x\n# y\nls -l", &["echo \"Hello\" # x\n# y", "ls -l"]),
        ("§4", "cat <<EOF\na\nEOF\necho Done", &["cat <<EOF\na\nEOF", "echo Done"]),
        ("§4", "cat <<-EOF\n\ta\n\tEOF\nls", &["cat <<-EOF\n\ta\n\tEOF", "ls"]),
        ("§4", "for i in 1 2; do\necho $i\ndone\nls", &["for i in 1 2; do\necho $i\ndone", "ls"]),
        ("§4", "f() {\necho in f\n}\nf", &["f() {\necho in f\n}", "f"]),
        ("§4", "a=1\nb=2", &["a=1", "b=2"]),
        ("§4", "if [ a ]; then ls; fi\nls", &["if [ a ]; then ls; fi", "ls"]),
        ("§4", "cd /a && \\\nls\npwd", &["cd /a && \\\nls", "pwd"]),
        ("§4, rule 6", "  echo a  \necho b  ", &["echo a", "echo b"]),
    ] {
        lab.check(row, text, several(pieces)).await;
    }
    lab.check("the state is unchanged", "", nothing_to_fetch()).await;
    lab.check("nothing was set", "echo \"[$a$b]\"", lab.done("echo \"[$a$b]\"", "[]", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn one_command_of_many_lines_is_executed() {
    let lab = Lab::new().await;
    lab.prepare("mkdir d; touch d/one; cd d").await;
    let directory = lab.work.join("d");
    let here = directory.display().to_string();
    for (text, content, exit_code) in [
        ("ls; pwd", format!("one\n{here}"), 0),
        ("ls &&\npwd", format!("one\n{here}"), 0),
        ("ls |\ncat", "one".into(), 0),
        ("ls\\\n -a", ".  ..  one".into(), 0),
        ("ls\n# c", "one".into(), 0),
        ("cat <<EOF\na\nEOF", "a".into(), 0),
        ("echo $(ls\npwd)", format!("one {here}"), 0),
        ("if [ a ]; then ls; fi", "one".into(), 0),
    ] {
        let seen = lab.output(text).await;
        assert_eq!(seen, lab.done(text, &content, exit_code).in_directory(&directory), "{text}");
    }
    lab.close().await;
}

/// The reference takes these for one command because its parser fails on them, and then types them line by line. Here
/// all lines run, the outputs are concatenated, and the exit code is the last one's.
#[tokio::test]
async fn several_commands_that_the_reference_cannot_parse_are_all_run_at_once() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("§4", "cat <<'EOF'\n$a\nEOF\necho b", "$a\nb", 0),
        ("§4", "echo $((1+2))\necho b", "3\nb", 0),
        ("§4", "echo $((1+2))\necho b\nfalse", "3\nb", 1),
        ("§4", "case x in\nx) echo y;;\nesac\necho b", "y\nb", 0),
        ("§4", "x=(1 2 3)\necho ${x[1]}", "2", 0),
        ("§4", "[[ a == a ]]\necho $?", "0", 0),
        ("§4", "echo ${x[2]}", "3", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn a_comment_alone_is_a_command_without_output() {
    let lab = Lab::new().await;
    // The reference answers with an error of its parser (REF-BUG).
    lab.check("§4", "# c", lab.done("# c", "", 0)).await;
    lab.check("5.1", "(exit 7)", lab.done("(exit 7)", "", 7)).await;
    lab.check("5.1, exit code of the command before", "# only a comment", lab.done("# only a comment", "", 7)).await;
    lab.close().await;
}

#[tokio::test]
async fn an_unfinished_command_waits_for_its_rest() {
    let lab = Lab::new().await;
    for (text, rest, content) in [
        ("echo \"a", "b\"", "a\nb"),
        ("echo 'a", "b'", "a\nb"),
        ("echo `echo a", "`", "a"),
        ("cat <<EOF\nUnclosed heredoc", "EOF", "Unclosed heredoc"),
    ] {
        lab.check("§4", run(text).timeout(0.3), timed_out(text, "", "0.3")).await;
        lab.check("§4", input(rest), lab.done(rest, content, 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn several_commands_are_refused_as_input_and_while_a_command_runs() {
    let lab = Lab::with_no_change(1).await;
    let expected = || several(&["echo a", "echo b"]);
    lab.check("3.1, step 3", run("cat").timeout(0.2), timed_out("cat", "", "0.2")).await;
    lab.check("3.1, step 3", input("echo a\necho b"), expected()).await;
    lab.check("3.1, step 3", "echo a\necho b", expected()).await;
    lab.check("the state is unchanged", input("C-d"), lab.done_by_key("C-d", "", 0)).await;
    lab.close().await;
}
