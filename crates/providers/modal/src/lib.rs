//! Sandboxes of Modal (`spec/hosted-apis.md` 5), containers or virtual machines of a hosted service.
//!
//! Our program is stored there once, by its content, and mounted into each sandbox, whose entry point it is: the sandbox ends with
//! our server, and what that writes is the sandbox's output. The name of a sandbox is its session, and the service has each name
//! once, so that one wish makes one sandbox however often an answer is lost.
//!
//! The service speaks gRPC. Its messages are a few dozen, written here with the fields that are used; frames and calls are a few
//! hundred lines over the HTTP/2 that the program has anyway.
//!
//! | module | idea |
//! |---|---|
//! | [`Modal`] | the provider |
//! | [`ModalOptions`] | which service, with which token, and how sandboxes are made |
//! | `names` | tags, names, and the words of messages |
//! | `wire`, `grpc`, `channel` | messages, frames, a connection |
//! | `control`, `router` | calls of the service, and of a sandbox |
//! | `stored` | what is made once for many sandboxes: the app, our program, images |
//! | `definition`, `launch` | what a sandbox is made from, and the command that starts our server |
//! | `inner` | what a backend has of the service |
//! | `view` | a sandbox as it is told |
//! | `create`, `life`, `logs`, `garbage` | what is done with sandboxes |

mod capabilities;
mod channel;
mod control;
mod create;
mod definition;
mod garbage;
mod grpc;
mod inner;
mod launch;
mod life;
mod logs;
mod names;
mod options;
mod provider;
mod router;
mod stored;
mod view;
mod wire;

pub use options::ModalOptions;
pub use provider::Modal;
