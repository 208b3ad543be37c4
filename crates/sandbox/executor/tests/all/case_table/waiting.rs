//! Rows 54 to 66, 68 to 76 and 81: commands that outlive a time limit, and those that wait for input.
//!
//! The blocks mostly wait for time to pass, so they run at the same time.

use std::time::{Duration, Instant};

use gloveport_terminal::WhenWaiting;

use crate::case_table::support::{
    Lab, Varied as _, at_the_same_time, blocks, input, no_change, refused, run, timed_out, waiting,
};

#[tokio::test]
async fn every_block_of_rows_that_waits_gives_what_the_table_says() {
    at_the_same_time(blocks![
        rows_54_to_57,
        rows_58_and_59,
        rows_60_and_61,
        rows_62_to_64,
        row_65,
        row_66,
        row_68,
        row_69,
        row_70,
        row_71,
        row_72,
        row_73,
        row_74,
        row_75,
        row_76,
        row_81,
    ])
    .await;
}

async fn rows_54_to_57() {
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

async fn rows_58_and_59() {
    let lab = Lab::new().await;
    let command = "for i in {1..5}; do echo $i; sleep 3; done";
    lab.check("58", run(command).timeout(2.5).blocking(), timed_out(command, "1", "2.5")).await;
    for number in ["2", "3", "4", "5"] {
        lab.check("58", run("").timeout(2.5), timed_out("", number, "2.5").continued()).await;
    }
    lab.check("59", "", lab.done("", "", 0)).await;
    lab.close().await;
}

async fn rows_60_and_61() {
    let lab = Lab::with_no_change(3).await;
    let command = "read -p 'Enter name: ' name && echo \"Hello $name\"";
    lab.check("60", command, no_change(command, "Enter name:", 3)).await;
    lab.check("61", input("John"), lab.done("John", "Hello John", 0)).await;
    lab.close().await;
}

async fn rows_62_to_64() {
    let lab = Lab::with_no_change(3).await;
    lab.check("62", "cat << EOF", no_change("cat << EOF", "", 3)).await;
    for line in ["line 1", "line 2"] {
        lab.check("63", input(line), no_change(line, "", 3).continued()).await;
    }
    lab.check("64", input("EOF"), lab.done("EOF", "line 1\nline 2", 0)).await;
    lab.close().await;
}

async fn row_65() {
    let lab = Lab::with_no_change(2).await;
    let command = "python3 -c \"name = input('Enter your name: '); age = input('Enter your age: '); print(f'Hello \
{name}, you are {age} years old')\"";
    lab.check("65", command, no_change(command, "Enter your name:", 2)).await;
    lab.check("65", "Alice", refused("Alice", "").continued()).await;
    lab.check("65", input("Alice"), no_change("Alice", "Enter your age:", 2).continued()).await;
    lab.check("65", input("25"), lab.done("25", "Hello Alice, you are 25 years old", 0)).await;
    lab.close().await;
}

async fn row_66() {
    let lab = Lab::with_no_change(2).await;
    let command = "while true; do echo 'looping'; sleep 3; done";
    lab.check("66", command, no_change(command, "looping", 2)).await;
    lab.check("66", input("C-c"), lab.done_by_key("C-c", "^C", 130)).await;
    lab.check("66, completed", "echo next", lab.done("echo next", "next", 0)).await;
    lab.close().await;
}

async fn row_68() {
    let lab = Lab::with_no_change(1).await;
    lab.check("68", "cat", no_change("cat", "", 1)).await;
    lab.check("68", input("hello"), no_change("hello", "hello", 1).continued()).await;
    lab.check("68", input("C-d"), lab.done_by_key("C-d", "", 0)).await;
    lab.close().await;
}

async fn row_69() {
    let lab = Lab::with_no_change(1).await;
    lab.check("69", "sleep 100", no_change("sleep 100", "", 1)).await;
    let stopped = "^Z\n[1]+  Stopped                 sleep 100";
    lab.check("69", input("C-z"), lab.done_by_key("C-z", stopped, 148)).await;
    lab.check("69", "fg", no_change("fg", "sleep 100", 1)).await;
    lab.check("69", input("C-c"), lab.done_by_key("C-c", "^C", 130)).await;
    lab.close().await;
}

async fn row_70() {
    let lab = Lab::new().await;
    lab.check("70", "C-c", lab.done_by_key("C-c", "^C", 130)).await;
    lab.check("70, the exit code is seen", "echo $?", lab.done("echo $?", "130", 0)).await;
    lab.close().await;
}

/// A session whose command has ended while nobody waited for it.
async fn after_a_silent_end() -> Lab {
    let lab = Lab::new().await;
    lab.check("71 to 73", run("sleep 4").timeout(1.0), timed_out("sleep 4", "", "1.0")).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    lab
}

async fn row_71() {
    let lab = after_a_silent_end().await;
    lab.check("71", "echo next", lab.done("echo next", "next", 0)).await;
    lab.close().await;
}

async fn row_72() {
    let lab = after_a_silent_end().await;
    lab.check("72", "", lab.done("", "", 0)).await;
    lab.close().await;
}

async fn row_73() {
    let lab = after_a_silent_end().await;
    lab.check("73", input("text"), lab.done("text", "bash: text: command not found", 127)).await;
    lab.close().await;
}

async fn row_74() {
    let lab = Lab::with_no_change(2).await;
    let command = "sleep 3 && echo done";
    lab.check("74", run(command).timeout(10.0).blocking(), lab.done(command, "done", 0)).await;
    lab.close().await;
}

async fn row_75() {
    let lab = Lab::with_no_change(1).await;
    lab.check("75", "echo \"unclosed", no_change("echo \"unclosed", "", 1)).await;
    lab.check("75", input("x\""), lab.done("x\"", "unclosed\nx", 0)).await;
    lab.close().await;
}

async fn row_76() {
    let lab = Lab::with_no_change(1).await;
    lab.check("76", "echo `unclosed", no_change("echo `unclosed", "", 1)).await;
    lab.check("76", input("C-c"), lab.done_by_key("C-c", "^C", 130)).await;
    lab.check("76, nothing is left over", "echo next", lab.done("echo next", "next", 0)).await;
    lab.close().await;
}

/// The times of the ten rounds are shorter than in the test of the reference; they decide nothing.
async fn row_81() {
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
