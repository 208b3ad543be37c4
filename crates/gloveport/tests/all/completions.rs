//! What a shell offers when somebody presses Tab.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use crate::sessions::{Home, person::Person};
use crate::support::{LIMIT, run, text, with_home};
use rustix::fs::Mode;

/// What a name must not do.
const HOSTILE: &str = "$(touch obeyed)";

/// A home whose `bin` has our binary and two providers, one of them with a hostile name.
fn home() -> Home {
    let home = Home::new();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_gloveport"), bin.join("gloveport")).unwrap();
    for name in ["house", HOSTILE] {
        let program = bin.join(format!("gloveport-provider-{name}"));
        fs::write(&program, "#!/bin/sh\ntouch \"$HOME/obeyed\"\nexec sleep 987654\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home
}

/// The folders of programs, ours first.
fn path(home: &Home) -> String {
    format!("{}/bin:{}", home.path().display(), std::env::var("PATH").unwrap())
}

/// A shell in this home that runs a script.
fn shell(home: &Home, words: &[&str]) -> String {
    let mut command = with_home(Command::new(words[0]), home.path());
    command.env_remove("XDG_STATE_HOME").env("PATH", path(home)).env("TERM", "xterm").current_dir(home.path());
    let output = command.args(&words[1..]).output().unwrap();
    assert_eq!(text(&output.stderr), "", "{words:?}");
    text(&output.stdout)
}

/// What is offered at the end of each of these lines, as bash asks for it.
fn offered(home: &Home, line: &str) -> Vec<String> {
    let mut command = with_home(Command::new(env!("CARGO_BIN_EXE_gloveport")), home.path());
    command.env_remove("XDG_STATE_HOME").env("PATH", path(home)).current_dir(home.path());
    let output = command.args(["completions", "bash", "--line", line]).output().unwrap();
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)), "{line}");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn is_installed(program: &str) -> bool {
    let installed = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !installed {
        drop(writeln!(std::io::stderr(), "skipped: {program} is not installed"));
    }
    installed
}

#[tokio::test]
async fn bash_completes_sessions_runtimes_and_plugins_and_obeys_no_name() {
    let home = home();
    home.start("my-session");
    fs::write(home.path().join(format!("hostile{HOSTILE};touch obeyed")), "its content\n").unwrap();
    let path = path(&home);
    let interactive = ["-c", "exec bash --norc --noprofile -i"];
    let mut person = Person::at(&home, "/bin/sh", &interactive, &[("PATH", path.as_str()), ("PS1", "> ")]);
    person.types("source <(gloveport completions bash); echo re''ady\r").await;
    person.sees("ready").await;
    for (typed, completed) in [
        ("session exec my\t", "session exec my-session "),
        ("session exec \"my\t", "session exec \"my-session\" "),
        ("session cp my\t", "session cp my-session:"),
        ("session start --runtime=lo\t", "--runtime=local "),
        ("run --runtime ho\t", "--runtime house "),
        ("serve --plugin ju\t", "--plugin jupyter "),
        ("sess\t", "session "),
        ("image build --buildkit alw\t", "--buildkit always "),
    ] {
        person.types(&format!("gloveport {typed}")).await;
        person.sees(completed).await;
        // C-u clears the line.
        person.types("\u{15}").await;
    }
    // The name of a file is quoted by the shell, so that the command is about the file.
    person.types("gloveport view --raw host\t").await;
    person.sees("obeyed").await;
    person.types("\r").await;
    person.sees("its content").await;
    person.types("exit\r").await;
    assert!(!home.path().join("obeyed").exists());
}

