//! Pages that are large or deep are observed in time.

use std::time::{Duration, Instant};

use gloveport_browser::BrowserError;

use crate::house::{House, fails, goto_inline, tree};

/// Time for a step: it would be ended at 120 s.
const LIMIT: Duration = Duration::from_secs(115);

/// Adds elements by script: the parser nests at most some hundred.
fn page(script: &str) -> String {
    goto_inline(&format!("<body><script>{script}</script>"))
}

async fn observed(house: &House, what: &str, script: &str) -> String {
    let began = Instant::now();
    let step = house.step(&page(script)).await;
    let took = began.elapsed();
    println!("{what}: {:.1} s", took.as_secs_f64());
    assert_eq!(step.error, None, "{what}");
    assert!(took < LIMIT, "{what}: {took:?}");
    tree(&step)
}

#[tokio::test]
async fn a_page_of_fifty_thousand_elements_is_observed_in_time() {
    let Some(house) = House::open() else { return };
    let script = "const all = document.createDocumentFragment(); for (let i = 0; i < 50000; i++) { \
        const one = document.createElement(i % 2 ? 'button' : 'p'); one.textContent = i; all.append(one); } \
        document.body.append(all);";
    let tree = observed(&house, "50,000 elements", script).await;
    assert!(tree.contains("button '49999'"), "{} bytes", tree.len());
    house.browser.close().await;
}

#[tokio::test]
async fn a_deep_page_is_observed_and_one_that_is_too_deep_for_chromium_is_told() {
    let Some(house) = House::open() else { return };
    let deep = |depth: u32| {
        format!(
            "let at = document.body; for (let i = 0; i < {depth}; i++) {{ const one = document.createElement('li'); \
             at.append(one); at = one; }} at.textContent = 'bottom';"
        )
    };
    let tree = observed(&house, "1,000 deep", &deep(1000)).await;
    assert!(tree.contains("'bottom'"), "{} bytes", tree.len());
    // Chromium itself has no stack for that.
    let (error, took) = fails(&house.browser, &page(&deep(5000))).await;
    println!("5,000 deep: {:.1} s", took.as_secs_f64());
    assert!(matches!(&error, BrowserError::Page(words) if words.starts_with("the page has crashed")), "{error}");
    assert!(took < LIMIT, "{took:?}");
    house.see(&goto_inline("<p>on")).await;
    house.browser.close().await;
}
