//! Elements by what they show, and what is done with them.

use gloveport_browser::BrowserError;
use gloveport_protocol::browser::{BrowserAct, ElementTarget, PageView, ScreenshotRequest};

use crate::support::{House, Pages, Site, inline, role, selector, size, text, to};

fn click(target: ElementTarget) -> BrowserAct {
    BrowserAct::Click { target, button: None, double: false }
}

fn fill(target: ElementTarget, text: &str, submit: bool) -> BrowserAct {
    BrowserAct::Fill { target, text: text.to_owned(), submit }
}

/// What a page says in its title.
async fn said(house: &House, act: BrowserAct) -> String {
    let view: PageView = house.browser.act(act).await.unwrap();
    assert_eq!(view.error, None);
    view.title
}

const FORM: &str = "<title>-</title>
<script>const say = (text) => document.title = text;</script>
<form onsubmit=\"say('sent ' + name.value); return false\">
  <label>Your name <input name=name oninput=\"say('name ' + this.value)\"></label>
  <input placeholder='Search here' oninput=\"say('search ' + this.value)\" onkeydown=\"if (event.key == 'a' && event.ctrlKey) say('all')\">
  <button type=button onclick=\"say('save all')\">Save all</button>
  <button type=button onclick=\"say('save')\">save</button>
  <div role=button aria-label='Delete it' onclick=\"say('deleted')\">x</div>
  <button style='display:none'>Go</button>
  <button type=button class=c ondblclick=\"say('double')\" oncontextmenu=\"say('right')\" onmouseover=\"say('over')\">Target</button>
  <select onchange=\"say('chose ' + this.value)\"><option value=1>One</option><option value=2>Two</option></select>
</form>
<div id=host></div>
<script>
  host.attachShadow({ mode: 'open' }).innerHTML = '<button class=inner>Deep</button>';
  host.shadowRoot.querySelector('button').onclick = () => say('deep');
</script>";

