//! What this build of the sandbox half is called: programs that have the same may stand in for each other.
//!
//! The name is a hash of the sources of `crates/base` and `crates/sandbox`. The linker writes it into
//! `gloveport-sandbox` as its build id, and `gloveport`, which may run on another system, knows it as a constant.

/// The name of this build, in hexadecimal digits.
pub const BUILD: &str = env!("GLOVEPORT_SANDBOX_BUILD");
