//! Sessions as a person at a terminal and a script meet them.

use std::{fs, io::Write as _, process::Stdio, thread};

use crate::sessions::{Home, Running};
use crate::support::{gloveport, text};
use serde_json::Value;

#[test]
fn a_session_is_started_used_listed_and_removed() {
    let home = Home::new();
    let output = home.session(&["start", "--id", "work", "--label", "team=infra", "--ttl", "1h"]);
    assert_eq!(text(&output.stdout), "work\n");
    assert!(text(&output.stderr).contains("\nready after "), "{}", text(&output.stderr));

    assert_eq!(home.exec("work", "cd /usr; x=5; echo set"), (Some(0), "set\n".to_owned()));
    assert_eq!(home.exec("work", "echo $x $PWD; (exit 7)"), (Some(7), "5 /usr\n".to_owned()));

    let listed = home.listed();
    assert_eq!((&listed[0]["session_id"], &listed[0]["state"]), (&Value::from("work"), &Value::from("running")));
    assert_eq!(listed[0]["lifetime"], "kept");
    let table = home.ok(&["ls"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["SESSION", "SANDBOX", "RUNTIME"]);
    assert_eq!((rows[1][0], rows[1][2], rows[1][3], rows.len()), ("work", "local", "running", 2));
    assert_eq!(home.ok(&["ls", "-q", "--label", "team=infra"]), "work\n");
    assert_eq!(home.ok(&["ls", "-q", "--label", "team=other"]), "");
    assert!(home.ok(&["show", "work"]).contains("team=infra"));

    let (code, error) = home.failed(&["rm", "work"]);
    assert!(code == 1 && error.contains("is running; stop it first"), "{error}");
    assert_eq!(home.ok(&["rm", "-f", "work"]), "work\n");
    assert!(home.ids().is_empty() && home.left().is_empty());
}

#[test]
fn a_runtime_without_snapshots_says_so_and_a_missing_snapshot_is_a_failure() {
    let home = Home::new();
    for words in [&["snapshots", "ls", "--runtime", "local"][..], &["snapshots", "rm", "--runtime", "local", "nothing"]]
    {
        let (code, error) = home.failed(words);
        assert!(code == 1 && error.contains("has no support for lists of snapshots"), "{words:?} {code} {error}");
    }
    let (code, error) = home.failed(&["snapshots", "rm", "nothing-of-this-name"]);
    assert!(code == 1 && error.contains("there is no snapshot `nothing-of-this-name`"), "{code} {error}");
    let told = home.session(&["snapshots", "rm", "--json", "nothing-of-this-name"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&told[0]["id"], &told[0]["ok"]), (&Value::from("nothing-of-this-name"), &Value::from(false)));
}

#[test]
fn json_of_a_start_has_the_whole_sandbox_with_times_and_no_key() {
    let home = Home::new();
    let shown: Value = serde_json::from_str(&home.ok(&["start", "--id", "j", "--json", "-q"])).unwrap();
    assert_eq!((&shown["session_id"], &shown["provider"]), (&Value::from("j"), &Value::from("local")));
    let phases: Vec<&str> =
        shown["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(phases.last(), Some(&"alive"));
    assert!(shown["phases"][0]["took_seconds"].is_number());

    let env = home.ok(&["env", "j"]);
    let key = env.split("GLOVEPORT_KEY='").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    assert!(key.len() >= 32, "a key that can be guessed");
    for words in [&["ls"][..], &["ls", "--json"], &["show", "j"], &["show", "--json", "j"], &["logs", "j"]] {
        assert!(!home.ok(words).contains(key), "{words:?} shows the key");
    }
    assert!(!shown.to_string().contains(key));
}

#[test]
fn the_environment_of_a_session_serves_the_other_commands() {
    let home = Home::new();
    home.start("s");
    let script = "eval \"$(\"$0\" session env s)\" && \"$0\" run 'echo over $((1+1))'";
    let mut command = crate::support::with_home(std::process::Command::new("sh"), home.path());
    let output = command.args(["-c", script, env!("CARGO_BIN_EXE_gloveport")]).output().unwrap();
    assert_eq!(text(&output.stdout), "over 2\n", "{}", text(&output.stderr));
    let url = home.ok(&["url", "s"]);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let (code, error) = home.failed(&["url", "s", "nothing"]);
    assert!(code == 1 && error.contains("has no port `nothing`"), "{error}");
}

#[test]
fn an_id_can_be_shortened_as_long_as_it_fits_one_session() {
    let home = Home::new();
    for id in ["alpha-1", "alpha-2", "beta"] {
        home.start(id);
    }
    assert_eq!(home.exec("b", "echo in"), (Some(0), "in\n".to_owned()));
    assert_eq!(home.ok(&["url", "alpha-1"]), home.ok(&["url", "alpha-1"]));
    // The whole id of one is no beginning of another.
    home.start("alpha");
    home.ok(&["url", "alpha"]);
    for (reference, expected) in [
        ("alpha-", "`alpha-` is ambiguous, it fits alpha-1 (local), alpha-2 (local)"),
        ("gamma", "there is no session or sandbox `gamma`"),
        ("../x", "cannot be the id of a session"),
    ] {
        for words in [&["exec", reference, "true"][..], &["url", reference], &["rm", reference], &["logs", reference]] {
            let (code, error) = home.failed(words);
            assert_eq!(code, if words[0] == "exec" { 125 } else { 1 }, "{words:?}");
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
    assert_eq!(home.ids(), ["alpha", "alpha-1", "alpha-2", "beta"]);
}

#[test]
fn wrong_input_is_refused_before_anything_is_made() {
    let home = Home::new();
    for (words, code, expected) in [
        (&["start", "--label", "bad"][..], 2, "NAME=VALUE"),
        (&["start", "--secret", "TOKEN=hunter2"], 2, "would be seen by everybody"),
        (&["start", "--secret", "NOT_THERE"], 1, "has no variable NOT_THERE"),
        (&["start", "--secret", "A=@/does/not/exist"], 1, "cannot read /does/not/exist"),
        (&["start", "--memory", "much"], 2, "512m"),
        (&["start", "--ttl", "soon"], 2, "15m"),
        (&["start", "--port", "80"], 2, "NAME:PORT"),
        (&["start", "--id", "a/b"], 1, "cannot be the id of a session"),
        (&["start", "--workspace", "/does/not/exist"], 1, "/does/not/exist is not a directory"),
        (
            &["start", "--isolation", "files", "--image", "debian"],
            1,
            "no support for an image without the level `container`",
        ),
        (&["start", "--isolation", "none", "--network", "none"], 1, "has no support for a network policy"),
        (&["start", "--runtime", "nope"], 1, "there is no runtime `nope`: it is not one of "),
        (&["ls", "--runtime", "nope"], 1, "Runtime nope not supported"),
        (&["rm"], 2, "<ID>"),
        (&["exec"], 2, "<ID>"),
        (&["cp", "a", "b"], 1, "no path is in a session"),
        (&["cp", "a:b", "c:d"], 1, "both paths are in sessions"),
    ] {
        let (found, error) = home.failed(words);
        assert_eq!(found, code, "{words:?}: {error}");
        assert!(error.contains(expected), "{words:?}: {error}");
    }
    assert!(home.left().is_empty());
}

#[test]
fn of_two_starts_of_one_id_at_once_one_wins() {
    let home = Home::new();
    let outputs: Vec<_> = thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| home.session(&["start", "--id", "one"]))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let won = outputs.iter().filter(|output| output.status.success()).count();
    let errors: Vec<String> = outputs.iter().map(|output| text(&output.stderr)).collect();
    assert_eq!(won, 1, "{errors:?}");
    for output in outputs.iter().filter(|output| !output.status.success()) {
        assert!(text(&output.stderr).contains("has the sandbox `one` already"), "{errors:?}");
    }
    assert_eq!(home.exec("one", "echo lives"), (Some(0), "lives\n".to_owned()));
}

#[test]
fn several_sessions_are_paused_and_resumed_at_once_each_with_its_own_result() {
    let home = Home::new();
    for id in ["p1", "p2"] {
        home.start(id);
    }
    let output = home.session(&["pause", "p1", "nobody", "p2"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("p1\np2\n", Some(1)));
    assert!(text(&output.stderr).contains("`nobody`"));
    assert!(home.listed().iter().all(|sandbox| sandbox["state"] == "paused"));
    let (code, error) = home.failed(&["exec", "p1", "true"]);
    assert_eq!(code, 125);
    assert!(error.contains("is paused; resume it with `gloveport session resume p1`"), "{error}");
    assert_eq!(home.ok(&["resume", "p1", "p2"]), "p1\np2\n");
    assert_eq!(home.exec("p2", "echo back"), (Some(0), "back\n".to_owned()));
    assert_eq!(home.ok(&["stop", "p1", "p2"]), "p1\np2\n");
    assert!(home.ids().is_empty());
}

#[test]
fn files_are_copied_in_both_directions_and_through_pipes() {
    let home = Home::new();
    home.start("c");
    fs::create_dir_all(home.path().join("tree/sub")).unwrap();
    fs::write(home.path().join("tree/sub/file"), "content\n").unwrap();
    home.ok(&["cp", "tree", "c:copy"]);
    assert_eq!(home.exec("c", "cat copy/sub/file").1, "content\n");
    home.ok(&["cp", "c:copy", "back"]);
    assert_eq!(fs::read_to_string(home.path().join("back/sub/file")).unwrap(), "content\n");
    assert_eq!(home.ok(&["cp", "c:copy/sub/file", "-"]), "content\n");
    let mut child = home.command(&["cp", "-", "c:piped"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"\x00\xff\r\n").unwrap();
    assert!(child.wait().unwrap().success());
    let output = home.session(&["cp", "c:piped", "-"]);
    assert_eq!(output.stdout, b"\x00\xff\r\n");
    let (code, error) = home.failed(&["cp", "c:missing", "x"]);
    assert!(code == 1 && error.contains("missing"), "{error}");
}

#[test]
fn a_workspace_of_the_user_is_worked_in_and_stays() {
    let home = Home::new();
    fs::create_dir(home.path().join("project")).unwrap();
    home.ok(&["start", "--id", "w", "--workspace", "project", "--env", "A=1 2"]);
    assert_eq!(home.exec("w", "echo \"$A\" | tee made").1, "1 2\n");
    home.ok(&["rm", "-f", "w"]);
    assert_eq!(fs::read_to_string(home.path().join("project/made")).unwrap(), "1 2\n");
}

#[test]
fn the_list_is_whole_while_sessions_come_and_go() {
    let home = Home::new();
    thread::scope(|scope| {
        for worker in 0..3 {
            let home = &home;
            scope.spawn(move || {
                for _ in 0..4 {
                    let id = format!("w{worker}");
                    home.start(&id);
                    home.ok(&["rm", "-f", &id]);
                }
            });
        }
        for _ in 0..20 {
            for sandbox in home.listed() {
                assert!(sandbox["session_id"].as_str().unwrap().starts_with('w'), "{sandbox}");
            }
        }
    });
    assert!(home.ids().is_empty());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let home = Home::new();
    home.start("r");
    for words in [&["ls"][..], &["ls", "--json"], &["show", "r"], &["logs", "r"]] {
        let mut child = home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn what_the_server_writes_can_be_followed_to_its_end() {
    let home = Home::new();
    home.start("l");
    let follower = Running::new(&mut home.command(&["logs", "-f", "l"]));
    home.ok(&["logs", "--tail", "1", "l"]);
    home.ok(&["stop", "l"]);
    assert_eq!(follower.end(), Some(0));
}

#[test]
fn help_has_examples_and_exit_codes_and_completions_know_the_commands() {
    let home = Home::new();
    for (words, expected) in [
        (&["--help"][..], "gloveport session start"),
        (&["start", "--help"], "Exit codes: 0 it runs"),
        (&["exec", "--help"], "124 if the time limit passed"),
    ] {
        let help = home.ok(words);
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected), "{help}");
    }
    let asked = ["completions", "bash", "--line", "gloveport session "];
    let completions = text(&gloveport(home.path()).args(asked).output().unwrap().stdout);
    for command in ["start", "exec", "events", "ls", "pause", "resume", "stop", "rm", "logs", "cp", "gc"] {
        assert!(completions.lines().any(|offered| offered == command), "{command}");
    }
}

#[test]
fn relative_paths_begin_where_the_tools_of_the_session_start() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("place/sub")).unwrap();
    fs::write(home.path().join("notes"), "n").unwrap();
    home.ok(&["start", "--id", "rel", "--workspace", "place"]);
    assert_eq!(home.exec("rel", "cd /"), (Some(0), String::new()));
    for (directory, expected) in [("sub", "place/sub"), (".", "place"), ("/usr", "/usr")] {
        let output = home.ok(&["exec", "-w", directory, "rel", "pwd -P"]);
        let expected = home.path().join(expected).canonicalize().unwrap();
        assert_eq!(output.trim_end(), expected.display().to_string(), "{directory}");
    }
    for destination in ["sub/", "sub/copy"] {
        home.ok(&["cp", "notes", &format!("rel:{destination}")]);
    }
    assert!(home.path().join("place/sub/notes").is_file() && home.path().join("place/sub/copy").is_file());
    let output = gloveport(home.path())
        .env_remove("XDG_STATE_HOME")
        .current_dir(home.path())
        .args(["run", "--runtime", "local", "--workspace", "place", "--cwd", "sub", "pwd -P"])
        .output()
        .unwrap();
    let expected = home.path().join("place/sub").canonicalize().unwrap();
    assert_eq!(text(&output.stdout).trim_end(), expected.display().to_string(), "{}", text(&output.stderr));
    home.ok(&["rm", "-f", "rel"]);
}
