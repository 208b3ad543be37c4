//! Which plugins there are, in which order they are initialised, and what happens when one fails.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::support::{Place, is_alive, plugin, within};
use gloveport_plugin::{
    Manifest, ManifestPlugin, Plugin, PluginState, Registry, initialize_all,
    registry::{self, RegistryError, Source},
};

/// A manifest that only sets variables.
fn manifest(name: &str, requires: &[&str]) -> String {
    format!("name = \"{name}\"\nrequires = {requires:?}\n[environment]\nNAME = \"{name}\"\n")
}

/// A folder of manifests with these names and requirements.
fn folder(manifests: &[(&str, &[&str])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, requires) in manifests {
        fs::write(folder.path().join(format!("{name}.toml")), manifest(name, requires)).unwrap();
    }
    folder
}

fn registry(folders: &[&Path]) -> Registry {
    let mut registry = Registry::new(Vec::new());
    for folder in folders {
        registry.add_folder(folder);
    }
    registry
}

fn names(plugins: &[Arc<dyn Plugin>]) -> Vec<&str> {
    plugins.iter().map(|plugin| plugin.name()).collect()
}

fn select(registry: &Registry, asked: &[&str]) -> Result<Vec<Arc<dyn Plugin>>, RegistryError> {
    registry.select(&asked.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

#[test]
fn each_plugin_comes_once_and_after_what_it_requires() {
    let folder = folder(&[("a", &["c", "b"]), ("b", &["d"]), ("c", &["d"]), ("d", &[]), ("e", &[])]);
    let registry = registry(&[folder.path()]);
    for (asked, expected) in [
        (vec!["a"], vec!["d", "c", "b", "a"]),
        (vec!["e", "b", "a", "e"], vec!["e", "d", "b", "c", "a"]),
        (vec![], vec![]),
    ] {
        assert_eq!(names(&select(&registry, &asked).unwrap()), expected);
    }
}

#[test]
fn what_is_missing_and_what_goes_in_a_circle_is_told() {
    let folder = folder(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["absent"]), ("e", &["jupyter"])]);
    let registry = registry(&[folder.path()]);
    for (asked, expected) in [
        ("f", "Plugin f not found; there is a, b, c, d, e"),
        ("files", "Plugin files not found; there is a, b, c, d, e"),
        ("a", "the plugins a -> b -> c -> a require each other in a circle; take one out of `requires`"),
        ("d", "Plugin absent not found (required by d); there is a, b, c, d, e"),
        ("e", "Plugin jupyter not found (required by e); there is a, b, c, d, e"),
    ] {
        assert_eq!(select(&registry, &[asked]).unwrap_err().to_string(), expected);
    }
    let none = Registry::new(Vec::new());
    assert_eq!(select(&none, &["x"]).unwrap_err().to_string(), "Plugin x not found; there is none");
    let vscode = Registry::new(vec![plugin(Path::new("/"), &manifest("vscode", &[]))]);
    let error = select(&vscode, &["vcsode"]).unwrap_err().to_string();
    assert_eq!(error, "Plugin vcsode not found; there is vscode; did you mean `vscode`?");
}

#[test]
fn the_first_folder_wins_and_built_in_names_cannot_be_taken() {
    let (first, second) = (folder(&[("a", &[]), ("jupyter", &[])]), folder(&[("a", &["b"]), ("b", &[])]));
    let inside = second.path().join("inner");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("plugin.toml"), manifest("c", &[])).unwrap();
    fs::write(second.path().join("notes.txt"), "no manifest").unwrap();
    let absent = PathBuf::from("/no/such/folder");
    let registry = registry(&[first.path(), second.path(), &absent]);
    let known: Vec<&str> = registry.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(known, ["browser", "jupyter", "agent_skills", "vscode", "a", "b", "c"]);
    assert!(matches!(registry.get("jupyter").unwrap().source, Source::BuiltIn(None)));
    let Source::Manifest(a) = &registry.get("a").unwrap().source else { panic!("{registry:?}") };
    assert_eq!(a.path, first.path().join("a.toml"));
    let (one, two) = (first.path().display(), second.path().display());
    assert_eq!(
        registry.warnings(),
        [
            format!("{one}/jupyter.toml is not used: the name `jupyter` is built in; give it another one"),
            format!("{two}/a.toml is not used: the name `a` is that of {one}/a.toml; give it another one"),
        ]
    );
}

