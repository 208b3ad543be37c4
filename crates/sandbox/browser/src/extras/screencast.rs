//! Pictures of the active page as it changes.
//!
//! A task follows the active page in a session of its own. It keeps only the newest picture, and Chromium makes no more
//! until that was taken, so that a slow consumer loses pictures and nothing grows.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::input::{Hands, LiveInput};
use crate::{
    browser::{BrowserError, Lease},
    cdp::Tunnel,
    live::Live,
    world::{PAGE_HEIGHT, PAGE_WIDTH, TargetId},
};

/// Quality of the pictures, from 0 to 100.
const QUALITY: u8 = 60;
/// Inputs that wait to be sent; more are lost.
const MOST_INPUTS: usize = 1024;

/// A picture of what is in view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The picture.
    pub jpeg: Vec<u8>,
    /// The address of the page.
    pub url: String,
    /// Pixels of the page from left to right, to which the places of a mouse refer.
    pub width: u32,
    /// Pixels of the page from top to bottom.
    pub height: u32,
}

/// Pictures of the active page, and a way to use it.
#[derive(Debug)]
pub struct Screencast {
    newest: watch::Receiver<Option<Frame>>,
    taken: Arc<Notify>,
    inputs: mpsc::Sender<LiveInput>,
    _task: AbortOnDropHandle<()>,
    _lease: Lease,
}

impl Screencast {
    pub(super) async fn begin(lease: Lease) -> Result<Self, BrowserError> {
        let tunnel =
            Tunnel::open(&lease.live.connection).await.map_err(|error| BrowserError::Page(error.to_string()))?;
        let (frames, newest) = watch::channel(None);
        let (inputs, receiver) = mpsc::channel(MOST_INPUTS);
        let taken = Arc::new(Notify::new());
        let camera =
            Camera { live: Arc::clone(&lease.live), tunnel, frames, subject: None, hands: Hands::default(), calls: 0 };
        let task = tokio::spawn(camera.run(receiver, Arc::clone(&taken)));
        Ok(Self { newest, taken, inputs, _task: AbortOnDropHandle::new(task), _lease: lease })
    }

    /// The newest picture that was not taken yet, as soon as there is one: the first one comes at once. `None` when the
    /// browser has ended. Cancelling loses nothing.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            self.newest.changed().await.ok()?;
            let frame = self.newest.borrow_and_update().clone();
            self.taken.notify_one();
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// Does something in the active page, after what was sent before. Where more waits than a person can do, it is lost.
    pub fn send(&self, input: LiveInput) {
        if self.inputs.try_send(input).is_err() {
            tracing::debug!("an input is lost");
        }
    }
}

/// The page that is followed.
struct Subject {
    page: TargetId,
    /// The session with it, once it is there.
    session: Option<String>,
    /// The call that asked for the session.
    attach: u64,
    /// The call that asked for pictures.
    start: Start,
    /// The call that asked for a first picture.
    first: Option<u64>,
    /// A picture of it was shown.
    is_shown: bool,
    /// Pictures of which Chromium waits to hear that they were taken.
    untaken: Vec<Value>,
}

/// Whether a page makes pictures.
enum Start {
    /// It was asked with this call, or is yet to be.
    Asked(Option<u64>),
    /// A page whose document is about to be replaced by another process makes none. An event tells when it was.
    Refused,
}

/// What takes the pictures.
struct Camera {
    live: Arc<Live>,
    tunnel: Tunnel,
    frames: watch::Sender<Option<Frame>>,
    subject: Option<Subject>,
    hands: Hands,
    calls: u64,
}

impl Camera {
    async fn run(mut self, mut inputs: mpsc::Receiver<LiveInput>, taken: Arc<Notify>) {
        let mut changes = self.live.shared.watch();
        loop {
            changes.borrow_and_update();
            self.follow();
            tokio::select! {
                message = self.tunnel.next() => match message {
                    Some(message) => self.told(&message),
                    None => return,
                },
                more = changes.changed() => if more.is_err() {
                    return;
                },
                () = taken.notified() => self.go_on(),
                input = inputs.recv() => match (input, &self.subject) {
                    (Some(input), Some(subject)) => self.hands.apply(&self.live, &subject.page, input),
                    (Some(_), None) => {}
                    (None, _) => return,
                },
            }
        }
    }

