//! No name and no link leads a file action out of the workspace, whatever is done with it and whenever links change.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use gloveport_cli_runtime::CliRuntime;
use gloveport_protocol::{
    Action, ActionExecutor as _, EditAction, FileReadSource, Observation, ReadAction, WriteAction,
};
use proptest::prelude::*;

use crate::support::Fixture;

/// What no answer may have in it.
const CANARY: &str = "the canary sings";

/// A name that nothing in the workspace has by itself.
const ONLY_OUTSIDE: &str = "only-outside";

/// A workspace full of traps, and beside it what nobody may touch.
struct Cage {
    fixture: Fixture,
    tokio: tokio::runtime::Runtime,
    /// All that is outside, as it was: path, inode, mode, size, modification, content.
    outside: Vec<(PathBuf, u64, u32, i64, Vec<u8>)>,
}

impl Cage {
    fn new() -> Self {
        let fixture = Fixture::new();
        let (root, top) = (fixture.root.clone(), fixture.root.parent().unwrap().to_owned());
        for directory in ["outside/deep", "ws-evil", "ws2", "w", "ws/sub/deep", "ws/~"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in ["outside/canary", "outside/deep/canary", "ws-evil/canary", "ws2/canary", "w/canary", "canary"] {
            fs::write(top.join(file), CANARY).unwrap();
        }
        for directory in ["outside", "outside/deep", "ws-evil", "ws2", "w", ""] {
            fs::write(top.join(directory).join(ONLY_OUTSIDE), CANARY).unwrap();
        }
        for file in ["file", "sub/file", "sub/deep/file"] {
            fs::write(root.join(file), "one\ntwo\n").unwrap();
        }
        let up = |link: &str, target: &Path| symlink(target, root.join(link)).unwrap();
        up("absolute", &top.join("outside"));
        up("relative", Path::new("../outside"));
        up("deep-relative", Path::new("sub/../../outside/deep"));
        up("to-file", &top.join("outside/canary"));
        up("chain", Path::new("relative"));
        up("up", Path::new(".."));
        up("root", Path::new("/"));
        up("proc-root", Path::new("/proc/self/root"));
        up("proc-cwd", Path::new("/proc/self/cwd"));
        up("dev-fd", Path::new("/dev/fd"));
        up("dangling-out", &top.join("outside/new"));
        up("inside", &root.join("sub"));
        up("loop", Path::new("loop"));
        up("sub/back", Path::new("../../outside"));
        fs::hard_link(top.join("outside/canary"), root.join("hard")).unwrap();
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut cage = Self { fixture, tokio, outside: Vec::new() };
        cage.outside = cage.survey();
        cage
    }

    fn top(&self) -> &Path {
        self.fixture.root.parent().unwrap()
    }

    /// All that is outside of the workspace.
    fn survey(&self) -> Vec<(PathBuf, u64, u32, i64, Vec<u8>)> {
        let mut found = Vec::new();
        let mut directories = vec![self.top().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let metadata = entry.metadata().unwrap();
                if entry.path() == self.fixture.root {
                    continue;
                }
                let content = if metadata.is_dir() {
                    directories.push(entry.path());
                    Vec::new()
                } else {
                    fs::read(entry.path()).unwrap()
                };
                found.push((entry.path(), metadata.ino(), metadata.mode(), metadata.mtime(), content));
            }
        }
        found.sort();
        found
    }

