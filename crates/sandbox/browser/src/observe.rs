//! What a page is like: marked elements, accessibility tree, properties, picture (spec/browser.md 2, 3, 5, 7).

use std::{collections::HashMap, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::future::join_all;
use gloveport_browsergym::{
    Snapshot,
    axtree::{self, FrameTree},
    properties::{self, ExtraProperties, PlacedSnapshot},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cdp::{CdpError, Session, SessionId},
    live::{Live, Place},
    script::{Argument, Realm, ScriptError},
    world::{FrameId, TargetId},
};

/// Tries to read a page that changes meanwhile, and the pause between them (spec/browser.md 2, step 6).
const TRIES: u32 = 5;
/// The pause between them.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for all elements to be looked at (spec/browser.md 3.3).
const VISIBILITY: Duration = Duration::from_secs(1);
/// Time for most pictures of a page.
const PICTURE_SOON: Duration = Duration::from_secs(3);
/// Time for a picture of a page.
const PICTURE: Duration = Duration::from_secs(20);

/// What a page is like.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The address of the active page.
    pub url: String,
    /// The addresses of all pages, in the order in which they came.
    pub open_pages: Vec<String>,
    /// Which of them is the active one.
    pub active_index: usize,
    /// The picture of what is in view, as PNG.
    pub screenshot: Vec<u8>,
    /// The accessibility trees of all frames as one.
    pub axtree: Value,
    /// What is known of each marked element.
    pub properties: ExtraProperties,
    /// The element that has the focus.
    pub focused: Option<String>,
    /// The documents of the page.
    pub snapshot: Snapshot,
}

/// A frame whose elements are marked.
struct Marked {
    place: Place,
    prefix: String,
}

/// What is found in all frames of a page.
struct Found {
    marked: Vec<Marked>,
    /// For each frame the elements that frames are in, and which.
    content: HashMap<FrameId, HashMap<i64, String>>,
}

/// Looks at the active page.
pub(crate) async fn observe(live: &Live) -> Result<Observation, ScriptError> {
    observe_with(live, Picture::Taken).await
}

/// Gives ids to the elements of a page, as a look at it does.
pub(crate) async fn give_ids(live: &Live, target: &TargetId) -> Result<(), ScriptError> {
    let mut found = Found { marked: Vec::new(), content: HashMap::new() };
    let marked = mark(live, target, true, &mut found).await;
    join_all(found.marked.iter().map(|marked| unmark(live, &marked.place))).await;
    marked
}

/// Whether a picture is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Taken,
    /// It is empty.
    Left,
}

/// The same, with or without a picture.
pub(crate) async fn observe_with(live: &Live, picture: Picture) -> Result<Observation, ScriptError> {
    let mut left = TRIES;
    loop {
        left -= 1;
        let target = live.active().await?;
        match look(live, &target, left == 0, picture).await {
            Err(error) if left > 0 && error.is_passing() => {
                tracing::debug!(%error, "a page changed while it was looked at");
                let mut changes = live.shared.watch();
                changes.borrow_and_update();
                let _or_later = tokio::time::timeout(PAUSE, changes.changed()).await;
            }
            result => return result,
        }
    }
}

async fn look(live: &Live, target: &TargetId, lenient: bool, picture: Picture) -> Result<Observation, ScriptError> {
    let session = live.page_session(target)?;
    live.bring_to_front(target, &session).await?;
    let mut found = Found { marked: Vec::new(), content: HashMap::new() };
    let extracted = match mark(live, target, lenient, &mut found).await {
        Ok(()) => extract(live, target, &found).await,
        Err(error) => Err(error),
    };
    join_all(found.marked.iter().map(|marked| unmark(live, &marked.place))).await;
    let Extracted { axtree, properties, focused, snapshot } = extracted?;
    let screenshot = match picture {
        Picture::Taken => take_picture(&session).await?,
        Picture::Left => Vec::new(),
    };
    live.shared.with(|world| {
        let active_index = world.pages.iter().position(|page| page.target == *target).ok_or(CdpError::Gone)?;
        let open_pages: Vec<String> = world.pages.iter().map(|page| page.url().to_owned()).collect();
        let url = open_pages.get(active_index).cloned().unwrap_or_default();
        Ok(Observation { url, open_pages, active_index, screenshot, axtree, properties, focused, snapshot })
    })
}

