//! How our binary gets into a container.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bollard::{
    models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest},
    query_parameters::{
        ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
        UploadToContainerOptionsBuilder,
    },
};
use gloveport_docker_engine::Engine;
use gloveport_provider::ProviderError;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use crate::{
    fault::{self, failed},
    names::ROLE,
};

/// Its path where the file itself is mounted.
const MOUNTED: &str = "/.gloveport/gloveport";
/// Where the volume with it is mounted, and its path there.
const VOLUME: &str = "/.gloveport/bin";
const IN_VOLUME: &str = "/.gloveport/bin/gloveport";
/// Its path in images that have it: those of `gloveport image`.
const IN_IMAGE: &str = "/openhands/bin/gloveport";
/// How long somebody else may take to fill a volume.
const FILLING: Duration = Duration::from_mins(2);
/// Pause between two looks at that.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a container finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// A file of this machine.
    Mounted(PathBuf),
    /// A volume of this name.
    Volume(String),
    /// It is in the image.
    Image,
}

impl Binary {
    /// Its path in the container.
    pub(crate) const fn path(&self) -> &'static str {
        match self {
            Self::Mounted(_) => MOUNTED,
            Self::Volume(_) => IN_VOLUME,
            Self::Image => IN_IMAGE,
        }
    }

    pub(crate) fn mount(&self, binds: &mut Vec<String>, mounts: &mut Vec<Mount>) {
        match self {
            // As a mount, so that the engine refuses what it does not see; a bind would make a directory.
            Self::Mounted(path) => mounts.push(Mount {
                typ: Some(MountType::BIND),
                source: Some(path.to_string_lossy().into_owned()),
                target: Some(MOUNTED.to_owned()),
                read_only: Some(true),
                ..Mount::default()
            }),
            Self::Volume(name) => binds.push(format!("{name}:{VOLUME}:ro")),
            Self::Image => {}
        }
    }

    /// Whether this message of the engine says that it does not see the file.
    pub(crate) fn is_not_seen(&self, message: &str) -> bool {
        let Self::Mounted(path) = self else { return false };
        message.contains(&*path.to_string_lossy())
            && ["does not exist", "no such file", "not a shared mount"]
                .iter()
                .any(|text| message.to_lowercase().contains(text))
    }
}

/// A volume of the engine with this program, filled if it is not yet. A container that is only made, and never started,
/// is what the engine takes files through; its name lets one backend fill the volume at a time.
pub(crate) async fn volume(engine: &Engine, program: &Path, image: &str) -> Result<String, ProviderError> {
    let (bytes, hash) = {
        let program = program.to_owned();
        tokio::task::spawn_blocking(move || read(&program))
            .await
            .map_err(|error| failed("read our own program", error))??
    };
    let name = format!("gloveport-{hash}");
    let filler = format!("gloveport-fill-{hash}");
    let docker = engine.docker().await.map_err(fault::of)?;
    let labels = || [(ROLE.to_owned(), "program".to_owned())].into();
    let volume =
        VolumeCreateRequest { name: Some(name.clone()), labels: Some(labels()), ..VolumeCreateRequest::default() };
    engine.ask(&format!("make the volume `{name}`"), docker.create_volume(volume)).await.map_err(fault::of)?;
    let body = || ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(Vec::new()),
        cmd: Some(vec![IN_VOLUME.to_owned()]),
        labels: Some(labels()),
        host_config: Some(HostConfig {
            binds: Some(vec![format!("{name}:{VOLUME}")]),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let began = Instant::now();
    loop {
        let options = CreateContainerOptionsBuilder::default().name(&filler).build();
        let made = engine.ask("make a container to copy through", docker.create_container(Some(options), body())).await;
        match made {
            Ok(_) => break,
            Err(error) if error.is_conflict() && began.elapsed() < FILLING => sleep(PAUSE).await,
            Err(error) if error.is_conflict() => {
                // Whoever made it has died meanwhile.
                remove(engine, &filler).await?;
            }
            Err(error) => return Err(fault::of(error)),
        }
    }
    let outcome = fill(engine, &filler, bytes).await;
    remove(engine, &filler).await?;
    outcome.map(|()| name)
}

async fn fill(engine: &Engine, filler: &str, bytes: Vec<u8>) -> Result<(), ProviderError> {
    let docker = engine.docker().await.map_err(fault::of)?;
    // Written last, so that its presence says that all is there.
    let complete = ContainerArchiveInfoOptionsBuilder::default().path("/.gloveport/bin/complete").build();
    let look = docker.get_container_archive_info(filler, Some(complete));
    match engine.ask("look into the volume with our program", look).await {
        Ok(_) => return Ok(()),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(fault::of(error)),
    }
    let archive = |error| failed("be given our program", error);
    let mut tar = tar::Builder::new(Vec::with_capacity(bytes.len() + 4096));
    for (name, content) in [("gloveport", bytes.as_slice()), ("complete", b"")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        tar.append_data(&mut header, name, content).map_err(archive)?;
    }
    let tar = tar.into_inner().map_err(archive)?;
    let options = UploadToContainerOptionsBuilder::default().path(VOLUME).build();
    let upload = docker.upload_to_container(filler, Some(options), bollard::body_full(tar.into()));
    engine.ask("take our program", upload).await.map_err(fault::of)
}

async fn remove(engine: &Engine, container: &str) -> Result<(), ProviderError> {
    let docker = engine.docker().await.map_err(fault::of)?;
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match engine.ask("remove the container to copy through", docker.remove_container(container, Some(options))).await {
        Err(error) if !error.is_not_found() => Err(fault::of(error)),
        _ => Ok(()),
    }
}

/// The program and the beginning of its hash.
fn read(program: &Path) -> Result<(Vec<u8>, String), ProviderError> {
    let failed = |source| ProviderError::File { action: "read", path: program.to_owned(), source };
    let mut bytes = Vec::new();
    std::fs::File::open(program).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(failed)?;
    let hash = gloveport_ids::hex(&Sha256::digest(&bytes)[..8]);
    Ok((bytes, hash))
}

/// The directory of a user who may not make it, at this absolute path: an archive with nothing else in it.
pub(crate) fn directory_archive(path: &str) -> Result<Vec<u8>, ProviderError> {
    let archive = |error| failed("be given a directory", error);
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_mode(0o777);
    tar.append_data(&mut header, path.trim_start_matches('/'), std::io::empty()).map_err(archive)?;
    tar.into_inner().map_err(archive)
}
