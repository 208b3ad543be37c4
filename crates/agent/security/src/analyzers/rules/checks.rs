//! The rules themselves, by what they are about.

pub(super) mod delete;
mod git;
pub(super) mod network;
pub(super) mod secret;
pub(super) mod system;
pub(super) mod write;

use super::{call::Call, machine::Machine};

/// Applies every rule that looks at a program and its arguments.
pub(super) fn all(machine: &mut Machine<'_>, call: &Call<'_>) {
    if let [only] = call.args()
        && matches!(only.text.as_str(), "--help" | "--version")
    {
        return;
    }
    delete::check(machine, call);
    git::check(machine, call);
    network::check(machine, call);
    secret::check(machine, call);
    system::check(machine, call);
    write::check(machine, call);
}
