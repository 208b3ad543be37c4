//! Sandboxes of Runloop (`spec/hosted-apis.md` 4): *devboxes*, virtual machines of a hosted service.
//!
//! Our program is stored there once, as an object that is named after its content, and is mounted into each sandbox. A launch
//! command starts it, at the first start as after each rest. Its port is reached through the tunnel of the sandbox.
//!
//! | module | idea |
//! |---|---|
//! | [`Runloop`] | the provider |
//! | [`RunloopOptions`] | which service, with which key, and how sandboxes are made |
//! | `names` | labels, and the words of messages |
//! | `sizes` | limits as sizes of the service |
//! | `wire`, `control` | the service: its JSON, its calls |
//! | `stored` | what is made once and found by its name: our program, images, network policies |
//! | `launch` | the command that starts our server |
//! | `inner` | what a backend has of the service |
//! | `view` | a sandbox as it is told, and whether its server lives |
//! | `create`, `life`, `logs`, `garbage`, `keeper` | what is done with sandboxes |

mod capabilities;
mod control;
mod create;
mod garbage;
mod inner;
mod keeper;
mod launch;
mod life;
mod logs;
mod names;
mod options;
mod provider;
mod sizes;
mod stored;
mod view;
mod wire;

pub use options::{RunloopOptions, Tunnel};
pub use provider::Runloop;