    /// Does everything that can be done with a path, and checks after each that nothing got out or in.
    fn try_everything(&self, path: &str) {
        let runtime = &self.fixture.runtime;
        let act = |action: Action| self.tokio.block_on(runtime.execute(&action.into())).unwrap();
        let edit = |command: &str| EditAction { command: command.into(), ..EditAction::new(path) };
        let actions = [
            Action::Read(ReadAction::new(path)),
            Action::Read(ReadAction { impl_source: FileReadSource::OhAci, ..ReadAction::new(path) }),
            Action::Edit(edit("view")),
            Action::Edit(EditAction {
                old_str: Some("sings".into()),
                new_str: Some("dies".into()),
                ..edit("str_replace")
            }),
            Action::Edit(EditAction { old_str: Some("one".into()), new_str: Some("1".into()), ..edit("str_replace") }),
            Action::Edit(EditAction {
                insert_line: Some(gloveport_protocol::InsertLine::Number(0)),
                new_str: Some("x".into()),
                ..edit("insert")
            }),
            Action::Edit(edit("undo_edit")),
            Action::Edit(EditAction { file_text: Some("new".into()), ..edit("create") }),
            Action::Write(WriteAction::new(path, "written")),
        ];
        for action in actions {
            let what = format!("{} {path:?}", action.kind());
            // Another name of an outside file is a file of the workspace, too; it may be read.
            let is_hard_link = path.split('/').any(|part| part == "hard");
            let observation = act(action);
            if !is_hard_link {
                assert_quiet(observation.content(), &what);
            }
            self.check(&what);
        }
        for name in runtime.list_files(Some(path)).unwrap_or_default() {
            assert!(Path::new(&name).starts_with(&self.fixture.root), "list {path:?}: {name}");
            assert!(!name.ends_with(ONLY_OUTSIDE), "list {path:?}: {name}");
        }
        self.check("list");
        if let Ok(packed) = runtime.copy_from(path) {
            let mut zip = zip::ZipArchive::new(fs::File::open(&packed).unwrap()).unwrap();
            for index in 0..zip.len() {
                let mut entry = zip.by_index(index).unwrap();
                let name = entry.name().unwrap().into_owned();
                let mut content = Vec::new();
                std::io::copy(&mut entry, &mut content).unwrap();
                if !name.ends_with("hard") {
                    assert_quiet(&String::from_utf8_lossy(&content), &format!("copy_from {path:?}: {name}"));
                }
            }
        }
        self.check("copy_from");
        let source = self.top().join("w");
        let _refused = runtime.copy_to(&source.join("canary"), path, false);
        self.check(&format!("copy_to {path:?}"));
        let _refused = runtime.copy_to(&source, path, true);
        self.check(&format!("copy_to {path:?} recursive"));
        // What was copied in is no secret.
        self.tidy();
    }

    fn check(&self, what: &str) {
        assert_eq!(self.survey(), self.outside, "{what} changed something outside");
    }

