//! An IPython kernel over the Jupyter messaging protocol.
//!
//! A [`Kernel`] is found or installed, started, driven and replaced by one task of its own. Nothing waits for its start:
//! cells queue, and each says how long it may take.
//!
//! | module | idea |
//! |---|---|
//! | [`options`] | how a kernel is started |
//! | [`cell`] | what runs, and what becomes of it |
//! | [`state`] | how a kernel stands |
//! | `kernel` | the handle |
//! | `keeper` | the task that owns a kernel |
//! | `live` | a kernel that is up, and what it does |
//! | `running` | the cell that runs |
//! | `launch` | one start: directory, program, connections |
//! | `channels` | the sockets of a started kernel |
//! | `wire` | the messaging protocol: where sockets are, frames, signatures |
//! | `message` | messages of a kernel, whatever is in them |
//! | `collect` | output of a cell, within its bounds |
//! | `journal` | text that a kernel had written and not sent when it died |
//! | `find` | the interpreter that runs a kernel |
//! | `environment` | an environment of our own for interpreters without `ipykernel` |

pub mod cell;
mod channels;
mod environment;
mod find;
mod journal;
mod keeper;
mod kernel;
mod launch;
mod live;
mod message;
pub mod options;
mod running;
pub mod state;
mod wire;

pub use cell::{Cell, CellEnd, CellReport, Output};
pub use find::Python;
pub use kernel::Kernel;
pub use options::KernelOptions;
pub use state::{Facts, KernelError, KernelState, Step};
