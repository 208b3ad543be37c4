//! Cookies and local storage, to be kept for later and brought back.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Display,
    time::Duration,
};

use gloveport_protocol::browser::{OriginState, StorageState};
use serde_json::{Map, Value, json};

use super::{fault::Fault, script};
use crate::{
    browser::BrowserError,
    cdp::{CdpError, Session, within},
    element::failed,
    live::{Live, Place},
    navigate::{self, WaitFor},
    script::{Argument, ScriptError},
    world::TargetId,
};

const OPERATION: &str = "BrowserContext.storage_state";
/// Characters of all local storages together that are read for programs.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;
/// What a cookie is told with, beside its partition.
const FIELDS: [&str; 8] = ["name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite"];
/// The site of the page in which a cookie of a frame is kept apart.
const PARTITION: &str = "partitionKey";
/// Whether that page and the frame had another site between them.
const ANCESTOR: &str = "_crHasCrossSiteAncestor";

/// Characters of them that are kept for a browser that comes again.
const LONGEST_KEPT: usize = 2 * 1024 * 1024;
/// Time to read what is kept, and to bring it back.
const KEPT: Duration = Duration::from_secs(10);

/// What a browser that is about to be ended has: cookies, and the local storage of open pages.
pub(crate) async fn keep(live: &Live) -> StorageState {
    let read = within(KEPT, read(live, LONGEST_KEPT)).await;
    match read {
        Some(Ok(state)) => state,
        Some(Err(error)) => lost(&error),
        None => lost(&"it takes too long"),
    }
}

fn lost(why: &dyn Display) -> StorageState {
    tracing::warn!("cookies of the browser are lost: {why}");
    StorageState::default()
}

/// Gives a new browser what the last one had. What it does not take is lost.
pub(crate) async fn bring_back(live: &Live, state: &StorageState) {
    if *state == StorageState::default() {
        return;
    }
    let cookies: Vec<Value> = state.cookies.iter().filter_map(|cookie| taken(cookie).ok()).collect();
    match within(KEPT, write(live, &cookies, state)).await {
        Some(Ok(())) => {}
        Some(Err(fault)) => {
            tracing::warn!("cookies or local storage of the browser are lost: {}", BrowserError::from(fault));
        }
        None => tracing::warn!("local storage of the browser is lost: it takes too long"),
    }
}

/// All cookies, and the local storage of the origins of open pages and frames, at most so many characters of it.
pub(super) async fn read(live: &Live, longest: usize) -> Result<StorageState, ScriptError> {
    let cookies = cookies(&live.connection.browser()).await?.iter().map(told).collect();
    let mut origins: BTreeMap<String, OriginState> = BTreeMap::new();
    let mut left = longest;
    let mut silent = HashSet::new();
    for place in places(live) {
        if silent.contains(&place.target) {
            continue;
        }
        let state = async {
            let realm = live.realm(&place.target, &place.frame.id).await?;
            script::call::<OriginState>(&realm, "storedItems", vec![Argument::Value(json!(left))]).await
        };
        match state.await {
            Ok(state) if !state.local_storage.is_empty() && !origins.contains_key(&state.origin) => {
                let size: usize = state.local_storage.iter().map(|entry| entry.name.len() + entry.value.len()).sum();
                left = left.saturating_sub(size);
                origins.insert(state.origin.clone(), state);
            }
            Ok(_) => {}
            Err(ScriptError::Cdp(CdpError::Closed)) => return Err(CdpError::Closed.into()),
            // What a page does not answer for one frame, it does not for the others.
            Err(ScriptError::Cdp(CdpError::TimedOut { .. })) => {
                silent.insert(place.target);
            }
            // Documents without an origin of their own keep nothing.
            Err(error) => tracing::debug!(%error, "a frame has no local storage"),
        }
    }
    Ok(StorageState { cookies, origins: origins.into_values().collect() })
}

/// All frames of all pages. Main frames come first: frames of other sites in a page keep what they have apart.
fn places(live: &Live) -> Vec<Place> {
    let pages: Vec<TargetId> = live.shared.with(|world| {
        let answering = world.pages.iter().filter(|page| !page.crashed);
        answering.map(|page| page.target.clone()).collect()
    });
    let mut places: Vec<Place> = pages.iter().flat_map(|page| live.frames(page)).collect();
    places.retain(|place| place.frame.url.starts_with("http"));
    places.sort_by_key(|place| place.frame.parent.is_some());
    places
}

