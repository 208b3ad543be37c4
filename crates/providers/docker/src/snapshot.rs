//! The files of a sandbox as an image, and sandboxes made from it.
//!
//! An engine writes into the image of a container all that the container was configured with: the key of its server, the
//! labels by which we find it. So an image is committed without a name, and then told to the engine once more: the same
//! layers, under the configuration of the image that the sandbox was made from. Where the engine cannot do that (Podman,
//! and Docker with the image store of containerd), the commit itself is made with these values emptied, and looked at.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bollard::{
    models::{ContainerConfig, ContainerInspectResponse, ImageInspect, ImageSummary},
    query_parameters::{
        CommitContainerOptionsBuilder, ImportImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
        TagImageOptionsBuilder,
    },
};
use futures_util::StreamExt as _;
use gloveport_docker_engine::images;
use gloveport_provider::container::KEY;
use gloveport_provider::{
    MOST_SNAPSHOTS, Progress, ProviderError, Sandbox, SandboxId, SessionId, Settings, Snapshot, backend,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    fault::{self, NAME, failed, wrong},
    inner::Inner,
    names,
};

/// Repository of all snapshots.
const REPOSITORY: &str = "gloveport-snapshot";
/// What Podman puts before names of images that have no registry.
const PLACES: [&str; 2] = ["localhost/", "docker.io/library/"];
/// Longest tag of an image.
const LONGEST_TAG: usize = 128;
/// Limit of a commit, which writes all that the sandbox has changed.
const COMMIT: Duration = Duration::from_mins(30);
/// Label of a snapshot: its name.
const SNAPSHOT: &str = "gloveport.snapshot";
/// Label of a snapshot: the session that it was made of.
const OF_SESSION: &str = "gloveport.snapshot.session";
/// Label of a snapshot: when it was made, in seconds since 1970.
const MADE: &str = "gloveport.snapshot.created";

/// What the names of snapshots begin with through which forks are made, and how many random digits follow.
const OF_FORK: &str = "fork-";
const OF_FORK_RANDOM: usize = 16;

/// Variables that an engine sets itself, for each container anew.
const OF_ENGINE: [&str; 5] = ["HOME", "HOSTNAME", "PATH", "TERM", "container"];

