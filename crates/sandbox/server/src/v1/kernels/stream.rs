//! A cell as a stream of server-sent events: `text`, `image`, and one `end` or `failed` at last.

use axum::response::{Response, sse::Event};
use futures_util::stream;
use gloveport_executor::kernels::{Cell, CellReport, Kernel, KernelError, Output};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::{sync::mpsc, task::JoinHandle};

use gloveport_protocol::kernels::CellResult;

use super::{
    super::sse::{self, Failure, event},
    result,
};

/// Pieces of output that wait for a client.
const WAITING: usize = 64;
/// The same where a client takes more than text: what is left out there is not in the report.
const DETAILS: usize = 4096;

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
struct Stream<'a> {
    stream: &'a str,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct Display<'a> {
    data: &'a Map<String, Value>,
    is_result: bool,
}

#[derive(Debug, Serialize)]
struct Raised<'a> {
    name: &'a str,
    value: &'a str,
    traceback: &'a [String],
}

struct Events {
    output: mpsc::Receiver<Output>,
    cell: Option<JoinHandle<Result<CellReport, KernelError>>>,
}

/// Runs the cell and tells what it shows. A client that leaves does not end it.
pub(super) fn answer(kernel: Kernel, mut cell: Cell) -> Response {
    let (sender, output) = mpsc::channel(if cell.detailed { DETAILS } else { WAITING });
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
            Some(output) => Some(told(&output)),
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

fn told(output: &Output) -> Event {
    match output {
        Output::Text(text) => event("text", &Text { text }),
        Output::Image { media_type, base64 } => event("image", &Image { media_type, base64 }),
        Output::Stream { text, is_error } => {
            event("stream", &Stream { stream: if *is_error { "stderr" } else { "stdout" }, text })
        }
        Output::Display { forms, is_result } => event("display", &Display { data: forms, is_result: *is_result }),
        Output::Raised { name, value, traceback } => event("raised", &Raised { name, value, traceback }),
    }
}
