//! The microagents of a repository and of its owner (runtime-interface 13.1, 13.2).

use std::fs::File;

use gloveport_archive::{ArchiveLimits, zip};
use gloveport_protocol::RunAction;

use crate::{
    Runtime, RuntimeError, blocking,
    git_providers::Wanted,
    microagents::{self, Microagent},
    quote, repository,
};

/// Most files of a directory of microagents.
const MOST_FILES: u64 = 10_000;
/// Most bytes of them together.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

impl Runtime {
    /// The microagents for a repository: those of its owner, then its instructions in the old form, then its own.
    /// Without a repository those of the workspace.
    ///
    /// A directory of which one file is wrong gives none, and is reported in the log.
    pub async fn microagents(&self, repository: Option<&str>) -> Result<Vec<Microagent>, RuntimeError> {
        let workspace = self.workspace_root().trim_end_matches('/').to_owned();
        let root = match repository {
            Some(name) => format!("{workspace}/{}", repository::last_part(name)),
            None => workspace.clone(),
        };
        let mut found = Vec::new();
        if let Some(name) = repository {
            found.extend(self.owner_microagents(name, &workspace).await?);
        }
        if let Some(instructions) = self.old_instructions(&workspace, &root).await? {
            found.push(instructions);
        }
        found.extend(self.microagents_in(&format!("{root}/.openhands/microagents")).await?);
        Ok(found)
    }

    async fn old_instructions(&self, workspace: &str, root: &str) -> Result<Option<Microagent>, RuntimeError> {
        const NAME: &str = ".openhands_instructions";
        let mut text = self.read_text(&format!("{workspace}/{NAME}")).await?;
        if text.is_none() && root != workspace {
            text = self.read_text(&format!("{root}/{NAME}")).await?;
        }
        Ok(text.map(|text| Microagent::legacy(&text)))
    }

    /// The microagents in a directory of the sandbox.
    async fn microagents_in(&self, directory: &str) -> Result<Vec<Microagent>, RuntimeError> {
        if self.list_files(Some(directory)).await?.is_empty() {
            return Ok(Vec::new());
        }
        let zip_file = self.copy_from(directory).await?;
        let loaded = blocking(move || {
            let made = tempfile::Builder::new().prefix("gloveport-microagents-").tempdir();
            let made =
                made.map_err(|source| RuntimeError::File { action: "make", path: std::env::temp_dir(), source })?;
            let open = |source| RuntimeError::File { action: "open", path: zip_file.to_path_buf(), source };
            // Two levels down, so that what lies beside the directory is not taken for a part of the repository.
            let inner = made.path().join("repository/.openhands/microagents");
            std::fs::create_dir_all(&inner).map_err(|source| RuntimeError::File {
                action: "make",
                path: inner.clone(),
                source,
            })?;
            let limits = ArchiveLimits { files: MOST_FILES, bytes: MOST_BYTES, ..ArchiveLimits::default() };
            zip::unpack(&File::open(&zip_file).map_err(open)?, &inner, &limits)?;
            Ok(microagents::load_directory(&inner))
        });
        match loaded.await? {
            Ok(found) => Ok(found.into_values().collect()),
            Err(error) => {
                tracing::error!(sid = self.sid(), %error, directory, "microagents are not used");
                Ok(Vec::new())
            }
        }
    }

    /// The microagents that the owner of a repository keeps for all of them. Whatever fails gives none.
    async fn owner_microagents(&self, repository: &str, workspace: &str) -> Result<Vec<Microagent>, RuntimeError> {
        if repository.split('/').filter(|part| !part.is_empty()).count() < 2 {
            tracing::warn!(sid = self.sid(), repository, "the name of a repository has an owner and a name");
            return Ok(Vec::new());
        }
        // Whatever fails means that it is neither of the two providers with rules of their own.
        let resolved = self.session.providers.resolve(repository, Wanted::Optional).await;
        let provider = resolved.ok().map(|repository| repository.provider);
        let Some(organisation) = microagents::org_config_repository(provider, repository) else {
            return Ok(Vec::new());
        };
        let url = match self.clone_url(&organisation.repository, Wanted::Optional).await {
            Ok(url) => url,
            Err(error) => {
                tracing::debug!(sid = self.sid(), %error, "the owner of the repository has no microagents");
                return Ok(Vec::new());
            }
        };
        let clone = format!("{workspace}/org_openhands_{}", organisation.org);
        if !self.shallow_clone(&url, &clone).await? {
            tracing::info!(sid = self.sid(), repository = organisation.repository, "no microagents of the owner");
            return Ok(Vec::new());
        }
        let found = self.microagents_in(&format!("{clone}/microagents")).await;
        let remove = RunAction { hidden: true, ..RunAction::new(format!("rm -rf {}", quote::bash_word(&clone))) };
        let _removed = self.command(remove).await?;
        found
    }
}
