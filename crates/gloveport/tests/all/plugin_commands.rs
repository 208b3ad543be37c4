//! `gloveport plugin` as a user meets it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::support::{LIMIT, gloveport, text};
use serde_json::{Value, json};

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = gloveport(home);
    command.current_dir(home).env("GLOVEPORT_PLUGINS", home.join("plugins")).arg("plugin").args(arguments);
    command
}

fn plugin(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

/// The exit code and what is printed.
fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stdout))
}

/// A home with these manifests in its folder of plugins.
fn home(manifests: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("plugins")).unwrap();
    for (name, text) in manifests {
        fs::write(home.path().join("plugins").join(name), text).unwrap();
    }
    home
}

const TOOLS: &str = "name = \"tools\"\nrequires = [\"jupyter\"]\ndescription = \"Tools\"\n[environment]\nA = \"b\"\n";
const BROKEN: &str = "name = \"broken\"\n[service]\nlistens = \"prot\"\n";

/// The command lines of processes that were started in this home, and what is left of temporary sandboxes.
fn left(home: &Path) -> Vec<String> {
    let shown = home.display().to_string();
    let processes = gloveport_sys::process::all().into_iter().filter_map(gloveport_sys::process::command_line);
    let files = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    processes.filter(|line| line.contains(&shown)).chain(files.filter(|name| name.starts_with("gloveport-"))).collect()
}

#[test]
fn ls_shows_all_plugins_with_where_they_are_from() {
    let home = home(&[("tools.toml", TOOLS), ("z.toml", BROKEN)]);
    let folder = home.path().join("plugins");
    let output = plugin(home.path(), &["ls"]);
    let (code, shown) = told(&output);
    let lines: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    let (tools, broken) =
        (folder.join("tools.toml").display().to_string(), folder.join("z.toml").display().to_string());
    let expected = [
        vec!["NAME", "FROM", "REQUIRES", "DESCRIPTION"],
        vec!["browser", "built in", "Chromium, which executes browse and browse_interactive"],
        vec!["jupyter", "built in", "An IPython kernel, which executes run_ipython"],
        vec!["agent_skills", "built in", "Python functions for agents in the kernel"],
        vec!["vscode", "built in", "VS Code in the browser, for the workspace"],
        vec!["tools", &tools, "jupyter", "Tools"],
        vec!["broken", &broken, "broken: see `gloveport plugin check broken`"],
    ];
    assert_eq!((code, lines), (Some(0), expected.to_vec()));
    assert!(text(&output.stderr).contains(&format!("{broken}:3:11: ")), "{}", text(&output.stderr));

    let all: Value = serde_json::from_slice(&plugin(home.path(), &["ls", "--json"]).stdout).unwrap();
    let one = json!({"name": "tools", "built_in": false, "path": tools, "requires": ["jupyter"],
                     "description": "Tools", "error": null});
    assert_eq!((all.as_array().unwrap().len(), &all[4], &all[0]["built_in"]), (6, &one, &Value::Bool(true)));
}

#[test]
fn check_tells_every_mistake_of_a_file_or_of_a_name() {
    let home = home(&[("tools.toml", TOOLS), ("z.toml", BROKEN)]);
    let path = home.path().join("plugins/z.toml").display().to_string();
    let problems = format!(
        "{path}:2:2: `command` in [service] is missing; write command = [\"program\", \"argument\"]\n\
         {path}:3:11: `listens` in [service] must be \"port\", the number of a port, \"socket\" or \"nowhere\", not \
         `prot`; did you mean `port`?\n"
    );
    for what in ["broken", &path] {
        let expected = format!("{problems}{what}: 2 problems\n");
        assert_eq!(told(&plugin(home.path(), &["check", what])), (Some(1), expected));
    }
    let tools = home.path().join("plugins/tools.toml");
    let well = format!("tools: nothing is wrong with {}\n", tools.display());
    assert_eq!(told(&plugin(home.path(), &["check", "tools"])), (Some(0), well));
    let built_in = "vscode: built in; there is no manifest to check\n".to_owned();
    assert_eq!(told(&plugin(home.path(), &["check", "vscode"])), (Some(0), built_in));
    let output = plugin(home.path(), &["check", "tolos"]);
    let error = "gloveport: there is no plugin `tolos`; did you mean `tools`?\n";
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), error));
    let absent = "absent.toml: cannot read it: No such file or directory (os error 2); name a manifest that can be \
                  read\nabsent.toml: one problem\n";
    assert_eq!(told(&plugin(home.path(), &["check", "absent.toml"])), (Some(1), absent.to_owned()));
}

