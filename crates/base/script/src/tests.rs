//! What texts are to the shell, checked against the specification, the reference's answers and bash itself.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{Script, classify};

mod golden;

fn several(pieces: &[&str]) -> Script {
    Script::Several(pieces.iter().map(|piece| (*piece).to_owned()).collect())
}

#[test]
fn the_examples_of_the_specification_are_met() {
    let table: &[(&str, Script)] = &[
        ("ls; pwd", Script::One),
        ("ls;\npwd", several(&["ls;", "pwd"])),
        ("ls &\npwd", several(&["ls &", "pwd"])),
        ("ls &&\npwd", Script::One),
        ("ls |\npwd", Script::One),
        ("ls\\\npwd", Script::One),
        ("# c", Script::One),
        ("# c\nls", several(&["# c", "ls"])),
        ("ls\n# c", Script::Block),
        ("echo \"Hello\" # x\n# y\nls -l", several(&["echo \"Hello\" # x\n# y", "ls -l"])),
        ("cat <<EOF\na\nEOF", Script::One),
        ("cat <<EOF\na\nEOF\necho Done", several(&["cat <<EOF\na\nEOF", "echo Done"])),
        ("cat <<'EOF'\n$a\nEOF\nls", Script::Block),
        ("cat <<-EOF\n\ta\n\tEOF\nls", several(&["cat <<-EOF\n\ta\n\tEOF", "ls"])),
        ("for i in 1 2; do\necho $i\ndone\nls", several(&["for i in 1 2; do\necho $i\ndone", "ls"])),
        ("f() {\necho in f\n}\nf", several(&["f() {\necho in f\n}", "f"])),
        ("a=1\nb=2", several(&["a=1", "b=2"])),
        ("echo $((1+2))\nls", Script::Block),
        ("if [ a ]; then ls; fi\nls", several(&["if [ a ]; then ls; fi", "ls"])),
        ("echo $(ls\npwd)", Script::One),
        ("cd /a && \\\nls\npwd", several(&["cd /a && \\\nls", "pwd"])),
        ("echo \"a", Script::Incomplete),
        ("echo 'a", Script::Incomplete),
        ("echo `a", Script::Incomplete),
        ("cat <<EOF\nUnclosed heredoc", Script::Incomplete),
    ];
    for (text, expected) in table {
        assert_eq!(classify(text), *expected, "{text:?}");
    }
}

#[test]
fn the_case_table_of_the_specification_is_met() {
    let table: &[(&str, Script)] = &[
        ("echo a\necho b", several(&["echo a", "echo b"])),
        ("ls\n\n# c\npwd", several(&["ls\n\n# c", "pwd"])),
        ("echo -e \"hello\nworld\"", Script::One),
        ("echo \\\n -e \"foo\"", Script::One),
        ("echo -e \"a\\n\\n\\nz\"", Script::One),
        ("echo 'hello   world    with\nspecial  chars'", Script::One),
        ("cat << EOF\nline 1\nline 2\nEOF", Script::One),
        ("cat <<'EOF'\n$HOME\n  x\nEOF", Script::One),
        ("python3 - <<'EOF'\nprint('a')\nEOF", Script::One),
        ("if true; then\necho \"inside if\"\nfi", Script::One),
        ("for i in 1; do\n for j in 2; do\n  touch $i$j\n done\ndone && echo \"created files\"", Script::One),
        ("find d -type f -exec grep -l \"implemented_function\" {} \\;", Script::One),
        ("cat << EOF", Script::Incomplete),
        ("echo \"unclosed", Script::Incomplete),
        ("echo `unclosed", Script::Incomplete),
        ("echo \"multi\n\n\nline\"", Script::One),
        ("echo a |\ncat", Script::One),
    ];
    for (text, expected) in table {
        assert_eq!(classify(text), *expected, "{text:?}");
    }
}

