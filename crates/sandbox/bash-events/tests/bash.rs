//! Commands and their events, with real processes.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{path::Path, sync::Arc, time::Duration};

use gloveport_bash_events::{
    Bash, BashOptions, Log, Request, Search,
    event::{Event, Kind, Output},
};
use gloveport_sys::Surroundings;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

fn bash(directory: &Path) -> Arc<Bash> {
    Bash::new(BashOptions {
        surroundings: Surroundings::inherited(directory.to_owned()),
        shell: vec!["/bin/sh".into(), "-c".into()],
        events: directory.join("events"),
        retention: None,
    })
}

fn request(command: &str, timeout: i64) -> Request {
    Request { command: command.into(), cwd: None, timeout }
}

fn all() -> Search {
    Search {
        kind: None,
        command: None,
        from: None,
        before: None,
        order_above: None,
        descending: false,
        page: None,
        limit: 100,
    }
}

fn outputs(log: &Log, command: Uuid) -> Vec<Value> {
    let page = log.search(&Search { command: Some(command), ..all() });
    page.keys.iter().map(|key| serde_json::from_slice(&log.read(*key).unwrap()).unwrap()).collect()
}

async fn ran(bash: &Arc<Bash>, command: &str, timeout: i64) -> Vec<Value> {
    let (id, _) = bash.start(request(command, timeout)).await.unwrap();
    tokio::time::timeout(Duration::from_mins(1), bash.wait(id)).await.unwrap();
    outputs(bash.log(), id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_a_process_with_one_event_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    for (command, code, stdout, stderr) in [
        ("echo hi; echo err >&2; exit 3", 3, Value::from("hi\n"), Value::from("err\n")),
        ("true", 0, Value::Null, Value::Null),
        ("cat", 0, Value::Null, Value::Null),
        ("kill -9 $$", -9, Value::Null, Value::Null),
        ("echo é; printf '\\377'", 0, "é\n\u{fffd}".into(), Value::Null),
        ("sleep 0.3 & echo x", 0, "x\n".into(), Value::Null),
        ("pwd", 0, format!("{}\n", directory.path().display()).into(), Value::Null),
    ] {
        let events = ran(&bash, command, 20).await;
        assert_eq!(events.len(), 1, "{command}");
        let it = &events[0];
        assert_eq!((&it["exit_code"], &it["stdout"], &it["stderr"]), (&code.into(), &stdout, &stderr), "{command}");
        assert_eq!((&it["order"], &it["kind"]), (&0.into(), &"BashOutput".into()));
    }
    bash.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_there_is_told_by_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    let nowhere = Request { cwd: Some("nowhere".into()), ..request("pwd", 5) };
    let (id, _) = bash.start(nowhere).await.unwrap();
    bash.wait(id).await;
    let it = &outputs(bash.log(), id)[0];
    assert_eq!(it["exit_code"], -1);
    assert_eq!(it["stderr"], "Error executing command: [Errno 2] No such file or directory: 'nowhere'");
    bash.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_output_comes_in_chunks_of_one_stream_and_the_rest_with_the_code() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    let command = "head -c 2500000 /dev/zero | tr '\\0' o; head -c 1200000 /dev/zero | tr '\\0' e >&2; exit 7";
    let (id, _) = bash.start(request(command, 60)).await.unwrap();
    bash.wait(id).await;
    let lengths: Vec<_> = outputs(bash.log(), id)
        .iter()
        .map(|it| {
            let length = |name: &str| it[name].as_str().map_or(0, str::len);
            (it["order"].as_u64().unwrap(), length("stdout"), length("stderr"), it["exit_code"].as_i64())
        })
        .collect();
    let full = 1_048_576;
    assert_eq!(lengths, [(0, full, 0, None), (1, full, 0, None), (2, 0, full, None), (3, 402_848, 151_424, Some(7))]);
    let mut joined = Vec::new();
    bash.log().write_joined(id, &mut joined).unwrap();
    let joined: Value = serde_json::from_slice(&joined).unwrap();
    assert_eq!(
        (joined["stdout"].as_str().unwrap().len(), joined["stderr"].as_str().unwrap().len()),
        (2_500_000, 1_200_000)
    );
    assert_eq!((&joined["order"], &joined["exit_code"]), (&3.into(), &7.into()));
    bash.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_that_is_over_ends_all_of_the_group_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    let began = Instant::now();
    // What holds the pipe in the background is ended, too.
    let events = ran(&bash, "echo before; sleep 50 & exit 0", 1).await;
    assert_eq!((&events[0]["exit_code"], &events[0]["stdout"]), (&(-1).into(), &"before\n".into()));
    assert_eq!(events[0]["stderr"], "Command timed out after 1 seconds");
    let deaf = ran(&bash, "trap '' TERM; echo deaf >&2; sleep 50; sleep 50", 0).await;
    assert_eq!(deaf[0]["stderr"], "deaf\nCommand timed out after 1 seconds");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    bash.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_stopped_and_one_that_ended_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    let (id, _) = bash.start(request("sleep 50", 60)).await.unwrap();
    assert!(bash.stop(id));
    bash.wait(id).await;
    assert_eq!(outputs(bash.log(), id)[0]["exit_code"], -15);
    assert!(bash.stop(id) && !bash.stop(Uuid::from_u128(1)));
    bash.close().await;
    assert!(bash.start(request("true", 1)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_the_background_lives_on_and_ends_with_the_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let bash = bash(directory.path());
    let events = ran(&bash, "sleep 60 >/dev/null 2>&1 & echo $!", 20).await;
    let job = events[0]["stdout"].as_str().unwrap().trim().to_owned();
    let place = Path::new("/proc").join(job);
    assert!(place.exists());
    bash.close().await;
    let deadline = Instant::now() + Duration::from_secs(5);
    while place.exists() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!place.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_found_in_pages_and_there_after_a_restart_until_they_are_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let first = bash(directory.path());
    for number in 0..3 {
        ran(&first, &format!("echo {number}"), 20).await;
    }
    first.close().await;
    // What is no file of ours is passed over.
    std::fs::write(directory.path().join("events/0-command-x.json"), "{").unwrap();
    let second = bash(directory.path());
    let log = second.log();
    let mut search = Search { kind: Some(Kind::BashOutput), limit: 2, ..all() };
    let page = log.search(&search);
    assert_eq!(page.keys.len(), 2);
    search.page = page.next;
    let rest = log.search(&search);
    assert_eq!((rest.keys.len(), rest.next), (1, None));
    let newest = log.search(&Search { descending: true, limit: 1, ..all() });
    assert_eq!(newest.keys, rest.keys);
    let mut written = Vec::new();
    log.write_page(&page, &mut written).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["items"][1]["stdout"], "1\n");
    assert_eq!(log.clear(), 6);
    assert_eq!(log.search(&all()).keys, []);
    second.close().await;
}

#[test]
fn an_event_that_somebody_changed_is_none_and_a_disk_that_takes_nothing_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(directory.path().join("events"));
    let output = |order| {
        let command = Uuid::from_u128(7);
        Event::Output(Output { command, order, exit_code: Some(0), stdout: "x".into(), stderr: String::new() })
    };
    let (key, json) = log.add(Uuid::from_u128(1), &output(0)).unwrap();
    assert_eq!(log.read(key).unwrap(), json);
    let file = std::fs::read_dir(directory.path().join("events")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert_eq!(log.read(key), None);
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(log.read(key), None);
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_dir(directory.path().join("events")).unwrap();
    std::fs::write(directory.path().join("events"), "in the way").unwrap();
    let (key, _) = log.add(Uuid::from_u128(2), &output(1)).unwrap();
    let told: Value = serde_json::from_slice(&log.read(key).unwrap()).unwrap();
    assert!(told["stderr"].as_str().unwrap().contains("cannot be kept"), "{told}");
    assert_eq!((&told["exit_code"], &told["stdout"]), (&0.into(), &Value::Null));
}