#[test]
fn zsh_and_fish_complete_sessions_and_runtimes() {
    let home = home();
    home.start("my-session");
    if is_installed("fish") {
        let ask = |line: &str| {
            shell(
                &home,
                &["fish", "--no-config", "-c", &format!("gloveport completions fish | source; complete -C '{line}'")],
            )
        };
        assert_eq!(ask("gloveport session exec "), "my-session\tsession of the runtime local\n");
        assert_eq!(ask("gloveport run --runtime h"), "house\n");
        assert!(ask("gloveport sess").starts_with("session\tStart, use and end sessions: "));
        assert_eq!(ask("gloveport ls bi"), "bin/\n");
    }
    if is_installed("zsh") {
        let script = "autoload -U compinit; compinit -u -D; source <(gloveport completions zsh)
            compadd() { builtin print -r -- ${(P)@[-1]} }
            ask() { words=(\"$@\"); CURRENT=$#words; PREFIX=$words[-1]; _gloveport; }
            ask gloveport session exec my
            ask gloveport run --runtime ''
            ask gloveport session '--runtime=lo'";
        assert_eq!(
            shell(&home, &["zsh", "-f", "-c", script]),
            "my-session\ncli daytona docker e2b exec: house kubernetes local modal remote runloop\n--runtime=local\n"
        );
    }
    assert!(!home.path().join("obeyed").exists());
}

#[test]
fn completions_offer_what_is_for_people() {
    let home = home();
    let commands = offered(&home, "gloveport ");
    assert!(commands.contains(&"session".to_owned()) && commands.contains(&"doctor".to_owned()), "{commands:?}");
    let scripts: String = ["bash", "zsh", "fish", "elvish", "powershell"]
        .map(|shell| text(&run(&["completions", shell]).stdout))
        .concat();
    for hidden in [
        "sandbox-server",
        "owners-work",
        "sandbox-keeper",
        "container-server",
        "container-health",
        "container-install",
        "relayed-server",
        "relayed-call",
        "gate",
    ] {
        assert!(!commands.contains(&hidden.to_owned()), "{commands:?}");
        assert!(!scripts.contains(&format!("{hidden} ")) && !scripts.contains(&format!("'{hidden}'")), "{hidden}");
    }
    assert!(scripts.contains("doctor"), "{scripts}");
    assert_eq!(offered(&home, "gloveport completions --"), ["words", "--help"]);
}

#[test]
fn sessions_are_offered_where_they_can_be_meant() {
    let home = home();
    home.start("lives");
    home.start("ended");
    home.ok(&["exec", "ended", "--", "true"]);
    home.ok(&["stop", "ended"]);
    for (line, expected) in [
        ("gloveport session exec ", &["words", "lives"][..]),
        ("gloveport session exec e", &["words"]),
        ("gloveport session events ", &["words", "ended", "lives"]),
        ("gloveport session rm -f lives ", &["words", "ended"]),
        ("gloveport session --runtime docker stop l", &["words"]),
        ("gloveport session interrupt lives x", &["words"]),
        ("gloveport session cp ", &["open", "lives:"]),
        ("gloveport session cp lives:a ", &["open", "lives:"]),
        ("gloveport session cp lives:", &["words"]),
        ("gloveport session cp ./l", &["files"]),
        ("gloveport session exec lives -- ls -", &["words"]),
        ("gloveport session exec lives ls --", &["words"]),
        ("gloveport session start --id ", &["words"]),
        ("gloveport session edit ", &["words", "lives"]),
        ("gloveport session edit lives rep", &["words", "replace"]),
        ("gloveport session edit lives replace --ol", &["words", "--old"]),
        ("gloveport session view lives f", &["words"]),
        ("gloveport session exec lives > ", &["files"]),
        ("gloveport session exec --cwd ", &["directories"]),
    ] {
        assert_eq!(offered(&home, line), expected, "{line}");
    }
    home.ok(&["rm", "-f", "lives", "ended"]);
}

#[test]
fn completions_start_nothing_tell_nothing_and_wait_for_nothing() {
    let home = home();
    for line in
        ["gloveport session exec ", "gloveport run --runtime ", "gloveport session cp ", "gloveport plugin check "]
    {
        offered(&home, line);
    }
    assert!(!home.path().join("obeyed").exists(), "a provider was started");
    let mut left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bin"], "something was made");

    // A file whose end never comes.
    let sandbox = home.state().join("sandboxes/stuck");
    fs::create_dir_all(&sandbox).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        sandbox.join("sandbox.json"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let began = Instant::now();
    assert_eq!(offered(&home, "gloveport session exec "), ["words"]);
    assert!(began.elapsed() < LIMIT);
    fs::remove_dir_all(home.state()).unwrap();

    fs::write(home.path().join("config.toml"), "[core\n").unwrap();
    assert_eq!(offered(&home, "gloveport session exec \"x").first().unwrap(), "words");
    fs::remove_file(home.path().join("config.toml")).unwrap();
    without_home("gloveport session exec ");
}

/// There is no home, and no folder of programs.
#[track_caller]
fn without_home(line: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gloveport"));
    command.env_clear().current_dir(Path::new("/")).args(["completions", "bash", "--line", line]);
    let output = command.output().unwrap();
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)));
}
