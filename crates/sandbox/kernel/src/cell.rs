//! What runs in a kernel, and what becomes of it.

use std::{path::PathBuf, time::Duration};

use gloveport_sys::session::Exit;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// A cell to run.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Its text.
    pub code: String,
    /// Time for it, from its turn on; none waits for ever.
    pub limit: Option<Duration>,
    /// The directory of the shell. The kernel changes to it first if it is not the one of the last cell.
    pub directory: Option<PathBuf>,
    /// Gets the output while the cell runs. What does not fit into the channel is left out; the report has all.
    pub progress: Option<mpsc::Sender<Output>>,
    /// The channel gets [`Output::Stream`], [`Output::Display`] and [`Output::Raised`] instead of text and pictures.
    pub detailed: bool,
}

/// A piece of what a cell shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Text, as the cell wrote it.
    Text(String),
    /// A picture in base64.
    Image {
        /// Its type, such as `image/png`.
        media_type: &'static str,
        /// Its bytes in base64.
        base64: String,
    },
    /// Text, and where it was written to.
    Stream {
        /// What.
        text: String,
        /// To standard error.
        is_error: bool,
    },
    /// A result or a display, with all of its forms.
    Display {
        /// By type, such as `text/html`.
        forms: Map<String, Value>,
        /// It is the value of the cell's last expression.
        is_result: bool,
    },
    /// An exception that nobody caught.
    Raised {
        /// Its class.
        name: String,
        /// What it says.
        value: String,
        /// How it came about, with colours.
        traceback: Vec<String>,
    },
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellReport {
    /// Its text, without colours (ipython-and-plugins 2.2). A cell that shows nothing has an empty one.
    pub text: String,
    /// URLs of its images.
    pub images: Vec<String>,
    /// How it ended.
    pub end: CellEnd,
    /// The kernel before had ended since the last cell; this one ran in a new one.
    pub lost_before: Option<Exit>,
    /// Interpreter of the kernel that it ran in.
    pub interpreter: String,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellEnd {
    /// To its end.
    Completed,
    /// With an exception.
    Raised,
    /// The time was over; the cell was interrupted, and the kernel lives on.
    TimedOut,
    /// The kernel ended with it; a new one is being started.
    Died(Exit),
}
