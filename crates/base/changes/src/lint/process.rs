//! One program that reads a text and answers, within a time and a size.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

#[cfg(target_os = "linux")]
pub(super) use self::linux::Program;
#[cfg(not(target_os = "linux"))]
pub(super) use self::portable::Program;

/// Most bytes that are taken of what it says.
const OUTPUT: usize = 64 * 1024;
