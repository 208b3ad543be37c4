//! The checks of the workspace API of OpenHands' SDK 1.x, by group.

mod calls;
mod chunks;
mod commands;
mod details;
mod directories;
mod downloads;
mod events;
mod followers;
mod git;
mod hooks;
mod keys;
mod limits;
mod origins;
mod paths;
mod sockets;
mod starts;
mod uploads;

use crate::Check;

/// All checks. One of the last clears the log of commands.
pub(super) fn checks() -> Vec<Check> {
    [
        details::checks(),
        paths::checks(),
        keys::checks(),
        origins::checks(),
        commands::checks(),
        limits::checks(),
        starts::checks(),
        chunks::checks(),
        sockets::checks(),
        followers::checks(),
        uploads::checks(),
        downloads::checks(),
        directories::checks(),
        git::checks(),
        hooks::checks(),
        events::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
