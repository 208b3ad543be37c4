//! Whatever hosts sandboxes: one trait for this machine, Docker, Kubernetes and hosted services.
//!
//! A [`Provider`] makes, finds, lists, pauses and deletes sandboxes, each with a live server in it. It knows nothing of
//! actions. `docs/providers.md` says why the trait is as it is.
//!
//! | module | idea |
//! |---|---|
//! | [`Provider`] | the trait |
//! | [`SandboxSpec`] | what a sandbox is made from |
//! | [`Settings`] | what a fork is made with again |
//! | [`Sandbox`] | a sandbox as its engine tells it |
//! | [`Snapshot`] | the files of a sandbox, kept |
//! | [`Capabilities`] | what a provider can do, and what it refuses |
//! | [`Progress`] | how far the making of a sandbox is, with times |
//! | [`apart()`], [`handed_over()`] | making in a task of its own, which hears when nobody waits any more |
//! | [`WarmKind`] | sandboxes that are started ahead |
//! | [`Registry`] | providers by name |
//! | [`backend`] | who of this machine uses sandboxes, and whether it lives |
//! | [`matrix()`] | the capabilities of several providers side by side |
//! | [`program`] | which program goes into sandboxes |
//! | [`container`] | what a provider and the server in a container have agreed on |

mod apart;
pub mod backend;
mod capabilities;
mod error;
mod matrix;
mod names;
pub mod program;
mod progress;
mod provider;
mod registry;
mod sandbox;
mod settings;
mod snapshot;
mod spec;
mod warm;

pub use gloveport_contract::{
    container,
    gate::{Asked, NetworkChange, NetworkState},
};

pub use apart::{Teller, apart, handed_over};
pub use capabilities::{Capabilities, Isolation, StandsFor};
pub use error::{Cause, ProviderError};
pub use matrix::matrix;
pub use names::{InvalidName, SandboxId, SessionId};
pub use progress::{Phase, PhaseReport, PhaseTiming, Progress, ProgressCallback};
pub use provider::{Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Provider, Removed};
pub use registry::{Factory, Fallback, ProviderContext, Registry};
pub use sandbox::{Lifetime, Restarts, Sandbox, SandboxState};
pub use settings::Settings;
pub use snapshot::{MOST_SNAPSHOTS, Snapshot};
pub use spec::{
    Confinement, EdgeSecret, ExposedPort, Level, Mount, MountSource, NetworkPolicy, ResourceLimits, RunAs, SandboxSpec,
    Workspace,
};
pub use warm::{STARTED_AHEAD, WarmKind};
