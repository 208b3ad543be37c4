//! Changes written to files.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use gloveport_mcp_install::{InstallError, Program, install, uninstall};

use crate::{File, entry, small};

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_new_file_is_its_owners_alone_and_gets_its_directories() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/mcp.json");
    let change = install(Program::Cursor, &path, &entry()).unwrap();
    assert!(!path.exists());
    change.apply().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), change.after);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_file_keeps_its_permissions_and_a_link_stays_one() {
    let file = File::of("{\"mcpServers\":{}}");
    fs::set_permissions(&file.path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = file.path.with_file_name("link");
    symlink("config", &link).unwrap();
    let change = install(Program::Cursor, &link, &small()).unwrap();
    change.apply().unwrap();
    assert!(link.is_symlink());
    assert_eq!(file.text(), change.after);
    assert_eq!(mode(&file.path), 0o640);
    uninstall(Program::Cursor, &link, "tools").unwrap().apply().unwrap();
    assert_eq!(file.text(), "{\"mcpServers\":{}}");
    assert_eq!(fs::read_dir(file.path.parent().unwrap()).unwrap().count(), 2);
}

#[test]
fn what_somebody_else_wrote_in_the_meantime_is_not_overwritten() {
    let file = File::of("{}");
    let change = install(Program::Cursor, &file.path, &small()).unwrap();
    fs::write(&file.path, "{\"a\":1}").unwrap();
    let changed = format!("{} was changed by another program in the meantime: try again", file.path.display());
    assert_eq!(change.apply().unwrap_err().to_string(), changed);
    assert_eq!(file.text(), "{\"a\":1}");
    fs::remove_file(&file.path).unwrap();
    assert_eq!(change.apply().unwrap_err().to_string(), changed);
    assert!(!file.path.exists());

    let directory = file.path.parent().unwrap();
    fs::remove_dir(directory).unwrap();
    assert_eq!(change.apply().unwrap_err().to_string(), changed);
    assert!(!directory.exists());
    fs::create_dir(directory).unwrap();

    let new = install(Program::Cursor, &file.path, &small()).unwrap();
    fs::write(&file.path, "").unwrap();
    assert!(matches!(new.apply(), Err(InstallError::Changed(path)) if path == file.path));
    assert_eq!(file.text(), "");
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    let file = File::missing();
    for program in Program::ALL {
        let change = uninstall(program, &file.path, "tools").unwrap();
        assert!(change.is_empty());
        assert_eq!((change.diff(), change.after.as_str()), (String::new(), ""));
        change.apply().unwrap();
        assert!(!file.path.exists());
    }
    let file = File::of("{}");
    let before = file.path.metadata().unwrap().ino();
    uninstall(Program::Cursor, &file.path, "tools").unwrap().apply().unwrap();
    assert_eq!(file.path.metadata().unwrap().ino(), before);
}

#[test]
fn links_that_lead_nowhere_and_what_is_no_regular_file_are_errors() {
    let file = File::missing();
    symlink("nowhere", &file.path).unwrap();
    let error = install(Program::Cursor, &file.path, &small()).unwrap_err().to_string();
    let path = file.path.display();
    assert_eq!(error, format!("{path} is a link to a file that does not exist: create that file or remove the link"));

    let directory = file.path.parent().unwrap();
    let socket = directory.join("socket");
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let fifo = directory.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [directory, &socket, &fifo, std::path::Path::new("/dev/zero")] {
        let error = install(Program::Cursor, path, &small()).unwrap_err();
        assert!(matches!(error, InstallError::Read { .. }), "{error}");
    }
    // A file is in the place of a directory.
    let plain = directory.join("plain");
    fs::write(&plain, "").unwrap();
    let below = install(Program::Cursor, &plain.join("x"), &small());
    assert!(matches!(below, Err(InstallError::Read { .. })), "{below:?}");
}

#[test]
fn a_diff_shows_what_changes_with_three_lines_around_it() {
    let file = File::of("a = 1\nb = 2\nc = 3\nd = 4");
    let change = install(Program::Codex, &file.path, &small()).unwrap();
    let path = file.path.display();
    let expected = format!(
        "--- {path}\n+++ {path}\n@@ -1,4 +1,8 @@\n a = 1\n b = 2\n c = 3\n-d = 4\n\\ No newline at end of file\n+d = 4\n+\n+[mcp_servers.tools]\n+command = \"t\"\n+args = []\n\\ No newline at end of file\n"
    );
    assert_eq!(change.diff(), expected);
    let new = install(Program::Codex, &file.path.with_file_name("new"), &small()).unwrap();
    assert!(new.diff().starts_with("--- /dev/null\n+++ "), "{}", new.diff());
}
