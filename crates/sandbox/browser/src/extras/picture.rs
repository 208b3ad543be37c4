//! Pictures of a page: what is in view, all of it, or one element.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gloveport_browsergym::ActionError;
use gloveport_protocol::browser::ScreenshotRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    fault::Fault,
    script,
    target::{self, Wanted, Work},
};
use crate::{
    browser::BrowserError,
    cdp::{CdpError, Session},
    element::{Element, failed},
    live::Live,
    script::Argument,
};

const OPERATION: &str = "Page.screenshot";
/// Most pixels downwards.
const HIGHEST: f64 = 16384.0;
/// Most pixels to the right.
const BROADEST: f64 = 4096.0;
/// Time for a picture.
const TIME: Duration = Duration::from_mins(1);

/// Of what a picture is taken.
#[derive(Debug)]
pub(super) enum Subject {
    View,
    Page,
    Element(Wanted),
}

impl Subject {
    /// Reads what a program says.
    pub(super) fn of(request: &ScreenshotRequest) -> Result<Self, BrowserError> {
        match (&request.target, request.full_page) {
            (Some(_), true) => Err(BrowserError::Invalid(
                "a picture is of an element or of the full page: give `target` or `full_page`".to_owned(),
            )),
            (Some(target), false) => Wanted::of(target).map(Self::Element),
            (None, true) => Ok(Self::Page),
            (None, false) => Ok(Self::View),
        }
    }
}

/// A part of a page, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// What `Page.getLayoutMetrics` answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_visual_viewport: Viewport,
    css_content_size: Area,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewport {
    page_x: f64,
    page_y: f64,
}

/// Takes one.
pub(super) async fn take(live: &Live, subject: &Subject) -> Result<Vec<u8>, Fault> {
    let refused = |error: CdpError| failed(OPERATION, error);
    let page = live.active().await.map_err(refused)?;
    let session = live.page_session(&page).map_err(refused)?;
    live.bring_to_front(&page, &session).await.map_err(refused)?;
    let area = match subject {
        Subject::View => None,
        Subject::Page => {
            let metrics: Metrics = session.ask("Page.getLayoutMetrics", json!({})).await.map_err(refused)?;
            let Area { width, height, .. } = metrics.css_content_size;
            Some(Area { x: 0.0, y: 0.0, width, height })
        }
        Subject::Element(wanted) => Some(target::with(live, &page, wanted, &Place(&session)).await?),
    };
    Ok(capture(&session, area).await.map_err(refused)?)
}

/// Looks where an element is.
struct Place<'a>(&'a Session);

impl Work for Place<'_> {
    type Done = Area;

    async fn attempt(&self, live: &Live, element: Element) -> Result<Area, ActionError> {
        place(live, self.0, &element).await
    }
}

/// Where an element is in its page.
async fn place(live: &Live, session: &Session, element: &Element) -> Result<Area, ActionError> {
    let area: Area = script::call(&element.realm, "boxInView", vec![Argument::Object(&element.object)])
        .await
        .map_err(|error| failed(OPERATION, error))?;
    if area.width < 1.0 || area.height < 1.0 {
        return Err(ActionError::timeout(format!("{OPERATION}: the element is not visible")));
    }
    let refused = |error: CdpError| failed(OPERATION, error);
    let (left, top) = live.origin(&element.target, &element.frame).await.map_err(refused)?;
    let metrics: Metrics = session.ask("Page.getLayoutMetrics", json!({})).await.map_err(refused)?;
    let Viewport { page_x, page_y } = metrics.css_visual_viewport;
    Ok(Area { x: area.x + left + page_x, y: area.y + top + page_y, ..area })
}

async fn capture(session: &Session, area: Option<Area>) -> Result<Vec<u8>, CdpError> {
    const METHOD: &str = "Page.captureScreenshot";
    let parameters = match area {
        None => json!({ "format": "png", "optimizeForSpeed": true }),
        Some(Area { x, y, width, height }) => json!({
            "format": "png", "optimizeForSpeed": true, "captureBeyondViewport": true,
            "clip": {
                "x": x.max(0.0), "y": y.max(0.0), "scale": 1,
                "width": width.clamp(1.0, BROADEST), "height": height.clamp(1.0, HIGHEST),
            },
        }),
    };
    let picture = session.call_within(METHOD, parameters, TIME).await?;
    let picture = picture.get("data").and_then(Value::as_str).unwrap_or_default();
    BASE64_STANDARD
        .decode(picture)
        .map_err(|error| CdpError::Unexpected { method: METHOD.to_owned(), reason: error.to_string() })
}
