//! Kernels that run: real `ipykernel`, real cells.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test programs stop at the first broken assumption"
)]

mod bounds;
mod cells;
mod deaths;
mod finding;
mod limits;
mod support;
