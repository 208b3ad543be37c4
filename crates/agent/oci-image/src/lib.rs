//! Container images kept on this machine without an engine: pulled from a registry or read from files, verified, unpacked
//! once, and shared read-only by many sandboxes.
//!
//! A [`Store`] is a directory. [`Store::get`] finds an image there, or pulls it; its tree can be the lower layer of an
//! overlay. An [`Image`] holds a [`Lease`], and as long as any process does, the image stays.
//!
//! Images are hostile. Every document and layer is checked by its SHA-256 digest. The kernel resolves each path of a layer
//! as if the tree were the whole file system, so that no name and no link reaches anything else; what a layer removes, it
//! removes there, and only what earlier layers brought. Set-user-ID bits, device nodes and extended attributes are left
//! out. Bounds are those of [`Limits`]. If this process is root's, files keep their owners' numbers; otherwise they are its
//! user's.
//!
//! Registries are spoken to with the HTTP client that everything here uses. Clients of registries that others have made
//! read whole answers, however long these are, and follow wherever a registry leads.
//!
//! | module | idea |
//! |---|---|
//! | `store` | what is kept where, and who waits for whom |
//! | `reference` | names of images |
//! | `registry` | images of registries |
//! | `source` | images of files, and what is unpacked of an image |
//! | `manifest`, `config`, `platform` | documents of images |
//! | `unpack` | layers as a tree |
//! | `owners` | who owns the files of an image |
//! | `digest` | digests |
//! | `words` | words of others in messages |
//!
//! It is for Linux.
#![cfg(target_os = "linux")]

mod config;
mod digest;
mod error;
mod image;
mod limits;
mod manifest;
mod owners;
mod platform;
mod reference;
mod registry;
mod source;
mod store;
mod unpack;
mod words;

pub use config::Config;
pub use error::ImageError;
pub use image::{Image, Lease, Progress, Pull, Stored};
pub use limits::{Limits, Options};
pub use owners::{Files, Owners};
pub use store::Store;
