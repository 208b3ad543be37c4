//! The tests of this crate, in one program, against a service on this machine.

mod faults;
mod life;
mod suite;
mod support;
mod wire;
