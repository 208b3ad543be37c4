//! Sessions over HTTP beside the interface of a gateway.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{Router, extract::Request, middleware, response::Response};
use clap::Args;
use gloveport_gateway::{self as gateway, Gateway, Tenant};
use gloveport_session_server::{self as session, Owner, SessionOptions, SessionServer};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::settings::Settings;
use crate::session::values::duration;

#[derive(Debug, Args)]
pub(super) struct SessionArgs {
    /// Serve sessions below /v1/sessions, and keep their histories in this directory. Gateways that share the directory share
    /// the sessions.
    #[arg(long, value_name = "DIR")]
    sessions_directory: Option<PathBuf>,
    /// Let a session go in which nothing has happened for this long; its sandbox stays, and the next request takes it up
    /// again. [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    session_idle: Option<Duration>,
}

impl SessionArgs {
    /// The same, with what the file says where the command line says nothing.
    pub(super) fn with(self, settings: &Settings) -> Self {
        Self {
            sessions_directory: self.sessions_directory.or_else(|| settings.sessions_directory.clone()),
            session_idle: self.session_idle.or(settings.session_idle),
        }
    }

    /// Who serves sessions, if anybody is to.
    pub(super) fn server(&self) -> anyhow::Result<Option<SessionServer>> {
        let Some(directory) = &self.sessions_directory else {
            anyhow::ensure!(
                self.session_idle.is_none(),
                "`session_idle` has no effect without `sessions_directory`, or --sessions-directory DIR"
            );
            return Ok(None);
        };
        let mut options = SessionOptions::new(directory);
        options.idle = self.session_idle.unwrap_or(options.idle);
        Ok(Some(SessionServer::new(options).context("--sessions-directory")?))
    }
}

/// The gateway with its sessions.
pub(super) fn beside(gateway: Gateway, server: Option<&SessionServer>) -> Gateway {
    match server {
        Some(server) => gateway.with_routes(routes(server), session::document()),
        None => gateway,
    }
}

/// The requests about sessions, in the name of the tenant that asks, with errors as the gateway tells them.
fn routes(server: &SessionServer) -> Router {
    let in_the_name_of_the_tenant = middleware::map_request(async |mut request: Request| {
        if let Some(tenant) = request.extensions().get::<Tenant>().cloned() {
            let owner = Owner { tenant: tenant.tenant().to_owned(), provider: Arc::new(tenant) };
            request.extensions_mut().insert(owner);
        }
        request
    });
    let as_the_gateway_tells_them = middleware::map_response(async |mut response: Response| {
        if let Some(refusal) = response.extensions_mut().remove::<session::Refusal>() {
            let session::Refusal { code, message } = refusal;
            response.extensions_mut().insert(gateway::Refusal { code, message });
        }
        response
    });
    server.router().route_layer(in_the_name_of_the_tenant).route_layer(as_the_gateway_tells_them)
}

/// Takes care of sessions until the gateway is asked to end.
pub(super) fn care(server: Option<&SessionServer>, stop: &CancellationToken) -> Option<AbortOnDropHandle<()>> {
    let (server, stop) = (server?.clone(), stop.clone());
    Some(AbortOnDropHandle::new(tokio::spawn(async move { server.care(stop).await })))
}
