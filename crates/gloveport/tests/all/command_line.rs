//! The command line as a user meets it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
};

use crate::{
    sandboxes::has_containers,
    support::{Server, gloveport, run, text},
};
use serde_json::{Value, json};

fn python() -> String {
    gloveport_testing::python().display().to_string()
}

#[test]
fn a_command_prints_its_output_and_ends_with_its_exit_code() {
    let output = run(&["run", "echo out; echo err >&2; exit 7"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("out\nerr\n", Some(7)));
    let output = run(&["run", "printf", "'%s'", "a"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("a", Some(0)));
    assert_eq!(run(&["run", "kill -9 $$"]).status.code(), Some(137));
}

#[test]
fn output_comes_while_the_command_runs_and_binary_output_is_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let mut child = gloveport(home.path())
        .args(["run", "echo first; read -r line; echo got $line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    child.stdin.take().unwrap().write_all(b"answer\n").unwrap();
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "got answer\n");
    assert!(child.wait().unwrap().success());

    let output = run(&["run", r"printf 'a\r\n\x00\xff\e[1mb'"]);
    assert_eq!(output.stdout, b"a\r\n\x00\xff\x1b[1mb");
}

#[test]
fn a_script_comes_from_standard_input_and_keeps_its_state() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [vec!["run"], vec!["run", "-"]] {
        let mut child =
            gloveport(home.path()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"x=1\nf() { echo \"f $x\"; }\n\nfor i in a b; do\n  f\ndone\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("f 1\nf 1\n", Some(0)));
    }
}

#[test]
fn json_prints_the_observation() {
    let output = run(&["run", "--json", "echo hi; false"]);
    let observation: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(observation["observation"], "run");
    assert_eq!(observation["content"], "hi");
    assert_eq!(observation["extras"]["metadata"]["exit_code"], 1);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_time_limit_ends_a_command_with_124_and_leaves_nothing() {
    for flags in [&["run", "--timeout", "0.3"][..], &["run", "--json", "--timeout", "0.3"]] {
        let arguments: Vec<&str> = flags.iter().copied().chain(["echo begun; sleep 987654"]).collect();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(124), "{flags:?}");
        assert!(text(&output.stdout).contains("begun"));
    }
    let sleeping = |pid: &u32| gloveport_sys::process::command_line(*pid).is_some_and(|line| line == "sleep 987654");
    assert_eq!(gloveport_sys::process::all().iter().filter(|pid| sleeping(pid)).count(), 0);
}

#[test]
fn directory_and_variables_are_those_of_the_flags() {
    let output = run(&["run", "--cwd", "/usr", "--env", "A=1 2", "--env", "B=$x", "pwd; echo \"$A $B\""]);
    assert_eq!(text(&output.stdout), "/usr\n1 2 $x\n");
}

#[test]
fn wrong_command_lines_end_with_2_and_failures_of_our_own_with_125() {
    for arguments in [&["run", "--timeout", "-1", "x"][..], &["run", "--env", "=x", "x"], &["nonsense"], &[]] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let output = run(&["run", "--cwd", "/does/not/exist", "pwd"]);
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stderr), "gloveport: /does/not/exist is not a directory\n");
    let output = run(&["run", "--url", "http://127.0.0.1:1", "pwd"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).starts_with("gloveport: no server answers at http://127.0.0.1:1/; is it running?"));
}

#[test]
fn a_flag_that_is_unknown_is_no_command_and_one_that_is_meant_is_named() {
    for (words, meant) in [
        (&["run", "--rutime", "docker", "--image", "debian:13", "touch ran"][..], "'--runtime'"),
        (&["run", "--json", "--tiemout", "3", "touch ran"], "'--timeout'"),
        (&["run", "-x", "touch ran"], "-- -x"),
        (&["session", "exec", "some", "--no-histroy", "touch ran"], "'--no-history'"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let output = gloveport(home.path()).current_dir(home.path()).args(words).output().unwrap();
        let told = text(&output.stderr);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(2)), "{words:?} {told}");
        assert!(told.contains("unexpected argument") && told.contains(meant), "{words:?} {told}");
        assert!(!home.path().join("ran").exists(), "{words:?} ran");
    }
}

