//! A server that keeps one bucket, and speaks what the APIs of S3 and Google Cloud Storage have in common: objects by
//! path, and lists in XML that go on with a token; with the bulk delete of S3.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Query, Request, State},
    response::Response,
};
use bytes::Bytes;
use gloveport_event_stream::{
    FileStore,
    store::{GcsAccess, GcsOptions, GcsStore, HttpLimits, S3Options, S3Store},
};
use http::{Method, StatusCode, Uri, header};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::stores::{SHORT, signature};

/// The one bucket.
pub(crate) const BUCKET: &str = "the-bucket";

/// Which API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    S3,
    Gcs,
}

/// What the server does with a request instead of what it should.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// This status, with this code in the answer.
    Status(u16, &'static str),
    /// No answer.
    Silence,
}

#[derive(Default)]
struct Contents {
    objects: BTreeMap<String, Bytes>,
    faults: VecDeque<Fault>,
    /// The method, the path and the query of each request.
    requests: Vec<String>,
}

#[derive(Clone)]
struct Shared {
    service: Service,
    /// Most names in one answer.
    page: usize,
    /// Whether anybody may use it, as an emulator.
    emulator: bool,
    contents: Arc<Mutex<Contents>>,
}

/// A running server; it ends with this.
pub(crate) struct Server {
    shared: Shared,
    url: String,
    task: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start(self) -> Server {
        self.start_with_pages_of(1000).await
    }

    pub(crate) async fn start_with_pages_of(self, page: usize) -> Server {
        self.start_as(page, self == Self::Gcs).await
    }

    /// A server that knows whom the tokens of Google Cloud are from.
    pub(crate) async fn start_strict(self) -> Server {
        self.start_as(1000, false).await
    }

    async fn start_as(self, page: usize, emulator: bool) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared { service: self, page, emulator, contents: Arc::default() };
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Server { shared, url, task }
    }
}

impl Server {
    /// A store in its bucket, with credentials that it knows.
    pub(crate) fn s3(&self) -> S3Store {
        self.s3_as(signature::ACCESS_KEY, SHORT)
    }

    pub(crate) fn s3_as(&self, access_key: &str, limits: HttpLimits) -> S3Store {
        let url = self.url.clone();
        let environment = |name: &str| match name {
            "AWS_S3_ENDPOINT" => Some(url.clone()),
            "AWS_S3_SECURE" => Some("false".to_owned()),
            "AWS_ACCESS_KEY_ID" => Some(access_key.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(signature::SECRET_KEY.to_owned()),
            _ => None,
        };
        let mut options = S3Options::from_environment(Some(BUCKET.to_owned()), &environment).unwrap();
        options.limits = limits;
        options.open().unwrap()
    }

    /// A store in its bucket, without credentials.
    pub(crate) fn gcs(&self) -> GcsStore {
        let environment = |name: &str| (name == "STORAGE_EMULATOR_HOST").then(|| self.url.clone());
        let mut options = GcsOptions::from_environment(Some(BUCKET.to_owned()), None, &environment).unwrap();
        assert_eq!(options.access, GcsAccess::Anonymous);
        options.limits = SHORT;
        options.open().unwrap()
    }

    /// A store in its bucket.
    pub(crate) fn store(&self) -> Box<dyn FileStore> {
        match self.shared.service {
            Service::S3 => Box::new(self.s3()),
            Service::Gcs => Box::new(self.gcs()),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it does with the next requests.
    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.contents.lock().unwrap().faults.extend(faults);
    }

    /// The requests since this was asked before.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.contents.lock().unwrap().requests)
    }

    /// Puts an object there as somebody else would.
    pub(crate) fn put(&self, key: &str) {
        self.shared.contents.lock().unwrap().objects.insert(key.to_owned(), Bytes::from("x"));
    }

    /// The keys of all objects.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared.contents.lock().unwrap().objects.keys().cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let fault = {
        let mut contents = shared.contents.lock().unwrap();
        contents.requests.push(format!("{} {}", head.method, head.uri));
        contents.faults.pop_front()
    };
    match fault {
        Some(Fault::Status(status, code)) => return failure(status, code),
        Some(Fault::Silence) => std::future::pending().await,
        None => {}
    }
    let known = match shared.service {
        Service::S3 => signature::is_signed_for_aws(&head.method, &head.uri, &head.headers, &body),
        Service::Gcs if shared.emulator => true,
        Service::Gcs => signature::is_from_account(&head.headers),
    };
    if !known {
        return failure(403, "SignatureDoesNotMatch");
    }
    let path = decoded(head.uri.path());
    let (bucket, key) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    if bucket != BUCKET {
        return failure(404, "NoSuchBucket");
    }
    let mut contents = shared.contents.lock().unwrap();
    match (head.method, key) {
        (Method::GET, "") => list(&contents.objects, &head.uri, shared.page),
        (Method::POST, "") if shared.service == Service::S3 => delete_many(&mut contents.objects, &body),
        (Method::GET, key) => match contents.objects.get(key) {
            Some(content) => reply(StatusCode::OK, content.clone()),
            None => failure(404, "NoSuchKey"),
        },
        (Method::PUT, key) => {
            contents.objects.insert(key.to_owned(), body);
            reply(StatusCode::OK, Bytes::new())
        }
        (Method::DELETE, key) => match (contents.objects.remove(key), shared.service) {
            (None, Service::Gcs) => failure(404, "NoSuchKey"),
            _ => reply(StatusCode::NO_CONTENT, Bytes::new()),
        },
        _ => failure(405, "MethodNotAllowed"),
    }
}