impl Inner {
    /// Keeps the files of a sandbox as the image `gloveport-snapshot:NAME`.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        check_name(name)?;
        let image = format!("{REPOSITORY}:{name}");
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let look = docker.inspect_container(id.as_str(), None);
        let mut container = match self.engine.ask(&format!("look at the container `{id}`"), look).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Err(ProviderError::NotFound(id.clone())),
            Err(error) => return Err(fault::of(error)),
        };
        self.complete(&mut container).await?;
        if container.host_config.as_ref().is_some_and(|host| host.readonly_rootfs == Some(true)) {
            let what = "snapshots of a sandbox with a read-only root, whose files are in volumes".to_owned();
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        if images::inspect(&self.engine, &image).await.map_err(fault::of)?.is_some() {
            return Err(wrong("the name", format!("there is an image `{image}` already; take another name")));
        }
        let of = container.image.clone().unwrap_or_default();
        let base = images::inspect(&self.engine, &of).await.map_err(fault::of)?;
        let base = base.ok_or_else(|| failed("make a snapshot", format!("the image {of} of the sandbox is gone")))?;
        let made = self.commit(&container, &base, name, &image).await?;
        let named = self.name(&made, &container, &base, name, &image).await;
        // The layers belong to the named image by now, or to nobody.
        let options = RemoveImageOptionsBuilder::default().noprune(true).build();
        let removed = docker.remove_image(&made, Some(options), None);
        if named.as_ref().is_ok_and(|kept| !kept) || named.is_err() {
            match self.engine.ask("remove the unnamed image of a snapshot", removed).await {
                Err(error) if !error.is_not_found() => tracing::warn!(%error, "an image without a name is left"),
                _ => {}
            }
        }
        named.map(|_| image)
    }

    /// Commits a container to an image without a name. Its id.
    async fn commit(
        &self,
        container: &ContainerInspectResponse,
        base: &ImageInspect,
        name: &str,
        image: &str,
    ) -> Result<String, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let config = clean(container, base, name);
        // Podman reads this instead of the body.
        let podman = self.engine.about().await.map_err(fault::of)?.podman;
        let changes = if podman { changes(&config) } else { String::new() };
        let mut options = CommitContainerOptionsBuilder::default().pause(true);
        let id = container.id.as_deref().unwrap_or_default();
        options = options.container(id);
        if !changes.is_empty() {
            options = options.changes(&changes);
        }
        let made = docker.commit_container(options.build(), config);
        let made = self.engine.within(COMMIT, &format!("commit the container to `{image}`"), made).await;
        Ok(made.map_err(fault::of)?.id)
    }

    /// Gives a committed image its name, without what the container was configured with. Whether it is that very image.
    async fn name(
        &self,
        made: &str,
        container: &ContainerInspectResponse,
        base: &ImageInspect,
        name: &str,
        image: &str,
    ) -> Result<bool, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let committed = images::inspect(&self.engine, made).await.map_err(fault::of)?;
        let committed = committed.ok_or_else(|| failed("make a snapshot", "the committed image is gone"))?;
        if !self.engine.about().await.map_err(fault::of)?.podman {
            let archive = same_layers(&committed, base, container, name, image)?;
            let options = ImportImageOptionsBuilder::default().quiet(true).build();
            let mut load = docker.import_image(options, bollard::body_full(archive.into()), None).boxed();
            let loaded = async {
                while let Some(line) = load.next().await {
                    line?;
                }
                Ok(())
            };
            let loaded = self.engine.within(COMMIT, "take the configuration of a snapshot", loaded).await;
            let found = images::inspect(&self.engine, image).await.map_err(fault::of)?;
            match (loaded, found) {
                (Ok(()), Some(_)) => return Ok(false),
                // The image store of containerd wants the layers themselves, and keeps no copy of the container's settings.
                (loaded, _) => tracing::debug!(?loaded, "the engine takes no image without its layers"),
            }
        }
        let variables = committed.config.and_then(|config| config.env).unwrap_or_default();
        let key = format!("{KEY}=");
        if variables.iter().any(|variable| variable.starts_with(&key) && *variable != key) {
            let reason = "it keeps the key of the sandbox in the image";
            return Err(failed(format!("make the snapshot `{name}`"), reason));
        }
        let options = TagImageOptionsBuilder::default().repo(REPOSITORY).tag(name).build();
        let tagged = docker.tag_image(made, Some(options));
        self.engine.ask(&format!("name an image `{image}`"), tagged).await.map_err(fault::of)?;
        Ok(true)
    }

    /// Makes a sandbox of another session with the files and the settings of this one.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        id: &SandboxId,
        session: &SessionId,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let found = self.existing(id).await?;
        let look = docker.inspect_container(&found.engine_id, None);
        let mut container = self.engine.ask(&format!("look at the container `{id}`"), look).await.map_err(fault::of)?;
        self.complete(&mut container).await?;
        let labels = container.config.and_then(|config| config.labels).unwrap_or_default();
        if found.audit.is_some() {
            let what =
                format!("forks of `{id}`, of which nothing would be recorded; take a snapshot and start from it");
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        let settings = labels.get(names::SETTINGS).ok_or_else(|| {
            let what = format!("forks of `{id}`, which was made by something else; take a snapshot and start from it");
            ProviderError::Unsupported { provider: NAME.to_owned(), what }
        })?;
        let settings: Settings =
            serde_json::from_str(settings).map_err(|error| failed(format!("fork the sandbox `{id}`"), error))?;
        let random = backend::random().map_err(|error| failed("name a snapshot", error))?;
        let name = format!("{OF_FORK}{}", random.chars().take(OF_FORK_RANDOM).collect::<String>());
        let (inner, of) = (Arc::clone(self), id.clone());
        let mut forking = Forking {
            inner: Arc::clone(self),
            image: format!("{REPOSITORY}:{name}"),
            snapshot: Some(tokio::spawn(async move { inner.snapshot(&of, &name).await })),
            needed: false,
        };
        if let Some(snapshot) = &mut forking.snapshot {
            snapshot.await.map_err(|error| failed("make a snapshot", error))??;
        }
        forking.snapshot = None;
        let spec = settings.spec(session.clone(), forking.image.clone());
        let made = self.create_of(&spec, Some(forking.image.clone()), progress).await;
        forking.needed = made.is_ok();
        made
    }

    /// The snapshots that were asked for, the newest first.
    pub(crate) async fn kept(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let filters = HashMap::from([("label".to_owned(), vec![SNAPSHOT.to_owned()])]);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let listed = self.engine.ask("list snapshots", docker.list_images(Some(options))).await.map_err(fault::of)?;
        let mut all: Vec<Snapshot> = listed.into_iter().filter_map(|image| told(&image)).collect();
        all.sort_by_key(|kept| Reverse(kept.created));
        all.truncate(MOST_SNAPSHOTS);
        Ok(all)
    }

    /// Deletes a snapshot that was asked for. Whether there was one.
    pub(crate) async fn delete_kept(&self, image: &str) -> Result<bool, ProviderError> {
        if !self.kept().await?.iter().any(|kept| kept.image == image) {
            return Ok(false);
        }
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let removed = docker.remove_image(image, Some(RemoveImageOptionsBuilder::default().build()), None);
        match self.engine.ask(&format!("delete the snapshot `{image}`"), removed).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(fault::of(error)),
        }
    }

    /// Removes the image of a fork that is gone, unless somebody else uses it.
    pub(crate) async fn remove_snapshot(&self, image: &str) {
        let removed = async {
            let docker = self.engine.docker().await.map_err(fault::of)?;
            let removed = docker.remove_image(image, Some(RemoveImageOptionsBuilder::default().build()), None);
            match self.engine.ask(&format!("remove the image `{image}`"), removed).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => Err(fault::of(error)),
                _ => Ok(()),
            }
        };
        if let Err(error) = removed.await {
            tracing::warn!(%error, "the image of a fork is left");
        }
    }
}

