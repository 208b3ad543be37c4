//! The rules of `bash-session` §§4 and 5.1: what reaches the shell, as one command or as several, and that nothing of it
//! is changed.

use crate::case_table::support::{Lab, input, run, several, timed_out};

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

#[tokio::test]
async fn the_text_reaches_the_shell_unchanged() {
    let lab = Lab::new().await;
    lab.check_table(&[
        // The reference doubles these backslashes for the sake of its multiplexer.
        ("5.1", r"echo a \; b", "a ; b", 0),
        ("5.1", r"echo a \& b", "a & b", 0),
        ("5.1", r"echo a \> b", "a > b", 0),
        ("5.1", r"echo a \| cat", "a | cat", 0),
        ("5.1", r"echo 'a \; b' $(echo c \; d)", r"a \; b c ; d", 0),
        ("5.1, tabs are delivered", "echo 'a\tb' | tr '\\t' X", "aXb", 0),
        ("5.1, tabs are delivered", "cat <<-END\n\ta\n\tEND", "a", 0),
        ("5.1, history expansion", "echo one", "one", 0),
        ("5.1, history expansion", "!!", "echo one\none", 0),
        ("3.3, the echo is always removed", "echo test;", "test", 0),
        ("3.3, output is not taken for an echo", "echo \"echo hi\"", "echo hi", 0),
        ("3.3, blanks at the end of inner lines", "echo a \\\n   b   \\\n  c", "a b c", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn commands_are_in_the_history_and_nothing_else_is() {
    let lab = Lab::new().await;
    for text in ["echo one", "echo 'two\nlines'", "cat <<'E'\nthree\nE"] {
        lab.prepare(text).await;
    }
    let listed = "    2  echo one\n    3  echo 'two\nlines'\n    4  cat <<'E'\nthree\nE\n\n    5  history";
    let expected = format!("1  alias git=\"git --no-pager\"\n{listed}");
    lab.check("§7, history", "history", lab.done("history", &expected, 0)).await;
    lab.close().await;
}
