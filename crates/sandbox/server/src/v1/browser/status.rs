//! How the browser stands.

use gloveport_executor::browser::{Browser, BrowserState};
use gloveport_protocol::browser::{BrowserActivity, BrowserStatus};

/// How it stands, and its pages. This does not start it.
pub(crate) async fn of(browser: &Browser) -> BrowserStatus {
    let state = browser.state().borrow().clone();
    let plain = |state| BrowserStatus {
        state,
        version: None,
        pid: None,
        sandboxed: None,
        pages: Vec::new(),
        reason: None,
        remedy: None,
    };
    match state {
        BrowserState::Idle => plain(BrowserActivity::Idle),
        BrowserState::Starting => plain(BrowserActivity::Starting),
        BrowserState::Closed => plain(BrowserActivity::Closed),
        BrowserState::Failed { reason, remedy } => {
            BrowserStatus { reason: Some(reason), remedy: Some(remedy), ..plain(BrowserActivity::Failed) }
        }
        BrowserState::Ready { version, pid, sandboxed } => BrowserStatus {
            version: Some(version),
            pid: Some(pid),
            sandboxed: Some(sandboxed),
            pages: browser.pages().await,
            ..plain(BrowserActivity::Ready)
        },
    }
}
