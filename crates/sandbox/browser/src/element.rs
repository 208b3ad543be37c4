//! Finding the element that an id names, and waiting until it is as an operation needs it (spec/browser.md 3.2, 4.2).

use std::time::Duration;

use gloveport_browsergym::{ActionError, bid::Bid};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cdp::CdpError,
    live::Live,
    script::{Argument, ObjectId, Realm, ScriptError},
    world::{FrameId, TargetId},
};

/// Time in which an element must be as an operation needs it (spec/browser.md 4.2).
pub(crate) const LIMIT: Duration = Duration::from_millis(500);

/// An element that was found.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) bid: String,
    pub(crate) target: TargetId,
    pub(crate) frame: FrameId,
    pub(crate) realm: Realm,
    pub(crate) object: ObjectId,
}

/// What `awaitReady` answers.
#[derive(Debug, Deserialize)]
struct Ready {
    reason: Option<String>,
    x: Option<f64>,
    y: Option<f64>,
}

/// What an operation needs of its element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs(&'static [&'static str]);

impl Needs {
    /// To be clicked.
    pub(crate) const CLICK: Self = Self(&["visible", "enabled", "stable", "hit"]);
    /// To have the mouse on it.
    pub(crate) const HOVER: Self = Self(&["visible", "stable", "hit"]);
    /// To get a text.
    pub(crate) const FILL: Self = Self(&["visible", "enabled", "editable"]);
    /// To have options chosen.
    pub(crate) const SELECT: Self = Self(&["visible", "enabled"]);
}

/// What the script or the browser says, as Playwright's driver would.
pub(crate) fn failed(operation: &str, error: impl Into<ScriptError>) -> ActionError {
    let text = match error.into() {
        ScriptError::Thrown(words) => words.lines().next().unwrap_or_default().to_owned(),
        ScriptError::Cdp(error) => error.to_string(),
    };
    let text = text.strip_prefix("Error: ").unwrap_or(&text).to_owned();
    ActionError::driver(format!("{operation}: {text}"))
}

/// An operation whose time is over.
pub(crate) fn timed_out(operation: &str, bid: &str, limit: Duration, why: &str) -> ActionError {
    let mut text =
        format!("{operation}: Timeout {}ms exceeded.\nCall log:\n  - waiting for the element {bid}", limit.as_millis());
    if !why.is_empty() {
        text.push_str("\n  - ");
        text.push_str(why);
    }
    text.push('\n');
    ActionError::timeout(text)
}

/// Finds the element of an id in a page, frame by frame.
pub(crate) async fn find(live: &Live, target: &TargetId, id: &str) -> Result<Element, ActionError> {
    let bid = Bid::new(id);
    let missing = || bid.not_found();
    let unreachable = |error: CdpError| failed("Locator", error);
    let mut frame = live.main_frame(target).map_err(unreachable)?;
    for prefix in bid.frames() {
        let realm = live.realm(target, &frame).await.map_err(unreachable)?;
        let object = only(&realm, prefix).await.map_err(|error| failed("Locator", error))?.ok_or_else(missing)?;
        let described = realm.session.call("DOM.describeNode", json!({ "objectId": object.0 })).await;
        let described = described.map_err(unreachable)?;
        let inner = described.pointer("/node/frameId").and_then(Value::as_str).ok_or_else(|| {
            ActionError::driver(format!("Locator.count: Error: the element with bid \"{prefix}\" is no frame"))
        })?;
        frame = FrameId::from(inner);
        if live.place(target, &frame).is_err() {
            return Err(missing());
        }
    }
    let realm = live.realm(target, &frame).await.map_err(unreachable)?;
    let object = only(&realm, id).await.map_err(|error| failed("Locator", error))?.ok_or_else(missing)?;
    Ok(Element { bid: id.to_owned(), target: target.clone(), frame, realm, object })
}

async fn only(realm: &Realm, bid: &str) -> Result<Option<ObjectId>, ScriptError> {
    realm.object("only", vec![Argument::Value(json!(bid))]).await
}

impl Element {
    /// Calls a function of the library with the element as its first argument.
    pub(crate) async fn call<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        more: Vec<Value>,
    ) -> Result<T, ScriptError> {
        let mut arguments = vec![Argument::Object(&self.object)];
        arguments.extend(more.into_iter().map(Argument::Value));
        self.realm.call(name, arguments).await
    }

    /// Waits until it is as needed; answers where its middle is in the page, for what needs a place.
    pub(crate) async fn ready(&self, live: &Live, operation: &str, needs: Needs) -> Result<(f64, f64), ActionError> {
        let arguments = vec![json!(needs.0), json!(LIMIT.as_millis())];
        let answer: Ready = self.call("awaitReady", arguments).await.map_err(|error| failed(operation, error))?;
        if let Some(reason) = answer.reason {
            return Err(timed_out(operation, &self.bid, LIMIT, &reason));
        }
        let (Some(x), Some(y)) = (answer.x, answer.y) else { return Ok((0.0, 0.0)) };
        let origin = live.origin(&self.target, &self.frame).await.map_err(|error| failed(operation, error))?;
        Ok((origin.0 + x, origin.1 + y))
    }
}
