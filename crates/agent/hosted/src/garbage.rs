//! Why a sandbox is one that nobody wants.

use std::time::{Duration, SystemTime};

use gloveport_provider::{GcOptions, Lifetime, Sandbox, SandboxState, backend::Known};

use crate::backend::Backend;

/// Time that a sandbox has beyond what its label says: that begins before our program is there.
const GRACE: Duration = Duration::from_mins(1);

/// Why a sandbox that a backend with this label has made is garbage; none if it is not.
pub fn reason(backend: &Backend, sandbox: &Sandbox, label: &str, options: &GcOptions) -> Option<&'static str> {
    let is_kept = sandbox.lifetime == Lifetime::Kept;
    match &sandbox.state {
        state if !state.is_live() => return Some("it has ended"),
        // It may be found out later.
        SandboxState::Unknown(_) => return None,
        _ => {}
    }
    let is_over = sandbox.expires.is_some_and(|at| at + GRACE <= SystemTime::now());
    if is_over && (is_kept || sandbox.state == SandboxState::Paused) {
        return Some("its time is over");
    }
    match backend.backends.known(label) {
        Known::Dead if !is_kept => Some("its backend has died"),
        // Who holds a sandbox that was kept is told to nobody.
        _ if is_kept && options.all && !backend.held().contains(&sandbox.id) => {
            Some("it was kept, and nobody can tell who uses it")
        }
        Known::Lives | Known::Dead | Known::Elsewhere => None,
    }
}
