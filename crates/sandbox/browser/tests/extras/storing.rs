//! Cookies and local storage.

use gloveport_browser::BrowserError;
use gloveport_protocol::browser::{OriginState, StorageEntry, StorageState};
use serde_json::json;

use crate::support::{House, Pages, Site};

const SITE: Pages = &[
    ("/set", "Set-Cookie: id=1; Path=/; HttpOnly; SameSite=Strict\r\n", "<script>localStorage.token = 'é'</script>"),
    ("/see", "", "<script>document.title = document.cookie + ' ' + JSON.stringify(localStorage)</script>"),
];

fn origin(origin: &str, items: &[(&str, &str)]) -> OriginState {
    let entry = |(name, value): &(&str, &str)| StorageEntry { name: (*name).to_owned(), value: (*value).to_owned() };
    OriginState { origin: origin.to_owned(), local_storage: items.iter().map(entry).collect() }
}

#[tokio::test]
async fn what_is_read_can_be_written_into_another_browser_without_the_network() {
    let (Some(house), Some(other)) = (House::open(), House::open()) else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/set")).await;
    let state = house.browser.storage().await.unwrap();
    let cookie = json!({ "name": "id", "value": "1", "domain": "127.0.0.1", "path": "/", "expires": -1,
        "httpOnly": true, "secure": false, "sameSite": "Strict" });
    let expected = StorageState { cookies: vec![cookie], origins: vec![origin(&site.url(""), &[("token", "é")])] };
    assert_eq!(state, expected);
    house.browser.close().await;

    other.browser.start().await.unwrap();
    let connections = *site.connections.borrow();
    other.browser.set_storage(state.clone()).await.unwrap();
    assert_eq!(*site.connections.borrow(), connections);
    // What is kept for it goes with its end.
    assert_eq!(other.browser.view().await.unwrap().url, "about:blank");
    let view = other.go(&site.url("/see")).await;
    assert_eq!(view.title, "{\"token\":\"é\"}");
    assert!(site.requests.lock().unwrap().iter().any(|head| head.contains("/see") && head.contains("Cookie: id=1")));
    assert_eq!(other.browser.storage().await.unwrap(), state);
    other.browser.close().await;
}

#[tokio::test]
async fn writing_replaces_what_open_pages_keep() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/set")).await;
    let cookies = vec![json!({ "name": "b", "value": "2", "url": site.url("/") })];
    let state = StorageState { cookies, origins: vec![origin(&site.url(""), &[("a", "b")])] };
    house.browser.set_storage(state).await.unwrap();
    assert_eq!(house.go(&site.url("/see")).await.title, "b=2 {\"a\":\"b\"}");
    house.browser.set_storage(StorageState::default()).await.unwrap();
    assert_eq!(house.browser.storage().await.unwrap(), StorageState::default());
    house.browser.close().await;
}

#[tokio::test]
async fn what_is_no_state_is_invalid_and_changes_nothing() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/set")).await;
    let before = house.browser.storage().await.unwrap();
    let cookies = |cookie| StorageState { cookies: vec![cookie], origins: Vec::new() };
    let origins = |text: &str| StorageState { cookies: Vec::new(), origins: vec![origin(text, &[])] };
    let table = [
        (cookies(json!(1)), "cookie 0 is no object"),
        (cookies(json!({ "name": "a" })), "cookie 0 has no `value`"),
        (cookies(json!({ "name": "a", "value": "b" })), "cookie 0 has neither `domain` nor `url`"),
        (cookies(json!({ "name": 1 })), "cookie 0 has a wrong `name`: 1"),
        (origins("file:///x"), "\"file:///x\" is no origin: give scheme, host and port, such as `https://example.org`"),
        (
            origins("http://a/b"),
            "\"http://a/b\" is no origin: give scheme, host and port, such as `https://example.org`",
        ),
    ];
    for (state, words) in table {
        assert_eq!(house.browser.set_storage(state).await, Err(BrowserError::Invalid(words.to_owned())));
    }
    let refused = cookies(json!({ "name": "a;\n", "value": "b", "domain": "127.0.0.1" }));
    assert!(matches!(house.browser.set_storage(refused).await, Err(BrowserError::Invalid(_))));
    assert_eq!(house.browser.storage().await.unwrap(), before);
    house.browser.close().await;
}
