//! The native API of our gateway, for what the Remote Runtime API has no words for: labels, logs, snapshots, limits, times.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_protocol::Secret;
use gloveport_provider::{
    Capabilities, Lifetime, ListFilter, LogOptions, LogStream, MOST_SNAPSHOTS, NetworkPolicy, ProviderError, Restarts,
    Sandbox, SandboxId, SandboxSpec, SandboxState, SessionId, Snapshot, StandsFor,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{provider::NAME, service::Service};

/// Sandboxes of a page.
const PAGE: usize = 500;
/// Most pages of a list.
const PAGES: usize = 1000;
/// Largest piece of a log.
const PIECE: usize = 64 * 1024;

/// What the service can do by its native API; `None` if it has none.
pub(crate) async fn capabilities(service: &Service) -> Result<Option<Capabilities>, ProviderError> {
    #[derive(Deserialize)]
    struct Told {
        api: String,
        capabilities: Map<String, Value>,
    }
    let told = match service.get::<Told>("tell what it can do", "/v1/capabilities").await {
        Ok(told) => told,
        // What does not know the path answers in many ways.
        Err(error) if !error.is_temporary() => {
            tracing::debug!(%error, "the service has no native API");
            None
        }
        Err(error) => return Err(error),
    };
    Ok(told.filter(|told| told.api == "v1").map(|told| understood(told.capabilities)))
}

/// Those that this version knows. A newer gateway may name more.
fn understood(told: Map<String, Value>) -> Capabilities {
    let known: Map<String, Value> = match serde_json::to_value(Capabilities::NONE) {
        Ok(Value::Object(known)) => known,
        Ok(_) | Err(_) => Map::new(),
    };
    let told: Map<String, Value> = told.into_iter().filter(|(name, _)| known.contains_key(name)).collect();
    let can: Capabilities = serde_json::from_value(Value::Object(told)).unwrap_or_default();
    // A wish to a service has no place for a level, nor for whom a secret is.
    Capabilities { stands_for: Some(StandsFor::Remote), confine: false, edge_secrets: false, audit: false, ..can }
}

/// What the names of labels begin with that gateways set themselves.
const RESERVED: [&str; 3] = ["gloveport-gateway", "gloveport-tenant", "gloveport-session"];
/// What is put before those of a gateway over this one, so that both keep theirs.
const OUTER: &str = "outer.";

/// The name that a label has at the service.
fn outward(name: &str) -> String {
    let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if begins(OUTER) || RESERVED.iter().any(|reserved| begins(reserved)) {
        format!("{OUTER}{name}")
    } else {
        name.to_owned()
    }
}

/// The name that a label of the service has here.
fn inward(name: String) -> String {
    name.strip_prefix(OUTER).map(str::to_owned).unwrap_or(name)
}

/// Asks for a sandbox.
#[derive(Debug, Serialize)]
struct Create<'a> {
    session_id: &'a SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_dir: Option<&'a str>,
    environment: &'a BTreeMap<String, String>,
    secrets: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_api_key: Option<&'a str>,
    labels: BTreeMap<String, &'a str>,
    plugins: &'a [String],
    resources: Resources,
    network: Value,
    ports: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_seconds: Option<u64>,
    kept: bool,
}

#[derive(Debug, Serialize)]
struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<u32>,
    gpus: bool,
}

