//! Texts as an editor meets them.
//!
//! | module | idea |
//! |---|---|
//! | [`encoding`] | which encoding a text has, and how it is written back |
//! | [`binary`] | what is no text |
//! | [`path`] | names of files as Python takes them apart |
//! | [`python`] | lines and white space as Python has them |

pub mod binary;
pub mod encoding;
pub mod path;
pub mod python;
