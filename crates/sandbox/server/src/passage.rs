//! What lets browsers in to the services of plugins, and passes their requests on.

#[cfg(test)]
mod tests;

use axum::{body::Body, extract::Request, response::Response};
use gloveport_plugin::Plugin;
use gloveport_proxy::{Admission, Mount, ProxyLimits, ServiceProxy, answer::request_body};
use http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::{
    answer, auth,
    options::{ServerOptions, SessionKey},
    policy,
};

/// What lets browsers in to plugins that have no token of their own.
#[derive(Debug)]
pub(crate) struct Passage {
    token: Option<SessionKey>,
}

impl Passage {
    /// With a token that is another one at each start of the server.
    pub(crate) fn new() -> Self {
        let token = gloveport_ids::uuid().inspect_err(|error| tracing::error!(%error, "there are no random numbers"));
        Self { token: token.ok().map(SessionKey::new) }
    }

    /// What lets a browser in to the service of a plugin; none for one without a service.
    pub(crate) fn token_of(&self, plugin: &dyn Plugin) -> Option<String> {
        plugin.service()?;
        plugin.path_token().or_else(|| self.token.as_ref().map(|token| token.secret().to_owned()))
    }

    /// Passes a request on to the service of a plugin. `plugin` is the one that was asked for by `name`, if there is one.
    pub(crate) async fn pass(
        &self,
        plugin: Option<&dyn Plugin>,
        name: &str,
        options: &ServerOptions,
        stop: &CancellationToken,
        request: Request,
    ) -> Response {
        let trust = auth::trust(options, &request);
        let Some((plugin, service)) = plugin.and_then(|plugin| Some((plugin, plugin.service()?))) else {
            // A stranger learns nothing of what there is, and neither does a page.
            let mut answered = match auth::check(options, &request) {
                Err(refusal) => *refusal,
                Ok(()) => answer::detail(StatusCode::NOT_FOUND, missing(plugin, name)),
            };
            policy::apply(&mut answered);
            return answered;
        };
        let token = self.token_of(plugin);
        let proxy = ServiceProxy {
            name: name.to_owned(),
            service,
            mount: Mount::new(&format!("/plugins/{name}"), ""),
            admission: Admission::new(name, token),
            limits: ProxyLimits::default(),
            stop: stop.clone(),
        };
        // The address of the client is known to the proxy before this server, if there is one.
        proxy.answer(request.map(request_body), None, trust).await.map(Body::new)
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
