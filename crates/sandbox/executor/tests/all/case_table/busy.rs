//! The table of 3.5 (actions while a command runs), the keys of 5.2, input (5.3), and the order of the limits (3.1).

use crate::case_table::support::{
    Lab, Varied as _, at_the_same_time, blocks, input, no_change, refused, run, timed_out,
};

#[tokio::test]
async fn every_later_action_gives_what_the_table_of_the_busy_state_says() {
    at_the_same_time(blocks![
        an_empty_action_fetches_new_output_and_then_the_end,
        an_empty_action_completes_at_once_when_the_command_has_finished,
        input_is_typed_into_the_running_command,
        input_for_a_finished_command_is_executed,
        a_command_is_refused_while_another_runs_and_leaves_it_alone,
        a_command_after_a_finished_one_shows_the_unread_output_too,
        a_key_is_sent_as_input_and_refused_as_a_command,
        keys_at_an_idle_prompt_reach_the_shell,
        hidden_is_copied_at_the_end_and_in_a_refusal_only,
    ])
    .await;
}

async fn an_empty_action_fetches_new_output_and_then_the_end() {
    let lab = Lab::new().await;
    let command = "for i in 1 2; do echo $i; read; done; echo end; (exit 4)";
    lab.check("3.5", run(command).timeout(0.3), timed_out(command, "1", "0.3")).await;
    lab.check("3.5, nothing new", run("").timeout(0.3), timed_out("", "", "0.3").continued()).await;
    lab.check("3.5", input("x").timeout(0.3), timed_out("x", "2", "0.3").continued()).await;
    lab.check("3.5", input("x"), lab.done("x", "end", 4)).await;
    lab.close().await;
}

async fn an_empty_action_completes_at_once_when_the_command_has_finished() {
    let lab = Lab::new().await;
    let command = "echo one; sleep 1; echo two; (exit 5)";
    lab.check("3.5", run(command).timeout(0.3), timed_out(command, "one", "0.3")).await;
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    lab.check("3.5, remaining output and the real exit code", "", lab.done("", "two", 5)).await;
    lab.check("3.5, and only once", "", crate::case_table::support::nothing_to_fetch()).await;
    lab.close().await;
}

