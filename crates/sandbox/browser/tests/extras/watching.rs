//! Pictures as a page changes, and clients of their own.

use std::time::Duration;

use gloveport_browser::{Frame, KeyChange, LiveInput, MouseChange, Screencast};
use gloveport_protocol::browser::NavigateRequest;
use serde_json::json;

use crate::support::{House, Pages, Site, ask, inline, to};

/// The next picture that is as it should be.
async fn until(cast: &mut Screencast, mut is_right: impl FnMut(&Frame) -> bool) -> Frame {
    let found = async {
        loop {
            let frame = cast.next().await.unwrap();
            if is_right(&frame) {
                return frame;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), found).await.unwrap()
}

#[tokio::test]
async fn the_first_picture_comes_at_once_and_the_active_page_is_followed() {
    let Some(house) = House::open() else { return };
    let still = inline("<p>still");
    house.go(&still).await;
    let mut cast = house.browser.screencast().await.unwrap();
    let first = until(&mut cast, |_| true).await;
    assert_eq!((first.url.as_str(), first.width, first.height), (still.as_str(), 1280, 720));
    assert_eq!(&first.jpeg[..2], [0xff, 0xd8]);
    let other = inline("<p>other");
    house.browser.navigate(NavigateRequest { new_page: true, ..to(&other) }).await.unwrap();
    until(&mut cast, |frame| frame.url == other).await;
    house.browser.close().await;
    while cast.next().await.is_some() {}
}

#[tokio::test]
async fn an_address_that_changes_without_the_page_is_shown() {
    const SITE: Pages =
        &[("/", "", "<p>still<script>setTimeout(() => history.pushState(0, '', '/pushed'), 500)</script>")];
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.browser.start().await.unwrap();
    let mut cast = house.browser.screencast().await.unwrap();
    let went = async { house.go(&site.url("/")).await };
    let seen = until(&mut cast, |frame| frame.url == site.url("/pushed"));
    let (_, seen) = tokio::join!(went, seen);
    assert_eq!(&seen.jpeg[..2], [0xff, 0xd8]);
    house.browser.close().await;
}

#[tokio::test]
async fn whoever_watches_can_use_the_page() {
    let Some(house) = House::open() else { return };
    house
        .go(&inline(
            "<body style='margin:0'><input style='width:600px;height:300px'><script>
        document.querySelector('input').oninput = (event) => document.title = event.target.value</script>",
        ))
        .await;
    let mut cast = house.browser.screencast().await.unwrap();
    until(&mut cast, |_| true).await;
    let mouse = |kind| LiveInput::Mouse {
        kind,
        x: 50.0,
        y: 50.0,
        button: gloveport_browser::Held::Left,
        delta_x: 0.0,
        delta_y: 0.0,
        clicks: 1,
    };
    let key = |kind, key: &str, code: &str| LiveInput::Key {
        kind,
        key: key.to_owned(),
        code: code.to_owned(),
        text: None,
        modifiers: 0,
    };
    for kind in [MouseChange::Move, MouseChange::Down, MouseChange::Up] {
        cast.send(mouse(kind));
    }
    cast.send(LiveInput::Text { text: "Hé".to_owned() });
    for (name, code) in [("x", "KeyX"), ("y", "KeyY"), ("Backspace", "Backspace")] {
        cast.send(key(KeyChange::Down, name, code));
        cast.send(key(KeyChange::Up, name, code));
    }
    let title = async {
        while house.browser.pages().await[0].title != "Héx" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), title).await.unwrap();
    let next = inline("<p>next");
    cast.send(LiveInput::Navigate { url: next.clone() });
    until(&mut cast, |frame| frame.url == next).await;
    house.browser.close().await;
}

#[tokio::test]
async fn two_that_watch_do_not_disturb_each_other_and_a_slow_one_gets_the_newest_picture() {
    let Some(house) = House::open() else { return };
    house.go(&inline("<p id=p></p><script>let n = 0; setInterval(() => p.textContent = ++n, 20)</script>")).await;
    let mut quick = house.browser.screencast().await.unwrap();
    let mut slow = house.browser.screencast().await.unwrap();
    let first = until(&mut slow, |_| true).await;
    for _ in 0..10 {
        until(&mut quick, |_| true).await;
    }
    let later = until(&mut slow, |_| true).await;
    assert_ne!(first.jpeg, later.jpeg);
    drop(slow);
    for _ in 0..5 {
        until(&mut quick, |_| true).await;
    }
    house.browser.close().await;
}

#[tokio::test]
async fn two_clients_and_a_step_work_at_the_same_time_and_a_client_that_goes_takes_its_sessions_with_it() {
    let Some(house) = House::open() else { return };
    let browser = &house.browser;
    browser.step("noop(1)").await.unwrap();
    let id = browser.pages().await[0].id.clone();
    let (mut one, _one_lives) = browser.tunnel().await.unwrap();
    let (mut two, _two_lives) = browser.tunnel().await.unwrap();
    let attach = json!({ "targetId": id, "flatten": true });
    let first = ask(&mut one, 1, None, "Target.attachToTarget", attach.clone()).await;
    let second = ask(&mut two, 1, None, "Target.attachToTarget", attach).await;
    let (first, second) = (first["sessionId"].as_str().unwrap(), second["sessionId"].as_str().unwrap());
    assert_ne!(first, second);
    // A session of somebody else is none of one's own.
    assert!(one.send(json!({ "id": 9, "method": "Page.enable", "sessionId": second })).is_err());
    let sum = |left: u64, right: u64| json!({ "expression": format!("{left} + {right}"), "returnByValue": true });
    let (left, right, step) = tokio::join!(
        async {
            let mut results = Vec::new();
            for number in 0..20 {
                let answer = ask(&mut one, 10 + number, Some(first), "Runtime.evaluate", sum(number, 1)).await;
                results.push(answer["result"]["value"].as_u64().unwrap());
            }
            results
        },
        async {
            let mut results = Vec::new();
            for number in 0..20 {
                let answer = ask(&mut two, 10 + number, Some(second), "Runtime.evaluate", sum(number, 2)).await;
                results.push(answer["result"]["value"].as_u64().unwrap());
            }
            results
        },
        browser.step("scroll(0, 10)"),
    );
    assert_eq!(left, (1..21).collect::<Vec<u64>>());
    assert_eq!(right, (2..22).collect::<Vec<u64>>());
    assert_eq!(step.unwrap().error, None);

    // What a session has set up ends with it: here the override of the agent's name.
    let name = json!({ "userAgent": "mine" });
    ask(&mut one, 50, Some(first), "Network.setUserAgentOverride", name).await;
    let said = json!({ "expression": "navigator.userAgent", "returnByValue": true });
    let seen = ask(&mut two, 50, Some(second), "Runtime.evaluate", said.clone()).await;
    assert_eq!(seen["result"]["value"], "mine");
    drop(one);
    let gone = async {
        for number in 60.. {
            let seen = ask(&mut two, number, Some(second), "Runtime.evaluate", said.clone()).await;
            if seen["result"]["value"] != "mine" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    assert_eq!(browser.step("noop(1)").await.unwrap().error, None);
    house.browser.close().await;
}
