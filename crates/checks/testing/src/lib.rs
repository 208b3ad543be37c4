//! What the test programs of several crates need.
//!
//! | item | idea |
//! |---|---|
//! | [`within`], [`until`] | a hang becomes a failure with a name |
//! | [`pdf`], [`pdf_of_forms`], [`ten_fold_pdf`] | documents made by hand |
//! | [`is_alive`], [`user_name`], [`free_port`], [`python`], [`mcp_program`] | what a test asks of the system |
//! | [`pace`] | how fast this machine is, for bounds in time |
//! | [`MCP_SERVER`] | a program that speaks MCP |
//! | [`run_guarded`] | test programs whose cases need a guard |
//! | `openapi` (feature `openapi`) | whether a document says what is served |
//! | `Postgres` (feature `postgres`) | a database of a test's own |
//! | `Server` (feature `server`) | a real server with a real shell, in directories of its own |

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod documents;
mod guarded;
#[cfg(feature = "openapi")]
pub mod openapi;
mod pace;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "server")]
mod server;

use std::{
    panic::Location,
    path::PathBuf,
    time::{Duration, Instant},
};

use gloveport_sys::{process, users::UserDatabase};
use tokio::time::{sleep, timeout};

pub use documents::{pdf, pdf_of_forms, pdf_stream, self_drawing_pdf, ten_fold_pdf};
pub use guarded::{GuardedCase, run_guarded};
pub use pace::pace;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "server")]
pub use server::Server;

/// An MCP server in Python, over standard input and output, that does what a test wants. Its arguments are its name and,
/// perhaps, a mode.
pub const MCP_SERVER: &str = include_str!("mcp_server.py");

/// Longest wait for anything, on a machine with much else to do.
pub const LIMIT: Duration = Duration::from_mins(1);

/// What comes of some work that ends in time.
///
/// # Panics
///
/// The work does not end within [`LIMIT`].
#[track_caller]
pub fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = Location::caller();
    async move { timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("no end within {LIMIT:?} at {place}")) }
}

/// Waits for something that no event tells of.
///
/// # Panics
///
/// It does not come true within [`LIMIT`].
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process lives; one that only waits to be reaped does not.
pub fn is_alive(pid: u32) -> bool {
    process::stat(pid).is_some_and(|stat| !"ZX".contains(stat.state))
}

/// The name of the user of this process, or its number where it has none.
///
/// # Panics
///
/// The system's list of users cannot be read.
pub fn user_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    UserDatabase::load().unwrap().by_uid(uid).map_or_else(|| uid.to_string(), |user| user.name.clone())
}

/// A port on which no program listens.
///
/// # Panics
///
/// There is none.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind(("0.0.0.0", 0)).unwrap().local_addr().unwrap().port()
}

/// The interpreter with `ipykernel` and `matplotlib` that `scripts/setup` makes, or that of `GLOVEPORT_TEST_PYTHON`.
///
/// # Panics
///
/// It is not there.
pub fn python() -> PathBuf {
    let made = || Some(std::env::home_dir()?.join(".cache/gloveport/python/bin/python"));
    let path = std::env::var_os("GLOVEPORT_TEST_PYTHON").map(PathBuf::from).or_else(made).unwrap();
    assert!(path.is_file(), "there is no {}: run scripts/setup", path.display());
    path
}

/// An MCP server or client that others wrote, by the name of its program; none, which is told, where `scripts/setup` has
/// installed none.
pub fn mcp_program(name: &str) -> Option<PathBuf> {
    let path = std::env::home_dir()?.join(".cache/gloveport/mcp/bin").join(name);
    if !path.is_file() {
        #[expect(clippy::print_stderr, reason = "a test that cannot do its work says so")]
        {
            eprintln!("skipped: there is no {}: run scripts/setup", path.display());
        }
        return None;
    }
    Some(path)
}
