//! What happens to sandboxes, as it happens.

use gloveport_client::{Certificates, Pool};
use gloveport_gateway_store::Limits;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    gateway::{KEY, Running},
    gateway_tenants::Tenants,
    sandboxes::LIMIT,
};

/// A stream of events that is read.
struct Events {
    answer: reqwest::Response,
    text: String,
}

/// An event.
#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Events {
    async fn of(running: &Running, path: &str, key: &str, last: Option<&str>) -> Self {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let mut request = pool.http().get(format!("{}/v1/sandboxes{path}", running.url())).header("X-API-Key", key);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { answer, text: String::new() }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        let next = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let of = |name: &str| {
                        let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                        line.unwrap_or_default().to_owned()
                    };
                    let event = Event {
                        name: of("event"),
                        id: of("id"),
                        data: serde_json::from_str(&of("data")).unwrap_or_default(),
                    };
                    self.text = rest.to_string();
                    if !event.name.is_empty() {
                        return Some(event);
                    }
                    continue;
                }
                let chunk = self.answer.chunk().await.unwrap()?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        };
        timeout(LIMIT, next).await.unwrap()
    }

    async fn expect(&mut self, name: &str, session: &str, state: &str) -> String {
        let event = self.next().await.unwrap();
        let found = (event.name.as_str(), &event.data["session_id"], &event.data["state"]);
        assert_eq!(found, (name, &json!(session), &json!(state)), "{event:?}");
        assert!(event.data["at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        event.id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_tell_what_happens_to_sandboxes_and_go_on_where_a_client_left() {
    let running = Running::start().await;
    running.create(json!({"session_id": "old"})).await;
    let mut events = Events::of(&running, "/events", KEY, None).await;
    let start = events.next().await.unwrap();
    assert_eq!(start.name, "start");
    let id = running.create(json!({"session_id": "a"})).await;
    events.expect("created", "a", "running").await;
    let mut of_one = Events::of(&running, &format!("/{id}/events"), KEY, None).await;
    assert_eq!(of_one.next().await.unwrap().name, "start");
    assert_eq!(running.v1("POST", &format!("/sandboxes/{id}/pause"), None).await.0, 200);
    let paused = events.expect("state_changed", "a", "paused").await;
    // Whoever does it, and how.
    running.engine.resume(&gloveport_provider::SandboxId::new(id.clone()).unwrap()).await.unwrap();
    events.expect("state_changed", "a", "running").await;
    let body = json!({"session_id": "b"});
    assert_eq!(running.ask("POST", "/start", Some(KEY), Some(body)).await.0, 200);
    events.expect("created", "b", "running").await;
    assert_eq!(running.v1("DELETE", &format!("/sandboxes/{id}"), None).await.0, 204);
    events.expect("deleted", "a", "running").await;
    drop(events);
    // The stream of one sandbox has its events alone, and ends with it.
    of_one.expect("state_changed", "a", "paused").await;
    of_one.expect("state_changed", "a", "running").await;
    of_one.expect("deleted", "a", "running").await;
    assert!(of_one.next().await.is_none());

    let mut again = Events::of(&running, "/events", KEY, Some(&paused)).await;
    again.expect("state_changed", "a", "running").await;
    again.expect("created", "b", "running").await;
    let deleted = again.expect("deleted", "a", "running").await;
    // An id of another life of the gateway, or of what is not kept, is told, and it goes on from here.
    for unknown in ["0123-0".to_owned(), format!("{}-999", deleted.split_once('-').unwrap().0)] {
        let mut lost = Events::of(&running, "/events", KEY, Some(&unknown)).await;
        let reset = lost.next().await.unwrap();
        assert_eq!((reset.name.as_str(), reset.id.as_str()), ("reset", deleted.as_str()));
        assert!(reset.data["message"].as_str().unwrap().contains("list"), "{reset:?}");
    }
    let pool = Pool::new(Certificates::Checked).unwrap();
    let url = format!("{}/v1/sandboxes/events", running.url());
    let wrong = pool.http().get(url).header("X-API-Key", KEY).header("Last-Event-ID", "<script>").send().await.unwrap();
    assert_eq!(wrong.status().as_u16(), 400);
    // A gateway that ends does not wait for those who listen.
    let listening = tokio::spawn(async move { while again.next().await.is_some() {} });
    running.end().await;
    listening.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_the_sandboxes_of_another_tenant() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, two] = &tenants.keys;
    let mut of_one = Events::of(&tenants.running, "/events", one, None).await;
    let mut of_two = Events::of(&tenants.running, "/events", two, None).await;
    let starts = [of_one.next().await.unwrap(), of_two.next().await.unwrap()];
    // Numbers tell nothing of what others do.
    assert_eq!(starts[0].id, starts[1].id);
    for (key, session) in [(one, "a"), (two, "b")] {
        assert_eq!(tenants.post(key, "/v1/sandboxes", json!({"session_id": session})).await.0, 201);
    }
    assert_eq!(of_one.expect("created", "a", "running").await, of_two.expect("created", "b", "running").await);
    tenants.running.end().await;
}
