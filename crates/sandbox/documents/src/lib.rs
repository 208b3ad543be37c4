//! Documents shown as Markdown (file-editor 3.8), as pages of a browser, and drawn.
//!
//! The libraries that read them recurse and loop on what others wrote, so nothing of a document is read in the process
//! that wants to show it: [`Reader`] starts a child for each, which has the open file, a few system calls, bounded
//! memory and time, and the rights of the sandbox's user ([`gloveport_sys::apart`]). Whatever becomes of the child, the
//! caller gets an answer or an error in time.
//!
//! | module | idea |
//! |---|---|
//! | `reader` | who wants to see a document: the child's turn, limits and end, and what is believed of it |
//! | `child` | who reads it |
//! | `frames` | what goes from one to the other |
//! | `limits` | what both know of the largest document and the largest drawing |
//! | `convert` | kinds of documents |
//! | `converters` and what it uses | documents as Markdown, with the feature `documents` |
//! | `view` | kinds of files that are shown as pages of a browser |
//! | `web` and what it uses | files as the inner parts of such pages, with the feature `documents` |
//! | `draw` | pages as pictures, with the feature `pictures` |
//!
//! A build without one of the features says so where it is asked for a document or a picture.

mod child;
mod convert;
#[cfg(feature = "documents")]
mod converters;
#[cfg(feature = "documents")]
mod docx;
#[cfg(feature = "pictures")]
mod draw;
mod error;
mod frames;
mod limits;
#[cfg(feature = "documents")]
mod markdown;
#[cfg(feature = "documents")]
mod package;
#[cfg(feature = "documents")]
mod pdf;
#[cfg(feature = "documents")]
mod pptx;
mod reader;
mod view;
#[cfg(feature = "documents")]
mod web;
#[cfg(feature = "documents")]
mod xlsx;
#[cfg(feature = "documents")]
mod xml;

pub use child::run_if_asked;
pub use convert::Format;
pub use gloveport_sys::apart::Interrupt;
pub use limits::{PAGES, SIDE};
pub use reader::{DrawError, Page, Picture, ReadError, Reader, choose_program};
pub use view::View;

#[cfg(feature = "documents")]
use error::ConversionError;
