//! A sandbox as requests reach it, remembered for a moment.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gloveport_client::{ActionExecutionClient, ClientError, ClientOptions, Pool};
use gloveport_protocol::Secret;
use gloveport_provider::{Sandbox, SandboxId};
use http::StatusCode;
use tokio::sync::OnceCell;

use crate::{Host, Refusal, mark};

/// How long what the engine has said is believed.
const FRESH: Duration = Duration::from_secs(2);
/// Sandboxes that are remembered.
const MOST: usize = 8192;

/// A sandbox as requests reach it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: ActionExecutionClient,
    facts: OnceCell<Facts>,
}

/// What is the same in a sandbox all its life.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The user that everything works as.
    pub(crate) user: String,
    /// The directory to which paths are relative.
    pub(crate) directory: String,
}

impl Place {
    fn new(sandbox: Sandbox, pool: &Pool) -> Result<Self, Refusal> {
        let url = sandbox.url.clone().ok_or_else(|| no_answer(&sandbox.id))?;
        let headers = sandbox.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let options = ClientOptions { headers, pool: Some(pool.clone()), ..ClientOptions::new(url) };
        let options = options.with_key(sandbox.session_key.as_ref().map(Secret::expose));
        let client = ActionExecutionClient::new(&options)?;
        Ok(Self { sandbox, client, facts: OnceCell::new() })
    }

    /// What is the same in the sandbox all its life.
    pub(crate) async fn facts(&self) -> Result<&Facts, ClientError> {
        let ask = async || {
            let listed = self.client.processes().list().await?;
            Ok(Facts { user: listed.user, directory: listed.directory })
        };
        self.facts.get_or_try_init(ask).await
    }
}

/// Sandboxes, remembered for a moment.
#[derive(Debug)]
pub(crate) struct Places {
    pool: Pool,
    known: Mutex<HashMap<SandboxId, (Instant, Arc<Place>)>>,
}

impl Places {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SandboxId, (Instant, Arc<Place>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sandbox that runs.
    pub(crate) async fn get(&self, host: &dyn Host, id: &SandboxId) -> Result<Arc<Place>, Refusal> {
        let known = self.known().get(id).cloned();
        if let Some((seen, place)) = &known
            && seen.elapsed() < FRESH
        {
            return Ok(Arc::clone(place));
        }
        let Some(sandbox) = host.find(id).await?.filter(|sandbox| mark::is_paused(sandbox) == Some(false)) else {
            self.forget(id);
            return Err(gone());
        };
        let is_same = |one: &Sandbox| (&one.url, &one.session_key) == (&sandbox.url, &sandbox.session_key);
        let place = match known {
            // What is known of it stays true.
            Some((_, place)) if is_same(&place.sandbox) => place,
            _ => Arc::new(Place::new(sandbox, &self.pool)?),
        };
        let mut all = self.known();
        if all.len() >= MOST {
            all.retain(|_, (seen, _)| seen.elapsed() < FRESH);
        }
        if all.len() < MOST {
            all.insert(id.clone(), (Instant::now(), Arc::clone(&place)));
        }
        Ok(place)
    }

    /// What is known of a sandbox may be wrong from now on.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.known().remove(id);
    }
}

/// What the proxy of E2B says of sandboxes that are not, no more, or paused (`hosted-apis` 2.4). The SDKs read the words.
pub(crate) fn gone() -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, "The sandbox was not found")
}

/// What it says where nobody listens.
pub(crate) fn no_answer(id: &SandboxId) -> Refusal {
    tracing::debug!(%id, "the server of a sandbox does not answer");
    Refusal::new(StatusCode::BAD_GATEWAY, "The sandbox is running but port is not open")
}
