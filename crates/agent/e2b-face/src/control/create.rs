//! A sandbox that is wanted.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::State,
    response::{IntoResponse as _, Response},
};
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{NetworkPolicy, Progress, ProviderError, Sandbox, SandboxSpec, SessionId};
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use super::{
    owner::{Handle, Owner, Who, json},
    state, templates, view,
};
use crate::{Refusal, headers::text, mark::Mark, shared::Shared};

/// Names the request, so that one that is sent again makes nothing twice.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Seconds that a sandbox runs if nobody says how long.
pub(super) const TIMEOUT: u64 = 300;
/// Most bytes of all metadata.
const METADATA: usize = 16 * 1024;
/// Time for the server of a sandbox to answer.
const ALIVE: Duration = Duration::from_mins(2);
/// What says to programs where they are.
const MARKERS: [(&str, &str); 1] = [("E2B_SANDBOX", "true")];
/// All addresses.
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// A sandbox that is wanted. What else a request has is for what is not offered, and is refused by name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateRequest {
    #[serde(rename = "templateID")]
    template: String,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
    #[serde(default)]
    auto_pause: Option<bool>,
    #[serde(default)]
    auto_pause_memory: Option<bool>,
    #[serde(default)]
    auto_resume: Option<AutoResume>,
    #[serde(default, rename = "allow_internet_access", alias = "allowInternetAccess")]
    internet: Option<bool>,
    #[serde(default)]
    network: Option<Network>,
    #[serde(default)]
    volume_mounts: Option<Vec<Value>>,
    #[serde(default)]
    mcp: Option<Value>,
    #[serde(default)]
    iam: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct AutoResume {
    #[serde(default)]
    enabled: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Network {
    allow_out: Option<Vec<String>>,
    deny_out: Option<Vec<String>>,
    allow_public_traffic: Option<bool>,
    /// What is not offered.
    egress_proxy: Option<Value>,
    rules: Option<Value>,
    dns_servers: Option<Value>,
    https_ports: Option<Value>,
    mask_request_host: Option<Value>,
}

pub(super) async fn create(
    State(shared): Handle,
    Extension(owner): Who,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: CreateRequest = json(&body)?;
    let key = text(&headers, &KEY).map(|key| check_key(key).map(|()| key)).transpose()?;
    let (mut mark, mut spec) = request.wanted(&shared, &owner)?;
    let _turn = match key {
        Some(key) => {
            spec.session_id = session_of(key)?;
            mark.request = Some(digest(&body));
            Some(turn(&shared, spec.session_id.as_str()).await?)
        }
        None => None,
    };
    spec.labels.extend(mark.labels().map_err(|error| Refusal::wrong(format!("metadata cannot be kept: {error}")))?);
    if !owner.0.capabilities().labels {
        // Without labels nothing is known of it: neither what the client says of it nor when it ends.
        return Err(Refusal::not_offered("sandboxes of a runtime without labels are"));
    }
    let sandbox = match owner.0.create(&spec, &Progress::silent()).await {
        Ok(sandbox) => sandbox,
        Err(ProviderError::SessionExists { sandbox, .. }) if mark.request.is_some() => {
            return repeated(&shared, &owner.find(sandbox.as_str()).await?, &mark);
        }
        Err(error) => return Err(error.into()),
    };
    // Should the client go away, it ends by its time.
    state::begin(&shared, &sandbox, &mark, mark.timeout);
    let sandbox = alive(&owner, sandbox).await?;
    shared.places.forget(&sandbox.id);
    Ok((StatusCode::CREATED, Json(view::sandbox(&shared, &sandbox, &mark))).into_response())
}

/// The sandbox when its server answers. One that does not is deleted.
pub(super) async fn alive(owner: &Owner, sandbox: Sandbox) -> Result<Sandbox, Refusal> {
    let id = sandbox.id.clone();
    let options = WaitOptions { limit: ALIVE, ..WaitOptions::default() };
    match wait_until_alive(&*owner.0, sandbox, &options, &Progress::silent()).await {
        Ok(sandbox) => Ok(sandbox),
        Err(error) => {
            if let Err(error) = owner.0.delete(&id).await {
                tracing::warn!(%id, %error, "a sandbox that does not answer is left until its time is over");
            }
            let message = format!("the sandbox was made, and its server did not answer: {error}");
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message).called("sandbox_create_failed"))
        }
    }
}

