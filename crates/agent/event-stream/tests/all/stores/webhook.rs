//! What a web service is told, and when.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::to_bytes,
    extract::{Request as HttpRequest, State},
};
use bytes::Bytes;
use gloveport_event_stream::{
    BoxFuture, FileStore as _,
    store::{Delivery, MemoryStore, Pause, WebhookOptions, WebhookStore},
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::stores::within;

/// A request that the service was sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        Some(self.headers.get(name)?.to_str().unwrap().to_owned())
    }

    fn line(&self) -> String {
        format!("{} {} {}", self.method, self.path, String::from_utf8_lossy(&self.body))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Service {
    requests: Vec<Request>,
    /// The statuses of the next answers; after them it is 200.
    statuses: VecDeque<u16>,
}

/// A web service that keeps what it is sent; it ends with this.
pub(crate) struct Hook {
    service: Arc<Mutex<Service>>,
    address: String,
    task: JoinHandle<()>,
}

impl Hook {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = Arc::<Mutex<Service>>::default();
        let app = Router::new().fallback(take).with_state(Arc::clone(&service));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { service, address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook/", self.address)
    }

    /// The requests since this was asked before.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.service.lock().unwrap().requests)
    }

    fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }

    fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.service.lock().unwrap().statuses.extend(statuses);
    }

    /// A store whose service this is, and the pauses that it wants to make.
    fn store(&self, delivery: Delivery) -> (WebhookStore, Pauses) {
        let (pause, pauses) = pauses();
        let options = WebhookOptions { delivery, pause: Arc::new(pause), ..WebhookOptions::new(self.url()) };
        (WebhookStore::new(Arc::new(MemoryStore::with_limit(4 << 20)), options).unwrap(), pauses)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(service): State<Arc<Mutex<Service>>>, request: HttpRequest) -> StatusCode {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut service = service.lock().unwrap();
    let (method, path) = (head.method.to_string(), head.uri.to_string());
    service.requests.push(Request { method, path, headers: head.headers, body });
    StatusCode::from_u16(service.statuses.pop_front().unwrap_or(200)).unwrap()
}

/// Pauses that a test ends.
struct Manual(mpsc::UnboundedSender<(Duration, oneshot::Sender<()>)>);

type Pauses = mpsc::UnboundedReceiver<(Duration, oneshot::Sender<()>)>;

fn pauses() -> (Manual, Pauses) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Manual(sender), receiver)
}

impl Pause for Manual {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        let (end, ended) = oneshot::channel();
        let asked = self.0.send((time, end));
        Box::pin(async move {
            // A test that is over wants no more pauses.
            if asked.is_ok() {
                let _ended_or_dropped = ended.await;
            }
        })
    }
}

async fn write(store: &WebhookStore, path: &str, content: impl Into<Bytes>) {
    store.write(path, content.into()).await.unwrap();
}

