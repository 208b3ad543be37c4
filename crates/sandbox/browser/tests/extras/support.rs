//! A browser for programs, and words for what they ask of it.

use std::path::Path;

use gloveport_browser::{Browser, BrowserOptions, Tunnel};
use gloveport_protocol::browser::{ElementTarget, NavigateRequest, NavigateWait, PageView};
use gloveport_sys::Surroundings;
use serde_json::{Value, json};

pub(crate) use crate::site::{Pages, Site};

/// A browser with a directory of its own.
pub(crate) struct House {
    pub(crate) browser: Browser,
    pub(crate) directory: tempfile::TempDir,
}

impl House {
    /// None where there is no browser.
    pub(crate) fn open() -> Option<Self> {
        if !Path::new("/usr/bin/chromium").exists() {
            println!("skipped: there is no /usr/bin/chromium");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let downloads = directory.path().join("downloads");
        std::fs::create_dir(&downloads).unwrap();
        let mut options = BrowserOptions::new(Surroundings::inherited(directory.path().to_owned()), downloads);
        options.program = Some("/usr/bin/chromium".into());
        Some(Self { browser: Browser::new(options), directory })
    }

    pub(crate) async fn go(&self, url: &str) -> PageView {
        let view = self.browser.navigate(to(url)).await.unwrap();
        assert_eq!(view.error, None);
        view
    }
}

pub(crate) fn to(url: &str) -> NavigateRequest {
    NavigateRequest { url: url.to_owned(), new_page: false, wait: NavigateWait::Load }
}

pub(crate) fn text(text: &str) -> ElementTarget {
    ElementTarget { text: Some(text.to_owned()), ..ElementTarget::default() }
}

pub(crate) fn selector(selector: &str) -> ElementTarget {
    ElementTarget { selector: Some(selector.to_owned()), ..ElementTarget::default() }
}

pub(crate) fn role(role: &str, name: Option<&str>) -> ElementTarget {
    ElementTarget { role: Some(role.to_owned()), name: name.map(str::to_owned), ..ElementTarget::default() }
}

/// Calls a method through a tunnel; events are passed over.
pub(crate) async fn ask(tunnel: &mut Tunnel, id: u64, session: Option<&str>, method: &str, parameters: Value) -> Value {
    let mut message = json!({ "id": id, "method": method, "params": parameters });
    if let Some(session) = session {
        message["sessionId"] = session.into();
    }
    tunnel.send(message).unwrap();
    loop {
        let message = tunnel.next().await.unwrap();
        if message["id"] == json!(id) {
            assert_eq!(message["error"], Value::Null, "{method}");
            return message["result"].clone();
        }
    }
}

/// A page in the address itself.
pub(crate) fn inline(html: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    format!("data:text/html;charset=utf-8;base64,{}", BASE64_STANDARD.encode(html))
}

/// Width and height of a PNG.
pub(crate) fn size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    (number(16), number(20))
}
