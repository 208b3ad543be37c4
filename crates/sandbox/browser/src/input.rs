//! The mouse and the keyboard of a page.

use std::time::Duration;

use gloveport_browsergym::{keys::KeyEvent, operation::MouseButton};
use serde_json::{Value, json};

use crate::{
    cdp::{CdpError, Session},
    live::Live,
    world::TargetId,
};

/// Time for a page to take an event. A script that runs on and on takes none.
const LIMIT: Duration = Duration::from_secs(20);

/// The bit of a button among those that are held.
pub(crate) const fn bit(button: MouseButton) -> u8 {
    match button {
        MouseButton::Left => 1,
        MouseButton::Right => 2,
        MouseButton::Middle => 4,
    }
}

/// The mouse of a page.
#[derive(Debug)]
pub(crate) struct Mouse<'a> {
    live: &'a Live,
    target: &'a TargetId,
    session: Session,
    /// Keys that are held meanwhile (Alt 1, Control 2, Meta 4, Shift 8).
    pub(crate) modifiers: u8,
}

impl<'a> Mouse<'a> {
    pub(crate) fn of(live: &'a Live, target: &'a TargetId) -> Result<Self, CdpError> {
        Ok(Self { live, target, session: live.page_session(target)?, modifiers: 0 })
    }

    fn position(&self) -> (f64, f64) {
        self.live.shared.with(|world| world.page(self.target).map_or((0.0, 0.0), |page| page.mouse))
    }

    async fn dispatch(&self, parameters: Value) -> Result<(), CdpError> {
        self.session.call_within("Input.dispatchMouseEvent", parameters, LIMIT).await.map(drop)
    }

    /// Moves it, with a button held or none.
    pub(crate) async fn move_to(&self, (x, y): (f64, f64), held: Option<MouseButton>) -> Result<(), CdpError> {
        self.live.shared.with(|world| {
            if let Some(page) = world.page_mut(self.target) {
                page.mouse = (x, y);
            }
        });
        let button = held.map_or("none", MouseButton::as_str);
        let buttons = held.map_or(0, bit);
        self.dispatch(json!({
            "type": "mouseMoved", "x": x, "y": y, "button": button, "buttons": buttons, "modifiers": self.modifiers,
        }))
        .await
    }

    /// Presses a button, for the first or the second time in a row.
    pub(crate) async fn press(&self, button: MouseButton, count: u8) -> Result<(), CdpError> {
        let (x, y) = self.position();
        self.dispatch(json!({
            "type": "mousePressed", "x": x, "y": y, "button": button.as_str(), "buttons": bit(button),
            "clickCount": count, "modifiers": self.modifiers,
        }))
        .await
    }

    /// Releases a button.
    pub(crate) async fn release(&self, button: MouseButton, count: u8) -> Result<(), CdpError> {
        let (x, y) = self.position();
        self.dispatch(json!({
            "type": "mouseReleased", "x": x, "y": y, "button": button.as_str(), "buttons": 0,
            "clickCount": count, "modifiers": self.modifiers,
        }))
        .await
    }

    /// Clicks, once or twice, where it is.
    pub(crate) async fn click(&self, button: MouseButton, times: u8) -> Result<(), CdpError> {
        for count in 1..=times {
            self.press(button, count).await?;
            self.release(button, count).await?;
        }
        Ok(())
    }

    /// Turns the wheel, by so many pixels to the right and down.
    pub(crate) async fn wheel(&self, delta_x: f64, delta_y: f64) -> Result<(), CdpError> {
        let (x, y) = self.position();
        self.dispatch(json!({
            "type": "mouseWheel", "x": x, "y": y, "deltaX": delta_x, "deltaY": delta_y, "modifiers": self.modifiers,
        }))
        .await
    }

    /// Drags what is at one point to another one, as a person does.
    pub(crate) async fn drag(
        &self,
        from: (f64, f64),
        to: impl Future<Output = Option<(f64, f64)>>,
    ) -> Result<Dragged, CdpError> {
        self.move_to(from, None).await?;
        self.session.call("Input.setInterceptDrags", json!({ "enabled": true })).await?;
        let dragged = self.drag_on(to).await;
        self.session.tell("Input.setInterceptDrags", json!({ "enabled": false }));
        dragged
    }

    async fn drag_on(&self, to: impl Future<Output = Option<(f64, f64)>>) -> Result<Dragged, CdpError> {
        let taken = || self.live.shared.with(|world| world.page_mut(self.target).and_then(|page| page.drag.take()));
        let _of_before = taken();
        self.press(MouseButton::Left, 1).await?;
        let Some(to) = to.await else {
            self.release(MouseButton::Left, 1).await?;
            return Ok(Dragged::NoPlace);
        };
        // A page begins to drag with the first move.
        let before = self.position();
        self.move_to((f64::midpoint(before.0, to.0), f64::midpoint(before.1, to.1)), Some(MouseButton::Left)).await?;
        self.move_to(to, Some(MouseButton::Left)).await?;
        let waited =
            self.live.shared.until(Duration::from_millis(100), |world| world.page_mut(self.target)?.drag.take());
        let Some(data) = waited.await else {
            self.release(MouseButton::Left, 1).await?;
            return Ok(Dragged::Done);
        };
        for kind in ["dragEnter", "dragOver", "drop"] {
            let parameters = json!({ "type": kind, "x": to.0, "y": to.1, "data": data, "modifiers": self.modifiers });
            self.session.call_within("Input.dispatchDragEvent", parameters, LIMIT).await?;
        }
        self.release(MouseButton::Left, 1).await?;
        Ok(Dragged::Done)
    }
}

/// How dragging ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dragged {
    /// It was dropped.
    Done,
    /// Its destination was not to be had.
    NoPlace,
}

/// Sends what a keyboard does.
pub(crate) async fn keys(session: &Session, events: impl IntoIterator<Item = KeyEvent>) -> Result<(), CdpError> {
    for event in events {
        let parameters = serde_json::to_value(&event).unwrap_or_default();
        session.call_within("Input.dispatchKeyEvent", parameters, LIMIT).await?;
    }
    Ok(())
}

/// Types a text at once, in the place of what is selected; nothing deletes that.
pub(crate) async fn insert(session: &Session, text: &str) -> Result<(), CdpError> {
    session.call_within("Input.insertText", json!({ "text": text }), LIMIT).await.map(drop)
}
