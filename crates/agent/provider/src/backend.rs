//! How others find out that a backend of this machine has died: a file that the backend keeps locked for its life.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use gloveport_platform::{boot_id, device, private_directory, private_file, user_id};
use sha2::{Digest as _, Sha256};

use crate::ProviderError;

/// What the names of files begin with that are not locked yet.
const NEW: &str = ".new-";
/// Age at which such a file is taken for a left-over.
const LEFT_OVER: Duration = Duration::from_mins(10);

/// One backend: the lock is held until this is dropped or its process ends, however it ends.
#[derive(Debug)]
pub struct BackendLock {
    /// Its name: 32 random hexadecimal digits.
    pub id: String,
    /// The file that is locked.
    pub lock: PathBuf,
    _held: File,
}

impl BackendLock {
    /// A new backend in this directory, which is made; what dead backends left there is removed.
    pub fn start(directory: &Path) -> Result<Self, ProviderError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ProviderError::File { action, path, source }
        };
        private_directory().recursive(true).create(directory).map_err(failed("make", directory))?;
        sweep(directory);
        let id = random().map_err(failed("make a name in", directory))?;
        let unlocked = directory.join(format!("{NEW}{id}"));
        let lock = directory.join(&id);
        let opened = private_file().write(true).create_new(true).open(&unlocked);
        let held = opened.map_err(failed("make", &unlocked))?;
        held.lock().map_err(failed("lock", &unlocked))?;
        fs::rename(&unlocked, &lock).map_err(failed("make", &lock))?;
        Ok(Self { id, lock, _held: held })
    }
}

/// The backends of one user on one machine as others see them: this one, and whether another lives.
#[derive(Debug)]
pub struct Backends {
    directory: PathBuf,
    own: Mutex<Option<BackendLock>>,
    machine: OnceLock<String>,
}

impl Backends {
    /// Those whose files are in this directory ([`directory`]). Nothing is written yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, own: Mutex::default(), machine: OnceLock::new() }
    }

    /// Where their files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The id of this backend, which lives from now on in the eyes of others.
    pub fn own(&self) -> Result<String, ProviderError> {
        let mut own = self.lock();
        if let Some(own) = &*own {
            return Ok(own.id.clone());
        }
        let made = BackendLock::start(&self.directory)?;
        Ok(own.insert(made).id.clone())
    }

    /// No longer lives in the eyes of others.
    pub fn vanish(&self) {
        *self.lock() = None;
    }

    /// This backend as a label of an engine tells it: `PLACE/ID`.
    pub fn label(&self) -> Result<String, ProviderError> {
        Ok(format!("{}/{}", self.place(), self.own()?))
    }

    /// Whether the backend of a label lives, as far as its file tells.
    pub fn known(&self, label: &str) -> Known {
        match label.split_once('/') {
            Some((at, id)) if at == self.place() => {
                if lives(&self.directory, id) {
                    Known::Lives
                } else {
                    Known::Dead
                }
            }
            Some(_) => Known::Elsewhere,
            None => Known::Dead,
        }
    }

    /// Where this backend's files are: only those who look there know whether it lives. A layer over the files of others, as
    /// containers have, shows the same files under the same path, but not who has locked them: it is another device.
    fn place(&self) -> String {
        let device = device(&self.directory).unwrap_or_default();
        let mut digest = Sha256::new_with_prefix(device.to_le_bytes());
        digest.update(self.directory.as_os_str().as_encoded_bytes());
        let digest = digest.finalize();
        let user = user_id().unwrap_or_default();
        let directory = gloveport_ids::hex(&digest[..4]);
        format!("{}-{user}-{directory}", self.machine.get_or_init(|| self.machine()))
    }

    /// A name of these files: containers of one machine have files of their own under the same path. It is another one after
    /// a start of the machine where the system tells, because no backend survives that. Where none can be kept it is this
    /// process's own, so that no other backend is taken for a dead one.
    fn machine(&self) -> String {
        let start = boot_id().map(|start| format!("{start}-")).unwrap_or_default();
        let kept = self.kept_name().or_else(|_| random()).unwrap_or_default();
        format!("{start}{}", kept.get(..16).unwrap_or(&kept))
    }

    fn kept_name(&self) -> io::Result<String> {
        let file = self.directory.with_file_name("machine");
        match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
        if let Some(directory) = file.parent() {
            private_directory().recursive(true).create(directory)?;
        }
        let name = random()?;
        let new = file.with_file_name(format!("machine.{name}"));
        private_file().write(true).create_new(true).open(&new)?;
        // Whole before it has its name, and the first one stays.
        let placed = fs::write(&new, &name).and_then(|()| gloveport_platform::rename_new(&new, &file));
        match placed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&new)?;
                fs::read_to_string(&file)
            }
            placed => placed.map(|()| name),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BackendLock>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the files of backends tell about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It lives.
    Lives,
    /// It has died.
    Dead,
    /// It is of another machine or of another user, about whom the files here say nothing.
    Elsewhere,
}

