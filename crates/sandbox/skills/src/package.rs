//! The files of the package, unpacked where nobody else can change them.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use crate::place::{self, Place};

macro_rules! files {
    ($($path:literal),* $(,)?) => { &[$(($path, include_str!(concat!("../../../../python/", $path)))),*] };
}

/// Paths in the package, and contents.
const FILES: &[(&str, &str)] = files![
    "gloveport/__init__.py",
    "gloveport/skills/__init__.py",
    "gloveport/skills/editor.py",
    "gloveport/skills/media.py",
    "gloveport/skills/navigation.py",
    "gloveport/skills/readers.py",
    "openhands/runtime/plugins/agent_skills/agentskills.py",
];

/// A file that can be read if the package can be used.
pub(crate) const PROBE: &str = "gloveport/skills/editor.py";

/// Where Python keeps what it compiled, if it may.
const COMPILED: &str = "__pycache__";

/// What the name of each directory of a package begins with.
const PREFIX: &str = "packages-";

/// The unpacked package, which stays as long as this does.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its directory.
    pub(crate) directory: PathBuf,
    _in_use: File,
}

impl Package {
    /// The package, which is unpacked if it is not there or not as it was. Those of other versions that nobody uses are
    /// removed.
    pub(crate) fn at(place: &Place) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", digest());
        let lock = place.root().join(format!("{name}.lock"));
        let in_use = place::lock_shared(&lock)
            .map_err(|error| place::said(&format!("cannot lock {}", lock.display()), &error))?;
        place::remove_unlocked(place.root(), PREFIX);
        Ok(Self { directory: unpacked(place, &name)?, _in_use: in_use })
    }
}

fn unpacked(place: &Place, name: &str) -> io::Result<PathBuf> {
    let target = place.root().join(name);
    if is_intact(&target) {
        return Ok(target);
    }
    let fresh = place.own().join("packages");
    write(&fresh)?;
    // Two servers may do this at once. What one of them puts there is what the other one wants.
    for attempt in 0..10 {
        match fs::rename(&fresh, &target) {
            Ok(()) => break,
            Err(_) if is_intact(&target) => return Ok(target),
            Err(error) if attempt == 9 => {
                return Err(place::said(&format!("cannot make {}", target.display()), &error));
            }
            // Something else is there.
            Err(_) => match fs::rename(&target, place.own().join(format!("damaged-{attempt}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(place::said(&format!("cannot remove {}, which is damaged", target.display()), &error));
                }
                _ => {}
            },
        }
    }
    Ok(target)
}

/// Tells one content of the package from another.
fn digest() -> String {
    let mut hash = Sha256::new();
    for (path, content) in FILES {
        for part in [path, content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    gloveport_ids::hex(&hash.finalize()[..12])
}

fn write(root: &Path) -> io::Result<()> {
    make_directory(root)?;
    for (path, content) in FILES {
        let mut directory = root.to_owned();
        for part in Path::new(path).parent().into_iter().flat_map(Path::components) {
            directory.push(part);
            if !directory.exists() {
                make_directory(&directory)?;
            }
        }
        let path = root.join(path);
        let written = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path).and_then(|mut file| {
            file.write_all(content.as_bytes())?;
            file.set_permissions(Permissions::from_mode(0o644))
        });
        written.map_err(|error| place::said(&format!("cannot write {}", path.display()), &error))?;
    }
    Ok(())
}

/// A directory that everybody can read, whatever the mask of this process is.
fn make_directory(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o755).create(path);
    made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|error| place::said(&format!("cannot make {}", path.display()), &error))
}

/// Whether all files are there as they were written, with nothing beside them, and nobody else can change that.
fn is_intact(root: &Path) -> bool {
    let mut found = 0;
    is_intact_below(root, root, &mut found).unwrap_or(false) && found == FILES.len()
}