/// An image as a snapshot, if it is one that was asked for. Images that are built from one have its labels, and other names.
fn told(image: &ImageSummary) -> Option<Snapshot> {
    let name = image.labels.get(SNAPSHOT).filter(|name| !is_of_fork(name))?;
    let tag = format!("{REPOSITORY}:{name}");
    image.repo_tags.iter().find(|other| without_place(other) == tag)?;
    let made = image.labels.get(MADE).and_then(|seconds| Duration::try_from_secs_f64(seconds.parse().ok()?).ok());
    Some(Snapshot {
        image: tag,
        name: name.clone(),
        session: image.labels.get(OF_SESSION).filter(|session| !session.is_empty()).cloned(),
        created: made.and_then(|since| UNIX_EPOCH.checked_add(since)),
    })
}

/// The name of an image without the place that Podman adds to one that has none: that of its own images, or, where it keeps
/// to what Docker means, Docker's registry.
fn without_place(tag: &str) -> &str {
    PLACES.iter().find_map(|place| tag.strip_prefix(place)).unwrap_or(tag)
}

/// Whether a fork is made through the snapshot of this name.
fn is_of_fork(name: &str) -> bool {
    let random = name.strip_prefix(OF_FORK).unwrap_or_default();
    random.len() == OF_FORK_RANDOM && random.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An image that is made for a fork, and removed if nothing comes of that, also when the caller gives up.
struct Forking {
    inner: Arc<Inner>,
    image: String,
    snapshot: Option<tokio::task::JoinHandle<Result<String, ProviderError>>>,
    needed: bool,
}

impl Drop for Forking {
    fn drop(&mut self) {
        if self.needed {
            return;
        }
        let (inner, image, snapshot) = (Arc::clone(&self.inner), self.image.clone(), self.snapshot.take());
        tokio::spawn(async move {
            if let Some(snapshot) = snapshot
                && !snapshot.is_finished()
            {
                // However it ends, the image is removed then.
                let _ended = snapshot.await;
            }
            inner.remove_snapshot(&image).await;
        });
    }
}

fn check_name(name: &str) -> Result<(), ProviderError> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let all = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
    if first && all && name.len() <= LONGEST_TAG {
        return Ok(());
    }
    let rule = "it has letters, digits, `_`, `.` and `-`, at most 128, and begins with none of the last two";
    Err(wrong("the name of a snapshot", format!("`{name}` is none: {rule}")))
}

/// Labels of a snapshot beside those of the image that the sandbox was made from.
fn labels(container: &ContainerInspectResponse, base: &ImageInspect, name: &str) -> HashMap<String, String> {
    let mut labels = base.config.as_ref().and_then(|config| config.labels.clone()).unwrap_or_default();
    let of_container = container.config.as_ref().and_then(|config| config.labels.as_ref());
    let session = of_container.and_then(|labels| labels.get(names::SESSION)).cloned().unwrap_or_default();
    labels.insert(SNAPSHOT.to_owned(), name.to_owned());
    labels.insert(OF_SESSION.to_owned(), session);
    labels.insert(MADE.to_owned(), names::seconds(SystemTime::now()).to_string());
    labels
}

/// What a commit writes: the configuration of the image below, and nothing in the place of all that the container has
/// beside it, as an engine adds what it does not find here.
fn clean(container: &ContainerInspectResponse, base: &ImageInspect, name: &str) -> ContainerConfig {
    let base_config = base.config.clone().unwrap_or_default();
    let own = container.config.clone().unwrap_or_default();
    let mut labels = labels(container, base, name);
    for label in own.labels.into_iter().flatten().map(|(label, _)| label) {
        labels.entry(label).or_default();
    }
    let mut variables = base_config.env.unwrap_or_default();
    let known: Vec<String> = variables.iter().filter_map(|one| Some(one.split_once('=')?.0.to_owned())).collect();
    let added = own.env.into_iter().flatten().filter_map(|one| Some(one.split_once('=')?.0.to_owned()));
    let added = added.filter(|name| !known.contains(name) && !OF_ENGINE.contains(&name.as_str()));
    variables.extend(added.map(|name| format!("{name}=")));
    ContainerConfig {
        user: base_config.user,
        env: Some(variables),
        cmd: base_config.cmd,
        entrypoint: base_config.entrypoint,
        working_dir: base_config.working_dir,
        labels: Some(labels),
        ..ContainerConfig::default()
    }
}

