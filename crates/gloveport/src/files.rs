//! `gloveport view`, `write`, `edit`, `ls` and `cp`: files of a sandbox, or of this machine.

mod arguments;
mod copy;
mod edit;
mod given;
mod list;
pub(crate) mod place;
mod view;
mod words;
mod write;

pub(crate) use arguments::{CopyArgs, EditArgs, ListArgs, ViewArgs, WriteArgs};
pub(crate) use copy::{End, copy, copy_between};
pub(crate) use edit::edit;
pub(crate) use list::list;
pub(crate) use view::view;
pub(crate) use write::write;
