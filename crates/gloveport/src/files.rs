//! `gloveport view`, `write`, `edit`, `ls` and `cp`: files of a sandbox, or of this machine. `session view`,
//! `write` and `edit` are the same in a session.

mod arguments;
mod copy;
mod edit;
mod given;
mod list;
pub(crate) mod place;
mod tools;
mod view;
mod words;
mod write;

pub(crate) use arguments::{CopyArgs, EditArgs, EditWhat, ListArgs, ViewArgs, ViewWhat, WriteArgs, WriteWhat};
pub(crate) use copy::{End, copied, copy, copy_between, progress};
pub(crate) use edit::{edit, edit_with};
pub(crate) use list::list;
pub(crate) use tools::Tools;
pub(crate) use view::{view, view_with};
pub(crate) use write::{write, write_with};