/// The same as lines of a Dockerfile.
fn changes(config: &ContainerConfig) -> String {
    let emptied = config.env.iter().flatten().filter(|variable| variable.ends_with('='));
    let mut lines: Vec<String> = emptied.map(|variable| format!("ENV {variable}")).collect();
    // Values of the image below stay as they are.
    let set = |name: &str, value: &str| value.is_empty() || name.starts_with(SNAPSHOT);
    let labels = config.labels.iter().flatten().filter(|(name, value)| set(name, value) && !name.contains(' '));
    lines.extend(labels.map(|(name, value)| format!("LABEL {name}={value}")));
    for (word, value) in [("USER", &config.user), ("WORKDIR", &config.working_dir)] {
        lines.extend(value.iter().filter(|value| !value.is_empty()).map(|value| format!("{word} {value}")));
    }
    for (word, value) in [("ENTRYPOINT", &config.entrypoint), ("CMD", &config.cmd)] {
        lines.push(format!("{word} {}", json!(value.as_deref().unwrap_or_default())));
    }
    lines.join("\n")
}

/// An archive with an image of layers that the engine has, under the configuration of the image below.
fn same_layers(
    committed: &ImageInspect,
    base: &ImageInspect,
    container: &ContainerInspectResponse,
    name: &str,
    image: &str,
) -> Result<Vec<u8>, ProviderError> {
    let action = || format!("make the snapshot `{name}`");
    let text = |error: serde_json::Error| failed(action(), error);
    let layers = committed.root_fs.as_ref().and_then(|files| files.layers.clone()).unwrap_or_default();
    let mut config: Value = serde_json::to_value(base.config.clone().unwrap_or_default()).map_err(text)?;
    config["Labels"] = serde_json::to_value(labels(container, base, name)).map_err(text)?;
    let mut whole = json!({
        "architecture": committed.architecture,
        "os": committed.os,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": layers},
    });
    if let Some(created) = &committed.created {
        whole["created"] = serde_json::to_value(created).map_err(text)?;
    }
    let whole = serde_json::to_vec(&whole).map_err(text)?;
    let hash = gloveport_ids::hex(&Sha256::digest(&whole));
    let file = format!("{hash}.json");
    let paths: Vec<String> =
        layers.iter().map(|layer| format!("{}/layer.tar", layer.trim_start_matches("sha256:"))).collect();
    let manifest =
        serde_json::to_vec(&json!([{"Config": file, "RepoTags": [image], "Layers": paths}])).map_err(text)?;
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in [(file.as_str(), &whole), ("manifest.json", &manifest)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_slice()).map_err(|error| failed(action(), error))?;
    }
    tar.into_inner().map_err(|error| failed(action(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forks_are_made_through_and_what_is_built_from_snapshots_is_none() {
        let image = |label: &str, tags: &[&str]| ImageSummary {
            labels: [(SNAPSHOT, label), (OF_SESSION, "s"), (MADE, "7.5")]
                .map(|(key, it)| (key.to_owned(), it.to_owned()))
                .into(),
            repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..ImageSummary::default()
        };
        let found = told(&image("a", &["other:1", "gloveport-snapshot:a"])).unwrap();
        assert_eq!(
            (found.image.as_str(), found.name.as_str(), found.session.as_deref()),
            ("gloveport-snapshot:a", "a", Some("s"))
        );
        assert_eq!(found.created, Some(UNIX_EPOCH + Duration::from_millis(7500)));
        for place in ["localhost/", "docker.io/library/"] {
            let found = told(&image("a", &["other:1", &format!("{place}gloveport-snapshot:a")])).unwrap();
            assert_eq!(found.image, "gloveport-snapshot:a");
        }
        for (label, tags) in [
            ("a", &["built:1"][..]),
            ("a", &[]),
            ("a", &["docker.io/somebody/gloveport-snapshot:a"]),
            ("a", &["localhost/docker.io/library/gloveport-snapshot:a"]),
            ("fork-0123456789abcdef", &["gloveport-snapshot:fork-0123456789abcdef"]),
        ] {
            assert_eq!(told(&image(label, tags)), None, "{label}");
        }
        assert!(told(&image("fork-mine", &["gloveport-snapshot:fork-mine"])).is_some());
    }

    #[test]
    fn names_of_snapshots_are_tags() {
        for name in ["a", "before-upgrade_1.2", "_x"] {
            check_name(name).unwrap();
        }
        for name in ["", "-a", ".a", "a:b", "a/b", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
