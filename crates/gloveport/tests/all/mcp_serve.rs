//! `gloveport mcp` as an MCP client meets it: a sandbox of its own, that of a session, that of a server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    sessions::Home,
    support::{LIMIT, Server, gloveport, text, until},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A client that speaks to the process it has started.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    asked: u64,
}

impl Client {
    /// Starts `gloveport mcp` with these words.
    fn starts(home: &Home, words: &[&str]) -> Self {
        let mut command = gloveport(home.path());
        command.env_remove("XDG_STATE_HOME").current_dir(home.path()).arg("mcp").args(words);
        Self::of(&mut command)
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, answers) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines() {
                // Standard output has nothing but messages.
                let message = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, answers, asked: 0 }
    }

    fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    /// The answer to a request, whatever else is told before it.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let answer = self.answers.recv_timeout(LIMIT).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn begin(&mut self) -> Value {
        let who = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
        let greeting = self.ask("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        greeting["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The output of a command.
    fn shell(&mut self, command: &str) -> String {
        let result = self.call("shell", &json!({"command": command}));
        let output = result["structuredContent"]["output"].as_str();
        assert!(output.is_some(), "{result}");
        output.unwrap().to_owned()
    }

    /// What an error says to the model.
    fn failure(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Goes, and gives the exit code and standard error.
    fn goes(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        self.ended()
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut error = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (status.code(), error)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped_already = self.child.wait();
    }
}

#[test]
fn a_sandbox_is_made_for_a_client_and_ends_with_it() {
    let home = Home::new();
    let mut client = Client::starts(&home, &["-e", "GIVEN=variable"]);
    let greeting = client.begin();
    assert_eq!(greeting["serverInfo"]["name"], "gloveport");
    let instructions = greeting["instructions"].as_str().unwrap();
    assert!(instructions.contains("on the user's own machine") && instructions.contains("The work is in /"));
    assert_eq!(client.shell("echo $GIVEN; cd /; export A=b"), "variable");
    assert_eq!(client.shell("pwd; echo $A"), "/\nb");
    assert_eq!(home.ids().len(), 1);
    let (code, error) = client.goes();
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("no isolation") && error.lines().count() == 1, "{error}");
    assert_eq!(home.ids(), Vec::<String>::new());
}

#[test]
fn a_signal_ends_the_sandbox_with_its_commands_and_a_killed_client_leaves_nothing_either() {
    let home = Home::new();
    let mut client = Client::starts(&home, &[]);
    client.begin();
    let began = client.call("shell", &json!({"command": "exec sleep 1000", "wait": 0.2}));
    assert_eq!(began["structuredContent"]["state"], "running", "{began}");
    client.signal(Signal::TERM);
    assert_eq!(client.ended().0, Some(130));
    until("everything is gone", || home.left().is_empty() && home.alive().is_empty());
    let mut client = Client::starts(&home, &[]);
    client.begin();
    client.shell("sleep 1000 &");
    client.signal(Signal::KILL);
    assert_eq!(client.ended().0, None);
    until("everything is gone", || home.alive().is_empty());
}

#[test]
fn a_sandbox_that_is_kept_is_a_session() {
    let home = Home::new();
    let mut client = Client::starts(&home, &["--keep", "--workspace", home.path().to_str().unwrap()]);
    client.begin();
    assert_eq!(client.shell("pwd; echo kept > file"), home.path().to_str().unwrap());
    let (code, error) = client.goes();
    let ids = home.ids();
    assert_eq!((code, ids.len()), (Some(0), 1), "{error}");
    assert!(error.contains(&format!("`gloveport session rm -f {}`", ids[0])), "{error}");
    assert_eq!(home.exec(&ids[0], "cat file"), (Some(0), "kept\n".to_owned()));
    home.ok(&["rm", "-f", &ids[0]]);
}

