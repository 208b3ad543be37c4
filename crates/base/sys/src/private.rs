//! The directory of this user's notes about its own processes and files, which nobody else can write to.
//!
//! It is `.gloveport-UID` in the temporary directory. Whoever makes that name first may be another user: then it is one
//! with a random end, which is found again by its owner.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// What the names begin with.
pub(crate) const PREFIX: &str = ".gloveport-";
/// Entries of the temporary directory that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// The directory; it is made where it is missing.
///
/// # Errors
///
/// None can be made.
pub(crate) fn directory() -> io::Result<PathBuf> {
    directory_in(&std::env::temp_dir())
}

/// All of them: where the name was somebody else's for a while there is more than one.
pub(crate) fn all() -> Vec<PathBuf> {
    all_in(&std::env::temp_dir())
}

/// A random name.
///
/// # Errors
///
/// The system gives no random numbers.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

fn name() -> String {
    format!("{PREFIX}{}", rustix::process::geteuid().as_raw())
}

fn directory_in(place: &Path) -> io::Result<PathBuf> {
    let first = place.join(name());
    if is_made(&first)? {
        return Ok(first);
    }
    tracing::debug!(path = %first.display(), "it is not a directory that only this user can write to; another one is used");
    if let Some(other) = others_in(place).next() {
        return Ok(other);
    }
    let other = place.join(format!("{}-{:016x}", name(), random()?));
    if is_made(&other)? {
        return Ok(other);
    }
    Err(io::Error::other(format!("no directory in {} is this user's alone", place.display())))
}

fn all_in(place: &Path) -> Vec<PathBuf> {
    let first = place.join(name());
    is_ours(&first).then_some(first).into_iter().chain(others_in(place)).collect()
}

/// Those with a random end.
fn others_in(place: &Path) -> impl Iterator<Item = PathBuf> {
    let prefix = format!("{}-", name());
    let entries = fs::read_dir(place).into_iter().flatten().take(MOST_ENTRIES).flatten();
    let named = entries.filter(move |entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
    named.map(|entry| entry.path()).filter(|path| is_ours(path))
}

/// Makes a directory for this user alone; whether it is one, also if it was there.
fn is_made(path: &Path) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(is_ours(path)),
    }
}

fn is_ours(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn a_name_that_somebody_else_made_first_is_not_used_and_the_other_one_is_found_again() {
        type Make<'a> = &'a dyn Fn(&Path);
        let elsewhere = tempfile::tempdir().unwrap();
        let tries: [(&str, Make<'_>); 4] = [
            ("a link", &|path| symlink(elsewhere.path(), path).unwrap()),
            ("a file", &|path| fs::write(path, "").unwrap()),
            ("a directory that all write to", &|path| {
                fs::create_dir(path).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            }),
            ("a directory of another user", &|path| {
                fs::create_dir(path).unwrap();
                if rustix::process::geteuid().is_root() {
                    chown(path, Some(4_242), None).unwrap();
                } else {
                    fs::set_permissions(path, fs::Permissions::from_mode(0o770)).unwrap();
                }
            }),
        ];
        for (case, make) in tries {
            let place = tempfile::tempdir().unwrap();
            make(&place.path().join(name()));
            let found = directory_in(place.path()).unwrap();
            assert_ne!(found, place.path().join(name()), "{case}");
            assert_eq!(fs::metadata(&found).unwrap().mode() & 0o777, 0o700, "{case}");
            assert_eq!(directory_in(place.path()).unwrap(), found, "{case}");
            assert_eq!(all_in(place.path()), [found], "{case}");
        }
        let place = tempfile::tempdir().unwrap();
        assert_eq!(directory_in(place.path()).unwrap(), place.path().join(name()));
        assert_eq!(all_in(place.path()), [place.path().join(name())]);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
