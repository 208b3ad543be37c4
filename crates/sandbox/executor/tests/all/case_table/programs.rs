//! Rows 44, 52, 67, 77 and 78: other programs, servers, and shells of their own.

use std::{fs, net::TcpStream, time::Duration};

use crate::case_table::support::{Lab, Varied as _, free_port, input, no_change, run, timed_out};

/// Waits until somebody listens on a port.
async fn listening(port: u16) {
    let connected = async {
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), connected).await.unwrap();
}

#[tokio::test]
async fn row_44_a_server_in_the_background_serves_the_next_command() {
    let lab = Lab::new().await;
    let port = free_port();
    let start = format!("python3 -m http.server {port} &");
    let seen = lab.output(start.as_str()).await;
    let pid = seen.metadata.pid;
    assert_eq!(seen, lab.done(&start, &format!("[1] {pid}"), 0).with_background_pid(pid));
    listening(port).await;
    let seen = lab.output(format!("curl -s http://localhost:{port}").as_str()).await;
    assert_eq!(seen.metadata.exit_code, 0);
    assert!(seen.content.contains("Directory listing for"), "{}", seen.content);
    lab.close().await;
}

#[tokio::test]
async fn row_52_a_large_listing_keeps_its_beginning_and_its_end() {
    let lab = Lab::new().await;
    for folder in 1..=100 {
        let folder = lab.work.join(format!("folder_{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 1..=100 {
            fs::write(folder.join(format!("file_{file}.txt")), "").unwrap();
        }
    }
    let seen = lab.output("ls -R").await;
    assert_eq!((seen.metadata.exit_code, seen.content.chars().count()), (0, 30_047));
    for name in ["folder_1", "folder_100", "file_1.txt", "file_100.txt"] {
        assert!(seen.content.contains(name), "{name}");
    }
    // All of it, in the order of the listing.
    let seen = lab.output(run("ls -R | wc -l").hidden()).await;
    assert_eq!(seen.content, (1 + 100 + 100 * 102).to_string());
    lab.close().await;
}

#[tokio::test]
async fn row_67_a_server_in_the_foreground_is_interrupted_and_its_last_words_are_reported_once() {
    let lab = Lab::new().await;
    let port = free_port();
    let serve = format!("python -u -m http.server {port}");
    let serving = format!("Serving HTTP on 0.0.0.0 port {port} (http://0.0.0.0:{port}/) ...");
    lab.check("67", run(&serve).timeout(1.0), timed_out(&serve, &serving, "1.0")).await;
    let last = lab.done_by_key("C-c", "^C\nKeyboard interrupt received, exiting.", 0);
    lab.check("67", input("C-c").timeout(30.0), last).await;
    lab.check("67", run("ls").timeout(3.0), lab.done("ls", "", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn row_77_an_interpreter_is_talked_to_by_input() {
    let lab = Lab::with_no_change(1).await;
    let seen = lab.output("python3 -q").await;
    assert_eq!(seen, no_change("python3 -q", ">>>", 1));
    lab.check("77", input("print(1+1)"), no_change("print(1+1)", "2\n>>>", 1).continued()).await;
    lab.check("77", input("exit()"), lab.done("exit()", "", 0)).await;
    // With its banner, whose text is that of the installed version.
    let seen = lab.output("python3").await;
    assert!(seen.content.starts_with("Python 3.") && seen.content.ends_with("\n>>>"), "{}", seen.content);
    assert_eq!(seen, no_change("python3", &seen.content, 1));
    lab.check("77", input("C-d"), lab.done_by_key("C-d", "", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn row_78_a_static_command_has_a_shell_of_its_own() {
    let lab = Lab::with_no_change(1).await;
    let work = lab.work.display().to_string();
    let usr = std::path::Path::new("/usr");
    let expected = lab.done("pwd", "/usr", 0).in_directory(usr);
    lab.check("78", run("pwd").in_own_shell(Some("/usr")), expected).await;
    lab.check("78", "pwd", lab.done("pwd", &work, 0)).await;
    // Variables are not shared, `~/.bashrc` is.
    fs::write(lab.home.path().join(".bashrc"), "export FROM_BASHRC=1\n").unwrap();
    lab.prepare("export FROM_MAIN=1; cd /").await;
    let command = "echo \"[$FROM_MAIN$FROM_BASHRC]\"; pwd; alias git";
    let content = format!("[1]\n{work}\nbash: alias: git: not found");
    lab.check("§6", run(command).in_own_shell(None), lab.done(command, &content, 1)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_static_command_in_a_missing_directory_runs_in_another_one() {
    let lab = Lab::new().await;
    let seen = lab.output(run("echo here").in_own_shell(Some("/does/not/exist"))).await;
    let directory = seen.metadata.working_dir.clone().unwrap();
    assert!(std::path::Path::new(&directory).is_dir(), "{directory}");
    assert_eq!(seen, lab.done("echo here", "here", 0).in_directory(directory.as_ref()));
    lab.close().await;
}

#[tokio::test]
async fn a_static_commands_output_is_never_wrapped() {
    let lab = Lab::new().await;
    let json = format!("{{\"a\": \"{}\"}}", "漢字 x".repeat(3000));
    fs::write(lab.work.join("j.json"), &json).unwrap();
    let seen = lab.output(run("cat j.json").in_own_shell(None).hidden()).await;
    assert_eq!(seen.content, json);
    lab.close().await;
}
