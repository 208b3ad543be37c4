//! Output as a terminal shows it, whatever the bytes.

use std::fs;

use crate::hard_cases::support::{Lab, done, goes_on, input, run, runs, soon};

#[tokio::test]
async fn an_erased_screen_is_empty_and_what_follows_is_kept() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("echo a; clear; echo b", "b", 0),
        ("clear", "", 0),
        ("echo a; printf '\\033c'; echo b", "b", 0),
        ("echo a; printf '\\033[2J\\033[H'; echo b", "b", 0),
        ("echo a; printf '\\033[3J'; echo b", "a\nb", 0),
        ("echo next", "next", 0),
    ])
    .await;
    let report = lab.run("echo a; reset; echo b").await;
    assert_eq!((report.output.as_str(), report.lines_kept), ("b", None));
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_progress_bar_is_shown_as_it_stands() {
    let lab = Lab::new().await;
    let command = "for i in 10 50; do printf '\\r%d%%' $i; read; done; printf '\\rdone\\n'";
    lab.check(soon(run(command)), runs("10%")).await;
    // Enter ends the line on a real terminal, too.
    lab.check(soon(input("x")), goes_on("50%")).await;
    lab.check(input("x"), done("done", 0).after_reports()).await;
    lab.check("printf '10%%\\r'; printf '5\\n'", done("50%", 0)).await;
    lab.check("for i in 1 2 3; do printf \"\\r$i of 3\"; done", done("3 of 3", 0)).await;
    lab.check("printf 'abc\\033[2Dx\\033[K\\n'", done("ax", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_bar_that_redraws_itself_is_reported_as_it_stands_each_time() {
    let lab = Lab::new().await;
    fs::write(lab.work.join("bar"), "for i in 1 2 3; do printf '\\rpart %d' $i; cat next$i; done; echo\n").unwrap();
    lab.prepare("mkfifo next1 next2 next3").await;
    lab.check(soon(run("bash bar")), runs("part 1")).await;
    for (fifo, output) in [("next1", "part 2"), ("next2", "part 3")] {
        fs::write(lab.work.join(fifo), "").unwrap();
        lab.check(soon(run("")), goes_on(output)).await;
    }
    fs::write(lab.work.join("next3"), "").unwrap();
    lab.check("", done("", 0).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn wide_split_and_invalid_characters_are_shown() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("echo é漢字😀", "é漢字😀", 0),
        ("printf '\\xe6'; sleep 0.1; printf '\\xbc\\xa2\\n'", "漢", 0),
        ("printf 'a\\xffb\\n'", "a\u{fffd}b", 0),
        ("printf 'a\\xc3\\n'", "a\u{fffd}", 0),
        ("printf '\\xf0\\x9f\\x98'; echo; echo x", "\u{fffd}\nx", 0),
        ("printf 'e\\xcc\\x81\\n'", "e\u{301}", 0),
        ("echo next", "next", 0),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn binary_output_is_logged_byte_by_byte_and_does_no_harm() {
    let lab = Lab::new().await;
    for _round in 0..3 {
        let report = lab.run("head -c 1000000 /dev/urandom | tee f").await;
        assert_eq!(report.facts.status, 0);
        let written = fs::read(lab.work.join("f")).unwrap();
        let logged = lab.bytes(report.range);
        assert!(logged == written, "{} bytes were logged, {} written", logged.len(), written.len());
        lab.check("echo next; (exit 3)", done("next", 3)).await;
    }
    lab.close().await;
}
