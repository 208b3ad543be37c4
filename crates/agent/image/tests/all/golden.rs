//! Names are those that OpenHands 0.62 gives. `tests/reference/images.py --golden` writes what it answers.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeMap, fs};

use gloveport_image::{Fingerprint, Naming};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    repository: String,
    short: BTreeMap<String, String>,
    bases: BTreeMap<String, [String; 3]>,
    locks: Vec<Lock>,
    tree: Tree,
}

#[derive(Deserialize)]
struct Lock {
    base: String,
    browser: bool,
    inputs: Vec<String>,
    tag: String,
}

#[derive(Deserialize)]
struct Tree {
    files: BTreeMap<String, String>,
    hash: String,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/names.json")).unwrap()
}

#[test]
fn short_hashes_are_those_of_the_reference() {
    let short = golden().short;
    assert!(short.len() > 4);
    for (hex, expected) in short {
        assert_eq!(Fingerprint::from_hex(&hex).unwrap().short(), expected);
    }
}

#[test]
fn repositories_and_tags_of_bases_are_those_of_the_reference() {
    let golden = golden();
    let naming = Naming::new(Some(&golden.repository)).unwrap();
    assert!(golden.bases.len() > 20);
    for (base, expected) in golden.bases {
        let name = base.parse().unwrap();
        let generic = naming.generic(&name);
        assert_eq!([generic.repository, generic.tag, naming.versioned_tag(&name)], expected, "{base}");
    }
}

#[test]
fn lock_tags_have_the_formula_of_the_reference() {
    let golden = golden();
    let naming = Naming::new(Some(&golden.repository)).unwrap();
    assert!(golden.locks.len() > 4);
    for lock in golden.locks {
        let inputs: Vec<&[u8]> = lock.inputs.iter().map(String::as_bytes).collect();
        assert_eq!(naming.lock_tag(&lock.base.parse().unwrap(), lock.browser, &inputs), lock.tag);
    }
}

#[test]
fn a_directory_has_the_hash_of_the_reference() {
    let tree = golden().tree;
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in tree.files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert_eq!(Fingerprint::of_directory(folder.path()).unwrap().hex(), tree.hash);
}
