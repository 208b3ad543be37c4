//! A persistent shell on a pseudo-terminal: run, type, interrupt, time out, and never lose output.
//!
//! One task owns one shell ([`Shell`]). The shell reports each prompt in a private sequence, so the end of a command
//! is an event and not a guess. What programs write goes into a numbered [`OutputLog`], and what a report shows is
//! rendered from it as a terminal would show it ([`gloveport_screen`]).
//!
//! A person gets a [`Terminal`] instead: any program on a pseudo-terminal, with nothing read into its bytes.
//!
//! ```no_run
//! # async fn example() -> Result<(), gloveport_terminal::TerminalError> {
//! use gloveport_terminal::{RunRequest, Shell, ShellOptions};
//! let shell = Shell::start(ShellOptions::inherited(std::env::temp_dir())).await?;
//! let report = shell.run(RunRequest::command("echo $((6 * 7))")).await?;
//! assert_eq!(report.output, "42");
//! shell.close().await;
//! # Ok(())
//! # }
//! ```

mod content;
mod engine;
mod error;
mod instance;
mod keys;
mod log;
mod options;
mod probe;
mod request;
mod scanner;
mod session;
mod terminal;

pub use content::EXIT_WORD;
pub use error::TerminalError;
pub use gloveport_script as split;
pub use gloveport_sys::pty::LineFeeds;
pub use keys::{ControlKey, in_parts};
pub use log::{LogError, OutputLog, Piece};
pub use options::ShellOptions;
pub use request::{Facts, Mode, Progress, RunEnd, RunReport, RunRequest, ShellLoss, Usage, WhenWaiting};
pub use session::Shell;
pub use terminal::{Terminal, TerminalOptions, TerminalState, WindowSize};
