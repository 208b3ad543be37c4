//! Sandboxes as containers of a Docker engine, or of Podman through the same interface (`spec/docker-runtime.md`).
//!
//! Nothing is built: our binary is put into any image when the container is made, by a read-only mount of the file itself
//! where the engine shares our file system, and in a volume that is filled through the engine where it does not. The engine
//! is the only database: names, labels and the environment of containers say all that another backend must know.
//!
//! | module | idea |
//! |---|---|
//! | [`Docker`] | the provider |
//! | `inner` | what a backend has of the engine and of its sandboxes |
//! | [`DockerOptions`] | what can be set on it |
//! | `names` | names, labels, ports |
//! | `body` | from a spec to what the engine is asked to make |
//! | `closing` | what would open a closed network |
//! | `kwargs` | `sandbox.docker_runtime_kwargs`, by the names of the Docker SDK for Python |
//! | `binary` | how our binary gets into a container |
//! | `create` | pull, create, attach, start, each a phase; what is given up is taken back |
//! | `waiting` | the containers of a backend that wait |
//! | `warm` | how they are started, looked at and ended |
//! | `claim` | one of them becomes a session's |
//! | `claimed` | what is known of such a sandbox |
//! | `view` | a container as a sandbox |
//! | `network` | sandboxes whose network is closed, and the gates beside them |
//! | `edge` | secrets that the gate of a sandbox puts into requests |
//! | `audit` | what is recorded of a sandbox by its gate, and what becomes of the log |
//! | `log_copy` | a file of a container, however long |
//! | `hardening` | what containers may not do |
//! | `snapshot` | the files of a sandbox as an image, and sandboxes made from it |
//! | `life` | pause, resume, delete, logs |
//! | `held` | which backends use a kept sandbox |
//! | `garbage` | what nobody wants any more |
//! | `ports` | ports out of configured ranges, with locks |
//! | `checks` | why Docker cannot be used, for `doctor` |

mod audit;
mod binary;
mod body;
mod checks;
mod claim;
mod claimed;
mod closing;
mod create;
mod edge;
mod fault;
mod garbage;
mod gate_changes;
mod hardening;
mod held;
mod inner;
mod kwargs;
mod life;
mod log_copy;
mod names;
mod network;
mod options;
mod ports;
mod provider;
mod snapshot;
mod view;
mod waiting;
mod warm;

pub use hardening::{Hardening, Seccomp};
pub use options::{BinaryMode, DockerOptions, PullPolicy};
pub use provider::Docker;
