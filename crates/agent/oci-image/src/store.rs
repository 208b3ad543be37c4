//! The store: images of a directory.
//!
//! | what is there | |
//! |---|---|
//! | `images/HEX/root` | the tree of an image, by the digest of its configuration |
//! | `images/HEX/image.json` | what is known of it |
//! | `images/HEX/durable` | there if everything of it is on the disk |
//! | `images/HEX/lock` | locked by whoever uses it; its time says when it was used last |
//! | `owned-KEY/` | the same, where files were given to others: `KEY` stands for their numbers |
//! | `names/` | what references stood for |
//! | `locks/` | one file for each image, locked by whoever pulls it |
//! | `work/` | what is not finished |

mod durable;
mod images;
mod locks;
mod names;
mod pull;
mod work;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_platform as platform;
use tokio::task::spawn_blocking;

use crate::{
    digest::Digest,
    error::ImageError,
    image::{Image, Progress, Pull, Stored},
    limits::Options,
    owners::Owners,
    reference::{Form, Local, Name, Reference, Version},
    registry::Registry,
    source::{Resolved, docker, files::Files, layout, resolve::resolve},
    words::shown,
};
use images::{Images, New};
use names::{Known, Names, Stamp};
use pull::Told;
use work::Work;

/// Where images are whose files belong to one user, and what the name begins with where they belong to several.
const IMAGES: &str = "images";
const OWNED: &str = "owned-";
/// Characters of what tells several owners from others.
const KEY: usize = 16;

/// Images of this machine, in a directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Those that are got: all are of one kind.
    images: Images,
    names: Names,
    locks: PathBuf,
    work: PathBuf,
    options: Options,
}

