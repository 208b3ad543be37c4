//! The scripts that tell what has changed, in a sandbox that has them from us.

/// Where the uploaded scripts are in the sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Scripts {
    pub(super) changes: String,
    pub(super) diff: String,
}
