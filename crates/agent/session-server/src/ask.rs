//! What all requests are read with.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Bytes,
    extract::{Query, State},
};
use gloveport_provider::SessionId;
use http::Uri;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{fault::Fault, owner::Owner, record::Key, sessions::Sessions};

/// Longest time that a request waits for what it asks for.
const WAIT: f64 = 300.0;

pub(crate) type Handle = State<Arc<Sessions>>;
pub(crate) type Who = Extension<Owner>;

/// The session of a path, as the tenant's. What cannot be an id is none.
pub(crate) fn key(owner: &Owner, session: &str) -> Result<Key, Fault> {
    // Tenants are parts of paths, as sessions are.
    SessionId::new(owner.tenant.as_str()).map_err(|_| Fault::missing())?;
    let id = SessionId::new(session).map_err(|_| Fault::missing())?;
    Ok(Key { tenant: owner.tenant.clone(), id })
}

/// A body that is a JSON object.
pub(crate) fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Fault> {
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Fault::wrong("the body of the request must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Fault::wrong(format!("the body of the request is not as it must be: {error}")))
}

/// A query.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Fault> {
    let read = Query::try_from_uri(uri).map(|Query(read)| read);
    read.map_err(|error| Fault::wrong(format!("the query cannot be understood: {error}")))
}

/// `?wait=SECONDS`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    wait: Option<f64>,
}

impl Wait {
    /// How long to wait, if at all.
    pub(crate) fn of(uri: &Uri) -> Result<Option<Duration>, Fault> {
        let Self { wait } = query(uri)?;
        let Some(seconds) = wait else { return Ok(None) };
        if !(0.0..=WAIT).contains(&seconds) {
            return Err(Fault::wrong(format!("`wait` must be 0 to {WAIT} seconds")));
        }
        Ok(Some(Duration::from_secs_f64(seconds)))
    }
}
