//! `gloveport config` as a user meets it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, process::Output};

use crate::support::{gloveport, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with a configuration file.
fn with_file(content: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("config.toml"), content).unwrap();
    directory
}

/// Runs the command there, in an environment without anything else.
fn config(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = gloveport(directory);
    command.env_clear().env("HOME", directory).current_dir(directory);
    command.arg("config").args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn parts(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

const FILE: &str =
    "[core]\nruntime = \"local\"\nsearch_api_key = \"hunter2\"\n[sandbox]\ntimeout = 5\n[llm.\"gpt 5\"]\nseed = 1\n";

#[test]
fn show_tells_what_differs_from_the_defaults_and_hints_at_more() {
    let directory = with_file(FILE);
    let expected = "[core]\nruntime = \"local\"\nsearch_api_key = \"**********\"  # no effect in gloveport\n\n[sandbox]\n\
                    timeout = 7\n\n[llm.\"gpt 5\"]\nseed = 1  # no effect in gloveport\n\n\
                    --all shows all values, --origin where they come from; `gloveport config default` explains every key\n";
    let output = config(directory.path(), &["show"], &[("SANDBOX_TIMEOUT", "7")]);
    assert_eq!(parts(&output), (Some(0), expected.to_owned(), String::new()));

    let expected = "[core]\nruntime = \"local\"  # config.toml:2\nsearch_api_key = \"**********\"  # config.toml:3; no effect in gloveport\n\n[sandbox]\n\
                    timeout = 7  # $SANDBOX_TIMEOUT\n\n[llm.\"gpt 5\"]\nseed = 1  # config.toml:7; no effect in gloveport\n\n\
                    --all shows all values; `gloveport config default` explains every key\n";
    let output = config(directory.path(), &["show", "--origin"], &[("SANDBOX_TIMEOUT", "7")]);
    assert_eq!(parts(&output), (Some(0), expected.to_owned(), String::new()));

    let output = config(directory.path(), &["show", "--all", "--origin"], &[]);
    let shown = text(&output.stdout);
    for line in [
        "[kubernetes]",
        "namespace = \"default\"  # default",
        "#jwt_secret is unset  # default",
        "timeout = 5  # config.toml:5",
        "file_uploads_allowed_extensions = [\".*\"]  # default",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }

    let empty = tempfile::tempdir().unwrap();
    let shown = text(&config(empty.path(), &["show"], &[]).stdout);
    assert!(shown.starts_with("everything is at its default\n"), "{shown}");
}

#[test]
fn what_show_prints_is_a_configuration_file_with_the_same_values() {
    let directory = with_file(
        "[core]\nruntime = \"local\"\n[sandbox]\nadditional_networks = [\"a\"]\n[extended]\n\"a b\" = { c = 1 }\n",
    );
    let shown = text(&config(directory.path(), &["show", "--all"], &[]).stdout);
    let again = with_file(&shown);
    let values = |directory: &TempDir| {
        let mut shown = json_of(&config(directory.path(), &["show", "--all", "--json"], &[]));
        shown["values"]["llm"]["log_completions_folder"] = Value::Null;
        assert_eq!(shown["notes"].as_array().unwrap().iter().filter(|note| note["costs_a_setting"] == true).count(), 0);
        shown["values"].take()
    };
    // The section that only variables set is no section of the file.
    let shown = shown.split("\n[cli]").next().unwrap().to_owned() + "\n[extended]\n\"a b\" = { c = 1 }\n";
    fs::write(again.path().join("config.toml"), shown).unwrap();
    assert_eq!(values(&again), values(&directory));
}

#[test]
fn show_prints_json_with_values_origins_and_notes() {
    let directory = with_file(FILE);
    let shown = json_of(&config(directory.path(), &["show", "--json", "--origin"], &[("DEBUG", "1")]));
    assert_eq!(
        shown,
        json!({
            "values": {
                "core": {"runtime": "local", "search_api_key": "**********", "debug": true},
                "sandbox": {"timeout": 5},
                "llm.gpt 5": {"seed": 1},
            },
            "origins": {
                "core": {
                    "runtime": {"kind": "file", "file": "config.toml", "line": 2},
                    "search_api_key": {"kind": "file", "file": "config.toml", "line": 3},
                    "debug": {"kind": "environment", "variable": "DEBUG"},
                },
                "sandbox": {"timeout": {"kind": "file", "file": "config.toml", "line": 5}},
                "llm.gpt 5": {"seed": {"kind": "file", "file": "config.toml", "line": 7}},
            },
            "notes": [],
            "without_effect": ["core.search_api_key", "llm.gpt 5.seed"],
        })
    );
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_with_its_place_and_code_1() {
    let directory = with_file("[core]\n[sandbox]\ntimeot = 5\n");
    let message = "gloveport: config.toml:3:1: Error in [sandbox] section in config.toml: unknown key `timeot` in [sandbox]; \
                   did you mean `timeout`?\n";
    let output = config(directory.path(), &["show"], &[]);
    assert_eq!(parts(&output), (Some(1), String::new(), message.to_owned()));
    let found = "config.toml:3:1: error: Error in [sandbox] section in config.toml: unknown key `timeot` in [sandbox]\n    -> \
                 did you mean `timeout`?\nthe configuration cannot be used\n";
    let output = config(directory.path(), &["check"], &[]);
    assert_eq!(parts(&output), (Some(1), found.to_owned(), String::new()));
}

#[test]
fn check_tells_each_problem_with_its_place_and_what_was_meant() {
    let directory = with_file("[core]\nmax_iteration = 5\nworkspace_base = \"w\"\n[sanbox]\n");
    let output = config(directory.path(), &["check"], &[("SANDBOX_TIMEOUT", "soon")]);
    let expected = "config.toml:2:1: warning: Unknown config key \"max_iteration\" in [core] section\n    -> did you mean \
                    `max_iterations`?\n\
                    config.toml:3:1: hint: `workspace_base` in [core] is deprecated\n    -> use `volumes` in [sandbox]\n\
                    config.toml:4:2: warning: Unknown section [sanbox] in config.toml\n    -> did you mean `sandbox`?\n\
                    $SANDBOX_TIMEOUT: warning: Error setting env var SANDBOX_TIMEOUT=soon: check that the value is of the \
                    right type\n    -> it must be an integer\n\
                    SETTING              FROM           HAS AN EFFECT ON\n\
                    core.workspace_base  config.toml:3  new sandboxes (local, docker, others with host directories), \
                    sessions of the library, replay\n\
                    3 problems; the configuration can be used without them\n";
    assert_eq!(parts(&output), (Some(1), expected.to_owned(), String::new()));

    let found = json_of(&config(directory.path(), &["check", "--json"], &[]));
    assert_eq!(found["ok"], false);
    assert_eq!(
        found["notes"][0],
        json!({
            "file": "config.toml", "line": 2, "column": 1, "severity": "warning", "kind": "unknown_key",
            "message": "Unknown config key \"max_iteration\" in [core] section", "costs_a_setting": true,
            "suggestion": "did you mean `max_iterations`?",
        })
    );
    let shown = text(&config(directory.path(), &["show"], &[]).stdout);
    assert!(shown.ends_with("2 of the settings have no effect; `gloveport config check` shows which\n"), "{shown}");
}

#[test]
fn check_tells_where_each_setting_has_an_effect_and_where_none() {
    let directory = with_file("[core]\nmax_iterations = 5\n[sandbox]\nplatform = \"linux/arm64\"\nuser_id = 7\n");
    let output = config(directory.path(), &["check"], &[("SANDBOX_TIMEOUT", "7")]);
    let expected = "SETTING              FROM              HAS AN EFFECT ON\n\
                    core.max_iterations  config.toml:2     nothing in gloveport\n\
                    sandbox.user_id      config.toml:5     nothing in gloveport\n\
                    sandbox.timeout      $SANDBOX_TIMEOUT  session exec, session ipython, run --runtime, sessions of the library, replay\n\
                    sandbox.platform     config.toml:4     new sandboxes (docker), image build, image tag\n\
                    nothing is wrong; 2 of 4 settings have no effect in gloveport\n";
    assert_eq!(parts(&output), (Some(0), expected.to_owned(), String::new()));
    let found = json_of(&config(directory.path(), &["check", "--json"], &[]));
    assert_eq!(
        found["effects"],
        json!([
            {"setting": "core.max_iterations", "runtimes": null, "commands": [], "library": false},
            {"setting": "sandbox.user_id", "runtimes": null, "commands": [], "library": false},
            {"setting": "sandbox.platform", "runtimes": "docker", "commands": ["image build", "image tag"], "library": false},
        ])
    );
}

#[test]
fn check_ends_with_0_where_nothing_is_wrong() {
    let directory = with_file("[core]\nworkspace_base = \"w\"\n");
    let output = config(directory.path(), &["check"], &[]);
    let told = text(&output.stdout);
    let hint = "config.toml:2:1: hint: `workspace_base` in [core] is deprecated\n    -> use `volumes` in [sandbox]\n";
    assert!(told.starts_with(hint) && told.ends_with("\nevery setting has an effect\n"), "{told}");
    assert_eq!(output.status.code(), Some(0));
    let found = json_of(&config(directory.path(), &["check", "--json"], &[]));
    assert_eq!((&found["ok"], found["notes"].as_array().map(Vec::len)), (&json!(true), Some(1)));

    let empty = tempfile::tempdir().unwrap();
    let output = config(empty.path(), &["check"], &[]);
    let expected = "config.toml: hint: file not found. Toml values have not been applied.\nthere is no configuration file, and \
                    nothing is wrong\n";
    assert_eq!(parts(&output), (Some(0), expected.to_owned(), String::new()));
    // A file that was named has to be there.
    assert_eq!(config(empty.path(), &["check", "--config-file", "mine.toml"], &[]).status.code(), Some(1));
    // A section alone is fine.
    let directory = with_file("[sandbox]\ntimeout = 5\n");
    assert_eq!(config(directory.path(), &["check"], &[]).status.code(), Some(0));
}

#[test]
fn the_default_file_passes_the_check_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let defaults = text(&config(directory.path(), &["default"], &[]).stdout);
    fs::write(directory.path().join("mine.toml"), defaults).unwrap();
    let output = config(directory.path(), &["check", "--config-file", "mine.toml"], &[]);
    assert_eq!(parts(&output), (Some(0), "nothing is wrong\n".to_owned(), String::new()));
    let shown = text(&config(directory.path(), &["show", "--config-file", "mine.toml"], &[]).stdout);
    assert!(shown.starts_with("everything is at its default\n"), "{shown}");
}

#[test]
fn the_schema_is_one_of_draft_2020_12() {
    let directory = tempfile::tempdir().unwrap();
    let schema = json_of(&config(directory.path(), &["schema"], &[]));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["sandbox"]["properties"]["timeout"]["default"], 120);
    assert_eq!(schema["properties"]["sandbox"]["additionalProperties"], false);
}

#[test]
fn no_command_shows_a_secret() {
    let file = r#"
        [core]
        jwt_secret = "hunter2"
        file_store_web_hook_headers = { A = "hunter2" }
        search_api_key = ["hunter2"]
        [llm]
        api_key = { a = "hunter2" }
        [sandbox]
        api_key = "hunter2"
        runtime_startup_env_vars = { A = "hunter2" }
        remote_runtime_api_url = "https://me:hunter2@example.com/?a=hunter2"
        [mcp]
        stdio_servers = [{ name = "a", command = "b", env = "A=hunter2,B=hunter2" }]
        sse_servers = [{ url = "https://a/?key=hunter2", api_key = "hunter2" }]
        [extended]
        token = "hunter2"
    "#;
    let variables =
        [("LLM_API_KEY", "hunter2"), ("MCP_SHTTP_SERVERS", "[{'url': 'hunter2'}]"), ("SANDBOX_API_KEY", "hunter2")];
    let broken =
        [file.replace("env = \"A=hunter2,", "env = \"hunter2,"), file.replace("jwt_secret = \"", "jwt_secret = ")];
    for content in [file.to_owned()].iter().chain(&broken) {
        let directory = with_file(content);
        for arguments in [
            &["show", "--all", "--origin"][..],
            &["show", "--all", "--origin", "--json"],
            &["check"],
            &["check", "--json"],
        ] {
            let (_, stdout, stderr) = parts(&config(directory.path(), arguments, &variables));
            let shown = format!("{stdout}{stderr}");
            assert!(!shown.contains("hunter2"), "{arguments:?}\n{shown}");
            assert!(!shown.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn a_wrong_command_line_ends_with_2_and_help_explains() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["x"], &["show", "--x"], &["show", "--config-file"]] {
        assert_eq!(config(directory.path(), arguments, &[]).status.code(), Some(2), "{arguments:?}");
    }
    let help = text(&config(directory.path(), &["--help"], &[]).stdout);
    assert!(help.contains(".env file") && help.contains("show") && help.contains("schema"), "{help}");
    let help = text(&config(directory.path(), &["check", "--help"], &[]).stdout);
    assert!(help.contains("Exit codes: 0 nothing is wrong"), "{help}");
}