impl<'a> Create<'a> {
    fn of(spec: &'a SandboxSpec) -> Self {
        // The interface has whole seconds, and a time must not become none.
        let seconds = |time: Duration| (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1);
        let limits = &spec.limits;
        Self {
            session_id: &spec.session_id,
            image: spec.image.as_deref(),
            command: spec.command.as_deref(),
            working_dir: spec.working_dir.as_deref(),
            environment: &spec.environment,
            secrets: spec.secrets.iter().map(|(name, value)| (name.as_str(), value.expose())).collect(),
            session_api_key: spec.session_key.as_ref().map(Secret::expose),
            labels: spec.labels.iter().map(|(name, value)| (outward(name), value.as_str())).collect(),
            plugins: &spec.plugins,
            resources: Resources {
                cpus: limits.cpus,
                memory_bytes: limits.memory,
                disk_bytes: limits.disk,
                processes: limits.processes,
                factor: limits.factor,
                gpus: limits.gpus,
            },
            network: match &spec.network {
                NetworkPolicy::Full => json!("full"),
                NetworkPolicy::None => json!("none"),
                NetworkPolicy::Only(hosts) => json!({"only": hosts}),
            },
            ports: spec.ports.iter().map(|port| json!({"name": port.name, "port": port.port})).collect(),
            user: spec.user.map(|who| json!({"user": who.user, "group": who.group, "files_group": who.files_group})),
            runtime_class: spec.runtime_class.as_deref(),
            ttl_seconds: spec.time_to_live.map(seconds),
            idle_seconds: spec.idle_stop.map(seconds),
            kept: spec.keep_alive,
        }
    }
}

/// A sandbox as the service tells it.
#[derive(Debug, Deserialize)]
struct Told {
    id: SandboxId,
    session_id: SessionId,
    state: String,
    #[serde(default)]
    reason: String,
    url: String,
    session_api_key: Option<Secret>,
    #[serde(default)]
    ports: Vec<Port>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    image: Option<String>,
    workspace: Option<String>,
    kept: bool,
    created_at: Option<String>,
    expires_at: Option<String>,
    #[serde(default)]
    restarts: Restarts,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "these are the names of the interface")]
struct Port {
    name: String,
    port: Option<u16>,
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Page {
    sandboxes: Vec<Told>,
    next_cursor: Option<String>,
}

impl From<Told> for Sandbox {
    fn from(told: Told) -> Self {
        let reason = told.reason;
        let state = match told.state.as_str() {
            "pending" => SandboxState::Pending,
            "running" => SandboxState::Running,
            "paused" => SandboxState::Paused,
            "stopped" => SandboxState::Stopped(reason),
            "failed" => SandboxState::Failed(reason),
            "crash_looping" => SandboxState::CrashLooping(reason),
            "unknown" => SandboxState::Unknown(reason),
            other => SandboxState::Unknown(format!("the service says `{other}`")),
        };
        let numbers = told.ports.iter().filter_map(|port| Some((port.name.clone(), port.port?))).collect();
        let urls = told.ports.into_iter().filter_map(|port| Some((port.name, port.url?))).collect();
        Self {
            id: told.id,
            session_id: told.session_id,
            provider: NAME.to_owned(),
            state,
            url: Some(told.url.trim_end_matches('/').to_owned()).filter(|url| !url.is_empty()),
            session_key: told.session_api_key.filter(|key| !key.is_empty()),
            urls,
            ports: numbers,
            headers: BTreeMap::new(),
            labels: told.labels.into_iter().map(|(name, value)| (inward(name), value)).collect(),
            image: told.image,
            workspace: told.workspace,
            lifetime: if told.kept { Lifetime::Kept } else { Lifetime::Backend },
            created: told.created_at.as_deref().and_then(time),
            expires: told.expires_at.as_deref().and_then(time),
            restarts: told.restarts,
        }
    }
}

/// A time as it is told, if it is one.
fn time(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

/// A text as a value in a query.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The answer to a path that is not there.
fn not_served(service: &Service, action: &str) -> ProviderError {
    service.failed(action, "its native API is gone (status 404)".to_owned())
}

/// Makes a sandbox. That the session has none must be known.
pub(crate) async fn create(service: &Service, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    let action = "start a sandbox";
    let told: Option<Told> = service.post(action, "/v1/sandboxes", &Create::of(spec)).await?;
    told.map(Sandbox::from).ok_or_else(|| not_served(service, action))
}

/// A sandbox by its id.
pub(crate) async fn find(service: &Service, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
    let told: Option<Told> = service.get("look at a sandbox", &format!("/v1/sandboxes/{id}")).await?;
    Ok(told.map(Sandbox::from))
}

/// The sandbox of a session.
pub(crate) async fn of_session(service: &Service, session: &SessionId) -> Result<Option<Sandbox>, ProviderError> {
    let query = format!("session_id={session}&include_ended=true");
    let mut found = pages(service, &query).await?;
    let at = found.iter().position(|sandbox| sandbox.state.is_live()).unwrap_or_default();
    Ok((at < found.len()).then(|| found.swap_remove(at)))
}

/// The sandboxes that a filter lets through.
pub(crate) async fn list(service: &Service, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
    let labels =
        filter.labels.iter().map(|(name, value)| format!("&label={}", encoded(&format!("{}={value}", outward(name)))));
    let labels: String = labels.collect();
    pages(service, &format!("include_ended={}{labels}", filter.ended)).await
}

async fn pages(service: &Service, query: &str) -> Result<Vec<Sandbox>, ProviderError> {
    let action = "list sandboxes";
    let (mut all, mut cursor) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let path = format!("/v1/sandboxes?limit={PAGE}&{query}{cursor}");
        let page: Option<Page> = service.get(action, &path).await?;
        let page = page.ok_or_else(|| not_served(service, action))?;
        all.extend(page.sandboxes.into_iter().map(Sandbox::from));
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={}", encoded(&next)),
            None => return Ok(all),
        }
    }
    Err(service.failed(action, format!("its list has more than {PAGES} pages")))
}

