//! IPython kernels in the native interface.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::python::float_text;

/// One kernel in the answer to `GET /v1/kernels`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CellRequest {
    /// The cell.
    #[schema(example = "1 + 1")]
    pub code: String,
    /// Seconds from its turn on; without a limit it may run for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub timeout: Option<f64>,
}

/// What became of a cell. In the `end` event of a stream text and images are empty: they came before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellOutcome {
    /// To its end.
    Completed,
    /// With an exception.
    Raised,
    /// Its time was over; it was interrupted, and the kernel lives on.
    #[serde(alias = "timed-out")]
    TimedOut,
    /// The kernel ended with it; another one is started.
    Died,
}

/// The kernel of agents.
pub const DEFAULT_KERNEL: &str = "default";
/// What is shown of a cell that shows nothing.
pub const NO_OUTPUT: &str = "[Code executed successfully with no output]";
/// What the end of a kernel means for whoever used it.
pub const KERNEL_LOST: &str = "A new kernel takes its place; variables and imports of the old one are gone.";

/// What an agent reads of a cell that showed this text, and that had this many seconds.
pub fn cell_content(text: &str, end: CellOutcome, timeout: Option<f64>) -> String {
    match end {
        CellOutcome::TimedOut => {
            format!("[Execution timed out ({} seconds).]", float_text(timeout.unwrap_or_default()))
        }
        CellOutcome::Completed | CellOutcome::Raised if text.is_empty() => NO_OUTPUT.to_owned(),
        CellOutcome::Completed | CellOutcome::Raised | CellOutcome::Died => text.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_time_limit_has_the_name_that_it_has_everywhere_and_the_one_of_before_is_read() {
        assert_eq!(to_value(CellOutcome::TimedOut).unwrap(), json!("timed_out"));
        for wire in ["timed_out", "timed-out"] {
            assert_eq!(from_value::<CellOutcome>(json!(wire)).unwrap(), CellOutcome::TimedOut, "{wire}");
        }
    }
}