    /// Removes copies of the canary from the workspace, and sets the trap again that is gone with the first write.
    fn tidy(&self) {
        let (trap, canary) = (self.fixture.root.join("hard"), self.top().join("outside/canary"));
        let _gone = fs::remove_file(&trap);
        let _gone = fs::remove_dir_all(&trap);
        fs::hard_link(canary, trap).unwrap();
        let mut directories = vec![self.fixture.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    directories.push(entry.path());
                } else if kind.is_file()
                    && entry.file_name() != "hard"
                    && fs::read(entry.path()).is_ok_and(|content| String::from_utf8_lossy(&content).contains(CANARY))
                {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }
}

fn assert_quiet(content: &str, what: &str) {
    assert!(!content.contains(CANARY) && !content.contains("root:x:0"), "{what} tells what is outside: {content}");
}

/// Hostile paths by hand; `{W}` is the workspace and `{T}` the directory that it is in.
fn known_paths(cage: &Cage) -> Vec<String> {
    let targets =
        ["canary", "outside/canary", "outside", "outside/new", "ws-evil/canary", "ws2/canary", "w/canary", "ws-evil"];
    let mut paths: Vec<String> = Vec::new();
    for target in targets {
        for prefix in [
            "../",
            "./../",
            "sub/../../",
            "sub/deep/../../../",
            "missing/../../",
            "..//",
            "/workspace/../",
            "/workspace/./../",
            "/workspace//..//",
            "{W}/../",
            "{W}/sub/../../",
            "{T}/",
            "{T}//",
            "//{T}/",
            "up/",
            "/workspace/up/",
            "sub/../up/",
            "root{T}/",
            "proc-root{T}/",
            "/proc/self/root{T}/",
            "/proc/1/root{T}/",
            "/proc/self/cwd/../",
            "file/../../",
            "loop/../../",
            "~/../../",
            "\u{ff0e}\u{ff0e}/",
            "%2e%2e/",
            "..\\",
        ] {
            paths.push(format!("{prefix}{target}"));
        }
    }
    for link in ["absolute", "relative", "chain", "sub/back", "inside/back", "/workspace/absolute", "{W}/relative"] {
        for rest in ["", "/", "/canary", "/new", "/deep/canary", "/deep/../canary", "/./canary/", "/new/file"] {
            paths.push(format!("{link}{rest}"));
        }
    }
    paths.extend(odd_paths().map(str::to_owned));
    paths.push("n".repeat(256));
    paths.push("n/".repeat(3_000));
    paths.push("../".repeat(500) + "etc/passwd");
    paths.push("sub/../".repeat(700) + "../outside/canary");
    let (w, t) = (cage.fixture.root.display().to_string(), cage.top().display().to_string());
    paths.iter().map(|path| path.replace("{W}", &w).replace("{T}", &t)).collect()
}

fn odd_paths() -> [&'static str; 55] {
    [
        "to-file",
        "to-file/",
        "to-file/.",
        "dangling-out",
        "dangling-out/x",
        "deep-relative/canary",
        "hard",
        "/workspace/hard",
        "root/etc/passwd",
        "proc-root/etc/passwd",
        "proc-cwd",
        "proc-cwd/x",
        "dev-fd/0",
        "dev-fd/3",
        "/dev/fd/0",
        "/dev/stdin",
        "/proc/self/fd/1",
        "/proc/self/environ",
        "/etc/passwd",
        "/",
        "//",
        "/..",
        "/.",
        "~",
        "~root",
        "$HOME",
        "/workspace-evil/x",
        "/workspaceX",
        "/workspace/../workspace/file",
        "loop",
        "loop/x",
        "",
        ".",
        "..",
        "...",
        ". .",
        " ",
        "\n",
        "\u{202e}",
        "a\0b",
        "\0",
        "../\0",
        "sub/\0/../..",
        "con",
        "file::$DATA",
        "\u{e9}",
        "e\u{301}",
        "\u{fffd}",
        "{W}",
        "{W}/",
        "{W}/.",
        "{W}-evil/canary",
        "{W}2/canary",
        "{T}",
        "{T}/w",
    ]
}

#[test]
fn hundreds_of_hostile_paths_leave_the_workspace_in_none() {
    let cage = Cage::new();
    let paths = known_paths(&cage);
    assert!(paths.len() > 200, "{}", paths.len());
    for path in paths {
        cage.try_everything(&path);
    }
}

/// Paths of parts that are dangerous together.
fn hostile_path() -> impl Strategy<Value = String> {
    let parts = [
        "..",
        ".",
        "",
        "sub",
        "deep",
        "file",
        "absolute",
        "relative",
        "chain",
        "up",
        "root",
        "proc-root",
        "inside",
        "back",
        "hard",
        "to-file",
        "dangling-out",
        "loop",
        "outside",
        "canary",
        "ws",
        "ws-evil",
        "new",
        "missing",
        "a\0b",
        "\u{ff0e}.",
        "proc",
        "self",
        "cwd",
        "etc",
        "passwd",
    ];
    let start = prop_oneof![
        Just(String::new()),
        Just("/".to_owned()),
        Just("/workspace/".to_owned()),
        Just("/workspace".to_owned()),
        Just("{W}/".to_owned()),
        Just("{W}".to_owned()),
        Just("{T}/".to_owned()),
        Just("//".to_owned()),
        Just("/proc/self/root{T}/".to_owned()),
    ];
    let part = prop_oneof![4 => proptest::sample::select(parts.to_vec()).prop_map(str::to_owned), 1 => "\\PC{1,8}"];
    (start, proptest::collection::vec(part, 0..7), prop_oneof![Just(""), Just("/"), Just("/."), Just("/..")])
        .prop_map(|(start, parts, end)| format!("{start}{}{end}", parts.join("/")))
}

#[test]
fn no_combination_of_hostile_parts_leaves_the_workspace() {
    let cage = Cage::new();
    let (w, t) = (cage.fixture.root.display().to_string(), cage.top().display().to_string());
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(path in hostile_path())| {
        cage.try_everything(&path.replace("{W}", &w).replace("{T}", &t));
    });
}