#[tokio::test]
async fn elements_are_found_by_id_text_label_role_and_selector() {
    let Some(house) = House::open() else { return };
    let view = house.go(&inline(FORM)).await;
    let line = view.tree.lines().find(|line| line.contains("button 'Save all'")).unwrap().trim();
    let bid = line[1..].split(']').next().unwrap().to_owned();
    let by_bid = ElementTarget { bid: Some(bid), ..ElementTarget::default() };
    let table = [
        (click(by_bid), "save all"),
        // Exactly this text goes before more.
        (click(text("SAVE")), "save"),
        (click(text("save a")), "save all"),
        (click(role("button", Some("delete it"))), "deleted"),
        (click(role("Button", Some("save"))), "save"),
        (click(text("Deep")), "deep"),
        (click(role("button", Some("deep"))), "deep"),
        (click(selector("button.inner")), "deep"),
        (fill(text("Your name"), "Ada", false), "name Ada"),
        (fill(role("textbox", Some("your name")), "Bob", false), "name Bob"),
        (fill(text("search here"), "x", false), "search x"),
        (fill(text("Your name"), "Cleo", true), "sent Cleo"),
    ];
    for (act, expected) in table {
        assert_eq!(said(&house, act.clone()).await, expected, "{act:?}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn mouse_keys_and_lists_do_what_they_are_told() {
    let Some(house) = House::open() else { return };
    house.go(&inline(FORM)).await;
    let target = || selector(".c");
    let keys = |target, keys: &str| BrowserAct::Press { target, keys: keys.to_owned() };
    let table = [
        (BrowserAct::Hover { target: target() }, "over"),
        (BrowserAct::Click { target: target(), button: None, double: true }, "double"),
        (BrowserAct::Click { target: target(), button: Some("right".to_owned()), double: false }, "right"),
        (BrowserAct::Select { target: selector("select"), options: vec!["Two".to_owned()] }, "chose 2"),
        (fill(text("search here"), "", false), "chose 2"),
        (BrowserAct::Type { text: "é b".to_owned() }, "search é b"),
        (keys(None, "Backspace"), "search é"),
        (keys(Some(text("search here")), "Control+a"), "all"),
        (keys(None, "Delete"), "search"),
    ];
    for (act, expected) in table {
        assert_eq!(said(&house, act.clone()).await, expected, "{act:?}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn an_element_that_comes_and_becomes_ready_in_time_is_waited_for() {
    let Some(house) = House::open() else { return };
    house
        .go(&inline(
            "<body><script>setTimeout(() => {
               document.body.innerHTML = '<button disabled>Later</button>';
               const button = document.querySelector('button');
               button.onclick = () => document.title = 'clicked';
               setTimeout(() => button.disabled = false, 900);
             }, 900)</script>",
        ))
        .await;
    assert_eq!(said(&house, click(text("Later"))).await, "clicked");
    house.browser.close().await;
}

#[tokio::test]
async fn elements_of_frames_are_found_also_in_those_of_other_sites() {
    const SITE: Pages = &[
        (
            "/",
            "",
            "<body style='margin:0'><iframe src='/inner?Near'></iframe><div style='height:900px'></div>
             <script>document.write(`<iframe src='//localhost:${location.port}/inner?Far'></iframe>`);
             onmessage = (event) => document.title = event.data;</script>",
        ),
        (
            "/inner",
            "",
            "<body style='margin:0;background:red'>
             <script>const name = location.search.slice(1);
             document.write(`<button style='all:unset;background:blue;width:80px;height:30px'
               onclick=\"top.postMessage('${name}', '*')\" aria-label='${name}'></button>`)</script>",
        ),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/")).await;
    for name in ["Near", "Far"] {
        assert_eq!(said(&house, click(role("button", Some(name)))).await, name);
        assert_eq!(said(&house, click(text(name))).await, name);
        let target = Some(selector(&format!("[aria-label={name}]")));
        let picture = house.browser.screenshot(ScreenshotRequest { target, full_page: false }).await.unwrap();
        assert_eq!(size(&picture), (80, 30));
        let pixels = gloveport_browsergym::overlay::decode_png(&picture).unwrap();
        assert!(pixels.pixels().chunks(3).all(|pixel| pixel == [0, 0, 255]), "{name}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn an_element_that_does_not_come_is_an_error_in_the_view() {
    let Some(house) = House::open() else { return };
    let view = house.browser.act(click(text("Nothing"))).await.unwrap();
    let words = "TimeoutError: there was no element with text \"Nothing\" within 3 s";
    assert_eq!((view.url.as_str(), view.error.as_deref()), ("about:blank", Some(words)));
    house.browser.close().await;
}

#[tokio::test]
async fn an_element_that_does_not_become_ready_is_an_error_in_the_view() {
    let Some(house) = House::open() else { return };
    house.go(&inline("<button disabled>Off</button>")).await;
    let error = house.browser.act(click(text("Off"))).await.unwrap().error.unwrap();
    assert!(error.starts_with("TimeoutError: Locator.click: Timeout 3000ms exceeded.\n"), "{error}");
    assert!(error.contains("element is not enabled"), "{error}");
    house.browser.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_for_any_page_is_invalid() {
    let Some(house) = House::open() else { return };
    let nothing = ElementTarget::default();
    let both = ElementTarget { bid: Some("1".to_owned()), ..text("x") };
    let named = ElementTarget { name: Some("x".to_owned()), ..selector("p") };
    let button = BrowserAct::Click { target: text("x"), button: Some("up".to_owned()), double: false };
    let table = [
        (click(nothing), "the target names no element: give one of `bid`, `text`, `role` and `selector`"),
        (click(both), "the target has `bid` and `text`: give only one of them"),
        (click(named), "`name` of the target goes with `role`, not with `selector`"),
        (click(text(" ")), "`text` of the target is empty"),
        (button, "there is no button \"up\": give `left`, `middle` or `right`"),
        (click(selector("p[")), "the target for selector \"p[\" is no CSS selector"),
    ];
    for (act, words) in table {
        assert_eq!(house.browser.act(act.clone()).await, Err(BrowserError::Invalid(words.to_owned())), "{act:?}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn dialogs_and_downloads_of_an_action_are_in_its_view() {
    const SITE: Pages = &[
        ("/", "", "<a href='/file'>get</a><button onclick=\"alert('Hello')\">ask</button>"),
        ("/file", "Content-Disposition: attachment; filename=x.txt\r\nContent-Type: text/plain\r\n", "the file"),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/")).await;
    let asked = house.browser.act(click(text("ask"))).await.unwrap();
    assert_eq!((asked.dialogs, asked.downloads), (vec!["alert: Hello".to_owned()], Vec::new()));
    let got = house.browser.act(click(text("get"))).await.unwrap();
    assert_eq!((got.error, got.dialogs, got.downloads.len()), (None, Vec::new(), 1));
    assert!(got.downloads[0].starts_with(house.directory.path().join("downloads").to_str().unwrap()));
    assert_eq!(std::fs::read_to_string(&got.downloads[0]).unwrap(), "the file");
    let view = house.browser.act(BrowserAct::Scroll { x: 0.0, y: 10.0 }).await.unwrap();
    assert_eq!((view.dialogs, view.downloads), (Vec::new(), Vec::new()));
    let went = house.browser.navigate(to(&site.url("/file"))).await.unwrap();
    assert!(went.error.unwrap().starts_with("Error: Page.goto: Download is starting"));
    assert_eq!(std::fs::read_to_string(&went.downloads[0]).unwrap(), "the file");
    house.browser.close().await;
}

/// Chromium shows one dialog of a page at a time, and forgets the one that is left of two.
#[tokio::test]
async fn dialogs_that_frames_of_several_sites_open_at_the_same_time_are_all_declined_and_told() {
    const SITE: Pages = &[
        (
            "/",
            "",
            "<script>for (const host of ['127.0.0.1', 'localhost', 'a.localhost'])
               document.write(`<iframe src='//${host}:${location.port}/ask?${host}'></iframe>`)</script>
             <h1>top</h1>",
        ),
        (
            "/ask",
            "",
            "<script>const host = location.search.slice(1); const answers = [];
             for (let i = 0; i < 10; i++) answers.push(alert(host), confirm(), prompt(host + '?', 'x'));
             document.write(`<h2>${host} ${[...new Set(answers)].map(String)} ${typeof gloveportDialog}`)</script>",
        ),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    let view = house.go(&site.url("/")).await;
    let mut expected = Vec::new();
    for host in ["127.0.0.1", "localhost", "a.localhost"] {
        let heading = format!("heading '{host} undefined,false,null undefined'");
        assert!(view.tree.contains(&heading), "{heading} is not in {}", view.tree);
        for _ in 0..10 {
            expected.extend([format!("alert: {host}"), "confirm: ".to_owned(), format!("prompt: {host}?")]);
        }
    }
    let mut told = view.dialogs;
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
    house.browser.close().await;
}

#[tokio::test]
async fn files_are_given_to_hidden_fields_and_through_what_opens_a_chooser() {
    let Some(house) = House::open() else { return };
    std::fs::write(house.directory.path().join("a.txt"), "a").unwrap();
    house
        .go(&inline(
            "<input type=file id=f hidden onchange=\"document.title = this.files[0].name\">
             <button onclick=\"document.title = ''; f.click()\">Choose</button>",
        ))
        .await;
    let upload = |target, file: &str| BrowserAct::Upload { target, files: vec![file.to_owned()] };
    assert_eq!(said(&house, upload(selector("#f"), "a.txt")).await, "a.txt");
    std::fs::write(house.directory.path().join("b.txt"), "b").unwrap();
    assert_eq!(said(&house, upload(text("Choose"), "b.txt")).await, "b.txt");
    let error = house.browser.act(upload(selector("#f"), "none.txt")).await.unwrap().error.unwrap();
    assert!(error.starts_with("FileNotFoundError: "), "{error}");
    house.browser.close().await;
}
