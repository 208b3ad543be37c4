//! Native files (`/v1/files/…`). Every request is sent one time.

use std::{ffi::OsStr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use gloveport_protocol::files::{
    FileEntry, FileEvent, FileList, GlobRequest, GrepMatches, GrepRequest, MkdirRequest, MoveRequest, RemoveRequest,
    Stored,
};
use reqwest::{
    Body, Method, Response,
    header::{ETAG, HeaderName, HeaderValue, IF_MATCH, LAST_MODIFIED, RANGE},
};
use serde::Serialize;

use crate::{
    ClientError,
    call::{Call, Payload, Progress},
    session::{Session, next_chunk},
    sse::Events,
};

const ARCHIVE: &str = "v1/files/archive";
const MODE: HeaderName = HeaderName::from_static("x-file-mode");

/// The files of a sandbox.
#[derive(Debug, Clone)]
pub struct Files {
    session: Arc<Session>,
}

/// A path in the sandbox. One that is not UTF-8 is sent as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePath(Vec<u8>);

impl<T: AsRef<OsStr> + ?Sized> From<&T> for RemotePath {
    fn from(path: &T) -> Self {
        Self(path.as_ref().as_encoded_bytes().to_vec())
    }
}

impl RemotePath {
    /// The path as text, which the routes of OpenHands need.
    pub(crate) fn as_text(&self) -> Result<&str, ClientError> {
        std::str::from_utf8(&self.0).map_err(|_| ClientError::Request {
            url: String::from_utf8_lossy(&self.0).into_owned(),
            reason: "a path that is not UTF-8 can be asked for over the native routes only".to_owned(),
        })
    }

    fn query(&self) -> (&'static str, String) {
        match std::str::from_utf8(&self.0) {
            Ok(text) => ("path", text.to_owned()),
            Err(_) => ("path_base64", STANDARD.encode(&self.0)),
        }
    }
}

/// How a directory is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// How many levels; none is the server's default of one.
    pub depth: Option<u32>,
    /// Names that begin with a dot, too.
    pub hidden: bool,
    /// Most entries.
    pub limit: Option<usize>,
}

/// How a file is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Permission bits; none keeps those of a file that exists.
    pub mode: Option<u32>,
    /// Makes missing parent directories.
    pub parents: bool,
    /// It is an error if the file exists.
    pub exclusive: bool,
    /// The file must still have this tag (`ETag`).
    pub if_match: Option<String>,
}

/// A part of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From the first offset up to, but without, the second.
    Between(u64, u64),
    /// From an offset to the end.
    From(u64),
    /// So many bytes at the end.
    Last(u64),
}

impl Range {
    fn header(self) -> String {
        match self {
            Self::Between(start, end) => format!("bytes={start}-{}", end.saturating_sub(1)),
            Self::From(start) => format!("bytes={start}-"),
            Self::Last(count) => format!("bytes=-{count}"),
        }
    }
}

/// What is known about a file before its bytes come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentInfo {
    /// Changes with the content; for [`PutOptions::if_match`].
    pub etag: Option<String>,
    /// Time of the last change, in the form of HTTP.
    pub last_modified: Option<String>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// How many bytes come, if it is known.
    pub length: Option<u64>,
    /// Only a part of the file comes.
    pub partial: bool,
}

/// A file as it comes.
#[derive(Debug)]
pub struct Content {
    /// What is known about it.
    pub info: ContentInfo,
    /// Its bytes.
    pub bytes: ByteStream,
}

/// Bytes as they come. Dropping it ends the transfer.
#[derive(Debug)]
pub struct ByteStream {
    response: Response,
    limit: std::time::Duration,
}

impl ByteStream {
    pub(crate) const fn new(response: Response, limit: std::time::Duration) -> Self {
        Self { response, limit }
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        next_chunk(&mut self.response, Some(self.limit)).await
    }
}

/// Bytes to be sent: from memory or as a stream.
pub struct Upload {
    length: Option<u64>,
    body: UploadBody,
}