/// Swaps directories and files of the workspace for links that lead out of it, and back, until it is told to stop.
fn swap(root: &Path, outside: &Path, stop: &AtomicBool) -> usize {
    let (directory, file) = (root.join("swapped"), root.join("swapped-file"));
    let mut swaps = 0;
    while !stop.load(Relaxed) {
        let _there = fs::create_dir(&directory);
        let _there = fs::write(directory.join("canary"), "harmless");
        let _there = fs::write(&file, "harmless");
        let _gone = fs::rename(&directory, root.join("away"));
        let _there = symlink(outside, &directory);
        let _gone = fs::remove_file(&file);
        let _there = symlink(outside.join("canary"), &file);
        let _gone = fs::remove_file(&directory);
        let _gone = fs::remove_file(&file);
        let _gone = fs::remove_dir_all(root.join("away"));
        swaps += 1;
    }
    swaps
}

#[test]
fn links_that_are_swapped_during_the_call_lead_out_of_the_workspace_in_no_try() {
    let cage = Cage::new();
    let runtime: Arc<CliRuntime> = Arc::clone(&cage.fixture.runtime);
    let (root, outside) = (cage.fixture.root.clone(), cage.top().join("outside"));
    let source = cage.top().join("w2");
    fs::write(&source, "copied in").unwrap();
    let before = cage.survey();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || swap(&root, &outside, &stop)
    });
    let act = |action: Action| cage.tokio.block_on(runtime.execute(&action.into())).unwrap();
    let mut refused = 0;
    let mut harmless = 0;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(6);
    while std::time::Instant::now() < deadline {
        for path in ["swapped/canary", "swapped-file", "swapped/new", "swapped/sub/new"] {
            let edit = |command: &str| EditAction { command: command.into(), ..EditAction::new(path) };
            for action in [
                Action::Read(ReadAction::new(path)),
                Action::Edit(edit("view")),
                Action::Edit(EditAction { file_text: Some("made".into()), ..edit("create") }),
                Action::Edit(EditAction {
                    old_str: Some("harmless".into()),
                    new_str: Some("edited".into()),
                    ..edit("str_replace")
                }),
                Action::Edit(edit("undo_edit")),
                Action::Write(WriteAction::new(path, "written")),
            ] {
                let observation = act(action);
                assert_quiet(observation.content(), path);
                refused += usize::from(
                    matches!(&observation, Observation::Error(error) if error.content.starts_with("Invalid path")),
                );
                harmless += usize::from(observation.content().contains("harmless"));
            }
            for name in runtime.list_files(Some("swapped")).unwrap_or_default() {
                assert!(!name.ends_with(ONLY_OUTSIDE), "{name}");
            }
            if let Ok(packed) = runtime.copy_from("swapped") {
                let mut zip = zip::ZipArchive::new(fs::File::open(&packed).unwrap()).unwrap();
                for index in 0..zip.len() {
                    let mut content = Vec::new();
                    std::io::copy(&mut zip.by_index(index).unwrap(), &mut content).unwrap();
                    assert_quiet(&String::from_utf8_lossy(&content), "copy_from");
                }
            }
            let _refused = runtime.copy_to(&source, path, false);
        }
    }
    stop.store(true, Relaxed);
    let swaps = swapper.join().unwrap();
    assert_eq!(cage.survey(), before, "after {swaps} swaps");
    assert!(swaps > 100 && refused > 0 && harmless > 0, "{swaps} swaps, {refused} refused, {harmless} read");
}
