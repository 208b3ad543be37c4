//! Snapshots: images that are made of sandboxes.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, RawQuery, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    list::paged,
    owner::{Handle, Who, json as read},
};
use crate::Refusal;

/// Most characters of a name.
const NAME: usize = 100;
/// Snapshots on one page at most, and if nothing is said.
const PAGE: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SnapshotRequest {
    name: Option<String>,
    memory: Option<bool>,
}

/// Keeps the files of a sandbox. Processes are no part of an image.
pub(super) async fn snapshot(
    State(_): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let SnapshotRequest { name, memory } = read(&body)?;
    if memory == Some(true) {
        return Err(Refusal::not_offered("a snapshot with memory is"));
    }
    let sandbox = owner.find(&id).await?;
    let random = gloveport_ids::random::<8>().map_err(|error| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the system gives no random numbers: {error}"))
    })?;
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("e2b-{random}"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins_well || name.len() > NAME || !name.bytes().all(is_plain) {
        let message = format!(
            "the name of a snapshot has 1 to {NAME} letters, digits, `.`, `_` and `-`, a letter or digit first"
        );
        return Err(Refusal::wrong(message));
    }
    let image = owner.0.snapshot(&sandbox.id, &name).await?;
    Ok((StatusCode::CREATED, Json(told(&image, &name))))
}

/// A snapshot. The first of its names is a template.
fn told(image: &str, name: &str) -> Value {
    json!({"snapshotID": image, "names": [image, name]})
}

/// One page of the snapshots of who asks, by name; on request those of one sandbox, or those of one name.
pub(super) async fn list(
    State(_): Handle,
    Extension(owner): Who,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let wanted = Wanted::read(query.as_deref())?;
    let session = match &wanted.sandbox {
        Some(id) => Some(owner.find(id).await?.session_id.to_string()),
        None => None,
    };
    let mut found = owner.0.snapshots().await?;
    found.retain(|it| {
        wanted.name.as_ref().is_none_or(|name| it.name == *name || it.image == *name)
            && (session.is_none() || it.session == session)
            && wanted.after.as_ref().is_none_or(|after| it.name > *after)
    });
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let has_more = found.len() > wanted.limit;
    found.truncate(wanted.limit);
    let next = found.last().filter(|_| has_more).map(|last| URL_SAFE_NO_PAD.encode(&last.name));
    let page = found.iter().map(|it| told(&it.image, &it.name)).collect();
    Ok(paged(page, next))
}

/// Deletes a snapshot. Templates of the configuration and other images are no snapshots.
pub(super) async fn delete(
    State(_): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    if owner.0.delete_snapshot(&id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, format!("snapshot '{id}' not found; only snapshots can be deleted")))
}

/// Which snapshots a list has.
struct Wanted {
    sandbox: Option<String>,
    name: Option<String>,
    limit: usize,
    after: Option<String>,
}

impl Wanted {
    fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let mut wanted = Self { sandbox: None, name: None, limit: PAGE, after: None };
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                _ if value.is_empty() => {}
                "sandboxID" => wanted.sandbox = Some(value.into_owned()),
                "name" => wanted.name = Some(value.into_owned()),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=PAGE).contains(limit));
                    wanted.limit = limit.ok_or_else(|| Refusal::wrong(format!("limit must be from 1 to {PAGE}")))?;
                }
                "nextToken" => {
                    let name = URL_SAFE_NO_PAD.decode(&*value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                    let wrong = || Refusal::wrong("nextToken is none that this server has given");
                    wanted.after = Some(name.ok_or_else(wrong)?);
                }
                _ => {}
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_for_snapshots_is_read_or_the_wrong_word_in_it_is_named() {
        let token = URL_SAFE_NO_PAD.encode("b");
        let wanted = Wanted::read(Some(&format!("sandboxID=x&name=&limit=3&nextToken={token}"))).unwrap();
        assert_eq!((wanted.sandbox.as_deref(), wanted.name, wanted.limit), (Some("x"), None, 3));
        assert_eq!(wanted.after.as_deref(), Some("b"));
        for wrong in ["limit=0", "limit=101", "limit=x", "nextToken=%21"] {
            let word = wrong.split('=').next().unwrap();
            assert!(Wanted::read(Some(wrong)).err().unwrap().message.starts_with(word), "{wrong}");
        }
    }
}
