//! Where the routes get the browser from.

use gloveport_executor::browser::Browser;

use crate::{app::App, v1::error::ApiError};

/// The browser of the sandbox.
pub(super) fn browser(app: &App) -> Result<&Browser, ApiError> {
    app.executor.plugins().web().and_then(|web| web.browser()).ok_or(ApiError::NoBrowser)
}

/// The same, for something that the sandbox is used for.
pub(super) fn used(app: &App) -> Result<&Browser, ApiError> {
    let browser = browser(app)?;
    app.action_arrived();
    Ok(browser)
}
