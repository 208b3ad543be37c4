//! A cell as a stream of server-sent events: `text`, `image`, and one `end` or `failed` at last.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use gloveport_executor::kernels::{Cell, CellReport, Kernel, KernelError, Output};
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde::Serialize;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use gloveport_protocol::kernels::CellResult;

use super::{super::events::EVENT_STREAM, result};
use crate::answer::with_type;

/// Pieces of output that wait for a client.
const WAITING: usize = 64;
/// Time without an event after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct Image<'a> {
    media_type: &'a str,
    base64: &'a str,
}

#[derive(Debug, Serialize)]
struct Failure {
    message: String,
}

struct Events {
    output: mpsc::Receiver<Output>,
    cell: Option<JoinHandle<Result<CellReport, KernelError>>>,
}

/// Runs the cell and tells what it shows. A client that leaves does not end it.
pub(super) fn answer(kernel: Kernel, mut cell: Cell) -> Response {
    let (sender, output) = mpsc::channel(WAITING);
    cell.progress = Some(sender);
    let cell = tokio::spawn(async move { kernel.execute(cell).await });
    let frames = stream::unfold(Events { output, cell: Some(cell) }, async |mut events| {
        let frame = events.next().await?;
        Some((Ok::<_, Infallible>(frame), events))
    });
    let mut response = with_type(StatusCode::OK, EVENT_STREAM, Body::from_stream(frames));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

impl Events {
    /// The next event; `None` behind the last one.
    async fn next(&mut self) -> Option<Bytes> {
        self.cell.as_ref()?;
        match timeout(KEEP_ALIVE, self.output.recv()).await {
            Err(_quiet) => Some(Bytes::from_static(b": keep-alive\n\n")),
            Ok(Some(Output::Text(text))) => Some(event("text", &Text { text: &text })),
            Ok(Some(Output::Image { media_type, base64 })) => {
                Some(event("image", &Image { media_type, base64: &base64 }))
            }
            Ok(None) => match self.cell.take()?.await {
                Ok(Ok(report)) => {
                    let rest = CellResult { text: String::new(), images: Vec::new(), ..result(report) };
                    Some(event("end", &rest))
                }
                Ok(Err(error)) => Some(event("failed", &Failure { message: error.to_string() })),
                Err(error) => Some(event("failed", &Failure { message: error.to_string() })),
            },
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Bytes {
    // What is serialised here is made of strings.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