async fn cookies(browser: &Session) -> Result<Vec<Value>, CdpError> {
    let answer = browser.call("Storage.getCookies", json!({})).await?;
    Ok(answer.get("cookies").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// A cookie of Chromium as programs get it.
fn told(cookie: &Value) -> Value {
    let mut told = Map::new();
    for field in FIELDS {
        // Lax is what a cookie is that does not say.
        let missing = || (field == "sameSite").then(|| json!("Lax"));
        if let Some(value) = cookie.get(field).cloned().or_else(missing) {
            told.insert(field.to_owned(), value);
        }
    }
    if let Some(partition) = cookie.get(PARTITION) {
        let member = |name: &str| partition.get(name).cloned().unwrap_or_default();
        told.insert(PARTITION.to_owned(), member("topLevelSite"));
        told.insert(ANCESTOR.to_owned(), member("hasCrossSiteAncestor"));
    }
    Value::Object(told)
}

/// The cookies of a state as Chromium takes them.
pub(super) fn cookies_to_set(state: &StorageState) -> Result<Vec<Value>, BrowserError> {
    let all = state.cookies.iter().enumerate();
    all.map(|(index, cookie)| taken(cookie).map_err(|why| BrowserError::Invalid(format!("cookie {index} {why}"))))
        .collect()
}

fn taken(cookie: &Value) -> Result<Value, String> {
    let cookie = cookie.as_object().ok_or("is no object")?;
    let mut taken = Map::new();
    for field in FIELDS.into_iter().chain(["url"]) {
        let Some(value) = cookie.get(field).filter(|value| !value.is_null()) else { continue };
        let right = match field {
            "expires" => value.is_number(),
            "httpOnly" | "secure" => value.is_boolean(),
            "sameSite" => matches!(value.as_str(), Some("Strict" | "Lax" | "None")),
            _ => value.is_string(),
        };
        if !right {
            return Err(format!("has a wrong `{field}`: {value}"));
        }
        // One that ends with the browser has a time before all times.
        if field == "expires" && value.as_f64().is_none_or(|time| time <= 0.0) {
            continue;
        }
        taken.insert(field.to_owned(), value.clone());
    }
    for field in ["name", "value"] {
        if !taken.contains_key(field) {
            return Err(format!("has no `{field}`"));
        }
    }
    if !taken.contains_key("domain") && !taken.contains_key("url") {
        return Err("has neither `domain` nor `url`".to_owned());
    }
    if let Some(Value::String(site)) = cookie.get(PARTITION) {
        let ancestor = cookie.get(ANCESTOR).and_then(Value::as_bool).unwrap_or_default();
        taken.insert(PARTITION.to_owned(), json!({ "topLevelSite": site, "hasCrossSiteAncestor": ancestor }));
    }
    Ok(Value::Object(taken))
}

/// Refuses what is no origin of pages.
pub(super) fn check_origins(state: &StorageState) -> Result<(), BrowserError> {
    let mut seen = HashSet::new();
    for OriginState { origin, .. } in &state.origins {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
        let outside = |c: char| matches!(c, '/' | '?' | '#' | '@' | '\\') || c.is_whitespace() || c.is_control();
        if host.is_empty() || host.contains(outside) {
            return Err(BrowserError::Invalid(format!(
                "{origin:?} is no origin: give scheme, host and port, such as `https://example.org`"
            )));
        }
        if !seen.insert(origin) {
            return Err(BrowserError::Invalid(format!("the origin {origin:?} is there twice")));
        }
    }
    Ok(())
}

/// Replaces what is kept.
pub(super) async fn write(live: &Live, cookies: &[Value], state: &StorageState) -> Result<(), Fault> {
    replace_cookies(&live.connection.browser(), cookies).await?;
    let mut written: HashSet<&str> = HashSet::new();
    let mut silent = HashSet::new();
    for place in places(live) {
        if silent.contains(&place.target) {
            continue;
        }
        match replace_in(live, &place, state).await {
            Ok(Some(origin)) if place.frame.parent.is_none() => {
                written.insert(origin);
            }
            Ok(_) => {}
            Err(ScriptError::Cdp(CdpError::TimedOut { .. })) => {
                silent.insert(place.target);
            }
            Err(error) => tracing::debug!(%error, "a frame has no local storage"),
        }
    }
    let left: Vec<&OriginState> = state.origins.iter().filter(|state| !written.contains(&*state.origin)).collect();
    if left.is_empty() {
        return Ok(());
    }
    let page = Blank::open(live).await.map_err(|error| failed(OPERATION, error))?;
    let mut written = Ok(());
    for origin in left {
        written = page.write(origin).await;
        if written.is_err() {
            break;
        }
    }
    page.close().await;
    written
}

async fn replace_cookies(browser: &Session, new: &[Value]) -> Result<(), Fault> {
    let refused = |error: CdpError| failed(OPERATION, error);
    let before = cookies(browser).await.map_err(refused)?;
    browser.call("Storage.clearCookies", json!({})).await.map_err(refused)?;
    let Err(error) = browser.call("Storage.setCookies", json!({ "cookies": new })).await else { return Ok(()) };
    let before: Vec<Value> = before.iter().filter_map(|cookie| taken(&told(cookie)).ok()).collect();
    browser.call("Storage.setCookies", json!({ "cookies": before })).await.map_err(refused)?;
    Err(match error {
        CdpError::Refused { message, .. } => Fault::Invalid(format!("the cookies cannot be set: {message}")),
        error => refused(error).into(),
    })
}

/// Replaces the local storage of a frame; answers with its origin if that is part of the state.
async fn replace_in<'a>(live: &Live, place: &Place, state: &'a StorageState) -> Result<Option<&'a str>, ScriptError> {
    let realm = live.realm(&place.target, &place.frame.id).await?;
    let OriginState { origin, .. } = script::call(&realm, "storedItems", vec![Argument::Value(json!(0))]).await?;
    let new = state.origins.iter().find(|state| state.origin == origin);
    let items = new.map_or_else(|| json!([]), |state| json!(state.local_storage));
    let arguments = vec![Argument::Value(json!(origin)), Argument::Value(items)];
    script::call::<Value>(&realm, "storeItems", arguments).await?;
    Ok(new.map(|state| state.origin.as_str()))
}

