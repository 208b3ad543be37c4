//! Documents shown as Markdown (file-editor 3.8), and drawn.
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
//! | `convert` and below | documents as Markdown |
//! | `draw` | pages as pictures |

mod child;
mod convert;
mod docx;
mod draw;
mod error;
mod frames;
mod markdown;
mod package;
mod pdf;
mod pptx;
mod reader;
mod xlsx;
mod xml;

pub use child::run_if_asked;
pub use convert::Format;
pub use draw::{PAGES, SIDE};
pub use gloveport_sys::apart::Interrupt;
pub use reader::{DrawError, Page, Picture, ReadError, Reader, choose_program};

use error::ConversionError;
