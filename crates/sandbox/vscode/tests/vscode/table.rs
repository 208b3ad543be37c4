//! The table of `ipython-and-plugins` 4.1, row by row, and the paths of 4.2 as a caller sees them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use gloveport_plugin::{Plugin as _, PluginState};
use gloveport_vscode::VsCode;

use crate::support::{Sandbox, free_port, get};

const SETTINGS: &str = "workspace/.vscode/settings.json";

/// Why the plugin is disabled, if it is.
fn disabled(plugin: &VsCode) -> Option<String> {
    match &*plugin.state().borrow() {
        PluginState::Failed { reason, remedy } => Some(format!("{reason}; {remedy}")),
        PluginState::Idle => None,
        other => panic!("it is {other:?} before its first use"),
    }
}

#[tokio::test]
async fn only_known_users_get_it() {
    for (user, variables, expected) in [
        ("root", vec![], true),
        ("openhands", vec![], true),
        ("me", vec![("RUNTIME_USERNAME", "me")], true),
        ("me", vec![("RUNTIME_USERNAME", "you")], false),
        ("me", vec![], false),
        ("", vec![("RUNTIME_USERNAME", "")], false),
    ] {
        let port = free_port().to_string();
        let mut sandbox = Sandbox::new("openvscode-server", &[variables, vec![("VSCODE_PORT", &port)]].concat());
        sandbox.host.surroundings.user_name = user.to_owned();
        let plugin = VsCode::default();
        plugin.initialize(&sandbox.host).await.unwrap();
        let reason = format!(
            "VS Code runs as root, openhands or $RUNTIME_USERNAME only, not as {user}; set RUNTIME_USERNAME to that name"
        );
        assert_eq!(disabled(&plugin), (!expected).then_some(reason));
        assert_eq!((plugin.token().is_some(), plugin.path_token().is_some()), (expected, expected), "{user}");
        // The user is looked at before the settings are.
        assert_eq!(sandbox.directory.path().join(SETTINGS).exists(), expected, "{user}");
        plugin.stop().await;
    }
}

#[tokio::test]
async fn only_the_settings_end_the_start() {
    let sandbox = Sandbox::new("openvscode-server", &[("VSCODE_PORT", &free_port().to_string())]);
    fs::write(sandbox.host.workspace.join(".vscode"), "").unwrap();
    let plugin = VsCode::default();
    let error = plugin.initialize(&sandbox.host).await.unwrap_err();
    let path = sandbox.directory.path().join(SETTINGS);
    assert_eq!(error.reason, format!("cannot write {}: File exists (os error 17)", path.display()));
    assert!(plugin.token().is_none() && plugin.service().is_none());
    plugin.stop().await;
}

#[tokio::test]
async fn the_settings_are_in_the_base_of_the_workspace() {
    for (base, expected) in [("../base/of it", "base/of it/.vscode/settings.json"), ("", SETTINGS)] {
        let sandbox = Sandbox::new("openvscode-server", &[("WORKSPACE_BASE", base)]);
        let plugin = VsCode::default();
        plugin.initialize(&sandbox.host).await.unwrap();
        let mode = fs::metadata(sandbox.directory.path().join(expected)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o666, "{base}");
        plugin.stop().await;
    }
}

#[tokio::test]
async fn without_a_port_of_its_own_there_is_no_token_for_callers_and_one_for_the_path() {
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let taken = taken.local_addr().map(|address| (address.port().to_string(), taken)).unwrap();
    for port in [None, Some("http"), Some("0"), Some("70000"), Some(taken.0.as_str())] {
        let variables: Vec<_> = port.iter().map(|port| ("VSCODE_PORT", *port)).collect();
        let sandbox = Sandbox::new("openvscode-server", &variables);
        let plugin = VsCode::default();
        plugin.initialize(&sandbox.host).await.unwrap();
        assert_eq!((plugin.token(), disabled(&plugin)), (None, None), "{port:?}");
        assert_eq!(plugin.path_token().map(|token| token.len()), Some(36), "{port:?}");
        assert!(plugin.service().is_some());
        plugin.stop().await;
        assert_eq!(*plugin.state().borrow(), PluginState::Stopped);
    }
}

#[tokio::test]
async fn without_a_server_it_is_disabled_and_the_start_goes_on() {
    let port = free_port();
    let sandbox =
        Sandbox::new("openvscode-server", &[("VSCODE_PORT", &port.to_string()), ("GLOVEPORT_VSCODE", "/no/such")]);
    let plugin = VsCode::default();
    plugin.initialize(&sandbox.host).await.unwrap();
    let reason = "GLOVEPORT_VSCODE names /no/such, which is no program; correct or remove GLOVEPORT_VSCODE";
    assert_eq!(disabled(&plugin).as_deref(), Some(reason));
    assert!(plugin.token().is_none() && plugin.path_token().is_none() && plugin.service().is_none());
    // Nobody listens on the port.
    drop(std::net::TcpListener::bind(("0.0.0.0", port)).unwrap());
    plugin.stop().await;
}

#[tokio::test]
async fn each_start_has_another_token_and_nothing_runs_before_the_first_use() {
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let sandbox = Sandbox::new("openvscode-server", &[("VSCODE_PORT", &free_port().to_string())]);
        let plugin = VsCode::default();
        plugin.initialize(&sandbox.host).await.unwrap();
        assert_eq!((plugin.name(), plugin.token()), ("vscode", plugin.path_token()));
        tokens.push(plugin.token().unwrap());
        assert_eq!((disabled(&plugin), sandbox.processes()), (None, vec![]));
        assert!(!format!("{plugin:?}").contains(tokens.last().unwrap().as_str()));
        plugin.stop().await;
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test]
async fn strangers_are_refused_and_start_nothing() {
    let port = free_port();
    let sandbox = Sandbox::new("openvscode-server", &[("VSCODE_PORT", &port.to_string())]);
    let plugin = VsCode::default();
    plugin.initialize(&sandbox.host).await.unwrap();
    for (path, headers) in [
        ("/", ""),
        ("/?tkn=x", ""),
        ("/?tkn=", "Cookie: vscode-tkn=x\r\n"),
        ("/version", "X-Session-API-Key: x\r\n"),
        ("/", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    ] {
        let page = get(port, path, headers).await;
        assert_eq!(page.status, 403, "{path} {headers}: {page:?}");
    }
    let page = get(port, "/", "Accept: text/html\r\n").await;
    assert!(page.body.contains("Open the URL that the sandbox gives for it"), "{}", page.body);
    assert_eq!((disabled(&plugin), sandbox.processes()), (None, vec![]));
    plugin.stop().await;
}
