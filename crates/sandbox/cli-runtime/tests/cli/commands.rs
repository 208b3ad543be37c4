//! Commands: what is told of them, when they are ended, input for them, and what is left of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::support::{Fixture, as_run, error_of};
use gloveport_protocol::{
    Action, ActionExecutor as _, CommandMetadata, Observation, RunAction, RunObservation, Secret,
};
use gloveport_testing::{is_alive, until};

const HELP: &str = "You may wait longer to see additional output by sending empty command '', send other commands to \
    interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to interrupt/kill the previous command before \
    sending your new command, or use the timeout parameter in execute_bash for future commands.";
const CONTINUED: &str = "[Below is the output of the previous command.]\n";

fn waiting() -> String {
    format!("\n[The command has no new output after 0.3 seconds. {HELP}]")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_command_table_holds() {
    let fixture = Fixture::new();
    let root = fixture.root.display().to_string();
    for (command, exit_code, content) in [
        ("echo hi", 0, "hi\n"),
        ("printf nonl", 0, "nonl"),
        ("printf 'a\\r\\nb\\rc\\n'", 0, "a\nb\nc\n"),
        ("echo -n '  sp  '", 0, "  sp  "),
        ("echo err >&2; exit 3", 3, "err\n"),
        ("kill -9 $$", -9, ""),
        ("kill $$", -15, ""),
        ("echo a\necho b", 0, "a\nb\n"),
        ("", 0, ""),
        ("  ", 0, ""),
        ("pwd", 0, &format!("{root}\n")),
        ("cd /; x=1; f() { :; }; export y=2", 0, ""),
        ("pwd; echo $x$y; type f", 1, &format!("{root}\n\nbash: line 1: type: f: not found\n")),
        ("printf '\\xff\\n'", 0, "\u{fffd}\n"),
        ("C-c", 127, "bash: line 1: C-c: command not found\n"),
        ("exit 300", 44, ""),
        ("(echo late > /dev/stderr) | cat; echo out", 0, "late\nout\n"),
    ] {
        let expected = RunObservation::new(command, content, false, fixture.metadata(exit_code, "", ""));
        assert_eq!(fixture.run(command).await, expected, "{command}");
    }
    let broken = fixture.act(Action::Run(RunAction::new("a\0b"))).await;
    assert_eq!(error_of(&broken), "Error running command \"a\0b\": embedded null byte");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_is_lost_however_fast_or_much_it_is() {
    let fixture = Fixture::new();
    for _ in 0..50 {
        assert_eq!(fixture.run("echo at once").await.content, "at once\n");
    }
    let hidden = RunAction { hidden: true, ..RunAction::new("seq 1 200000") };
    let run = as_run(fixture.act(Action::Run(hidden)).await);
    let expected = (1..=200_000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    assert!(run.hidden && run.content == expected, "{}", run.content.len());
    let run = fixture.run("seq 1 200000").await;
    assert_eq!(run.content, gloveport_protocol::truncate_content(&expected, 30_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_at_the_time_limit_the_whole_group_ends_and_the_output_is_told_to_the_last_byte() {
    let fixture = Fixture::new();
    for (command, seconds, content, suffix) in [
        ("echo x; sleep 100", 0.4, "x\n", "[The command timed out after 0.4 seconds.]"),
        ("printf half; sleep 100", 1.25, "half", "[The command timed out after 1.2 seconds.]"),
        (
            "(trap 'sleep .2; echo bye; exit' TERM; echo up; while :; do sleep .05; done); :",
            0.5,
            "up\nTerminated\nbye\n",
            "[The command timed out after 0.5 seconds.]",
        ),
        (
            "trap '' TERM; echo stubborn; while :; do sleep 1; done",
            0.3,
            "stubborn\n",
            "[The command timed out after 0.3 seconds.]",
        ),
    ] {
        let began = Instant::now();
        let run = as_run(fixture.act_within(Action::Run(RunAction::new(command)), seconds).await);
        assert_eq!(run, RunObservation::new(command, content, false, fixture.metadata(-1, "", suffix)));
        assert!(began.elapsed() < Duration::from_secs(5), "{command}: {:?}", began.elapsed());
    }
    let run = as_run(fixture.act_within(Action::Run(RunAction::new("sleep 1000 & echo $!; sleep 1000")), 0.3).await);
    let pid: u32 = run.content.trim().parse().unwrap();
    until("the end of the background process", || !is_alive(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_asks_gets_its_answers() {
    let fixture = Fixture::new();
    let first = fixture.run("read -p 'Name: ' name; read -p 'Age: ' age; echo \"$name is $age\"; exit 4").await;
    assert_eq!((first.content.as_str(), &first.metadata), ("Name: ", &fixture.metadata(-1, "", &waiting())));
    let second = fixture.input("Ada").await;
    let expected = RunObservation::new("Ada", "Age: ", false, fixture.metadata(-1, CONTINUED, &waiting()));
    assert_eq!(second, expected);
    // Other commands are not held up.
    assert_eq!(fixture.run("echo other").await.content, "other\n");
    let third = fixture.input("36").await;
    let suffix = "\n[The command completed with exit code 4.]";
    assert_eq!(third, RunObservation::new("36", "Ada is 36\n", false, fixture.metadata(4, "", suffix)));
    let nothing = fixture.input("more").await;
    let expected = RunObservation::new(
        "",
        "ERROR: No previous running command to interact with.",
        false,
        CommandMetadata::default(),
    );
    assert_eq!(nothing, expected);
    let nothing = fixture.input("").await;
    assert_eq!(nothing.content, "ERROR: No previous running command to retrieve logs from.");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_interrupt_quit_and_end_the_input() {
    let fixture = Fixture::new();
    for (command, key, exit_code, content) in [
        ("cat; echo end", "C-d", 0, "end\n"),
        ("cat", "C-c", -2, ""),
        ("trap 'echo int; exit 7' INT; read x", "C-c", 7, "int\n"),
        ("trap 'echo quit; exit 8' QUIT; read x", "C-\\", 8, "quit\n"),
        ("python3 -q", "C-d", 0, "\n"),
    ] {
        let first = fixture.run(command).await;
        assert_eq!(first.metadata.exit_code, -1, "{first:?}");
        let last = fixture.input(key).await;
        let name = key.chars().last().unwrap().to_ascii_uppercase();
        let suffix = format!("\n[The command completed with exit code {exit_code}. CTRL+{name} was sent.]");
        let expected = RunObservation::new(key, content, false, fixture.metadata(exit_code, "", &suffix));
        assert_eq!(last, expected, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_goes_to_the_command_that_was_given_back_last_else_to_the_one_that_runs() {
    let fixture = Fixture::new();
    for name in ["one", "two"] {
        let asked = fixture.run(&format!("read x; echo {name} $x; read x; echo {name} $x")).await;
        assert_eq!(asked.metadata.exit_code, -1);
    }
    assert_eq!(fixture.input("1").await.content, "two 1\n");
    assert_eq!(fixture.input("2").await.content, "two 2\n");
    assert_eq!(fixture.input("3").await.content, "one 3\n");
    assert_eq!(fixture.input("4").await.content, "one 4\n");

    let waits = RunAction { blocking: true, ..RunAction::new("read x; echo got $x") };
    let (run, typed) = tokio::join!(fixture.act(Action::Run(waits)), async {
        loop {
            let typed = fixture.input("it").await;
            if typed.content.is_empty() {
                return typed;
            }
            assert_eq!(typed.content, "ERROR: No previous running command to interact with.", "it has not begun");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(as_run(run).content, "got it\n");
    let suffix = "\n[The input was sent to the running command. Its output goes to the action that waits for it.]";
    assert_eq!(typed, RunObservation::new("it", "", false, fixture.metadata(-1, "", suffix)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_command_asks_for_more_of_a_command_that_was_given_back() {
    let fixture = Fixture::new();
    fixture.run("trap 'echo over; exit 5' USR1; (sleep 1; kill -USR1 $$) & read x").await;
    let still = fixture.run("").await;
    assert_eq!(still, RunObservation::new("", "", false, fixture.metadata(-1, CONTINUED, &waiting())));
    let more = Action::Run(RunAction { blocking: true, ..RunAction::new("") });
    let more = as_run(fixture.act(more).await);
    let suffix = "\n[The command completed with exit code 5.]";
    assert_eq!(more, RunObservation::new("", "over\n", false, fixture.metadata(5, "", suffix)));
    assert_eq!(fixture.run("").await, RunObservation::new("", "", false, fixture.metadata(0, "", "")));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_for_a_command_that_has_ended_meanwhile_is_not_sent_and_its_end_is_told() {
    let fixture = Fixture::new();
    fixture.run("trap 'echo $$ > ended; exit 5' USR1; (sleep 1; kill -USR1 $$) & read x").await;
    // It is there for a moment before it has the number.
    let number = || std::fs::read_to_string(fixture.root.join("ended")).unwrap_or_default();
    until("its end", || number().ends_with('\n')).await;
    let pid: u32 = number().trim().parse().unwrap();
    until("its end", || !is_alive(pid)).await;
    let late = fixture.input("rm -rf x").await;
    let suffix = "\n[The command completed with exit code 5. It had ended before, so \"rm -rf x\" was NOT sent.]";
    assert_eq!(late, RunObservation::new("rm -rf x", "", false, fixture.metadata(5, "", suffix)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_command_that_does_not_ask_is_waited_for_and_a_blocking_one_is_never_given_back() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run("sleep 1; echo done").await.content, "done\n");
    let blocking = RunAction { blocking: true, ..RunAction::new("read x") };
    let run = as_run(fixture.act_within(Action::Run(blocking), 1.0).await);
    assert_eq!(run.metadata, fixture.metadata(-1, "", "[The command timed out after 1.0 seconds.]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_brings_no_answer_within_the_limit_leaves_the_command_running() {
    let fixture = Fixture::new();
    fixture.run("read x; sleep 1.5; echo $x").await;
    let input = RunAction { is_input: true, ..RunAction::new("late") };
    let run = as_run(fixture.act_within(Action::Run(input), 0.5).await);
    let suffix = format!("\n[The command timed out after 0.5 seconds. {HELP}]");
    assert_eq!(run, RunObservation::new("late", "", false, fixture.metadata(-1, CONTINUED, &suffix)));
    assert_eq!(fixture.run("").await.content, "late\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_line_of_input_arrives_whole() {
    let fixture = Fixture::new();
    fixture.run("python3 -c 'print(len(input()))'").await;
    assert_eq!(fixture.input(&"x".repeat(20_000)).await.content, "20000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_gets_each_line_and_the_rest_when_the_command_waits_or_ends() {
    let fixture = Fixture::new();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    fixture
        .runtime
        .subscribe_to_shell_stream(Some(Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()))));
    fixture.run("printf 'a\\nb'; sleep .1; printf 'c\\nAsk: '; read x; echo é >&2; printf end").await;
    assert_eq!(*lines.lock().unwrap(), ["a\n", "bc\n", "Ask: "]);
    fixture.input("x").await;
    assert_eq!(*lines.lock().unwrap(), ["a\n", "bc\n", "Ask: ", "é\n", "end"]);
    fixture.runtime.subscribe_to_shell_stream(None);
    fixture.run("echo more").await;
    assert_eq!(lines.lock().unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_reach_commands_with_their_names_as_they_are_and_not_this_process() {
    let fixture = Fixture::new();
    let value = "a'b\"c$d\ne";
    fixture.runtime.add_env_vars(&BTreeMap::from([
        ("github_token".to_owned(), Secret::new(value)),
        ("HOME".to_owned(), Secret::new("/elsewhere")),
    ]));
    assert_eq!(
        fixture.run("printf %s \"$github_token\"; env | grep -c ^HOME=; echo ~").await.content,
        format!("{value}1\n/elsewhere\n")
    );
    assert!(std::env::var_os("github_token").is_none());
    assert!(!format!("{:?}", fixture.runtime).contains("a'b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_in_the_background_goes_on_until_the_runtime_is_closed() {
    let fixture = Fixture::new();
    let run = fixture.run("(while :; do echo noise; sleep .05; done) & echo $!").await;
    let pid: u32 = run.content.lines().find_map(|line| line.parse().ok()).unwrap();
    let quiet = fixture.run("sleep 1000 > /dev/null 2>&1 & echo $!").await;
    let quiet: u32 = quiet.content.trim().parse().unwrap();
    fixture.run("sleep .5").await;
    assert!(is_alive(pid) && is_alive(quiet), "its output can still be written");
    let asks = fixture.run("echo $$; read x").await;
    let asks: u32 = asks.content.trim().parse().unwrap();
    fixture.runtime.close().await;
    assert!(!is_alive(pid) && !is_alive(quiet) && !is_alive(asks));
    let refused = fixture.act(Action::Run(RunAction::new("true"))).await;
    assert_eq!(error_of(&refused), "Runtime not initialized for command: true");
    assert_eq!(error_of(&fixture.read("f").await), "Runtime not initialized");
    assert!(fixture.root.is_dir(), "the workspace stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_up_file_of_the_user_is_read_as_ever_and_ours_leaves_no_trace() {
    let fixture = Fixture::new();
    let file = fixture.directory.path().join("it's");
    std::fs::write(&file, "greeting=hello\n").unwrap();
    let traces = fixture.run("echo ${BASH_ENV-unset}; ls /proc/$$/fd; [ -t 0 ] && echo terminal").await;
    assert_eq!(traces.content, "unset\n0\n1\n2\nterminal\n");
    let value = Secret::new(file.to_str().unwrap());
    fixture.runtime.add_env_vars(&BTreeMap::from([("BASH_ENV".to_owned(), value)]));
    let read = fixture.run("echo $greeting; bash -c 'echo $greeting'").await;
    assert_eq!(read.content, "hello\nhello\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_commands_run_side_by_side() {
    let fixture = Fixture::new();
    let began = Instant::now();
    let runs = (0..8).map(|number| {
        let runtime = Arc::clone(&fixture.runtime);
        tokio::spawn(async move {
            let action = Action::Run(RunAction::new(format!("sleep .5; echo {number}")));
            as_run(runtime.execute(&action.into()).await.unwrap()).content
        })
    });
    let runs: Vec<_> = runs.collect();
    for (number, run) in runs.into_iter().enumerate() {
        assert_eq!(run.await.unwrap(), format!("{number}\n"));
    }
    assert!(began.elapsed() < Duration::from_secs(3).mul_f64(gloveport_testing::pace()), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_nobody_waits_for_any_more_goes_on_and_can_be_asked_for() {
    let fixture = Fixture::new();
    let action = Action::Run(RunAction::new("echo first; sleep 1; echo second")).into();
    let given_up = tokio::time::timeout(Duration::from_millis(300), fixture.runtime.execute(&action)).await;
    assert!(given_up.is_err());
    assert_eq!(fixture.run("").await.content, "first\nsecond\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_says_so_in_the_words_of_the_reference() {
    let fixture = Fixture::new();
    for (action, expected) in [
        (
            Action::RunIpython(gloveport_protocol::RunIpythonAction::new("1")),
            "Executing IPython cells is not implemented in CLIRuntime. ",
        ),
        (
            Action::Browse(gloveport_protocol::BrowseAction::new("x")),
            "Browser functionality is not implemented in CLIRuntime",
        ),
        (
            Action::BrowseInteractive(gloveport_protocol::BrowseInteractiveAction::new("x")),
            "Browser functionality is not implemented in CLIRuntime",
        ),
        (Action::CallToolMcp(gloveport_protocol::CallToolMcpAction::new("t")), "No MCP servers configured"),
    ] {
        let Observation::Error(error) = fixture.act(action).await else { panic!("no error") };
        assert_eq!((error.content.as_str(), error.error_id.as_str()), (expected, ""));
    }
}
