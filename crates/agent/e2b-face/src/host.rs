//! What the face needs of the gateway around it.

use std::{fmt, net::IpAddr, sync::Arc};

use axum::{extract::Request, response::Response};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{Provider, Sandbox, SandboxId};
use http::HeaderMap;

use crate::Refusal;

/// What the face needs of the gateway around it.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// The sandboxes of who sent these headers from this address: as a provider that keeps to the policy and the quotas of
    /// the tenant. It takes the labels, the network and the times of a spec as they are.
    fn tenant<'a>(
        &'a self,
        headers: &'a HeaderMap,
        address: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<dyn Provider>, Refusal>>;

    /// A sandbox of whatever tenant, whose tokens say who may talk to it.
    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, Refusal>>;

    /// All sandboxes with this label, of all tenants.
    fn list<'a>(&'a self, label: (&'a str, &'a str)) -> BoxFuture<'a, Result<Vec<Sandbox>, Refusal>>;

    /// Ends a sandbox whose time is over.
    fn end<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), Refusal>>;

    /// Lets a sandbox rest whose time is over.
    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), Refusal>>;

    /// Whether what listens in a sandbox is the sandbox's own: not so where it shares its network with the machine.
    fn has_own_ports(&self) -> bool;

    /// Passes a request to a port of a sandbox, by the name that the port has in it, or to its server.
    fn pass(&self, id: SandboxId, port: Option<String>, request: Request) -> BoxFuture<'_, Response>;
}
