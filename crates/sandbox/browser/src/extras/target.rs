//! Finding the element that a program means: by id, text, role and name, or selector.

use std::time::Duration;

use gloveport_browsergym::ActionError;
use gloveport_protocol::browser::ElementTarget;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{fault::Fault, script};
use crate::{
    browser::BrowserError,
    cdp::CdpError,
    element::{self, Element, failed},
    live::{Live, Place},
    observe,
    script::{Argument, ObjectId, Realm, ScriptError},
    world::TargetId,
};

/// Time for an element to come and to be as an action needs it.
const LIMIT: Duration = Duration::from_secs(3);
/// Pause between two looks for it. Not every change of a page is told, so that it has to be asked.
const PAUSE: Duration = Duration::from_millis(50);

/// Which element is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    Bid(String),
    Text(String),
    Role { role: String, name: Option<String> },
    Selector(String),
}

impl Wanted {
    /// Reads what a program says.
    pub(super) fn of(target: &ElementTarget) -> Result<Self, BrowserError> {
        let ElementTarget { bid, text, role, name, selector } = target;
        let given: Vec<(&str, &String)> = [("bid", bid), ("text", text), ("role", role), ("selector", selector)]
            .into_iter()
            .filter_map(|(field, value)| Some((field, value.as_ref()?)))
            .collect();
        let invalid = |words: String| Err(BrowserError::Invalid(words));
        let &[(field, value)] = &*given else {
            if given.is_empty() {
                return invalid(
                    "the target names no element: give one of `bid`, `text`, `role` and `selector`".to_owned(),
                );
            }
            let fields: Vec<String> = given.iter().map(|(field, _)| format!("`{field}`")).collect();
            return invalid(format!("the target has {}: give only one of them", fields.join(" and ")));
        };
        if value.trim().is_empty() {
            return invalid(format!("`{field}` of the target is empty"));
        }
        if name.is_some() && field != "role" {
            return invalid(format!("`name` of the target goes with `role`, not with `{field}`"));
        }
        let value = value.clone();
        Ok(match field {
            "bid" => Self::Bid(value),
            "text" => Self::Text(value),
            "selector" => Self::Selector(value),
            _ => Self::Role { role: value, name: name.clone() },
        })
    }

    /// As errors call it.
    fn words(&self) -> String {
        match self {
            Self::Bid(bid) => format!("with bid {bid:?}"),
            Self::Text(text) => format!("with text {text:?}"),
            Self::Role { role, name: None } => format!("with role {role:?}"),
            Self::Role { role, name: Some(name) } => format!("with role {role:?} and name {name:?}"),
            Self::Selector(selector) => format!("for selector {selector:?}"),
        }
    }
}

/// Something that needs an element.
pub(super) trait Work: Sync {
    /// What it leads to.
    type Done: Send;

    /// Does it, if the element is ready for it. Nothing was done if the error is of time.
    fn attempt(&self, live: &Live, element: Element) -> impl Future<Output = Result<Self::Done, ActionError>> + Send;
}

