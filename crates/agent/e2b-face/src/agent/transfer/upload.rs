//! Files that are sent: one as the body, or some as the parts of a form. Nothing is collected.

use std::io::{self, Write as _};

use axum::{
    body::Body,
    extract::{FromRequest as _, Multipart, Request, multipart::Field},
};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use gloveport_client::{PutOptions, Upload};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use tokio::sync::mpsc;

use crate::{
    agent::handle::Agent,
    connect::{Code, ConnectError},
    headers::text,
};

/// Files in one form.
const PARTS: usize = 1000;
/// Compressed bytes that are taken at a time: each may become a thousand times as many.
const PIECE: usize = 4096;
/// Pieces of a part on their way.
const WAITING: usize = 8;

/// Stores what a request sends, and tells where.
pub(super) async fn take(
    agent: &Agent,
    path: Option<&str>,
    user: &str,
    request: Request,
) -> Result<Vec<String>, ConnectError> {
    let headers = request.headers();
    let kind = text(headers, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let encoding = text(headers, &CONTENT_ENCODING).unwrap_or("identity").to_ascii_lowercase();
    if kind.starts_with("multipart/form-data") {
        if encoding != "identity" {
            return Err(ConnectError::wrong("a form must not be compressed; send application/octet-stream"));
        }
        return form(agent, path, user, request).await;
    }
    if !kind.starts_with("application/octet-stream") {
        let message = format!("files are sent as application/octet-stream or multipart/form-data, and not as `{kind}`");
        return Err(ConnectError::wrong(message));
    }
    let path = path.ok_or_else(|| ConnectError::wrong("the query has no path"))?;
    let path = agent.file(path, user).await?;
    let length = text(headers, &CONTENT_LENGTH).and_then(|text| text.parse().ok());
    let body = pieces(request.into_body());
    let upload = match encoding.as_str() {
        "identity" => Upload::stream(body, length),
        "gzip" => Upload::stream(unpacked(body), None),
        other => return Err(ConnectError::wrong(format!("the encoding `{other}` is not known; send gzip, or none"))),
    };
    store(agent, &path, upload).await?;
    Ok(vec![path])
}

async fn store(agent: &Agent, path: &str, upload: Upload) -> Result<(), ConnectError> {
    let options = PutOptions { parents: true, ..PutOptions::default() };
    agent.place.client.files().write(path, upload, &options).await?;
    Ok(())
}

fn pieces(body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    body.into_data_stream().map_err(io::Error::other)
}

/// A body that is being gunzipped.
struct Unpacked<S> {
    body: S,
    decoder: MultiGzDecoder<Vec<u8>>,
    rest: Bytes,
    is_over: bool,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Unpacked<S> {
    /// The next bytes; none behind the last ones.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.is_over {
            if self.rest.is_empty() {
                if let Some(piece) = self.body.next().await.transpose()? {
                    self.rest = piece;
                } else {
                    self.is_over = true;
                    self.decoder.try_finish()?;
                }
            }
            let piece = self.rest.split_to(self.rest.len().min(PIECE));
            self.decoder.write_all(&piece)?;
            let out = std::mem::take(self.decoder.get_mut());
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }
        }
        Ok(None)
    }
}

/// Gunzips pieces as they come.
fn unpacked(
    body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let decoder = MultiGzDecoder::new(Vec::new());
    let unpacked = Unpacked { body: Box::pin(body), decoder, rest: Bytes::new(), is_over: false };
    stream::try_unfold(unpacked, async |mut unpacked| Ok(unpacked.next().await?.map(|bytes| (bytes, unpacked))))
}

/// Stores the files of a form. Each goes to the path of the query, or where its own name says.
async fn form(agent: &Agent, path: Option<&str>, user: &str, request: Request) -> Result<Vec<String>, ConnectError> {
    let wrong = |error: &dyn std::fmt::Display| ConnectError::wrong(format!("the form cannot be read: {error}"));
    let mut form = Multipart::from_request(request, &()).await.map_err(|error| wrong(&error.body_text()))?;
    let mut stored = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| wrong(&error.body_text()))? {
        if field.name() != Some("file") {
            continue;
        }
        if stored.len() >= PARTS {
            return Err(ConnectError::new(Code::ResourceExhausted, format!("a form may have {PARTS} files at most")));
        }
        if path.is_some() && !stored.is_empty() {
            return Err(ConnectError::wrong("the query has one path, and the form has several files"));
        }
        let named = path.map(str::to_owned).or_else(|| field.file_name().map(str::to_owned));
        let named = named.ok_or_else(|| ConnectError::wrong("a file of the form has no name"))?;
        let path = agent.file(&named, user).await?;
        part(agent, &path, field).await?;
        stored.push(path);
    }
    if stored.is_empty() {
        return Err(ConnectError::wrong("the form has no part with the name `file`"));
    }
    Ok(stored)
}

async fn part(agent: &Agent, path: &str, mut field: Field<'_>) -> Result<(), ConnectError> {
    let (sender, receiver) = mpsc::channel(WAITING);
    // The end of the sender is the end of the file.
    let feeding = async move {
        loop {
            let piece = match field.chunk().await {
                Ok(Some(piece)) => Ok(piece),
                Ok(None) => return,
                Err(error) => Err(io::Error::other(error.body_text())),
            };
            let is_over = piece.is_err();
            // Without a receiver the file is not stored, which says why.
            if sender.send(piece).await.is_err() || is_over {
                return;
            }
        }
    };
    let pieces = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<io::Result<Bytes>>| {
        Some((receiver.recv().await?, receiver))
    });
    let storing = store(agent, path, Upload::stream(pieces, None));
    tokio::pin!(feeding, storing);
    tokio::select! {
        stored = &mut storing => stored,
        () = &mut feeding => storing.await,
    }
}
