//! What tools do in the browser of a sandbox: asked of its server, and as the history has it.

use gloveport_client::{Browser, ClientError};
use gloveport_mcp_server::{BrowserAnswer, BrowserRequest};
use gloveport_protocol::{
    Action, BrowseInteractiveAction, BrowseObservation, Observation,
    browser::{BrowserAct, ElementTarget, NavigateRequest, PageView},
    truncate::{CONTENT_LIMIT, truncate_content},
};
use serde_json::json;

/// Asks the server.
pub(super) async fn asked(browser: &Browser, request: &BrowserRequest) -> Result<BrowserAnswer, ClientError> {
    let page = |view: PageView| BrowserAnswer::Page(Box::new(view));
    match request {
        BrowserRequest::Navigate(request) => browser.navigate(request).await.map(page),
        BrowserRequest::Act(act) => browser.act(act).await.map(page),
        BrowserRequest::Page => browser.page().await.map(page),
        BrowserRequest::Pages => browser.status().await.map(|status| BrowserAnswer::Pages(status.pages)),
        BrowserRequest::Markdown => browser.markdown().await.map(BrowserAnswer::Text),
        BrowserRequest::Screenshot(request) => browser.screenshot(request).await.map(BrowserAnswer::Picture),
    }
}

/// The action that a request is; none for one that only looks.
pub(super) fn action(request: &BrowserRequest) -> Option<Action> {
    let text = match request {
        BrowserRequest::Navigate(NavigateRequest { url, new_page, .. }) => match (url.as_str(), new_page) {
            ("back", _) => "go_back()".to_owned(),
            ("forward", _) => "go_forward()".to_owned(),
            (url, true) => format!("new_tab()\ngoto({})", json!(url)),
            (url, false) => format!("goto({})", json!(url)),
        },
        BrowserRequest::Act(act) => performed(act),
        BrowserRequest::Page | BrowserRequest::Pages | BrowserRequest::Markdown | BrowserRequest::Screenshot(_) => {
            return None;
        }
    };
    Some(Action::BrowseInteractive(BrowseInteractiveAction::new(&text)))
}

/// An act in the words of `browse_interactive` (spec/browser.md 4.2). Where those name an element by its id only, this one
/// may be named by its text.
fn performed(act: &BrowserAct) -> String {
    match act {
        BrowserAct::Click { target, double, .. } => {
            format!("{}({})", if *double { "dblclick" } else { "click" }, named(target))
        }
        BrowserAct::Fill { target, text, submit } => {
            let target = named(target);
            let submitted = if *submit { format!("\npress({target}, \"Enter\")") } else { String::new() };
            format!("fill({target}, {}){submitted}", json!(text))
        }
        BrowserAct::Type { text } => format!("keyboard_type({})", json!(text)),
        BrowserAct::Press { target: Some(target), keys } => format!("press({}, {})", named(target), json!(keys)),
        BrowserAct::Press { target: None, keys } => format!("keyboard_press({})", json!(keys)),
        BrowserAct::Select { target, options } => format!("select_option({}, {})", named(target), json!(options)),
        BrowserAct::Hover { target } => format!("hover({})", named(target)),
        BrowserAct::Scroll { x, y } => format!("scroll({x}, {y})"),
        BrowserAct::Upload { target, files } => format!("upload_file({}, {})", named(target), json!(files)),
        BrowserAct::ActivatePage { id } => format!("tab_focus({})", json!(id)),
        BrowserAct::ClosePage { id } => format!("tab_close({})", json!(id)),
    }
}

fn named(target: &ElementTarget) -> String {
    let ElementTarget { bid, text, role, name, selector } = target;
    let word = [bid, text, selector, name, role].into_iter().find_map(Option::as_deref).unwrap_or_default();
    json!(word).to_string()
}

/// What the history keeps of an answer.
pub(super) fn observed(answer: &BrowserAnswer) -> Observation {
    let BrowserAnswer::Page(view) = answer else {
        return Observation::Browse(BrowseObservation::new(String::new(), String::new(), TRIGGER.to_owned()));
    };
    let error = view.error.clone().unwrap_or_default();
    let content = format!("[Current URL: {}]\n{}", view.url, view.tree);
    let content = truncate_content(&content, CONTENT_LIMIT).into_owned();
    let index = view.pages.iter().position(|page| page.active);
    Observation::Browse(BrowseObservation {
        error: !error.is_empty(),
        last_browser_action_error: error,
        focused_element_bid: view.focused.clone(),
        open_pages_urls: view.pages.iter().map(|page| page.url.clone()).collect(),
        active_page_index: index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1),
        ..BrowseObservation::new(content, view.url.clone(), TRIGGER.to_owned())
    })
}

/// The kind of action that led to what is observed.
const TRIGGER: &str = "browse_interactive";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_written_as_the_actions_of_agents() {
        let bid = || ElementTarget { bid: Some("12".to_owned()), ..ElementTarget::default() };
        let text = ElementTarget { text: Some("Sign \"in\"".to_owned()), ..ElementTarget::default() };
        let to = |url: &str| {
            BrowserRequest::Navigate(NavigateRequest {
                url: url.to_owned(),
                new_page: false,
                wait: gloveport_protocol::browser::NavigateWait::Load,
            })
        };
        for (request, expected) in [
            (to("http://a/"), Some("goto(\"http://a/\")")),
            (to("back"), Some("go_back()")),
            (
                BrowserRequest::Act(BrowserAct::Click { target: text, button: None, double: false }),
                Some("click(\"Sign \\\"in\\\"\")"),
            ),
            (
                BrowserRequest::Act(BrowserAct::Fill { target: bid(), text: "a\nb".to_owned(), submit: true }),
                Some("fill(\"12\", \"a\\nb\")\npress(\"12\", \"Enter\")"),
            ),
            (
                BrowserRequest::Act(BrowserAct::Select { target: bid(), options: vec!["x".to_owned()] }),
                Some("select_option(\"12\", [\"x\"])"),
            ),
            (BrowserRequest::Act(BrowserAct::Scroll { x: 0.0, y: 600.0 }), Some("scroll(0, 600)")),
            (BrowserRequest::Page, None),
            (BrowserRequest::Markdown, None),
        ] {
            let written = action(&request).map(|action| match action {
                Action::BrowseInteractive(action) => action.browser_actions,
                other => other.kind().to_owned(),
            });
            assert_eq!(written.as_deref(), expected, "{request:?}");
        }
    }
}
