//! Rows 33 to 40, 49 to 51, 53 and 83: output is what a terminal shows, within its bounds.

use crate::case_table::support::{Lab, Varied as _, run};

#[tokio::test]
async fn output_is_what_a_terminal_shows() {
    let lab = Lab::new().await;
    let long = "x".repeat(2500);
    lab.check_table(&[
        ("33", r#"printf "\n\n\nlead""#, "lead", 0),
        ("34", r#"printf "a\n\n\n""#, "a", 0),
        ("35", r#"echo "a   ""#, "a", 0),
        ("36", r#"printf "a\tb\n""#, "a       b", 0),
        ("37", r#"echo -e "\e[31mred\e[0m""#, "red", 0),
        ("38", r#"printf "10%%\r50%%\r100%%\n""#, "100%", 0),
        ("39", "printf 'x%.0s' {1..2500}; echo", &long, 0),
        ("40", "echo é漢字😀", "é漢字😀", 0),
        ("3.3, backspace moves", r#"printf "abc\b\bX\n""#, "aXc", 0),
        ("3.3, trailing blanks of every line", r#"printf "a  \n  b  \nc\n""#, "a\n  b\nc", 0),
        ("§7, invalid UTF-8", r#"printf "a\xffb\xc3\n""#, "a\u{fffd}b\u{fffd}", 0),
        ("§7, control bytes are dropped", r#"printf "a\0\1\2b\a\n""#, "ab", 0),
        ("83", "yes | head -3", "y\ny\ny", 0),
        ("§2, the size of the terminal", "tput cols; tput lines; stty size", "1000\n1000\n1000 1000", 0),
    ])
    .await;
    lab.close().await;
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("Line {number}")).collect::<Vec<_>>().join("\n")
}

fn count_to(count: usize) -> String {
    format!("for i in $(seq 1 {count}); do echo \"Line $i\"; done")
}

#[tokio::test]
async fn rows_49_and_50_long_output_is_cut_in_the_middle_unless_it_is_hidden() {
    let lab = Lab::new().await;
    let command = count_to(5000);
    let whole = lines(5000);
    let cut = format!(
        "{}\n[... Observation truncated due to length ...]\n{}",
        &whole[..15_000],
        &whole[whole.len() - 15_000..]
    );
    assert_eq!((whole.len(), cut.len()), (48_892, 30_047));
    // The constructor of observations cuts too: what is compared is the length and the text.
    let seen = lab.output(run(&command).timeout(10.0)).await;
    assert_eq!(seen.content, cut, "row 49");
    assert_eq!(seen, lab.done(&command, &whole, 0), "row 49");
    let mut expected = lab.done(&command, "", 0);
    expected.content = whole;
    expected.hidden = true;
    lab.check("50", run(&command).hidden(), expected).await;
    lab.close().await;
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

/// The reference takes an erased screen for lost output; the row says that the prefix should be empty.
#[tokio::test]
async fn row_53_an_erased_screen_is_empty_and_nothing_counts_as_lost() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("53", "clear", "", 0),
        ("53, what comes after it is kept", "echo before; clear; echo after", "after", 0),
    ])
    .await;
    lab.close().await;
}