async fn input_is_typed_into_the_running_command() {
    let lab = Lab::new().await;
    let command = "while read -r line; do echo \"got [$line]\"; done";
    lab.check("3.5", run(command).timeout(0.3), timed_out(command, "", "0.3")).await;
    // Stripped, and not escaped.
    let text = r#"  a; b \; "c" $HOME  "#;
    let expected = timed_out(text.trim(), r#"got [a; b \; "c" $HOME]"#, "0.3").continued();
    lab.check("5.3", input(text).timeout(0.3), expected).await;
    lab.check("5.2, ends the input", input("C-d"), lab.done_by_key("C-d", "", 0)).await;
    lab.close().await;
}

async fn input_for_a_finished_command_is_executed() {
    let lab = Lab::new().await;
    lab.check("3.5", run("sleep 0.5").timeout(0.1), timed_out("sleep 0.5", "", "0.1")).await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    lab.check("3.5", input("echo typed"), lab.done("echo typed", "typed", 0)).await;
    lab.close().await;
}

async fn a_command_is_refused_while_another_runs_and_leaves_it_alone() {
    let lab = Lab::new().await;
    let command = "echo shown; read line; echo \"got [$line]\"";
    lab.check("3.5", run(command).timeout(0.3), timed_out(command, "shown", "0.3")).await;
    lab.check("3.5", "  echo no  ", refused("echo no", "").continued()).await;
    lab.check("3.5, nothing was typed", input("yes"), lab.done("yes", "got [yes]", 0)).await;
    lab.close().await;
}

/// The reference puts blank lines and the echo of the new command in between; here there is only output.
async fn a_command_after_a_finished_one_shows_the_unread_output_too() {
    let lab = Lab::new().await;
    let command = "for i in 1 2 3; do echo n$i; sleep 0.4; done";
    lab.check("3.5", run(command).timeout(0.2), timed_out(command, "n1", "0.2")).await;
    tokio::time::sleep(std::time::Duration::from_millis(1600)).await;
    lab.check("3.5", "echo next; (exit 6)", lab.done("echo next; (exit 6)", "n2\nn3\nnext", 6)).await;
    lab.check("3.5, nothing is left", "true", lab.done("true", "", 0)).await;
    lab.close().await;
}

async fn a_key_is_sent_as_input_and_refused_as_a_command() {
    let lab = Lab::new().await;
    lab.check("3.5", run("sleep 100").timeout(0.2), timed_out("sleep 100", "", "0.2")).await;
    lab.check("3.5", "C-c", refused("C-c", "").continued()).await;
    lab.check("3.5", input("C-C"), lab.done_by_key("C-C", "^C", 130)).await;
    lab.prepare("ulimit -c 0").await;
    lab.check("5.2", run("sleep 100").timeout(0.2), timed_out("sleep 100", "", "0.2")).await;
    let quit = lab.done_by_key("C-\\", "^\\Quit", 131);
    lab.check("5.2", input("C-\\"), quit).await;
    lab.close().await;
}

async fn keys_at_an_idle_prompt_reach_the_shell() {
    let lab = Lab::new().await;
    lab.check("3.5", "C-c", lab.done_by_key("C-c", "^C", 130)).await;
    // These edit a line at a prompt; the line is empty.
    lab.check("5.2", "C-l", lab.done_by_key("C-l", "", 130)).await;
    lab.check("5.2", "C-z", lab.done_by_key("C-z", "", 130)).await;
    lab.check("5.2, they are no part of the next command", "echo ok", lab.done("echo ok", "ok", 0)).await;
    lab.close().await;
}

async fn hidden_is_copied_at_the_end_and_in_a_refusal_only() {
    let lab = Lab::new().await;
    let command = "echo a; read; echo b";
    lab.check("3.4", run(command).hidden().timeout(0.2), timed_out(command, "a", "0.2")).await;
    let mut expected = refused("x", "").continued();
    expected.hidden = true;
    lab.check("3.1, step 5", run("x").hidden(), expected).await;
    let mut expected = lab.done("y", "b", 0);
    expected.hidden = true;
    lab.check("3.2", input("y").hidden(), expected).await;
    lab.close().await;
}

#[tokio::test]
async fn the_limits_are_tested_in_order_and_the_end_of_the_command_wins() {
    at_the_same_time(blocks![
        the_soft_limit_wins_over_an_equal_hard_limit,
        the_hard_limit_alone_ends_a_blocking_wait,
        a_limit_of_zero_is_none,
        output_restarts_the_soft_limit,
        the_hard_limit_is_rendered_as_python_renders_floats,
        a_negative_limit_is_an_error,
    ])
    .await;
}

async fn the_soft_limit_wins_over_an_equal_hard_limit() {
    let lab = Lab::with_no_change(1).await;
    lab.check("3.1, step 7", run("sleep 3").timeout(1.0), no_change("sleep 3", "", 1)).await;
    lab.check("3.1, completion", run("").timeout(5.0).blocking(), lab.done("", "", 0)).await;
    lab.close().await;
}

async fn the_hard_limit_alone_ends_a_blocking_wait() {
    let lab = Lab::with_no_change(1).await;
    lab.check("3.1, step 7", run("cat").timeout(2.0).blocking(), timed_out("cat", "", "2.0")).await;
    lab.close().await;
}

async fn a_limit_of_zero_is_none() {
    let lab = Lab::with_no_change(2).await;
    lab.check("3.1", run("sleep 1").timeout(0.0), lab.done("sleep 1", "", 0)).await;
    lab.close().await;
}

async fn output_restarts_the_soft_limit() {
    let lab = Lab::with_no_change(1).await;
    let command = "for i in 1 2 3 4; do sleep 0.6; echo $i; done";
    lab.check("3.1", command, lab.done(command, "1\n2\n3\n4", 0)).await;
    lab.close().await;
}

async fn the_hard_limit_is_rendered_as_python_renders_floats() {
    let lab = Lab::new().await;
    lab.check("§1", run("cat").timeout(0.25), timed_out("cat", "", "0.25")).await;
    lab.check("§1", run("").timeout(1.0), timed_out("", "", "1.0").continued()).await;
    lab.close().await;
}

async fn a_negative_limit_is_an_error() {
    let lab = Lab::new().await;
    let content = "timeout must not be negative, and is -1.0";
    let expected = gloveport_protocol::Observation::Error(gloveport_protocol::ErrorObservation::new(content));
    lab.check("§7", run("echo no").timeout(-1.0), expected).await;
    lab.check("nothing was executed", "", crate::case_table::support::nothing_to_fetch()).await;
    lab.close().await;
}
