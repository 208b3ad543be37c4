//! The texts of observations (spec/browser.md 1, 8, 9.1).

/// The content of the observation when there is no browser.
pub const UNSUPPORTED: &str = "Browser functionality is not supported or disabled.";

/// What went wrong when a step takes longer than it may.
pub const STEP_TIMEOUT: &str = "Browser environment took too long to respond.";

/// What went wrong with the tree of a step that gave none (8.3).
pub const NO_TREE: &str = "'nodes'";

/// What a `browse_interactive` tells.
#[derive(Debug, Clone, Copy)]
pub struct InteractiveContent<'a> {
    /// The address of the active page.
    pub url: &'a str,
    /// The element that has the focus.
    pub focused_element_bid: Option<&'a str>,
    /// Where the picture of the page is stored.
    pub screenshot_path: Option<&'a str>,
    /// What went wrong with the action.
    pub error: Option<&'a str>,
    /// The accessibility tree as text, or why there is none.
    pub tree: Result<&'a str, &'a str>,
}

impl InteractiveContent<'_> {
    /// The content of the observation (8.1).
    pub fn text(&self) -> String {
        let Self { url, focused_element_bid, screenshot_path, error, tree } = *self;
        let focused = focused_element_bid.unwrap_or("None");
        let screenshot = screenshot_path.map(|path| format!("[Screenshot saved to: {path}]\n")).unwrap_or_default();
        let outcome = match error {
            Some(error) => error_block("executing the last action", error),
            None => "[Action executed successfully.]\n".to_owned(),
        };
        let tree = match tree {
            Ok(tree) => format!(
                "Accessibility tree of the COMPLETE webpage:\n\
                 Note: [bid] is the unique alpha-numeric identifier at the beginning of lines for each element in the AXTree. \
                 Always use bid to refer to elements in your actions.\n\
                 ============== BEGIN accessibility tree ==============\n{tree}\n\
                 ============== END accessibility tree ==============\n"
            ),
            Err(error) => format!("\n[Error encountered when processing the accessibility tree: {error}]"),
        };
        format!("[Current URL: {url}]\n[Focused element bid: {focused}]\n{screenshot}\n{outcome}{tree}")
    }
}

/// What a `browse` tells.
#[derive(Debug, Clone, Copy)]
pub struct VisitContent<'a> {
    /// The address of the active page.
    pub url: &'a str,
    /// What went wrong with the visit.
    pub error: Option<&'a str>,
    /// The page as text; what went wrong if there is no page.
    pub page: &'a str,
}

impl VisitContent<'_> {
    /// The content of the observation (8.2).
    pub fn text(&self) -> String {
        let Self { url, error, page } = self;
        let error = error.map(|error| error_block("trying to visit the URL", error)).unwrap_or_default();
        format!(
            "[Current URL: {url}]\n{error}\
             ============== BEGIN webpage content ==============\n{page}\n\
             ============== END webpage content ==============\n"
        )
    }
}

fn error_block(doing: &str, error: &str) -> String {
    format!(
        "================ BEGIN error message ===============\n\
         The following error occurred when {doing}:\n{error}\n\
         ================ END error message ===============\n"
    )
}

/// The action that a `browse` is (8.2).
pub fn visit_action(url: &str) -> String {
    format!("goto(\"{url}\")")
}

/// The URL that a `browse` goes to: what is none gets the working directory before it, with nothing between them (8.2).
pub fn visit_url(url: &str, working_directory: &str) -> String {
    if url.starts_with("http") { url.to_owned() } else { format!("{working_directory}{url}") }
}

/// The content of the observation of a download (9.1).
pub fn download(browser_actions: &str, path: &str) -> String {
    format!(
        "Execution of the previous action {browser_actions} resulted in a file download. The downloaded file is saved at \
         location: {path}"
    )
}
