//! `gloveport ipython`, and cells of the compatible server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use crate::support::{Server, gloveport, text};
use serde_json::{Value, json};

fn python() -> String {
    gloveport_testing::python().display().to_string()
}

fn ipython(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let python = python();
    gloveport(home.path()).args(["ipython", "--python", &python]).args(arguments).output().unwrap()
}

#[test]
fn a_cell_prints_what_it_shows_and_the_exit_code_tells_how_it_ended() {
    for (arguments, shown, code) in [
        (vec!["print(1); 2"], "1\n2", 0),
        (vec!["print", "(40 + 2)"], "42\n", 0),
        (vec!["print('half', flush=True); import os; os._exit(1)"], "half\n", 125),
    ] {
        let output = ipython(&arguments);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), (shown, Some(code)), "{output:?}");
    }
    assert_eq!(ipython(&["--timeout", "1", "while True: pass"]).status.code(), Some(124));
    let output = ipython(&["1/0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("ZeroDivisionError: division by zero"), "{output:?}");
}

#[test]
fn a_cell_is_one_json_value_if_that_is_asked_for() {
    let output = ipython(&["--json", "print('a'); import matplotlib.pyplot as plt; plt.plot([1]); plt.show(); 1/0"]);
    assert_eq!(output.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["end"], "raised");
    let printed = shown["text"].as_str().unwrap();
    assert!(printed.starts_with("a\n") && printed.contains("ZeroDivisionError"), "{printed}");
    assert!(shown["images"][0].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{shown}");
}

#[test]
fn a_kernel_that_takes_its_time_is_told_of_and_a_cell_gets_the_variables_of_a_login() {
    let home = tempfile::tempdir().unwrap();
    let slow = home.path().join("python");
    fs::write(&slow, format!("#!/bin/sh\nsleep 1.5\nexec {} \"$@\"\n", python())).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = gloveport(home.path());
    command.arg("ipython").arg("--python").arg(&slow).arg("import os; print(os.environ.get('AWS_SECRET_ACCESS_KEY'))");
    let output = command.env("AWS_SECRET_ACCESS_KEY", "hunter2").output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("None\n", Some(0)), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("gloveport: ") && told.contains("; this takes a moment"), "{told}");
}

#[test]
fn a_missing_interpreter_is_told_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let output = gloveport(home.path()).args(["ipython", "--python", "/no/such/python", "1"]).output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(told.contains("/no/such/python") && told.contains("Python 3.8 or later"), "{told}");
}

#[test]
fn a_kernel_of_a_server_stays_between_cells_and_images_become_files() {
    let python = python();
    let server = Server::serve(&[], &[("GLOVEPORT_PYTHON", python.as_str())]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let images = server.home.path().join("images");
    let run = |arguments: &[&str]| {
        let home = tempfile::tempdir().unwrap();
        let mut command = gloveport(home.path());
        command.args(["ipython", "--url", &url, "--images"]).arg(&images).args(arguments);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout)
    };
    assert_eq!(run(&["x = 41"]), "");
    assert_eq!(run(&["x + 1"]), "42");
    assert_eq!(run(&["--kernel", "mine", "'x' in globals()"]), "False");
    run(&["import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"]);
    assert!(fs::read(images.join("1.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn cells_of_a_trajectory_are_replayed_in_one_kernel() {
    let home = tempfile::tempdir().unwrap();
    let cell = |id: u32, code: &str| json!({"id": id, "source": "agent", "action": "run_ipython", "args": {"code": code, "include_extra": false}});
    let task = json!({"id": 0, "source": "user", "action": "message", "args": {"content": "Count."}});
    let trajectory = json!([task, cell(1, "x = 41"), cell(2, "x + 1")]);
    fs::write(home.path().join("trajectory.json"), trajectory.to_string()).unwrap();
    let mut command = gloveport(home.path());
    command.current_dir(home.path()).env("GLOVEPORT_PYTHON", python()).args(["replay", "trajectory.json"]);
    let output = command.output().unwrap();
    let expected = "[message] Count.\n>>> x = 41\n[Code executed successfully with no output]\n>>> x + 1\n42\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn the_compatible_server_has_the_plugins_that_it_is_asked_for() {
    let python = python();
    let environment = [("GLOVEPORT_PYTHON", python.as_str()), ("SU_TO_USER", "false")];
    let body = json!({"action": {"action": "run_ipython", "args": {"code": "callable(open_file)"}}}).to_string();
    let with = Server::compat(&["--plugins", "agent_skills", "jupyter"], &environment);
    let (status, answer) = with.request("POST", "/execute_action", "", &body);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let content = answer["content"].as_str().unwrap();
    assert!(content.starts_with("True\n[Jupyter current working directory: "), "{content}");
    assert!(content.ends_with(&format!("\n[Jupyter Python interpreter: {python}]")), "{content}");
    let without = Server::compat(&[], &environment);
    let missing = "Internal server error: JupyterRequirement not found. Unable to run IPython action.";
    let refused = (500, format!("{{\"detail\":\"{missing}\"}}"));
    assert_eq!(without.request("POST", "/execute_action", "", &body), refused);
}
