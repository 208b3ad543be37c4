//! What follows from the settings (configuration 7).

use std::path::{Component, Path, PathBuf};

use super::Loader;
use crate::{
    note::{Note, NoteKind, Place},
    origin::Origin,
};

/// The workspace inside of a sandbox.
const WORKSPACE: &str = "/workspace";

/// What the derived values of the workspace follow from.
const FROM_VOLUMES: &str = "`volumes` in [sandbox]";

impl Loader<'_> {
    pub(super) fn finalize(&mut self, on_macos: bool) {
        self.workspace();
        for llm in self.config.llms.values_mut() {
            llm.log_completions_folder = absolute(&self.options.current_directory, &llm.log_completions_folder);
        }
        if on_macos && self.config.sandbox.use_host_network {
            let message = "`use_host_network` in [sandbox] needs Docker Desktop 4.29.0 or newer on macOS";
            self.note(Note::warning(NoteKind::Conflict, message));
        }
        match self.config.runtime.to_lowercase().as_str() {
            "cli" => self.without_plugins(),
            "eventstream" => {
                let note = Note::hint(NoteKind::Deprecated, "the runtime name `eventstream` is deprecated");
                let note = Note { place: self.place("core", "runtime"), ..note };
                self.note(note.suggest(Some("use `docker`".to_owned())));
            }
            _ => {}
        }
    }

    fn place(&self, section: &str, key: &str) -> Option<Place> {
        match self.origins.of(section, key) {
            Origin::Set(place) => Some(place.clone()),
            Origin::Default | Origin::Derived { .. } => None,
        }
    }

    fn workspace(&mut self) {
        if let Some(volumes) = self.config.sandbox.volumes.clone() {
            self.volumes(&volumes);
        } else if self.config.workspace_base.is_some() || self.config.workspace_mount_path.is_some() {
            self.deprecated_workspace();
        }
    }

    fn volumes(&mut self, volumes: &str) {
        let mounts: Vec<Vec<&str>> = volumes.split(',').map(|mount| mount.split(':').collect()).collect();
        let workspace = mounts.iter().find(|parts| parts.get(1) == Some(&WORKSPACE)).and_then(|parts| parts.first());
        if let Some(host) = workspace {
            let host = absolute(&self.options.current_directory, host);
            self.config.workspace_mount_path = Some(host.clone());
            self.config.workspace_base = Some(host);
            WORKSPACE.clone_into(&mut self.config.workspace_mount_path_in_sandbox);
            for key in ["workspace_mount_path", "workspace_base", "workspace_mount_path_in_sandbox"] {
                self.derived("core", key, FROM_VOLUMES);
            }
        } else {
            for key in ["workspace_mount_path", "workspace_base"] {
                if *self.origins.of("core", key) != Origin::Default {
                    self.derived("core", key, FROM_VOLUMES);
                }
            }
            self.config.workspace_mount_path = None;
            self.config.workspace_base = None;
        }
        for parts in mounts.iter().filter(|parts| !(2..=3).contains(&parts.len())) {
            let message = format!(
                "Invalid mount format in sandbox.volumes: {}. Expected format: 'host_path:container_path[:mode]', e.g. \
                 '/my/host/dir:/workspace:rw'",
                parts.join(":")
            );
            let note = Note::error(NoteKind::WrongValue, message);
            self.note(Note { place: self.place("sandbox", "volumes"), ..note });
        }
    }

    fn deprecated_workspace(&mut self) {
        let current = &self.options.current_directory;
        if let Some(base) = &self.config.workspace_base {
            let base = absolute(current, base);
            self.config.workspace_base = Some(base.clone());
            if self.config.workspace_mount_path.is_none() {
                self.config.workspace_mount_path = Some(base);
                self.derived("core", "workspace_mount_path", "`workspace_base`");
            }
        }
        let Some(rewrite) = self.config.workspace_mount_rewrite.clone().filter(|rewrite| !rewrite.is_empty()) else {
            return;
        };
        let mut parts = rewrite.split(':');
        let (Some(from), Some(to)) = (parts.next(), parts.next()) else {
            let note = Note::error(NoteKind::WrongValue, "`workspace_mount_rewrite` must have the form FROM:TO");
            return self.note(Note { place: self.place("core", "workspace_mount_rewrite"), ..note });
        };
        let base = match &self.config.workspace_base {
            Some(base) if !base.is_empty() => base.clone(),
            _ => absolute(&self.options.current_directory, ""),
        };
        self.config.workspace_mount_path = Some(base.replace(from, to));
        self.derived("core", "workspace_mount_path", "`workspace_mount_rewrite`");
    }

    /// The runtime without a sandbox server has neither IPython nor a browser.
    fn without_plugins(&mut self) {
        let mut changed = Vec::new();
        for (name, agent) in &mut self.config.agents {
            let section = super::file::full_name(crate::model::BASE_AGENT, name);
            for (key, setting) in
                [("enable_jupyter", &mut agent.enable_jupyter), ("enable_browsing", &mut agent.enable_browsing)]
            {
                if std::mem::take(setting) {
                    changed.push((section.clone(), key));
                }
            }
        }
        for (section, key) in changed {
            self.derived(&section, key, "`runtime` in [core], which is `cli`");
        }
    }
}

/// The path from the root, without `.` and `..`. Links are not looked at.
pub(super) fn absolute(current_directory: &Path, path: &str) -> String {
    let mut absolute = PathBuf::new();
    for component in current_directory.join(path).components() {
        match component {
            Component::ParentDir => {
                absolute.pop();
            }
            Component::CurDir => {}
            other => absolute.push(other),
        }
    }
    absolute.to_string_lossy().into_owned()
}
