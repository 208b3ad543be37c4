//! Manifests: what can be written, and where each mistake is.

use std::{fs, path::Path, time::Duration};

use gloveport_plugin::{Health, Listens, Manifest, ServiceSpec, manifest::Actions};
use proptest::{collection, prelude::*, sample::select};

/// What is wrong with a text.
fn problems(text: &str) -> String {
    match Manifest::parse(Path::new("p.toml"), text) {
        Ok(manifest) => format!("nothing: {manifest:?}"),
        Err(error) => error.to_string(),
    }
}

/// A service with these lines.
fn service(lines: &str) -> String {
    format!("name = \"x\"\n[service]\n{lines}\n")
}

#[test]
fn every_field_is_read() {
    let text = r#"
name = "files-2_a"
description = "Serves a directory"
requires = ["jupyter", "other"]

[set-up]
command = "pip install files && ./prepare {workspace}"
limit = "5m"

[service]
command = ["./serve", "--port", "{port}", "--at", "{base}", "x./y"]
environment = { FILES_ROOT = "{workspace}", PYTHONPATH = "{plugin}/lib" }
listens = "port"
health = "/health?deep=1"
start = "eager"
start-limit = 2.5
idle-stop = 600

[actions]
handles = ["browse", "call_tool_mcp"]
path = "/act"

[environment]
FILES_URL = "{base}"
"#;
    let manifest = Manifest::parse(Path::new("/opt/plugins/files/plugin.toml"), text).unwrap();
    let words = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
    assert_eq!((manifest.name.as_str(), manifest.description.as_deref()), ("files-2_a", Some("Serves a directory")));
    assert_eq!(manifest.requires, ["jupyter", "other"]);
    assert_eq!(manifest.folder, Path::new("/opt/plugins/files"));
    let set_up = words(&["sh", "-c", "pip install files && ./prepare {workspace}"]);
    assert_eq!(manifest.set_up, Some((set_up.clone(), Duration::from_mins(5))));
    assert_eq!(
        manifest.actions,
        Some(Actions { handles: vec!["browse".into(), "call_tool_mcp".into()], path: "/act".into() })
    );
    assert_eq!(manifest.environment, [("FILES_URL".to_owned(), "{base}".to_owned())].into());
    let expected = ServiceSpec {
        name: "files-2_a".into(),
        set_up: Some(set_up),
        set_up_limit: Duration::from_mins(5),
        command: words(&["/opt/plugins/files/serve", "--port", "{port}", "--at", "{base}", "x./y"]),
        environment: [("FILES_ROOT", "{workspace}"), ("PYTHONPATH", "{plugin}/lib")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        listens: Listens::AnyPort,
        health: Health::Http("/health?deep=1".into()),
        start_limit: Duration::from_millis(2500),
        idle_stop: Some(Duration::from_mins(10)),
        end_grace: ServiceSpec::END_GRACE,
        eager: true,
    };
    assert_eq!(format!("{:?}", manifest.service.unwrap()), format!("{expected:?}"));
}

#[test]
fn what_is_left_out_has_a_default() {
    let manifest = Manifest::parse(Path::new("/p/x.toml"), &service("command = './serve {port}'")).unwrap();
    assert_eq!(
        (manifest.description, manifest.requires, manifest.set_up, manifest.actions),
        (None, vec![], None, None)
    );
    let service = manifest.service.unwrap();
    assert_eq!(service.command, ["sh", "-c", "{plugin}/serve {port}"]);
    assert_eq!((service.listens, service.health, service.eager), (Listens::AnyPort, Health::Accepts, false));
    assert_eq!((service.start_limit, service.idle_stop), (Duration::from_secs(30), None));
    assert_eq!((service.set_up, service.set_up_limit), (None, Duration::from_mins(10)));
}

#[test]
fn every_place_to_listen_at_can_be_written() {
    for (listens, words, expected) in [
        ("\"port\"", "{port}", Listens::AnyPort),
        ("8080", "x", Listens::Port(8080)),
        ("0x1F90", "{port}", Listens::Port(8080)),
        ("\"socket\"", "{socket}", Listens::Socket),
        ("\"nowhere\"\nstart = \"eager\"", "x", Listens::Nowhere),
    ] {
        let text = service(&format!("command = [\"serve\", \"{words}\"]\nlistens = {listens}"));
        let manifest = Manifest::parse(Path::new("p.toml"), &text).unwrap();
        assert_eq!(manifest.service.unwrap().listens, expected, "{text}");
    }
}

#[test]
fn every_mistake_is_told_with_its_line_and_column() {
    let there_is = "there is `name`, `description`, `requires`, `set-up`, `service`, `actions` and `environment`";
    let time = "a time: a number of seconds, or a text such as \"30s\", \"10m\" or \"500ms\"";
    let can = "it can have `run_ipython`, `browse`, `browse_interactive` and `call_tool_mcp`";
    let ok = "command = ['a', '{port}']";
    for (text, expected) in [
        (String::new(), "p.toml:1:1: `name` is missing; write name = \"…\" at the beginning of the file\np.toml:1:1: the plugin does nothing; add [service], [set-up] or [environment]".to_owned()),
        ("name = \"x\"".into(), "p.toml:1:1: the plugin does nothing; add [service], [set-up] or [environment]".into()),
        ("name = \"x\"\nnmae = 1\n[environment]".into(), "p.toml:2:1: unknown key `nmae`; did you mean `name`?".into()),
        ("name = \"x\"\ncolour = 1\n[environment]".into(), format!("p.toml:2:1: unknown key `colour`; {there_is}")),
        ("name = \"x\"\n[environment]\n[servise]\na = 1".into(), "p.toml:3:2: unknown section [servise]; did you mean `service`?".into()),
        ("name = 3\n[environment]".into(), "p.toml:1:8: `name` must be a text, not an integer".into()),
        ("name = \"Files\"\n[environment]".into(), "p.toml:1:8: `name` must be a lower-case letter, then at most 31 lower-case letters, digits, `_` and `-`, not `Files`".into()),
        ("name = \"\\u001b\"\n[environment]".into(), "p.toml:1:8: `name` must be a lower-case letter, then at most 31 lower-case letters, digits, `_` and `-`, not `\\u{1b}`".into()),
        ("name = \"x\"\ndescription = \"a\\nb\"\n[environment]".into(), "p.toml:2:15: `description` must be one line of at most 500 characters".into()),
        ("name = \"x\"\nrequires = \"y\"\n[environment]".into(), "p.toml:2:12: `requires` must be a list of texts, not a text".into()),
        ("name = \"x\"\nrequires = [\"y\", 1]\n[environment]".into(), "p.toml:2:18: `requires` must be a list of texts, not an integer".into()),
        ("name = \"x\"\nrequires = [\"y\", \"Y\", \"x\", \"y\"]\n[environment]".into(), "p.toml:2:18: `Y` in `requires` is not a valid name for a plugin\np.toml:2:23: the plugin requires itself; leave it out\np.toml:2:28: `y` stands twice in `requires`; leave one out".into()),
        ("name = \"x\"\nservice = 1".into(), "p.toml:2:11: `service` must be a section, not an integer; write [service]".into()),
        (service(""), "p.toml:2:2: `command` in [service] is missing; write command = [\"program\", \"argument\"]".into()),
        (service("command = 1"), "p.toml:3:11: `command` in [service] must be a list of words or a text for `sh -c`, not an integer".into()),
        (service("command = []"), "p.toml:3:11: `command` in [service] names no program".into()),
        (service("command = '  '"), "p.toml:3:11: `command` in [service] names no program".into()),
        (service("command = [\"a\\u0000\", \"{port}\"]"), "p.toml:3:11: `command` in [service] has a NUL byte in it".into()),
        (service("command = ['a', true]"), "p.toml:3:17: `command` in [service] must be a list of texts, not a truth value".into()),
        (service("command = ['a']"), "p.toml:3:11: the service listens on a free port, and neither its command nor its environment has `{port}`; write `{port}` where the program expects it".into()),
        (service("command = 'a ${port}'"), "p.toml:3:11: the service listens on a free port, and neither its command nor its environment has `{port}`; write `{port}` where the program expects it".into()),
        (service("command = ['a', '{port}']\nlistens = 'socket'"), "p.toml:3:11: `{port}` has no value, as the service listens at no port; correct `listens`, or leave it out\np.toml:3:11: the service listens at a socket, and neither its command nor its environment has `{socket}`; write `{socket}` where the program expects it".into()),
        (service(&format!("{ok}\nlistens = 'prot'")), "p.toml:4:11: `listens` in [service] must be \"port\", the number of a port, \"socket\" or \"nowhere\", not `prot`; did you mean `port`?".into()),
        (service(&format!("{ok}\nlistens = 70000")), "p.toml:4:11: `listens` in [service] must be \"port\", the number of a port, \"socket\" or \"nowhere\", not `70000`".into()),
        (service(&format!("{ok}\nlistens = 0")), "p.toml:4:11: `listens` in [service] must be \"port\", the number of a port, \"socket\" or \"nowhere\", not `0`".into()),
        (service(&format!("{ok}\nlistens = 1.5")), "p.toml:4:11: `listens` in [service] must be \"port\", the number of a port, \"socket\" or \"nowhere\", not a number with a fraction".into()),
        (service("command = 'a'\nlistens = 'nowhere'"), "p.toml:2:2: a service that listens nowhere has no users, so nothing would start it; write start = \"eager\"".into()),
        (service("command = 'a'\nlistens = 'nowhere'\nstart = 'eager'\nidle-stop = 1"), "p.toml:6:13: a service that listens nowhere has no users, so it would always be stopped; leave `idle-stop` out".into()),
        (service("command = 'a'\nlistens = 'nowhere'\nstart = 'eager'\nhealth = '/x'"), "p.toml:6:10: `health` cannot be `/x`, as the service listens nowhere; write health = \"runs\"".into()),
        (service(&format!("{ok}\nhealth = 'acepts'")), "p.toml:4:10: `health` in [service] must be \"accepts\", \"runs\" or a path such as \"/health\", not `acepts`; did you mean `accepts`?".into()),
        (service(&format!("{ok}\nhealth = '/a b'")), "p.toml:4:10: `health` in [service] must be \"accepts\", \"runs\" or a path such as \"/health\", not `/a b`".into()),
        (service(&format!("{ok}\nhealth = '/a#b'")), "p.toml:4:10: `health` in [service] must be \"accepts\", \"runs\" or a path such as \"/health\", not `/a#b`".into()),
        (service(&format!("{ok}\nstart = 'eagre'")), "p.toml:4:9: `start` in [service] must be `lazy` or `eager`, not `eagre`; did you mean `eager`?".into()),
        (service(&format!("{ok}\nstart-limit = 'soon'")), format!("p.toml:4:15: `start-limit` in [service] must be {time}, above zero and at most 7 days")),
        (service(&format!("{ok}\nstart-limit = -1")), format!("p.toml:4:15: `start-limit` in [service] must be {time}, above zero and at most 7 days")),
        (service(&format!("{ok}\nidle-stop = true")), format!("p.toml:4:13: `idle-stop` in [service] must be {time}, not a truth value")),
        (service(&format!("{ok}\nidle_stop = 3")), "p.toml:4:1: unknown key `idle_stop` in [service]; did you mean `idle-stop`?".into()),
        (service(&format!("{ok}\nenvironment = 3")), "p.toml:4:15: `environment` in [service] must be a table of variables, not an integer".into()),
        (service(&format!("{ok}\n[service.environment]\nA = 1\n\"B C\" = 'x'")), "p.toml:5:5: `A` in [service.environment] must be a text, not an integer\np.toml:6:1: `B C` in [service.environment] is not a valid name for a variable; names have letters, digits and `_`".into()),
        ("name = \"x\"\n[environment]\nA = '{port}'".into(), "p.toml:3:5: `{port}` has no value here: it is for the shells of the sandbox; leave it out".into()),
        ("name = \"x\"\n[set-up]\ncommand = 'a {socket}'\nlimit = '1y'".into(), format!("p.toml:3:11: `{{socket}}` has no value here: a set-up runs before the service; leave it out\np.toml:4:9: `limit` in [set-up] must be {time}, above zero and at most 7 days")),
        ("name = \"x\"\n[environment]\n[actions]\nhandles = ['browse']".into(), "p.toml:3:2: [actions] needs a [service] that listens, which gets the actions; add [service]".into()),
        (service(&format!("{ok}\n[actions]")), format!("p.toml:4:2: `handles` in [actions] is missing; {can}")),
        (service(&format!("{ok}\n[actions]\nhandles = []")), format!("p.toml:5:1: `handles` in [actions] is empty; {can}")),
        (service(&format!("{ok}\n[actions]\nhandles = ['run', 'brwose', 'message']\npath = 'x'")), format!("p.toml:5:12: `run` cannot be taken, as the sandbox itself executes it; {can}\np.toml:5:19: `brwose` is not a kind of action that a plugin can take; did you mean `browse`?\np.toml:5:29: `message` is not a kind of action that a plugin can take; {can}\np.toml:6:8: `path` in [actions] must be a path such as \"/execute_action\"")),
        ("name = \"é\" x".into(), "p.toml:1:12: this is no TOML: ".into()),
        ("name = \"x\"\nname = \"y\"".into(), "p.toml:2:1: this is no TOML: duplicate key".into()),
    ] {
        let told = problems(&text);
        // The words of the TOML library are its own.
        let same = if expected.contains("no TOML") { told.starts_with(&expected) } else { told == expected };
        assert!(same, "{text}\n-- is --\n{told}\n-- and not --\n{expected}");
    }
}

#[test]
fn a_file_that_is_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.toml");
    let told = |path: &Path| Manifest::read(path).unwrap_err().to_string();
    let shown = path.display().to_string();
    assert_eq!(
        told(&path),
        format!("{shown}: cannot read it: No such file or directory (os error 2); name a manifest that can be read")
    );
    assert_eq!(
        told(folder.path()),
        format!("{}: it is not a regular file; name the manifest itself", folder.path().display())
    );
    fs::write(&path, b"name = \"\xff\"").unwrap();
    assert_eq!(told(&path), format!("{shown}: it is not UTF-8; save it as UTF-8"));
    fs::write(&path, vec![b'#'; 300_000]).unwrap();
    assert_eq!(told(&path), format!("{shown}: it is longer than 262144 bytes; manifests are short"));
}

