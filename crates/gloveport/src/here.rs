//! What this machine does itself: it runs tools and serves them, it has sandboxes, and its files are at hand.
//!
//! That is Linux's. On other systems `elsewhere` stands in its place, with the same functions; they say what to do instead.

mod confined;
mod copy;
mod doctor;
mod files;
mod images;
mod ipython;
mod kept_keys;
mod local;
mod login;
mod plugin;
mod replay;
mod run;
mod serve;
mod waiting;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

pub(crate) use gloveport_sandbox::{Command as Inside, Owner, run as inside, tools::hide};

pub(crate) use self::{
    confined::confined,
    copy::copy,
    doctor::{checks, isolation_gaps, memory, system},
    files::Files,
    images::{list_images, pull, remove_images},
    ipython::ipython,
    kept_keys::known_key,
    local::{DEFAULT_RUNTIME, can_host, register, sessions},
    plugin::{plugin, plugin_names},
    replay::{cli_session, own_session},
    run::run,
    serve::serve,
    waiting::{count_waiting, end_waiting, keep, refill_waiting},
};

/// The file of the program that runs, also when another one has got its name since.
const OWN: &str = "/proc/self/exe";

/// The whole life of this process if it is the one that reads a document.
pub(crate) fn begin() -> Option<ExitCode> {
    let code = gloveport_documents::run_if_asked(std::env::args_os());
    if code.is_none() {
        gloveport_documents::choose_program(OWN);
    }
    code
}

/// The words that this program was called with, as its own command line has them.
pub(crate) fn command_line() -> Vec<OsString> {
    gloveport_sandbox::argv::normalize(std::env::args_os().collect())
}

/// The program that goes into images.
#[expect(clippy::unnecessary_wraps, reason = "on other systems it may be missing")]
pub(crate) fn image_program() -> anyhow::Result<PathBuf> {
    Ok(OWN.into())
}

/// Whether an error says that this system lacks something, which never happens here.
pub(crate) const fn is_missing(_error: &anyhow::Error) -> bool {
    false
}
