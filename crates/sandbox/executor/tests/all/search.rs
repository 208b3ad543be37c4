//! Searches whose patterns, or whose directories, are made to harm.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use gloveport_executor::files::{FileError, glob, grep};
use gloveport_protocol::files::{GlobRequest, GrepMatches, GrepRequest};
use serde_json::{Value, json};

fn search(root: &Path, request: &Value) -> Result<GrepMatches, FileError> {
    grep(root, &serde_json::from_value::<GrepRequest>(request.clone()).unwrap())
}

fn names(root: &Path, request: &Value) -> Result<Vec<String>, FileError> {
    let list = glob(root, &serde_json::from_value::<GlobRequest>(request.clone()).unwrap())?;
    Ok(list.entries.into_iter().map(|entry| entry.path).collect())
}

/// The most bytes of memory that this process has held since it began.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn eight_searches_for_a_huge_expression_take_little_memory_and_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "a".repeat(100_000)).unwrap();
    let before = peak();
    let began = Instant::now();
    let patterns = [
        "((a{1,100}){1,100}){1,90}".to_owned(),
        r"((\w{1,100}){1,100}){1,90}".to_owned(),
        r"\pL{1,1000}".repeat(10),
        "(".repeat(200) + &")".repeat(200),
        "a".repeat(100_000),
        "a|".repeat(8_000),
        "[a-z]{1000}{1000}".to_owned(),
        "(?i)".to_owned() + &"straße".repeat(2_000),
    ];
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for pattern in &patterns {
                    match search(directory.path(), &json!({ "pattern": pattern })) {
                        Err(FileError::Invalid(reason)) => {
                            assert!(reason.starts_with("the pattern is not valid: "), "{reason}");
                        }
                        Ok(found) => assert!(found.lines.len() <= 1),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let growth = peak() - before;
    assert!(growth < 64 * 1024 * 1024, "{growth} bytes");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
    let refused = search(directory.path(), &json!({ "pattern": patterns[0] })).unwrap_err();
    assert!(matches!(refused, FileError::Invalid(_)), "{refused}");
    assert!(refused.to_string().contains("size limit"), "{refused}");
}

#[test]
fn patterns_of_names_have_bounds() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "text").unwrap();
    let nested = "{a,".repeat(300) + &"}".repeat(300);
    for patterns in [vec!["*".to_owned(); 101], vec!["a".repeat(8 * 1024 + 1)]] {
        for result in [
            names(directory.path(), &json!({ "patterns": patterns })).map(drop),
            search(directory.path(), &json!({ "pattern": "a", "globs": patterns })).map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(matches!(&error, FileError::Invalid(reason) if reason.contains("at most")), "{error}");
        }
    }
    // What is within the bounds may be refused, and costs nothing.
    let (before, began) = (peak(), Instant::now());
    for pattern in [nested, "[!a-z]".repeat(170), "**/".repeat(340) + "a", "{a,b}".repeat(200), "?".repeat(1_000)] {
        match names(directory.path(), &json!({ "patterns": vec![pattern; 7] })) {
            Ok(_) | Err(FileError::Invalid(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(peak() - before < 64 * 1024 * 1024, "{} bytes", peak() - before);
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[test]
fn files_of_rules_that_are_no_files_or_too_large_are_told_and_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    for name in ["fifo", "endless", "linked", "large", "many", "fine"] {
        fs::create_dir(place(name)).unwrap();
        fs::write(place(name).join("a.txt"), "text\n").unwrap();
    }
    assert!(Command::new("mkfifo").arg(place("fifo/.gitignore")).status().unwrap().success());
    symlink("/dev/zero", place("endless/.gitignore")).unwrap();
    symlink("/proc/self/pagemap", place("endless/.ignore")).unwrap();
    fs::write(place("rules"), "*.txt\n").unwrap();
    symlink("../rules", place("linked/.ignore")).unwrap();
    fs::write(place("large/.gitignore"), "a?\n".repeat(100_000)).unwrap();
    fs::write(place("many/.gitignore"), "a?\n".repeat(30_000)).unwrap();
    fs::write(place("fine/.gitignore"), "*.txt\n").unwrap();
    let before = peak();
    let found = search(directory.path(), &json!({ "pattern": "text" })).unwrap();
    let paths: Vec<&str> = found.lines.iter().map(|line| line.path.as_str()).collect();
    let expected = ["endless/a.txt", "fifo/a.txt", "large/a.txt", "linked/a.txt", "many/a.txt"];
    assert_eq!(paths, expected);
    let root = directory.path().canonicalize().unwrap();
    let told: Vec<String> =
        found.skipped.iter().map(|line| line.replace(&format!("{}/", root.display()), "")).collect();
    assert_eq!(
        told,
        [
            "endless/.ignore: its rules are not used: it is a link",
            "endless/.gitignore: its rules are not used: it is a link",
            "fifo/.gitignore: its rules are not used: it is not a regular file",
            "large/.gitignore: its rules are not used: it is larger than 256 KiB",
            "linked/.ignore: its rules are not used: it is a link",
            "many/.gitignore: its rules are not used: there are more than 20000 lines of rules",
        ]
    );
    assert!(peak() - before < 64 * 1024 * 1024, "{} bytes", peak() - before);
}

#[test]
fn what_rules_leave_out_is_as_git_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write(".gitignore", "*.log\nbuild/\n!keep.log\n/only-here.txt\n!.shown\n");
    write("repository/.git/info/exclude", "excluded.txt\n");
    write("repository/.gitignore", "inner.txt\n");
    write("inner/.gitignore", "!again.log\nsub/*.txt\n");
    write("inner/.ignore", "again2.log\n!build/\n");
    for name in [
        "a.txt",
        "a.log",
        "keep.log",
        "only-here.txt",
        "build/a.txt",
        ".hidden/a.txt",
        ".shown/a.txt",
        "inner/again.log",
        "inner/again2.log",
        "inner/only-here.txt",
        "inner/sub/a.txt",
        "inner/build/b.txt",
        "repository/a.log",
        "repository/inner.txt",
        "repository/excluded.txt",
        "repository/excluded2.txt",
    ] {
        write(name, "text\n");
    }
    let found = |root: &str, request: Value| -> Vec<String> {
        let found = search(&directory.path().join(root), &request).unwrap();
        assert_eq!(found.skipped, [""; 0]);
        found.lines.into_iter().map(|line| line.path).collect()
    };
    let all = [
        ".shown/a.txt",
        "a.txt",
        "inner/again.log",
        "inner/build/b.txt",
        "inner/only-here.txt",
        "keep.log",
        // The rules above are those of another repository.
        "repository/a.log",
        "repository/excluded2.txt",
    ];
    assert_eq!(found("", json!({"pattern": "text"})), all);
    // The rules above the directory hold, too.
    assert_eq!(found("inner", json!({"pattern": "text"})), ["again.log", "build/b.txt", "only-here.txt"]);
    assert_eq!(found("inner/sub", json!({"pattern": "text"})), [""; 0]);
    assert_eq!(found("inner/sub", json!({"pattern": "text", "respect_ignore": false})), ["a.txt"]);
    // A file that is named is searched.
    assert_eq!(found("a.log", json!({"pattern": "text"})), ["a.log"]);
    let hidden = found("", json!({"pattern": "text", "hidden": true, "globs": ["*.txt"]}));
    assert!(hidden.contains(&".hidden/a.txt".to_owned()), "{hidden:?}");
    assert_eq!(found("", json!({"pattern": "text", "respect_ignore": false})).len(), 14);
}

#[test]
fn an_answer_has_a_bound_in_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("{}\n", "ü".repeat(3_000));
    fs::write(directory.path().join("a.txt"), line.repeat(4_000)).unwrap();
    let before = peak();
    let found = search(directory.path(), &json!({"pattern": "ü", "limit": 10_000, "context": 100})).unwrap();
    let bytes: usize = found.lines.iter().map(|line| line.text.len()).sum();
    assert!(found.truncated && bytes <= 16 * 1024 * 1024 && bytes > 15 * 1024 * 1024, "{bytes}");
    drop(found);
    assert!(peak() - before < 96 * 1024 * 1024, "{} bytes", peak() - before);
}
