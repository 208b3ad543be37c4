//! Going somewhere, and what the pages are then.

use gloveport_browser::{BrowserError, BrowserState};
use gloveport_protocol::browser::{BrowserAct, NavigateRequest, PageInfo};

use crate::support::{House, Pages, Site, inline, to};

const SITE: Pages = &[
    ("/one", "", "<title>One</title><h1>First</h1><a href='/two'>on</a>"),
    ("/two", "", "<title>Two</title><h1>Second</h1>"),
    ("/plain", "", "<p>No title"),
];

#[tokio::test]
async fn pages_and_traffic_of_a_browser_that_is_not_up_are_none_and_do_not_start_it() {
    let Some(house) = House::open() else { return };
    assert_eq!(house.browser.pages().await, []);
    assert_eq!(house.browser.console(5).await.unwrap(), (0, Vec::new()));
    assert_eq!(house.browser.network(5).await.unwrap(), (0, Vec::new()));
    assert_eq!(house.browser.har().await.unwrap()["log"]["entries"], serde_json::json!([]));
    assert_eq!(*house.browser.state().borrow(), BrowserState::Idle);
}

#[tokio::test]
async fn navigation_goes_to_addresses_and_through_the_history() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    let one = house.go(&site.url("/one")).await;
    assert_eq!((one.url.as_str(), one.title.as_str()), (site.url("/one").as_str(), "One"));
    assert!(one.tree.starts_with("RootWebArea 'One'"), "{}", one.tree);
    assert!(one.tree.contains("heading 'First'"), "{}", one.tree);
    house.go(&site.url("/two")).await;
    let back = house.go("back").await;
    assert_eq!(back.title, "One");
    assert_eq!(house.go("forward").await.title, "Two");
    let asked = site.requests.lock().unwrap().len();
    assert_eq!(house.go("reload").await.title, "Two");
    assert!(site.requests.lock().unwrap().len() > asked);
    assert_eq!(house.browser.view().await.unwrap().title, "Two");
    assert!(house.browser.markdown().await.unwrap().contains("#  Second"));
    house.browser.close().await;
}

#[tokio::test]
async fn new_pages_are_the_active_ones_until_another_one_is_activated_or_they_are_closed() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/plain")).await;
    let request = NavigateRequest { new_page: true, ..to(&site.url("/two")) };
    let two = house.browser.navigate(request).await.unwrap();
    let info = |index: usize, path: &str, title: &str, active: bool| PageInfo {
        id: two.pages[index].id.clone(),
        url: site.url(path),
        title: title.to_owned(),
        active,
    };
    assert_eq!(two.pages, [info(0, "/plain", "", false), info(1, "/two", "Two", true)]);
    let first = two.pages[0].id.clone();
    let plain = house.browser.act(BrowserAct::ActivatePage { id: first.clone() }).await.unwrap();
    assert_eq!(plain.pages, [info(0, "/plain", "", true), info(1, "/two", "Two", false)]);
    let two = house.browser.act(BrowserAct::ClosePage { id: first.clone() }).await.unwrap();
    assert_eq!((two.title.as_str(), two.pages.len()), ("Two", 1));
    let gone = house.browser.act(BrowserAct::ClosePage { id: first.clone() }).await.unwrap();
    assert_eq!(gone.error, Some(format!("ValueError: there is no page {first:?}")));
    let last = two.pages[0].id.clone();
    let blank = house.browser.act(BrowserAct::ClosePage { id: last }).await.unwrap();
    assert_eq!((blank.url.as_str(), blank.pages.len()), ("about:blank", 1));
    house.browser.close().await;
}

#[tokio::test]
async fn where_going_fails_the_view_has_the_error() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    let (url, port) = (site.url("/one"), site.port);
    house.go(&url).await;
    drop(site);
    let view = house.browser.navigate(to("reload")).await.unwrap();
    assert_eq!(view.error, Some(format!("Error: Page.reload: net::ERR_CONNECTION_REFUSED at {url}")));
    let url = format!("http://127.0.0.1:{port}/two");
    let error = house.browser.navigate(to(&url)).await.unwrap().error.unwrap();
    assert!(error.starts_with(&format!("Error: Page.goto: net::ERR_CONNECTION_REFUSED at {url}\n")), "{error}");
    let error = house.browser.navigate(to("nowhere")).await.unwrap().error.unwrap();
    assert!(error.contains("Cannot navigate to invalid URL"), "{error}");
    let request = NavigateRequest { new_page: true, ..to("back") };
    let invalid = BrowserError::Invalid("a new page has nothing to go back to: leave out `new_page`".to_owned());
    assert_eq!(house.browser.navigate(request).await, Err(invalid));
    house.browser.close().await;
}

#[tokio::test]
async fn whatever_is_asked_for_can_be_asked_for_by_another_task() {
    let Some(house) = House::open() else { return };
    let browser = house.browser.clone();
    let task = tokio::spawn(async move {
        browser.navigate(to(&inline("<button>b</button>"))).await.unwrap();
        browser.act(BrowserAct::Scroll { x: 0.0, y: 1.0 }).await.unwrap();
        let state = browser.storage().await.unwrap();
        browser.set_storage(state).await.unwrap();
        browser.screenshot(gloveport_protocol::browser::ScreenshotRequest::default()).await.unwrap();
        browser.pdf(gloveport_protocol::browser::PdfRequest::default()).await.unwrap();
        let mut cast = browser.screencast().await.unwrap();
        cast.next().await.unwrap();
    });
    task.await.unwrap();
    house.browser.close().await;
}
