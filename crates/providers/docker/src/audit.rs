//! What is recorded of a sandbox. The gate beside it keeps the log, in a volume that the sandbox does not have: the server says what
//! it is about to do, and waits until that is written. When the sandbox ends, its log is copied to the file that was named.
//!
//! ```text
//! sandbox (server) ── key, records ──► gate ──► volume ── at the end ──► FILE
//!                  ◄── it is written ──
//! ```

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt, fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use bollard::{
    models::{ContainerCreateBody, HostConfig, Volume, VolumeCreateRequest},
    query_parameters::{
        CreateContainerOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions, StopContainerOptionsBuilder,
        UploadToContainerOptionsBuilder,
    },
};
use futures_util::StreamExt as _;
use gloveport_contract::recorder::{Audited, Recorder};
use gloveport_provider::{
    LogStream, MountSource, NetworkPolicy, ProviderError, SandboxId, SandboxSpec, SessionId, Workspace, backend,
};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::{
    fault::{self, NAME, failed, wrong},
    inner::Inner,
    log_copy::{self, Copying},
    names::{self, AUDIT_FILE, AUDIT_ROLE, BACKEND, CREATED, IMAGE, ROLE, SESSION, gate_name},
};

/// The field of a sandbox that names the file.
const FIELD: &str = "audit";
/// Where the gate has the volume.
pub(crate) const DIRECTORY: &str = "/.gloveport/audit";
/// The log in it.
const LOG: &str = "log";
/// The user of a gate.
const NOBODY: u64 = 65_534;
/// Random digits in the name of a volume.
const RANDOM: usize = 16;
/// Seconds that a server has to say that it ends, and a gate to write that.
const END: i32 = 5;
/// A volume without a sandbox is one of a sandbox that is being made for this long at most.
const MAKING: Duration = Duration::from_mins(15);

/// What is recorded of a sandbox, and how.
#[derive(Clone)]
pub(crate) struct Audit {
    file: PathBuf,
    session: SessionId,
    /// What the server says first, so that nobody else adds to the log.
    key: String,
    pub(crate) volume: String,
    first: Audited,
}

impl fmt::Debug for Audit {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("file", &self.file).field("volume", &self.volume).finish_non_exhaustive()
    }
}

impl Audit {
    /// Makes it; `None` where nothing is recorded.
    pub(crate) fn prepare(spec: &SandboxSpec, id: &SandboxId) -> Result<Option<Self>, ProviderError> {
        let Some(file) = &spec.audit else { return Ok(None) };
        if spec.command.is_some() {
            let reason = "a server of your own records nothing; leave the command out, or the log";
            return Err(wrong(FIELD, reason));
        }
        let network = match &spec.network {
            NetworkPolicy::Full => {
                let reason = "the gate of a sandbox keeps its log, and one that reaches everybody has none; name the hosts that it may \
                              reach (`--network HOSTS`, or `--network none`)";
                return Err(wrong(FIELD, reason));
            }
            NetworkPolicy::None => vec!["none".to_owned()],
            NetworkPolicy::Only(hosts) => hosts.clone(),
        };
        let file = place(file, spec)?;
        let random = || backend::random().map_err(|error| failed("make a key", error));
        let edge_secrets = spec.edge_secrets.iter().map(|(name, secret)| format!("{name}@{}", secret.hosts.join(",")));
        let first = Audited {
            isolation: spec.runtime_class.clone().unwrap_or_else(|| "container".to_owned()),
            network,
            edge_secrets: edge_secrets.collect(),
            secrets: spec.secrets.keys().cloned().collect(),
        };
        let (key, mark) = (random()?, random()?.chars().take(RANDOM).collect::<String>());
        let volume = format!("{id}-audit-{mark}");
        let audit = Self { file, session: spec.session_id.clone(), key, volume, first };
        audit.check_free().map(|()| Some(audit))
    }

    /// Nothing is at the place of the file, also after an earlier sandbox of the session has given its log to it.
    pub(crate) fn check_free(&self) -> Result<(), ProviderError> {
        if fs::symlink_metadata(&self.file).is_err() {
            return Ok(());
        }
        let reason = "it is there already, and the log of a container is copied to a file of its own when that ends; \
                      name a file that is not there";
        Err(wrong(FIELD, format!("{} cannot be used: {reason}", self.file.display())))
    }