/// Lets a sandbox rest or go on, by the last part of the path. Whether there is one.
pub(crate) async fn turn(service: &Service, id: &SandboxId, to: &str) -> Result<bool, ProviderError> {
    service.tell(&format!("{to} a sandbox"), &format!("/v1/sandboxes/{id}/{to}"), &json!({})).await
}

/// Ends a sandbox. Whether there was one.
pub(crate) async fn delete(service: &Service, id: &SandboxId) -> Result<bool, ProviderError> {
    service.delete("stop a sandbox", &format!("/v1/sandboxes/{id}")).await
}

/// What the server of a sandbox writes.
pub(crate) async fn logs(service: &Service, id: &SandboxId, options: LogOptions) -> Result<LogStream, ProviderError> {
    let tail = options.tail.map(|lines| format!("&tail={lines}")).unwrap_or_default();
    let path = format!("/v1/sandboxes/{id}/logs?follow={}{tail}", options.follow);
    let answer = service.stream("give a log", &path).await?.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
    let name = service.name();
    let cut_off = move |error: reqwest::Error| ProviderError::Engine {
        engine: name.clone(),
        action: "give the rest of a log".to_owned(),
        reason: gloveport_client::causes(&error.without_url()),
    };
    let pieces = answer.bytes_stream().map_err(cut_off).map_ok(|mut chunk: Bytes| {
        let mut pieces = Vec::new();
        while !chunk.is_empty() {
            pieces.push(Ok(chunk.split_to(chunk.len().min(PIECE))));
        }
        stream::iter(pieces)
    });
    Ok(pieces.try_flatten().boxed())
}

/// Keeps the files of a sandbox as an image.
pub(crate) async fn snapshot(service: &Service, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
    #[derive(Deserialize)]
    struct Kept {
        image: String,
    }
    let path = format!("/v1/sandboxes/{id}/snapshot");
    let kept: Option<Kept> = service.post("make a snapshot", &path, &json!({"name": name})).await?;
    kept.map(|kept| kept.image).ok_or_else(|| ProviderError::NotFound(id.clone()))
}

