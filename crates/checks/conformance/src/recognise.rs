//! Why nothing can be checked: another protocol, or a key that is missing or wrong.

use std::time::Duration;

use serde_json::Value;

use crate::{
    ConformanceError, Server, Wire,
    server::{Answer, Request},
};

/// A better reason than that no directory can be made, where there is one.
pub(crate) async fn explained(server: &Server, error: ConformanceError, limit: Duration) -> ConformanceError {
    if !matches!(error, ConformanceError::Scratch { .. }) {
        return error;
    }
    tokio::time::timeout(limit, found(server)).await.ok().flatten().unwrap_or(error)
}

async fn found(server: &Server) -> Option<ConformanceError> {
    let (asked, url) = (server.wire(), server.url().to_owned());
    let spoken = spoken(server).await;
    if !spoken.contains(&asked) {
        return spoken.first().map(|spoken| ConformanceError::OtherWire { url, asked, spoken: *spoken });
    }
    let status = server.send(&guarded(asked)).await.ok()?.status;
    // SWE-ReX with some versions of its framework answers a wrong key with 500.
    let refused = matches!(status, 401 | 403) || (asked == Wire::Swerex && status == 500);
    let reason = if server.has_key() { "refuses the key" } else { "needs a key" };
    refused.then_some(ConformanceError::Key { url, reason, status })
}

/// A request that changes nothing and needs the key.
fn guarded(wire: Wire) -> Request {
    match wire {
        Wire::V0 => Request::post("/list_files", "{}"),
        Wire::Sdk => Request::get("/api/file/home"),
        Wire::Swerex => Request::get("/is_alive"),
    }
}

/// What the server seems to speak. No key is sent: it may be none of this server.
async fn spoken(server: &Server) -> Vec<Wire> {
    let asked = async |path: &str| server.send(&Request::get(path).without_key()).await.ok();
    let info = asked("/server_info").await.filter(|answer| answer.status == 200).map(|answer| answer.value());
    let alive = asked("/is_alive").await;
    let speaks = |wire: &Wire| match wire {
        Wire::V0 => info.as_ref().is_some_and(|info| info.get("resources").is_some()),
        Wire::Sdk => info.as_ref().is_some_and(|info| info.get("sdk_version").is_some()),
        Wire::Swerex => alive.as_ref().is_some_and(is_swerex),
    };
    Wire::ALL.into_iter().filter(speaks).collect()
}

/// Whether this is what SWE-ReX answers to `/is_alive`, with a key or without one.
fn is_swerex(answer: &Answer) -> bool {
    let body = answer.value();
    match answer.status {
        200 => body.get("is_alive").is_some_and(Value::is_boolean),
        401 | 403 => body.get("detail").and_then(Value::as_str) == Some("Not authenticated"),
        _ => false,
    }
}
