//! Addresses of what runs in a sandbox (action-execution-client 6, remote-runtime-api 4).

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;

use crate::support::{engine::Engine, hosted::options, within};
use gloveport_config::Config;
use gloveport_provider::{SandboxSpec, SessionId};
use gloveport_runtime::{Hosted, Runtime, RuntimeOptions};

fn session(engine: &Engine, plugins: &[&str]) -> Runtime {
    let spec = SandboxSpec::new(SessionId::new("session").unwrap());
    Runtime::new(RuntimeOptions {
        sid: "session".to_owned(),
        plugins: plugins.iter().map(|&name| name.to_owned()).collect(),
        ..RuntimeOptions::new(Config::default(), Hosted::new(engine.provider(), spec, options()))
    })
    .unwrap()
}

#[tokio::test]
async fn the_editor_has_the_url_that_its_provider_gives() {
    let folder = |engine: &Engine| engine.homes()[0].to_str().unwrap().to_owned();
    // Provider, URL of the editor, plugin, token, and what it becomes; FOLDER is the workspace.
    for (name, url, plugin, token, expected) in [
        ("local", Some("http://localhost:4321"), true, Some("t"), Some("http://localhost:4321/?tkn=t&folder=FOLDER")),
        ("docker", Some("http://localhost:1/"), true, Some("t"), Some("http://localhost:1/?tkn=t&folder=FOLDER")),
        ("kubernetes", Some("https://s.example"), true, Some("t"), Some("https://s.example/?tkn=t&folder=FOLDER")),
        ("remote", Some("https://h/box/vscode"), true, Some("t"), Some("https://h/box/vscode?tkn=t&folder=FOLDER")),
        ("remote", None, true, Some("t"), Some("http://vscode-HOST/?tkn=t&folder=FOLDER")),
        ("local", None, true, Some("t"), None),
        ("local", Some("http://localhost:4321"), false, Some("t"), None),
        ("local", Some("http://localhost:4321"), true, Some(""), None),
    ] {
        let engine = Engine::new(name, &[]);
        {
            let mut script = engine.script();
            script.urls = url.map(|url| ("vscode".to_owned(), url.to_owned())).into_iter().collect();
            script.token = token.map(str::to_owned);
        }
        let runtime = session(&engine, if plugin { &["vscode"] } else { &[] });
        assert_eq!(runtime.vscode_url().await.unwrap(), None);
        within(runtime.connect()).await.unwrap();
        let server = within(runtime.sandbox()).await.unwrap().url.unwrap();
        let host = server.trim_start_matches("http://");
        let expected = expected.map(|text| text.replace("FOLDER", &folder(&engine)).replace("HOST", host));
        assert_eq!(within(runtime.vscode_url()).await.unwrap(), expected);
        runtime.close().await;
    }
}

#[tokio::test]
async fn web_hosts_are_urls_with_the_ports_behind_them() {
    let engine = Engine::new("remote", &[]);
    let urls = [
        ("vscode", "https://vscode-h.example"),
        ("work-1", "https://work-1-h.example"),
        ("work-2", "http://localhost:51234"),
        ("broken", "no url"),
    ];
    engine.script().urls = urls.map(|(name, url)| (name.to_owned(), url.to_owned())).into();
    let runtime = session(&engine, &[]);
    assert!(runtime.web_hosts().is_err());
    within(runtime.connect()).await.unwrap();
    let expected = [("https://work-1-h.example", 12000), ("http://localhost:51234", 51234)];
    let expected: BTreeMap<_, _> = expected.map(|(url, port)| (url.to_owned(), port)).into();
    assert_eq!(runtime.web_hosts().unwrap(), expected);
    runtime.close().await;
}
