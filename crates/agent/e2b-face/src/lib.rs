//! Sandboxes of any provider as the API of E2B (`hosted-apis` 2), for its unmodified SDKs.
//!
//! Clients talk to three servers there: the control plane, which makes and ends sandboxes; the agent in each sandbox, for files
//! and processes; and the code interpreter in some of them. All three are here, beside one another. The agent and the
//! interpreter translate what is asked of them for the server of the sandbox, so nothing of E2B is in a sandbox.
//!
//! | module | idea |
//! |---|---|
//! | [`E2bFace`] | the whole |
//! | [`Host`] | what it needs of the gateway around it |
//! | [`FaceOptions`] | what can be set on it |
//! | `refusal` | why something is not done, and how the control plane says so |
//! | `mark` | what the labels of a sandbox say of it |
//! | `lives` | when sandboxes end, and what becomes of them then |
//! | `token` | the tokens of a sandbox |
//! | `control` | the control plane |
//! | `place` | a sandbox as requests reach it, remembered for a moment |
//! | `connect` | the Connect protocol: unary calls, streams, errors |
//! | `agent` | the agent: files, processes, terminals |
//! | `interpreter` | the code interpreter |
//! | `linger` | bodies that nobody reads to their end |
//! | `headers`, `shared`, `watchers`, `contexts` | what requests have, and what all of them share |
//! | `inside` | requests for sandboxes: whose, with which token, for which port |

mod agent;
mod connect;
mod contexts;
mod control;
mod face;
mod headers;
mod host;
mod inside;
mod interpreter;
mod linger;
mod lives;
mod mark;
mod options;
mod place;
mod refusal;
mod shared;
mod token;
mod watchers;

pub use face::E2bFace;
pub use headers::{ID_HEADER, PORT_HEADER};
pub use host::Host;
pub use options::{FaceOptions, Template};
pub use refusal::Refusal;
