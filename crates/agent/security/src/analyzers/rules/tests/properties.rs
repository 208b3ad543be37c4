use std::time::{Duration, Instant};

use gloveport_protocol::RunIpythonAction;
use proptest::prelude::*;

use super::*;

/// Pieces of shell text that mean something.
const PIECES: &[&str] = &[
    "rm -rf ",
    "/",
    "~",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "\n",
    ";",
    "|",
    "&&",
    "||",
    "&",
    "{ ",
    "}",
    "(",
    "((",
    "))",
    "<<EOF\n",
    "\nEOF\n",
    "<<<",
    "<(",
    ">(",
    ">",
    ">>",
    "2>&1",
    "$X",
    "${X:-",
    "${",
    "X=",
    "X=(",
    "[[ ",
    " ]]",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "case x in ",
    "esac",
    ";;",
    "f() ",
    "function g ",
    "#",
    "sudo ",
    "eval ",
    "bash -c ",
    "xargs ",
    "find / -exec ",
    "curl ",
    "$'",
    "é",
    "\u{1F600}",
    "\0",
    "\t",
    "-",
    "*",
    "!(",
    "$((",
];

proptest! {
    #[test]
    fn no_text_is_too_strange_for_the_rules(text in any::<String>()) {
        rules().rate(&Action::Run(RunAction::new(text.as_str())), None);
        rules().rate(&Action::RunIpython(RunIpythonAction::new(text.as_str())), None);
        rules().rate(&Action::Read(ReadAction::new(text)), None);
    }

    #[test]
    fn no_mix_of_shell_pieces_is_too_strange_for_the_rules(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)
    ) {
        let text = pieces.concat();
        rules().rate(&Action::Run(RunAction::new(text.as_str())), None);
        rules().rate(&Action::RunIpython(RunIpythonAction::new(format!("!{text}"))), None);
    }

    #[test]
    fn a_quoted_text_is_never_a_command(text in "[a-z/~ .*;|&>-]{0,40}") {
        prop_assert_eq!(names(&format!("echo '{text}'")), Vec::<&str>::new());
    }

    #[test]
    fn a_dangerous_command_is_found_behind_any_harmless_one(
        before in prop::sample::select(&["ls", "cd /tmp", "x=1", "echo 'a;b'", "true || false", "(cd x)", "f() { ls; }"]),
        between in prop::sample::select(&[" ; ", "\n", " && ", " || ", " & "]),
    ) {
        prop_assert_eq!(names(&format!("{before}{between}rm -rf /")), ["delete-root"]);
    }
}

/// Repeats a piece up to about a megabyte.
fn megabyte(piece: &str) -> String {
    piece.repeat(1_000_000 / piece.len())
}

#[test]
fn a_command_of_a_megabyte_is_judged_with_bounded_work() {
    let doubling: String = (0..40).map(|_| "A=$A$A;").collect();
    let texts = [
        megabyte("a"),
        megabyte("rm -rf x; "),
        megabyte("echo hi\n"),
        megabyte("$("),
        megabyte("("),
        megabyte("(("),
        megabyte("`"),
        megabyte("\""),
        megabyte("{ "),
        megabyte("a[\n"),
        megabyte("a[ ]"),
        megabyte("${a["),
        megabyte("<<E "),
        megabyte("cat <<E\n"),
        megabyte("f() "),
        megabyte("if "),
        megabyte("a|"),
        megabyte("$((1)) "),
        megabyte("{a,b}"),
        megabyte("!("),
        megabyte("for x in a b; do "),
        megabyte("for x in a b; do ls; done; "),
        megabyte("bash -c '"),
        megabyte("eval \"$A\";"),
        megabyte("find / -exec ls {} + "),
        // Each of them runs all that follow, for each place where it looks.
        megabyte("find / a b c -exec "),
        "find / a b c d e f -exec ".repeat(40),
        "find / a b c d e f -exec ".repeat(1000),
        megabyte("nice "),
        "nice ".repeat(3000),
        format!("A=x;{doubling}{}", megabyte("echo $A;")),
        format!("A='{}';{}", "ls;".repeat(15_000), megabyte("eval \"$A\";")),
        format!("cat > f <<'E'\n{}\nE\n{}", "ls\n".repeat(15_000), megabyte("bash f;")),
        format!("bash <<'E'\n{}\nE\n", megabyte("ls\n")),
        format!("xargs {}", megabyte("a ")),
    ];
    for text in texts {
        let start = Instant::now();
        rules().rate(&Action::Run(RunAction::new(text.as_str())), None);
        rules().rate(&Action::RunIpython(RunIpythonAction::new(format!("!{text}"))), None);
        let beginning: String = text.chars().take(20).collect();
        // Seconds in an unoptimised build on a busy machine; quadratic work would take hours.
        assert!(start.elapsed() < Duration::from_mins(1), "{beginning:?} took {:?}", start.elapsed());
    }
}

#[test]
fn a_long_file_that_is_only_written_stays_low() {
    let text = format!("cat > notes.txt <<'E'\n{}\nE\n", megabyte("rm -rf /\n"));
    assert_eq!(names(&text), Vec::<&str>::new());
}

#[test]
fn a_python_cell_of_a_megabyte_is_judged_with_bounded_work() {
    for code in [
        megabyte("os.system('ls')\n"),
        megabyte("os.system("),
        megabyte("subprocess.run(["),
        megabyte("'''"),
        megabyte("f'{"),
        megabyte("!ls\n"),
    ] {
        let start = Instant::now();
        rules().rate(&Action::RunIpython(RunIpythonAction::new(code.as_str())), None);
        assert!(start.elapsed() < Duration::from_mins(1), "{:?} took {:?}", &code[..12], start.elapsed());
    }
}

#[test]
fn the_deepest_text_fits_into_a_small_stack() {
    let nested = |open: &str, close: &str| format!("{}ls{}", open.repeat(500), close.repeat(500));
    let texts = [
        nested("$(", ")"),
        nested("( ", ")"),
        nested("{ ", ";}"),
        nested("\"$(", ")\""),
        nested("if ", ";then ls;fi"),
        nested("${a:-", "}"),
        nested("f() { ", ";}"),
        nested("<(", ")"),
    ];
    let judge = move || texts.iter().map(|text| (text.clone(), names(text))).collect::<Vec<_>>();
    let judged = std::thread::Builder::new().stack_size(1024 * 1024).spawn(judge).unwrap().join().unwrap();
    for (text, names) in judged {
        assert_eq!(names, ["too-complex"], "{}", &text[..20]);
    }
}
