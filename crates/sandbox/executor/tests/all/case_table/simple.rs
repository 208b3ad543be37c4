//! Rows 1 to 9, 21 to 32, 41 to 43, 79, 80 and 82: one line, no waiting.

use gloveport_executor::account::Account;
use gloveport_protocol::{CommandMetadata, Observation, RunObservation};

use crate::case_table::support::{Lab, Varied as _, input, nothing_to_fetch, nothing_to_type, run, several};

#[tokio::test]
async fn rows_1_to_5_a_fresh_session_has_nothing_to_fetch_and_nothing_to_type_into() {
    let lab = Lab::new().await;
    lab.check("2", "", nothing_to_fetch()).await;
    lab.check("3", input("x"), nothing_to_type()).await;
    lab.check("4", input("C-c"), nothing_to_type()).await;
    lab.check("5", "   ", nothing_to_fetch()).await;
    // The state is unchanged.
    let work = lab.work.display().to_string();
    lab.check("1", "pwd", lab.done("pwd", &work, 0)).await;
    lab.check("2, after a command", "", nothing_to_fetch()).await;
    lab.close().await;
}

#[tokio::test]
async fn one_line_commands_give_their_output_and_exit_code() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("6", "echo 'hello world'", "hello world", 0),
        ("7", "nonexistent_command", "bash: nonexistent_command: command not found", 127),
        ("8", r#"echo "first" && echo "second" && echo "third""#, "first\nsecond\nthird", 0),
        ("9", "echo a; echo b", "a\nb", 0),
        ("22", "(exit 5)", "", 5),
        ("23", "f() { return 3; }; f", "", 3),
        ("24", "cd /nonexist", "bash: cd: /nonexist: No such file or directory", 1),
        ("29", "export A=1; echo $A", "1", 0),
        ("29, later", "echo $A; env | grep ^A=", "1\nA=1", 0),
        ("30", "x=5", "", 0),
        ("30", "echo $x", "5", 0),
        ("31", "(exit 3)", "", 3),
        ("31", "echo $?", "3", 0),
        ("32", r#"printf "no newline""#, "no newline", 0),
        ("41", "echo err >&2", "err", 0),
        ("42", "echo -n", "", 0),
        ("79", "C-ab", "bash: C-ab: command not found", 127),
        ("80", "alias git", "alias git='git --no-pager'", 0),
        ("82", "true && false", "", 1),
    ])
    .await;
    lab.close().await;
}

#[tokio::test]
async fn row_21_a_failing_command_is_no_success() {
    let lab = Lab::new().await;
    let seen = lab.output("false").await;
    assert!(!seen.success());
    assert_eq!(seen, lab.done("false", "", 1));
    assert!(lab.output("true").await.success());
    lab.close().await;
}

#[tokio::test]
async fn rows_25_to_27_the_working_directory_persists_and_is_reported() {
    let lab = Lab::new().await;
    lab.prepare("mkdir -p test/random").await;
    let outer = lab.work.join("test");
    let inner = outer.join("random");
    let text = |path: &std::path::Path| path.display().to_string();
    lab.check("25", "cd test", lab.done("cd test", "", 0).in_directory(&outer)).await;
    lab.check("25", "pwd", lab.done("pwd", &text(&outer), 0).in_directory(&outer)).await;
    let command = "cd random && pwd";
    lab.check("26", command, lab.done(command, &text(&inner), 0).in_directory(&inner)).await;
    lab.check("27", "cd -", lab.done("cd -", &text(&outer), 0).in_directory(&outer)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_directory_reached_through_a_link_keeps_the_name_of_the_link() {
    let lab = Lab::new().await;
    lab.prepare("mkdir target; ln -s target link").await;
    let link = lab.work.join("link");
    let command = "cd link && pwd";
    let expected = lab.done(command, &link.display().to_string(), 0).in_directory(&link);
    lab.check("§2, working_dir", command, expected).await;
    lab.close().await;
}

#[tokio::test]
async fn row_28_the_home_directory_is_that_of_the_user() {
    let lab = Lab::new().await;
    let home = lab.home.path();
    let command = "cd ~ && pwd";
    lab.check("28", command, lab.done(command, &home.display().to_string(), 0).in_directory(home)).await;
    lab.close().await;
}

/// The half of row 28 that needs no new user. The start-up file of the machine's root is read here, so only what it
/// cannot change is compared.
#[tokio::test]
async fn row_28_the_user_root_is_at_home_in_its_own_directory() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become root");
        return;
    }
    let lab = Lab::start(|options| options.account = Some(Account::new("root", 0, None, None, true, "root"))).await;
    let seen = lab.output("cd ~ && pwd").await;
    let metadata = seen.metadata;
    assert_eq!(
        (seen.content.as_str(), metadata.exit_code, metadata.username.as_deref(), metadata.working_dir.as_deref()),
        ("/root", 0, Some("root"), Some("/root"))
    );
    lab.close().await;
}

#[tokio::test]
async fn row_43_a_background_job_is_announced_and_its_process_id_reported() {
    let lab = Lab::new().await;
    let seen = lab.output("sleep 1 &").await;
    let pid = seen.metadata.pid;
    assert!(pid > 1, "{seen:?}");
    assert_eq!(seen, lab.done("sleep 1 &", &format!("[1] {pid}"), 0).with_background_pid(pid));
    lab.close().await;
}

#[tokio::test]
async fn a_hidden_action_that_fails_gives_an_observation_that_its_caller_can_rebuild() {
    let lab = Lab::new().await;
    let command = "echo a\necho b";
    let Observation::Error(error) = several(&["echo a", "echo b"]) else { panic!("several commands are an error") };
    let expected = RunObservation::new(command, error.content, true, CommandMetadata::default());
    lab.check("§4", run(command).hidden(), expected).await;
    lab.check("the state is unchanged", "", nothing_to_fetch()).await;
    lab.close().await;
}