/// What is in view, as PNG.
async fn take_picture(session: &Session) -> Result<Vec<u8>, CdpError> {
    let parameters = json!({ "format": "png", "optimizeForSpeed": true });
    // A page that goes somewhere meanwhile may never answer; the one behind it does.
    let first = session.call_within("Page.captureScreenshot", parameters.clone(), PICTURE_SOON).await;
    let picture = match first {
        Err(CdpError::TimedOut { .. }) => session.call_within("Page.captureScreenshot", parameters, PICTURE).await?,
        answer => answer?,
    };
    let picture = picture.get("data").and_then(Value::as_str).unwrap_or_default();
    BASE64_STANDARD.decode(picture).map_err(|error| CdpError::Unexpected {
        method: "Page.captureScreenshot".to_owned(),
        reason: error.to_string(),
    })
}

/// Gives ids to all elements of all frames, frame by frame.
async fn mark(live: &Live, target: &TargetId, lenient: bool, found: &mut Found) -> Result<(), ScriptError> {
    let mut prefixes: HashMap<FrameId, String> = HashMap::new();
    for place in live.frames(target) {
        let prefix = match place.frame.parent {
            None => String::new(),
            Some(ref parent) if !prefixes.contains_key(parent) => continue,
            Some(_) => match owner(live, &place, found).await? {
                Owner::Marked(bid) => bid,
                Owner::Skipped => continue,
                Owner::WithoutBid if lenient => continue,
                Owner::WithoutBid => {
                    return Err(CdpError::Refused {
                        method: "mark".to_owned(),
                        message: "a frame is in an element without a bid".to_owned(),
                    }
                    .into());
                }
            },
        };
        let realm = live.realm(target, &place.frame.id).await?;
        // It is undone also where this fails in the middle.
        found.marked.push(Marked { place: place.clone(), prefix: prefix.clone() });
        let clicked: Vec<u32> = match live.main_realm(target, &place.frame.id) {
            Ok(main) => clicked(&main).await,
            Err(_) => Vec::new(),
        };
        let arguments = [json!(prefix), json!(clicked), json!(VISIBILITY.as_millis())];
        let arguments = arguments.into_iter().map(Argument::Value).collect();
        realm.call_within::<Value>("mark", arguments, VISIBILITY * 30).await?;
        prefixes.insert(place.frame.id, prefix);
    }
    Ok(())
}

/// Elements with a handler that only scripts of the page see. Whatever they answer, it is a hint.
async fn clicked(main: &Realm) -> Vec<u32> {
    const FUNCTION: &str = "function() { const all = []; const waiting = [[document.querySelectorAll('*'), 0]]; \
        const clicked = []; let count = 0; while (waiting.length && count < 1e6) { const level = waiting[waiting.length - 1]; \
        if (level[1] >= level[0].length) { waiting.pop(); continue; } const element = level[0][level[1]++]; \
        if (element.onclick) clicked.push(count); count++; \
        if (element.shadowRoot) waiting.push([element.shadowRoot.querySelectorAll('*'), 0]); } return clicked; }";
    main.source(FUNCTION, Vec::new()).await.unwrap_or_default()
}

/// What the element of a frame says.
enum Owner {
    Marked(String),
    /// A frame that is left out (spec/browser.md 3).
    Skipped,
    WithoutBid,
}

async fn owner(live: &Live, place: &Place, found: &mut Found) -> Result<Owner, ScriptError> {
    #[derive(Deserialize)]
    struct Said {
        bid: Option<String>,
        sandbox: Option<String>,
    }
    let Some((parent, session, node)) = live.owner(place).await? else { return Ok(Owner::Skipped) };
    found.content.entry(parent.clone()).or_default().insert(node, place.frame.id.as_str().to_owned());
    let realm = live.realm(&place.target, &parent).await?;
    let parameters = json!({ "backendNodeId": node, "executionContextId": realm.context });
    let resolved = session.call("DOM.resolveNode", parameters).await?;
    let object = resolved.pointer("/object/objectId").and_then(Value::as_str).ok_or(CdpError::Gone)?;
    let object = crate::script::ObjectId(object.to_owned());
    let said: Said = realm.call("frameElement", vec![Argument::Object(&object)]).await?;
    let scripts =
        |sandbox: &str| sandbox.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("allow-scripts"));
    if said.sandbox.is_some_and(|sandbox| !scripts(&sandbox)) {
        return Ok(Owner::Skipped);
    }
    Ok(match said.bid {
        Some(bid) if bid.ends_with(|last: char| last.is_ascii_alphabetic()) => Owner::Marked(bid),
        Some(_) => Owner::Skipped,
        None => Owner::WithoutBid,
    })
}

