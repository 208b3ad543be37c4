//! A directory as one file.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use flate2::read::GzDecoder;
use gloveport_repository::{Archive, ArchiveError, ArchiveRequest, DEFAULT_EXCLUDES, Format, Origin, archive};
use tokio_util::sync::CancellationToken;

use crate::{limits::with_git, place::Place};

fn request(place: &Place, below: &str, format: Format) -> ArchiveRequest {
    let excludes = DEFAULT_EXCLUDES.map(str::to_owned).to_vec();
    ArchiveRequest { path: place.path(below), format, base: None, excludes }
}

async fn made(place: &Place, request: ArchiveRequest) -> Result<Archive, ArchiveError> {
    archive(&place.surroundings(), request, &CancellationToken::new()).await
}

async fn patch(place: &Place, below: &str, base: Option<&str>) -> (Archive, String) {
    let request = ArchiveRequest { base: base.map(str::to_owned), ..request(place, below, Format::GitDelta) };
    let mut archive = made(place, request).await.unwrap();
    let mut text = Vec::new();
    archive.content.read_to_end(&mut text).unwrap();
    assert_eq!(archive.size, text.len() as u64);
    (archive, String::from_utf8_lossy(&text).into_owned())
}

/// The entries of a compressed tar stream: names, with the content of files.
async fn entries(place: &Place, request: ArchiveRequest) -> BTreeMap<String, Option<String>> {
    let archive = made(place, request).await.unwrap();
    let mut tar = tar::Archive::new(GzDecoder::new(archive.content));
    let mut found = BTreeMap::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        let is_file = entry.header().entry_type().is_file();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(found.insert(name, is_file.then_some(text)).is_none());
    }
    found
}