/// The snapshots that are kept; `None` for a gateway that is too old to tell.
pub(crate) async fn snapshots(service: &Service) -> Result<Option<Vec<Snapshot>>, ProviderError> {
    #[derive(Deserialize)]
    struct Kept {
        snapshots: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        image: String,
        name: String,
        #[serde(default)]
        session_id: Option<String>,
        #[serde(default)]
        created_at: Option<String>,
    }
    let kept: Option<Kept> = service.get("list snapshots", "/v1/snapshots").await?;
    let one = |One { image, name, session_id, created_at }| Snapshot {
        image,
        name,
        session: session_id,
        created: created_at.as_deref().and_then(time),
    };
    Ok(kept.map(|kept| kept.snapshots.into_iter().take(MOST_SNAPSHOTS).map(one).collect()))
}

/// Deletes a snapshot.
pub(crate) async fn delete_snapshot(service: &Service, image: &str) -> Result<bool, ProviderError> {
    let encoded: String = form_urlencoded::byte_serialize(image.as_bytes()).collect();
    service.delete("delete a snapshot", &format!("/v1/snapshots/{encoded}")).await
}

/// Makes a sandbox of another one.
pub(crate) async fn fork(service: &Service, id: &SandboxId, session: &SessionId) -> Result<Sandbox, ProviderError> {
    let path = format!("/v1/sandboxes/{id}/fork");
    let told: Option<Told> = service.post("fork a sandbox", &path, &json!({"session_id": session})).await?;
    told.map(Sandbox::from).ok_or_else(|| ProviderError::NotFound(id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_gateway_can_do_beyond_this_is_passed_over() {
        let Value::Object(told) = json!({"isolation": "container", "labels": true, "teleports": true, "logs": false})
        else {
            return;
        };
        let can = understood(told);
        assert!(can.labels && !can.logs && can.stands_for == Some(StandsFor::Remote));
        assert_eq!(can.isolation, gloveport_provider::Isolation::Container);
    }

    #[test]
    fn a_sandbox_is_read_as_it_is_told() {
        let told: Told = serde_json::from_value(json!({
            "id": "r", "session_id": "s", "state": "stopped", "reason": "its time is over", "url": "https://h/r",
            "session_api_key": "k", "ports": [{"name": "web", "port": 80, "url": "https://h/r/web"}, {"name": "x", "port": 1, "url": null}],
            "labels": {"a": "b"}, "image": null, "workspace": "/w", "kept": false, "created_at": "2026-01-31T12:00:00.500Z",
            "expires_at": null, "restarts": {"count": 1, "reasons": ["Error"]}, "more": {},
        }))
        .unwrap();
        let sandbox = Sandbox::from(told);
        assert_eq!(sandbox.state, SandboxState::Stopped("its time is over".to_owned()));
        assert_eq!(sandbox.ports, [("web".to_owned(), 80), ("x".to_owned(), 1)].into());
        assert_eq!(sandbox.urls, [("web".to_owned(), "https://h/r/web".to_owned())].into());
        assert_eq!((sandbox.lifetime, sandbox.labels["a"].as_str()), (Lifetime::Backend, "b"));
        let since = sandbox.created.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since, Duration::from_millis(1_769_860_800_500));
    }

    #[test]
    fn labels_of_a_gateway_over_a_gateway_are_those_of_neither() {
        for (name, at_service) in [
            ("team", "team"),
            ("gloveport.secrets", "gloveport.secrets"),
            ("gloveport-gateway", "outer.gloveport-gateway"),
            ("outer.gloveport-tenant", "outer.outer.gloveport-tenant"),
        ] {
            assert_eq!(outward(name), at_service);
            assert_eq!(inward(at_service.to_owned()), name);
        }
    }

    #[test]
    fn a_time_is_never_sent_as_none() {
        let mut spec = SandboxSpec::new(SessionId::new("s").unwrap());
        (spec.time_to_live, spec.idle_stop) = (Some(Duration::from_millis(1)), Some(Duration::from_millis(1500)));
        let sent = serde_json::to_value(Create::of(&spec)).unwrap();
        assert_eq!((&sent["ttl_seconds"], &sent["idle_seconds"]), (&json!(1), &json!(2)));
    }
}