#[test]
fn blank_texts_and_comments_are_one_command() {
    for text in ["", " ", "\n", " \n\t\n", "# c", "# c\n", "\n# c"] {
        assert_eq!(classify(text), Script::One, "{text:?}");
    }
}

#[test]
fn a_text_that_ends_in_a_backslash_is_unfinished() {
    for text in ["ls \\", "ls \\\n", "ls\\", "\\", "ls && \\\n", "echo \"a\\"] {
        assert_eq!(classify(text), Script::Incomplete, "{text:?}");
    }
    assert_eq!(classify("# c \\"), Script::One);
}

#[test]
fn commands_the_reference_can_not_read_make_a_block() {
    let opaque = [
        "echo $((1))",
        "[[ a == b ]]",
        "[[ a =~ ^(b|c)$ ]]",
        "case x in a) b;; esac",
        "select x in a; do b; done",
        "coproc a",
        "x=(1 2)",
        "x+=(1\n2)",
        "declare -a x=(1)",
        "time ls",
        "cat <<\"E\"\na\nE",
        "cat <<\\E\na\nE",
        "for ((i=0; i<3; i++)); do a; done",
        "echo $[1]",
        "echo $(a && b)",
        "echo $(a;)",
        "echo `a \\`b\\``",
        "while a\ndo b; done",
        "((a = (1 + 2) * 3))",
        "echo a'$((1))'",
        "echo $()",
        "a | time b",
    ];
    for text in opaque {
        assert_eq!(classify(text), Script::One, "{text:?}");
        assert_eq!(classify(&format!("{text}\nls")), Script::Block, "{text:?} and another");
        assert_eq!(classify(&format!("ls\n{text}")), Script::Block, "{text:?} behind another");
    }
}

#[test]
fn lines_around_a_single_command_make_a_block() {
    for text in ["ls\n# c", "# c\ncase x in esac", "case x in esac\n\n# c", "# c\n# d"] {
        assert!(!matches!(classify(text), Script::One | Script::Incomplete), "{text:?}");
    }
    for text in ["ls\n", "\nls\n\n", "  ls  ", "ls # c"] {
        assert_eq!(classify(text), Script::One, "{text:?}");
    }
}