#[test]
fn the_name_of_a_manifest_with_mistakes_is_known() {
    let error = Manifest::parse(Path::new("p.toml"), "name = \"files\"\n[service]").unwrap_err();
    assert_eq!(error.name.as_deref(), Some("files"));
    let error = Manifest::parse(Path::new("p.toml"), "name = \"Files\"").unwrap_err();
    assert_eq!(error.name, None);
}

/// Keys of all sections, and one of none.
const KEYS: &[&str] = &[
    "name",
    "description",
    "requires",
    "command",
    "limit",
    "environment",
    "listens",
    "health",
    "start",
    "start-limit",
    "idle-stop",
    "handles",
    "path",
    "x",
];

/// A manifest in which each part is written as it may be, or wrong in some way.
fn manifests() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("\"port\"".to_owned()),
        Just("\"socket\"".to_owned()),
        Just("\"nowhere\"".to_owned()),
        Just("\"eager\"".to_owned()),
        Just("\"10m\"".to_owned()),
        Just("[\"a\", \"{port}\"]".to_owned()),
        Just("[\"browse\"]".to_owned()),
        Just("{ A = \"b\" }".to_owned()),
        Just("[]".to_owned()),
        Just("1979-05-27".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        "\"[ -!#-\\[\\]-~]{0,12}\"",
        "\\PC{0,8}",
    ];
    let line = prop_oneof![
        4 => (select(KEYS), value).prop_map(|(name, value)| format!("{name} = {value}")),
        1 => select(&["[set-up]", "[service]", "[actions]", "[environment]", "[service.environment]", "[[service]]", "", "# é"][..]).prop_map(str::to_owned),
    ];
    collection::vec(line, 0..14).prop_map(|lines| format!("name = \"x\"\n{}", lines.join("\n")))
}

proptest! {
    #[test]
    fn whatever_is_written_is_a_manifest_or_has_mistakes_that_stand_in_the_file(text in manifests()) {
        match Manifest::parse(Path::new("p.toml"), &text) {
            Ok(manifest) => prop_assert!(Manifest::is_name(&manifest.name)),
            Err(error) => {
                prop_assert!(!error.problems.is_empty(), "{text}");
                for problem in &error.problems {
                    let line = text.split('\n').nth(problem.line - 1);
                    prop_assert!(line.is_some_and(|line| problem.column <= line.chars().count() + 1), "{problem:?} in {text}");
                    prop_assert!(!problem.message.chars().any(char::is_control), "{problem:?}");
                }
            }
        }
    }
}
