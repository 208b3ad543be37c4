//! The exit codes of this program that are not those of a command, and what is said of an error that ends it.

use crate::{explained, output};

/// A command line that contradicts itself.
pub(crate) const WRONG_COMMAND_LINE: u8 = 2;
/// What was to be done is refused as risky.
pub(crate) const REFUSED: u8 = 77;
/// The time limit passed.
pub(crate) const TIMED_OUT: u8 = 124;
/// Gloveport itself failed, which is not to be taken for the command's end.
pub(crate) const OWN_FAILURE: u8 = 125;
/// A command was left running, given up before its turn, or killed: after the second C-c.
pub(crate) const INTERRUPTED: u8 = 130;
/// The output has no reader any more, as shells show it.
pub(crate) const UNREAD: u8 = 141;

/// Tells a person what failed.
pub(crate) fn report(error: &anyhow::Error) {
    output::tell(&format!("gloveport: {}", explained(error)));
}