    /// Has a gate record, and listen at this address for what the server says.
    pub(crate) fn words(&self, address: Ipv4Addr, port: u16) -> Vec<String> {
        let hash = gloveport_ids::hex(&Sha256::digest(self.key.as_bytes()));
        [
            ("--audit", log()),
            ("--session", self.session.to_string()),
            ("--recorder", format!("{address}:{port}")),
            ("--recorder-key", hash),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    /// What the server is told.
    pub(crate) fn recorder(&self, address: Ipv4Addr, port: u16) -> Recorder {
        let address = SocketAddr::from((address, port));
        Recorder { address, key: self.key.clone(), first: self.first.clone() }
    }

    /// How the gate has the volume.
    pub(crate) fn bind(&self) -> String {
        format!("{}:{DIRECTORY}", self.volume)
    }
}

fn log() -> String {
    format!("{DIRECTORY}/{LOG}")
}

/// The file by its own name, where the sandbox does not write and nothing is yet, and whoever asks can write.
fn place(path: &Path, spec: &SandboxSpec) -> Result<PathBuf, ProviderError> {
    let wrong = |reason: String| wrong(FIELD, format!("{} cannot be used: {reason}", path.display()));
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(wrong("it names no file".to_owned()));
    };
    let directory =
        fs::canonicalize(directory).map_err(|error| wrong(format!("its directory cannot be entered: {error}")))?;
    let workspace = match &spec.workspace {
        Workspace::Directory(path) => Some(path.as_path()),
        Workspace::Temporary | Workspace::Volume(_) => None,
    };
    let mounted = spec.mounts.iter().filter(|mount| !mount.read_only).filter_map(|mount| match &mount.source {
        MountSource::Directory(path) => Some(path.as_path()),
        MountSource::Overlay(_) | MountSource::Volume(_) => None,
    });
    let shared = mounted.chain(workspace).find(|shared| {
        let real = fs::canonicalize(shared).unwrap_or_else(|_| shared.to_path_buf());
        directory.starts_with(&real)
    });
    if let Some(shared) = shared {
        let shared = shared.display();
        return Err(wrong(format!("the sandbox writes in {shared} and could change it; name a file elsewhere")));
    }
    let file = directory.join(name);
    // Now, and not when there is a log and no place for it.
    tempfile::tempfile_in(&directory).map_err(|error| wrong(format!("nothing can be written there: {error}")))?;
    Ok(file)
}

/// An archive with an empty log of the user of a gate.
fn empty_log() -> std::io::Result<Vec<u8>> {
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o600);
    header.set_uid(NOBODY);
    header.set_gid(NOBODY);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, LOG, std::io::empty())?;
    tar.into_inner()
}

/// The machine that the label of a backend names.
fn machine(label: &str) -> &str {
    label.split_once('/').map_or(label, |(machine, _)| machine)
}

