//! IPython kernels in the native interface.

use serde::{Deserialize, Serialize};

/// One kernel in the answer to `GET /v1/kernels`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelStatus {
    /// Its name; `default` is the one of `run_ipython`.
    pub name: String,
    /// How it stands.
    pub state: KernelActivity,
    /// Path of its interpreter, once it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Its process id, once it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a kernel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelActivity {
    /// On its way.
    Starting,
    /// Usable.
    Ready,
    /// Not usable.
    Failed,
    /// Ended.
    Closed,
}

/// Body of `POST /v1/kernels/{name}/execute`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellRequest {
    /// The cell.
    pub code: String,
    /// Seconds from its turn on; without a limit it may run for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// What became of a cell. In the `end` event of a stream text and images are empty: they came before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellResult {
    /// What it showed, without colours.
    pub text: String,
    /// Images as `data:` URLs.
    pub images: Vec<String>,
    /// How it ended.
    pub end: CellOutcome,
    /// The kernel had ended before the cell; variables of earlier cells are gone.
    pub kernel_lost_before: bool,
    /// Path of the interpreter.
    pub interpreter: String,
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellOutcome {
    /// To its end.
    Completed,
    /// With an exception.
    Raised,
    /// Its time was over; it was interrupted, and the kernel lives on.
    TimedOut,
    /// The kernel ended with it; another one is started.
    Died,
}