#[test]
fn the_answers_of_the_reference_are_met() {
    let rows = golden::rows(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/split.json")));
    assert!(rows.len() >= 300);
    for (text, answer, pieces) in &rows {
        let script = classify(text);
        let excepted = golden::EXCEPTIONS.iter().any(|(fragment, _)| text.contains(fragment));
        if excepted {
            assert!(matches!(script, Script::One | Script::Block), "{text:?}: {script:?}");
        } else if pieces.len() > 1 {
            assert_eq!(script, Script::Several(pieces.clone()), "{text:?}");
        } else {
            assert!(!matches!(script, Script::Several(_)), "{text:?} is {answer} to the reference: {script:?}");
        }
    }
}

/// What `bash -n` has to say about a text; nothing where there is no bash.
fn complaint(text: &str) -> Option<String> {
    let mut child = Command::new("bash")
        .args(["--norc", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() || !message.is_empty() { message } else { output.status.to_string() })
}

#[test]
fn bash_agrees_about_what_is_complete() {
    // Bash takes a backslash at the very end of its input for an ordinary character, and says nothing about a
    // conditional expression without content when it only checks.
    let silent = ["ls \\", "ls \\\n", "[[ ]]"];
    let rows = golden::rows(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/split.json")));
    for (text, ..) in &rows {
        let Some(complaint) = complaint(text) else { return };
        let complete = classify(text) != Script::Incomplete;
        assert!(complete == complaint.is_empty() || silent.contains(&text.as_str()), "{text:?}: {complaint}");
    }
}

#[test]
fn deep_nesting_does_not_exhaust_a_small_stack() {
    let judge = || {
        let opening = [
            "(",
            "( ",
            "{ ",
            "$(",
            "echo $(",
            "${x:-",
            "\"$(",
            "\"${x:-",
            "if ",
            "if a; then ",
            "while ",
            "for i do ",
            "case x in a) ",
            "[[ ( ",
            "[[ ! ",
            "((",
            "$((",
            "$[",
            "x=(",
            "f() ",
            "f() {",
            "<(",
            "a && ",
            "a | ",
            "! ",
            "time ",
            "coproc ",
            "function f ",
            "`",
            "'",
            "\"",
            "\\",
            "[",
            "a[",
            "$'",
            "$((`",
            "\"`",
            "<<E $(",
            "cat <<E\n",
        ];
        let closing = [")", "}", "\"", ""];
        for open in opening {
            for close in closing {
                let deep = format!("{}ls{}", open.repeat(100_000), close.repeat(100_000));
                drop(classify(&deep));
            }
            let lines = format!("ls\n{}", open.repeat(100_000));
            assert!(!matches!(classify(&lines), Script::One), "{open}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(judge);
    thread.expect("a thread can be started").join().expect("nothing panics");
}

#[test]
fn text_too_deep_to_judge_is_typed_if_it_is_a_line_and_run_as_a_block_if_not() {
    let deep = format!("{}ls{}", "( ".repeat(500), " )".repeat(500));
    assert_eq!(classify(&deep), Script::Incomplete);
    assert_eq!(classify(&format!("{deep}\nls")), Script::Block);
    let shallow = format!("{}ls{}", "( ".repeat(60), " )".repeat(60));
    assert_eq!(classify(&shallow), Script::One);
}

#[test]
fn time_does_not_double_with_each_level_of_nesting() {
    for (open, close) in
        [("$((", ") )"), ("$((", "))"), ("(( $(", ") )"), ("$( ((", ") ) )"), ("echo $((a[", "] )"), ("$[$((", ")")]
    {
        drop(classify(&format!("{}ls{}", open.repeat(30), close.repeat(30))));
    }
}

/// Shell-like texts: mostly nonsense, made of all that has a meaning.
fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "ls",
        "a=",
        "x",
        " ",
        " ",
        " ",
        "\n",
        "\n",
        ";",
        "&",
        "|",
        "&&",
        "||",
        "(",
        ")",
        "((",
        "))",
        "{",
        "}",
        " { ",
        "; }",
        "[[ ",
        " ]]",
        "$(",
        "${",
        "$((",
        "`",
        "'",
        "\"",
        "\\",
        "\\\n",
        "#",
        " # ",
        "<<E",
        "<<-'E'",
        "\nE\n",
        "<",
        ">",
        "<(",
        "<<<",
        "2>&1",
        "&>",
        "if ",
        "then ",
        "fi",
        "else ",
        "for ",
        "in ",
        "do ",
        "done",
        "while ",
        "case ",
        "esac",
        ";;",
        "function ",
        "f()",
        "time ",
        "coproc ",
        "select ",
        "!",
        "é",
        "$",
        "=~",
        "==",
        "[",
        "]=",
        "😀",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn pieces_are_complete_parts_of_the_text_in_order(text in soup()) {
        if let Script::Several(pieces) = classify(&text) {
            prop_assert!(pieces.len() > 1);
            let mut rest = text.as_str();
            for piece in &pieces {
                let at = rest.find(piece.as_str());
                prop_assert!(at.is_some_and(|at| rest[..at].trim().is_empty()), "{piece:?} in {rest:?}");
                rest = &rest[at.unwrap_or_default() + piece.len()..];
                // Like the reference a piece loses its blanks at the end, also one that a backslash stands before.
                let cut = piece.ends_with('\\');
                prop_assert!(cut || !matches!(classify(piece), Script::Incomplete), "{piece:?}");
            }
            prop_assert!(rest.trim().is_empty());
        }
    }

    #[test]
    fn any_text_is_judged(text in any::<String>()) {
        drop(classify(&text));
    }
}