impl Inner {
    /// Makes the volume of a log. Its labels say what becomes of it, whatever becomes of the sandbox.
    pub(crate) async fn make_audit_volume(
        &self,
        audit: &Audit,
        image: &str,
        backend: &str,
    ) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let labels = [
            (ROLE, AUDIT_ROLE.to_owned()),
            (SESSION, audit.session.to_string()),
            (BACKEND, backend.to_owned()),
            (CREATED, names::seconds(SystemTime::now()).to_string()),
            (AUDIT_FILE, audit.file.display().to_string()),
            (IMAGE, image.to_owned()),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value)).into();
        let wanted = VolumeCreateRequest {
            name: Some(audit.volume.clone()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        let made = docker.create_volume(wanted);
        self.engine.ask("make the volume of an audit log", made).await.map(drop).map_err(fault::of)
    }

    /// Puts an empty log into the volume of a gate that was not started yet: the gate has no right to make one.
    pub(crate) async fn lay_log(&self, gate: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let archive = empty_log().map_err(|error| failed("be given an audit log", error))?;
        let options = UploadToContainerOptionsBuilder::default().path(DIRECTORY).build();
        let upload = docker.upload_to_container(gate, Some(options), bollard::body_full(archive.into()));
        self.engine.ask("take an audit log", upload).await.map_err(fault::of)
    }

    /// Removes the volume of a log that nobody misses. Of one that is gone it is no error.
    pub(crate) async fn remove_audit_volume(&self, volume: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let removed = docker.remove_volume(volume, None::<RemoveVolumeOptions>);
        match self.engine.ask(&format!("remove the volume `{volume}`"), removed).await {
            Err(error) if !error.is_not_found() => Err(fault::of(error)),
            _ => Ok(()),
        }
    }

    /// The log of a session's sandbox as it is by now, or that of one that has ended and whose file could not be written.
    pub(crate) async fn audit_log(&self, session: &SessionId) -> Result<LogStream, ProviderError> {
        let id = names::id_of(session)?;
        let found = self.container(id.as_str()).await?;
        let volume = match found.as_ref().map(|found| found.audit.clone()) {
            Some(Some(volume)) => self.audit_volume(&volume).await?,
            Some(None) => None,
            None => {
                let mut all = self.audit_volumes().await?;
                all.retain(|volume| volume.labels.get(SESSION).is_some_and(|of| of == session.as_str()));
                all.sort_by_key(|volume| volume.labels.get(CREATED).cloned());
                all.pop()
            }
        };
        match volume {
            Some(volume) => self.copying(&id, &volume).await?.begin().await,
            None if found.is_none() => Err(ProviderError::NotFound(id)),
            None => Err(ProviderError::Unsupported {
                provider: NAME.to_owned(),
                what: format!("the audit log of `{session}`, which was started without one (`--audit FILE`)"),
            }),
        }
    }

    /// A log, read through the gate that has it, or through a container that is made for that.
    async fn copying(&self, id: &SandboxId, volume: &Volume) -> Result<Copying, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let gate = gate_name(id.as_str());
        let bind = format!("{}:{DIRECTORY}", volume.name);
        let looked =
            self.engine.ask(&format!("look at the gate `{gate}`"), docker.inspect_container(&gate, None)).await;
        let gate = match looked {
            Ok(found) => {
                let binds = found.host_config.and_then(|host| host.binds).unwrap_or_default();
                let is_its = binds.iter().any(|one| one.starts_with(&bind));
                found.id.filter(|_| is_its)
            }
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(fault::of(error)),
        };
        Ok(match gate {
            Some(gate) => Copying::of(Arc::clone(&self.engine), gate, log()),
            None => Copying::of_own(Arc::clone(&self.engine), self.reader(volume, bind).await?, log()),
        })
    }

    /// A container that only has the volume, and is never started.
    async fn reader(&self, volume: &Volume, bind: String) -> Result<String, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = format!("{}-reader", volume.name);
        let action = format!("read the volume `{}`", volume.name);
        let body = || ContainerCreateBody {
            image: volume.labels.get(IMAGE).cloned(),
            cmd: Some(vec!["-".to_owned()]),
            labels: Some([(ROLE.to_owned(), AUDIT_ROLE.to_owned())].into()),
            host_config: Some(HostConfig {
                binds: Some(vec![bind.clone()]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = || Some(CreateContainerOptionsBuilder::default().name(&name).build());
        let made = match self.engine.ask(&action, docker.create_container(options(), body())).await {
            // Whoever made it has died meanwhile, or is just reading; then the later one goes on.
            Err(error) if error.is_conflict() => {
                log_copy::remove(&self.engine, &name).await?;
                self.engine.ask(&action, docker.create_container(options(), body())).await
            }
            other => other,
        };
        Ok(made.map_err(fault::of)?.id)
    }

    async fn audit_volume(&self, name: &str) -> Result<Option<Volume>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        match self.engine.ask(&format!("look at the volume `{name}`"), docker.inspect_volume(name)).await {
            Ok(volume) => Ok(Some(volume)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(fault::of(error)),
        }
    }

    async fn audit_volumes(&self) -> Result<Vec<Volume>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let filters: HashMap<String, Vec<String>> = [("label".to_owned(), vec![format!("{ROLE}={AUDIT_ROLE}")])].into();
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let listed = self.engine.ask("list audit logs", docker.list_volumes(Some(options))).await.map_err(fault::of)?;
        Ok(listed.volumes.unwrap_or_default())
    }

    /// Lets the server of a sandbox record that it ends, or a gate write that.
    pub(crate) async fn stop_gently(&self, container: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let options = StopContainerOptionsBuilder::default().t(END).build();
        let stopped = docker.stop_container(container, Some(options));
        if let Err(error) = self.engine.ask(&format!("stop the container `{container}`"), stopped).await {
            // One that has ended, or rests, is ended otherwise.
            tracing::debug!(%error, container, "it is not stopped");
        }
        Ok(())
    }

    /// Copies the log of a sandbox that is gone to its file; the gate adds nothing any more. The volume stays.
    pub(crate) async fn bring_home(&self, id: &SandboxId, volume: &str) -> Result<(), ProviderError> {
        self.stop_gently(&gate_name(id.as_str())).await?;
        if let Some(volume) = self.audit_volume(volume).await? {
            return Box::pin(self.write_home(id, &volume)).await;
        }
        tracing::warn!(volume, "the volume with the audit log of the sandbox is gone");
        Ok(())
    }

    async fn write_home(&self, id: &SandboxId, volume: &Volume) -> Result<(), ProviderError> {
        let name = &volume.name;
        let label = |name: &str| volume.labels.get(name).map(String::as_str).unwrap_or_default();
        let file = PathBuf::from(label(AUDIT_FILE));
        let session = label(SESSION);
        let kept = |reason: String| {
            let hint = format!(
                "`gloveport session audit {session} --json` prints it, `gloveport session gc` copies it again, and \
                 `docker volume rm {name}` gives it up"
            );
            failed(
                format!("give the audit log of `{session}` to {}", file.display()),
                format!("{reason}; it is kept in the volume `{name}`: {hint}"),
            )
        };
        if machine(label(BACKEND)) != machine(&self.holders.label()?) {
            return Err(kept("the file is on the machine that has made the sandbox".to_owned()));
        }
        let copied = async {
            let copying = self.copying(id, volume).await.map_err(|error| error.to_string())?;
            match copying.begin_if_there().await.map_err(|error| error.to_string())? {
                Some(mut pieces) => write_whole(&mut pieces, &file).await,
                // Its gate was never started.
                None => Ok(()),
            }
        };
        copied.await.map_err(kept)
    }

    /// Volumes with logs whose sandbox is gone, and the session that it was of.
    pub(crate) async fn left_audits(
        &self,
        used: &HashSet<String>,
    ) -> Result<BTreeMap<String, SessionId>, ProviderError> {
        let old = |created: Option<&String>| {
            let created = created.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            names::seconds(SystemTime::now()) - created > MAKING.as_secs_f64()
        };
        let mut left = BTreeMap::new();
        for volume in self.audit_volumes().await? {
            let lives = volume.labels.get(BACKEND).is_some_and(|backend| self.holders.lives(backend));
            let session = volume.labels.get(SESSION).and_then(|session| SessionId::new(session.as_str()).ok());
            if let Some(session) = session.filter(|_| !used.contains(&volume.name))
                && (!lives || old(volume.labels.get(CREATED)))
            {
                left.insert(volume.name, session);
            }
        }
        Ok(left)
    }

    /// Copies the log of such a volume to its file, and removes the volume.
    pub(crate) async fn collect_audit(&self, volume: &str, session: &SessionId) -> Result<(), ProviderError> {
        let id = names::id_of(session)?;
        if let Some(volume) = self.audit_volume(volume).await? {
            Box::pin(self.write_home(&id, &volume)).await?;
        }
        self.remove_audit_volume(volume).await
    }
}

/// Writes a file that is not there, as a whole. That it is there with the same content is no error.
async fn write_whole(pieces: &mut LogStream, file: &Path) -> Result<(), String> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let temporary = tempfile::NamedTempFile::new_in(directory).map_err(|error| error.to_string())?;
    let copy = temporary.as_file().try_clone().map_err(|error| error.to_string())?;
    let mut copy = tokio::fs::File::from_std(copy);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| error.to_string())?;
        copy.write_all(&piece).await.map_err(|error| error.to_string())?;
    }
    copy.sync_all().await.map_err(|error| error.to_string())?;
    let file = file.to_owned();
    let placed = tokio::task::spawn_blocking(move || match temporary.persist_noclobber(&file) {
        Ok(_) => Ok(()),
        Err(refused) if refused.error.kind() == std::io::ErrorKind::AlreadyExists => {
            if is_same(refused.file.path(), &file).unwrap_or(false) {
                return Ok(());
            }
            Err("something else is there by now".to_owned())
        }
        Err(refused) => Err(refused.error.to_string()),
    });
    placed.await.map_err(|error| error.to_string())?
}

