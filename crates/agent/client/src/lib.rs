//! The action-execution client: a sandbox's server seen from the other side of HTTP (`action-execution-client`).
//!
//! [`ActionExecutionClient`] implements [`ActionExecutor`](gloveport_protocol::ActionExecutor), so what stands above
//! does not know whether the tools are in this process or behind a server. It also speaks the native interface of a
//! gloveport server: streamed commands and files.
//!
//! | module | idea |
//! |---|---|
//! | `client`, `execute`, `transfer` | the OpenHands 0.62 interface: endpoints, actions, copies |
//! | `exec`, `files`, `tree`, `terminals`, `kernels` | the native interface: commands, files, whole trees, terminals, cells |
//! | `processes` | the native interface: programs with pipes |
//! | `browser` | the native interface: the browser |
//! | `sandbox` | the native interface: the sandbox as a whole |
//! | `call`, `session`, `retry` | one request and the layers around it |
//! | `relay` | the OpenHands 0.62 interface in a sandbox whose server speaks that of OpenHands' SDK 1.x |
//! | `pool`, `options`, `error` | connections, what a client can be told, what can go wrong |

mod browser;
mod call;
mod client;
mod error;
mod exec;
mod execute;
mod files;
mod kernels;
mod options;
mod pipe;
mod pool;
mod processes;
mod relay;
mod retry;
mod sandbox;
mod session;
mod sse;
mod terminals;
mod transfer;
mod tree;

pub use browser::{Browser, BrowserLog};
pub use call::Carry;
pub use client::ActionExecutionClient;
pub use error::{ClientError, NativeError, StatusError, causes};
pub use exec::ExecStream;
pub use files::{
    ByteStream, Content, ContentInfo, Files, ListOptions, PutOptions, Range, RemotePath, Upload, Watch, WatchEvent,
};
pub use gloveport_protocol::exec::ExecEvent;
pub use kernels::{CellDetail, CellDetails, CellEvent, CellStream, Kernels};
pub use options::{ClientOptions, Clock, Pause, RequestLimits};
pub use pool::{Certificates, Pool};
pub use processes::{ProcessOutput, Processes};
pub use relay::{Relay, RelayOptions, WireOfServer, wire_of};
pub use retry::{Failure, Recovery, Verdict};
#[cfg(fuzzing)]
pub use sse::fuzz as fuzz_events;
pub use terminals::{AttachOptions, AttachedTerminal, TerminalEvent, TerminalInput, Terminals};
pub use tree::{TreeCopy, TreeForm};
