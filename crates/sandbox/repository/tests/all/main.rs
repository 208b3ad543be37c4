//! What has changed, in repositories made by git itself.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

mod archive;
mod base;
mod hostile;
mod limits;
mod place;
mod repository;