/// Whether two files have the same content; the second one is somebody else's.
fn is_same(one: &Path, other: &Path) -> std::io::Result<bool> {
    let (length, found) = (fs::metadata(one)?.len(), fs::symlink_metadata(other)?);
    Ok(found.is_file() && found.len() == length && fs::read(one)? == fs::read(other)?)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use gloveport_provider::Mount;

    use super::*;

    fn spec(file: &Path) -> SandboxSpec {
        SandboxSpec {
            network: NetworkPolicy::None,
            audit: Some(file.to_owned()),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        }
    }

    fn prepared(spec: &SandboxSpec) -> Result<Audit, String> {
        let id = SandboxId::new("openhands-runtime-s").unwrap();
        Audit::prepare(spec, &id).map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn the_gate_has_a_hash_of_the_key_and_the_server_has_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let audit = prepared(&spec(&directory.path().join("log"))).unwrap();
        let (address, port) = (Ipv4Addr::new(10, 213, 0, 3), 3129);
        let words = audit.words(address, port).join(" ");
        let recorder = audit.recorder(address, port);
        assert!(words.starts_with("--audit /.gloveport/audit/log --session s --recorder 10.213.0.3:3129"), "{words}");
        assert!(words.ends_with(&gloveport_ids::hex(&Sha256::digest(recorder.key.as_bytes()))), "{words}");
        assert!(!words.contains(&recorder.key) && recorder.key.len() >= 32);
        assert!(!format!("{recorder:?}").contains(&recorder.key));
        assert_eq!(
            (recorder.address.to_string(), recorder.first.network),
            ("10.213.0.3:3129".into(), vec!["none".into()])
        );
        let other = prepared(&spec(&directory.path().join("log"))).unwrap();
        assert!(other.key != audit.key && other.volume != audit.volume);
    }

    #[test]
    fn a_log_is_refused_that_nobody_could_keep_or_that_the_sandbox_could_change() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("work")).unwrap();
        std::os::unix::fs::symlink(at("work"), at("link")).unwrap();
        fs::write(at("there"), "").unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        let good = spec(&at("log"));
        let mount = |read_only| Mount { source: MountSource::Directory(at("work")), target: "/m".into(), read_only };
        for (spec, part) in [
            (SandboxSpec { network: NetworkPolicy::Full, ..good.clone() }, "--network HOSTS"),
            (SandboxSpec { command: Some(vec!["x".to_owned()]), ..good.clone() }, "a server of your own"),
            (spec(&at("there")), "it is there already"),
            (spec(&at("dangling")), "it is there already"),
            (spec(&at("absent/log")), "cannot be entered"),
            (
                SandboxSpec { workspace: Workspace::Directory(at("work")), ..spec(&at("work/log")) },
                "the sandbox writes",
            ),
            (
                SandboxSpec { workspace: Workspace::Directory(at("link")), ..spec(&at("work/log")) },
                "the sandbox writes",
            ),
            (SandboxSpec { mounts: vec![mount(false)], ..spec(&at("link/log")) }, "the sandbox writes"),
        ] {
            let error = prepared(&spec).unwrap_err();
            assert!(error.starts_with("audit of the sandbox") && error.contains(part), "{error}");
        }
        prepared(&SandboxSpec { mounts: vec![mount(true)], ..spec(&at("work/log")) }).unwrap();
        assert!(!at("log").exists());
    }

    #[tokio::test]
    async fn a_file_that_is_there_is_kept_and_one_that_is_not_is_written_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        let pieces = |parts: &[&'static str]| -> LogStream {
            stream::iter(parts.iter().map(|part| Ok((*part).into())).collect::<Vec<_>>()).boxed()
        };
        let broken: LogStream = stream::iter([Ok("a".into()), Err(failed("read", "it broke"))]).boxed();
        for mut pieces in [broken] {
            assert!(write_whole(&mut pieces, &file).await.unwrap_err().contains("it broke"));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        write_whole(&mut pieces(&["a\n", "b\n"]), &file).await.unwrap();
        write_whole(&mut pieces(&["a\nb\n"]), &file).await.unwrap();
        assert!(write_whole(&mut pieces(&["a\nc\n"]), &file).await.unwrap_err().contains("something else"));
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), fs::read_dir(directory.path()).unwrap().count()),
            ("a\nb\n".into(), 1)
        );
    }
}
