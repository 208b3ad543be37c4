//! Cells of sessions: run as operations, which are rated, asked about and in the history.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::sessions::{Home, Running};
use crate::support::{text, with_home};
use rustix::process::Signal;
use serde_json::Value;

/// The environment that `scripts/setup` makes, or another one with `ipykernel` and `matplotlib`, as the active one.
fn active_environment() -> String {
    let path = gloveport_testing::python();
    format!("VIRTUAL_ENV={}", path.parent().and_then(Path::parent).unwrap().display())
}

/// A home with a session of this id that has kernels, and a secret.
fn home(id: &str) -> Home {
    let home = Home::new();
    let environment = active_environment();
    let words = ["start", "--id", id, "--plugin", "jupyter", "--secret", "TOKEN", "--env", &environment];
    let output = home.command(&words).env("TOKEN", "hunter2-hunter2").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    home
}

#[test]
fn a_cell_runs_in_a_kernel_of_the_session_that_stays_and_the_history_has_it() {
    let home = home("c");
    assert_eq!(home.ok(&["ipython", "c", "x = 41"]), "");
    assert_eq!(home.ok(&["ipython", "c", "x", "+", "1"]), "42");
    assert_eq!(home.ok(&["ipython", "c", "--kernel", "mine", "'x' in globals()"]), "False");
    let raised = home.session(&["ipython", "c", "1/0"]);
    assert_eq!(raised.status.code(), Some(1));
    assert!(text(&raised.stdout).contains("ZeroDivisionError"), "{raised:?}");
    assert_eq!(home.session(&["ipython", "c", "--timeout", "1", "while True: pass"]).status.code(), Some(124));
    let words = ["ipython", "c", "--images", "pictures", "import matplotlib.pyplot as p; p.plot([1]); p.show()"];
    home.ok(&words);
    assert!(fs::read(home.path().join("pictures/1.png")).unwrap().starts_with(b"\x89PNG"));
    let shown: Value =
        serde_json::from_str(&home.ok(&["ipython", "c", "--json", "print('hunter2-' + 'hunter2')"])).unwrap();
    assert_eq!((&shown["text"], &shown["end"]), (&"hunter2-hunter2\n".into(), &"completed".into()));
    home.ok(&["ipython", "c", "--no-history", "x = 0"]);

    let events = home.events("c");
    assert_eq!(events.len(), 14);
    for pair in events.chunks(2) {
        assert_eq!((&pair[0]["action"], &pair[0]["source"]), (&"run_ipython".into(), &"user".into()));
        assert_eq!((&pair[1]["observation"], &pair[1]["cause"]), (&"run_ipython".into(), &pair[0]["id"]));
        assert_eq!(pair[0]["args"]["code"], pair[1]["extras"]["code"]);
    }
    let content = |cell: usize| events[2 * cell + 1]["content"].as_str().unwrap();
    assert_eq!(content(0), "[Code executed successfully with no output]");
    assert_eq!((content(1), content(2)), ("42", "False\n[Jupyter kernel: mine]"));
    assert!(
        content(3).contains("ZeroDivisionError: division by zero") && !content(3).contains('\x1b'),
        "{}",
        content(3)
    );
    assert_eq!(content(4), "[Execution timed out (1.0 seconds).]");
    let images = &events[11]["extras"]["image_urls"];
    assert!(images[0].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{images}");
    assert_eq!(content(6), "<secret_hidden>");
}

#[test]
fn c_c_interrupts_a_cell_and_the_history_has_what_it_showed() {
    let home = home("i");
    let mut cell = Running::new(&mut home.command(&["ipython", "i", "print('began')\nwhile True: pass"]));
    cell.wait_for("began");
    cell.signal(Signal::INT);
    assert_eq!(cell.end(), Some(1));
    assert_eq!(home.ok(&["ipython", "i", "1 + 1"]), "2");
    let events = home.events("i");
    let content = events[1]["content"].as_str().unwrap();
    assert!(content.starts_with("began\n") && content.contains("KeyboardInterrupt"), "{content}");
}

#[test]
fn a_cell_that_is_refused_never_begins() {
    let home = home("r");
    fs::write(home.path().join("config.toml"), "[security]\nconfirmation_mode = true\n").unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("setsid");
        command.args(["--wait", env!("CARGO_BIN_EXE_gloveport"), "session", "ipython"]).args(words);
        with_home(command, home.path()).env_remove("XDG_STATE_HOME").current_dir(home.path()).output().unwrap()
    };
    let refused = run(&["r", "x = 1"]);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(77), ""));
    assert!(text(&refused.stderr).contains("there is no terminal to ask at"), "{}", text(&refused.stderr));
    let refused = run(&["--deny", "--json", "r", "x = 1"]);
    let printed: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((refused.status.code(), &printed["observation"]), (Some(77), &"user_rejected".into()));
    assert_eq!(text(&run(&["--yes", "r", "'x' in globals()"]).stdout), "False");
    let events = home.events("r");
    assert_eq!((&events[0]["action"], &events[1]["observation"]), (&"run_ipython".into(), &"error".into()));
    assert_eq!(events[0]["args"]["confirmation_state"], "rejected");
}

#[test]
fn a_session_without_kernels_and_one_that_there_is_not_are_told_with_125() {
    let home = Home::new();
    home.start("plain");
    let (code, told) = home.failed(&["ipython", "plain", "1"]);
    assert!(code == 125 && told.contains("--plugin jupyter"), "{told}");
    let (code, told) = home.failed(&["ipython", "nobody", "1"]);
    assert!(code == 125 && told.contains("there is no session"), "{told}");
    assert_eq!(home.failed(&["ipython", "plain", "--json", "--images", "x", "1"]).0, 2);
    assert_eq!(home.failed(&["ipython", "plain", "--timeout", "never", "1"]).0, 2);
    let events = home.events("plain");
    assert_eq!((&events[0]["action"], &events[1]["observation"]), (&"run_ipython".into(), &"error".into()));
    assert_eq!(events.len(), 2);
}

#[test]
fn a_cell_whose_output_nobody_reads_any_more_is_interrupted_and_the_history_says_so() {
    let home = home("u");
    let mut command = home.command(&["ipython", "u", "import itertools\nfor i in itertools.count(): print(i)"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!((first.as_str(), child.wait().unwrap().code()), ("0\n", Some(141)));
    let events = home.events("u");
    let content = events[1]["content"].as_str().unwrap();
    assert!(
        content.starts_with("0\n1\n") && content.ends_with("[The user read no further; the cell was interrupted.]")
    );
    assert_eq!(home.ok(&["ipython", "u", "1 + 1"]), "2");
}
