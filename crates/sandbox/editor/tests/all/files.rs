//! Files of all kinds: what may not be edited stays as it was, and nothing waits.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs::{self, Permissions},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::common::Desk;
use gloveport_editor::{EditRequest, Editor, EditorOptions, Issue, Linter};
use gloveport_sys::replace::NewFile;
use rustix::fs::{CWD, Mode, mkfifoat};

/// What every command says to a path.
fn refusals(desk: &Desk, path: &str) -> Vec<String> {
    [
        EditRequest::new("view", path),
        EditRequest { old_str: Some("a"), new_str: Some("b"), ..EditRequest::new("str_replace", path) },
        EditRequest { insert_line: Some(0), new_str: Some("b"), ..EditRequest::new("insert", path) },
        EditRequest::new("undo_edit", path),
    ]
    .map(|request| desk.ask(request).unwrap_err())
    .to_vec()
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let desk = Desk::new();
    mkfifoat(CWD, desk.file("fifo"), Mode::from_raw_mode(0o644)).unwrap();
    let _socket = UnixListener::bind(desk.file("socket")).unwrap();
    for (path, kind) in [
        (desk.path("fifo"), "FIFO"),
        (desk.path("socket"), "socket"),
        ("/dev/null".to_owned(), "character device"),
        ("/dev/zero".to_owned(), "character device"),
    ] {
        let shown = path.replace(&desk.root, "/w");
        let expected = format!(
            "File validation failed for {shown}: It is a {kind}, and only regular files can be read or edited by this tool."
        );
        assert_eq!(refusals(&desk, &path), vec![expected; 4]);
    }
    symlink("loop", desk.file("loop")).unwrap();
    let expected = "Ran into [Errno 40] Too many levels of symbolic links: '/w/loop' while trying to read /w/loop";
    assert_eq!(refusals(&desk, &desk.path("loop")), vec![expected; 4]);
    let error = desk.create("loop", "x").unwrap_err().to_string();
    assert!(error.contains("[Errno 40] Too many levels of symbolic links"), "{error}");
    let long = "n".repeat(300);
    let error = desk.create(&long, "x").unwrap_err().to_string();
    assert!(error.starts_with("Ran into [Errno 36] File name too long: "), "{error}");
}

#[test]
fn binary_data_is_refused_and_stays_as_it_was() {
    let desk = Desk::new();
    let path = desk.put("data", b"a\0b");
    let expected = "File validation failed for /w/data: File appears to be binary and this file type cannot be read or edited by this tool.";
    assert_eq!(refusals(&desk, &path), vec![expected; 4]);
    assert_eq!(desk.content("data"), b"a\0b");
}

#[test]
fn files_of_the_kernel_have_content_and_no_length() {
    let desk = Desk::new();
    let request = EditRequest {
        view_range: Some(gloveport_editor::ViewRange::Lines(&[1, 1])),
        ..EditRequest::new("view", "/proc/self/status")
    };
    let output = desk.ask(request).unwrap();
    assert!(output.contains("     1\tName:\t"), "{output}");
}