#[test]
fn a_session_is_shared_and_its_history_tells_what_the_tools_did_and_no_password() {
    let home = Home::new();
    fs::write(home.path().join("token"), "file-s3cret-value\n").unwrap();
    home.ok(&["start", "--id", "shared", "--secret", "TOKEN=@token"]);
    let mut client = Client::starts(&home, &["--session", "shared"]);
    client.begin();
    assert_eq!(client.shell("mkdir here && cd here && echo $TOKEN"), "file-s3cret-value");
    assert_eq!(home.exec("shared", "basename $PWD"), (Some(0), "here\n".to_owned()));
    let written = client.call("write_file", &json!({"path": "note.txt", "content": "one\n"}));
    assert_eq!(written["isError"], false, "{written}");
    client.call("edit_file", &json!({"path": "note.txt", "old_text": "one", "new_text": "two"}));
    let read = client.call("read_file", &json!({"path": "note.txt"}));
    assert_eq!(read["structuredContent"]["content"], "two\n", "{read}");
    let asks = client.call("shell", &json!({"command": "read -sp 'password: ' x; echo ${#x}", "wait": 5}));
    assert_eq!(asks["structuredContent"]["state"], "waiting_for_input", "{asks}");
    let id = asks["structuredContent"]["id"].clone();
    let typed = client.call("shell_input", &json!({"id": id, "input": "hunter2hunter2"}));
    assert!(typed["content"][0]["text"].as_str().unwrap().contains("14"), "{typed}");
    client.call("shell", &json!({"command": "sleep 1000", "wait": 0.2}));
    // What still runs when the client goes goes on: the session is not the client's.
    assert_eq!(client.goes(), (Some(0), String::new()));
    let events = home.events("shared");
    let of = |event: &Value| {
        let kind = event["action"].as_str().or(event["observation"].as_str()).unwrap().to_owned();
        (event["source"].as_str().unwrap().to_owned(), kind)
    };
    let told: Vec<(String, String)> = events.iter().map(of).collect();
    let pair = |source: &str, kind: &str| [(source.to_owned(), kind.to_owned()), (source.to_owned(), kind.to_owned())];
    let mut expected = Vec::new();
    for (source, kind) in [("agent", "run"), ("user", "run"), ("agent", "write"), ("agent", "edit"), ("agent", "read")]
    {
        expected.extend(pair(source, kind));
    }
    assert_eq!(told[..10], expected, "{told:?}");
    assert_eq!(events[1]["content"], "<secret_hidden>");
    assert_eq!(events[9]["content"], "two\n");
    let all = serde_json::to_string(&events).unwrap();
    assert!(!all.contains("hunter2") && all.contains("what was typed is not shown"), "{all}");
    let last = events.last().unwrap();
    assert!(last["extras"]["metadata"]["suffix"].as_str().unwrap().contains("is not followed"), "{last}");
    home.ok(&["rm", "-f", "shared"]);
}

#[test]
fn what_the_configuration_finds_risky_is_refused_to_a_model_unless_a_person_allowed_it() {
    const RISKY: &str = "false && git push --force; echo ran";
    let home = Home::new();
    let security = "[security]\nconfirmation_mode = true\nsecurity_analyzer = \"rules\"\n";
    fs::write(home.path().join("config.toml"), security).unwrap();
    for words in [&[][..], &["--deny"]] {
        let mut client = Client::starts(&home, words);
        client.begin();
        let refused = client.failure("shell", &json!({"command": RISKY}));
        assert!(refused.contains("force-push"), "{words:?} {refused}");
        assert_eq!(client.shell("echo harmless"), "harmless");
        assert_eq!(client.goes().0, Some(0));
    }
    let mut client = Client::starts(&home, &["--yes"]);
    client.begin();
    assert_eq!(client.shell(RISKY), "ran");
}

#[test]
fn a_server_is_shared_with_its_key() {
    let server = Server::compat(&[], &[("SESSION_API_KEY", "s3cret")]);
    let home = Home::new();
    fs::write(home.path().join("key"), "s3cret\n").unwrap();
    let url = server.url();
    let mut client = Client::starts(&home, &["--url", &url, "--key-file", "key"]);
    let greeting = client.begin();
    assert!(greeting["instructions"].as_str().unwrap().contains("Linux sandbox"), "{greeting}");
    assert_eq!(client.shell("echo from the server"), "from the server");
    assert_eq!(client.goes(), (Some(0), String::new()));
    let (code, error) = Client::starts(&home, &["--url", &url]).goes();
    assert_eq!(code, Some(1));
    assert!(error.contains("Invalid API Key") && error.contains("GLOVEPORT_KEY"), "{error}");
}

