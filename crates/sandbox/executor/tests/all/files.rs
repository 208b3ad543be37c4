//! The `read`, `write` and `edit` actions (`file-editor` §§1–3).

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{
    ffi::OsStr,
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
    },
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, ErrorObservation, ExecuteError, FileReadSource, Observation, ReadAction,
    ReadObservation, RunAction, WriteAction, WriteObservation,
};
use tempfile::TempDir;

type Answer = Result<Observation, ExecuteError>;

struct Lab {
    executor: Arc<Executor>,
    directory: TempDir,
    _home: TempDir,
}

impl Lab {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = ExecutorOptions::inherited(directory.path().to_owned());
        // No start-up file of whoever runs the tests has a say.
        let home = tempfile::tempdir().unwrap();
        options.environment.retain(|(name, _)| name != "HOME");
        options.environment.push(("HOME".into(), home.path().into()));
        Self { executor: Executor::start(options).await.unwrap(), directory, _home: home }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory.path().display())
    }

    async fn execute(&self, action: Action) -> Answer {
        let event = ActionEvent::from(action);
        tokio::time::timeout(Duration::from_secs(30), self.executor.execute(&event)).await.unwrap()
    }

    async fn read(&self, path: &str, start: i64, end: i64) -> Answer {
        self.execute(Action::Read(ReadAction { start, end, ..ReadAction::new(path) })).await
    }

    async fn write(&self, path: &str, content: &str, start: i64, end: i64) -> Answer {
        self.execute(Action::Write(WriteAction { start, end, ..WriteAction::new(path, content) })).await
    }

    async fn run(&self, command: &str) {
        let observation = self.execute(Action::Run(RunAction::new(command))).await.unwrap();
        let Observation::Run(run) = observation else { panic!("{observation:?}") };
        assert_eq!(run.metadata.exit_code, 0, "{}", run.content);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with an answer")]
fn read(content: &str, path: &str) -> Answer {
    Ok(Observation::Read(ReadObservation {
        impl_source: FileReadSource::Default,
        ..ReadObservation::new(content, path)
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with an answer")]
fn written(path: &str) -> Answer {
    Ok(Observation::Write(WriteObservation::new("", path)))
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with an answer")]
fn failed(content: impl Into<String>) -> Answer {
    Ok(Observation::Error(ErrorObservation::new(content.into())))
}

fn refused(text: impl Into<String>) -> Answer {
    Err(ExecuteError::Failed(text.into()))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn text_is_read_with_one_kind_of_line_end_and_relative_paths_begin_where_the_shell_is() {
    let lab = Lab::start().await;
    fs::create_dir(lab.path("sub")).unwrap();
    fs::write(lab.path("sub/mixed.txt"), "one\r\ntwo\rthree\nfour").unwrap();
    let text = "one\ntwo\nthree\nfour";
    assert_eq!(lab.read("sub/mixed.txt", 0, -1).await, read(text, &lab.path("sub/mixed.txt")));
    lab.run("cd sub").await;
    assert_eq!(lab.read("./mixed.txt", 0, -1).await, read(text, &lab.path("sub/mixed.txt")));
    assert_eq!(lab.read("../sub//mixed.txt", 0, -1).await, read(text, &lab.path("sub/../sub/mixed.txt")));
    assert_eq!(lab.read(&lab.path("sub/mixed.txt"), 1, 3).await, read("two\nthree\n", &lab.path("sub/mixed.txt")));
    lab.executor.close().await;
}

#[tokio::test]
async fn every_error_of_read_has_the_text_of_the_table() {
    let lab = Lab::start().await;
    let cwd = lab.directory.path().display().to_string();
    fs::write(lab.path("latin"), b"caf\xe9 and more text that is no UTF-8").unwrap();
    fs::write(lab.path("zeros"), b"a\0b").unwrap();
    symlink("loop", lab.path("loop")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap().success());
    let path = |name: &str| lab.path(name);
    for (asked, expected) in [
        (
            "missing".to_owned(),
            failed(format!("File not found: {}. Your current working directory is {cwd}.", path("missing"))),
        ),
        (
            path("missing"),
            failed(format!("File not found: {}. Your current working directory is {cwd}.", path("missing"))),
        ),
        ("latin".to_owned(), failed(format!("File could not be decoded as utf-8: {}.", path("latin")))),
        (path("zeros"), failed("ERROR_BINARY_FILE")),
        (".".to_owned(), failed(format!("Path is a directory: {cwd}. You can only read files"))),
        (String::new(), failed(format!("Path is a directory: {cwd}. You can only read files"))),
        (path("fifo"), failed(format!("Path is a FIFO: {}. You can only read files", path("fifo")))),
        ("/dev/zero".to_owned(), failed("Path is a character device: /dev/zero. You can only read files")),
        (path("loop"), refused(format!("[Errno 40] Too many levels of symbolic links: '{}'", path("loop")))),
        (path("latin/x"), refused(format!("[Errno 20] Not a directory: '{}'", path("latin/x")))),
        (path("a\0b"), refused("embedded null byte")),
        (path(&"x".repeat(300)), refused(format!("[Errno 36] File name too long: '{}'", path(&"x".repeat(300))))),
    ] {
        assert_eq!(lab.read(&asked, 0, -1).await, expected, "{asked:?}");
    }
    lab.executor.close().await;
}

#[tokio::test]
async fn a_file_too_large_to_be_held_is_read_by_its_lines_and_refused_as_a_whole() {
    let lab = Lab::start().await;
    let mut file = fs::File::create(lab.path("huge")).unwrap();
    file.write_all(b"first\nsecond\n").unwrap();
    // A hole reads as zero bytes, which are text to UTF-8.
    file.seek(SeekFrom::Start(40 << 20)).unwrap();
    file.write_all(b"\nlast").unwrap();
    assert_eq!(lab.read("huge", 0, 2).await, read("first\nsecond\n", &lab.path("huge")));
    assert_eq!(lab.read("huge", 3, -1).await, read("last", &lab.path("huge")));
    let expected = format!(
        "File is too large to be read at once: {} has 41943045 bytes, and an answer carries at most 33554432. Read some \
         of its lines with start and end, or use a command such as head, tail or grep.",
        lab.path("huge")
    );
    assert_eq!(lab.read("huge", 0, -1).await, failed(expected));
    lab.executor.close().await;
}

#[tokio::test]
async fn a_new_file_is_made_with_its_directories_and_an_old_one_keeps_what_it_has() {
    let lab = Lab::start().await;
    assert_eq!(lab.write("a/b/c.txt", "x", 0, -1).await, written(&lab.path("a/b/c.txt")));
    assert_eq!(fs::metadata(lab.path("a/b/c.txt")).unwrap().mode() & 0o7777, 0o664);
    fs::write(lab.path("script"), "old").unwrap();
    fs::set_permissions(lab.path("script"), fs::Permissions::from_mode(0o751)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(lab.path("script"), Some(12_345), Some(54_321)).unwrap();
    }
    let before = fs::metadata(lab.path("script")).unwrap();
    assert_eq!(lab.write("script", "new", 0, -1).await, written(&lab.path("script")));
    let after = fs::metadata(lab.path("script")).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    fs::hard_link(lab.path("script"), lab.path("other")).unwrap();
    symlink("script", lab.path("link")).unwrap();
    assert_eq!(lab.write("link", "linked", 0, -1).await, written(&lab.path("link")));
    assert_eq!(fs::read(lab.path("other")).unwrap(), b"linked\n");
    assert!(fs::symlink_metadata(lab.path("link")).unwrap().is_symlink());
    lab.executor.close().await;
}

#[tokio::test]
async fn every_error_of_write_has_the_text_of_the_table_and_changes_nothing() {
    let lab = Lab::start().await;
    fs::create_dir(lab.path("dir")).unwrap();
    fs::write(lab.path("latin"), b"caf\xe9").unwrap();
    fs::write(lab.path("file"), "x").unwrap();
    symlink("loop", lab.path("loop")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap().success());
    let before = names(lab.directory.path());
    let path = |name: &str| lab.path(name);
    for (asked, expected) in [
        (path("dir"), failed(format!("Path is a directory: {}. You can only write to files", path("dir")))),
        (path("latin"), failed(format!("File could not be decoded as utf-8: {}", path("latin")))),
        (path("fifo"), failed(format!("Path is a FIFO: {}. You can only write to files", path("fifo")))),
        ("/dev/full".to_owned(), failed("Path is a character device: /dev/full. You can only write to files")),
        (path("file/x"), refused(format!("[Errno 20] Not a directory: '{}'", path("file/x")))),
        (path("file/y/x"), refused(format!("[Errno 20] Not a directory: '{}'", path("file/y")))),
        (path("loop"), refused(format!("[Errno 40] Too many levels of symbolic links: '{}'", path("loop")))),
        (path("a\0b"), refused("embedded null byte")),
    ] {
        assert_eq!(lab.write(&asked, "new", 0, -1).await, expected, "{asked:?}");
    }
    assert_eq!(fs::read(lab.path("latin")).unwrap(), b"caf\xe9");
    assert_eq!(names(lab.directory.path()), before);
    lab.executor.close().await;
}

#[tokio::test]
async fn a_file_too_large_to_be_held_is_written_by_its_lines() {
    let lab = Lab::start().await;
    let mut file = fs::File::create(lab.path("huge")).unwrap();
    file.write_all(b"first\n").unwrap();
    file.seek(SeekFrom::Start(40 << 20)).unwrap();
    file.write_all(b"\nlast\n").unwrap();
    drop(file);
    assert_eq!(lab.write("huge", "new", 0, 1).await, written(&lab.path("huge")));
    assert_eq!(lab.write("huge", "end", -1, -1).await, written(&lab.path("huge")));
    let bytes = fs::read(lab.path("huge")).unwrap();
    assert!(bytes.starts_with(b"new\n\0") && bytes.ends_with(b"\0\nend\n"));
    assert_eq!(bytes.len(), (40 << 20) + 3);
    lab.executor.close().await;
}

#[tokio::test]
async fn timed_a_read_never_waits_for_a_running_command() {
    let lab = Lab::start().await;
    fs::write(lab.path("file"), "text").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(lab.path("gate")).status().unwrap().success());
    let executor = Arc::clone(&lab.executor);
    let command = tokio::spawn(async move {
        let action = RunAction { blocking: true, ..RunAction::new("cat gate") };
        executor.execute(&ActionEvent::from(Action::Run(action))).await
    });
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(lab.read("file", 0, -1).await, read("text", &lab.path("file")));
    }
    assert!(!command.is_finished());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // The command ends only now.
    fs::write(lab.path("gate"), "through").unwrap();
    let Observation::Run(run) = command.await.unwrap().unwrap() else { panic!("another observation") };
    assert_eq!(run.content, "through");
    lab.executor.close().await;
}

#[tokio::test]
async fn names_that_are_not_utf_8_do_no_harm() {
    let lab = Lab::start().await;
    let sub = lab.directory.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("file"), "text").unwrap();
    let expected = failed(format!(
        "File not found: {}. Your current working directory is {}.",
        lab.path("caf\u{fffd}/file"),
        lab.directory.path().display()
    ));
    assert_eq!(lab.read("caf\u{fffd}/file", 0, -1).await, expected);
    lab.executor.close().await;
}