#[test]
fn mode_and_links_of_a_file_survive_an_edit_and_a_new_one_has_what_is_configured() {
    let desk = Desk::with(|options| EditorOptions { new_file: NewFile { mode: Some(0o640), owner: None }, ..options });
    desk.create("new", "a\n").unwrap();
    desk.put("old", "a\n");
    fs::set_permissions(desk.file("old"), Permissions::from_mode(0o751)).unwrap();
    symlink("old", desk.file("link")).unwrap();
    fs::hard_link(desk.file("old"), desk.file("other name")).unwrap();
    symlink("born", desk.file("dangling")).unwrap();
    desk.create("dangling", "a\n").unwrap();
    for (name, mode) in [("new", 0o640), ("link", 0o751), ("dangling", 0o640)] {
        desk.insert(name, 1, "b").unwrap();
        desk.replace(name, "a", "A").unwrap();
        desk.undo(name).unwrap();
        assert_eq!(desk.content(name), b"a\nb\n", "{name}");
        assert_eq!(fs::metadata(desk.file(name)).unwrap().mode() & 0o7777, mode, "{name}");
    }
    assert_eq!(desk.content("other name"), b"a\nb\n");
    assert!(fs::symlink_metadata(desk.file("link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(desk.file("dangling")).unwrap().is_symlink());
    assert_eq!(desk.content("born"), b"a\nb\n");
}

#[test]
fn text_that_can_not_be_stored_changes_nothing() {
    let desk = Desk::new();
    let text = "Привет мир, это обычный русский текст для проверки кодировки.\n";
    let bytes = encoding_rs::WINDOWS_1251.encode(text).0.into_owned();
    desk.put("old", &bytes);
    let error = desk.insert("old", 1, "世").unwrap_err().to_string().replace(&desk.root, "/w");
    assert_eq!(
        error,
        "Ran into 'windows-1251' codec can't encode character '世' in position 62 while trying to write to /w/old"
    );
    assert_eq!(desk.content("old"), bytes);
    assert!(desk.undo("old").unwrap_err().to_string().starts_with("No edit history found"));
}

#[test]
fn an_undone_edit_brings_back_the_bytes_even_if_the_encoding_was_lost_with_them() {
    let desk = Desk::new();
    for (name, text) in [
        ("western", &b"caf\xe9\n"[..]),
        ("marked", b"\xef\xbb\xbfcaf\xc3\xa9\n"),
        ("wide", b"\xfe\xff\0c\0a\0f\0\xe9\0\n"),
    ] {
        desk.put(name, text);
        desk.replace(name, "é", "e").unwrap();
        desk.undo(name).unwrap();
        assert_eq!(desk.content(name), text, "{name}");
    }
    desk.put("lie", b"\xff\xfea\0b");
    let error = desk.view("lie").unwrap_err();
    assert_eq!(
        error,
        "Ran into 'utf-16' codec can't decode what follows the byte order mark while trying to read /w/lie"
    );
}

#[test]
fn names_that_shells_fear_are_listed() {
    let desk = Desk::new();
    let name = "a b$(c);'\"*?[x]\\";
    fs::create_dir(desk.file(name)).unwrap();
    fs::write(desk.file(name).join("in it"), "").unwrap();
    fs::write(desk.file(name).join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let path = desk.path(name);
    let expected = format!(
        "Here's the files and directories up to 2 levels deep in /w/{name}, excluding hidden items:\n/w/{name}/\n/w/{name}/in it\n/w/{name}/\u{fffd}"
    );
    assert_eq!(desk.ask(EditRequest::new("view", &path)), Ok(expected));
}

#[test]
fn edits_of_one_file_are_all_done_and_those_of_others_do_not_wait() {
    const THREADS: usize = 8;
    let desk = Desk::new();
    desk.put("shared", "");
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (desk, barrier) = (&desk, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..20 {
                    desk.insert("shared", 0, &format!("{number} {round}")).unwrap();
                }
            });
        }
    });
    let mut lines: Vec<String> =
        String::from_utf8(desk.content("shared")).unwrap().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    let mut expected: Vec<String> =
        (0..THREADS).flat_map(|number| (0..20).map(move |round| format!("{number} {round}"))).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// A linter that waits until it is told to go on.
struct Waiting {
    reached: Mutex<mpsc::Sender<()>>,
    go_on: Mutex<mpsc::Receiver<()>>,
    calls: AtomicUsize,
}

impl Linter for Waiting {
    fn lint(&self, _: &std::path::Path, text: &str) -> Vec<Issue> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            self.reached.lock().unwrap().send(()).unwrap();
            self.go_on.lock().unwrap().recv_timeout(Duration::from_mins(1)).unwrap();
        }
        let line = text.lines().position(|line| line.contains("bad")).map(|line| line + 1);
        line.into_iter().map(|line| Issue { line, column: 1, message: "bad word".into() }).collect()
    }
}

#[test]
fn a_slow_linter_delays_its_own_edit_only_and_its_report_stands_before_the_advice() {
    let ((reached, was_reached), (go, go_on)) = (mpsc::channel(), mpsc::channel());
    let linter = Waiting { reached: Mutex::new(reached), go_on: Mutex::new(go_on), calls: AtomicUsize::new(0) };
    let desk = Desk::with(|options| EditorOptions { linter: Some(Arc::new(linter)), ..options });
    desk.put("file", "good\n");
    thread::scope(|scope| {
        let edit = scope.spawn(|| desk.replace("file", "good", "bad").unwrap().output);
        was_reached.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(desk.view("file").unwrap().contains("     1\tbad"));
        let second = desk.insert("file", 0, "more").unwrap().output;
        assert!(second.contains("     3\t\n\nNo linting issues found in the changes.\nReview the changes"), "{second}");
        go.send(()).unwrap();
        let output = edit.join().unwrap();
        let expected =
            "     2\t\n\nLinting issues found in the changes:\n- Line 1, Column 1: bad word\n\nReview the changes";
        assert!(output.contains(expected), "{output}");
    });
    let undone = desk.undo("file").unwrap().output;
    assert!(!undone.contains("linting"), "{undone}");
}

#[test]
fn an_editor_can_be_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Editor>();
}
