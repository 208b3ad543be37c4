//! What the configuration says of the sandboxes that people make.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use crate::sessions::Home;
use crate::support::{gloveport, text};
use serde_json::{Value, json};

/// A home in which somebody works, with this configuration.
fn home_with(config: &str) -> Home {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), config).unwrap();
    home
}

fn with(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> Output {
    home.command(words).envs(variables.iter().copied()).output().unwrap()
}

fn run(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = gloveport(home.path());
    command.env_remove("XDG_STATE_HOME").current_dir(home.path()).arg("run").args(words);
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn a_session_has_the_directory_and_variables_of_the_configuration_and_flags_count_more() {
    let home = home_with("");
    let here = home.path().canonicalize().unwrap();
    for name in ["work", "other"] {
        fs::create_dir(here.join(name)).unwrap();
    }
    let config = format!(
        "[core]\nruntime = \"local\"\ndebug = true\n[sandbox]\nvolumes = \"{}/work:/workspace\"\nenable_auto_lint = true\n\
         runtime_startup_env_vars = {{ A = \"a b\", B = \"b\", C = \"c\" }}\n",
        here.display()
    );
    fs::write(home.path().join("config.toml"), config).unwrap();
    let variables = [("SANDBOX_ENV_c", "of the environment"), ("SANDBOX_ENV_D", "d")];
    let tell = "pwd; echo \"$A|$B|$C|$D|$DEBUG|$ENABLE_AUTO_LINT\"";

    assert!(with(&home, &["start", "--id", "one"], &variables).status.success());
    let expected = format!("{}/work\na b|b|c|d|true|true\n", here.display());
    assert_eq!(home.exec("one", tell), (Some(0), expected));

    let words = ["start", "--id", "two", "--workspace", "other", "-e", "B=flag", "-e", "DEBUG=0"];
    assert!(with(&home, &words, &variables).status.success());
    let expected = format!("{}/other\na b|flag|c|d|0|true\n", here.display());
    assert_eq!(home.exec("two", tell), (Some(0), expected));

    // The same for a command in a sandbox of its own, whose runtime the configuration names, too.
    let ran = run(&home, &["--runtime", "local", "-e", "B=flag", tell], &variables);
    let expected = format!("{}/work\na b|flag|c|d|true|true\n", here.display());
    assert_eq!((text(&ran.stdout), ran.status.code()), (expected, Some(0)), "{}", text(&ran.stderr));
}

/// A provider that writes down what it is asked to make, and makes nothing.
fn recorder(home: &Home) -> String {
    let path = home.path().join("recorder");
    let script = format!(
        "#!/bin/sh\ncase $1 in\n\
         describe) echo '{{\"protocol\": 1, \"capabilities\": {{\"isolation\": \"container\", \
         \"images\": true, \"host_directories\": true, \
         \"volumes\": true, \"gpus\": true, \"ports\": true, \"keep_alive\": true, \"labels\": true}}}}' ;;\n\
         create) cat > {0}/asked; echo made nothing >&2; exit 1 ;;\n\
         *) cat >/dev/null; echo '{{}}' ;;\nesac\n",
        home.path().display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("exec:{}", path.display())
}

/// What the recorder was asked for.
#[track_caller]
fn asked(home: &Home, output: &Output) -> Value {
    let file = home.path().join("asked");
    assert!(file.exists(), "{}", text(&output.stderr));
    let asked: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    asked["spec"].clone()
}

#[test]
fn a_runtime_gets_all_that_is_set_and_nothing_that_is_not() {
    let home = home_with("");
    let runtime = recorder(&home);
    // Nobody names an image, so the runtime chooses one; `run --image` makes a sandbox where one is configured.
    let plain = format!("[core]\nruntime = \"{runtime}\"\n");
    fs::write(home.path().join("config.toml"), &plain).unwrap();
    let spec = asked(&home, &home.session(&["start"]));
    assert_eq!((&spec["image"], &spec["limits"]["gpus"], &spec["mounts"]), (&Value::Null, &json!(false), &json!([])));
    let spec = asked(&home, &run(&home, &["--image", "debian:13", "id"], &[]));
    assert_eq!(spec["image"], "debian:13");

    let config = format!(
        "{plain}[sandbox]\nbase_container_image = \"base:1\"\nenable_gpu = true\nvscode_port = 41000\n\
         volumes = \"/data:/data:ro,/srv:/workspace,cache:/cache\"\n"
    );
    fs::write(home.path().join("config.toml"), config).unwrap();
    let spec = asked(&home, &home.session(&["start"]));
    assert_eq!((&spec["image"], &spec["limits"]["gpus"]), (&json!("base:1"), &json!(true)));
    assert_eq!(spec["workspace"], json!({"kind": "directory", "path": "/srv"}));
    let data = json!({"kind": "directory", "path": "/data", "target": "/data", "read_only": true});
    let cache = json!({"kind": "volume", "volume": "cache", "target": "/cache", "read_only": false});
    assert_eq!(spec["mounts"], json!([data, cache]));
    assert_eq!(spec["ports"], json!([{"name": "vscode", "port": 41000}]));

    // The environment counts more than the file, and a flag more than both.
    let variables = [("SANDBOX_BASE_CONTAINER_IMAGE", "base:2"), ("SANDBOX_RUNTIME_CONTAINER_IMAGE", "finished:1")];
    let spec = asked(&home, &with(&home, &["start"], &variables));
    assert_eq!(spec["image"], "finished:1");
    let words = ["start", "--image", "flag:1", "-v", "/other:/data", "-p", "vscode:42000", "-p", "web:80"];
    let spec = asked(&home, &with(&home, &words, &variables));
    assert_eq!(spec["image"], "flag:1");
    let other = json!({"kind": "directory", "path": "/other", "target": "/data", "read_only": false});
    assert_eq!(spec["mounts"], json!([cache, other]));
    assert_eq!(spec["ports"], json!([{"name": "vscode", "port": 42000}, {"name": "web", "port": 80}]));
}

#[test]
fn the_runtime_of_a_flag_counts_more_than_that_of_the_environment_and_of_the_file() {
    let home = home_with("");
    let runtime = recorder(&home);
    fs::write(home.path().join("config.toml"), format!("[core]\nruntime = \"{runtime}\"\n")).unwrap();
    asked(&home, &home.session(&["start"]));
    for (words, variables) in [
        (&["start", "--id", "a"][..], &[("RUNTIME", "local")][..]),
        (&["start", "--id", "b"], &[("GLOVEPORT_RUNTIME", "local")]),
        (&["start", "--id", "c", "--runtime", "local"], &[("RUNTIME", &runtime)]),
    ] {
        let output = with(&home, words, variables);
        assert!(output.status.success(), "{words:?} {}", text(&output.stderr));
    }
    assert_eq!(home.ids(), ["a", "b", "c"]);
    // An empty variable names none, and without any the runtime is `local`.
    fs::write(home.path().join("config.toml"), "").unwrap();
    assert!(with(&home, &["start", "--id", "d"], &[("RUNTIME", "")]).status.success());
    assert_eq!(home.listed().last().unwrap()["provider"], "local");
}

#[test]
fn a_wrong_value_is_an_error_with_its_place_and_makes_nothing() {
    for (config, variables, expected) in [
        (
            "[core]\nruntime = \"nowhere\"\n",
            &[][..],
            &["config.toml:2: `runtime` in [core]", "there is no runtime `nowhere`"][..],
        ),
        ("[core]\nruntime = 5\n", &[], &["config.toml:2:11: `runtime` in [core]: must be a text"]),
        (
            "[core]\n[sandbox]\nvscode_port = 70000\n",
            &[],
            &["config.toml:3: ", "`sandbox.vscode_port`", "from 1 to 65535"],
        ),
        ("[core]\n[sandbox]\ntimeout = 0\n", &[], &["config.toml:3: `timeout` in [sandbox] is 0"]),
        ("[core]\n[sandbox]\nvolumes = \"/w:/workspace:ro\"\n", &[], &["config.toml:3: ", "`sandbox.volumes`", ":ro"]),
        ("[core]\n[sandbox]\nenable_gpu = \"maybe\"\n", &[], &["config.toml:3:", "`enable_gpu` in [sandbox]"]),
        ("[core]\n", &[("SANDBOX_TIMEOUT", "soon")], &["$SANDBOX_TIMEOUT", "an integer"]),
        ("[core]\n", &[("SANDBOX_VSCODE_PORT", "0")], &["$SANDBOX_VSCODE_PORT: ", "`sandbox.vscode_port`"]),
        ("[core]\n", &[("SANDBOX_ENV_A-B", "x")], &["`A-B`"]),
    ] {
        let home = home_with(config);
        for output in [with(&home, &["start"], variables), run(&home, &["--image", "i", "--runtime", "", "true"], &[])]
        {
            assert!(!output.status.success() && output.stdout.is_empty(), "{config}");
        }
        let told = text(&with(&home, &["start"], variables).stderr);
        assert!(expected.iter().all(|part| told.contains(part)), "{config}: {told}");
        assert_eq!(home.left(), Vec::<String>::new(), "{config}");
    }
    // What has nothing to do with sandboxes does not keep anybody from one.
    let home = home_with("[core]\nmax_iterations = \"many\"\n");
    assert!(home.session(&["start"]).status.success());
}

#[test]
fn settings_that_the_runtime_has_no_use_for_are_told_once_with_their_places() {
    let home = home_with("[core]\n[sandbox]\nuse_host_network = true\nbase_container_image = \"debian:13\"\n");
    let started = with(&home, &["start"], &[("SANDBOX_PLATFORM", "linux/arm64")]);
    assert!(started.status.success());
    let told = text(&started.stderr);
    let expected = "the runtime `local` has no use for sandbox.base_container_image (config.toml:4), sandbox.platform \
                    ($SANDBOX_PLATFORM), sandbox.use_host_network (config.toml:3)";
    assert_eq!(told.matches("has no use for").count(), 1, "{told}");
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_command_without_a_limit_of_its_own_has_the_configured_one() {
    let home = home_with("[core]\n[sandbox]\ntimeout = 1\n");
    home.start("s");
    let late = home.session(&["exec", "s", "sleep 100"]);
    assert_eq!(late.status.code(), Some(124));
    let told = text(&late.stderr);
    assert!(told.contains("the limit is `timeout` in [sandbox] (config.toml:3); --timeout sets another one"), "{told}");
    assert_eq!(home.session(&["exec", "--timeout", "1m", "s", "sleep 2; echo done"]).stdout, b"done\n");
    let late = run(&home, &["--runtime", "local", "sleep 100"], &[]);
    assert_eq!(late.status.code(), Some(124));
    assert!(text(&late.stderr).contains("(config.toml:3)"), "{}", text(&late.stderr));
}

#[test]
fn a_sandbox_that_is_to_be_kept_alive_goes_on_after_its_command() {
    let home = home_with("[core]\n[sandbox]\nkeep_runtime_alive = true\n");
    let ran = run(&home, &["--runtime", "local", "echo kept > file; pwd"], &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let ids = home.ids();
    let [id] = ids.as_slice() else { unreachable!("{ids:?}") };
    let told = text(&ran.stderr);
    assert!(told.contains(&format!("the session `{id}` goes on")), "{told}");
    assert_eq!(home.exec(id, "cat file"), (Some(0), "kept\n".to_owned()));

    // Without the setting nothing is left.
    fs::write(home.path().join("config.toml"), "[core]\n").unwrap();
    assert!(run(&home, &["--runtime", "local", "true"], &[]).status.success());
    assert_eq!(home.ids(), ids);
}

#[test]
fn the_editor_listens_where_the_configuration_says() {
    let home = home_with("[core]\n[sandbox]\nvscode_port = 41999\n");
    home.start("s");
    assert_eq!(home.exec("s", "echo $VSCODE_PORT"), (Some(0), "41999\n".to_owned()));
}

#[test]
fn the_file_of_another_program_stops_no_command_and_says_nothing() {
    let home = home_with("[build]\njobs = 2\n[security]\nlevel = \"high\"\n[profile.dev]\nopt-level = 1\n");
    home.start("s");
    let listed = home.session(&["ls", "-q"]);
    assert_eq!((text(&listed.stdout), text(&listed.stderr)), ("s\n".to_owned(), String::new()));
    let mut command = gloveport(home.path());
    let checked = command.current_dir(home.path()).args(["config", "check"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0));
    let expected = "config.toml: hint: this is the file of another program, and passed over: it has [build], [profile], and \
                    no setting of OpenHands\n    -> `--config-file` names another file\nthere is no configuration file, and \
                    nothing is wrong\n";
    assert_eq!(text(&checked.stdout), expected);
}
