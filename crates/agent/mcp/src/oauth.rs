//! Logins at MCP servers: OAuth 2.1 as MCP's specification of authorization has it.
//!
//! [`login`] finds the authorization server of an MCP server, registers this program there, lets a person agree in a
//! browser, and keeps the tokens in a [`TokenStore`]. A [`Client`](crate::Client) of a server that
//! [has this store](crate::HttpServer::with_tokens) sends them, and refreshes them when they have expired. [`logout`]
//! revokes and forgets them.
//!
//! Discovery, registration, PKCE and the exchange of the code are the official SDK's. What is here is what it leaves to
//! its users: a bounded way to ask foreign servers, the page that the browser comes back to, and tokens that several
//! processes share.
//!
//! Tokens are in a file that only its owner may read, as the keys of most command lines are. They are not in the
//! system's keyring: on Linux that needs D-Bus and a desktop session, which containers and servers do not have.
//!
//! | module | idea |
//! |---|---|
//! | `login`, `logout` | from a server's address to tokens, and back |
//! | `callback` | the page on this machine that the browser is sent to |
//! | `requests` | bounded requests to servers that other servers name |
//! | `store`, `record` | the file of tokens, and what it has of a server |
//! | `bearer` | the token of each request to an MCP server |
//! | `error`, `text` | why there is no login; texts of foreign servers |

mod bearer;
mod callback;
mod error;
mod login;
mod logout;
mod record;
mod requests;
mod store;
mod text;

pub(crate) use bearer::{Bearer, Tokens};
pub use error::{OAuthError, StoreError};
pub use login::{LoggedIn, LoginOptions, WAIT, login};
pub use logout::{LoggedOut, REVOCATION_LIMIT, Revocation, logout};
pub use store::{MOST_BYTES, MOST_SERVERS, TokenStore};
pub(crate) use text::clean;
