//! Entries for MCP servers in the configuration files of MCP clients: put in, and taken out again.
//!
//! Only the entry changes. All else in the file stays byte for byte: comments, order, indentation, line ends, a byte order
//! mark, a final newline that is missing. The parsers only say where things stand; the text itself is edited.
//!
//! | module | idea |
//! |---|---|
//! | [`Program`], [`Homes`] | the clients, and where each has its files |
//! | [`Entry`] | how a client starts a server |
//! | [`install`], [`uninstall`] | what a file would become |
//! | [`Change`] | shown as a diff, and written |
//!
//! ```no_run
//! use gloveport_mcp_install::{Entry, Homes, Program, Scope, install};
//!
//! let homes = Homes::new(|name| std::env::var_os(name));
//! let file = Program::Cursor.file(&Scope::User, &homes)?;
//! let entry = Entry { name: "tools".into(), command: "tools-server".into(), ..Entry::default() };
//! let change = install(Program::Cursor, &file, &entry)?;
//! print!("{}", change.diff());
//! change.apply()?;
//! # Ok::<(), gloveport_mcp_install::InstallError>(())
//! ```

mod change;
mod edit;
mod entry;
mod error;
mod file;
mod homes;
mod install;
mod json;
mod program;
mod toml;

pub use change::Change;
pub use entry::Entry;
pub use error::{InstallError, Problem};
pub use homes::{Homes, System};
pub use install::{install, snippet, uninstall};
pub use program::{Program, Scope, UnknownProgram};