/// The answer to a request that was sent before.
fn repeated(shared: &Shared, sandbox: &Sandbox, mark: &Mark) -> Result<Response, Refusal> {
    let made = Mark::of(sandbox).ok_or_else(|| Refusal::no_sandbox(sandbox.id.as_str()))?;
    if made.request != mark.request {
        let message = "the Idempotency-Key was used for another request; take a new one";
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, message).called("idempotency_request_mismatch"));
    }
    Ok((StatusCode::CREATED, Json(view::sandbox(shared, sandbox, &made))).into_response())
}

/// One request of a key at a time; another one is refused, as E2B does.
async fn turn(shared: &Shared, key: &str) -> Result<tokio::sync::OwnedMutexGuard<()>, Refusal> {
    let mut keys = shared.keys.lock().await;
    keys.retain(|_, lock| Arc::strong_count(lock) > 1);
    let lock = Arc::clone(keys.entry(key.to_owned()).or_insert_with(|| Arc::new(Mutex::new(()))));
    let busy = |_| {
        let message = "a request with this Idempotency-Key is being worked on; ask again";
        Refusal::new(StatusCode::CONFLICT, message).called("idempotency_in_progress")
    };
    lock.try_lock_owned().map_err(busy)
}

fn check_key(key: &str) -> Result<(), Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=255).contains(&key.len()) && key.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Refusal::wrong("the Idempotency-Key must have 1 to 255 small letters, digits and hyphens"))
}

