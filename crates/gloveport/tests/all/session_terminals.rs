//! Terminals of sessions, by a person at a real terminal.

use std::fs;

use crate::sessions::{Home, person::Person};
use crate::support::{gloveport, text};

#[tokio::test]
async fn a_terminal_of_a_session_goes_on_when_it_is_left_and_shows_what_came_meanwhile() {
    let home = Home::new();
    home.start("term");
    let mut first = Person::calls(&home, &["session", "attach", "term"]);
    // What is echoed before the shell is there comes from our own terminal.
    first.types("PS1='re''ady> '\r").await;
    first.sees("ready> ").await;
    first.types("x=4; while ! test -e go; do sleep 0.01; done; echo came $((x*10)) meanwhile; stty size\r").await;
    first.sees("stty size").await;
    first.types("\x10\x11").await;
    first.sees("gloveport session attach --runtime local term --terminal main").await;
    first.sees("code 0").await;
    home.exec("term", "touch go");
    let mut second = Person::calls(&home, &["session", "attach", "te"]);
    second.sees("came 40 meanwhile\r\n30 90").await;
    second.types("exit $((x + 3))\r").await;
    second.sees("code 7").await;
}

#[tokio::test]
async fn that_somebody_was_attached_to_a_terminal_is_in_the_history_and_not_what_was_typed() {
    let home = Home::new();
    home.start("kept");
    let mut person = Person::calls(&home, &["session", "attach", "--terminal", "own", "kept"]);
    person.types("PS1='re''ady> '\r").await;
    person.sees("ready> ").await;
    person.types("\x10\x11").await;
    person.sees("code 0").await;
    let mut person = Person::calls(&home, &["session", "attach", "--terminal", "own", "kept"]);
    person.sees("ready> ").await;
    person.types("exit 7\r").await;
    person.sees("code 7").await;
    let mut person = Person::calls(&home, &["session", "attach", "--no-history", "kept"]);
    person.types("exit 5\r").await;
    person.sees("code 5").await;
    assert_eq!(home.failed(&["attach", "--terminal", "no/name", "kept"]).0, 125);

    let events = home.events("kept");
    assert_eq!(events.len(), 6);
    for (at, code, said) in
        [(0, -1, "the user left it, and it goes on"), (2, 7, "its program completed with exit code 7")]
    {
        let (action, observation) = (&events[at], &events[at + 1]);
        assert_eq!((&action["action"], &action["source"]), (&"run".into(), &"user".into()));
        assert_eq!(action["args"]["command"], "# attached to the terminal own");
        assert_eq!((&observation["cause"], &observation["content"]), (&action["id"], &"".into()));
        assert_eq!(observation["extras"]["metadata"]["exit_code"], code);
        let suffix = observation["extras"]["metadata"]["suffix"].as_str().unwrap();
        assert!(suffix.contains("attached to the terminal `own`") && suffix.contains(said), "{suffix}");
        // From when to when.
        let times = (action["timestamp"].as_str().unwrap(), observation["timestamp"].as_str().unwrap());
        assert!(times.0 < times.1, "{times:?}");
    }
    assert!(events[5]["extras"]["metadata"]["suffix"].as_str().unwrap().contains("is not known"), "{}", events[5]);
    assert!(!events.iter().any(|event| event.to_string().contains("ready")), "{events:?}");
}

#[tokio::test]
async fn attaching_is_asked_about_where_every_command_is() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[security]\nconfirmation_mode = true\n").unwrap();
    home.start("asked");
    let mut person = Person::calls(&home, &["session", "attach", "asked"]);
    person.sees("gloveport: attaching to this terminal needs your confirmation").await;
    person.sees("    main\r\n").await;
    person.sees("Go on? [y/N] ").await;
    person.types("n\r").await;
    person.sees("code 77").await;
    let mut person = Person::calls(&home, &["session", "attach", "--deny", "asked"]);
    person.sees("gloveport: not done: it was refused").await;
    person.sees("code 77").await;
    let mut person = Person::calls(&home, &["session", "attach", "--yes", "asked"]);
    person.types("exit 4\r").await;
    person.sees("code 4").await;
    let events = home.events("asked");
    let states: Vec<_> = events.iter().filter_map(|event| event["args"]["confirmation_state"].as_str()).collect();
    let (waits, rejected) = ("awaiting_confirmation", "rejected");
    assert_eq!(states, [waits, rejected, waits, rejected, waits, "confirmed"]);
    assert_eq!(events.last().unwrap()["extras"]["metadata"]["exit_code"], 4);
    // The rules know of nothing that is wrong with it.
    let rules = "[security]\nconfirmation_mode = true\nsecurity_analyzer = \"rules\"\n";
    fs::write(home.path().join("config.toml"), rules).unwrap();
    let mut person = Person::calls(&home, &["session", "attach", "--terminal", "other", "asked"]);
    person.types("exit 3\r").await;
    person.sees("code 3").await;
}

#[tokio::test]
async fn exec_with_a_terminal_runs_a_program_on_it_and_ends_with_its_exit_code() {
    let home = Home::new();
    home.start("it");
    let mut person = Person::calls(
        &home,
        &["session", "exec", "-it", "--env", "A=b", "it", "--", "test -t 0; read -r x; echo \"$A $x\"; exit 5"],
    );
    person.types("typed\r").await;
    person.sees("b typed\r\n").await;
    person.sees("code 5").await;
    // What goes through a terminal is in no history; that it was there is.
    let events = home.events("it");
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["args"]["command"], "test -t 0; read -r x; echo \"$A $x\"; exit 5");
    assert_eq!((&events[1]["cause"], &events[1]["content"]), (&0.into(), &"".into()));
    assert_eq!(events[1]["extras"]["metadata"]["exit_code"], 5);
}

#[tokio::test]
async fn run_gives_a_terminal_in_a_sandbox_of_its_own() {
    let home = Home::new();
    let mut person = Person::calls(
        &home,
        &["run", "--runtime", "local", "-it", "--env", "A=b", "test -t 0; read -r x; echo \"$A $x\"; exit 5"],
    );
    person.types("typed\r").await;
    person.sees("b typed\r\n").await;
    person.sees("code 5").await;
    assert!(home.left().is_empty());
}

#[test]
fn terminals_of_paused_and_missing_sessions_are_refused_with_125() {
    let home = Home::new();
    home.start("p");
    home.ok(&["pause", "p"]);
    for words in [&["attach", "p"][..], &["exec", "-it", "p"]] {
        let (code, error) = home.failed(words);
        assert!(code == 125 && error.contains("is paused; resume it"), "{error}");
    }
    assert_eq!(home.failed(&["attach", "nobody"]).0, 125);
    let confined = gloveport(home.path()).args(["run", "--runtime", "cli", "-t", "true"]).output().unwrap();
    assert_eq!(confined.status.code(), Some(125));
    assert!(text(&confined.stderr).contains("the runtime `cli` has no terminals"), "{}", text(&confined.stderr));
    assert_eq!(home.failed(&["exec", "-t", "--json", "p", "true"]).0, 2);
    assert_eq!(home.failed(&["attach", "--detach-keys", "nonsense", "p"]).0, 2);
}
