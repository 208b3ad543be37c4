//! The services of plugins under `/plugins/NAME/`.
//!
//! These paths are for browsers, which cannot send the session's key. So beside the key, the token of the plugin lets in
//! (see [`gloveport_proxy::Gate`]), and the check of every other route does not apply to them.

#[cfg(test)]
mod tests;

use axum::{body::Body, extract::Request, response::Response};
use gloveport_plugin::Plugin;
use gloveport_proxy::{Gate, Limits, Mount, ServiceProxy, Trust, answer::request_body};
use http::{HeaderMap, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::{answer, auth, options::SessionKey};

/// The paths, for every method.
pub(crate) const PATHS: [&str; 3] = ["/plugins/{name}", "/plugins/{name}/", "/plugins/{name}/{*rest}"];

/// Whether a path is one of these, so that [`pass`] checks who asks.
pub(crate) fn owns(path: &str) -> bool {
    path.starts_with("/plugins/")
}

/// Passes a request on to the service of a plugin. `plugin` is the one that was asked for by `name`, if there is one.
pub(crate) async fn pass(
    plugin: Option<&dyn Plugin>,
    name: &str,
    key: Option<&SessionKey>,
    stop: &CancellationToken,
    request: Request,
) -> Response {
    let trust = trust(key, request.uri().path(), request.headers());
    let Some((plugin, service)) = plugin.and_then(|plugin| Some((plugin, plugin.service()?))) else {
        // A stranger learns nothing of what there is.
        return match trust {
            Trust::Stranger => answer::detail(StatusCode::FORBIDDEN, "Invalid API Key"),
            Trust::Known | Trust::Open => answer::detail(StatusCode::NOT_FOUND, missing(plugin, name)),
        };
    };
    let proxy = ServiceProxy {
        name: name.to_owned(),
        service,
        mount: Mount::new(&format!("/plugins/{name}"), ""),
        gate: Gate::new(name, plugin.path_token()),
        limits: Limits::default(),
        stop: stop.clone(),
    };
    // The address of the client is known to the proxy before this server, if there is one.
    proxy.answer(request.map(request_body), None, trust).await.map(Body::new)
}

fn trust(key: Option<&SessionKey>, path: &str, headers: &HeaderMap) -> Trust {
    match key {
        None => Trust::Open,
        Some(_) if auth::check(key, path, headers).is_ok() => Trust::Known,
        Some(_) => Trust::Stranger,
    }
}

fn missing(plugin: Option<&dyn Plugin>, name: &str) -> String {
    let Some(plugin) = plugin else {
        return format!("There is no plugin {name} here; start the sandbox with --plugins {name}");
    };
    match &*plugin.state().borrow() {
        gloveport_plugin::PluginState::Failed { reason, remedy } => {
            format!("The plugin {name} is not usable: {reason}; {remedy}")
        }
        _ => format!("The plugin {name} has no service that could be opened here"),
    }
}