fn is_intact_below(root: &Path, path: &Path, found: &mut usize) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    let is_compiled = path.components().any(|part| part.as_os_str() == COMPILED);
    // Who is this user can change everything anyway.
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Ok(false);
    }
    if metadata.is_dir() {
        if !is_compiled && metadata.mode() & 0o555 != 0o555 {
            return Ok(false);
        }
        for entry in fs::read_dir(path)? {
            if !is_intact_below(root, &entry?.path(), found)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if is_compiled {
        return Ok(metadata.is_file());
    }
    let Some((_, content)) = FILES.iter().find(|(known, _)| root.join(known) == path) else { return Ok(false) };
    *found += 1;
    let same = metadata.is_file()
        && metadata.mode() & 0o444 == 0o444
        && metadata.len() == content.len() as u64
        && io::read_to_string(File::open(path)?).is_ok_and(|text| text == *content);
    Ok(same)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, os::unix::fs::symlink};

    use super::*;

    fn sources(directory: &Path, below: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory.join(below)).unwrap() {
            let path = below.join(entry.unwrap().file_name());
            if path == Path::new("tests") || path.ends_with(COMPILED) {
                continue;
            }
            if directory.join(&path).is_dir() {
                sources(directory, &path, found);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                found.insert(path.display().to_string());
            }
        }
    }

    #[test]
    fn every_file_of_the_package_is_in_the_program() {
        let mut found = BTreeSet::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python"), Path::new(""), &mut found);
        assert_eq!(found, FILES.iter().map(|(path, _)| (*path).to_owned()).collect());
        assert!(FILES.iter().any(|(path, _)| *path == PROBE));
    }

    #[test]
    fn what_is_unpacked_is_used_again_and_what_was_changed_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::at(&directory.path().join("root")).unwrap();
        let packages = Package::at(&place).unwrap().directory;
        let file = packages.join(PROBE);
        let number = |path: &Path| fs::metadata(path).unwrap().ino();
        let first = number(&packages);
        fs::create_dir(packages.join(COMPILED)).unwrap();
        fs::write(packages.join(COMPILED).join("editor.pyc"), "").unwrap();
        assert_eq!(number(&Package::at(&place).unwrap().directory), first);

        let changes: [(&str, &dyn Fn()); 6] = [
            ("another content", &|| fs::write(&file, "import os").unwrap()),
            ("a missing file", &|| fs::remove_file(&file).unwrap()),
            ("a strange file", &|| fs::write(packages.join("gloveport/os.py"), "").unwrap()),
            ("a file that others write", &|| fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap()),
            ("a directory that others write", &|| {
                fs::set_permissions(packages.join("gloveport"), Permissions::from_mode(0o777)).unwrap();
            }),
            ("a link", &|| {
                fs::rename(packages.join("gloveport"), directory.path().join("elsewhere")).unwrap();
                symlink(directory.path().join("elsewhere"), packages.join("gloveport")).unwrap();
            }),
        ];
        for (name, change) in changes {
            let before = number(&packages);
            change();
            assert!(!is_intact(&packages), "{name}");
            let place = Place::at(&directory.path().join("root")).unwrap();
            assert_eq!(Package::at(&place).unwrap().directory, packages, "{name}");
            assert!(is_intact(&packages), "{name}");
            assert_ne!(number(&packages), before, "{name}");
        }
    }
    #[test]
    fn other_versions_are_removed_when_nobody_uses_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        let place = Place::at(&root).unwrap();
        for name in ["packages-used", "packages-unused"] {
            fs::create_dir_all(root.join(name).join("gloveport")).unwrap();
            fs::write(root.join(format!("{name}.lock")), "").unwrap();
        }
        let used = place::lock_shared(&root.join("packages-used.lock")).unwrap();
        let package = Package::at(&place).unwrap();
        let there = |name: &str| (root.join(name).exists(), root.join(format!("{name}.lock")).exists());
        assert_eq!([there("packages-used"), there("packages-unused")], [(true, true), (false, false)]);
        drop(used);
        let second = Package::at(&place).unwrap();
        assert_eq!(there("packages-used"), (false, false));
        assert!(is_intact(&package.directory) && second.directory == package.directory);
    }
}