enum UploadBody {
    Bytes(Bytes),
    Stream(futures_util::stream::BoxStream<'static, std::io::Result<Bytes>>),
}

impl Upload {
    /// A stream of bytes, with their number if it is known.
    pub fn stream(bytes: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static, length: Option<u64>) -> Self {
        Self { length, body: UploadBody::Stream(bytes.boxed()) }
    }
}

impl<T: Into<Bytes>> From<T> for Upload {
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        Self { length: Some(bytes.len() as u64), body: UploadBody::Bytes(bytes) }
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Upload").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Upload {
    pub(crate) fn payload(self, content_type: &str) -> Payload {
        let (length, content_type) = (self.length, content_type.to_owned());
        let stream = match self.body {
            UploadBody::Bytes(bytes) => futures_util::stream::once(std::future::ready(Ok(bytes))).boxed(),
            UploadBody::Stream(stream) => stream,
        };
        // The request is sent one time, so its body is made one time.
        let once = std::sync::Mutex::new(Some(stream));
        let make = move |progress: Progress| {
            let stream = once.lock().ok().and_then(|mut stream| stream.take());
            match stream {
                Some(stream) => Body::wrap_stream(stream.inspect(move |_| {
                    progress.send_replace(tokio::time::Instant::now());
                })),
                None => Body::default(),
            }
        };
        Payload::Stream { content_type, length, make: Box::new(make) }
    }
}

/// What happens below a watched path, as it happens.
#[derive(Debug)]
pub struct Watch {
    events: Events,
    url: String,
}

/// Something that a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The watch is set up: every later change is told.
    Ready,
    /// Something changed.
    Change(FileEvent),
}