#[test]
fn tools_are_chosen_and_wrong_command_lines_start_nothing() {
    let home = Home::new();
    let mut client = Client::starts(&home, &["--tools", "read_file,shell,shell"]);
    client.begin();
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["shell", "read_file"]);
    let error = client.ask("tools/call", &json!({"name": "python", "arguments": {"code": "1"}}));
    assert_eq!(error["error"]["message"], "the tool `python` is switched off here");
    drop(client);
    for (words, code, said) in [
        (&["--tools", "shell,sell"][..], 2, "there is no tool `sell`; the tools are shell,"),
        (&["--key", "x"], 2, "--url"),
        (&["--session", "a", "--url", "http://127.0.0.1:9"], 2, "--url"),
        (&["--session", "a", "--workspace", "/tmp"], 2, "--workspace"),
        (&["--session", "a", "--keep"], 2, "--keep"),
        (&["--session", "nowhere"], 1, "there is no session or sandbox `nowhere`"),
        (&["--url", "http://127.0.0.1:9"], 1, "127.0.0.1:9"),
        (&["--runtime", "nothing"], 1, "nothing"),
        (&["--yes", "tools", "--server", "cat"], 2, "tools"),
    ] {
        let (found, error) = Client::starts(&home, words).goes();
        assert_eq!(found, Some(code), "{words:?} {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
}

#[test]
fn a_slow_runtime_holds_up_no_client_and_its_failure_is_told_to_the_model() {
    let home = Home::new();
    let provider = home.path().join("slow");
    fs::write(&provider, "#!/bin/sh\nsleep 4\necho 'no luck today' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&provider, fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = format!("exec:{}", provider.display());
    let begun = Instant::now();
    let mut client = Client::starts(&home, &["--runtime", &runtime]);
    client.begin();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(client.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len(), 12);
    let failure = client.failure("shell", &json!({"command": "true"}));
    assert!(failure.starts_with("there is no sandbox: "), "{failure}");
    assert_eq!(client.goes().0, Some(1));
    // A client that goes before it is there gives it up.
    let begun = Instant::now();
    let mut client = Client::starts(&home, &["--runtime", &runtime]);
    thread::sleep(Duration::from_millis(100));
    client.signal(Signal::TERM);
    let (code, error) = client.ended();
    assert!(code == Some(130) && begun.elapsed() < LIMIT, "{code:?} {error}");
}

#[test]
fn messages_that_are_none_disturb_nobody() {
    let home = Home::new();
    let mut client = Client::starts(&home, &[]);
    client.begin();
    for line in [
        &b"no JSON at all"[..],
        b"",
        b"{\"jsonrpc\": \"2.0\"",
        b"[]",
        b"null",
        b"{\"jsonrpc\": \"1.0\", \"id\": 900, \"method\": \"tools/list\"}",
        b"{\"jsonrpc\": \"2.0\", \"id\": 901, \"method\": \"no/such\"}",
        b"{\"jsonrpc\": \"2.0\", \"id\": 902, \"method\": \"tools/call\", \"params\": 5}",
        b"{\"jsonrpc\": \"2.0\", \"id\": 903, \"result\": {}}",
        b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 77}}",
        b"\xff\xfe\x00",
    ] {
        client.write(line);
    }
    let deep = "[".repeat(100_000);
    client.write(deep.as_bytes());
    assert_eq!(client.shell("echo on"), "on");
    // A call is no longer than a command can be, and it is told so.
    let long = "x".repeat(20 * 1024 * 1024);
    let result = client.call("shell", &json!({"command": format!("true {long}")}));
    assert_eq!(result["isError"], true);
    assert_eq!(client.shell("echo still on"), "still on");
    let (code, error) = client.goes();
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn calls_at_once_are_all_answered() {
    let home = Home::new();
    let mut client = Client::starts(&home, &[]);
    client.begin();
    let ids: Vec<u64> = (1000..1050).collect();
    for id in &ids {
        let arguments = json!({"path": format!("f{id}"), "content": format!("{id}")});
        let params = json!({"name": "write_file", "arguments": arguments});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    let mut answered: Vec<u64> = Vec::new();
    while answered.len() < ids.len() {
        let answer = client.answers.recv_timeout(LIMIT).unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, ids);
    assert_eq!(client.shell("ls f1* | wc -l"), "50");
}

#[test]
fn a_person_who_starts_it_by_hand_is_told_what_it_is() {
    let home = Home::new();
    let mut command = Command::new("script");
    let inner = format!("{} mcp --runtime exec:/nonexistent", env!("CARGO_BIN_EXE_gloveport"));
    command.args(["-qec", &inner, "/dev/null"]);
    let output = crate::support::with_home(command, home.path()).output().unwrap();
    let told = text(&output.stdout);
    assert!(told.contains("this is a server for MCP clients"), "{told}");
}
