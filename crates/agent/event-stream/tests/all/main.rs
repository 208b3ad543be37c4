//! The tests of this crate, in one program.

mod behaviour;
mod mask_shell;
mod stores;
