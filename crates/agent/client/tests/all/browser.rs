//! The browser of a server: what is asked, and what comes back.

use crate::common::{Peer, Reply, within};
use gloveport_protocol::browser::{
    BrowserAct, BrowserActivity, ElementTarget, NavigateRequest, NavigateWait, PageView, ScreenshotRequest,
    StorageState,
};
use serde_json::json;

#[tokio::test]
async fn pages_are_opened_used_and_read() {
    within(async {
        let page = json!({"url": "http://a/", "title": "A", "pages": [], "tree": "[1] button 'Go'"});
        let peer = Peer::start([
            Reply::ok(r#"{"state": "idle", "pages": []}"#),
            Reply::ok(&page.to_string()),
            Reply::ok(&page.to_string()),
            Reply::with("text/markdown; charset=utf-8", "200 OK", "# Ä".as_bytes()),
            Reply::with("image/png", "200 OK", b"\x89PNG"),
            Reply::ok(r#"{"next": 7, "entries": [{"text": "a"}]}"#),
            Reply::ok(r#"{"state": "ready", "pages": []}"#),
        ])
        .await;
        let browser = peer.client().browser();
        assert_eq!(browser.status().await.unwrap().state, BrowserActivity::Idle);
        let goal = NavigateRequest { url: "http://a/".to_owned(), new_page: false, wait: NavigateWait::Load };
        let view: PageView = serde_json::from_value(page).unwrap();
        assert_eq!(browser.navigate(&goal).await.unwrap(), view);
        let target = ElementTarget { bid: Some("1".to_owned()), ..ElementTarget::default() };
        let act = BrowserAct::Click { target, button: None, double: false };
        assert_eq!(browser.act(&act).await.unwrap(), view);
        assert_eq!(browser.markdown().await.unwrap(), "# Ä");
        assert_eq!(browser.screenshot(&ScreenshotRequest::default()).await.unwrap(), b"\x89PNG");
        let log = browser.console(5).await.unwrap();
        assert_eq!((log.next, log.entries), (7, vec![json!({"text": "a"})]));
        browser.set_storage(&StorageState::default()).await.unwrap();
        let expected = [
            "GET /v1/browser",
            "POST /v1/browser/navigate",
            "POST /v1/browser/act",
            "GET /v1/browser/markdown",
            "POST /v1/browser/screenshot",
            "GET /v1/browser/console?since=5",
            "PUT /v1/browser/storage",
        ];
        assert_eq!(peer.lines(), expected);
        let asked = peer.asked();
        let click = json!({"action": "click", "target": {"bid": "1"}, "double": false});
        assert_eq!(asked[2].json(), click);
    })
    .await;
}

#[tokio::test]
async fn what_may_have_been_done_is_not_done_again() {
    within(async {
        let peer = Peer::start([Reply::Close, Reply::ok("{}")]).await;
        let act = BrowserAct::Type { text: "once".to_owned() };
        assert!(peer.client().browser().act(&act).await.is_err());
        assert_eq!(peer.lines().len(), 1);
    })
    .await;
}
