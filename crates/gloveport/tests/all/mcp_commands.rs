//! `gloveport mcp` as a user meets it: a server that is a program, one at a URL, and those of a session's sandbox.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, process::Output};

use crate::{
    sessions::Home,
    support::{Server, gloveport, text},
};
use gloveport_testing::MCP_SERVER;
use serde_json::{Value, json};

/// Runs the command for the server that tests use, with more arguments.
fn mcp(home: &Path, words: &[&str]) -> Output {
    let script = home.join("server.py");
    fs::write(&script, MCP_SERVER).unwrap();
    let server = format!("python3 '{}' \"a name\"", script.display());
    gloveport(home).arg("mcp").args(words).args(["--server", &server, "-e", "OWN=set"]).output().unwrap()
}

fn parts(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn tools_and_resources_of_a_program_are_listed_called_and_printed() {
    let home = tempfile::tempdir().unwrap();
    // Words of a server are shown and not obeyed.
    let listed = "echo  ?[2J?\ntool1  ?[2J?\n";
    assert_eq!(parts(&mcp(home.path(), &["tools"])), (Some(0), listed.to_owned(), String::new()));
    let tools: Value = serde_json::from_slice(&mcp(home.path(), &["tools", "--json"]).stdout).unwrap();
    assert_eq!(tools["tools"][1]["inputSchema"], json!({"type": "object"}));
    fs::write(home.path().join("arguments.json"), "{\"text\": \"from a file\"}").unwrap();
    let file = format!("@{}", home.path().join("arguments.json").display());
    for (arguments, said) in [("{\"text\": \"hi\"}", "a name: hi\n"), (&file, "a name: from a file\n")] {
        let called = mcp(home.path(), &["call", "echo", arguments]);
        assert_eq!(parts(&called), (Some(0), said.to_owned(), String::new()), "{arguments}");
    }
    let whole: Value = serde_json::from_slice(&mcp(home.path(), &["call", "echo", "--json"]).stdout).unwrap();
    assert_eq!((&whole["structuredContent"], &whole["isError"]), (&json!({"a": 1}), &json!(false)));
    let environment = text(&mcp(home.path(), &["call", "env"]).stdout);
    assert!(environment.contains("\"OWN\": \"set\""), "{environment}");
    assert_eq!(parts(&mcp(home.path(), &["resources"])).1, "demo://one  one\n");
    assert_eq!(parts(&mcp(home.path(), &["resources", "demo://one"])).1, "a name");
}

#[test]
fn a_wrong_server_tool_or_argument_is_named() {
    let home = tempfile::tempdir().unwrap();
    let slow = ["call", "sleep", "{\"seconds\": 60}", "--timeout", "0.3"];
    for (words, code, said) in [
        (&["call", "echo", "[1]"][..], 1, "the arguments must be a JSON object"),
        (&["call", "echo", "{text"], 1, "the arguments are no JSON"),
        (&["call", "die"], 1, "its last words"),
        (&["resources", "nothing://here"], 1, "no such resource here"),
        (&slow, 1, "0.3 s"),
    ] {
        let (found, _, error) = parts(&mcp(home.path(), words));
        assert_eq!(found, Some(code), "{words:?} {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
    for (words, code, said) in [
        (&["tools"][..], 2, "--server"),
        (&["tools", "--server", "no-such-program-at-all"], 1, "no-such-program-at-all"),
        (&["tools", "--server", "http://127.0.0.1:9/mcp", "-e", "A=b"], 1, "is a URL"),
        (&["tools", "--server", "http://127.0.0.1:9/mcp"], 1, "127.0.0.1:9"),
        (&["tools", "--server", "cat 'open"], 1, "is no command"),
        (&["tools", "--server", "cat", "--transport", "sse"], 1, "is a command"),
        (&["tools", "--session", "nowhere"], 1, "nowhere"),
    ] {
        let (found, _, error) = parts(&gloveport(home.path()).arg("mcp").args(words).output().unwrap());
        assert_eq!(found, Some(code), "{words:?} {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
}

#[test]
fn servers_in_a_sandbox_are_used_through_its_proxy() {
    let server = Server::compat(&[], &[("SESSION_API_KEY", "s3cret")]);
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("server.py");
    fs::write(&script, MCP_SERVER).unwrap();
    fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let key = home.path().join("key");
    fs::write(&key, "s3cret\n").unwrap();
    let entry = |name: &str| json!({"name": name, "command": "python3", "args": [script, name]});
    let body = json!([entry("a"), entry("b")]).to_string();
    let (status, answer) = server.request("POST", "/update_mcp_server", "X-Session-API-Key: s3cret\r\n", &body);
    assert_eq!(status, 200, "{answer}");
    for path in ["/mcp/proxy", "/mcp/sse"] {
        let url = server.url() + path;
        let key = key.to_str().unwrap();
        let words = ["mcp", "call", "b_echo", "{\"text\": 1}", "--server", &url, "--key-file", key];
        let called = gloveport(home.path()).args(words).output().unwrap();
        assert_eq!(parts(&called), (Some(0), "b: 1\n".to_owned(), String::new()), "{path}");
    }
    let url = server.url() + "/mcp/proxy";
    let (code, _, error) = parts(&gloveport(home.path()).args(["mcp", "tools", "--server", &url]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(error.contains("403") || error.contains("refused"), "{error}");
}

#[test]
fn a_session_has_the_servers_of_the_configuration() {
    let home = Home::new();
    let script = home.path().join("server.py");
    fs::write(&script, MCP_SERVER).unwrap();
    let servers = format!(
        "[mcp]\nstdio_servers = [{{ name = \"a\", command = \"python3\", args = [\"{0}\", \"a\"] }}]\n",
        script.display()
    );
    fs::write(home.path().join("config.toml"), servers).unwrap();
    assert_eq!(home.ok(&["start", "--id", "tools"]), "tools\n");
    let mut call = gloveport(home.path());
    call.env_remove("XDG_STATE_HOME").current_dir(home.path());
    let called = call.args(["mcp", "call", "echo", "{\"text\": 2}", "--session", "tools"]).output().unwrap();
    assert_eq!(parts(&called), (Some(0), "a: 2\n".to_owned(), String::new()));
    home.ok(&["rm", "-f", "tools"]);
}
