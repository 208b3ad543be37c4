//! Rows 12 to 20, 84 and 86, and the rules of 5.1: commands of many lines and what must not be changed in them.

use crate::case_table::support::Lab;

#[tokio::test]
async fn commands_of_many_lines_run_as_one() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("12", "echo -e \"hello\nworld\"", "hello\nworld", 0),
        ("13", "echo \\\n -e \"foo\"", "foo", 0),
        ("14", r#"echo -e "a\n\n\nz""#, "a\n\n\nz", 0),
        ("15", "echo 'hello   world    with\nspecial  chars'", "hello   world    with\nspecial  chars", 0),
        ("16", "cat << EOF\nline 1\nline 2\nEOF", "line 1\nline 2", 0),
        ("17", "cat <<'EOF'\n$HOME\n  x\nEOF", "$HOME\n  x", 0),
        ("18", "python3 - <<'EOF'\nprint('a')\nEOF", "a", 0),
        ("19", "if true; then\necho \"inside if\"\nfi", "inside if", 0),
        ("84", "echo \"multi\n\n\nline\"", "multi\n\n\nline", 0),
        ("86", "echo a |\ncat", "a", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn row_20_nested_loops_over_many_lines_make_every_file() {
    let lab = Lab::new().await;
    let command = "for i in {1..3}; do\n    mkdir -p folder_$i\n    for j in {1..3}; do\n        touch \
folder_$i/file_$j\n    done\ndone && echo \"created files\"";
    lab.check("20", command, lab.done(command, "created files", 0)).await;
    let mut files = Vec::new();
    for folder in 1..=3 {
        for file in 1..=3 {
            files.push(lab.work.join(format!("folder_{folder}/file_{file}")));
        }
    }
    assert!(files.iter().all(|file| file.is_file()), "{files:?}");
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
async fn a_redirection_behind_a_here_document_operator_is_obeyed() {
    let lab = Lab::new().await;
    let command = "cat <<EOF > f\nx\nEOF";
    lab.check("5.1", command, lab.done(command, "", 0)).await;
    assert_eq!(std::fs::read_to_string(lab.work.join("f")).unwrap(), "x\n");
    let command = "cat <<EOF | tr x y\nx\nEOF";
    lab.check("5.1", command, lab.done(command, "y", 0)).await;
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
