//! The requests of the last action as HAR 1.2, which tools of browsers read.

use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{traffic, view};
use crate::{live::Live, world::NetworkEntry};

/// Name of the one page of it.
const PAGE: &str = "page_1";

/// One without requests.
pub(super) fn empty() -> Value {
    log(&Value::Null, &[], &[])
}

/// The requests of the last action.
pub(super) async fn of_last_action(live: &Live) -> Value {
    let (_, entries) = traffic::network(live, live.requests_before.load(Ordering::Relaxed));
    let (name, version) = live.version.split_once('/').unwrap_or((&live.version, ""));
    let browser = json!({ "name": name, "version": version });
    let Some(first) = entries.first() else { return log(&browser, &[], &[]) };
    let active = view::pages(live).await.into_iter().find(|page| page.active);
    let title = active.map(|page| if page.title.is_empty() { page.url } else { page.title }).unwrap_or_default();
    let page = json!({
        "startedDateTime": date(first.started), "id": PAGE, "title": title, "pageTimings": {},
    });
    let next = entries.iter().skip(1).map(Some).chain([None]);
    let entries: Vec<Value> = entries.iter().zip(next).map(|(entry, next)| exchange(entry, next)).collect();
    log(&browser, &[page], &entries)
}

fn log(browser: &Value, pages: &[Value], entries: &[Value]) -> Value {
    let creator = json!({ "name": "gloveport", "version": env!("CARGO_PKG_VERSION") });
    let mut log = json!({ "version": "1.2", "creator": creator, "pages": pages, "entries": entries });
    if !browser.is_null()
        && let Some(members) = log.as_object_mut()
    {
        members.insert("browser".to_owned(), browser.clone());
    }
    json!({ "log": log })
}

/// A request and its answer. The one behind it tells where a redirect led to.
fn exchange(entry: &NetworkEntry, next: Option<&NetworkEntry>) -> Value {
    let milliseconds = entry.took.unwrap_or_default() * 1000.0;
    let protocol = match entry.protocol.as_str() {
        "" => "unknown",
        "http/1.0" => "HTTP/1.0",
        "http/1.1" => "HTTP/1.1",
        other => other,
    };
    let is_redirect = entry.status.is_some_and(|status| (300..400).contains(&status));
    let location = header(&entry.response_headers, "location").filter(|_| is_redirect).map(|location| {
        let next = next.filter(|next| next.request_id == entry.request_id);
        next.map_or(location, |next| next.url.clone())
    });
    let bytes = entry.encoded_bytes.unwrap_or(-1.0);
    let mut request = json!({
        "method": entry.method, "url": entry.url, "httpVersion": protocol, "cookies": [],
        "headers": headers(&entry.request_headers), "queryString": query(&entry.url), "headersSize": -1,
        "bodySize": entry.request_body.as_ref().map_or(0, String::len),
    });
    if let (Some(body), Some(members)) = (&entry.request_body, request.as_object_mut()) {
        let kind = header(&entry.request_headers, "content-type").unwrap_or_default();
        members.insert("postData".to_owned(), json!({ "mimeType": kind, "params": [], "text": body }));
    }
    let mut response = json!({
        "status": entry.status.unwrap_or_default(), "statusText": entry.status_text, "httpVersion": protocol,
        "cookies": [], "headers": headers(&entry.response_headers),
        "content": { "size": bytes.max(0.0), "mimeType": entry.mime_type },
        "redirectURL": location.unwrap_or_default(), "headersSize": -1, "bodySize": bytes,
    });
    if let (Some(error), Some(members)) = (&entry.error, response.as_object_mut()) {
        members.insert("_error".to_owned(), json!(error));
    }
    json!({
        "pageref": PAGE, "startedDateTime": date(entry.started), "time": milliseconds, "request": request,
        "response": response, "cache": {}, "timings": { "send": 0, "wait": milliseconds, "receive": 0 },
        "_resourceType": entry.kind.to_lowercase(),
    })
}

/// A time as HAR has it. What is no time is the beginning of 1970.
fn date(seconds: f64) -> String {
    let duration = SignedDuration::try_from_secs_f64(seconds).unwrap_or_default();
    let time = Timestamp::from_duration(duration).unwrap_or_default();
    format!("{time:.3}")
}

fn headers(headers: &Value) -> Vec<Value> {
    // Several of the same name are lines of one value.
    let lines = headers.as_object().into_iter().flatten().flat_map(|(name, value)| {
        let value = value.as_str().unwrap_or_default();
        value.split('\n').map(move |line| json!({ "name": name, "value": line }))
    });
    lines.collect()
}

fn header(headers: &Value, name: &str) -> Option<String> {
    let found = headers.as_object()?.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.and_then(|(_, value)| value.as_str()).map(str::to_owned)
}

/// The parts of an address behind the question mark, as they stand there.
fn query(url: &str) -> Vec<Value> {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let Some((_, query)) = url.split_once('?') else { return Vec::new() };
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        json!({ "name": name, "value": value })
    });
    pairs.collect()
}
