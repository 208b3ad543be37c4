//! Secrets at the edge: a sandbox holds a placeholder, and the gate puts the secret in its place on the way out.
//!
//! For hosts that a secret goes to, the gate ends TLS itself, with certificates of an authority that this one sandbox
//! trusts, and speaks TLS to the target anew. In the head of a request a placeholder becomes the value; in answers the
//! value is overwritten. All other tunnels pass unread.
//!
//! | module | idea |
//! |---|---|
//! | `config` | what is done, as it is written by another process |
//! | `authority`, `tls` | certificates, and TLS on both sides |
//! | `site` | what is known of one target |
//! | `serve` | one tunnel: from the handshake inside to the last answer |
//! | `head`, `rewrite`, `spelling` | requests on their way out |
//! | `upstream` | connections to the target |
//! | `answer`, `decode`, `mask` | answers on their way in |
//! | `upgrade` | connections that become something else |

mod answer;
mod authority;
mod config;
mod decode;
mod error;
mod head;
mod mask;
mod rewrite;
mod secrets;
mod serve;
mod site;
mod spelling;
mod tasks;
mod tls;
mod upgrade;
mod upstream;
mod used;

pub(crate) use config::names;
pub use error::EdgeError;
pub use secrets::Edge;
pub(crate) use serve::{Inside, serve};
pub use tls::Roots;
pub use used::Used;
