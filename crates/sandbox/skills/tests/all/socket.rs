//! What kernels get from the socket, and what nobody else gets.

use std::{
    fs::{self, Permissions},
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        net::UnixStream,
    },
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::common::{Kernel, Served, open_to_all};
use gloveport_skills::Skills;
use gloveport_sys::Surroundings;
use serde_json::{Value, json};

/// Waits until a condition holds.
fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_what_the_editor_says() {
    let served = Served::start().await;
    let (mut kernel, path) = (served.kernel(), served.path("a.txt"));
    let shown = format!("File created successfully at: {path}");
    let created = json!({
        "id": 7, "output": shown, "path": path, "prev_exist": false, "old_content": null, "new_content": "a\nb\n"
    });
    assert_eq!(kernel.ask("create", &format!("{path}/"), &json!({ "file_text": "a\nb\n" })), created);
    let viewed = kernel.ask("view", &path, &json!({ "view_range": [2, -1] }));
    assert_eq!(viewed["output"], format!("Here's the result of running `cat -n` on {path}:\n     2\tb\n"));
    assert_eq!(
        [&viewed["prev_exist"], &viewed["old_content"], &viewed["new_content"]],
        [&json!(true), &Value::Null, &Value::Null]
    );
    let edited = kernel.ask("str_replace", &path, &json!({ "old_str": "a", "new_str": "A" }));
    assert_eq!([&edited["old_content"], &edited["new_content"]], ["a\nb\n", "A\nb\n"]);
    let error = "Invalid `view_range` parameter: ['a']. It should be a list of two integers.";
    assert_eq!(kernel.ask("view", &path, &json!({ "view_range": "['a']" })), json!({ "id": 7, "error": error }));
    // There is no workspace that a relative path could be meant for.
    let relative = "Invalid `path` parameter: tmp. The path should be an absolute path, starting with `/`.";
    assert_eq!(kernel.refused("view", "tmp", &json!({})), relative);
    served.skills.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_connection_has_its_own_history() {
    let served = Served::start().await;
    let (mut one, mut other, path) = (served.kernel(), served.kernel(), served.path("a.txt"));
    one.ask("create", &path, &json!({ "file_text": "first" }));
    one.ask("str_replace", &path, &json!({ "old_str": "first", "new_str": "second" }));
    assert_eq!(other.refused("undo_edit", &path, &json!({})), format!("No edit history found for {path}."));
    assert_eq!(one.ask("undo_edit", &path, &json!({}))["new_content"], "first");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_used_with_the_rights_of_the_user() {
    let Some(served) = Served::for_nobody().await else { return };
    let mut kernel = served.kernel();
    let (secret, readable, own, shared) =
        (served.path("secret"), served.path("readable"), served.path("own"), served.path("shared"));
    for (path, mode) in [(&secret, 0o600), (&readable, 0o644), (&own, 0o444), (&shared, 0o660)] {
        fs::write(path, "text").unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    chown(&own, Some(crate::common::NOBODY), Some(crate::common::NOBODY)).unwrap();
    chown(&shared, None, Some(crate::common::GROUP)).unwrap();
    let denied = |doing: &str, path: &str| {
        format!("Ran into [Errno 13] Permission denied: '{path}' while trying to {doing} {path}")
    };
    let change = json!({ "old_str": "text", "new_str": "other" });
    assert_eq!(kernel.refused("view", &secret, &json!({})), denied("read", &secret));
    for path in [&readable, &own] {
        assert_eq!(kernel.refused("str_replace", path, &change), denied("write to", path));
        assert_eq!(fs::read_to_string(path).unwrap(), "text");
    }
    assert_eq!(kernel.ask("str_replace", &shared, &change)["new_content"], "other");

    let made = served.path("made");
    kernel.ask("create", &made, &json!({ "file_text": "text" }));
    let metadata = fs::metadata(&made).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (crate::common::NOBODY, crate::common::NOBODY));
    let elsewhere = served.files.parent().unwrap().join("made").display().to_string();
    assert!(kernel.refused("create", &elsewhere, &json!({ "file_text": "" })).contains("Permission denied"));
    // A document is read before it is converted.
    let document = served.path("secret.pdf");
    fs::write(&document, "text").unwrap();
    fs::set_permissions(&document, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(kernel.refused("view", &document, &json!({})), denied("read", &document));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_system_tells_of_the_server_is_no_file_for_kernels() {
    let served = Served::start().await;
    let mut kernel = served.kernel();
    let link = served.path("link");
    std::os::unix::fs::symlink("/proc/self", &link).unwrap();
    let own = format!("/proc/{}/status", std::process::id());
    for path in [
        &own,
        "/proc/self/environ",
        "/proc/thread-self/maps",
        "/proc/self/fd",
        "/proc/self/cwd/x",
        &format!("{link}/environ"),
    ] {
        let expected = format!("Ran into [Errno 13] Permission denied: '{path}' while trying to read {path}");
        assert_eq!(kernel.refused("view", path, &json!({})), expected);
    }
    assert!(kernel.ask("view", "/proc/version", &json!({}))["output"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_judged_as_the_user_and_on_request() {
    let tools = tempfile::tempdir().unwrap();
    open_to_all(tools.path());
    let python = tools.path().join("python3");
    let script = "#!/bin/sh\ncat >/dev/null; echo \"1:1:user $(id -u) groups $(id -G) $SECRET.\"\n";
    fs::write(&python, script).unwrap();
    open_to_all(&python);
    let root = rustix::process::geteuid().is_root();
    let served = Served::with(|surroundings| {
        surroundings.environment = vec![("PATH".into(), format!("{}:/bin:/usr/bin", tools.path().display()).into())];
        if root {
            let groups = vec![crate::common::NOBODY, crate::common::GROUP];
            surroundings.identity =
                Some(gloveport_sys::Identity { uid: crate::common::NOBODY, gid: crate::common::NOBODY, groups });
        }
    })
    .await;
    let (mut kernel, path) = (served.kernel(), served.path("a.py"));
    kernel.ask("create", &path, &json!({ "file_text": "x\n" }));
    let change = |text: &str| json!({ "insert_line": 1, "new_str": text });
    let silent = kernel.ask("insert", &path, &change("y"))["output"].to_string();
    assert!(!silent.contains("issues"), "{silent}");
    let mut judged = change("z");
    judged["insert_line"] = json!(0);
    judged["enable_linting"] = json!(true);
    let output = kernel.ask("insert", &path, &judged)["output"].as_str().unwrap().to_owned();
    let who =
        if root { "user 65534 groups 65534 4242 .".to_owned() } else { format!("user {}", rustix::process::geteuid()) };
    assert!(output.contains(&format!("- Line 1, Column 1: {who}")), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_user_and_root_may_connect() {
    let Some(served) = Served::for_nobody().await else { return };
    let socket = served.skills.socket().to_owned();
    let directory = socket.parent().unwrap();
    let metadata = fs::metadata(directory).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (crate::common::NOBODY, 0o700));
    // Not even if the directory lets them in.
    for path in [directory, &socket] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let as_user = |uid: u32| {
        let (socket, path) = (socket.clone(), served.path("none"));
        let connect = move || {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(uid)).unwrap();
            let mut kernel = Kernel::at(&socket);
            if uid == 1_234 { kernel.next() } else { kernel.ask("undo_edit", &path, &json!({})) }
        };
        thread::spawn(connect).join().unwrap()
    };
    assert_eq!(as_user(1_234), json!({ "refused": "the user 1234 may not use it" }));
    assert!(as_user(crate::common::NOBODY)["error"].is_string());
    assert!(as_user(0)["error"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_and_ends_one_connection() {
    let served = Served::start().await;
    let mut good = served.kernel();
    for text in ["nonsense\n", "[]\n", "{}\n", "{\"id\":1,\"command\":5}\n", "\n", "\u{0}\u{1}\n"] {
        let mut kernel = served.kernel();
        kernel.stream.write_all(text.as_bytes()).unwrap();
        let answer = kernel.next();
        assert!(answer["refused"].as_str().unwrap().starts_with("it is not understood: "), "{answer}");
        assert_eq!(kernel.next(), Value::Null);
    }
    let mut kernel = served.kernel();
    let line = vec![b'x'; 64 * 1024 * 1024 + 1];
    // It is not read to its end if it has more.
    let _ = kernel.stream.write_all(&line);
    assert_eq!(kernel.next(), json!({ "refused": "it is larger than 64 MiB" }));
    // So are too many large ones at a time.
    let begun: Vec<Kernel> = (0..9)
        .map(|_| {
            let mut kernel = served.kernel();
            // The last one may be refused before all is sent.
            let _ = kernel.stream.write_all(&line[..2 * 1024 * 1024]);
            kernel
        })
        .collect();
    let patience = Some(Duration::from_millis(50));
    until("one large request is refused", || {
        begun.iter().any(|kernel| {
            let mut text = [0; 100];
            kernel.stream.set_read_timeout(patience).unwrap();
            let length = (&kernel.stream).read(&mut text).unwrap_or(0);
            text[..length] == *b"{\"refused\":\"there are too many large requests at a time\"}\n"
        })
    });
    drop(begun);
    // A kernel that goes away within a request, and one that does not wait for its answer.
    let mut kernel = served.kernel();
    kernel.stream.write_all(b"{\"id\":1,").unwrap();
    kernel.stream.shutdown(Shutdown::Both).unwrap();
    let mut kernel = served.kernel();
    kernel.stream.write_all(b"{\"id\":1,\"command\":\"view\",\"path\":\"/\",\"enable_linting\":false}\n").unwrap();
    drop(kernel);
    assert!(good.ask("undo_edit", &served.path("none"), &json!({}))["error"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_the_largest_file_is_taken() {
    let served = Served::start().await;
    let (mut kernel, path) = (served.kernel(), served.path("large.txt"));
    let text = "\u{e9}".repeat(5 * 1024 * 1024);
    let answer = kernel.ask("create", &path, &json!({ "file_text": text }));
    assert_eq!(answer["new_content"].as_str().unwrap().len(), text.len());
    assert_eq!(fs::metadata(path).unwrap().len(), text.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_kernels_are_served_at_a_time() {
    let served = Served::start().await;
    let path = served.path("none");
    let mut kernels: Vec<Kernel> = (0..64).map(|_| served.kernel()).collect();
    for kernel in &mut kernels {
        assert!(kernel.ask("undo_edit", &path, &json!({}))["error"].is_string());
    }
    let refused = json!({ "refused": "64 kernels are connected already; end one" });
    assert_eq!(served.kernel().next(), refused);
    kernels.pop();
    until("there is room again", || {
        let mut kernel = served.kernel();
        kernel.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        writeln!(kernel.stream, "{}", &json!({ "id": 1, "command": "x", "path": "/", "enable_linting": false })).is_ok()
            && kernel.next()["error"].is_string()
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_skills_ends_connections_and_removes_the_socket() {
    let served = Served::start().await;
    let mut kernel = served.kernel();
    assert!(kernel.ask("undo_edit", &served.path("none"), &json!({}))["error"].is_string());
    let socket = served.skills.socket().to_owned();
    served.skills.close().await;
    assert_eq!(kernel.next(), Value::Null);
    assert!(!socket.parent().unwrap().exists());
    assert!(served.skills.packages().join("gloveport/skills/__init__.py").is_file());
    // So does the last use.
    let served = Served::start().await;
    let (mut kernel, socket) = (served.kernel(), served.skills.socket().to_owned());
    drop(served);
    assert_eq!(kernel.next(), Value::Null);
    assert!(!socket.exists() && UnixStream::connect(socket).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_directory_that_the_user_can_use_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    open_to_all(directory.path());
    let (file, closed, good) =
        (directory.path().join("file"), directory.path().join("closed"), directory.path().join("good"));
    fs::write(&file, "").unwrap();
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let mut surroundings = Surroundings::inherited("/".into());
    let mut candidates = vec![file.clone(), directory.path().join("no/parent")];
    if rustix::process::geteuid().is_root() {
        surroundings.identity = Some(gloveport_sys::Identity {
            uid: crate::common::NOBODY,
            gid: crate::common::NOBODY,
            groups: Vec::new(),
        });
        candidates.push(closed.join("state"));
    }
    candidates.push(good.clone());
    let skills = Skills::start_below(&surroundings, candidates).await.unwrap();
    assert!(skills.packages().starts_with(&good), "{}", skills.packages().display());
    let error = Skills::start_below(&surroundings, vec![file.clone()]).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} is not a directory", file.display())), "{error}");
    assert!(Path::new(skills.socket()).exists());
}