#[test]
fn a_broken_manifest_is_a_warning_unless_it_is_asked_for() {
    let folder = folder(&[("a", &[]), ("needs", &["broken"])]);
    let path = folder.path().join("z.toml");
    fs::write(&path, "name = \"broken\"\n[service]\n").unwrap();
    fs::write(folder.path().join("named.toml"), "nothing").unwrap();
    let registry = registry(&[folder.path()]);
    assert_eq!(names(&select(&registry, &["a"]).unwrap()), ["a"]);
    let problem = format!("{}:2:2: `command` in [service] is missing", path.display());
    assert_eq!(registry.warnings().len(), 2, "{:?}", registry.warnings());
    assert!(registry.warnings()[1].contains(&problem), "{:?}", registry.warnings());
    let error = select(&registry, &["broken"]).unwrap_err().to_string();
    assert!(error.starts_with("the manifest of the plugin broken is broken:\n") && error.contains(&problem), "{error}");
    let error = select(&registry, &["needs"]).unwrap_err().to_string();
    assert!(error.starts_with("the manifest of the plugin broken (required by needs) is broken:\n"), "{error}");
    let error = select(&registry, &["named"]).unwrap_err().to_string();
    assert!(error.contains("named.toml:1:"), "{error}");
}

#[test]
fn folders_are_those_of_the_variable_then_the_users_then_the_machines() {
    let listed = OsStr::new("/one::/two");
    let expected: Vec<PathBuf> = [
        "/one",
        "/two",
        "/home/u/.config/gloveport/plugins",
        "/etc/gloveport/plugins",
        "/usr/local/share/gloveport/plugins",
    ]
    .map(PathBuf::from)
    .to_vec();
    assert_eq!(registry::folders(Some(listed), Some(Path::new("/home/u"))), expected);
    assert_eq!(registry::folders(None, None), expected[3..]);
}

/// A plugin with this set-up command.
fn with_set_up(place: &Place, name: &str, requires: &[&str], command: &str) -> Arc<dyn Plugin> {
    let text = format!("name = \"{name}\"\nrequires = {requires:?}\n[set-up]\ncommand = {command:?}\n");
    let manifest = Manifest::parse(&place.path().join("plugin.toml"), &text).unwrap();
    Arc::new(ManifestPlugin::new(manifest))
}

#[tokio::test]
async fn plugins_are_initialised_at_the_same_time_and_each_after_what_it_requires() {
    let place = Place::new();
    let meet = |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done");
    let plugins = [
        with_set_up(&place, "a", &[], &meet("a", "b")),
        with_set_up(&place, "b", &[], &meet("b", "a")),
        with_set_up(&place, "c", &["a", "d"], "test -e d.done"),
        with_set_up(&place, "d", &[], "sleep 0.3; touch d.done"),
    ];
    initialize_all(&plugins, &place.host(), crate::support::LIMIT).await.unwrap();
    assert!(plugins.iter().all(|plugin| *plugin.state().borrow() == PluginState::Ready));
}

#[tokio::test]
async fn when_one_fails_the_others_are_ended_and_its_error_is_told() {
    let place = Place::new();
    let hangs = with_set_up(&place, "hangs", &[], "echo $$ >>pids; sleep 600");
    let text = "name = \"serves\"\n[service]\ncommand = \"echo $$ >>pids; sleep 600\"\nlistens = \"nowhere\"\nstart = \"eager\"\n";
    let serves = plugin(place.path(), text);
    let fails = "until [ \"$(cat pids 2>/dev/null | wc -l)\" = 2 ]; do sleep 0.01; done; echo no network; exit 1";
    let plugins = [
        hangs,
        serves,
        with_set_up(&place, "fails", &[], fails),
        with_set_up(&place, "waits", &["fails"], "touch never"),
    ];
    let error = initialize_all(&plugins, &place.host(), crate::support::LIMIT).await.unwrap_err();
    let expected =
        "the plugin fails cannot be initialised: the set-up of fails failed: it ended with status 1\n  no network";
    assert_eq!(error.reason, expected);
    within("all ended", || !place.pids().iter().any(|pid| is_alive(*pid))).await;
    assert!(plugins.iter().all(|plugin| *plugin.state().borrow() == PluginState::Stopped));
    assert!(!place.path().join("never").exists());
}

#[tokio::test]
async fn at_the_limit_those_that_are_on_their_way_are_named_and_ended() {
    let place = Place::new();
    let plugins =
        [with_set_up(&place, "hangs", &[], "echo $$ >pids; sleep 600"), with_set_up(&place, "quick", &[], "true")];
    let error = initialize_all(&plugins, &place.host(), Duration::from_secs(2)).await.unwrap_err();
    let expected = "the plugins were not initialised within 2 s; still starting: hangs (running its set-up command)";
    assert_eq!(error.reason, expected);
    within("it ended", || !place.pids().iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_requirement_that_is_not_started_is_told_before_anything_is() {
    let place = Place::new();
    let plugins = [with_set_up(&place, "b", &["a"], "touch started")];
    let error = initialize_all(&plugins, &place.host(), crate::support::LIMIT).await.unwrap_err();
    assert_eq!(error.reason, "the plugin b requires a, which is not among those to start");
    assert!(!place.path().join("started").exists());
}
