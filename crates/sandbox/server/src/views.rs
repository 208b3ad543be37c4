//! What opens the view of the browser to a person's browser.

use crate::options::SessionKey;

/// The path of the page.
pub(crate) const PATH: &str = "/v1/browser/view";

/// What opens the page and the live view to a browser; others at each start of the server.
#[derive(Debug)]
pub(crate) struct Views {
    /// Opens the page.
    token: Option<SessionKey>,
    /// Opens the live view to the page.
    pub(crate) key: Option<SessionKey>,
}

impl Views {
    /// New ones. Without random numbers only the session's key opens anything.
    pub(crate) fn new() -> Self {
        let secret = || gloveport_ids::uuid().ok().map(SessionKey::new);
        Self { token: secret(), key: secret() }
    }

    /// Where the page is, and what opens it to a browser.
    pub(crate) fn page(&self) -> (&'static str, Option<String>) {
        (PATH, self.token.as_ref().map(|token| token.secret().to_owned()))
    }
}
