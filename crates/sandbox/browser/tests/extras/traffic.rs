//! What pages wrote and fetched.

use gloveport_browser::ConsoleEntry;
use gloveport_protocol::browser::BrowserAct;
use serde_json::{Value, json};

use crate::support::{House, Pages, Site, inline, text};

const SITE: Pages = &[
    ("/from", "Location: /to?a=1&b\r\n", ""),
    ("/to", "Set-Cookie: id=secret\r\n", "<title>To</title><button onclick=\"ask()\">ask</button>
        <script>const ask = () => fetch('/data', { method: 'POST', body: 'b=1', headers: { Authorization: 'Basic c2VjcmV0', 'X-Mine': 'm' } })</script>"),
    ("/data", "Content-Type: application/json\r\n", "{}"),
];

#[tokio::test]
async fn console_lines_are_told_once() {
    let Some(house) = House::open() else { return };
    house.go(&inline("<script>console.log('one', 2); console.warn('three')</script>")).await;
    let (count, lines) = house.browser.console(0).await.unwrap();
    let texts: Vec<(&str, &str)> = lines.iter().map(|ConsoleEntry { level, text, .. }| (&**level, &**text)).collect();
    assert_eq!((count, texts), (2, vec![("log", "one 2"), ("warning", "three")]));
    assert_eq!(house.browser.console(count).await.unwrap(), (2, Vec::new()));
    // Of a browser that has ended.
    assert_eq!(house.browser.console(1000).await.unwrap(), (2, lines));
    house.browser.close().await;
}

#[tokio::test]
async fn requests_are_told_without_secrets() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/to")).await;
    let (before, _) = house.browser.network(0).await.unwrap();
    house.browser.act(BrowserAct::Click { target: text("ask"), button: None, double: false }).await.unwrap();
    let (count, entries) = house.browser.network(before).await.unwrap();
    assert_eq!((count, entries.len()), (before + 1, 1));
    let entry = &entries[0];
    assert_eq!(
        (entry.method.as_str(), entry.url.as_str(), entry.status),
        ("POST", site.url("/data").as_str(), Some(200))
    );
    assert_eq!(entry.request_headers["Authorization"], json!("***"));
    assert_eq!(entry.request_headers["X-Mine"], json!("m"));
    assert_eq!(entry.request_body.as_deref(), Some("b=1"));
    let asked = site.requests.lock().unwrap().join("\n");
    assert!(asked.to_lowercase().contains("authorization: basic c2vjcmv0"), "{asked}");
    house.browser.close().await;
}

/// A field, and of what kind it is.
type Field = (&'static str, fn(&Value) -> bool);

/// The fields that HAR 1.2 asks for, and of what kind they are.
fn check(value: &Value, fields: &[Field]) {
    for (field, is_right) in fields {
        let found = value.get(field).unwrap_or_else(|| panic!("there is no {field} in {value}"));
        assert!(is_right(found), "{field} in {value}");
    }
}

fn is_date(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == "2000-01-01T00:00:00.000Z".len() && text.ends_with('Z'))
}

fn is_valid(har: &Value) {
    let log = &har["log"];
    check(log, &[("version", Value::is_string), ("creator", Value::is_object), ("entries", Value::is_array)]);
    for part in ["creator", "browser"] {
        check(&log[part], &[("name", Value::is_string), ("version", Value::is_string)]);
    }
    for page in log["pages"].as_array().unwrap() {
        check(
            page,
            &[
                ("startedDateTime", is_date),
                ("id", Value::is_string),
                ("title", Value::is_string),
                ("pageTimings", Value::is_object),
            ],
        );
    }
    for entry in log["entries"].as_array().unwrap() {
        check(
            entry,
            &[
                ("pageref", Value::is_string),
                ("startedDateTime", is_date),
                ("time", Value::is_number),
                ("request", Value::is_object),
                ("response", Value::is_object),
                ("cache", Value::is_object),
                ("timings", Value::is_object),
            ],
        );
        let both: [Field; 5] = [
            ("httpVersion", Value::is_string),
            ("cookies", Value::is_array),
            ("headers", Value::is_array),
            ("headersSize", Value::is_number),
            ("bodySize", Value::is_number),
        ];
        check(&entry["request"], &both);
        check(
            &entry["request"],
            &[("method", Value::is_string), ("url", Value::is_string), ("queryString", Value::is_array)],
        );
        check(&entry["response"], &both);
        check(
            &entry["response"],
            &[
                ("status", Value::is_number),
                ("statusText", Value::is_string),
                ("content", Value::is_object),
                ("redirectURL", Value::is_string),
            ],
        );
        check(&entry["response"]["content"], &[("size", Value::is_number), ("mimeType", Value::is_string)]);
        check(
            &entry["timings"],
            &[("send", Value::is_number), ("wait", Value::is_number), ("receive", Value::is_number)],
        );
    }
}

#[tokio::test]
async fn the_last_action_is_told_as_har() {
    let Some(house) = House::open() else { return };
    let site = Site::of(SITE).await;
    house.go(&site.url("/from")).await;
    let har = house.browser.har().await.unwrap();
    is_valid(&har);
    assert_eq!(har["log"]["pages"][0]["title"], "To");
    let entries = har["log"]["entries"].as_array().unwrap();
    let facts: Vec<Value> = entries
        .iter()
        .map(|entry| json!([entry["request"]["url"], entry["response"]["status"], entry["response"]["redirectURL"]]))
        .collect();
    let to = site.url("/to?a=1&b");
    assert_eq!(facts[..2], [json!([site.url("/from"), 302, to]), json!([to, 200, ""])]);
    assert_eq!(
        entries[1]["request"]["queryString"],
        json!([{ "name": "a", "value": "1" }, { "name": "b", "value": "" }]),
    );
    assert!(!har.to_string().contains("secret"), "{har}");

    house.browser.act(BrowserAct::Click { target: text("ask"), button: None, double: false }).await.unwrap();
    let har = house.browser.har().await.unwrap();
    is_valid(&har);
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{har}");
    let post = &entries[0]["request"]["postData"];
    assert_eq!((&post["text"], &post["mimeType"]), (&json!("b=1"), &json!("text/plain;charset=UTF-8")));

    house.browser.step("noop(10)").await.unwrap();
    assert_eq!(house.browser.har().await.unwrap()["log"]["entries"], json!([]));
    house.browser.close().await;
}
