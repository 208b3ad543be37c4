//! The settings of the workspace (`ipython-and-plugins` 4.3).

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};

use gloveport_plugin::PluginError;
use gloveport_sys::{
    Identity,
    reach::{Bounds, Reach},
    replace::NewFile,
};
use rustix::fs::{AtFlags, Gid, OFlags, Uid};

/// Where they are in the workspace.
const FILE: &str = ".vscode/settings.json";

/// A dark theme, no page at the start, and no chat in the title bar.
const SETTINGS: &str = r#"{
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.startupEditor": "none",
    "chat.commandCenter.enabled": false
}
"#;

/// Everybody may change them, whoever the agent works as.
const MODE: u32 = 0o666;

/// Writes the settings of a workspace, whatever was there before. What the links of a workspace lead to outside of it is
/// never written to: they come from anybody's repository.
pub(crate) fn write(workspace: &Path, identity: Option<&Identity>) -> Result<(), PluginError> {
    let path = workspace.join(FILE);
    write_at(workspace, &path, identity).map_err(|error| {
        let reason = format!("cannot write {}: {error}", path.display());
        let remedy = if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) {
            "a link leads out of the workspace; remove it, or start the sandbox without the plugin vscode"
        } else {
            "make it writable, set WORKSPACE_BASE to another directory, or start the sandbox without the plugin vscode"
        };
        PluginError::new(reason, remedy)
    })
}

fn write_at(workspace: &Path, path: &Path, identity: Option<&Identity>) -> io::Result<()> {
    fs::create_dir_all(workspace)?;
    let bounds = Arc::new(Bounds::new(workspace)?);
    let directory = path.parent().unwrap_or(workspace);
    let made = bounds.open(directory, OFlags::PATH).is_err();
    let opened = bounds.make_directories(directory).map_err(|obstacle| obstacle.source)?;
    let owner = identity.map(|identity| (identity.uid, identity.gid));
    if let (true, Some((uid, gid))) = (made, owner) {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        rustix::fs::chownat(&opened, "", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    let reach = Reach::Beneath(Arc::clone(&bounds));
    reach.write(path, SETTINGS.as_bytes(), NewFile { mode: Some(MODE), owner })?;
    let file = reach.open_to_read(path)?;
    if file.metadata()?.permissions().mode() & 0o7777 != MODE {
        file.set_permissions(Permissions::from_mode(MODE))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn the_settings_are_written_over_what_is_there_and_everybody_may_change_them() {
        let directory = tempfile::tempdir().unwrap();
        for before in
            [None, Some("old"), Some("a much longer text than the one that takes its place, so a rest would be seen")]
        {
            let workspace = directory.path().join(format!("{}/work space", before.map_or(0, str::len)));
            if let Some(before) = before {
                fs::create_dir_all(workspace.join(".vscode")).unwrap();
                fs::write(workspace.join(FILE), before).unwrap();
                fs::set_permissions(workspace.join(FILE), Permissions::from_mode(0o600)).unwrap();
            }
            write(&workspace, None).unwrap();
            let read = fs::read(workspace.join(FILE)).unwrap();
            let read: serde_json::Value = serde_json::from_slice(&read).unwrap();
            let expected = serde_json::json!({
                "workbench.colorTheme": "Default Dark Modern",
                "workbench.startupEditor": "none",
                "chat.commandCenter.enabled": false,
            });
            assert_eq!(read, expected);
            assert_eq!(fs::metadata(workspace.join(FILE)).unwrap().mode() & 0o7777, 0o666, "{before:?}");
        }
    }

    #[test]
    fn the_settings_belong_to_the_user_where_they_are_made() {
        if !rustix::process::geteuid().is_root() {
            // Only root can make files of others.
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity { uid: 54321, gid: 54322, groups: Vec::new() };
        write(directory.path(), Some(&identity)).unwrap();
        for path in [".vscode", FILE] {
            let found = fs::metadata(directory.path().join(path)).unwrap();
            assert_eq!((found.uid(), found.gid()), (54321, 54322), "{path}");
        }
    }

    #[test]
    fn what_is_in_the_way_is_named_with_what_to_do() {
        let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = |workspace: &str| directory.path().join(workspace).join(FILE).display().to_string();
        fs::create_dir(directory.path().join("linked")).unwrap();
        symlink(outside.path(), directory.path().join("linked/.vscode")).unwrap();
        fs::create_dir(directory.path().join("blocked")).unwrap();
        fs::write(directory.path().join("blocked/.vscode"), "").unwrap();
        for (workspace, expected) in [
            (
                "linked",
                "Invalid cross-device link (os error 18); a link leads out of the workspace; remove it, or start the \
                 sandbox without the plugin vscode",
            ),
            (
                "blocked",
                "File exists (os error 17); make it writable, set WORKSPACE_BASE to another directory, or start the \
                 sandbox without the plugin vscode",
            ),
        ] {
            let error = write(&directory.path().join(workspace), None).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot write {}: {expected}", file(workspace)));
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
