//! The sandbox as a whole, in the native interface.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of the answers to `GET /v1/sandbox`, `POST /v1/sandbox/pause` and `POST /v1/sandbox/resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SandboxStatus {
    /// What it does.
    pub state: Activity,
    /// Seconds since it began to do that.
    pub since_seconds: f64,
    /// Seconds since the last request was answered that was not about its state; 0 while one is worked on.
    pub idle_seconds: f64,
    /// How many of these it takes until it ends by itself; missing or null where it does not end so.
    #[serde(default)]
    pub idle_limit_seconds: Option<f64>,
}

/// What a sandbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = SandboxActivity)]
pub enum Activity {
    /// Its processes run.
    Running,
    /// Its processes are stopped, and it takes no requests but the one that resumes it and those about its state.
    Paused,
}
