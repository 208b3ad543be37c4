//! Images that are unpacked, each in a directory that is complete from the moment on at which it has its name.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use gloveport_platform as platform;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::{durable, locks, names, work::Work};
use crate::{
    config::Config,
    digest::Digest,
    error::ImageError,
    image::{Image, Lease, Stored},
    owners::{self, Owners},
    unpack::Summary,
    words,
};

/// How long it is waited for whoever looks whether an image is in use, or removes it.
const LOOKED_AT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

/// The directory of all images.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    pub(crate) path: PathBuf,
    /// Whether files of them were given to others.
    pub(crate) has_owners: bool,
    /// Who removes those.
    pub(crate) owners: Option<Arc<dyn Owners>>,
}

/// An image that nobody uses, and nobody begins to.
#[derive(Debug)]
pub(crate) struct Claimed {
    directory: PathBuf,
    bytes: u64,
    _lock: File,
}

/// What is known of an image beside its tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    config: Config,
    bytes: u64,
    left_out: u64,
    /// Seconds since 1970.
    created: u64,
    /// The start of the machine at which it was unpacked.
    start: String,
}

/// An image that is being unpacked.
#[derive(Debug)]
pub(crate) struct New(PathBuf);

impl New {
    /// Begins an image in a directory for work.
    pub(crate) fn begin(work: &Path) -> Result<Self, ImageError> {
        let new = Self(work.join("image"));
        for path in [&new.0, &new.root()] {
            platform::private_directory().create(path).map_err(ImageError::store("make", path))?;
        }
        platform::set_mode(&new.root(), 0o755).map_err(ImageError::store("open to its users", new.root()))?;
        Ok(new)
    }

    /// Where it is unpacked to.
    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }
}

impl Images {
    fn directory(&self, digest: Digest) -> PathBuf {
        self.path.join(digest.hex())
    }

    /// An image that is there, with a lease.
    pub(crate) async fn open(&self, digest: Digest) -> Result<Option<Image>, ImageError> {
        let directory = self.directory(digest);
        let path = directory.join("lock");
        let begin = std::time::Instant::now();
        loop {
            let lock = match File::open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(ImageError::store("open", path)(error)),
            };
            let locked = locks::try_lock(&lock, FlockOperation::NonBlockingLockShared);
            // It may have been removed, and unpacked again, meanwhile.
            if locked.map_err(ImageError::store("lock", &path))? && platform::is_at(&lock, &path).is_ok_and(|same| same)
            {
                drop(lock.set_modified(SystemTime::now()));
                let Some(facts) = read(&directory)? else { return Ok(None) };
                if !durable::is_whole(&directory, &facts.start) {
                    return Ok(None);
                }
                durable::wait_for_disk(&directory);
                return Ok(Some(self.image(&directory, digest, facts, lock)));
            }
            if begin.elapsed() > LOOKED_AT {
                let what = "waiting for whoever removes this image".to_owned();
                return Err(ImageError::TimedOut { what, limit: LOOKED_AT });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Gives an image its name.
    pub(crate) fn publish(
        &self,
        new: &New,
        digest: Digest,
        config: Config,
        summary: Summary,
    ) -> Result<Image, ImageError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (bytes, left_out) = (summary.bytes, summary.left_out);
        let facts = Facts { config, bytes, left_out, created: now.as_secs(), start: durable::this_start() };
        let path = new.0.join("image.json");
        names::write(&path, &facts).map_err(ImageError::store("write", path))?;
        let path = new.0.join("lock");
        let lock = platform::private_file().write(true).create_new(true).open(&path);
        let lock = lock.map_err(ImageError::store("make", &path))?;
        locks::try_lock(&lock, FlockOperation::NonBlockingLockShared).map_err(ImageError::store("lock", path))?;
        let directory = self.directory(digest);
        // A directory without what an image needs is none, and one that may not be whole is of no use.
        if directory.exists() {
            owners::remove(&directory, self.owners.as_deref()).map_err(ImageError::store("remove", &directory))?;
        }
        platform::rename_new(&new.0, &directory).map_err(ImageError::store("give its name to", &directory))?;
        durable::wait_for_disk(&directory);
        Ok(self.image(&directory, digest, facts, lock))
    }

    /// All that are there, without their references.
    pub(crate) fn all(&self) -> Result<Vec<Stored>, ImageError> {
        let failed = || ImageError::store("list", &self.path);
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let digest = entry.file_name().to_str().and_then(|name| format!("sha256:{name}").parse::<Digest>().ok());
            let Some(digest) = digest else { continue };
            let directory = entry.path();
            // One that is removed at this moment is none.
            let (Some(facts), Ok(lock)) = (read(&directory)?, File::open(directory.join("lock"))) else { continue };
            let last_used = lock.metadata().and_then(|metadata| metadata.modified());
            let is_free = locks::try_lock(&lock, FlockOperation::NonBlockingLockExclusive);
            all.push(Stored {
                references: Vec::new(),
                digest: digest.to_string(),
                bytes: facts.bytes,
                created: SystemTime::UNIX_EPOCH + Duration::from_secs(facts.created),
                last_used: last_used.map_err(ImageError::store("read", &directory))?,
                in_use: !is_free.map_err(ImageError::store("lock", &directory))?,
            });
        }
        all.sort_by(|one, other| one.digest.cmp(&other.digest));
        Ok(all)
    }

    /// Keeps an image that nobody uses from those who want it; `None` if there is none.
    pub(crate) fn claim(&self, digest: Digest, shown: &str) -> Result<Option<Claimed>, ImageError> {
        let directory = self.directory(digest);
        let path = directory.join("lock");
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ImageError::store("open", path)(error)),
        };
        let locked = locks::try_lock(&lock, FlockOperation::NonBlockingLockExclusive);
        if !locked.map_err(ImageError::store("lock", &path))? {
            return Err(ImageError::InUse { reference: words::shown(shown, 300) });
        }
        if !platform::is_at(&lock, &path).is_ok_and(|same| same) {
            return Ok(None);
        }
        let bytes = read(&directory)?.map_or(0, |facts| facts.bytes);
        Ok(Some(Claimed { directory, bytes, _lock: lock }))
    }

    /// Removes it; returns its bytes.
    pub(crate) fn remove(&self, claimed: &Claimed, work: &Path) -> Result<u64, ImageError> {
        let Claimed { directory, bytes, .. } = claimed;
        let work = Work::new(work, self.owners.as_ref())?;
        fs::rename(directory, work.path().join("image")).map_err(ImageError::store("remove", directory))?;
        Ok(*bytes)
    }

    fn image(&self, directory: &Path, digest: Digest, facts: Facts, lock: File) -> Image {
        Image {
            digest: digest.to_string(),
            root: directory.join("root"),
            has_owners: self.has_owners,
            config: facts.config,
            left_out: facts.left_out,
            lease: Lease(lock),
        }
    }
}

fn read(directory: &Path) -> Result<Option<Facts>, ImageError> {
    let path = directory.join("image.json");
    names::read(&path).map_err(ImageError::store("read", path))
}
