//! Pages that hang, crash, multiply or change all the time are survived.

use std::time::{Duration, Instant};

use gloveport_browser::BrowserError;

use crate::{
    house::{House, bid, fails, goto_inline, tree, words},
    site::Site,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_page_that_crashes_is_told_and_the_next_address_works_in_its_place() {
    let Some(house) = House::open() else { return };
    house.see(&goto_inline("<h1>before</h1><iframe srcdoc=inner></iframe>")).await;
    for _ in 0..2 {
        let (error, took) = fails(&house.browser, "goto('chrome://crash')").await;
        let crashed = BrowserError::Page("the page has crashed; `goto` an address to use it again".to_owned());
        assert_eq!(error, crashed);
        assert!(took < seconds(4), "{took:?}");
        let (error, took) = fails(&house.browser, "click('1')").await;
        assert_eq!(error, crashed);
        assert!(took < seconds(4), "{took:?}");
        let began = Instant::now();
        let step = house.step(&goto_inline("<h1>after</h1><input><iframe srcdoc='<b>in'></iframe>")).await;
        assert!(began.elapsed() < seconds(4), "{:?}", began.elapsed());
        assert_eq!((step.error.clone(), step.observation.open_pages.len()), (None, 1));
        let tree = tree(&step);
        assert!(tree.contains("heading 'after'") && tree.contains("'in'"), "{tree}");
        let field = bid(&tree, "textbox");
        let filled = house.see(&format!("fill('{field}', 'typed')")).await;
        assert!(filled.contains("typed"), "{filled}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn a_page_that_opens_a_hundred_others_leaves_a_browser_that_works() {
    let Some(house) = House::open() else { return };
    let html = "<button onclick=\"for (let i = 0; i < 100; i++) window.open('about:blank')\">many</button>";
    let seen = house.see(&goto_inline(html)).await;
    let step = house.step(&format!("click('{}')", bid(&seen, "button"))).await;
    let open = step.observation.open_pages.len();
    assert_eq!(open, 64);
    let step = house.step("tab_close()").await;
    assert_eq!(step.error, None);
    assert_eq!(step.observation.open_pages.len(), 63);
    house.see(&goto_inline("<p>on")).await;
    house.browser.close().await;
}

#[tokio::test]
async fn endless_loops_are_ended_by_the_limit_of_the_step() {
    const PAGES: &[(&str, &str, &str)] = &[
        ("/click", "", "<button onclick='for (;;) {}'>hang</button>"),
        ("/load", "", "<h1>load</h1><script>for (;;) {}</script>"),
        ("/again", "", "<h1>again</h1><script>setInterval(() => { for (;;) {} }, 1)</script>"),
        ("/fine", "", "<h1>fine</h1>"),
    ];
    let Some(house) = House::with(|options| options.step_limit = seconds(3)) else { return };
    let site = Site::of(PAGES).await;
    let goto = |path: &str| format!("goto('{}')", site.url(path));
    let seen = house.see(&goto("/click")).await;
    for text in [format!("click('{}')", bid(&seen, "button")), goto("/load"), goto("/again")] {
        let (error, took) = fails(&house.browser, &text).await;
        assert_eq!(error, BrowserError::TooLong, "{text}");
        assert!(took < seconds(8), "{text}: {took:?}");
        let fine = house.see(&goto("/fine")).await;
        assert!(fine.contains("heading 'fine'"), "{text}: {fine}");
    }
    house.browser.close().await;
}

#[tokio::test]
async fn a_page_that_never_finishes_loading_is_shown_as_far_as_it_came() {
    let Some(house) = House::with(|options| options.page_limit = seconds(1)) else { return };
    let site = Site::of(&[("/", "X-Unfinished: 1\r\n", "<h1>half</h1><p>of it"), ("/fine", "", "<h1>fine")]).await;
    let step = house.step(&format!("goto('{}')", site.url("/"))).await;
    let told = words(&step);
    assert!(told.starts_with("TimeoutError: Page.goto: Timeout 1000ms exceeded."), "{told}");
    let seen = tree(&step);
    assert!(seen.contains("heading 'half'") && seen.contains("of it"), "{seen}");
    assert_eq!(step.observation.url, site.url("/"));
    let fine = house.see(&format!("goto('{}')", site.url("/fine"))).await;
    assert!(fine.contains("heading 'fine'"), "{fine}");
    house.browser.close().await;
}

#[tokio::test]
async fn dialogs_hold_up_nothing() {
    const PAGES: &[(&str, &str, &str)] = &[
        ("/alerts", "", "<script>alert(0); for (let i = 0; i < 1000; i++) alert(i)</script><h1>alerts"),
        ("/ask", "", "<script>document.write('<h1>' + [confirm('?'), prompt('?', 'x')])</script>"),
        (
            "/frame",
            "",
            "<iframe src='/ask'></iframe><script>\
            document.write(`<iframe src='//localhost:${location.port}/ask'></iframe>`)</script>",
        ),
        (
            "/leave",
            "",
            "<button>b</button><script>onbeforeunload = (event) => { event.preventDefault(); return 'no' }</script>",
        ),
        ("/fine", "", "<h1>fine"),
    ];
    let Some(house) = House::open() else { return };
    let site = Site::of(PAGES).await;
    let goto = |path: &str| format!("goto('{}')", site.url(path));
    let alerts = house.see(&goto("/alerts")).await;
    assert!(alerts.contains("heading 'alerts'"), "{alerts}");
    let ask = house.see(&goto("/ask")).await;
    assert!(ask.contains("heading 'false,'"), "{ask}");
    let frames = house.see(&goto("/frame")).await;
    assert_eq!(frames.matches("heading 'false,'").count(), 2, "{frames}");
    let leave = house.see(&goto("/leave")).await;
    house.see(&format!("click('{}')", bid(&leave, "button"))).await;
    let fine = house.see(&goto("/fine")).await;
    assert!(fine.contains("heading 'fine'"), "{fine}");
    house.browser.close().await;
}

#[tokio::test]
async fn pages_that_never_rest_are_observed_all_the_same() {
    let Some(house) = House::open() else { return };
    house.browser.start().await.unwrap();
    let began = Instant::now();
    let html = "<h1>busy</h1><p id=p></p><script>setInterval(() => { p.textContent = Math.random(); \
        document.body.append(document.createElement('i')) }, 5)</script>";
    let seen = house.see(&goto_inline(html)).await;
    assert!(seen.contains("heading 'busy'"), "{seen}");
    assert!(began.elapsed() < seconds(3), "{:?}", began.elapsed());
    let site = Site::of(&[
        ("/", "", "<h1>flight</h1><script>setTimeout(() => location.replace('/?' + Math.random()), 50)</script>"),
        ("/fine", "", "<h1>fine"),
    ])
    .await;
    let began = Instant::now();
    match house.browser.step(&format!("goto('{}')", site.url("/"))).await {
        Ok(step) => assert!(tree(&step).contains("RootWebArea"), "{}", tree(&step)),
        Err(error) => assert!(matches!(error, BrowserError::Page(_)), "{error}"),
    }
    println!("a page that leaves itself all the time: {:?}", began.elapsed());
    assert!(began.elapsed() < seconds(60), "{:?}", began.elapsed());
    assert!(house.see(&format!("goto('{}')", site.url("/fine"))).await.contains("heading 'fine'"));
    house.browser.close().await;
}

#[tokio::test]
async fn what_a_page_does_a_moment_after_it_came_is_seen_also_if_nothing_of_its_scripts_is_left() {
    const LATER: &str = "requestAnimationFrame(() => requestAnimationFrame(() => { p.textContent = 'later' }))";
    let Some(house) = House::open() else { return };
    for html in [
        format!("<p id=p>now</p><script>{LATER}; document.currentScript.remove()</script>"),
        format!("<body onload=\"{LATER}\"><p id=p>now</p>"),
        format!("<p id=p>now</p><img src='data:,' onerror=\"this.remove(); {LATER}\">"),
        format!("<p id=p>now</p><script>setTimeout(() => {{ {LATER} }}, 150)</script>"),
    ] {
        let seen = house.see(&goto_inline(&html)).await;
        assert!(seen.contains("'later'"), "{html}: {seen}");
    }
    house.browser.close().await;
}

/// A page whose timer has run has nothing to be waited for, and a page without scripts never had.
#[tokio::test]
async fn timed_a_page_is_not_waited_for_longer_than_it_has_something_to_do() {
    let Some(house) = House::open() else { return };
    house.browser.start().await.unwrap();
    for (html, limit) in [
        ("<h1>plain</h1><p>text".to_owned(), Duration::from_millis(250)),
        (
            "<p id=p>now</p><script>setTimeout(() => { p.textContent = 'later' }, 100)</script>".to_owned(),
            Duration::from_millis(450),
        ),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let began = Instant::now();
            house.see(&goto_inline(&html)).await;
            best = best.min(began.elapsed());
        }
        assert!(best < limit.mul_f64(gloveport_testing::pace()), "{html}: {best:?}");
    }
    house.browser.close().await;
}
