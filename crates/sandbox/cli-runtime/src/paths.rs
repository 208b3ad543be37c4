//! The path of an action as one in the workspace (local-and-cli-runtime B5).

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_sys::reach::{Bounds, Reach};

use crate::error::CliError;

/// What agents call the workspace, wherever it is.
const VIRTUAL: &str = "/workspace";

/// The directory that file actions stay in.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// As it was given, but absolute.
    given: PathBuf,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) reach: Reach,
}

impl Workspace {
    /// Takes a directory, and makes it if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::Workspace { path: path.to_owned(), source };
        let given = std::path::absolute(path).map_err(failed)?;
        std::fs::create_dir_all(&given).map_err(failed)?;
        let bounds = Arc::new(Bounds::new(&given).map_err(failed)?);
        if given.to_str().is_none() || bounds.path().to_str().is_none() {
            // Actions name files in UTF-8.
            return Err(failed(io::Error::other("its path is not UTF-8")));
        }
        Ok(Self { given, reach: Reach::Beneath(Arc::clone(&bounds)), bounds })
    }

    /// Its absolute path, as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.given
    }

    /// Where a path leads: a path in the workspace, without links.
    ///
    /// This decides about the error only. What the result names may be another thing at any later moment; whoever opens
    /// it goes through the workspace's `reach`.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf, CliError> {
        if path.contains('\0') {
            return Err(CliError::NulByte);
        }
        let real = self.bounds.path();
        let mapped = if let Ok(rest) = Path::new(path).strip_prefix(&self.given) {
            real.join(rest)
        } else if let Ok(rest) = Path::new(path).strip_prefix(real) {
            real.join(rest)
        } else if let Ok(rest) = Path::new(path).strip_prefix(VIRTUAL) {
            real.join(rest)
        } else if path.starts_with('/') {
            return Err(CliError::NotInWorkspace { path: path.to_owned(), workspace: self.given.clone() });
        } else {
            real.join(path)
        };
        let resolved =
            self.bounds.resolve(&mapped).map_err(|source| CliError::Unresolved { path: mapped.clone(), source })?;
        if self.bounds.contains(&resolved) { Ok(resolved) } else { Err(self.traversal(path, resolved)) }
    }

    /// The refusal of a path, if that is what the error of a later step means: the path began to lead out of the
    /// workspace after it was looked at.
    pub(crate) fn refusal(&self, path: &str, error: &io::Error) -> Option<CliError> {
        if error.raw_os_error() != Some(rustix::io::Errno::XDEV.raw_os_error()) {
            return None;
        }
        Some(self.locate(path).err().unwrap_or_else(|| self.traversal(path, PathBuf::from(path))))
    }

    fn traversal(&self, path: &str, resolved: PathBuf) -> CliError {
        CliError::Traversal { path: path.to_owned(), resolved, workspace: self.given.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_row_of_the_path_table_holds() {
        let directory = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(directory.path()).unwrap();
        let workspace = Workspace::open(&top.join("ws")).unwrap();
        let w = workspace.path().display().to_string();
        std::fs::create_dir(top.join("ws-evil")).unwrap();
        symlink("/etc", top.join("ws/etc")).unwrap();
        symlink(top.join("ws/x"), top.join("ws/absolute")).unwrap();
        symlink("loop", top.join("ws/loop")).unwrap();
        let inside = |path: &str| Ok(format!("{w}{path}"));
        let invalid = |path: &str| Err(format!("Invalid path: {path}. You can only work with files in {w}."));
        let traversal = |path: &str, resolved: &str| {
            Err(format!(
                "Invalid path traversal: {path}. Path resolves outside the workspace. Resolved: {resolved}, Workspace: {w}"
            ))
        };
        let top = top.display().to_string();
        for (path, expected) in [
            ("/workspace", inside("")),
            ("/workspace/", inside("")),
            ("/workspace/x", inside("/x")),
            ("x", inside("/x")),
            ("./x/", inside("/x")),
            ("", inside("")),
            (".", inside("")),
            (&w.clone(), inside("")),
            (&format!("{w}/x/../y"), inside("/y")),
            (&format!("{w}//x"), inside("/x")),
            ("absolute", inside("/x")),
            ("missing/../x", inside("/x")),
            ("..%2f", inside("/..%2f")),
            ("..", traversal("..", &top)),
            ("/workspace/..", traversal("/workspace/..", &top)),
            ("/workspace/../ws-evil/f", traversal("/workspace/../ws-evil/f", &format!("{top}/ws-evil/f"))),
            ("etc/passwd", traversal("etc/passwd", "/etc/passwd")),
            ("/workspace/etc", traversal("/workspace/etc", "/etc")),
            (&format!("{w}-evil/f"), invalid(&format!("{w}-evil/f"))),
            ("/workspace-evil", invalid("/workspace-evil")),
            ("/workspaceevil/x", invalid("/workspaceevil/x")),
            ("/etc/passwd", invalid("/etc/passwd")),
            ("/", invalid("/")),
            ("/proc/self/cwd", invalid("/proc/self/cwd")),
            ("a\0b", Err("embedded null byte".to_owned())),
            ("loop", Err(format!("[Errno 40] Too many levels of symbolic links: '{w}/loop'"))),
        ] {
            let found =
                workspace.locate(path).map(|path| path.display().to_string()).map_err(|error| error.to_string());
            assert_eq!(found, expected, "{path:?}");
        }
    }

    #[test]
    fn a_workspace_that_is_a_link_is_known_by_both_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(directory.path()).unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        symlink("real", top.join("link")).unwrap();
        let workspace = Workspace::open(&top.join("link")).unwrap();
        for path in ["f".to_owned(), format!("{}/link/f", top.display()), format!("{}/real/f", top.display())] {
            assert_eq!(workspace.locate(&path).unwrap(), top.join("real/f"), "{path}");
        }
        let refused = workspace.locate("/etc").unwrap_err().to_string();
        assert_eq!(refused, format!("Invalid path: /etc. You can only work with files in {}/link.", top.display()));
    }
}
