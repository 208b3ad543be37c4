//! Measures edits of a file of 1 MB with 20,000 lines: `cargo run --release -p gloveport-editor --example speed`.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::{
    error::Error,
    fs,
    time::{Duration, Instant},
};

use gloveport_editor::{EditRequest, Editor, EditorOptions, diff};
use gloveport_sys::replace::{self, NewFile};

const ROUNDS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("file.txt").display().to_string();
    for (kind, text) in [("unique lines", text(20_000)), ("repeated lines", text(500))] {
        println!("{kind}: {} bytes, {} lines", text.len(), text.lines().count());
        measure_diff(&text);
        measure_edits(&path, &text)?;
    }
    Ok(())
}

/// 20,000 lines, of which as many as given are different.
fn text(different: usize) -> String {
    let lines = (0..20_000).map(|line| format!("line {:05} of a file that has some text in each\n", line % different));
    lines.collect::<Vec<_>>().concat()
}

fn measure_diff(old: &str) {
    let mut new = old.to_owned();
    let middle = old.len() / 2 / 50 * 50;
    new.replace_range(middle..middle + 4, "LINE");
    report("diff of a change of one line", || drop(diff::unified("/w/file.txt", old, &new)));
}

fn measure_edits(path: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let editor = Editor::new(EditorOptions::new("/".into()));
    let (before, after) = text.split_at(text.len() / 2);
    fs::write(path, format!("{before}old text 0 here\n{after}"))?;
    let mut number = 0;
    report("str_replace", || {
        let (old, new) = (format!("old text {number} here"), format!("old text {} here", number + 1));
        number += 1;
        let request = EditRequest { old_str: Some(&old), new_str: Some(&new), ..EditRequest::new("str_replace", path) };
        drop(editor.run(&request));
    });
    let mut inserted = 0;
    report("insert", || {
        inserted += 1;
        let new = format!("inserted text {inserted}");
        let request =
            EditRequest { insert_line: Some(10_000), new_str: Some(&new), ..EditRequest::new("insert", path) };
        drop(editor.run(&request));
    });
    let bytes = fs::read(path)?;
    report("reading the file alone", || drop(replace::read(path.as_ref(), u64::MAX)));
    report("writing the file alone", || drop(replace::write(path.as_ref(), &bytes, NewFile::default())));
    report("view of 10 lines", || {
        let range = Some(gloveport_editor::ViewRange::Lines(&[10_000, 10_010]));
        drop(editor.run(&EditRequest { view_range: range, ..EditRequest::new("view", path) }));
    });
    let request = EditRequest { old_str: Some(&*format!("old text {number} here")), ..EditRequest::new("view", path) };
    println!("{}", editor.run(&request)?.output.lines().next().unwrap_or_default());
    assert!(fs::read_to_string(path)?.contains(&format!("old text {number} here")), "the edits did not happen");
    Ok(())
}

fn report(name: &str, mut work: impl FnMut()) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("  {name}: p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms", at(50), at(90), at(99));
}
