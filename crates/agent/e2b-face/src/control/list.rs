//! Lists of sandboxes.

use axum::{
    Extension, Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use gloveport_provider::{ListFilter, Sandbox};
use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{
    filter::{self, Filter},
    owner::{Handle, Owner, Who},
    view,
};
use crate::{
    Refusal,
    mark::{LABEL, Mark},
    shared::Shared,
};

/// The header with what gives the next page.
const NEXT: HeaderName = HeaderName::from_static("x-next-token");

/// Those that run, all of them, as older SDKs ask for them.
pub(super) async fn list_running(
    State(shared): Handle,
    Extension(owner): Who,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<Value>>, Refusal> {
    let filter = Filter::read(query.as_deref())?.running();
    let found = find(&owner, &filter).await?;
    Ok(Json(found.iter().map(|(sandbox, mark)| view::listed(&shared, sandbox, mark)).collect()))
}

/// One page.
pub(super) async fn list(
    State(shared): Handle,
    Extension(owner): Who,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let filter = Filter::read(query.as_deref())?;
    let found = find(&owner, &filter).await?;
    let page = found.get(..filter.limit.min(found.len())).unwrap_or_default();
    let told: Vec<Value> = page.iter().map(|(sandbox, mark)| view::listed(&shared, sandbox, mark)).collect();
    let has_more = found.len() > page.len();
    let next = page.last().filter(|_| has_more).map(|(sandbox, _)| filter::token(&filter::place(sandbox)));
    Ok(paged(told, next))
}

/// A page, and what gives the next one.
pub(super) fn paged(told: Vec<Value>, next: Option<String>) -> Response {
    let mut response = Json(told).into_response();
    if let Ok(next) = HeaderValue::try_from(next.unwrap_or_default()) {
        response.headers_mut().insert(NEXT, next);
    }
    response
}

/// All that the filter takes, in its order.
pub(super) async fn find(owner: &Owner, filter: &Filter) -> Result<Vec<(Sandbox, Mark)>, Refusal> {
    let can = owner.0.capabilities();
    let labels = can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned())).into_iter().collect();
    let listed = owner.0.list(&ListFilter { labels, ended: false }).await?;
    let marked = listed.into_iter().filter_map(|sandbox| Mark::of(&sandbox).map(|mark| (sandbox, mark)));
    let mut found: Vec<_> = marked.filter(|(sandbox, mark)| filter.takes(sandbox, mark)).collect();
    found.sort_by_cached_key(|(sandbox, _)| filter::place(sandbox));
    if !filter.oldest_first {
        found.reverse();
    }
    Ok(found)
}

/// The sandboxes of who asks that run.
pub(super) async fn running(shared: &Shared, owner: &Owner) -> Result<Vec<Value>, Refusal> {
    let found = find(owner, &Filter::read(None)?.running()).await?;
    Ok(found.iter().map(|(sandbox, mark)| view::listed(shared, sandbox, mark)).collect())
}