fn names(place: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_patch_has_all_that_changed_and_makes_a_clone_the_same() {
    let place = Place::new();
    place.repository("r");
    let head = place.git("r", &["rev-parse", "HEAD"]);
    place.git("", &["clone", "-q", "r", "clone"]);
    place.write("r/changed", "three\n");
    place.write("r/binary", [0, 1, 2, 255]);
    place.write("r/deep/a b é", "new\n");
    place.write("r/ignored", "");
    place.write("r/build/out", "excluded");
    place.write("r/x.pyc", "excluded");
    fs::remove_file(place.path("r/gone")).unwrap();
    symlink("kept", place.path("r/link")).unwrap();
    let before = place.git("r", &["status", "--porcelain", "--untracked-files=all"]);
    let objects = names(&place.path("r/.git/objects"));
    let (archive, text) = patch(&place, "r", Some("HEAD")).await;
    assert_eq!(archive.base, Some((head.clone(), "HEAD".to_owned())));
    let origin = Origin {
        remote: None,
        branch: "main".to_owned(),
        head: Some(head),
        root: place.path("r").to_string_lossy().into_owned(),
    };
    assert_eq!((archive.name.as_str(), archive.origin), ("r", Some(origin)));
    assert!(!text.contains("excluded") && !text.contains("ignored"), "{text}");
    // Nothing of it is left in the repository.
    assert_eq!(place.git("r", &["status", "--porcelain", "--untracked-files=all"]), before);
    assert_eq!(names(&place.path("r/.git/objects")), objects);
    let mut apply = Command::new("git")
        .args(["apply", "-"])
        .current_dir(place.path("clone"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    apply.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(apply.wait().unwrap().success(), "{text}");
    for name in ["changed", "binary", "deep/a b é", "link"] {
        let both = ["r", "clone"].map(|tree| fs::read(place.path(tree).join(name)).unwrap());
        assert_eq!(both[0], both[1], "{name}");
    }
    assert!(!place.path("clone/gone").exists());
}

#[tokio::test]
async fn the_base_is_what_was_asked_for_or_what_is_published() {
    let place = Place::new();
    place.repository("r");
    let (archive, text) = patch(&place, "r", None).await;
    // Nothing is published: all of it is new.
    assert!(archive.base.is_none() && text.contains("new file mode"), "{text}");
    fs::create_dir(place.path("bare")).unwrap();
    place.git("bare", &["init", "-q", "--bare"]);
    place.git("r", &["remote", "add", "origin", "../bare"]);
    place.git("r", &["push", "-q", "origin", "main"]);
    place.git("r", &["checkout", "-q", "-b", "work"]);
    place.write("r/on-work", "");
    place.commit("r", "work");
    let published = place.git("r", &["rev-parse", "origin/main"]);
    let (archive, text) = patch(&place, "r", None).await;
    assert_eq!(archive.base, Some((published.clone(), "auto".to_owned())));
    assert!(text.contains("on-work") && !text.contains("kept"), "{text}");
    // A detached head is its own base.
    place.git("r", &["checkout", "-q", "--detach"]);
    let (archive, text) = patch(&place, "r", None).await;
    assert_eq!((archive.base.unwrap().1.as_str(), text.as_str()), ("auto", ""));
    assert_eq!(archive.origin.unwrap().branch, "DETACHED");
    for (base, expected) in [
        ("-x", "base_ref must not start with '-'"),
        ("nowhere", "base_ref 'nowhere' could not be resolved"),
        ("", "base_ref '' could not be resolved"),
        ("HEAD..HEAD", "base_ref 'HEAD..HEAD' could not be resolved"),
    ] {
        let request = ArchiveRequest { base: Some(base.to_owned()), ..request(&place, "r", Format::GitDelta) };
        assert_eq!(made(&place, request).await.unwrap_err().to_string(), expected);
    }
}

#[tokio::test]
async fn the_only_repository_below_a_directory_is_meant() {
    let place = Place::new();
    place.repository("w/deep/r");
    place.write("w/.hidden/.git/HEAD", "");
    place.write("w/node_modules/x/.git/HEAD", "");
    let (archive, _) = patch(&place, "w", Some("HEAD")).await;
    assert_eq!(
        (archive.name.as_str(), archive.origin.unwrap().root),
        ("r", place.path("w/deep/r").display().to_string())
    );
    place.repository("w/other");
    let refused = made(&place, request(&place, "w", Format::GitDelta)).await.unwrap_err().to_string();
    assert_eq!(refused, format!("Not a git repository: Not a git repository: {}", place.path("w").display()));
    let all = entries(&place, request(&place, "w", Format::TarGz)).await;
    assert!(all.contains_key("w/other/kept") && all.contains_key("w/deep/r/kept"), "{all:?}");
}

#[tokio::test]
async fn a_tar_stream_has_files_and_directories_and_no_secrets() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["remote", "add", "origin", "https://me:secret@example.org/x?token=a&b=1"]);
    place.write("r/.git/credentials", "secret");
    place.write("r/.git/modules/m/config", "secret");
    place.write("r/node_modules/x", "");
    place.write("r/docs/a/b", "");
    fs::create_dir(place.path("r/empty")).unwrap();
    symlink("/etc/passwd", place.path("r/link")).unwrap();
    place.write("r/run", "#!/bin/sh\n");
    fs::set_permissions(place.path("r/run"), fs::Permissions::from_mode(0o755)).unwrap();
    let made_one = made(&place, request(&place, "r", Format::TarGz)).await.unwrap();
    let remote = made_one.origin.unwrap().remote.unwrap();
    assert_eq!(remote, "https://****@example.org/x?token=%3Credacted%3E&b=1");
    let all = entries(&place, request(&place, "r", Format::TarGz)).await;
    let expected = [
        "r/",
        "r/.gitignore",
        "r/archive_manifest.json",
        "r/changed",
        "r/docs/",
        "r/docs/a/",
        "r/docs/a/b",
        "r/empty/",
        "r/gone",
        "r/kept",
        "r/run",
    ];
    assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    let manifest: serde_json::Value = serde_json::from_str(all["r/archive_manifest.json"].as_ref().unwrap()).unwrap();
    assert_eq!(
        (&manifest["file_count"], &manifest["source"], &manifest["total_bytes"]),
        (&6.into(), &"r".into(), &30.into())
    );
    let excludes = vec!["docs/*".to_owned(), "run".to_owned()];
    let all = entries(&place, ArchiveRequest { excludes, ..request(&place, "r", Format::TarGz) }).await;
    assert!(all.contains_key("r/.git/HEAD") && all.contains_key("r/node_modules/x") && all.contains_key("r/docs/"));
    for left_out in
        ["r/.git/config", "r/.git/credentials", "r/.git/modules/m/config", "r/.git/logs/", "r/docs/a/", "r/run"]
    {
        assert!(!all.contains_key(left_out), "{left_out}");
    }
    // A file of that name is the workspace's own.
    place.write("r/archive_manifest.json", "mine");
    let all = entries(&place, request(&place, "r", Format::TarGz)).await;
    assert_eq!(all["r/archive_manifest.json"].as_deref(), Some("mine"));
}

#[tokio::test]
async fn one_that_nobody_waits_for_is_given_up_and_patterns_are_bounded() {
    let place = Place::new();
    place.write("w/a", "");
    let stop = CancellationToken::new();
    stop.cancel();
    let given_up = archive(&place.surroundings(), request(&place, "w", Format::TarGz), &stop).await;
    assert!(given_up.unwrap_err().to_string().contains("nobody waits"));
    for excludes in [vec!["x".to_owned(); 1001], vec!["x".repeat(4097)]] {
        let refused = made(&place, ArchiveRequest { excludes, ..request(&place, "w", Format::TarGz) }).await;
        assert!(refused.unwrap_err().to_string().contains("patterns"));
    }
}

#[tokio::test]
async fn what_git_has_written_for_one_that_is_given_up_goes_though_it_still_writes() {
    let place = Place::new();
    place.repository("r");
    let mark = place.path("mark");
    let script = format!(
        "case \"$*\" in\n*' add '*)\n    echo \"$GIT_INDEX_FILE\" >{0}.new; mv {0}.new {0}; trap '' TERM HUP\n    \
         while :; do mkdir -p \"${{GIT_INDEX_FILE%/*}}/more/$((n += 1))\"; done\n    ;;\n*) exec \"$GIT\" \"$@\" ;;\nesac",
        mark.display()
    );
    let surroundings = with_git(&place, &script);
    let stop = CancellationToken::new();
    let request = request(&place, "r", Format::GitDelta);
    let begun = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = archive(&surroundings, request, &stop) => panic!("it has ended: {ended:?}"),
        begun = tokio::time::timeout(Duration::from_secs(20), begun) => begun.unwrap(),
    }
    let index = fs::read_to_string(&mark).unwrap();
    let directory = Path::new(index.trim()).parent().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while directory.exists() {
        assert!(Instant::now() < deadline, "{} is left", directory.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_repository_has_no_program_run_and_nothing_read_that_is_no_file() {
    let place = Place::new();
    place.repository("r");
    let mark = place.path("mark");
    let touch = format!("touch {}", mark.display());
    for name in ["core.fsmonitor", "diff.external", "core.pager", "diff.evil.textconv"] {
        place.git("r", &["config", name, &touch]);
    }
    place.git("r", &["config", "diff.noprefix", "true"]);
    place.git("r", &["config", "color.ui", "always"]);
    place.write("r/.gitattributes", "* diff=evil\n");
    let hook = place.path("r/.git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    place.write("r/changed", "three\n");
    let (_, text) = patch(&place, "r", Some("HEAD")).await;
    assert!(text.contains("diff --git a/changed b/changed") && !text.contains('\u{1b}'), "{text}");
    assert!(!mark.exists());
    // A pipe nobody writes to in place of the index holds up nothing.
    fs::rename(place.path("r/.git/index"), place.path("index")).unwrap();
    Command::new("mkfifo").arg(place.path("r/.git/index")).status().unwrap();
    let refused = made(&place, request(&place, "r", Format::GitDelta)).await.unwrap_err();
    assert!(refused.to_string().contains("not a file"), "{refused}");
}
