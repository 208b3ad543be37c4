//! Rows 1 to 5, 28 and 43: whole observations of a fresh session.

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
