//! What programs wrote: the log, the screen that shows it, and what of it was reported.

use gloveport_screen::{Renderer, Size};

use crate::{
    content::{Content, EXIT_WORD},
    log::OutputLog,
    options::ShellOptions,
};

#[derive(Debug)]
pub(super) struct Shown {
    pub(super) log: OutputLog,
    pub(super) renderer: Renderer,
    pub(super) content: Content,
    /// Offset up to which the log was reported.
    pub(super) reported_to: u64,
    /// The last byte written was not the end of a line.
    open_line: bool,
}

impl Shown {
    pub(super) fn new(options: &ShellOptions, log: OutputLog) -> Self {
        let size = Size { columns: options.columns, rows: options.rows, history: options.history };
        Self {
            reported_to: log.end(),
            log,
            renderer: Renderer::new(size),
            content: Content::default(),
            open_line: false,
        }
    }

    /// Output of a program.
    pub(super) fn output(&mut self, bytes: &[u8]) {
        self.log.append(bytes);
        self.renderer.feed(bytes);
        self.open_line = bytes.last() != Some(&b'\n');
    }

    /// A command begins: it does not stand behind what a background job left on the line.
    pub(super) fn begin_command(&mut self) {
        if self.open_line && self.log.end() > self.reported_to {
            self.renderer.feed(b"\n");
        }
    }

    /// Ends a line as the echo of Enter does on a real terminal.
    pub(super) fn end_line(&mut self) {
        if self.open_line {
            self.renderer.feed(b"\n");
            self.open_line = false;
        }
    }

    /// A key that the terminal shows.
    pub(super) fn key(&mut self, shown: &str, ends_line: bool) {
        self.renderer.feed(shown.as_bytes());
        if ends_line {
            self.renderer.feed(b"\n");
        }
        self.open_line = true;
    }

    /// Shows this text, as whole lines, and nothing else.
    pub(super) fn show_only(&mut self, lines: &str) {
        self.renderer.clear();
        if !lines.is_empty() {
            self.renderer.feed(lines.as_bytes());
            self.renderer.feed(b"\n");
        }
        self.open_line = false;
    }

    /// The end of a command was reported.
    pub(super) fn end_command(&mut self) {
        self.content.reset();
        self.renderer.clear();
        self.open_line = false;
    }

    /// The word of a shell that ended at its prompt is no output of the next command.
    pub(super) fn pass_over_exit_word(&mut self) {
        let fresh = self.log.read(self.reported_to, EXIT_WORD.len() + 1);
        if fresh.is_ok_and(|piece| piece.bytes == EXIT_WORD) {
            self.reported_to = self.log.end();
            self.renderer.clear();
        }
    }
}
