//! What an agent is told when the shell itself ends, which the reference never recovers from (3.5).

use crate::case_table::support::{Lab, Varied as _};

/// The observation of a command that ended the shell.
fn ended(lab: &Lab, command: &str, content: &str, exit_code: i64, how: &str) -> gloveport_protocol::RunObservation {
    let mut expected = lab.done(command, content, exit_code);
    let note = format!(
        "\n[The shell ended: it {how}. A new shell was started in {}; variables, functions and jobs of the old one are \
         gone.]",
        lab.work.display()
    );
    expected.metadata.suffix.push_str(&note);
    expected
}

#[tokio::test]
async fn a_command_that_ends_the_shell_says_so_and_the_next_one_runs_in_a_new_shell() {
    let lab = Lab::new().await;
    lab.prepare("set -e; lost=1").await;
    for (command, content, exit_code, how) in [
        ("echo a; false", "a", 1, "ended with exit code 1"),
        ("exit", "", 0, "ended with exit code 0"),
        ("echo a; exit 3", "a", 3, "ended with exit code 3"),
        ("exec true", "", 0, "ended with exit code 0"),
        ("kill -9 $$", "", 137, "was killed by signal 9"),
    ] {
        lab.check("3.5", command, ended(&lab, command, content, exit_code, how)).await;
        lab.check("3.5", "echo \"[$lost]\"; pwd", {
            let content = format!("[]\n{}", lab.work.display());
            lab.done("echo \"[$lost]\"; pwd", &content, 0)
        })
        .await;
    }
    lab.close().await;
}

#[tokio::test]
async fn a_shell_that_ended_between_two_commands_is_mentioned_before_the_output_of_the_second() {
    let lab = Lab::new().await;
    let command = "(sleep 0.2; kill -9 $$) & (exit 7)";
    let seen = lab.output(command).await;
    assert_eq!(seen.metadata.exit_code, 7);
    // The status of a shell that has just been started is 0.
    let replaced = async {
        while lab.executor.shell().facts().status != 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), replaced).await.unwrap();
    let prefix = format!(
        "[The shell had ended before this command: it was killed by signal 9. A new shell was started in {}; variables, \
functions and jobs of the old one are gone.]\n",
        lab.work.display()
    );
    lab.check("3.5", "echo next", lab.done("echo next", "next", 0).with_prefix(&prefix)).await;
    lab.check("3.5", "echo again", lab.done("echo again", "again", 0)).await;
    lab.close().await;
}