fn digest(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().take(20).fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn session_of(key: &str) -> Result<SessionId, Refusal> {
    SessionId::new(format!("e2b-{}", digest(key))).map_err(|error| Refusal::wrong(error.to_string()))
}

impl CreateRequest {
    fn wanted(self, shared: &Shared, owner: &Owner) -> Result<(Mark, SandboxSpec), Refusal> {
        self.check()?;
        let seconds = self.timeout.unwrap_or(TIMEOUT);
        let longest = state::check_timeout(shared, seconds)?;
        let can = owner.0.capabilities();
        let template = templates::named(&shared.options, &self.template, &can)?;
        let session = gloveport_ids::random::<12>().map_err(|error| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the system gives no random numbers: {error}"))
        })?;
        let session = SessionId::new(format!("e2b-{session}")).map_err(|error| Refusal::wrong(error.to_string()))?;
        let mut spec = SandboxSpec::new(session);
        spec.image = template.image;
        if template.code_interpreter {
            spec.plugins = vec!["jupyter".to_owned()];
        }
        spec.environment = self.env_vars.unwrap_or_default();
        for (name, value) in MARKERS {
            spec.environment.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        spec.leave_out_browser();
        spec.network = network(self.internet, self.network.as_ref())?;
        spec.keep_alive = can.keep_alive;
        // Should no gateway be left to end it.
        spec.time_to_live = can.time_to_live.then_some(longest);
        let mark = Mark {
            template: self.template,
            metadata: self.metadata.unwrap_or_default(),
            timeout: seconds,
            auto_pause: self.auto_pause == Some(true),
            request: None,
            internet: self.internet,
        };
        if mark.auto_pause && !can.pause {
            return Err(Refusal::not_offered("pausing sandboxes is"));
        }
        Ok((mark, spec))
    }

    /// What is asked for and not offered is refused, never passed over.
    fn check(&self) -> Result<(), Refusal> {
        let size: usize = self.metadata.iter().flatten().map(|(name, value)| name.len() + value.len()).sum();
        if size > METADATA {
            return Err(Refusal::wrong(format!("metadata has {size} bytes, and {METADATA} are possible")));
        }
        let network = self.network.as_ref();
        let is_said = |of: fn(&Network) -> &Option<Value>| {
            network.and_then(|network| of(network).as_ref()).is_some_and(|value| !value.is_null())
        };
        let refused = [
            ("volumeMounts are", self.volume_mounts.as_ref().is_some_and(|mounts| !mounts.is_empty())),
            ("mcp is", self.mcp.as_ref().is_some_and(|mcp| !mcp.is_null())),
            ("iam is", self.iam.as_ref().is_some_and(|iam| !iam.is_null())),
            ("autoResume is", self.auto_resume.as_ref().is_some_and(|resume| resume.enabled)),
            ("a pause that keeps the files alone (autoPauseMemory: false) is", self.auto_pause_memory == Some(false)),
            (
                "network.allowPublicTraffic: false (the ports of the gateway have no key) is",
                network.is_some_and(|network| network.allow_public_traffic == Some(false)),
            ),
            ("network.egressProxy is", is_said(|network| &network.egress_proxy)),
            ("network.rules are", is_said(|network| &network.rules)),
            ("network.dnsServers are", is_said(|network| &network.dns_servers)),
            ("network.httpsPorts are", is_said(|network| &network.https_ports)),
            ("network.maskRequestHost is", is_said(|network| &network.mask_request_host)),
        ];
        match refused.into_iter().find(|(_, asked)| *asked) {
            Some((what, _)) => Err(Refusal::not_offered(what)),
            None => Ok(()),
        }
    }
}

/// Whom it may talk to: everybody, nobody, or those who are allowed where all are denied.
fn network(internet: Option<bool>, network: Option<&Network>) -> Result<NetworkPolicy, Refusal> {
    let list = |list: Option<&Vec<String>>| list.cloned().unwrap_or_default();
    let allowed = list(network.and_then(|network| network.allow_out.as_ref()));
    let denied = list(network.and_then(|network| network.deny_out.as_ref()));
    let denies_all = internet == Some(false) || denied.iter().any(|net| ALL.contains(&net.as_str()));
    if !denies_all && !denied.is_empty() {
        return Err(Refusal::not_offered(
            "network.denyOut with some addresses alone is (deny all, and allow those that are needed)",
        ));
    }
    if allowed.iter().any(|net| ALL.contains(&net.as_str())) || !denies_all {
        return Ok(NetworkPolicy::Full);
    }
    Ok(if allowed.is_empty() { NetworkPolicy::None } else { NetworkPolicy::Only(allowed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_open_closed_or_has_a_list_and_what_it_cannot_be_is_refused() {
        let list = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        for (internet, allow, deny, expected) in [
            (None, None, None, Some(NetworkPolicy::Full)),
            (Some(true), None, None, Some(NetworkPolicy::Full)),
            (Some(false), None, None, Some(NetworkPolicy::None)),
            (None, None, list(&["0.0.0.0/0"]), Some(NetworkPolicy::None)),
            (None, list(&["a.org"]), list(&["0.0.0.0/0"]), Some(NetworkPolicy::Only(vec!["a.org".to_owned()]))),
            (Some(false), list(&["0.0.0.0/0"]), None, Some(NetworkPolicy::Full)),
            (None, None, list(&["10.0.0.0/8"]), None),
        ] {
            let asked = Network { allow_out: allow, deny_out: deny, ..Network::default() };
            assert_eq!(network(internet, Some(&asked)).ok(), expected, "{asked:?}");
        }
    }

    #[test]
    fn keys_are_plain_and_a_session_follows_from_them() {
        for (key, is_good) in [("a-1", true), ("", false), ("A", false), ("a/b", false), (&"a".repeat(256), false)] {
            assert_eq!(check_key(key).is_ok(), is_good, "{key}");
        }
        assert_eq!(session_of("t/a").unwrap(), session_of("t/a").unwrap());
        assert_ne!(session_of("t/a").unwrap(), session_of("t/b").unwrap());
    }
}
