//! Lists in pages.

use axum::{
    Extension, Json,
    extract::{RawQuery, State},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_provider::{ListFilter, Sandbox};
use http::HeaderMap;
use jiff::Timestamp;
use serde::Serialize;

use super::{
    context::{Handle, Who},
    cursor::Place,
    query::{Query, shown},
    request::check_label_name,
    view::{STATES, View, word},
};
use crate::{fault::Fault, identity, labels::LABEL, shared::Shared};

/// Sandboxes of a page, unless another number is asked for.
const PAGE: usize = 100;
/// Most sandboxes of a page.
const LARGEST_PAGE: usize = 500;
/// Sandboxes that are asked about at a time.
const AT_ONCE: usize = 8;
/// The parameters.
const KNOWN: [&str; 8] =
    ["label", "state", "session_id", "created_after", "created_before", "include_ended", "limit", "cursor"];
/// States of sandboxes that have ended.
const ENDED: [&str; 2] = ["stopped", "failed"];

/// A page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    sandboxes: Vec<View>,
    /// Where the next page begins; `null` on the last one.
    next_cursor: Option<String>,
}

/// Which sandboxes are wanted.
#[derive(Debug)]
struct Wanted {
    /// Labels with their values, or of any value.
    labels: Vec<(String, Option<String>)>,
    states: Vec<String>,
    sessions: Vec<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
    ended: bool,
    limit: usize,
    from: Option<Place>,
    /// What a cursor belongs to.
    filters: String,
}

impl Wanted {
    fn read(query: &Query) -> Result<Self, Fault> {
        let labels = query.all("label").map(|text| {
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            check_label_name(name)?;
            Ok((name.to_owned(), value.map(str::to_owned)))
        });
        let labels = labels.collect::<Result<Vec<_>, Fault>>()?;
        let states: Vec<String> = query.all("state").flat_map(|states| states.split(',')).map(str::to_owned).collect();
        if let Some(state) = states.iter().find(|state| !STATES.contains(&state.as_str())) {
            let known = STATES.join(", ");
            return Err(Fault::wrong(format!("`state` cannot be `{}`; it must be of: {known}", shown(state))));
        }
        let time = |name: &str| {
            let Some(text) = query.one(name)? else { return Ok(None) };
            let wrong = |_| {
                let text = shown(text);
                Fault::wrong(format!("`{name}` must be a time like 2026-01-31T12:00:00Z, not `{text}`"))
            };
            text.parse::<Timestamp>().map(Some).map_err(wrong)
        };
        let (after, before) = (time("created_after")?, time("created_before")?);
        let mut sessions: Vec<String> = query.all("session_id").map(str::to_owned).collect();
        sessions.sort();
        sessions.dedup();
        let ended = query.flag("include_ended")? || states.iter().any(|state| ENDED.contains(&state.as_str()));
        let filters = format!("{labels:?} {states:?} {sessions:?} {after:?} {before:?} {ended}");
        let limit = query.number("limit", LARGEST_PAGE)?.unwrap_or(PAGE);
        if limit == 0 {
            return Err(Fault::wrong(format!("`limit` must be a number from 1 to {LARGEST_PAGE}")));
        }
        let from = query.one("cursor")?.map(|cursor| Place::read(cursor, &filters)).transpose()?;
        Ok(Self { labels, states, sessions, after, before, ended, limit, from, filters })
    }

    /// Whether a sandbox is wanted, as far as everybody can see.
    fn fits(&self, sandbox: &Sandbox) -> bool {
        let has = |(name, value): &(String, Option<String>)| {
            let known = sandbox.labels.get(name);
            value.as_ref().map_or(known.is_some(), |value| known == Some(value))
        };
        let created = sandbox.created.and_then(|time| Timestamp::try_from(time).ok());
        let is_within = self.after.is_none_or(|after| created.is_some_and(|time| time >= after))
            && self.before.is_none_or(|before| created.is_some_and(|time| time < before));
        is_within
            && self.labels.iter().all(has)
            && (self.states.is_empty() || self.states.contains(&word(&sandbox.state)))
            && (self.ended || sandbox.state.is_live())
            && self.from.as_ref().is_none_or(|from| Place::of(sandbox) > *from)
    }
}

/// The sandboxes of the tenant, the oldest first.
pub(super) async fn list(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<Page>, Fault> {
    let public = shared.public_url(&headers)?;
    let wanted = Wanted::read(&Query::read(query.as_deref(), &KNOWN)?)?;
    if !shared.can.labels && !wanted.labels.is_empty() {
        return Err(shared.provider.cannot("labels").into());
    }
    let own = shared.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned()));
    let tenant = identity::filter(who.name()).filter(|_| shared.can.labels);
    let labels = wanted.labels.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    let filter = ListFilter { labels: labels.chain(own).chain(tenant).collect(), ended: wanted.ended };
    let mut listed = Vec::new();
    if wanted.sessions.is_empty() {
        listed = shared.provider.list(&filter).await?;
    }
    for session in &wanted.sessions {
        listed.extend(shared.of_session(&who, session).await?);
    }
    listed.retain(|sandbox| wanted.fits(sandbox));
    listed.sort_by_cached_key(Place::of);

    // One more than the page has, which tells whether there is another page.
    let theirs = stream::iter(listed).map(Ok::<_, Fault>).try_filter_map(|sandbox| shared.of_tenant(&who, sandbox));
    let mut page: Vec<Sandbox> = theirs.take(wanted.limit + 1).try_collect().await?;
    let has_more = page.len() > wanted.limit;
    page.truncate(wanted.limit);
    let last = page.last().filter(|_| has_more).map(Place::of);
    let whole = stream::iter(page).map(|sandbox| whole(&shared, sandbox));
    let whole: Vec<Sandbox> = whole.buffered(AT_ONCE).try_collect().await?;
    Ok(Json(Page {
        sandboxes: whole.iter().map(|sandbox| View::of(sandbox, &public)).collect(),
        next_cursor: last.map(|place| place.cursor(&wanted.filters)),
    }))
}

/// Some engines tell keys of one sandbox only.
async fn whole(shared: &Shared, sandbox: Sandbox) -> Result<Sandbox, Fault> {
    if sandbox.session_key.is_some() || !sandbox.state.is_live() {
        return Ok(sandbox);
    }
    let found = shared.provider.find(&sandbox.id).await?;
    Ok(match found {
        Some(found) => Sandbox { session_id: sandbox.session_id, ..found },
        None => sandbox,
    })
}
