//! Many MCP servers of a sandbox, served as one (`docs/spec/server-api.md`, MCP).
//!
//! A backend names programs that speak MCP over their standard input and output. They run in the sandbox, as its user, and
//! are reached over HTTP as if they were one server:
//!
//! ```text
//!   clients                     the proxy                             programs
//!
//!   GET  /mcp/sse ──┐        ┌───────────┐   ┌──────────┐  lines   ┌────────────┐
//!   POST /mcp/messages/ ────►│  Session  │──►│  Server  │─────────►│ npx …      │
//!        /mcp/proxy ────────►│ one each  │◄──│ one each │◄─────────│ uvx …      │
//!                            └───────────┘   └──────────┘          └────────────┘
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `proxy` | which servers there are, and which one a name belongs to |
//! | `server` | one of them: started when it is used, watched, ended with all that it started |
//! | `lines` | how its messages are read and written, within bounds, with results as they are |
//! | `session`, `typed` | one client: every request of the protocol, and where it goes |
//! | `forward` | one request on its way, with its progress and its cancellation |
//! | `back`, `audience` | what servers ask of clients, and what they tell them |
//! | `names` | `{server}_{name}` and back |
//! | `http`, `sse` | the two ways in |
//!
//! What a server answers passes as it is: only names and addresses in lists are changed, if there are several servers.

#![expect(deprecated, reason = "servers and clients of today use what the newest revision of the protocol gives up")]

mod audience;
mod back;
mod forward;
mod http;
mod lines;
mod names;
mod proxy;
mod server;
mod session;
mod sse;
#[cfg(test)]
mod tests;
mod typed;

pub use self::{
    http::{Face, MOST_BODY, Streamable},
    proxy::Proxy,
    server::{ServerState, ServerStatus},
};
