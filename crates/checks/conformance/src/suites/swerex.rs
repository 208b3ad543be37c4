//! The checks of SWE-ReX's API, by group.

mod calls;
mod commands;
mod end;
mod endpoints;
mod files;
mod interrupts;
mod programs;
mod requests;
mod sessions;
mod talks;

use crate::Check;

/// All checks. The last one closes all sessions of the server.
pub(super) fn checks() -> Vec<Check> {
    [
        endpoints::checks(),
        requests::checks(),
        sessions::checks(),
        commands::checks(),
        talks::checks(),
        interrupts::checks(),
        programs::checks(),
        files::checks(),
        end::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
