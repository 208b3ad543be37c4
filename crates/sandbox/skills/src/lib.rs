//! AgentSkills: the Python package of the kernels, and the socket at which its editor answers.
//!
//! | module | idea |
//! |---|---|
//! | [`skills`](Skills) | the package and the socket from their start to their end |
//! | `package` | the files of the package, unpacked where nobody else can change them |
//! | `place` | the directories of a server, and those that a killed one left |
//! | `server` | who may connect, and how many |
//! | `connection` | one kernel, with an editor of its own that has the rights of the kernel's user |
//! | `message` | a request and its answer, one JSON object a line each |

mod connection;
mod message;
mod package;
mod place;
mod server;
mod skills;

pub use skills::Skills;