#[test]
fn what_follows_the_first_word_of_a_command_belongs_to_it() {
    for (words, printed) in [
        (&["run", "echo", "-n", "--runtime", "x"][..], "--runtime x"),
        (&["run", "--", "printf", "%s", "--json"], "--json"),
        (&["run", "-e", "A=b", "-w", "/usr", "echo", "$A", "$PWD", "--", "-c"], "b /usr -- -c\n"),
    ] {
        let output = run(words);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), (printed, Some(0)), "{words:?}");
    }
    let output = run(&["run", "--", "--no-such-program"]);
    assert_eq!(output.status.code(), Some(127), "{}", text(&output.stderr));
}

#[test]
fn a_command_without_isolation_gets_the_variables_of_a_login_and_those_that_are_passed_on() {
    let home = tempfile::tempdir().unwrap();
    let print = "echo \"<$AWS_SECRET_ACCESS_KEY|$TOKEN|$LC_TIME|${https_proxy}|$SSH_AUTH_SOCK|${HOME:+home}>\"";
    let ran = |words: &[&str]| {
        let mut command = gloveport(home.path());
        command.env_remove("XDG_STATE_HOME").current_dir(home.path());
        for name in ["AWS_SECRET_ACCESS_KEY", "TOKEN", "SSH_AUTH_SOCK"] {
            command.env(name, "s3cret");
        }
        command.env("LC_TIME", "C").env("https_proxy", "http://127.0.0.1:1");
        let output = command.args(words).output().unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    for start in [&["run"][..], &["run", "--runtime", "local"], &["run", "--isolation", "none"]] {
        assert_eq!(ran(&[start, &[print]].concat()).0, "<||C|http://127.0.0.1:1||home>\n", "{start:?}");
        let passed = ran(&[start, &["--env", "TOKEN", print]].concat()).0;
        assert_eq!(passed, "<|s3cret|C|http://127.0.0.1:1||home>\n", "{start:?}");
    }
    let (id, told) = ran(&["session", "start", "--id", "plain", "--isolation", "none"]);
    assert_eq!(id, "plain\n", "{told}");
    assert_eq!(told.matches("the runtime `local` has no isolation").count(), 1, "{told}");
    assert_eq!(ran(&["session", "exec", "plain", print]).0, "<||C|http://127.0.0.1:1||home>\n");
    assert_eq!(ran(&["session", "rm", "-f", "plain"]).0, "plain\n");
    let (_, told) = ran(&["session", "start", "-q", "--id", "quiet"]);
    assert_eq!(told, "");
    assert_eq!(ran(&["session", "rm", "-f", "quiet"]).0, "quiet\n");
    assert!(ran(&["run", "--help"]).0.contains("there is no isolation"));
}

#[test]
fn sessions_are_kept_apart_unless_somebody_wants_that_otherwise_and_it_is_told_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mine"), "x").unwrap();
    let ran = |words: &[&str]| {
        let output = gloveport(home.path()).current_dir(home.path()).args(words).output().unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    let ask = format!("cat {}/mine", home.path().display());
    for (words, level) in
        [(&[][..], None), (&["--isolation", "files"], Some("files")), (&["--isolation", "none"], Some("none"))]
    {
        let (id, told) = ran(&[&["session", "start"][..], words].concat());
        let id = id.trim_end();
        assert_eq!(told.matches("note: ").count(), 1, "{told}");
        assert_eq!(told.contains("--isolation none"), words.is_empty(), "{told}");
        let shown = ran(&["session", "show", id]).0;
        let level = level.unwrap_or(if has_containers() { "container" } else { "files" });
        assert!(shown.contains(&format!("gloveport.isolation={level}")), "{shown}");
        assert_eq!(ran(&["session", "exec", id, &ask]).0 == "x", level == "none", "{level}");
        assert_eq!(ran(&["session", "rm", "-f", id]).0.trim_end(), id);
    }
    let (printed, told) = ran(&["run", "--runtime", "local", &ask]);
    assert!(printed.contains("mine: ") && told.contains("--isolation none"), "{printed} {told}");
    // A person who chooses knows it.
    assert_eq!(ran(&["run", "--isolation", "none", &ask]), ("x".to_owned(), String::new()));
    std::fs::create_dir(home.path().join("work")).unwrap();
    let (_, told) = ran(&["session", "start", "--workspace", "."]);
    assert!(told.contains("your home directory is in it") && told.contains("--isolation none"), "{told}");
}

#[test]
fn the_history_file_of_the_person_is_neither_read_nor_written() {
    let numbers = "echo before\n".repeat(1200);
    for (bashrc, name) in [("", ".bash_history"), ("HISTFILE=~/.other; HISTSIZE=50; shopt -s histappend", ".other")] {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".bashrc"), bashrc).unwrap();
        std::fs::write(home.path().join(name), &numbers).unwrap();
        let files = || {
            let mut names: Vec<_> =
                std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = files();
        // The list of the session itself is there.
        let temporary = tempfile::tempdir().unwrap();
        let mut command = gloveport(home.path());
        let output = command.env("TMPDIR", temporary.path()).args(["run", "echo hi; history"]).output().unwrap();
        assert_eq!(text(&output.stdout), "hi\n    1  echo hi; history\n", "{bashrc}");
        assert_eq!(std::fs::read_to_string(home.path().join(name)).unwrap(), numbers, "{bashrc}");
        assert_eq!(files(), before, "{bashrc}");
    }
}

