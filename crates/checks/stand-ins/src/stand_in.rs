//! A service that listens, and what tests ask of it.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::Method,
    response::Response,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    Fault, Kind, Seen,
    answers::{broken, refusal, told},
    ports,
    world::{Asked, Face, Route, Shared, World, lock},
};

/// Longest body: our own program without its debug information taken out.
const BODY: usize = 1024 * 1024 * 1024;
/// Where paths begin that are the stand-in's own, and no service's.
const MANAGED: &str = "/stand-in/";

/// A service on this machine. It ends, with all that it has started, when this is dropped.
pub struct StandIn<F: Face> {
    world: Shared<F>,
    /// Its address, without a slash at the end.
    pub url: String,
    server: tokio::task::JoinHandle<()>,
    _root: tempfile::TempDir,
}

impl<F: Face> StandIn<F> {
    /// One whose sandboxes are directories, and whose processes are this machine's.
    pub async fn plain() -> Self {
        Self::start(Kind::Plain).await
    }

    /// One whose sandboxes have files and processes of their own; needs root.
    pub async fn apart() -> Self {
        Self::start(Kind::Apart).await
    }

    /// Starts it on a port that is free.
    ///
    /// # Panics
    ///
    /// It cannot listen on this machine, or make its directory.
    pub async fn start(kind: Kind) -> Self {
        let root = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(World::new(url.clone(), root.path().to_owned(), kind)));
        let router = Router::new().fallback(answer::<F>).with_state(Arc::clone(&world));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { world, url, server, _root: root }
    }

    /// What it has.
    pub fn world(&self) -> MutexGuard<'_, World<F>> {
        lock(&self.world)
    }

    /// A directory that plain sandboxes may use.
    pub fn directory(&self) -> PathBuf {
        self.world().root.join("shared")
    }

    /// The next request with this method whose path has this part fails so.
    pub fn fail(&self, method: Method, part: &str, fault: Fault) {
        self.world().wire.fail(method, part, fault);
    }

    /// Requests that came since this was asked last.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.world().wire.seen)
    }

    /// Ids of the sandboxes that it has and that have not ended.
    pub fn ids(&self) -> Vec<String> {
        let world = self.world();
        world.sandboxes.iter().filter(|(_, sandbox)| sandbox.machine.is_some()).map(|(id, _)| id.clone()).collect()
    }

    /// Members of a page of a list, at most.
    pub fn set_page(&self, page: usize) {
        self.world().page = page;
    }

    /// From now on changes of state take so long.
    pub fn set_slow(&self, slow: Duration) {
        self.world().slow = slow;
    }

    /// So much time goes by at once.
    pub fn advance(&self, time: Duration) {
        let mut world = self.world();
        world.ahead += time;
        F::turn(&mut world);
        world.changed();
    }

    /// Somebody deletes a sandbox, on a dashboard, and nothing tells of it any more.
    pub fn delete(&self, id: &str) {
        let mut world = self.world();
        world.sandboxes.remove(id);
        world.changed();
    }
}

impl<F: Face> Drop for StandIn<F> {
    fn drop(&mut self) {
        self.server.abort();
        self.world().sandboxes.clear();
    }
}

/// What programs that are not in this process ask of the stand-in itself: requests that came, what it has, faults that are to come,
/// time.
fn manage<F: Face>(world: &Shared<F>, what: &str, body: &Value) -> Response {
    let mut world = lock(world);
    match what {
        "requests" => {
            let seen = std::mem::take(&mut world.wire.seen).into_iter();
            let all = seen.map(|seen| json!({"method": seen.method.as_str(), "path": seen.path, "body": seen.body}));
            told(200, &all.collect())
        }
        "objects" => {
            let all = world.sandboxes.iter().map(|(id, sandbox)| {
                let (labels, state) = (&sandbox.labels, &sandbox.state);
                json!({"id": id, "labels": labels, "state": state, "more": F::more(&sandbox.more)})
            });
            told(200, &json!({"sandboxes": all.collect::<Vec<_>>(), "kept": world.face.kept()}))
        }
        "fail" => {
            let text = |name: &str| body[name].as_str().unwrap_or_default();
            let status = body["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            let headers = body["headers"].as_object().into_iter().flatten();
            let headers: Vec<_> = headers.map(|(name, value)| (&**name, value.as_str().unwrap_or_default())).collect();
            let fault = status.map_or(Fault::Lost, |status| Fault::status(status, &headers, text("message")));
            let Ok(method) = text("method").parse() else { return refusal(400, "method is missing") };
            world.wire.fail(method, text("path"), fault);
            told(200, &json!({}))
        }
        "advance" => {
            world.ahead += Duration::from_secs(body["seconds"].as_u64().unwrap_or_default());
            F::turn(&mut world);
            world.changed();
            told(200, &json!({}))
        }
        _ => refusal(404, "the stand-in does not know this"),
    }
}

async fn answer<F: Face>(State(world): State<Shared<F>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let seen = |body| Seen { method: parts.method.clone(), path: path.clone(), headers: parts.headers.clone(), body };
    let route = {
        let mut world = lock(&world);
        F::turn(&mut world);
        F::route(&mut world, &parts)
    };
    // What goes to a port may be long, and is passed on as it comes.
    let (whole, body) = match route {
        Route::Face => match axum::body::to_bytes(body, BODY).await {
            Ok(body) => (body, Body::empty()),
            Err(_) => return refusal(400, "the body did not come"),
        },
        Route::Port { .. } | Route::Refused(_) => (Bytes::new(), body),
    };
    if let Some(what) = path.strip_prefix(MANAGED) {
        return manage(&world, what, &serde_json::from_slice(&whole).unwrap_or_default());
    }
    let fault = lock(&world).wire.came(seen(F::read(&parts, &whole)));
    if let Some(fault) = &fault
        && let Some(answer) = fault.instead(F::refusal).await
    {
        return answer;
    }
    let answer = match route {
        Route::Face => F::answer(world, Asked { parts, body: whole }).await,
        Route::Port { port, path, .. } => ports::pass(parts, port, &path, body).await,
        Route::Refused(answer) => answer,
    };
    if matches!(fault, Some(Fault::Lost)) { broken() } else { answer }
}