#[tokio::test]
async fn each_change_is_told_in_order_with_its_raw_content() {
    let hook = Hook::start().await;
    let (store, _pauses) = hook.store(Delivery::Each);
    within(async {
        write(&store, "a/b", "one").await;
        write(&store, "a/b", "two").await;
        store.delete("a").await.unwrap();
        write(&store, "/c", Bytes::from_static(&[0xff, 0])).await;
        assert_eq!(store.read("c").await.unwrap(), Bytes::from_static(&[0xff, 0]));
        assert_eq!(store.list("").await.unwrap(), ["c"]);
        store.flush().await;
        let requests = hook.requests();
        assert_eq!(requests.last().map(|request| request.body.clone()), Some(Bytes::from_static(&[0xff, 0])));
        let lines: Vec<String> = requests.iter().map(Request::line).collect();
        assert_eq!(lines[..3], ["POST /hook/a/b one", "POST /hook/a/b two", "DELETE /hook/a "]);
        assert_eq!(requests[3].path, "/hook//c");
        assert_eq!(lines.len(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_change_that_is_not_done_is_not_told() {
    let hook = Hook::start().await;
    let (store, _pauses) = hook.store(Delivery::Each);
    within(async {
        store.write("..", Bytes::new()).await.unwrap_err();
        store.write("a", Bytes::from(vec![0; 5 << 20])).await.unwrap_err();
        store.flush().await;
        assert_eq!(hook.lines(), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn a_failed_request_is_sent_three_times_one_second_apart_and_then_dropped() {
    for (delivery, first, second) in [
        (Delivery::Each, "POST /hook/a 1", "POST /hook/b 2"),
        (
            Delivery::Batched,
            r#"POST /hook/ [{"method":"POST","path":"a","content":"1"}]"#,
            r#"POST /hook/ [{"method":"POST","path":"b","content":"2"}]"#,
        ),
    ] {
        let hook = Hook::start().await;
        let (store, mut pauses) = hook.store(delivery);
        hook.answer([500, 404, 302, 503, 429, 200]);
        within(async {
            for (path, content) in [("a", "1"), ("b", "2")] {
                write(&store, path, content).await;
                let flush = store.flush();
                let end_pauses = async {
                    // The task of a batch may wait for its time before it sees the flush.
                    let mut retries = 0;
                    while retries < 2 {
                        let (time, end) = pauses.recv().await.unwrap();
                        if time == Duration::from_secs(1) {
                            retries += 1;
                            end.send(()).unwrap();
                        } else {
                            assert_eq!((time, delivery), (Duration::from_secs(5), Delivery::Batched));
                        }
                    }
                };
                tokio::join!(flush, end_pauses);
            }
        })
        .await;
        assert_eq!(hook.lines(), [first, first, first, second, second, second]);
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_loses_the_change_and_nothing_else() {
    let (pause, mut pauses) = pauses();
    let options = WebhookOptions { pause: Arc::new(pause), ..WebhookOptions::new("http://127.0.0.1:1/") };
    let store = WebhookStore::new(Arc::new(MemoryStore::default()), options).unwrap();
    within(async {
        write(&store, "a", "x").await;
        let end_pauses = async {
            for _ in 0..2 {
                pauses.recv().await.unwrap().1.send(()).unwrap();
            }
        };
        tokio::join!(store.flush(), end_pauses);
        assert_eq!(store.read("a").await.unwrap(), "x");
    })
    .await;
}

#[tokio::test]
async fn a_batch_is_sent_five_seconds_after_its_last_change() {
    let hook = Hook::start().await;
    let (store, mut pauses) = hook.store(Delivery::Batched);
    within(async {
        write(&store, "a", "1").await;
        let (time, first) = pauses.recv().await.unwrap();
        assert_eq!(time, Duration::from_secs(5));
        write(&store, "b", "2").await;
        let (time, second) = pauses.recv().await.unwrap();
        assert_eq!(time, Duration::from_secs(5));
        assert!(first.is_closed(), "the first wait is given up");
        assert_eq!(hook.lines(), Vec::<String>::new());
        second.send(()).unwrap();
        store.flush().await;
        let requests = hook.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/hook/"));
        assert_eq!(requests[0].header("content-type").as_deref(), Some("application/json"));
        let changes = json!([
            {"method": "POST", "path": "a", "content": "1"},
            {"method": "POST", "path": "b", "content": "2"},
        ]);
        assert_eq!(requests[0].json(), changes);
    })
    .await;
}

#[tokio::test]
async fn a_batch_has_the_last_change_of_each_path_in_the_order_of_the_first() {
    let hook = Hook::start().await;
    let (store, _pauses) = hook.store(Delivery::Batched);
    within(async {
        write(&store, "a", "1").await;
        write(&store, "b", "2").await;
        write(&store, "c", Bytes::from_static(&[0xff, 0xfe])).await;
        store.delete("a").await.unwrap();
        store.delete("b").await.unwrap();
        write(&store, "b", "é").await;
        store.flush().await;
        let requests = hook.requests();
        assert_eq!(requests.len(), 1);
        let text = r#"[{"method":"DELETE","path":"a"},{"method":"POST","path":"b","content":"é"},{"method":"POST","path":"c","content":"//4=","encoding":"base64"}]"#;
        assert_eq!(requests[0].body, text);
    })
    .await;
}

#[tokio::test]
async fn a_batch_of_one_mebibyte_is_sent_at_once() {
    let hook = Hook::start().await;
    let (store, mut pauses) = hook.store(Delivery::Batched);
    let half = || Bytes::from(vec![b'x'; 1 << 19]);
    within(async {
        write(&store, "a", half()).await;
        let (_, first) = pauses.recv().await.unwrap();
        // What is replaced does not count.
        write(&store, "a", half()).await;
        let (_, second) = pauses.recv().await.unwrap();
        assert!(first.is_closed());
        assert_eq!(hook.lines(), Vec::<String>::new());
        write(&store, "b", half()).await;
        // The pause ends without being ended: the batch is sent.
        second.closed_by_other().await;
        store.flush().await;
        let requests = hook.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].json().as_array().map(Vec::len), Some(2));
        assert!(pauses.try_recv().is_err(), "nothing waits for more");
    })
    .await;
}

trait ClosedByOther {
    async fn closed_by_other(self);
}

impl ClosedByOther for oneshot::Sender<()> {
    async fn closed_by_other(mut self) {
        self.closed().await;
    }
}

#[tokio::test]
async fn a_flush_without_changes_ends_at_once() {
    let hook = Hook::start().await;
    for delivery in [Delivery::Each, Delivery::Batched] {
        let (store, _pauses) = hook.store(delivery);
        within(store.flush()).await;
        write(&store, "a", "1").await;
        within(store.flush()).await;
        within(store.flush()).await;
        assert_eq!(hook.requests().len(), 1);
    }
}

#[tokio::test]
async fn nothing_is_lost_by_a_flush_while_many_write() {
    for delivery in [Delivery::Each, Delivery::Batched] {
        let hook = Hook::start().await;
        let (store, _pauses) = hook.store(delivery);
        let store = Arc::new(store);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    for number in 0..20 {
                        write(&store, &format!("{writer}/{number}"), "x").await;
                        if number % 7 == 0 {
                            store.flush().await;
                        }
                    }
                    store.flush().await;
                })
            })
            .collect();
        within(async {
            for writer in writers {
                writer.await.unwrap();
            }
        })
        .await;
        let told: usize = match delivery {
            Delivery::Each => hook.requests().len(),
            Delivery::Batched => hook.requests().iter().map(|request| request.json().as_array().unwrap().len()).sum(),
        };
        assert_eq!(told, 160, "{delivery:?}");
    }
}

#[tokio::test]
async fn the_task_ends_with_the_store() {
    let hook = Hook::start().await;
    let (store, mut pauses) = hook.store(Delivery::Batched);
    within(async {
        write(&store, "a", "1").await;
        let (_, pause) = pauses.recv().await.unwrap();
        drop(store);
        pause.closed_by_other().await;
        // All that could pause is gone.
        assert!(pauses.recv().await.is_none());
        assert_eq!(hook.lines(), Vec::<String>::new());
    })
    .await;
}