#[test]
fn what_a_sandbox_is_made_from_is_refused_where_there_is_no_sandbox() {
    for (words, flag) in [
        (&["run", "--image", "debian:13", "id"][..], "--image"),
        (&["run", "--url", "http://127.0.0.1:1", "--idle-stop", "5m", "id"], "--idle-stop"),
        (&["run", "--runtime", "cli", "--gpus", "id"], "--gpus"),
    ] {
        let output = run(words);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(2)), "{words:?}");
        let told = text(&output.stderr);
        assert!(told.contains(&format!("{flag} says what a sandbox is made from")), "{words:?} {told}");
        assert!(told.contains("Usage: gloveport run"), "{told}");
    }
}

#[test]
fn a_flag_says_more_than_a_variable_about_where_a_command_runs() {
    let home = tempfile::tempdir().unwrap();
    let nowhere = "http://127.0.0.1:1";
    let ran = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = gloveport(home.path());
        let output = command.envs(variables.iter().copied()).arg("run").args(words).output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, told) = ran(&[("GLOVEPORT_RUNTIME", "no-such-runtime")], &["true"]);
    assert!(code == Some(125) && told.contains("no-such-runtime"), "{code:?} {told}");
    assert_eq!(
        ran(&[("GLOVEPORT_RUNTIME", "none"), ("GLOVEPORT_URL", nowhere)], &["--runtime", "cli", "true"]).0,
        Some(0)
    );
    assert_eq!(ran(&[("GLOVEPORT_RUNTIME", ""), ("GLOVEPORT_URL", "")], &["true"]).0, Some(0));
    for (variables, words) in [
        (&[("GLOVEPORT_RUNTIME", "none")][..], &["--url", nowhere, "true"][..]),
        (&[("GLOVEPORT_RUNTIME", "none"), ("GLOVEPORT_URL", nowhere)], &["true"]),
    ] {
        let (code, told) = ran(variables, words);
        assert!(code == Some(125) && told.contains("no server answers"), "{variables:?} {code:?} {told}");
    }
    let (code, told) = ran(&[], &["--url", nowhere, "--runtime", "local", "true"]);
    assert!(code == Some(2) && told.contains("exclude each other"), "{code:?} {told}");
}

#[test]
fn a_fresh_sandbox_is_made_from_what_the_flags_say() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let mut command = gloveport(home.path());
    command.env_remove("XDG_STATE_HOME").current_dir(home.path()).env("TOKEN", "s3cret").env("PASSED", "on");
    command.args([
        "run",
        "--runtime",
        "local",
        "--workspace",
        "kept",
        "--secret",
        "TOKEN",
        "-e",
        "PASSED",
        "-e",
        "A=b",
    ]);
    let output = command.arg("echo $TOKEN $PASSED $A | tee made").output().unwrap();
    assert_eq!(text(&output.stdout), "s3cret on b\n", "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(kept.join("made")).unwrap(), "s3cret on b\n");
    let refused = run(&["run", "--runtime", "local", "--image", "debian:13", "id"]);
    assert_eq!((text(&refused.stdout).as_str(), refused.status.code()), ("", Some(125)));
    assert!(text(&refused.stderr).contains("image"), "{}", text(&refused.stderr));
}

