//! What a page, or a frame in a process of its own, needs before its scripts run.

use serde_json::{Value, json};

use crate::cdp::{Command, SessionId, Tag};

/// Name of the world in which our scripts run: pages cannot reach it.
pub(crate) const WORLD: &str = "gloveport";
/// By what our script tells that a page was used.
pub(crate) const ACTIVITY: &str = "gloveportActivity";
/// By what our script tells of a dialog that it has declined.
pub(crate) const DIALOG: &str = "gloveportDialog";
/// Our script among those of frames in processes of their own: it declines dialogs.
const DIALOGS: &str = include_str!("../scripts/dialogs.js");
/// Our script among those of the page: when its timers are due.
const TIMERS: &str = include_str!("../scripts/timers.js");
/// Our script in every document.
const SCRIPT: &str = include_str!("../scripts/document.js");

/// Whether a page or a frame of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    Frame,
}

/// The commands, in their order. The answer to the last one says that all is done.
pub(super) fn commands(session: &SessionId, kind: Kind, (width, height): (u32, u32), out: &mut Vec<Command>) {
    let mut say = |method: &'static str, parameters: Value, tag: Option<Tag>| {
        out.push(Command { session: Some(session.clone()), method, parameters, tag });
    };
    say("Page.enable", json!({}), None);
    say("Page.getFrameTree", json!({}), Some(Tag::Frames));
    say("Page.setLifecycleEventsEnabled", json!({ "enabled": true }), None);
    say("Runtime.enable", json!({}), None);
    say("Runtime.addBinding", json!({ "name": ACTIVITY, "executionContextName": WORLD }), None);
    say(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": SCRIPT, "worldName": WORLD, "runImmediately": true }),
        None,
    );
    say("Page.addScriptToEvaluateOnNewDocument", json!({ "source": TIMERS, "runImmediately": true }), None);
    if kind == Kind::Frame {
        say("Runtime.addBinding", json!({ "name": DIALOG }), None);
        say("Page.addScriptToEvaluateOnNewDocument", json!({ "source": DIALOGS, "runImmediately": true }), None);
    }
    say("Network.enable", json!({ "maxTotalBufferSize": 10_000_000, "maxResourceBufferSize": 5_000_000 }), None);
    say("Target.setAutoAttach", json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true }), None);
    say("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }), None);
    say("Inspector.enable", json!({}), None);
    if kind == Kind::Page {
        say(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
                "screenWidth": width, "screenHeight": height }),
            None,
        );
        say("Log.enable", json!({}), None);
    }
    say("Runtime.runIfWaitingForDebugger", json!({}), Some(Tag::Prepared));
}

/// Size of what a page shows (spec/browser.md 1.1).
pub(crate) const WIDTH: u32 = 1280;
/// The same, downwards.
pub(crate) const HEIGHT: u32 = 720;
