//! Pages of other origins that may use the native API, and the servers of sandboxes, from a browser ([`gloveport_origins`]).
//! The interface of OpenHands is for programs.

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gloveport_origins::{Interface, Origins, Visit};
use gloveport_provider::SandboxId;

use crate::{
    path::{self, Aim},
    shared::Shared,
    way::AtHost,
};

/// What the native API of the gateway has for pages.
const OWN: &Interface = &Interface {
    methods: "DELETE, GET, HEAD, POST, PUT",
    accepted: "X-API-Key, Content-Type, Cache-Control, Last-Event-ID, X-Request-Id",
    exposed: "Retry-After, X-Request-Id",
};

/// A request that a page may have caused.
pub(crate) struct Asked {
    visit: Visit,
    /// The sandbox whose server it is for, and the path there.
    of_sandbox: Option<(SandboxId, String)>,
}

impl Asked {
    /// What this request asks for; none where there is nothing for pages.
    pub(crate) fn of(request: &Request, origins: &Origins) -> Option<Self> {
        if origins.is_empty() {
            return None;
        }
        let path = request.uri().path();
        let visit = |interface| Visit::new(origins, interface, request.method(), request.headers());
        let (id, rest) = match request.extensions().get::<AtHost>() {
            Some(AtHost { port: Some(_), .. }) => return None,
            Some(AtHost { id, port: None }) => (id.clone(), path),
            None if path.starts_with("/v1/") => return Some(Self { visit: visit(OWN), of_sandbox: None }),
            None => path::aim(path).ok().map(|Aim { id, rest }| (id, rest))?,
        };
        let is_for_pages = Interface::is_of_sandbox(rest);
        is_for_pages.then(|| Self { visit: visit(Interface::SANDBOX), of_sandbox: Some((id, rest.to_owned())) })
    }

    /// The visit, unless a program answers.
    pub(crate) async fn visit(self, shared: &Shared) -> Option<Visit> {
        match self.of_sandbox {
            Some((id, rest)) if self.visit.is_allowed() && !shared.is_for_pages(&id, &rest).await => None,
            _ => Some(self.visit),
        }
    }
}

/// The answer to a preflight, without what is said of the page.
pub(crate) fn preflight() -> Response {
    "OK".into_response()
}

impl Shared {
    /// Whether the server of a sandbox answers at a path, and not a program at a port of this name, and whether it asks for a
    /// key. What is not known has no secrets: a page may be told why it gets no answer.
    async fn is_for_pages(&self, id: &SandboxId, rest: &str) -> bool {
        let place = match self.known.get(id) {
            Some(place) => place,
            None => match self.look(id).await {
                Ok(place) => place,
                Err(_) => return true,
            },
        };
        place.has_key && path::port(rest, |name| place.urls.contains_key(name)).is_none()
    }
}