#[test]
fn what_new_writes_passes_check_and_starts() {
    let home = home(&[]);
    let output = plugin(home.path(), &["new", "hello-1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = plugin(home.path(), &["check", "--start", "hello-1"]);
    let (code, shown) = told(&output);
    assert!(shown.starts_with("hello-1: its service was healthy at port "), "{shown}{}", text(&output.stderr));
    assert!(code == Some(0) && shown.ends_with(" s, and was stopped\n"), "{shown}");
    assert_eq!(left(home.path()), Vec::<String>::new());
}

#[test]
fn new_overwrites_nothing_and_refuses_names_that_cannot_be() {
    let home = home(&[]);
    fs::create_dir(home.path().join("mine")).unwrap();
    fs::write(home.path().join("mine/serve.py"), "mine").unwrap();
    for (arguments, expected) in [
        (vec!["new", "mine"], "mine/serve.py exists already; name another directory"),
        (vec!["new", "Mine"], "`Mine` is not a valid name for a plugin: it must be a lower-case letter"),
        (vec!["new", "../x"], "`../x` is not a valid name for a plugin"),
        (vec!["new", "vscode"], "`vscode` is built in; give the plugin another name"),
        (vec!["new", "x", "mine/serve.py/x"], "cannot make mine/serve.py/x: "),
    ] {
        let output = plugin(home.path(), &arguments);
        assert!(text(&output.stderr).starts_with(&format!("gloveport: {expected}")), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1));
    }
    let entries: Vec<_> =
        fs::read_dir(home.path().join("mine")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(
        (entries, fs::read_to_string(home.path().join("mine/serve.py")).unwrap()),
        (vec!["serve.py".into()], "mine".into())
    );
}

#[test]
fn a_start_that_fails_shows_the_log_and_leaves_nothing() {
    let home = home(&[]);
    let script = "#!/bin/sh\necho reading $1\necho \"no licence for $GREETING\" >&2\nsetsid sleep 600 &\nexit 5\n";
    fs::write(home.path().join("serve"), script).unwrap();
    let manifest = "name = \"paid\"\n[service]\ncommand = [\"sh\", \"./serve\", \"{port}\"]\nenvironment = { GREETING = \"{base}\" }\n";
    fs::write(home.path().join("plugin.toml"), manifest).unwrap();
    let mut command = command(home.path(), &["check", "--start", "plugin.toml"]);
    let output = command.env("MARK", home.path()).output().unwrap();
    let (code, shown) = told(&output);
    assert_eq!(code, Some(1));
    assert_eq!(shown.matches("no licence for /plugins/paid\n").count(), 5, "{shown}");
    let last = shown.lines().last().unwrap();
    assert!(last.starts_with("paid: 5 starts in a row failed; the last one: paid did not start: it ended with status 5 before it accepted"), "{last}");
    assert_eq!((left(home.path()), detached(home.path())), (vec![], 0));
}

#[test]
fn a_check_that_is_interrupted_leaves_nothing() {
    let home = home(&[]);
    let manifest = "name = \"slow\"\n[service]\ncommand = \"touch $MARK/runs; setsid sleep 600 & sleep 600 # {socket}\"\nlistens = \"socket\"\n";
    fs::write(home.path().join("plugin.toml"), manifest).unwrap();
    let mut command = command(home.path(), &["check", "--start", "plugin.toml"]);
    let mut child = command.env("MARK", home.path()).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    while !home.path().join("runs").exists() {
        assert!(Instant::now() < deadline, "the service does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(detached(home.path()) >= 2);
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    while detached(home.path()) > 0 {
        assert!(Instant::now() < deadline, "processes are left");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(home.path()), Vec::<String>::new());
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// How many processes have this home as their variable `MARK`.
fn detached(home: &Path) -> usize {
    let mark = format!("MARK={}", home.display());
    let environment = |pid: u32| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let all = gloveport_sys::process::all().into_iter();
    all.filter(|pid| environment(*pid).split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())).count()
}

#[test]
fn a_set_up_and_required_plugins_are_started_too() {
    let base = "name = \"base\"\n[set-up]\ncommand = \"echo base >{workspace}/order\"\n";
    let top =
        "name = \"top\"\nrequires = [\"base\", \"jupyter\"]\n[set-up]\ncommand = \"cat order; grep base order\"\n";
    let home = home(&[("base.toml", base), ("top.toml", top)]);
    let output = plugin(home.path(), &["check", "top", "--start"]);
    let (code, shown) = told(&output);
    assert!(
        code == Some(0) && shown.starts_with("top: its set-up succeeded after "),
        "{shown}{}",
        text(&output.stderr)
    );
    let warning = "top is started without `jupyter`, which it requires: Plugin jupyter not found";
    assert!(text(&output.stderr).contains(warning), "{}", text(&output.stderr));
}