impl Watch {
    /// The next event; none when the server ended the watch.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        while let Some(event) = self.events.next().await? {
            match event.name.as_str() {
                "ready" => return Ok(Some(WatchEvent::Ready)),
                "change" => return event.json(&self.url).map(|change| Some(WatchEvent::Change(change))),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Files {
    pub(crate) const fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    /// What is known about a path; a link itself, unless it is followed.
    pub async fn stat(&self, path: impl Into<RemotePath>, follow: bool) -> Result<FileEntry, ClientError> {
        let mut query = vec![path.into().query()];
        if follow {
            query.push(("follow", "true".to_owned()));
        }
        self.session.once_json(&self.get("v1/files/stat", query)).await
    }

    /// The entries of a directory.
    pub async fn list(&self, path: impl Into<RemotePath>, options: &ListOptions) -> Result<FileList, ClientError> {
        let mut query = vec![path.into().query(), ("hidden", options.hidden.to_string())];
        query.extend(options.depth.map(|depth| ("depth", depth.to_string())));
        query.extend(options.limit.map(|limit| ("limit", limit.to_string())));
        self.session.once_json(&self.get("v1/files/list", query)).await
    }

    /// A file, or a part of it, as it comes.
    pub async fn read(&self, path: impl Into<RemotePath>, range: Option<Range>) -> Result<Content, ClientError> {
        let mut call = self.get("v1/files/content", vec![path.into().query()]);
        if let Some(range) = range {
            let value = range.header();
            let value = HeaderValue::from_str(&value).map_err(|_| ClientError::Header { name: RANGE.to_string() })?;
            call.headers.insert(RANGE, value);
        }
        let response = self.session.send(&call).await?;
        let header =
            |name: &HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let info = ContentInfo {
            etag: header(&ETAG),
            last_modified: header(&LAST_MODIFIED),
            mode: header(&MODE).and_then(|text| u32::from_str_radix(&text, 8).ok()),
            length: response.content_length(),
            partial: response.status() == 206,
        };
        Ok(Content { info, bytes: ByteStream::new(response, self.session.limits.other) })
    }

    /// A whole file, of at most `most` bytes.
    pub async fn read_all(&self, path: impl Into<RemotePath>, most: usize) -> Result<Vec<u8>, ClientError> {
        let mut content = self.read(path, None).await?;
        let mut whole = Vec::new();
        while let Some(piece) = content.bytes.next().await? {
            if whole.len() + piece.len() > most {
                let url = format!("{}v1/files/content", self.session.base());
                return Err(ClientError::TooLarge { url, limit: most as u64 });
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Stores a file, as a whole or not at all.
    pub async fn write(
        &self,
        path: impl Into<RemotePath>,
        content: impl Into<Upload>,
        options: &PutOptions,
    ) -> Result<Stored, ClientError> {
        let mut query = vec![path.into().query()];
        query.extend(options.mode.map(|mode| ("mode", format!("{mode:04o}"))));
        if options.parents {
            query.push(("parents", "true".to_owned()));
        }
        if options.exclusive {
            query.push(("exclusive", "true".to_owned()));
        }
        let payload = content.into().payload("application/octet-stream");
        let mut call = Call { method: Method::PUT, payload, ..self.get("v1/files/content", query) };
        if let Some(tag) = &options.if_match {
            let value = HeaderValue::from_str(tag).map_err(|_| ClientError::Header { name: IF_MATCH.to_string() })?;
            call.headers.insert(IF_MATCH, value);
        }
        self.session.once_json(&call).await
    }

    /// Files that match patterns.
    pub async fn glob(&self, request: &GlobRequest) -> Result<FileList, ClientError> {
        self.session.once_json(&self.post("v1/files/glob", request)?).await
    }

    /// Lines that match a pattern.
    pub async fn grep(&self, request: &GrepRequest) -> Result<GrepMatches, ClientError> {
        self.session.once_json(&self.post("v1/files/grep", request)?).await
    }

    /// Moves a file or directory.
    pub async fn rename(&self, request: &MoveRequest) -> Result<(), ClientError> {
        self.session.once(&self.post("v1/files/move", request)?).await.map(drop)
    }

    /// Removes a file or directory.
    pub async fn remove(&self, request: &RemoveRequest) -> Result<(), ClientError> {
        self.session.once(&self.post("v1/files/remove", request)?).await.map(drop)
    }

    /// Makes a directory.
    pub async fn make_directory(&self, request: &MkdirRequest) -> Result<(), ClientError> {
        self.session.once(&self.post("v1/files/mkdir", request)?).await.map(drop)
    }

    /// Tells what happens at a path, and below it if it is recursive. The first event is [`WatchEvent::Ready`].
    pub async fn watch(&self, path: impl Into<RemotePath>, recursive: bool) -> Result<Watch, ClientError> {
        const PATH: &str = "v1/files/watch";
        let call = self.get(PATH, vec![path.into().query(), ("recursive", recursive.to_string())]);
        let response = self.session.send(&call).await?;
        let url = format!("{}{PATH}", self.session.base());
        Ok(Watch { events: Events::new(response, self.session.limits.stream), url })
    }

    /// A file or a tree as a tar archive, as it comes.
    pub async fn read_tar(&self, path: impl Into<RemotePath>) -> Result<ByteStream, ClientError> {
        let response = self.session.send(&self.get(ARCHIVE, vec![path.into().query()])).await?;
        Ok(ByteStream::new(response, self.session.limits.download))
    }

    /// Unpacks a tar archive into a directory.
    pub async fn write_tar(
        &self,
        path: impl Into<RemotePath>,
        tar: impl Into<Upload>,
        parents: bool,
    ) -> Result<Stored, ClientError> {
        let query = vec![path.into().query(), ("parents", parents.to_string())];
        let payload = tar.into().payload("application/x-tar");
        let limit = Some(self.session.limits.upload);
        self.session.once_json(&Call { method: Method::PUT, payload, limit, ..self.get(ARCHIVE, query) }).await
    }

    fn get(&self, path: &'static str, query: Vec<(&'static str, String)>) -> Call<'static> {
        Call { query, ..Call::get(path, self.session.limits.other) }
    }

    fn post(&self, path: &'static str, body: &impl Serialize) -> Result<Call<'static>, ClientError> {
        Call::post(path, body, Some(self.session.limits.other))
    }
}
