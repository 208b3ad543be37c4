//! The cell whose turn it is.

use std::time::Duration;

use gloveport_sys::session::Exit;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    cell::{Cell, CellEnd, CellReport, Output},
    message::{Content, Display, Exception, Picture},
    options::KernelOptions,
    state::KernelError,
};
use gloveport_screen::Collector;
use serde_json::Value;

/// The cell whose turn it is, and where its report goes.
pub(crate) struct Running {
    pub(crate) cell: Cell,
    answer: oneshot::Sender<Result<CellReport, KernelError>>,
    deadline: Option<Instant>,
    collector: Collector,
    /// An exception has been shown.
    raised: bool,
    behind: usize,
    /// Bytes that details may still have: they wait for a client in memory, and the report has none of them.
    left: usize,
}

impl Running {
    pub(crate) fn new(
        mut cell: Cell,
        answer: oneshot::Sender<Result<CellReport, KernelError>>,
        options: &KernelOptions,
    ) -> Self {
        let collector = Collector::new(options.output_limit, options.image_limit);
        // A limit beyond the end of time is none.
        let deadline = cell.limit.and_then(|limit| Instant::now().checked_add(limit));
        if deadline.is_none() {
            cell.limit = None;
        }
        let left = options.output_limit.saturating_add(options.image_limit);
        Self { cell, answer, deadline, collector, raised: false, behind: 0, left }
    }

    /// When its time is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Takes what it shows.
    pub(crate) fn take(&mut self, content: Content) {
        match content {
            Content::Text { text, is_error, .. } => self.stream(text, is_error),
            Content::Error(exception) => {
                self.raised = true;
                let text = exception.text();
                if self.cell.detailed {
                    self.collector.text(&text);
                    let Exception { traceback, name, value } = exception;
                    self.progress(Output::Raised { name, value, traceback });
                } else {
                    self.text(text);
                }
            }
            Content::Display(Display { text, images, forms, is_result }) => {
                if self.cell.detailed {
                    self.collector.text(&text);
                    self.progress(Output::Display { forms, is_result });
                    return;
                }
                self.text(text);
                for image in images {
                    self.image(image);
                }
            }
            Content::Idle | Content::Reply { .. } | Content::Other => {}
        }
    }

    /// Takes text.
    pub(crate) fn text(&mut self, text: String) {
        self.stream(text, false);
    }

    fn stream(&mut self, text: String, is_error: bool) {
        if !text.is_empty() {
            self.collector.text(&text);
            let is_detailed = self.cell.detailed;
            self.progress(if is_detailed { Output::Stream { text, is_error } } else { Output::Text(text) });
        }
    }

    fn image(&mut self, Picture { media_type, base64 }: Picture) {
        if self.collector.image(media_type, &base64) {
            self.progress(Output::Image { media_type, base64 });
        }
    }

    /// A cell never waits for whoever watches it.
    fn progress(&mut self, output: Output) {
        let Some(progress) = &self.cell.progress else { return };
        if self.behind > 0 {
            let line = format!("\n[{} pieces of output are left out here; the report has them]\n", self.behind);
            let line =
                if self.cell.detailed { Output::Stream { text: line, is_error: true } } else { Output::Text(line) };
            if progress.try_send(line).is_ok() {
                self.behind = 0;
            }
        }
        let size = if self.cell.detailed { size(&output) } else { 0 };
        let is_sent =
            size <= self.left && !matches!(progress.try_send(output), Err(mpsc::error::TrySendError::Full(_)));
        if is_sent {
            self.left -= size;
        } else {
            self.behind += 1;
        }
    }

    /// Reports how it ended.
    pub(crate) fn report(self, end: CellEnd, lost_before: Option<Exit>, interpreter: String) {
        let end = if end == CellEnd::Completed && self.raised { CellEnd::Raised } else { end };
        let (text, images) = self.collector.finish();
        // Whoever asked may be gone.
        let _nobody_waits = self.answer.send(Ok(CellReport { text, images, end, lost_before, interpreter }));
    }

    /// Reports that it did not run.
    pub(crate) fn refuse(self, error: KernelError) {
        let _nobody_waits = self.answer.send(Err(error));
    }

    /// Reports that its time was over before it ran.
    pub(crate) fn refuse_late(self) {
        let limit = self.cell.limit.unwrap_or(Duration::ZERO);
        self.refuse(KernelError::NotReady(limit));
    }
}

/// Bytes of what is told in detail.
fn size(output: &Output) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(|value| of(value) + 1).sum(),
            Value::Object(members) => members.iter().map(|(name, value)| name.len() + of(value) + 1).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        }
    }
    match output {
        Output::Text(text) | Output::Image { base64: text, .. } | Output::Stream { text, .. } => text.len(),
        Output::Display { forms, .. } => forms.iter().map(|(kind, form)| kind.len() + of(form)).sum(),
        Output::Raised { name, value, traceback } => {
            name.len() + value.len() + traceback.iter().map(String::len).sum::<usize>()
        }
    }
}
