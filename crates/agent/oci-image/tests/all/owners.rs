//! Images whose files are given to others when they are unpacked.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use gloveport_oci_image::{Files, ImageError, Options, Owners, Pull, Store};

use crate::support::{Entry, Place, directory, entry, file, hard, image, link, names, quiet};

/// What was given by name: user and group.
type Given = BTreeMap<PathBuf, (u32, u32)>;

/// Notes what is given, by the names that it has then.
#[derive(Debug, Default)]
struct Notes {
    numbers: String,
    cannot: bool,
    given: Mutex<Vec<Given>>,
}

impl Notes {
    fn last(&self) -> Given {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap()
    }
}

fn by_name(root: &Path, directory: &Path, files: &[(u64, u32, u32)], found: &mut Given) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let seen = fs::symlink_metadata(&path).unwrap();
        if let Some((_, user, group)) = files.iter().find(|(number, ..)| *number == seen.ino()) {
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (*user, *group));
        }
        if seen.is_dir() {
            by_name(root, &path, files, found);
        }
    }
}

impl Owners for Notes {
    fn numbers(&self) -> String {
        self.numbers.clone()
    }

    fn try_out(&self) -> io::Result<()> {
        if self.cannot { Err(io::Error::other("newuidmap failed: not allowed")) } else { Ok(()) }
    }

    fn give(&self, tree: &Path, files: Files) -> io::Result<()> {
        let mut found = Given::new();
        by_name(tree, tree, &files, &mut found);
        // Each is the number of something that is there.
        assert!(files.len() <= found.len(), "{files:?} {found:?}");
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push(found);
        Ok(())
    }

    fn remove(&self, tree: &Path) -> io::Result<()> {
        panic!("{} has no file of others here", tree.display());
    }
}

fn store(place: &Place, notes: &Arc<Notes>) -> Result<Store, ImageError> {
    let owners: Arc<dyn Owners> = Arc::clone(notes) as Arc<dyn Owners>;
    let options = Options { owners: Some(owners), ..Options::default() };
    Store::open_with(&place.path("store"), options)
}

fn notes(numbers: &str) -> Arc<Notes> {
    Arc::new(Notes { numbers: numbers.to_owned(), ..Notes::default() })
}

#[tokio::test]
async fn files_are_given_to_whom_the_last_layer_that_made_them_says() {
    let fifo = |name: &str| entry(b'6', name, "", b"");
    let layers: Vec<Vec<Entry>> = vec![
        vec![
            directory("home").owner(1, 2),
            file("home/stays", "a").owner(1000, 1001),
            file("home/of-root", "").owner(5, 5),
            file("home/other", "").owner(5, 5),
            directory("home/gone").owner(6, 6),
            file("home/gone/file", "").owner(6, 6),
            link("link", "home").owner(65_535, 7),
            fifo("fifo").owner(8, 9),
            hard("again", "home/stays").owner(1000, 1001),
        ],
        vec![
            file("home/of-root", "").owner(0, 0),
            file("home/other", "").owner(7, 0),
            file("home/.wh.gone", ""),
            // Whoever made it without a word about it is root, whatever was there before.
            file("home/new/file", ""),
            directory("link-to").owner(0, 3),
        ],
    ];
    let (place, notes) = (Place::new(), notes("one"));
    image(&layers).write(&place.path("layout"));
    let got = store(&place, &notes).unwrap().get(&place.layout(), Pull::Missing, &quiet).await.unwrap();
    let expected = [
        ("again", (1000, 1001)),
        ("fifo", (8, 9)),
        ("home", (1, 2)),
        ("home/other", (7, 0)),
        ("home/stays", (1000, 1001)),
        ("link", (65_535, 7)),
        ("link-to", (0, 3)),
    ];
    assert_eq!(notes.last(), expected.map(|(name, owner)| (PathBuf::from(name), owner)).into());
    assert!(got.has_owners);
    let error = {
        image(&[vec![file("a", "").owner(65_536, 0)]]).write(&place.path("layout"));
        store(&place, &notes).unwrap().get(&place.layout(), Pull::Always, &quiet).await.unwrap_err().to_string()
    };
    assert!(error.contains("numbers above 65535 are not supported"), "{error}");
    assert_eq!(names(&place.path("store/work")), Vec::<String>::new());
}

#[tokio::test]
async fn images_of_other_owners_are_kept_apart_listed_once_and_removed_together() {
    let (place, one, other) = (Place::new(), notes("one"), notes("other"));
    image(&[vec![file("a", "abc").owner(1, 1)]]).write(&place.path("layout"));
    let alone = place.get(&place.layout()).await.unwrap();
    let get = async |notes| store(&place, notes).unwrap().get(&place.layout(), Pull::Missing, &quiet).await.unwrap();
    let (first, second, again) = (get(&one).await, get(&other).await, get(&one).await);
    assert_eq!((alone.has_owners, first.has_owners), (false, true));
    assert!(alone.root != first.root && first.root != second.root && first.root == again.root);
    assert_eq!(alone.digest, first.digest);
    let stored = place.store.list().unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].bytes, stored[0].in_use, stored[0].references.len()), (9, true, 1));
    drop((alone, first, again));
    // One of them is used: all of them stay.
    let error = place.store.remove(&place.layout()).unwrap_err();
    assert!(matches!(error, ImageError::InUse { .. }), "{error}");
    assert_eq!(place.store.list().unwrap()[0].bytes, 9);
    drop(second);
    assert_eq!(place.store.remove(&place.layout()).unwrap(), 9);
    assert!(place.store.list().unwrap().is_empty());
}

#[tokio::test]
async fn who_cannot_give_files_away_is_told_before_anything_is_made() {
    let (place, unable) = (Place::new(), Notes { cannot: true, ..Notes::default() });
    let error = store(&place, &Arc::new(unable)).unwrap_err();
    assert!(matches!(error, ImageError::Owners { .. }), "{error}");
    assert!(error.to_string().ends_with("newuidmap failed: not allowed"), "{error}");
    assert_eq!(names(&place.path("store")), ["images", "locks", "names", "work"]);
}