impl Store {
    /// Opens a store, or makes it, for this user alone. Credentials for registries are those of `docker login`.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, or files cannot be given to owners.
    pub fn open(directory: &Path, owners: Option<Arc<dyn Owners>>) -> Result<Self, ImageError> {
        let home = std::env::var_os(platform::HOME).map(|home| PathBuf::from(home).join(".docker"));
        let docker = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from).or(home);
        let docker_config = docker.filter(|path| path.is_absolute()).map(|path| path.join("config.json"));
        Self::open_with(directory, Options { docker_config, owners, ..Options::default() })
    }

    /// The same, with other bounds and credentials, and with owners of files.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, or files cannot be given to owners.
    pub fn open_with(directory: &Path, options: Options) -> Result<Self, ImageError> {
        let directory = std::path::absolute(directory).map_err(ImageError::store("find", directory))?;
        let below = |name: &str| -> Result<PathBuf, ImageError> {
            let path = directory.join(name);
            platform::private_directory().recursive(true).create(&path).map_err(ImageError::store("make", &path))?;
            Ok(path)
        };
        let (names, locks, work) = (below("names")?, below("locks")?, below("work")?);
        let images = match &options.owners {
            None => below(IMAGES)?,
            Some(owners) => {
                let key: String = Digest::of(owners.numbers().as_bytes()).hex().chars().take(KEY).collect();
                let path = directory.join(format!("{OWNED}{key}"));
                if !path.is_dir() {
                    owners.try_out().map_err(|source| ImageError::Owners { source })?;
                }
                below(&format!("{OWNED}{key}"))?
            }
        };
        let images = Images { path: images, has_owners: options.owners.is_some(), owners: options.owners.clone() };
        // Who may enter it could run programs of images with the rights that they have there.
        platform::set_mode(&directory, 0o700).map_err(ImageError::store("close to others", &directory))?;
        Ok(Self { directory, images, names: Names(names), locks, work, options })
    }

    /// An image, which is pulled and unpacked before if it has to be. If another process does that at the moment, its end
    /// is waited for.
    ///
    /// A reference is a name such as `python:3.12-slim`, `ghcr.io/team/image@sha256:…` or `localhost:5000/x:tag` (plain HTTP
    /// is spoken with this machine only), or `oci:DIRECTORY[:TAG]`, `oci-archive:FILE[:TAG]`, `docker-archive:FILE[:NAME]`.
    ///
    /// If the future is dropped, the work ends soon, and leaves nothing.
    ///
    /// # Errors
    ///
    /// The reference names no image; the image cannot be read, is damaged, too large, for other machines, or would have
    /// entries that cannot be unpacked; the disk is full; or something takes too long. Nothing of it is kept then.
    pub async fn get(&self, reference: &str, pull: Pull, told: Told<'_>) -> Result<Image, ImageError> {
        let reference = Reference::parse(reference)?;
        let text = reference.to_string();
        let known = self.names.find(&text)?;
        if let Some(known) = known.as_ref().filter(|known| is_current(&reference, known, pull))
            && let Some(image) = self.images.open(known.digest).await?
        {
            told(Progress::Done);
            return Ok(image);
        }
        if pull == Pull::Never {
            return Err(ImageError::NotHere { reference: text });
        }
        told(Progress::Resolving);
        // Before it is read, so that a change meanwhile is one.
        let stamp = Stamp::of(&reference);
        let (resolved, registry) = self.resolve(&reference, &text).await?;
        let known = Known { reference: text, digest: resolved.digest, origin: resolved.origin, stamp };
        let image = match self.images.open(resolved.digest).await? {
            Some(image) => image,
            None => self.unpack(resolved, registry.as_ref(), told).await?,
        };
        self.names.note(&known)?;
        told(Progress::Done);
        Ok(image)
    }

    async fn resolve(&self, reference: &Reference, text: &str) -> Result<(Resolved, Option<Registry>), ImageError> {
        let limits = &self.options.limits;
        match reference {
            Reference::Registry(name) => {
                let registry = Registry::new(name, &self.options)?;
                let first = registry.first(&name.version).await?;
                let resolved = resolve(&registry, first, text, limits).await?;
                Ok((resolved, Some(registry)))
            }
            Reference::Local(Local { form, path, tag }) => {
                let files = match form {
                    Form::Layout => Files::directory(path),
                    Form::LayoutArchive | Form::DockerArchive => {
                        let path = path.clone();
                        spawn_blocking(move || Files::archive(&path)).await.map_err(|_| ImageError::Stopped)??
                    }
                };
                let tag = tag.as_deref();
                let resolved = match form {
                    Form::Layout | Form::LayoutArchive => layout::find(&files, tag, text, limits).await?,
                    Form::DockerArchive => docker::find(&files, tag, text, limits)?,
                };
                Ok((resolved, None))
            }
        }
    }

    async fn unpack(
        &self,
        mut resolved: Resolved,
        registry: Option<&Registry>,
        told: Told<'_>,
    ) -> Result<Image, ImageError> {
        let digest = resolved.digest;
        let lock = self.locks.join(digest.hex());
        let _lock = locks::alone(&lock, self.options.limits.wait, || told(Progress::Waiting)).await?;
        if let Some(image) = self.images.open(digest).await? {
            return Ok(image);
        }
        let (below, owners) = (self.work.clone(), self.options.owners.clone());
        let work = spawn_blocking(move || {
            work::sweep(&below, owners.as_ref());
            Work::new(&below, owners.as_ref())
        });
        let work = Arc::new(work.await.map_err(|_| ImageError::Stopped)??);
        let result = self.unpack_in(&work, &mut resolved, registry, told).await;
        // Removing a tree takes a while.
        let removed = spawn_blocking(move || drop(work)).await;
        removed.map_err(|_| ImageError::Stopped)?;
        result
    }

    async fn unpack_in(
        &self,
        work: &Arc<Work>,
        resolved: &mut Resolved,
        registry: Option<&Registry>,
        told: Told<'_>,
    ) -> Result<Image, ImageError> {
        let new = New::begin(work.path())?;
        let summary = pull::pull(resolved, registry, work, &new.root(), &self.options, told).await.map_err(
            |error| match error {
                // Where images are kept tells more than where this one was.
                ImageError::Full { needed, .. } => ImageError::Full { path: self.images.path.clone(), needed },
                other => other,
            },
        )?;
        let (images, config, digest) = (self.images.clone(), resolved.config.clone(), resolved.digest);
        let (work, started) = (Arc::clone(work), new);
        let published = spawn_blocking(move || {
            let _work = work;
            images.publish(&started, digest, config, summary)
        });
        published.await.map_err(|_| ImageError::Stopped)?
    }

    /// All images of the store, by their digests.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<Stored>, ImageError> {
        let names = self.names.all()?;
        let mut all: Vec<Stored> = Vec::new();
        for found in self.kinds()?.iter().map(Images::all).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            match all.iter_mut().find(|one| one.digest == found.digest) {
                Some(one) => one.join(&found),
                None => all.push(found),
            }
        }
        all.sort_by(|one, other| one.digest.cmp(&other.digest));
        for stored in &mut all {
            let of = names.iter().filter(|known| known.digest.to_string() == stored.digest);
            stored.references = of.map(|known| known.reference.clone()).collect();
        }
        Ok(all)
    }

    /// Removes an image, by its digest or a reference. If it has other references, only this one is forgotten, and nothing
    /// is freed. Returns the bytes that were freed.
    ///
    /// # Errors
    ///
    /// There is no such image, a process has a lease of it, or it cannot be removed.
    pub fn remove(&self, reference_or_digest: &str) -> Result<u64, ImageError> {
        let missing = || ImageError::Unknown { reference: shown(reference_or_digest, 300) };
        let names = self.names.all()?;
        let (digest, reference) = if let Ok(digest) = reference_or_digest.parse::<Digest>() {
            (digest, None)
        } else {
            let reference = Reference::parse(reference_or_digest)?.to_string();
            let known = names.iter().find(|known| known.reference == reference).ok_or_else(missing)?;
            (known.digest, Some(reference))
        };
        let own = |known: &&Known| reference.as_ref().is_none_or(|reference| *reference == known.reference);
        let (own, others): (Vec<&Known>, Vec<&Known>) =
            names.iter().filter(|known| known.digest == digest).partition(own);
        let freed = if others.is_empty() { self.remove_all(digest, reference_or_digest)? } else { Some(0) };
        for known in own {
            self.names.forget(&known.reference)?;
        }
        match freed {
            Some(bytes) => Ok(bytes),
            // A name whose image is gone was worth forgetting.
            None if reference.is_some() => Ok(0),
            None => Err(missing()),
        }
    }
}

