//! A cell as a stream of server-sent events: `text`, `image`, and one `end` or `failed` at last.

use axum::response::{Response, sse::Event};
use futures_util::stream;
use gloveport_executor::kernels::{Cell, CellReport, Kernel, KernelError, Output};
use serde::Serialize;
use tokio::{sync::mpsc, task::JoinHandle};

use gloveport_protocol::kernels::CellResult;

use super::{
    super::sse::{self, Failure, event},
    result,
};

/// Pieces of output that wait for a client.
const WAITING: usize = 64;

#[derive(Debug, Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct Image<'a> {
    media_type: &'a str,
    base64: &'a str,
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
    let events = Events { output, cell: Some(cell) };
    sse::answer(stream::unfold(events, async |mut events| Some((events.next().await?, events))))
}

impl Events {
    /// The next event; `None` behind the last one.
    async fn next(&mut self) -> Option<Event> {
        self.cell.as_ref()?;
        match self.output.recv().await {
            Some(Output::Text(text)) => Some(event("text", &Text { text: &text })),
            Some(Output::Image { media_type, base64 }) => Some(event("image", &Image { media_type, base64: &base64 })),
            None => match self.cell.take()?.await {
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
