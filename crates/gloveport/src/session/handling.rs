//! How a command wants its operation to be handled.

use crate::approve::ApproveArgs;

/// How a command wants its operation to be handled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handling {
    pub(super) approve: ApproveArgs,
    /// Standard input is for the operation, so no answer can be read from it.
    pub(super) input_is_taken: bool,
    /// Nothing of it is to be in the history.
    pub(super) unrecorded: bool,
}
