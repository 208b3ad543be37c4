//! An IPython kernel over the Jupyter messaging protocol.

use std::{path::PathBuf, time::Duration};

use gloveport_sys::{Surroundings, session::Exit};
use tokio::sync::watch;

/// How a kernel is started.
#[derive(Debug, Clone)]
pub struct KernelOptions {
    /// As whom, where and with what environment the kernel runs.
    pub surroundings: Surroundings,
    /// Interpreter that the configuration names; without one it is looked for.
    pub interpreter: Option<PathBuf>,
    /// Directory with packages for the kernel, looked at after all others.
    pub packages: Option<PathBuf>,
    /// Cells that run after each start, before any other; what they print is thrown away.
    pub startup: Vec<String>,
    /// Where `ipykernel` is installed if the interpreter has none; below the user's home if nothing is said.
    pub environments: Option<PathBuf>,
    /// Most bytes of text of one cell that are kept: the first half and the last half.
    pub output_limit: usize,
    /// Most bytes of images of one cell; more are left out.
    pub image_limit: usize,
}

impl KernelOptions {
    /// The usual bounds.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            interpreter: None,
            packages: None,
            startup: Vec::new(),
            environments: None,
            output_limit: 16 * 1024 * 1024,
            image_limit: 64 * 1024 * 1024,
        }
    }
}

/// How a kernel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelState {
    /// On its way: what is being done.
    Starting(Step),
    /// Waits for a cell, or runs one.
    Ready(Facts),
    /// Cannot be used.
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// Closed.
    Closed,
}

/// What is done at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An interpreter is looked for.
    Finding,
    /// `ipykernel` is being installed.
    Installing,
    /// The kernel is coming up.
    Launching,
}

/// What a running kernel tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Path of its interpreter (`sys.executable`).
    pub interpreter: String,
    /// Process id.
    pub pid: u32,
    /// How many kernels there were before this one.
    pub generation: u64,
}

/// A cell to run.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Its text.
    pub code: String,
    /// Time for it, from its turn on; none waits for ever.
    pub limit: Option<Duration>,
    /// The directory of the shell. The kernel changes to it first if it is not the one of the last cell.
    pub directory: Option<PathBuf>,
    /// Gets the output while the cell runs.
    pub progress: Option<tokio::sync::mpsc::Sender<Output>>,
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
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellReport {
    /// Its text, without colours (ipython-and-plugins 2.2 and 2.3).
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

/// Why a cell was not run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KernelError {
    /// The kernel cannot be started.
    #[error("the IPython kernel cannot be started: {reason}; {remedy}")]
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// It was not ready in the time of the cell.
    #[error("the IPython kernel was not ready within {} s", .0.as_secs_f64())]
    NotReady(Duration),
    /// It is closed.
    #[error("the IPython kernel is closed")]
    Closed,
}

/// A kernel. Clones are the same kernel; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Kernel {
    state: watch::Receiver<KernelState>,
}

impl Kernel {
    /// Begins to start a kernel, and returns at once. Must be called within a tokio runtime.
    pub fn start(options: KernelOptions) -> Self {
        let _ = options;
        todo!()
    }

    /// How it stands, and every change of that.
    pub fn state(&self) -> watch::Receiver<KernelState> {
        self.state.clone()
    }

    /// Runs a cell after those that wait already. If the future is dropped the cell runs on; the next one waits for it.
    pub async fn execute(&self, cell: Cell) -> Result<CellReport, KernelError> {
        let _ = cell;
        todo!()
    }

    /// Interrupts the cell that runs; without one nothing happens.
    pub async fn interrupt(&self) -> Result<(), KernelError> {
        todo!()
    }

    /// Ends the kernel and starts another one. The cell that runs ends as if the kernel had died.
    pub async fn restart(&self) -> Result<(), KernelError> {
        todo!()
    }

    /// Ends the kernel, and returns when nothing that it started is left.
    pub async fn close(&self) {
        todo!()
    }
}
