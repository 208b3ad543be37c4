//! Why Docker cannot be used, for `doctor`.

use std::{fs, path::Path};

use gloveport_docker_engine::EngineError;
use gloveport_provider::Check;

use crate::{fault, inner::Inner};

/// Oldest version of the engine's interface with all that is used: Docker 19.03.
const OLDEST: (u32, u32) = (1, 40);
/// Space below which an image may not fit.
const LITTLE_SPACE: u64 = 2 * 1024 * 1024 * 1024;

impl Inner {
    pub(crate) async fn check(&self) -> Vec<Check> {
        let mut checks = vec![self.engine_check().await];
        if checks.iter().any(|check| !check.works) {
            return checks;
        }
        checks.extend(self.host_check().await);
        checks.push(self.program());
        checks
    }

    async fn engine_check(&self) -> Check {
        let name = "engine".to_owned();
        let about = match self.engine.about().await {
            Ok(about) => about,
            Err(error) => {
                let remedy = match &error {
                    EngineError::Unreachable { hint, .. } | EngineError::Access { hint, .. } => hint.clone(),
                    EngineError::Timeout { .. } => "restart the engine (systemctl restart docker)".to_owned(),
                    _ => "look at the engine's log (journalctl -u docker)".to_owned(),
                };
                let found = fault::of(error).to_string();
                // What to do is told apart.
                let found = found.strip_suffix(&format!("; {remedy}")).unwrap_or(&found).to_owned();
                return Check { name, works: false, found, remedy: Some(remedy) };
            }
        };
        let kind = if about.podman { "Podman" } else { "Docker" };
        let found = format!(
            "{kind} {} (interface {}) at {}, {}",
            about.version,
            about.api,
            self.engine.endpoint(),
            about.architecture
        );
        let parts: Vec<u32> = about.api.split('.').filter_map(|part| part.parse().ok()).collect();
        if about.system != "linux" && !about.system.is_empty() {
            let remedy = "switch the engine to Linux containers".to_owned();
            return Check { name, works: false, found: format!("{found}, for {}", about.system), remedy: Some(remedy) };
        }
        if !parts.is_empty() && parts < vec![OLDEST.0, OLDEST.1] {
            let remedy = format!("use an engine with interface {}.{} (Docker 19.03) or newer", OLDEST.0, OLDEST.1);
            return Check { name, works: false, found, remedy: Some(remedy) };
        }
        Check { name, works: true, found, remedy: None }
    }

    /// What the engine says about its machine.
    async fn host_check(&self) -> Vec<Check> {
        let Ok(docker) = self.engine.docker().await else { return Vec::new() };
        let info = match self.engine.ask("describe its machine", docker.info()).await {
            Ok(info) => info,
            Err(error) => {
                let remedy = Some("look at the engine's log (journalctl -u docker)".to_owned());
                let found = fault::of(error).to_string();
                return vec![Check { name: "machine".to_owned(), works: false, found, remedy }];
            }
        };
        let rootless = info.security_options.iter().flatten().any(|option| option.contains("rootless"));
        let found = format!(
            "storage {}, cgroups v{}{}, {} containers, {} images",
            info.driver.as_deref().unwrap_or("unknown"),
            info.cgroup_version.map_or_else(|| "1".to_owned(), |version| version.to_string()),
            if rootless { ", rootless" } else { "" },
            info.containers.unwrap_or(0),
            info.images.unwrap_or(0),
        );
        let mut checks = vec![Check { name: "machine".to_owned(), works: true, found, remedy: None }];
        if info.memory_limit == Some(false) {
            checks.push(Check {
                name: "limits".to_owned(),
                works: false,
                found: "the engine cannot limit memory".to_owned(),
                remedy: Some(
                    "let the engine use the cgroup controllers (for a rootless one: delegate them)".to_owned(),
                ),
            });
        }
        let directory = info.docker_root_dir.filter(|_| self.engine.endpoint().address.is_local());
        let free = directory.and_then(|directory| gloveport_platform::free_space(Path::new(&directory)));
        if let Some(free) = free.filter(|free| *free < LITTLE_SPACE) {
            checks.push(Check {
                name: "disk".to_owned(),
                works: false,
                found: format!("{} MB are free where the engine keeps its data", free / 1_000_000),
                remedy: Some("free some space, for example with `docker system prune`".to_owned()),
            });
        }
        checks
    }

    /// The file that is put into containers.
    fn program(&self) -> Check {
        let path = &self.options.program;
        let name = "program for containers".to_owned();
        let remedy = Some("install gloveport where the engine may read it".to_owned());
        match fs::metadata(path) {
            Ok(meta) if gloveport_platform::is_executable(&meta) => {
                Check { name, works: true, found: path.display().to_string(), remedy: None }
            }
            Ok(_) => Check { name, works: false, found: format!("{} is no program", path.display()), remedy },
            Err(error) => Check { name, works: false, found: format!("{}: {error}", path.display()), remedy },
        }
    }
}
