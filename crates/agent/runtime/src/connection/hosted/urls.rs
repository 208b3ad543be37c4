//! Addresses of what runs in a sandbox (action-execution-client 6, local-and-cli-runtime A8, remote-runtime-api 4).

use std::collections::BTreeMap;

use gloveport_provider::Sandbox;
use reqwest::Url;

use super::Engine;

/// Name of the URL of the web editor.
const EDITOR: &str = "vscode";

/// The URLs of the programs in it and the ports in it behind them, where a port is known.
pub(crate) fn web_hosts(sandbox: &Sandbox) -> BTreeMap<String, u16> {
    let port = |name: &String, url: &String| {
        let told = sandbox.ports.get(name).copied();
        told.or_else(|| url.parse::<Url>().ok()?.port_or_known_default())
    };
    let programs = sandbox.urls.iter().filter(|(name, _)| *name != EDITOR);
    programs.filter_map(|(name, url)| Some((url.clone(), port(name, url)?))).collect()
}

/// The URL of the web editor with its token, which opens this directory.
pub(crate) fn editor(engine: Engine, sandbox: &Sandbox, token: &str, folder: &str) -> Option<String> {
    let base = match sandbox.urls.get(EDITOR) {
        Some(url) => url.clone(),
        None if engine == Engine::Remote => beside_server(sandbox)?,
        None => return None,
    };
    let base = base.trim_end_matches('/');
    // Behind a path, the editor has no directory of its own.
    let separator = if base.ends_with("/vscode") { "" } else { "/" };
    Some(format!("{base}{separator}?tkn={token}&folder={folder}"))
}

/// The editor's address by that of the server: below the same path, or at a host of its own.
fn beside_server(sandbox: &Sandbox) -> Option<String> {
    let url: Url = sandbox.url.as_deref()?.parse().ok()?;
    let host = url.host_str()?;
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let (scheme, id) = (url.scheme(), &sandbox.id);
    Some(if url.path().starts_with(&format!("/{id}")) {
        format!("{scheme}://{host}/{id}/vscode")
    } else {
        format!("{scheme}://vscode-{host}")
    })
}