/// A page whose requests get an empty document and do not leave the browser.
struct Blank<'a> {
    live: &'a Live,
    page: TargetId,
}

impl<'a> Blank<'a> {
    async fn open(live: &'a Live) -> Result<Self, CdpError> {
        let blank = Self { live, page: live.new_page().await? };
        let session = live.page_session(&blank.page)?;
        session.call("Network.setBypassServiceWorker", json!({ "bypass": true })).await?;
        session.call("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })).await?;
        Ok(blank)
    }

    /// Returns when it is not among the pages any more.
    async fn close(self) {
        let (live, page) = (self.live, self.page.clone());
        drop(self);
        let gone = live.shared.until(Duration::from_secs(5), |world| world.page(&page).is_none().then_some(()));
        // One that does not go is not waited for.
        let _in_time = gone.await;
    }

    async fn write(&self, state: &OriginState) -> Result<(), Fault> {
        let Self { live, page } = self;
        navigate::goto(live, page, &format!("{}/", state.origin), WaitFor::Parsed).await?;
        let stored = async {
            let realm = live.realm(page, &live.main_frame(page)?).await?;
            let arguments = vec![Argument::Value(json!(state.origin)), Argument::Value(json!(state.local_storage))];
            script::call::<Value>(&realm, "storeItems", arguments).await
        };
        match stored.await {
            Ok(_) => Ok(()),
            Err(ScriptError::Thrown(words)) => {
                let words = words.lines().next().unwrap_or_default();
                Err(Fault::Invalid(format!("the origin {:?} does not keep that: {words}", state.origin)))
            }
            Err(error) => Err(failed(OPERATION, error).into()),
        }
    }
}

impl Drop for Blank<'_> {
    fn drop(&mut self) {
        self.live.connection.browser().tell("Target.closeTarget", json!({ "targetId": self.page.as_str() }));
    }
}