/// Does something with an element once it has come, and again while it is not ready for it.
pub(super) async fn with<W: Work>(live: &Live, page: &TargetId, wanted: &Wanted, work: &W) -> Result<W::Done, Fault> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let error = match locate(live, page, wanted).await? {
            Some(element) => match work.attempt(live, element).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            },
            None => {
                ActionError::timeout(format!("there was no element {} within {} s", wanted.words(), LIMIT.as_secs()))
            }
        };
        // An element that is not ready, or was replaced in between; nothing was done with it.
        let passing = matches!(error.class.as_str(), "TimeoutError" | "ValueError");
        if !passing || Instant::now() >= deadline {
            return Err(in_all(error).into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An error of one try, as one of all of them.
fn in_all(mut error: ActionError) -> ActionError {
    let one = format!("Timeout {}ms exceeded", element::LIMIT.as_millis());
    error.message = error.message.replacen(&one, &format!("Timeout {}ms exceeded", LIMIT.as_millis()), 1);
    error
}

/// Looks for it once, in the main frame first.
async fn locate(live: &Live, page: &TargetId, wanted: &Wanted) -> Result<Option<Element>, Fault> {
    if let Wanted::Bid(bid) = wanted {
        return match element::find(live, page, bid).await {
            Ok(element) => Ok(Some(element)),
            Err(error) if error.class == "ValueError" => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
    for place in live.frames(page) {
        match locate_in(live, &place, wanted).await {
            Ok(Some((realm, object))) => {
                let frame = place.frame.id;
                return Ok(Some(Element { bid: String::new(), target: page.clone(), frame, realm, object }));
            }
            Ok(None) => {}
            Err(ScriptError::Thrown(words))
                if matches!(wanted, Wanted::Selector(_)) && words.starts_with("SyntaxError") =>
            {
                return Err(Fault::Invalid(format!("the target {} is no CSS selector", wanted.words())));
            }
            Err(ScriptError::Cdp(error @ CdpError::Closed)) => return Err(failed("Page", error).into()),
            // A frame that is gone or does not answer has nothing.
            Err(error) => tracing::debug!(%error, "a frame is not searched"),
        }
    }
    Ok(None)
}

async fn locate_in(live: &Live, place: &Place, wanted: &Wanted) -> Result<Option<(Realm, ObjectId)>, ScriptError> {
    let realm = live.realm(&place.target, &place.frame.id).await?;
    let argument = |text: &str| vec![Argument::Value(json!(text))];
    let object = match wanted {
        Wanted::Bid(bid) => realm.object("only", argument(bid)).await?,
        Wanted::Text(text) => script::object(&realm, "byText", argument(text)).await?,
        Wanted::Selector(selector) => script::object(&realm, "bySelector", argument(selector)).await?,
        Wanted::Role { role, name } => match by_role(place, &realm, role, name.as_deref()).await? {
            Some(node) => script::object(&realm, "asElement", vec![Argument::Object(&node)]).await?,
            None => None,
        },
    };
    Ok(object.map(|object| (realm, object)))
}

/// A node of the accessibility tree.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    #[serde(default)]
    ignored: bool,
    role: Option<Property>,
    name: Option<Property>,
    #[serde(rename = "backendDOMNodeId")]
    element: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Property {
    #[serde(default)]
    value: Value,
}

impl Property {
    fn is(this: Option<&Self>, check: impl FnOnce(&str) -> bool) -> bool {
        check(this.and_then(|property| property.value.as_str()).unwrap_or_default())
    }
}

async fn by_role(
    place: &Place,
    realm: &Realm,
    role: &str,
    name: Option<&str>,
) -> Result<Option<ObjectId>, ScriptError> {
    #[derive(Deserialize)]
    struct Tree {
        nodes: Vec<Node>,
    }
    // The older name of what Chromium calls `image`.
    let role = if role.eq_ignore_ascii_case("img") { "image" } else { role };
    let name = tidy(name.unwrap_or_default());
    let parameters = json!({ "frameId": place.frame.id.as_str() });
    let Tree { nodes } = realm.session.ask_of_page("Accessibility.getFullAXTree", parameters).await?;
    let mut found = None;
    for node in nodes {
        let Some(id) = node.element.filter(|_| !node.ignored) else { continue };
        if !Property::is(node.role.as_ref(), |other| other.eq_ignore_ascii_case(role)) {
            continue;
        }
        if Property::is(node.name.as_ref(), |other| name.is_empty() || tidy(other) == name) {
            found = Some(id);
            break;
        }
        if found.is_none() && Property::is(node.name.as_ref(), |other| tidy(other).contains(&name)) {
            found = Some(id);
        }
    }
    let Some(node) = found else { return Ok(None) };
    let parameters = json!({ "backendNodeId": node, "executionContextId": realm.context });
    let resolved = realm.session.call("DOM.resolveNode", parameters).await?;
    Ok(resolved.pointer("/object/objectId").and_then(Value::as_str).map(|id| ObjectId(id.to_owned())))
}

fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The id by which actions find an element; it gets one if it has none.
pub(super) async fn bid(live: &Live, element: &Element) -> Result<String, ActionError> {
    const OPERATION: &str = "Locator";
    if !element.bid.is_empty() {
        return Ok(element.bid.clone());
    }
    let id =
        async || script::call::<Option<String>>(&element.realm, "idOf", vec![Argument::Object(&element.object)]).await;
    if let Some(bid) = id().await.map_err(|error| failed(OPERATION, error))? {
        return Ok(bid);
    }
    observe::give_ids(live, &element.target).await.map_err(|error| failed(OPERATION, error))?;
    let bid = id().await.map_err(|error| failed(OPERATION, error))?;
    bid.ok_or_else(|| ActionError::value("the element was replaced while it was looked for"))
}
