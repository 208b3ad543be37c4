//! A sandbox as an MCP server.
//!
//! A model gets a computer: a shell that keeps its state, files, an IPython kernel and a browser, as few tools with short descriptions.
//! What they do is done by a [`Computer`], which a sandbox is to its own server and a client of that server to a program that
//! has it elsewhere. The protocol is the official SDK's, [`rmcp`].
//!
//! | module | idea |
//! |---|---|
//! | [`Computer`] | what is asked of a sandbox |
//! | [`McpServer`] | one client's view: tools, resources, what it is told |
//! | [`Tool`], `schema` | the tools: names, descriptions, shapes |
//! | `shell`, `following` | commands: started, followed for a while, continued |
//! | `files`, `search`, `python`, `browser` | the other tools |
//! | `resources`, `changes`, `uri` | files as resources, and what happens to them |
//! | `media` | what a file's content is |
//! | `answer`, `arguments` | results as models and programs read them; what a model got wrong |

mod answer;
mod arguments;
mod browser;
mod changes;
mod computer;
mod files;
mod following;
mod media;
mod python;
mod resources;
mod schema;
mod search;
mod server;
mod shell;
mod tool;
mod uri;

pub use computer::{BrowserAnswer, BrowserRequest, Changes, Computer, Failure, FileBytes, Follow};
pub use rmcp;
pub use server::McpServer;
pub use tool::{Tool, UnknownTool};
