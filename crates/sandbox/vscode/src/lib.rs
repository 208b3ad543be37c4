//! VS Code for a workspace: the server that the image has, started when it is used (`ipython-and-plugins` §4).
//!
//! | module | idea |
//! |---|---|
//! | [`plugin`] | the plugin: what is decided when the sandbox starts, and what runs until it ends |
//! | `program` | which server the image has, and its command line |
//! | `settings` | the settings of the workspace |
//! | `port` | the port that callers of OpenHands expect, and the path under it |
//! | `ownership` | the server's files for its user |
//!
//! Two ways lead to the one server: `VSCODE_PORT`, on which this crate listens itself, and `/plugins/vscode/` of the
//! sandbox's server. Both let in whoever has the token; the server behind them listens at a socket that only its user can
//! reach. `/vscode/connection_token` gives the token only where the port is there, because its caller makes a URL with
//! that port of it; the path works without the port, too.

mod ownership;
pub mod plugin;
mod port;
mod program;
mod settings;

pub use plugin::VsCode;