#[test]
fn a_command_runs_on_a_server_and_its_shell_keeps_its_state() {
    let server = Server::serve(&[], &[("GLOVEPORT_KEY", "s3cret")]);
    let home = tempfile::tempdir().unwrap();
    let url = server.url();
    let there = |words: &[&str]| {
        let mut command = gloveport(home.path());
        command.args(["run", "--url", &url]).args(words).env("GLOVEPORT_KEY", "s3cret").output().unwrap()
    };
    assert_eq!(text(&there(&["x=5; echo set"]).stdout), "set\n");
    let output = there(&["echo $x; exit 3"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("5\n", Some(3)));
    let output = there(&["--cwd", "/usr", "--env", "A=b", "echo $PWD $A $x"]);
    assert_eq!(text(&output.stdout), "/usr b\n");
    let observation: Value = serde_json::from_slice(&there(&["--json", "echo there"]).stdout).unwrap();
    assert_eq!(observation["content"], "there");

    let file = home.path().join("key");
    std::fs::write(&file, "s3cret\n").unwrap();
    let file = file.display().to_string();
    let with = |words: &[&str]| gloveport(home.path()).args(words).output().unwrap();
    for words in
        [&["run", "--url", &url, "--key-file", &file, "echo $x"][..], &["ls", "--url", &url, "--key-file", &file]]
    {
        let output = with(words);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{words:?}");
    }
    let seen = with(&["run", "--url", &url, "--key", "s3cret", "echo 5"]);
    assert_eq!(text(&seen.stdout), "5\n");
    assert!(text(&seen.stderr).contains("everyone on this machine can see the key"), "{}", text(&seen.stderr));
    let missing = with(&["run", "--url", &url, "--key-file", "/no/such", "true"]);
    assert!(text(&missing.stderr).contains("cannot read the key file /no/such"), "{}", text(&missing.stderr));

    let refused = gloveport(home.path()).args(["run", "--url", &url, "true"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("Invalid API Key"), "{}", text(&refused.stderr));
}

#[test]
fn a_server_without_a_key_is_not_opened_to_other_machines() {
    let output = run(&["serve", "--no-key", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("can be reached from other machines"), "{}", text(&output.stderr));
}

#[test]
fn flags_of_serve_that_contradict_each_other_or_mean_nothing_are_refused() {
    let home = tempfile::tempdir().unwrap();
    for (words, key, said) in [
        (vec!["--no-key"], "k", "--no-key contradicts the key"),
        (vec!["--allow-host", "http://box"], "", "`http://box` is not the name of a host"),
        (vec!["--no-key", "--key-file", "x"], "", "cannot be used with"),
        (
            vec!["--allow-origin", "https://app.example/page"],
            "k",
            "`https://app.example/page` is not the origin of a page",
        ),
        (vec!["--no-key", "--allow-origin", "https://app.example"], "", "--allow-origin needs a key"),
    ] {
        let mut command = gloveport(home.path());
        let output = command.args(["serve", "--port", "0"]).args(&words).env("GLOVEPORT_KEY", key).output().unwrap();
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{words:?} {}", text(&output.stderr));
    }
}

#[test]
fn a_server_without_a_key_answers_to_names_that_it_was_given_and_the_compatible_one_to_programs() {
    let ask = |server: &Server, host: &str, more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let head = format!("GET /ready HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let (strict, lenient) = (Server::serve(&["--allow-host", "Box.example"], &[]), Server::compat(&[], &[]));
    for (host, more, by_strict, by_lenient) in [
        ("localhost:8000", "", "200", "200"),
        ("127.0.0.1", "", "200", "200"),
        ("box.example:8000", "", "200", "200"),
        ("host.docker.internal", "", "403", "200"),
        ("evil.test", "accept-language: en\r\n", "403", "403"),
        ("localhost", "origin: http://localhost\r\n", "403", "403"),
        ("localhost", "sec-fetch-site: cross-site\r\n", "403", "403"),
        ("localhost", "sec-fetch-site: none\r\n", "200", "200"),
    ] {
        assert_eq!(ask(&strict, host, more), by_strict, "{host} {more}");
        assert_eq!(ask(&lenient, host, more), by_lenient, "{host} {more}, the compatible one");
    }
}

#[test]
fn serve_makes_a_key_that_its_users_other_commands_find_until_it_ends() {
    let home = tempfile::tempdir().unwrap();
    let mut command = gloveport(home.path());
    command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_STATE_HOME");
    command.args(["serve", "--port", "0", "--workspace"]).arg(home.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.next().unwrap().strip_prefix("listening on ").unwrap().to_owned();
    let line = lines.next().unwrap();
    let key =
        line.strip_prefix(&format!("export GLOVEPORT_URL={url} GLOVEPORT_KEY=")).unwrap_or_else(|| panic!("{line}"));
    assert_eq!(key.len(), 64, "{key}");

    let directory = home.path().join(".local/state/gloveport/servers");
    let files = || std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let kept = files();
    assert_eq!((kept.len(), mode(&kept[0]), mode(&directory)), (1, 0o600, 0o700), "{kept:?}");

    let other = tempfile::tempdir().unwrap();
    let run_as = |home: &Path, words: &[&str]| {
        let mut command = gloveport(home);
        command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_STATE_HOME").args(words).output().unwrap()
    };
    for (home, key, code) in [(home.path(), None, 0), (other.path(), None, 125), (other.path(), Some(key), 0)] {
        let mut words = vec!["run", "--url", &url];
        words.extend(key.into_iter().flat_map(|key| ["--key", key]));
        words.push("true");
        let output = run_as(home, &words);
        assert_eq!(output.status.code(), Some(code), "{words:?} {}", text(&output.stderr));
    }
    for words in [&["ls", "--url", &url, "/"][..], &["view", "--url", &url, "/"], &["ipython", "--url", &url, "-"]] {
        let output = run_as(home.path(), words);
        assert!(!text(&output.stderr).contains("Invalid API Key"), "{words:?} {}", text(&output.stderr));
    }

    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    child.wait().unwrap();
    assert!(files().is_empty(), "{:?}", files());
}

#[test]
fn what_runs_in_a_sandbox_does_not_have_the_key_of_its_server() {
    let python = python();
    let find = "env | grep -c KEY; echo done";
    let plugin = tempfile::tempdir().unwrap();
    std::fs::create_dir(plugin.path().join("shows")).unwrap();
    let manifest = "name = \"shows\"\n[service]\ncommand = [\"sh\", \"-c\", \"env > {workspace}/plugin-env; exec python3 -m \
                    http.server --bind 127.0.0.1 {port}\"]\n";
    std::fs::write(plugin.path().join("shows/plugin.toml"), manifest).unwrap();
    for name in ["GLOVEPORT_KEY", "SESSION_API_KEY"] {
        let plugins = plugin.path().to_str().unwrap();
        let environment = [(name, "s3cret"), ("GLOVEPORT_PLUGINS", plugins), ("GLOVEPORT_PYTHON", python.as_str())];
        let server = Server::serve(&["--plugin", "shows"], &environment);
        holds_no_key(&server, find);
        server.request("GET", "/plugins/shows/", "X-Session-API-Key: s3cret\r\n", "");
        let shown = std::fs::read_to_string(server.home.path().join("plugin-env")).unwrap();
        assert!(shown.contains("PATH=") && !shown.contains("s3cret"), "{shown}");
    }
    holds_no_key(
        &Server::compat(&["--plugins", "jupyter"], &[("SESSION_API_KEY", "s3cret"), ("GLOVEPORT_PYTHON", &python)]),
        find,
    );
}

#[test]
fn a_sandbox_of_the_same_user_does_not_read_the_key_from_the_process_of_its_server() {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    let home = tempfile::tempdir().unwrap();
    let mut command = gloveport(home.path());
    if rustix::process::geteuid().is_root() {
        // Root reads everything. What others may not pass is not above the copy.
        let program = home.path().join("gloveport");
        std::fs::copy(env!("CARGO_BIN_EXE_gloveport"), &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        command = crate::support::with_home(std::process::Command::new(program), home.path());
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY).current_dir(home.path());
    }
    command.args(["serve", "--port", "0", "--workspace"]).arg(home.path()).env("SESSION_API_KEY", "s3cret");
    let server = Server::started(&mut command, home);
    let pid = server.child.id();
    let look = format!(
        "for pid in {pid} $PPID; do cat /proc/$pid/environ; head -c 1 /proc/$pid/mem; ls /proc/$pid/fd; done 2>&1; id -u; echo done"
    );
    let action = json!({"action": {"action": "run", "args": {"command": look}}}).to_string();
    let (status, body) = server.request("POST", "/execute_action", "X-Session-API-Key: s3cret\r\n", &action);
    let content = serde_json::from_str::<Value>(&body).unwrap_or_default()["content"].to_string();
    assert!(status == 200 && content.contains("done") && !content.contains("s3cret"), "{status} {body}");
    assert_eq!(content.matches("Permission denied").count(), 6, "{content}");
}

/// The shell, a process without a session, and a kernel.
fn holds_no_key(server: &Server, find: &str) {
    let header = "X-Session-API-Key: s3cret\r\n";
    for (kind, args) in [
        ("run", json!({"command": find})),
        ("run", json!({"command": find, "is_static": true})),
        ("run_ipython", json!({"code": "import os\nprint([name for name in os.environ if 'KEY' in name], 'done')"})),
    ] {
        let action = json!({"action": {"action": kind, "args": args}}).to_string();
        let (status, body) = server.request("POST", "/execute_action", header, &action);
        let content = serde_json::from_str::<Value>(&body).unwrap_or_default()["content"].to_string();
        assert!(status == 200 && content.contains("done") && !content.contains("s3cret"), "{kind} {status} {body}");
        let is_empty = content.contains("0\\n") || content.contains("0\\r\\n") || content.contains("[] done");
        assert!(is_empty, "{kind} {content}");
    }
}

#[test]
fn a_port_in_use_is_told_with_its_number() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(&["serve", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("cannot listen on 127.0.0.1:{port}")), "{}", text(&output.stderr));
}

#[test]
fn doctor_finds_the_shell_usable() {
    let output = run(&["doctor", "--json"]);
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdict = |name: &str| {
        let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
        found.map_or(Value::Null, |check| check["verdict"].clone())
    };
    assert_eq!(verdict("process guard"), "ok");
    assert!(["ok", "warning"].contains(&verdict("shell").as_str().unwrap()));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn completions_and_version_are_printed() {
    assert!(text(&run(&["completions", "bash"]).stdout).contains("_gloveport"));
    assert_eq!(text(&run(&["--version"]).stdout), concat!("gloveport ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn whoever_has_read_enough_is_no_failure_that_is_told() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("long"), "line\n".repeat(100_000)).unwrap();
    for words in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["completions", "bash"],
        &["config", "show"],
        &["provider", "matrix"],
        &["view", "--raw", "long"],
        &["cp", "long", "-"],
        &["cp", ".", "-"],
        &["--help"],
        &["run", "seq 100000"],
        &["run", "--json", "seq 1000"],
    ] {
        let mut command = gloveport(home.path());
        command.current_dir(home.path()).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 141)), "{words:?} {}", output.status);
        let told = text(&output.stderr);
        assert!(!told.contains("panicked") && !told.contains("standard output"), "{words:?} {told}");
    }
}

#[test]
fn errors_say_what_is_wrong_in_the_words_of_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("short"), "1\n2\n3\n").unwrap();
    for (words, code, said) in [
        (&["view", "-n", "10:20", "short"][..], 1, "there is no line 10: the file ends with line 3"),
        (&["edit", "replace", "short", "--old", "zz", "--new", "y"], 1, "does not contain the text `zz`"),
        (&["edit", "insert", "short", "--line", "9", "--text", "y"], 1, "there is no line 9"),
        (&["view", "missing"], 1, "missing does not exist"),
        (&["run", ""], 125, "the command is empty"),
        (&["run", "--url", "http://127.0.0.1:1", " "], 125, "the command is empty"),
        (&["replay", "/dev/null"], 1, "/dev/null is not a regular file"),
        (&["replay", "."], 1, ". is a directory"),
        (&["session", "start", "--memory", "10k"], 2, "at least 6m"),
        (&["session", "start", "--runtime", "nope"], 1, "no program gloveport-provider-nope in PATH"),
        (&["session", "start", "--runtime", "exec:"], 1, "names no program; write exec:/path/to/program"),
        (&["session", "start", "--plugin", "nope"], 1, "gloveport: making the sandbox, "),
        (&["ls", "missing"], 1, "missing does not exist\n"),
        (
            &["ls", "--url", "http://127.0.0.1:1"],
            1,
            "no server answers at http://127.0.0.1:1/; is it running?: Connection refused",
        ),
        (&["run", "--url", "http://no-such-host.invalid", "true"], 125, "is it running?: there is no host"),
        (&["plugin", "check", "nope"], 1, "there is no plugin `nope`; `gloveport plugin ls` lists"),
        (&["edit", "insert", "short", "--line", "-1", "--text", "x"], 2, "-1 is not in 0.."),
        (&["view", "short", "-n", "-1"], 2, "lines are counted from 1"),
        (&["run", "--timeout", "-1", "true"], 2, "it must be a time such as"),
        (&["edit", "replace", "short", "--old", "1", "--new", "1"], 1, "the new text is the old one"),
        (&["edit", "create", "short", "--text", "x"], 1, "short exists already"),
        (&["edit", "create", "no/x", "--text", "x"], 1, "cannot write "),
        (
            &["image", "tag", "--base-image", "a", "--binary", "short"],
            1,
            "short cannot go into the image: it is not a Linux program",
        ),
        (&["cp", ".", "inside"], 1, "inside is inside of ., so the copy would never end"),
    ] {
        let output = gloveport(home.path()).current_dir(home.path()).args(words).output().unwrap();
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(code) && told.contains(said), "{words:?} {} {told}", output.status);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let told = text(&run(&["serve", "--no-key", "--port", &port]).stderr);
    assert!(told.contains("something else uses the port; --port 0 takes a free one"), "{told}");
}

/// Standard output of a command that must succeed, with this home.
fn ran_at(home: &Path, words: &[&str]) -> String {
    let output = gloveport(home).env_remove("XDG_STATE_HOME").current_dir(home).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?} {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn lists_make_nothing_and_a_file_that_is_not_there_is_no_file_with_defaults() {
    let home = tempfile::tempdir().unwrap();
    let ran = |words: &[&str]| ran_at(home.path(), words);
    for words in [&["session", "ls", "--all"][..], &["session", "ls"], &["config", "show"]] {
        ran(words);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "{words:?}");
    }
    let shown = ran(&["config", "show", "--config-file", "nowhere"]);
    assert!(shown.ends_with("there is no file nowhere, so it sets nothing\n"), "{shown}");
}

#[test]
fn commands_have_the_names_that_fingers_type() {
    let home = tempfile::tempdir().unwrap();
    let ran = |words: &[&str]| ran_at(home.path(), words);
    std::fs::create_dir(home.path().join("tree")).unwrap();
    ran(&["cp", "-r", "tree", "copy"]);
    assert!(home.path().join("copy").is_dir());
    assert_eq!(ran(&["session", "create", "--id", "named", "-p", "web"]), "named\n");
    assert_eq!(ran(&["session", "list", "-q"]), "named\n");
    ran(&["session", "cp", "-r", "tree", "named:tree"]);
    assert_eq!(ran(&["session", "delete", "-f", "named"]), "named\n");
    ran(&["provider", "list"]);
    ran(&["plugin", "list"]);
}

#[test]
fn times_are_written_alike_in_all_commands() {
    for words in [
        &["run", "--timeout", "1m30s", "true"][..],
        &["run", "--timeout", "2.5", "true"],
        &["conformance", "--list", "--limit", "90s"],
    ] {
        assert_eq!(run(words).status.code(), Some(0), "{words:?}");
    }
    for words in [
        &["run", "--timeout", "1x", "true"][..],
        &["ipython", "--timeout", "1x", "1"],
        &["session", "exec", "--timeout", "1x", "id", "true"],
        &["conformance", "--list", "--limit", "1x"],
        &["provider", "conformance", "local", "--limit", "1x"],
        &["image", "build", "--timeout", "1x"],
    ] {
        let output = run(words);
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("such as 2.5, 90s, 15m"), "{words:?} {told}");
    }
}