async fn unmark(live: &Live, place: &Place) {
    let undone = async {
        let realm = live.realm(&place.target, &place.frame.id).await?;
        realm.call::<Value>("unmark", Vec::new()).await
    };
    if let Err(error) = undone.await {
        // A document that is gone has no marks.
        tracing::debug!(%error, "a frame is not unmarked");
    }
}

struct Extracted {
    axtree: Value,
    properties: ExtraProperties,
    focused: Option<String>,
    snapshot: Snapshot,
}

async fn extract(live: &Live, target: &TargetId, found: &Found) -> Result<Extracted, ScriptError> {
    let places = live.frames(target);
    let (snapshots, trees, focused) = tokio::join!(
        snapshots(live, target, &places),
        join_all(places.iter().map(|place| tree(live, place, found))),
        focused(live, found),
    );
    let snapshots = snapshots?;
    let trees: Vec<FrameTree> = trees.into_iter().collect::<Result<_, _>>()?;
    let parts: Vec<PlacedSnapshot<'_>> =
        snapshots.iter().map(|(snapshot, (x, y))| PlacedSnapshot { snapshot, x: *x, y: *y }).collect();
    let properties = properties::extra_properties(&parts);
    let snapshot = snapshots.into_iter().next().map(|(snapshot, _)| snapshot).unwrap_or_default();
    Ok(Extracted { axtree: axtree::merge(trees), properties, focused: focused?, snapshot })
}

/// A snapshot of each process that renders a part of the page, the page's own first.
async fn snapshots(
    live: &Live,
    target: &TargetId,
    places: &[Place],
) -> Result<Vec<(Snapshot, (f64, f64))>, ScriptError> {
    let mut roots: Vec<(SessionId, FrameId)> = Vec::new();
    for place in places {
        if !roots.iter().any(|(session, _)| *session == place.frame.session) {
            roots.push((place.frame.session.clone(), place.frame.id.clone()));
        }
    }
    let all = join_all(roots.into_iter().map(async |(session, frame)| {
        let parameters = json!({ "computedStyles": [], "includeDOMRects": true, "includePaintOrder": true });
        let snapshot: Snapshot = live.session(&session).ask_of_page("DOMSnapshot.captureSnapshot", parameters).await?;
        Ok((snapshot, live.origin(target, &frame).await?))
    }));
    all.await.into_iter().collect()
}

async fn tree(live: &Live, place: &Place, found: &Found) -> Result<FrameTree, ScriptError> {
    #[derive(Deserialize)]
    struct Tree {
        nodes: Vec<Value>,
    }
    let parameters = json!({ "frameId": place.frame.id.as_str() });
    let session = live.session(&place.frame.session);
    let Tree { nodes } = session.ask_of_page("Accessibility.getFullAXTree", parameters).await?;
    let content_frames = found.content.get(&place.frame.id).cloned().unwrap_or_default();
    Ok(FrameTree { frame: place.frame.id.as_str().to_owned(), nodes, content_frames })
}

/// The id of the innermost element that has the focus.
async fn focused(live: &Live, found: &Found) -> Result<Option<String>, ScriptError> {
    #[derive(Deserialize)]
    struct Focused {
        bid: Option<String>,
        frame: bool,
    }
    let mut prefix = String::new();
    loop {
        let Some(marked) = found.marked.iter().find(|marked| marked.prefix == prefix) else {
            return Ok(Some(prefix).filter(|prefix| !prefix.is_empty()));
        };
        let realm = live.realm(&marked.place.target, &marked.place.frame.id).await?;
        let focused: Focused = realm.call("focusedBid", Vec::new()).await?;
        match focused {
            // The id of a frame is longer than that of the one that it is in.
            Focused { bid: Some(bid), frame: true } if bid.len() > prefix.len() => prefix = bid,
            Focused { bid, .. } => return Ok(bid),
        }
    }
}
