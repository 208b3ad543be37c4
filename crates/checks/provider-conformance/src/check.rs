//! What a check is.

use gloveport_protocol::BoxFuture;

use crate::bench::Bench;
pub(super) use crate::problem::{At, Found, Problem, must, same, unsupported};

/// One statement about a provider.
#[derive(Clone, Copy)]
pub(super) struct Check {
    /// Group and name.
    pub(super) id: &'static str,
    /// The statement.
    pub(super) title: &'static str,
    pub(super) run: for<'a> fn(&'a Bench) -> BoxFuture<'a, Found>,
}

/// A check of an async function.
macro_rules! check {
    ($id:literal, $title:literal, $run:path) => {
        Check { id: $id, title: $title, run: |bench| Box::pin($run(bench)) }
    };
}
pub(super) use check;
