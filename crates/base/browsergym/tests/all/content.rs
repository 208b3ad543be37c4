//! The texts of observations, as OpenHands 0.62 writes them.

use gloveport_browsergym::content::{InteractiveContent, NO_TREE, VisitContent, download, visit_action, visit_url};

const PAGE: InteractiveContent<'_> = InteractiveContent {
    url: "http://h:1/",
    focused_element_bid: Some("4"),
    screenshot_path: Some("/w/.browser_screenshots/screenshot_1.png"),
    error: None,
    tree: Ok("RootWebArea 'A'\n\t[4] body ''"),
};

#[test]
fn an_interaction_tells_the_page_and_its_tree() {
    let expected = "[Current URL: http://h:1/]\n\
        [Focused element bid: 4]\n\
        [Screenshot saved to: /w/.browser_screenshots/screenshot_1.png]\n\
        \n\
        [Action executed successfully.]\n\
        Accessibility tree of the COMPLETE webpage:\n\
        Note: [bid] is the unique alpha-numeric identifier at the beginning of lines for each element in the AXTree. \
        Always use bid to refer to elements in your actions.\n\
        ============== BEGIN accessibility tree ==============\n\
        RootWebArea 'A'\n\t[4] body ''\n\
        ============== END accessibility tree ==============\n";
    assert_eq!(PAGE.text(), expected);
}

#[test]
fn a_failed_interaction_tells_what_went_wrong() {
    let content = InteractiveContent {
        url: "",
        focused_element_bid: None,
        screenshot_path: None,
        error: Some("ValueError: Received an empty action."),
        tree: Err(NO_TREE),
    };
    let expected = "[Current URL: ]\n\
        [Focused element bid: None]\n\
        \n\
        ================ BEGIN error message ===============\n\
        The following error occurred when executing the last action:\n\
        ValueError: Received an empty action.\n\
        ================ END error message ===============\n\
        \n\
        [Error encountered when processing the accessibility tree: 'nodes']";
    assert_eq!(content.text(), expected);
}

#[test]
fn a_visit_tells_the_page_and_what_went_wrong() {
    let content = VisitContent { url: "http://h/", error: None, page: "#  A \n\n" };
    let expected = "[Current URL: http://h/]\n\
        ============== BEGIN webpage content ==============\n\
        #  A \n\n\n\
        ============== END webpage content ==============\n";
    assert_eq!(content.text(), expected);
    let content = VisitContent { error: Some("Error: no"), page: "no", ..content };
    let expected = "[Current URL: http://h/]\n\
        ================ BEGIN error message ===============\n\
        The following error occurred when trying to visit the URL:\n\
        Error: no\n\
        ================ END error message ===============\n\
        ============== BEGIN webpage content ==============\n\
        no\n\
        ============== END webpage content ==============\n";
    assert_eq!(content.text(), expected);
}

#[test]
fn a_visit_is_the_action_goto() {
    assert_eq!(visit_action(&visit_url("http://h", "/openhands/code")), "goto(\"http://h\")");
    assert_eq!(visit_action(&visit_url("x.html", "/openhands/code")), "goto(\"/openhands/codex.html\")");
}

#[test]
fn a_download_tells_where_the_file_is() {
    let expected = "Execution of the previous action goto(\"u\") resulted in a file download. The downloaded file is saved at \
        location: /workspace/file_1.pdf";
    assert_eq!(download("goto(\"u\")", "/workspace/file_1.pdf"), expected);
}
