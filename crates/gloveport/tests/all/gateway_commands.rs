//! The commands of a gateway's tenants, and its configuration file.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, process::Output, time::Instant};

use gloveport_testing::Postgres;
use serde_json::{Value, json};

use crate::{
    gateway::Program,
    sandboxes::LIMIT,
    support::{gloveport, text},
};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = gloveport(self.path());
        command.current_dir(self.path()).arg("gateway").args(arguments).output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{arguments:?}");
        text(&output.stderr)
    }
}

#[test]
fn tenants_and_keys_are_made_listed_changed_and_ended() {
    let home = Home::new();
    let with = |words: &[&'static str]| [words, &["--database", "gateway.db"]].concat();
    let done = |words: &[&'static str]| home.done(&with(words));
    let json = |words: &[&'static str]| home.json(&with(words));
    let fails = |words: &[&'static str]| home.fails(&with(words));
    assert!(fails(&["key", "list"]).contains("there is no database gateway.db"));
    assert!(!home.path().join("gateway.db").exists());
    assert!(done(&["tenant", "create", "a", "--running", "2", "--cpus", "1.5", "--memory", "4GiB"]).contains("4GiB"));
    assert!(fails(&["tenant", "create", "a"]).contains("there is a tenant `a` already"));
    assert!(fails(&["tenant", "create", "A'; DROP TABLE tenants; --"]).contains("no name of a tenant"));
    let set = ["tenant", "set", "a", "--unlimited", "memory", "--allow-image", "x/*", "--disable"];
    let tenant = json(&set);
    assert_eq!(
        (&tenant["running"], &tenant["memory_bytes"], &tenant["disabled"]),
        (&json!(2), &Value::Null, &json!(true))
    );
    assert_eq!((&tenant["images"], &tenant["cpu_millis"]), (&json!(["x/*"]), &json!(1500)));
    assert_eq!(json(&["tenant", "set", "a", "--enable"])["disabled"], false);
    assert_eq!(json(&["tenant", "list"])[0]["name"], "a");
    assert_eq!(json(&["tenant", "show", "a"])["usage"]["running"], 0);
    assert!(fails(&["key", "create", "b"]).contains("there is no tenant `b`"));

    // A key is alone on standard output, once.
    let key = done(&["key", "create", "a", "--label", "it's mine", "--expires", "90d"]);
    let key = key.strip_suffix('\n').unwrap();
    assert!(key.starts_with("gp_") && !key.contains(char::is_whitespace), "{key}");
    let id = key.split('_').nth(1).unwrap().to_owned();
    let listed = json(&["key", "list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["label"]), (&json!(id), &json!("it's mine")));
    assert!(!listed.to_string().contains(key));
    let rotated = home.json(&["key", "rotate", &id, "--grace", "1h", "--database", "gateway.db"]);
    let (new, fresh) = (rotated["id"].as_str().unwrap(), rotated["key"].as_str().unwrap());
    assert!(home.done(&["key", "revoke", new, "--database", "gateway.db"]).contains(new));
    assert!(home.fails(&["key", "rotate", new, "--database", "gateway.db"]).contains("there is no key"));
    let table = done(&["key", "list", "--tenant", "a"]);
    assert!(table.contains("revoked") && table.contains("good") && !table.contains(fresh), "{table}");
    assert_eq!(home.run(&["key", "revoke", "--database", "gateway.db"]).status.code(), Some(2));

    assert!(done(&["tenant", "delete", "a"]).contains("deleted"));
    assert_eq!(json(&["key", "list"]), json!([]));
    let lines = json(&["audit"]);
    let actions: Vec<&str> = lines.as_array().unwrap().iter().map(|line| line["action"].as_str().unwrap()).collect();
    let expected =
        ["tenant delete", "key revoke", "key rotate", "key create", "tenant set", "tenant set", "tenant create"];
    assert_eq!(actions, expected);
    let before = lines[1]["id"].to_string();
    let page = home.json(&["audit", "--before", &before, "-n", "2", "--database", "gateway.db"]);
    assert_eq!((page.as_array().unwrap().len(), &page[0]), (2, &lines[2]));
    assert_eq!(json(&["audit", "--tenant", "b"]), json!([]));
    assert!(done(&["audit", "--since", "1h", "--action", "key create"]).contains("command line"));
    assert_eq!(json(&["sessions"]), json!([]));
    // No key is in the database.
    for entry in fs::read_dir(home.path()).unwrap().map(Result::unwrap).filter(|it| it.path().is_file()) {
        let bytes = fs::read(entry.path()).unwrap();
        for key in [key, fresh] {
            let secret = key.rsplit('_').next().unwrap().as_bytes();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", entry.path().display());
        }
    }
    assert!(home.fails(&["tenant", "list"]).contains("--database"));
}

#[test]
fn a_configuration_file_is_checked_before_anything_is_started_and_read_anew() {
    let home = Home::new();
    let config = |more: &str| {
        let text = format!(
            "[gateway]\nport = 0\nkey_file = \"key\"\ndatabase = \"gateway.db\"\n\n[gateway.tenants.a]\nrunning = 1\n{more}"
        );
        home.write("gateway.toml", &text)
    };
    let file = config("runing = 2\n");
    let told = home.fails(&["--config", &file]);
    assert!(told.contains("gateway.toml, line 8: unknown field `runing`"), "{told}");
    let output = home.run(&["check", "--config", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("line 8"), "{}", text(&output.stdout));
    config("");
    // The key file is missing, and the check says what to do.
    let output = home.run(&["check", "--config", &file, "--json"]);
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let key = checks.as_array().unwrap().iter().find(|check| check["name"] == "key file").unwrap();
    assert_eq!((output.status.code(), &key["verdict"]), (Some(1), &json!("failed")));
    assert!(key["remedy"].as_str().unwrap().contains("openssl"));
    let key = "the key of a file, long enough";
    home.write("key", key);
    home.done(&["check", "--config", &file]);
    assert!(!home.path().join("gateway.db").exists());

    let start = || {
        let mut command = gloveport(home.path());
        command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR");
        // The paths of the file are beside it, wherever the gateway is started.
        command.current_dir("/").args(["gateway", "--config", &file]);
        Program::start(command)
    };
    let serving = start();
    let running = || home.json(&["tenant", "show", "a", "--config", &file])["tenant"]["running"].clone();
    assert_eq!(running(), 1);
    let reload = || {
        let pid = rustix::process::Pid::from_child(&serving.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    };
    config("\n[gateway.tenants.b]\nmemory = \"1GiB\"\n");
    reload();
    let began = Instant::now();
    while home.json(&["tenant", "list", "--config", &file]).as_array().unwrap().len() < 3 {
        assert!(began.elapsed() < LIMIT);
    }
    // A file that is wrong changes nothing and ends nothing.
    config("cpus = \"many\"\n");
    reload();
    let secret = home.done(&["key", "create", "b", "--database", "gateway.db"]);
    let errors = serving.end();
    assert!(errors.contains("was not read anew") && errors.contains("line 8"), "{errors}");
    assert!(!errors.contains(key) && !errors.contains(secret.trim()), "{errors}");
    assert_eq!(home.json(&["tenant", "show", "a", "--database", "gateway.db"])["tenant"]["running"], 1);
}

#[test]
fn a_database_that_is_down_is_told_at_the_start_without_its_password() {
    let home = Home::new();
    let password = "hunter2-of-nobody";
    let url = format!("postgres://me:{password}@127.0.0.1:1/gateway");
    let secret = home.write("url", &format!("{url}\n"));
    let file = home.write("gateway.toml", "[gateway]\nport = 0\ndatabase_file = \"url\"\n");
    for arguments in [&["--config", &file][..], &["key", "list", "--config", &file], &["--database", &url]] {
        let told = home.fails(arguments);
        assert!(told.contains("postgres://me@127.0.0.1:1/gateway") && !told.contains(password), "{told}");
    }
    let output = home.run(&["check", "--config", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("start the database") && !text(&output.stdout).contains(password));
    let mut command = gloveport(home.path());
    command.env("GLOVEPORT_GATEWAY_DATABASE", &url).env("RUST_LOG", "trace");
    for arguments in
        [&["gateway", "--help"][..], &["gateway", "key", "create", "--help"], &["gateway", "tenant", "list"]]
    {
        let output = command.args(arguments).output().unwrap();
        assert!(!format!("{}{}", text(&output.stdout), text(&output.stderr)).contains(password), "{arguments:?}");
        let mut next = gloveport(home.path());
        next.env("GLOVEPORT_GATEWAY_DATABASE", &url).env("RUST_LOG", "trace");
        command = next;
    }
    for (place, expected) in [(".", "cannot use the database file"), ("mysql://me:hunter2@x/y", "names no database")] {
        let told = home.fails(&["--database", place]);
        assert!(told.contains(expected) && !told.contains("hunter2"), "{told}");
    }
    assert!(Path::new(&secret).exists());
}

#[test]
fn the_commands_work_with_postgresql() {
    let Some(postgres) = Postgres::start() else { return };
    let home = Home::new();
    home.write("url", &postgres.database("gateway"));
    let file = home.write("gateway.toml", "[gateway]\nport = 0\ndatabase_file = \"url\"\n");
    home.done(&["check", "--config", &file]);
    home.done(&["tenant", "create", "a", "--config", &file]);
    let key = home.done(&["key", "create", "a", "--config", &file]);
    assert_eq!(home.json(&["key", "list", "--config", &file])[0]["tenant"], "a");
    assert_eq!(home.json(&["audit", "--config", &file]).as_array().unwrap().len(), 2);
    let mut command = gloveport(home.path());
    command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR").env("RUST_LOG", "debug");
    command.args(["gateway", "--config", &file]);
    let serving = Program::start(command);
    let errors = serving.end();
    assert!(!errors.contains(Postgres::password()) && !errors.contains(key.trim()), "{errors}");
}

#[test]
fn a_certificate_a_domain_and_proxies_are_checked_before_clients_meet_them() {
    let home = Home::new();
    home.write("key", "the key of a file, long enough");
    let files = crate::gateway_ways::certificate(home.path(), "30");
    let config = |more: &str| {
        let text = format!("[gateway]\nkey_file = \"key\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n{more}");
        home.write("gateway.toml", &text)
    };
    let checks = |more: &str| -> Vec<(String, String, String)> {
        let output = home.run(&["check", "--json", "--config", &config(more)]);
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let field = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
        let found = checks.as_array().unwrap().iter();
        found.map(|check| (field(check, "name"), field(check, "verdict"), field(check, "found"))).collect()
    };
    let has = |more: &str, name: &str, verdict: &str, part: &str| {
        let found = checks(more);
        let is_it = |it: &&(String, String, String)| it.0 == name && it.1 == verdict && it.2.contains(part);
        assert!(found.iter().any(|it| is_it(&it)), "{name} {verdict} {part}: {found:?}");
    };
    has("public_url = \"https://localhost\"\n", "certificate", "ok", "cert.pem");
    has("public_url = \"https://example.com\"\n", "certificate", "failed", "example.com");
    has("domain = \"example.com\"\n", "certificate", "failed", "sandbox.example.com");
    has("domain = \"127.0.0.1\"\n", "domain", "failed", "127.0.0.1");
    has("trusted_proxies = [\"0.0.0.0/0\"]\n", "trusted proxies", "failed", "0.0.0.0/0");
    has("allow_origins = [\"https://app.example\"]\n", "pages", "ok", "https://app.example");
    has("allow_origins = [\"app.example\"]\n", "pages", "failed", "`app.example` is not the origin of a page");
    has("[[warm]]\nfloor = 1\nceiling = 4\n", "warm pools", "ok", "4 sandboxes at most");
    has("[[warm]]\nfloor = 1\nimage = \"x\"\n", "warm pools", "failed", "names an image");
    crate::gateway_ways::certificate(home.path(), "2");
    has("", "certificate", "warning", "expires within a week");
    fs::write(&files.key, "no key").unwrap();
    has("", "certificate", "failed", "private key");
}
