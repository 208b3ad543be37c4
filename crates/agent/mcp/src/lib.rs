//! MCP servers as a client sees them (runtime-interface 14).
//!
//! A [`Client`] is connected to one [`Server`], which it starts or reaches over HTTP. The protocol itself is the official
//! SDK's, [`rmcp`]; what is here is how a server is found, started, bounded and ended, and what OpenHands makes of a
//! tool's result. Nothing here knows sessions.
//!
//! | module | idea |
//! |---|---|
//! | [`Server`] | where a server is, and how it is spoken to |
//! | [`Client`] | one connection: tools, calls, its end |
//! | [`Pool`] | connections that are kept for the next call |
//! | [`call_tool`], [`tools_for_model`] | tools of several servers, in the form of OpenHands |
//! | [`ErrorCollector`] | what went wrong with servers, for whoever shows it to people |
//! | [`login`], [`logout`], [`TokenStore`] | OAuth: tokens of servers that want a person to log in |
//! | `stdio`, `sse`, `http` | programs, event streams, streamable HTTP |
//! | `listing`, `result` | lists of tools within bounds; results as the reference writes them |
//! | `handler`, `fate` | what servers ask of a client; how a connection ended |

mod call;
mod client;
mod collector;
mod error;
mod fate;
mod handler;
mod http;
mod listing;
mod oauth;
mod pool;
mod result;
mod server;
mod sse;
mod stdio;

pub use call::{ToolError, call_tool, tools_for_model};
pub use client::{CLOSE_LIMIT, CONNECT_LIMIT, Client};
pub use collector::{CollectedError, ErrorCollector, ErrorSource};
pub use error::{CallError, ConnectError};
pub use listing::{MOST_TOOL_BYTES, MOST_TOOLS};
pub use oauth::{
    LoggedIn, LoggedOut, LoginOptions, MOST_BYTES, MOST_SERVERS, OAuthError, REVOCATION_LIMIT, Revocation, StoreError,
    TokenStore, WAIT, login, logout,
};
pub use pool::{Pool, PoolLimits};
pub use result::dump;
pub use rmcp;
pub use server::{Dial, HttpServer, Server, StdioServer, servers};