/// Whether the backend of this id lives, whose file is in this directory.
pub fn lives(directory: &Path, id: &str) -> bool {
    match File::open(directory.join(id)) {
        Ok(file) => file.try_lock().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Where backends of this user have their files: what does not outlive the machine's uptime, or else the user's state.
pub fn directory(environment: &BTreeMap<String, String>) -> PathBuf {
    gloveport_platform::state_directory(environment).join("gloveport").join("backends")
}

impl Drop for BackendLock {
    fn drop(&mut self) {
        // Whoever finds no file knows as much as from one without a lock.
        let _gone_already = fs::remove_file(&self.lock);
    }
}

/// 32 hexadecimal digits of the system's random numbers.
pub fn random() -> io::Result<String> {
    Ok(gloveport_ids::random::<16>()?)
}

/// Removes the files of dead backends. Nothing depends on it.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_new = entry.file_name().to_string_lossy().starts_with(NEW);
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if is_new && age.is_none_or(|age| age < LEFT_OVER) {
            continue;
        }
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _gone_already = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_locked_for_its_life_and_the_files_of_dead_ones_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let one = BackendLock::start(directory.path()).unwrap();
        assert!(File::open(&one.lock).unwrap().try_lock().is_err());
        // What a killed backend leaves: a file without a lock.
        let dead = directory.path().join("dead");
        fs::write(&dead, "").unwrap();
        let two = BackendLock::start(directory.path()).unwrap();
        assert!(!dead.exists() && one.lock.exists() && two.lock.exists());
        assert!(lives(directory.path(), &one.id) && !lives(directory.path(), "dead"));
        let lock = one.lock.clone();
        drop(one);
        assert!(!lock.exists());
    }

    #[test]
    fn a_machine_without_a_name_of_its_start_keeps_a_random_one() {
        let directory = tempfile::tempdir().unwrap();
        let of = |directory: &Path| Backends::new(directory.join("gloveport/backends")).kept_name().unwrap();
        let name = of(directory.path());
        assert_eq!((name.len(), of(directory.path())), (32, name));
        assert_eq!(fs::read_dir(directory.path().join("gloveport")).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(of(other.path()), of(directory.path()));
    }

    #[test]
    fn whether_a_backend_lives_is_known_where_its_files_are() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("backends");
        let (one, other) = (Backends::new(place.clone()), Backends::new(place));
        let label = one.label().unwrap();
        let elsewhere = Backends::new(directory.path().join("of-another-user/backends"));
        assert_eq!(
            [other.known(&label), elsewhere.known(&label), other.known("elsewhere/x"), other.known("x")],
            [Known::Lives, Known::Elsewhere, Known::Elsewhere, Known::Dead]
        );
        drop(one);
        assert_eq!([other.known(&label), elsewhere.known(&label)], [Known::Dead, Known::Elsewhere]);
    }
}
