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
    assert_eq!(home.ok(&["start", "--id", "tools", "--allow-read", &script.display().to_string()]), "tools\n");
    let mut call = gloveport(home.path());
    call.env_remove("XDG_STATE_HOME").current_dir(home.path());
    let called = call.args(["mcp", "call", "echo", "{\"text\": 2}", "--session", "tools"]).output().unwrap();
    assert_eq!(parts(&called), (Some(0), "a: 2\n".to_owned(), String::new()));
    home.ok(&["rm", "-f", "tools"]);
}

/// `gloveport mcp` with these words, in a home of its own that is the working directory.
fn at_home(home: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = gloveport(home);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
        command.env_remove(name);
    }
    parts(&command.current_dir(home).arg("mcp").args(words).output().unwrap())
}

#[test]
fn an_entry_is_shown_written_and_taken_out_again_and_all_else_stays() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).unwrap();
    let before = "{\n  // mine\n  \"mcpServers\": { \"other\": { \"url\": \"https://example.org\" } },\n}\n";
    fs::write(&file, before).unwrap();
    let flags = ["--", "--runtime", "docker", "--image", "python:3.13"];
    let words = [&["install", "cursor"][..], &flags].concat();
    // Without a terminal nobody is asked, and nothing is written.
    let (code, diff, error) = at_home(home.path(), &words);
    assert_eq!(code, Some(1), "{error}");
    assert!(diff.contains('+') && diff.contains("\"--image\"") && error.contains("--yes"), "{diff} {error}");
    let told: Value =
        serde_json::from_str(&at_home(home.path(), &[&["install", "cursor", "--json"], &flags[..]].concat()).1)
            .unwrap();
    assert_eq!((&told["changed"], &told["written"]), (&json!(true), &json!(false)));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let (code, _, error) = at_home(home.path(), &[&["install", "cursor", "--yes"], &flags[..]].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("Cursor sees it") && !error.contains("no isolation"), "{error}");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("{\n  // mine\n") && written.contains("\"other\""), "{written}");
    let entry = "\"args\": [\"mcp\", \"--runtime\", \"docker\", \"--image\", \"python:3.13\"]";
    assert!(written.replace(['\n', ' '], "").contains(&entry.replace(' ', "")), "{written}");
    let (code, said, _) = at_home(home.path(), &[&["install", "cursor", "--yes"], &flags[..]].concat());
    assert!(code == Some(0) && said.contains("nothing changes"), "{said}");
    let (code, ..) = at_home(home.path(), &["uninstall", "cursor", "--yes"]);
    assert_eq!((code, fs::read_to_string(&file).unwrap().as_str()), (Some(0), before));
    let (code, said, _) = at_home(home.path(), &["uninstall", "cursor", "--yes"]);
    assert!(code == Some(0) && said.contains("it is not there"), "{said}");
}

#[test]
fn an_entry_is_printed_for_every_client_and_a_project_has_its_own_file() {
    let home = tempfile::tempdir().unwrap();
    for (client, place, text) in [
        ("claude", ".claude.json", "\"mcpServers\""),
        ("claude-desktop", "claude_desktop_config.json", "\"mcpServers\""),
        ("cursor", ".cursor/mcp.json", "\"mcpServers\""),
        ("vscode", "Code/User/mcp.json", "\"servers\""),
        ("zed", "zed/settings.json", "\"context_servers\""),
        ("codex", ".codex/config.toml", "[mcp_servers.gloveport]"),
    ] {
        let (code, printed, error) = at_home(home.path(), &["install", client, "--print"]);
        assert_eq!(code, Some(0), "{client} {error}");
        assert!(
            printed.contains(text) && printed.contains("mcp") && error.contains(place),
            "{client} {printed} {error}"
        );
        assert!(printed.contains(env!("CARGO_BIN_EXE_gloveport")), "{client} {printed}");
    }
    let (code, _, error) = at_home(home.path(), &["install", "vscode", "--project", "--yes", "--name", "box"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("no isolation"), "{error}");
    let written: Value = serde_json::from_slice(&fs::read(home.path().join(".vscode/mcp.json")).unwrap()).unwrap();
    assert_eq!(written["servers"]["box"], json!({"type": "stdio", "command": "gloveport", "args": ["mcp"]}));
}

#[test]
fn an_entry_that_could_not_work_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".claude.json"), "{ \"mcpServers\": [] }").unwrap();
    for (words, code, said) in [
        (&["install", "emacs"][..], 2, "claude, claude-desktop, cursor, vscode, zed, codex"),
        (&["install", "cursor", "--yes", "--", "--wrong"], 2, "--wrong"),
        (&["install", "cursor", "--yes", "--", "--tools", "sell"], 2, "there is no tool `sell`"),
        (&["install", "cursor", "--yes", "--", "tools"], 2, "tools"),
        (&["install", "cursor", "--yes", "--", "--workspace", "here"], 1, "--workspace here is relative"),
        (&["install", "codex", "--yes", "--project"], 1, "Codex"),
        (&["install", "claude", "--yes"], 1, "mcpServers"),
        (&["install", "cursor", "--yes", "--name", "a\nb"], 1, "control character"),
    ] {
        let (found, _, error) = at_home(home.path(), words);
        assert_eq!(found, Some(code), "{words:?} {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
    assert_eq!(fs::read_to_string(home.path().join(".claude.json")).unwrap(), "{ \"mcpServers\": [] }");
    assert!(!home.path().join(".cursor").exists() && !home.path().join(".codex").exists());
}

#[test]
fn a_login_that_is_not_offered_says_so_and_leaves_nothing() {
    let server = Server::compat(&[], &[("SESSION_API_KEY", "s3cret")]);
    let home = tempfile::tempdir().unwrap();
    let url = server.url() + "/mcp";
    for (words, code, said) in [
        (&["login", &url][..], 1, "login"),
        (&["login", "ftp://127.0.0.1/x"], 1, "ftp"),
        (&["login", "http://example.org/mcp"], 1, "https"),
        (&["login", &url, "--client-secret-file", "x"], 2, "--client-id"),
    ] {
        let (found, _, error) = at_home(home.path(), words);
        assert_eq!(found, Some(code), "{words:?} {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
    assert_eq!(at_home(home.path(), &["logout", &url]), (Some(0), "there was no login\n".to_owned(), String::new()));
    let told: Value = serde_json::from_str(&at_home(home.path(), &["logout", &url, "--json"]).1).unwrap();
    assert_eq!(told, json!({"forgotten": false, "revoked": null}));
}