impl Store {
    /// Images of every kind.
    fn kinds(&self) -> Result<Vec<Images>, ImageError> {
        let failed = || ImageError::store("list", &self.directory);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let has_owners = name.starts_with(OWNED);
            if has_owners || name == IMAGES {
                found.push(Images { has_owners, owners: self.options.owners.clone(), path });
            }
        }
        Ok(found)
    }

    /// Removes an image of every kind that there is of it, if nobody uses one; returns their bytes.
    fn remove_all(&self, digest: Digest, shown: &str) -> Result<Option<u64>, ImageError> {
        let mut claimed = Vec::new();
        for images in self.kinds()? {
            claimed.extend(images.claim(digest, shown)?.map(|claimed| (images, claimed)));
        }
        let freed = claimed.iter().map(|(images, claimed)| images.remove(claimed, &self.work));
        let freed = freed.collect::<Result<Vec<_>, _>>()?;
        Ok((!freed.is_empty()).then(|| freed.into_iter().sum()))
    }
}

/// Whether what is known of a reference counts without asking.
fn is_current(reference: &Reference, known: &Known, pull: Pull) -> bool {
    match (pull, reference) {
        // What a digest stands for never changes.
        (Pull::Never, _)
        | (_, Reference::Registry(Name { version: Version::Digest(_), .. }))
        | (Pull::Missing, Reference::Registry(_)) => true,
        (Pull::Always, Reference::Registry(_)) => false,
        // A file that is gone was no change.
        (Pull::Missing | Pull::Always, Reference::Local(_)) => {
            Stamp::of(reference).is_none_or(|stamp| known.stamp.as_ref() == Some(&stamp))
        }
    }
}
