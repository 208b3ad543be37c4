//! Rows 51 and 53, and the rules of 3.3: output is what a terminal shows, within its bounds.

use crate::case_table::support::{Lab, Varied as _};

#[tokio::test]
async fn output_is_what_a_terminal_shows() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("3.3, backspace moves", r#"printf "abc\b\bX\n""#, "aXc", 0),
        ("3.3, trailing blanks of every line", r#"printf "a  \n  b  \nc\n""#, "a\n  b\nc", 0),
        ("§7, invalid UTF-8", r#"printf "a\xffb\xc3\n""#, "a\u{fffd}b\u{fffd}", 0),
        ("§7, control bytes are dropped", r#"printf "a\0\1\2b\a\n""#, "ab", 0),
        ("§2, the size of the terminal", "tput cols; tput lines; stty size", "1000\n1000\n1000 1000", 0),
        ("53, what comes after an erased screen is kept", "echo before; clear; echo after", "after", 0),
    ])
    .await;
    lab.close().await;
}

fn count_to(count: usize) -> String {
    format!("for i in $(seq 1 {count}); do echo \"Line $i\"; done")
}

/// The reference shows 10,013 lines here: its multiplexer drops a tenth of the history at a time when it is full. How
/// many of the lines around that are kept is not compared, but what is shown must be the last of them.
#[tokio::test]
async fn row_51_output_beyond_the_history_loses_its_beginning_and_says_so() {
    let lab = Lab::new().await;
    let command = count_to(50_000);
    let seen = lab.output(command.as_str()).await;
    let words: Vec<&str> = seen.metadata.prefix.split(' ').collect();
    let kept: usize = words.get(8).and_then(|word| word.parse().ok()).expect(&seen.metadata.prefix);
    assert!((10_001..=11_000).contains(&kept), "{kept} lines are kept");
    let prefix =
        format!("[Previous command outputs are truncated. Showing the last {kept} lines of the output below.]\n");
    let shown: Vec<String> = (50_001 - kept..=50_000).map(|number| format!("Line {number}")).collect();
    let expected = lab.done(&command, &shown.join("\n"), 0).with_prefix(&prefix);
    assert!(expected.content.contains("\nLine 40000\n") && expected.content.ends_with("\nLine 50000"));
    // The difference would be longer than anybody reads.
    assert!(seen == expected, "{:?}…, not {:?}…", seen.content.get(..40), expected.content.get(..40));
    lab.check("51, nothing is left for the next command", "echo next", lab.done("echo next", "next", 0)).await;
    lab.close().await;
}
