//! Rows 54 to 57 and 81: commands that outlive a time limit, and those that wait for input.

use std::time::{Duration, Instant};

use gloveport_terminal::WhenWaiting;

use crate::case_table::support::{Lab, Varied as _, input, no_change, refused, run, timed_out, waiting};

#[tokio::test]
async fn rows_54_to_57_a_silent_command_goes_on_and_others_are_refused() {
    let lab = Lab::with_no_change(2).await;
    let command = "for i in {1..3}; do echo $i; sleep 3; done";
    lab.check("54", command, no_change(command, "1", 2)).await;
    lab.check("55", input(""), no_change("", "2", 2).continued()).await;
    let seen = lab.executor.shell().output().end();
    lab.check("56", "sleep 15", refused("sleep 15", "").continued()).await;
    // The third number comes, and the loop is in its last sleep.
    lab.executor.shell().output().grown_beyond(seen).await;
    lab.check("57", "sleep 15", refused("sleep 15", "3").continued()).await;
    lab.check("57, the loop ends", run("").blocking(), lab.done("", "", 0)).await;
    lab.close().await;
}

/// The times of the ten rounds are shorter than in the test of the reference; they decide nothing.
#[tokio::test]
async fn row_81_ten_rounds_of_questions_limits_and_interrupts_stay_in_step() {
    let lab = Lab::new().await;
    let question = "read -p \"Do you want to continue? [Y/n] \" answer; if [[ $answer == \"Y\" ]]; then echo \
\"Proceeding with operation...\"; echo \"Operation completed successfully!\"; else echo \"Operation cancelled.\"; exit \
1; fi";
    let success = "Proceeding with operation...\nOperation completed successfully!";
    let long = "a".repeat(1500);
    let slow = format!("for i in 1 2 3; do echo {long}$i; sleep 100; done");
    let first = format!("{long}1");
    for _round in 0..10 {
        let asked = timed_out(question, "Do you want to continue? [Y/n]", "0.3");
        lab.check("81", run(question).timeout(0.3), asked).await;
        lab.check("81", input("Y").timeout(5.0), lab.done("Y", success, 0)).await;
        lab.check("81", run(&slow).timeout(0.5), timed_out(&slow, &first, "0.5")).await;
        lab.check("81", "ls", refused("ls", "").continued()).await;
        lab.check("81", input("C-c"), lab.done_by_key("C-c", "^C", 130)).await;
        lab.check("81", "ls", lab.done("ls", "", 0)).await;
    }
    lab.close().await;
}

/// An option that is off on the wire.
#[tokio::test]
async fn a_command_is_answered_as_soon_as_its_program_waits_for_input_where_that_is_wanted() {
    let lab = Lab::start(|options| options.when_waiting = WhenWaiting::Answer).await;
    let mut best = Duration::MAX;
    // A machine that is busy with something else may take longer; with the soft limit alone it is five minutes.
    for _attempt in 0..8 {
        let began = Instant::now();
        lab.check("-", "python3 -q", waiting("python3 -q", ">>>")).await;
        for number in 0..30 {
            let line = format!("print({number} * 2)");
            lab.check("-", input(&line), waiting(&line, &format!("{}\n>>>", number * 2)).continued()).await;
        }
        lab.check("-", input("exit(3)"), lab.done("exit(3)", "", 3)).await;
        best = best.min(began.elapsed());
        if best <= Duration::from_secs(3) {
            break;
        }
    }
    assert!(best <= Duration::from_secs(3), "{best:?}");
    // Whoever reads nothing does not wait for input, and a blocking command asks for its end.
    lab.check("-", "sleep 1; echo a", lab.done("sleep 1; echo a", "a", 0)).await;
    lab.check("-", "sleep 1 | cat", lab.done("sleep 1 | cat", "", 0)).await;
    let question = "read -r -t 1 x";
    lab.check("-", run(question).blocking(), lab.done(question, "", 142)).await;
    // Questions, unfinished commands and a password.
    let question = "read -p 'Name: ' n && echo \"<$n>\"";
    lab.check("-", question, waiting(question, "Name:")).await;
    lab.check("-", "ls", refused("ls", "").continued()).await;
    lab.check("-", input("A B"), lab.done("A B", "<A B>", 0)).await;
    lab.check("-", "cat <<E", waiting("cat <<E", "")).await;
    lab.check("-", input("x"), waiting("x", "").continued()).await;
    lab.check("-", input("E"), lab.done("E", "x", 0)).await;
    // A nested shell takes commands, so it waits for nothing.
    lab.check("-", "bash --norc", lab.done("bash --norc", "", 0)).await;
    lab.check("-", "exit 4", lab.done("exit 4", "exit", 4)).await;
    lab.close().await;
}
