//! However a browser ends, nothing of it is left, and the next step has another one.

use std::time::Duration;

use gloveport_browser::{BrowserError, BrowserState};

use crate::{
    house::{House, fails, goto_inline},
    site::{Pages, Site},
};

#[tokio::test]
async fn a_browser_is_only_started_when_it_is_used() {
    let Some(house) = House::open() else { return };
    assert_eq!(*house.browser.state().borrow(), BrowserState::Idle);
    let temporary = house.directory.path().join("temporary");
    assert_eq!(std::fs::read_dir(temporary).unwrap().count(), 0);
    house.browser.close().await;
    assert_eq!(*house.browser.state().borrow(), BrowserState::Closed);
    assert_eq!(house.browser.step("noop()").await.err(), Some(BrowserError::Closed));
}

#[tokio::test]
async fn a_browser_that_is_killed_in_a_step_says_so_and_the_next_step_has_a_blank_page() {
    let Some(house) = House::open() else { return };
    house.see(&goto_inline("<h1>before</h1>")).await;
    let family = house.family();
    let site = Site::of(&[("/", "X-Unfinished: 1\r\n", "<h1>half")]).await;
    let killed = async {
        site.connections.clone().wait_for(|count| *count > 0).await.unwrap();
        family.kill();
    };
    let text = format!("goto('{}')", site.url("/"));
    let (failed, ()) = tokio::join!(fails(&house.browser, &text), killed);
    assert_eq!(failed.0, BrowserError::Died("it was killed by signal 9".to_owned()));
    assert!(failed.1 < Duration::from_secs(3), "{:?}", failed.1);
    house.becomes(BrowserState::Idle).await;
    family.is_gone(&house);
    let step = house.step("noop(1)").await;
    assert_eq!((step.observation.open_pages, step.error), (vec!["about:blank".to_owned()], None));
    let second = house.family();
    // Between two steps nobody is there to be told.
    second.kill();
    house.becomes(BrowserState::Idle).await;
    second.is_gone(&house);
    let third = house.see("noop(1)").await;
    assert!(third.starts_with("RootWebArea"), "{third}");
    let third = house.family();
    house.browser.close().await;
    third.is_gone(&house);
    assert_eq!(house.browser.step("noop()").await.err(), Some(BrowserError::Closed));
}

#[tokio::test]
async fn closing_in_the_middle_of_a_step_ends_the_step() {
    let Some(house) = House::open() else { return };
    house.see("noop(1)").await;
    let family = house.family();
    let site = Site::of(&[("/", "X-Unfinished: 1\r\n", "<h1>half")]).await;
    let text = format!("goto('{}')", site.url("/"));
    let (failed, ()) = tokio::join!(fails(&house.browser, &text), async {
        site.connections.clone().wait_for(|count| *count > 0).await.unwrap();
        house.browser.close().await;
    });
    assert_eq!(failed.0, BrowserError::Closed);
    family.is_gone(&house);
}

#[tokio::test]
async fn a_browser_that_nobody_uses_is_ended_and_comes_again() {
    let Some(house) = House::with(|options| options.idle = Duration::from_millis(300)) else { return };
    house.see("noop(600)").await;
    let family = house.family();
    house.becomes(BrowserState::Idle).await;
    family.is_gone(&house);
    house.see("noop(1)").await;
    assert_ne!(house.family().pid, family.pid);
    house.browser.close().await;
}

#[tokio::test]
async fn a_login_outlives_a_browser_that_nobody_used_and_no_other() {
    const SITE: Pages = &[
        (
            "/login",
            "Set-Cookie: session=1; HttpOnly\r\nSet-Cookie: kept=2; Max-Age=9999\r\n\
            Set-Cookie: __Host-h=4; Secure; Path=/; HttpOnly\r\n",
            "<script>localStorage.token = 3</script>",
        ),
        ("/see", "", "<script>document.write(`<h1>${document.cookie} ${localStorage.token}`)</script>"),
    ];
    let Some(house) = House::with(|options| options.idle = Duration::from_secs(1)) else { return };
    let site = Site::of(SITE).await;
    house.see(&format!("goto('{}')", site.url("/login"))).await;
    let family = house.family();
    house.becomes(BrowserState::Idle).await;
    family.is_gone(&house);
    let asked = site.requests.lock().unwrap().len();
    let step = house.step("noop(1)").await;
    assert_eq!(step.observation.open_pages, ["about:blank"]);
    // Nothing is fetched for it.
    assert_eq!(site.requests.lock().unwrap().len(), asked);
    let see = format!("goto('{}')", site.url("/see"));
    let seen = house.see(&see).await;
    assert!(seen.contains("heading 'kept=2 3'"), "{seen}");
    let heads = site.requests.lock().unwrap().clone();
    let head = heads.iter().find(|head| head.contains("/see")).unwrap();
    for cookie in ["session=1", "kept=2", "__Host-h=4"] {
        assert!(head.contains(cookie), "{cookie} is not in {head}");
    }
    // One that dies may have died of what it had.
    house.family().kill();
    house.becomes(BrowserState::Idle).await;
    let seen = house.see(&see).await;
    assert!(seen.contains("heading 'undefined'"), "{seen}");
    house.browser.close().await;
}

#[tokio::test]
async fn a_browser_above_its_memory_limit_is_ended_also_while_others_look_at_it() {
    let Some(house) = House::with(|options| options.memory_limit = 50 * 1024 * 1024) else { return };
    house.browser.start().await.unwrap();
    let family = house.family();
    let looks = async {
        loop {
            house.browser.pages().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (error, took) = tokio::select! {
        failed = fails(&house.browser, "noop(20000)") => failed,
        () = looks => return,
    };
    let BrowserError::Died(words) = error else { panic!("{error}") };
    assert!(words.starts_with("it used ") && words.ends_with(" more than its limit of 50 MiB"), "{words}");
    // Half of what the step takes by itself.
    assert!(took < Duration::from_secs(10), "{took:?}");
    house.becomes(BrowserState::Idle).await;
    family.is_gone(&house);
    house.browser.close().await;
}

#[tokio::test]
async fn steps_that_are_sent_at_once_take_turns() {
    let Some(house) = House::open() else { return };
    let site = Site::of(&[("/", "", "<h1>one")]).await;
    let text = format!("goto('{}')", site.url("/"));
    let all = futures_util::future::join_all((0..20).map(|_| house.browser.step(&text))).await;
    let answers: Vec<_> = all.into_iter().map(|step| step.map(|step| (step.error, step.observation.url))).collect();
    assert_eq!(answers, vec![Ok((None, site.url("/"))); 20]);
    assert!(site.requests.lock().unwrap().len() >= 20);
    house.browser.close().await;
}