fn reply(status: StatusCode, content: Bytes) -> Response {
    Response::builder()
        .status(status)
        .header(header::ETAG, "\"1\"")
        .header(header::LAST_MODIFIED, "Wed, 01 Jan 2025 00:00:00 GMT")
        .header("x-goog-generation", "1")
        .body(Body::from(content))
        .unwrap()
}

fn failure(status: u16, code: &str) -> Response {
    let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>why</Message></Error>");
    reply(StatusCode::from_u16(status).unwrap(), Bytes::from(text))
}

/// One page of what begins with the prefix; what has the delimiter behind it is a common prefix.
fn list(objects: &BTreeMap<String, Bytes>, uri: &Uri, page: usize) -> Response {
    let Query(query) = Query::<BTreeMap<String, String>>::try_from_uri(uri).unwrap();
    let get = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!(get("list-type"), "2");
    let (prefix, delimiter) = (get("prefix"), get("delimiter"));
    let entry = |key: &String| {
        let rest = key.strip_prefix(prefix)?;
        let end = if delimiter.is_empty() { None } else { rest.find(delimiter) };
        Some(end.map_or_else(|| (key.clone(), false), |end| (format!("{prefix}{}{delimiter}", &rest[..end]), true)))
    };
    let entries: BTreeSet<(String, bool)> = objects.keys().filter_map(entry).collect();
    let from = get("continuation-token");
    let mut left = entries.into_iter().skip_while(|(name, _)| name.as_str() < from);
    let mut xml = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
    for (name, is_prefix) in left.by_ref().take(page) {
        let size = objects.get(&name).map_or(0, Bytes::len);
        let name = escaped(&name);
        let written = if is_prefix {
            write!(xml, "<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>")
        } else {
            let rest = "<LastModified>2025-01-01T00:00:00.000Z</LastModified><ETag>\"1\"</ETag>";
            write!(xml, "<Contents><Key>{name}</Key>{rest}<Size>{size}</Size></Contents>")
        };
        written.unwrap();
    }
    if let Some((next, _)) = left.next() {
        write!(xml, "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>", escaped(&next))
            .unwrap();
    }
    xml.push_str("</ListBucketResult>");
    reply(StatusCode::OK, Bytes::from(xml))
}

fn delete_many(objects: &mut BTreeMap<String, Bytes>, body: &[u8]) -> Response {
    let xml = std::str::from_utf8(body).unwrap();
    let keys: Vec<&str> = xml.split("<Key>").skip(1).filter_map(|rest| Some(rest.split_once("</Key>")?.0)).collect();
    assert!(keys.len() <= 1000, "the API takes at most 1000 keys");
    let mut answer = String::from("<?xml version=\"1.0\"?><DeleteResult>");
    for key in keys {
        objects.remove(&unescaped(key));
        write!(answer, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
    }
    answer.push_str("</DeleteResult>");
    reply(StatusCode::OK, Bytes::from(answer))
}

const ENTITIES: [(&str, &str); 5] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&apos;")];

fn escaped(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (char, entity)| text.replace(char, entity))
}

fn unescaped(text: &str) -> String {
    ENTITIES.iter().rev().fold(text.to_owned(), |text, (char, entity)| text.replace(entity, char))
}

/// A path without percent-encoding.
pub(crate) fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code =
            after.first_chunk::<2>().and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        let (byte, length) = match code {
            Some(code) if *first == b'%' => (code, 2),
            _ => (*first, 0),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    String::from_utf8(bytes).unwrap()
}
