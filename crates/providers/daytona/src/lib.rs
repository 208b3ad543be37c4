//! Sandboxes of Daytona (`spec/hosted-apis.md` 3, platform v0): containers, or virtual machines, of a hosted service.
//!
//! A sandbox is made from a snapshot or an image by the *API*, with the session as its name. Our program is then uploaded and
//! started through the *toolbox*, the daemon in every sandbox, and its port is reached by a *preview* URL with a token that is
//! another one after each start. The processes of a container end when it is stopped; whoever resumes it starts our server again.
//!
//! | module | idea |
//! |---|---|
//! | [`Daytona`] | the provider |
//! | [`DaytonaOptions`] | which service, with which key, and how sandboxes are made |
//! | `names` | labels, ports, words |
//! | `wire`, `control` | the API: its JSON, its calls |
//! | `toolbox` | the daemon of a sandbox: its calls |
//! | `inner` | what a backend has of the service and of its sandboxes |
//! | `source` | what a sandbox is made from, and what it may use up and reach |
//! | `view` | a sandbox as it is told, and whether its server lives |
//! | `launch` | our program in a sandbox |
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
mod source;
mod toolbox;
mod view;
mod wire;

pub use options::{DaytonaOptions, Traffic};
pub use provider::Daytona;