    /// Calls a method; the answer has the number.
    fn call(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> u64 {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let (Some(session), Some(members)) = (session, message.as_object_mut()) {
            members.insert("sessionId".to_owned(), session.into());
        }
        if let Err(error) = self.tunnel.send(message) {
            // A session that is gone is left with its page.
            tracing::debug!(%error, method, "a page is not told");
        }
        self.calls
    }

    /// Turns to the page that is the active one now.
    fn follow(&mut self) {
        let active = self.live.shared.with(|world| {
            let active = world.active().filter(|page| page.prepared && !page.crashed);
            active.map(|page| page.target.clone())
        });
        let Some(active) = active else { return };
        if let Some(subject) = self.subject.as_ref().filter(|subject| subject.page == active) {
            self.address(subject);
            if let (Start::Refused, Some(session)) = (&subject.start, subject.session.clone()) {
                self.begin(&session);
            }
            return;
        }
        if let Some(session) = self.subject.take().and_then(|subject| subject.session) {
            self.call(None, "Target.detachFromTarget", &json!({ "sessionId": session }));
        }
        let attach = self.call(None, "Target.attachToTarget", &json!({ "targetId": active.as_str(), "flatten": true }));
        self.subject = Some(Subject {
            page: active,
            session: None,
            attach,
            start: Start::Asked(None),
            first: None,
            is_shown: false,
            untaken: Vec::new(),
        });
    }

    /// A page may have another address without another look.
    fn address(&self, subject: &Subject) {
        let Some(url) = self.live.shared.with(|world| world.page(&subject.page).map(|page| page.url().to_owned()))
        else {
            return;
        };
        self.frames.send_if_modified(|frame| match frame {
            Some(frame) if subject.is_shown && frame.url != url => {
                frame.url = url;
                true
            }
            Some(_) | None => false,
        });
    }

    fn told(&mut self, message: &Value) {
        let Some(subject) = &mut self.subject else { return };
        let id = message.get("id").and_then(Value::as_u64);
        if id == Some(subject.attach) {
            if let Some(session) = message.pointer("/result/sessionId").and_then(Value::as_str).map(str::to_owned) {
                subject.session = Some(session.clone());
                self.begin(&session);
            }
        } else if id.is_some() && matches!(subject.start, Start::Asked(start) if start == id) {
            if message.get("error").is_some() {
                subject.start = Start::Refused;
            }
        } else if id.is_some() && id == subject.first {
            subject.first = None;
            let picture = message.pointer("/result/data").and_then(Value::as_str).unwrap_or_default();
            self.show(picture, None);
        } else if message.get("method").and_then(Value::as_str) == Some("Page.screencastFrame")
            && subject.session.as_deref() == message.get("sessionId").and_then(Value::as_str)
        {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Metadata {
                device_width: f64,
                device_height: f64,
            }
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Shown {
                data: String,
                metadata: Metadata,
                session_id: Value,
            }
            let Some(Ok(Shown { data, metadata, session_id })) = message.get("params").map(Shown::deserialize) else {
                return;
            };
            subject.first = None;
            subject.untaken.push(session_id);
            self.show(&data, Some((pixels(metadata.device_width), pixels(metadata.device_height))));
        }
    }

    /// Has the page tell of its changes, and how it is now.
    fn begin(&mut self, session: &str) {
        // A page that is not shown does not draw itself.
        self.call(Some(session), "Page.bringToFront", &json!({}));
        let page = self.subject.as_ref().map(|subject| subject.page.clone());
        self.live.shared.with(|world| world.front = page);
        self.call(Some(session), "Page.enable", &json!({}));
        let parameters = json!({
            "format": "jpeg", "quality": QUALITY, "maxWidth": PAGE_WIDTH, "maxHeight": PAGE_HEIGHT, "everyNthFrame": 1,
        });
        let start = self.call(Some(session), "Page.startScreencast", &parameters);
        let parameters = json!({ "format": "jpeg", "quality": QUALITY, "optimizeForSpeed": true });
        let first = self.call(Some(session), "Page.captureScreenshot", &parameters);
        if let Some(subject) = &mut self.subject {
            (subject.start, subject.first) = (Start::Asked(Some(start)), Some(first));
        }
    }

    fn show(&mut self, picture: &str, size: Option<(u32, u32)>) {
        let Some(subject) = &mut self.subject else { return };
        let jpeg = match BASE64_STANDARD.decode(picture) {
            Ok(jpeg) if !jpeg.is_empty() => jpeg,
            Ok(_) | Err(_) => return,
        };
        // A first picture is as large as the page.
        let (width, height) = size.or_else(|| size_of(&jpeg)).unwrap_or((PAGE_WIDTH, PAGE_HEIGHT));
        subject.is_shown = true;
        let url = self.live.shared.with(|world| world.page(&subject.page).map(|page| page.url().to_owned()));
        self.frames.send_replace(Some(Frame { jpeg, url: url.unwrap_or_default(), width, height }));
    }

    /// The newest picture was taken: more may come.
    fn go_on(&mut self) {
        let Some(subject) = &mut self.subject else { return };
        let (session, untaken) = (subject.session.clone(), std::mem::take(&mut subject.untaken));
        for number in untaken {
            self.call(session.as_deref(), "Page.screencastFrameAck", &json!({ "sessionId": number }));
        }
    }
}

/// A length in pixels, as Chromium tells it. No page is longer than that of a screen.
fn pixels(length: f64) -> u32 {
    let length = length.round().clamp(0.0, f64::from(u16::MAX));
    // Exact: the number is whole and small.
    format!("{length:.0}").parse().unwrap_or_default()
}

/// Width and height of a JPEG, which stand in its first segment of kind C0 to C2.
fn size_of(jpeg: &[u8]) -> Option<(u32, u32)> {
    let mut rest = jpeg.get(2..)?;
    loop {
        let &[0xff, kind, high, low, ref content @ ..] = rest else { return None };
        if (0xc0..=0xc2).contains(&kind) {
            let &[_, top, bottom, left, right, ..] = content else { return None };
            return Some((u16::from_be_bytes([left, right]).into(), u16::from_be_bytes([top, bottom]).into()));
        }
        // The length counts its own two bytes.
        rest = content.get(usize::from(u16::from_be_bytes([high, low])).checked_sub(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{pixels, size_of};

    #[test]
    fn the_size_of_a_picture_is_read_from_it() {
        let picture = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x02\xd0\x05\x00\x01";
        assert_eq!(size_of(picture), Some((1280, 720)));
        for length in 0..17 {
            assert_eq!(size_of(&picture[..length]), None, "{length}");
        }
        assert_eq!(size_of(b"\xff\xd8\xff\xe0\x00\x00"), None);
    }

    #[test]
    fn lengths_are_whole_and_bounded() {
        assert_eq!([-1.0, 0.4, 719.6, 1e300, f64::NAN].map(pixels), [0, 0, 720, 65535, 0]);
    }
}
