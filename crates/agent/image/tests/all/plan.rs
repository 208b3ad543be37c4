//! What is built, and from what.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeSet,
    fs,
    sync::{Mutex, PoisonError},
};

use gloveport_image::{
    BuildFrom, BuildRequest, Decision, ImageBuilder, ImageError, Job, Lookup, Naming, Programs, Progress, Recipe,
    Reuse, build, decide, names, prepare,
};

/// Keeps names of images, here and in a registry, and what it was asked to build.
#[derive(Default)]
struct Shelf {
    here: Mutex<BTreeSet<String>>,
    registry: BTreeSet<String>,
    built: Mutex<Vec<(Vec<String>, String)>>,
}

impl Shelf {
    fn here(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ImageBuilder for Shelf {
    async fn build(&self, request: &BuildRequest<'_>, _progress: &Progress) -> Result<String, ImageError> {
        let text = fs::read_to_string(request.folder.join("Dockerfile")).unwrap();
        let from = text.lines().find_map(|line| line.strip_prefix("FROM ")).unwrap().to_owned();
        self.here().extend(request.names.iter().cloned());
        self.built.lock().unwrap().push((request.names.to_vec(), from));
        Ok(request.names[0].clone())
    }

    async fn tag(&self, image: &str, name: &str) -> Result<(), ImageError> {
        assert!(self.here().contains(image));
        self.here().insert(name.to_owned());
        Ok(())
    }

    async fn image_exists(&self, name: &str, lookup: Lookup, _progress: &Progress) -> Result<bool, ImageError> {
        if lookup == Lookup::Registry && self.registry.contains(name) {
            self.here().insert(name.to_owned());
        }
        Ok(self.here().contains(name))
    }
}

fn recipe() -> Recipe {
    Recipe::new("debian:12".parse().unwrap())
}

fn programs() -> Programs {
    Programs::new(&[std::env::current_exe().unwrap()]).unwrap()
}

fn job<'a>(naming: &'a Naming, recipe: &'a Recipe, programs: &'a Programs, reuse: Reuse) -> Job<'a> {
    Job { naming, recipe, programs, reuse, extra_arguments: &[] }
}

#[tokio::test]
async fn the_most_that_is_there_is_begun_with() {
    let (naming, recipe, programs) = (Naming::new(Some("r/x")).unwrap(), recipe(), programs());
    let names = names(&naming, &recipe, &programs).unwrap();
    let (source, lock, versioned) = (&names.source, &names.lock, &names.versioned);
    let build = |from, base: &str, wanted: &[&String]| Decision::Build {
        from,
        base: base.into(),
        names: wanted.iter().map(|name| (*name).clone()).collect(),
    };
    let all = [source, lock, versioned];
    let from_scratch = || build(BuildFrom::Scratch, "debian:12", &all);
    let from_lock = || build(BuildFrom::Lock, lock, &[source]);
    let from_versioned = || build(BuildFrom::Versioned, versioned, &[source, lock]);
    // What is here, what is in the registry, whether it is used, what is done.
    let rows: [(&[&String], &[&String], Reuse, Decision); 10] = [
        (&[], &[], Reuse::Existing, from_scratch()),
        (&[source], &[], Reuse::Existing, Decision::Exists),
        (&[], &[source], Reuse::Existing, from_scratch()),
        (&[lock], &[], Reuse::Existing, from_lock()),
        (&[], &[lock], Reuse::Existing, from_lock()),
        (&[versioned], &[], Reuse::Existing, from_versioned()),
        (&[], &[versioned], Reuse::Existing, from_versioned()),
        (&[lock, versioned], &[], Reuse::Existing, from_lock()),
        (&[], &[], Reuse::Nothing, from_scratch()),
        (&all, &[], Reuse::Nothing, from_scratch()),
    ];
    for (here, registry, reuse, expected) in rows {
        let owned = |names: &[&String]| names.iter().map(|name| (*name).clone()).collect::<BTreeSet<_>>();
        let shelf = Shelf { here: Mutex::new(owned(here)), registry: owned(registry), ..Shelf::default() };
        let job = job(&naming, &recipe, &programs, reuse);
        let decision = decide(&job, &names, &shelf, &Progress::silent()).await.unwrap();
        assert_eq!(decision, expected, "{here:?} {registry:?} {reuse:?}");
    }
}

#[tokio::test]
async fn a_registry_that_nobody_chose_is_not_asked() {
    let (naming, recipe, programs) = (Naming::new(None).unwrap(), recipe(), programs());
    let names = names(&naming, &recipe, &programs).unwrap();
    let shelf = Shelf { registry: [names.lock.clone(), names.versioned.clone()].into(), ..Shelf::default() };
    let job = job(&naming, &recipe, &programs, Reuse::Existing);
    let decision = decide(&job, &names, &shelf, &Progress::silent()).await.unwrap();
    assert!(matches!(decision, Decision::Build { from: BuildFrom::Scratch, .. }), "{decision:?}");
}

#[tokio::test]
async fn an_image_gets_all_its_names_and_is_built_once() {
    let (naming, recipe, programs) = (Naming::new(None).unwrap(), recipe(), programs());
    let shelf = Shelf::default();
    let job = job(&naming, &recipe, &programs, Reuse::Existing);
    let built = build(&job, &["mine:1".to_owned()], &shelf, &Progress::silent()).await.unwrap();
    let names = [&built.names.source, &built.names.lock, &built.names.versioned].map(Clone::clone);
    assert_eq!((built.from, &built.image), (Some(BuildFrom::Scratch), &names[0]));
    let expected = [&names[..], &["mine:1".to_owned()]].concat();
    assert_eq!(*shelf.built.lock().unwrap(), [(expected, "debian:12".to_owned())]);

    let again = build(&job, &["mine:2".to_owned()], &shelf, &Progress::silent()).await.unwrap();
    assert_eq!((again.from, again.image), (None, built.image));
    assert_eq!(shelf.built.lock().unwrap().len(), 1);
    assert!(shelf.here().contains("mine:2"));

    let forced = Job { reuse: Reuse::Nothing, ..job };
    build(&forced, &[], &shelf, &Progress::silent()).await.unwrap();
    assert_eq!(shelf.built.lock().unwrap().last().unwrap(), &(names.to_vec(), "debian:12".to_owned()));
}

#[tokio::test]
async fn a_folder_is_prepared_and_nothing_is_built() {
    let (naming, recipe, programs) = (Naming::new(None).unwrap(), recipe(), programs());
    let (shelf, folder) = (Shelf::default(), tempfile::tempdir().unwrap());
    let job = job(&naming, &recipe, &programs, Reuse::Existing);
    let found = prepare(&job, folder.path(), &shelf, &Progress::silent()).await.unwrap();
    assert_eq!(found, names(&naming, &recipe, &programs).unwrap());
    assert!(folder.path().join("Dockerfile").is_file() && shelf.built.lock().unwrap().is_empty());
}
