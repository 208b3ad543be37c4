//! Sandboxes as pods of a Kubernetes cluster (`spec/kubernetes-runtime.md`).
//!
//! Nothing is built: an init container brings our binary into a pod of any image, from an image of ours or through the API
//! server. The cluster is the only database: a config map for each sandbox, its record, owns all other objects, so that its
//! end is theirs, and says what another backend must know.
//!
//! | module | idea |
//! |---|---|
//! | [`Kubernetes`] | the provider |
//! | [`KubernetesOptions`] | what can be set on it |
//! | `capabilities` | what it can do |
//! | `inner` | what a backend has of the cluster and of its sandboxes |
//! | `place` | where it is written which cluster is meant |
//! | `cluster` | who is asked, how often, and what its clock says |
//! | `agent_sandbox`, `sandbox_object` | pods that the controller of agent-sandbox makes; its kind `Sandbox` |
//! | `names`, `quantity` | names, labels, ports; amounts |
//! | `body`, `network` | from a spec to the objects that the cluster is asked to make |
//! | `record` | what is known of a sandbox apart from its pod |
//! | `gate` | the way of a sandbox to hosts by their names |
//! | `create`, `start` | record, objects, pod; the way of our program into it; what is given up is taken back |
//! | `pool`, `claim` | pods that wait for a session; how one becomes a session's |
//! | `watch` | one watch over all pods that anybody waits for |
//! | `view` | a record and its pod as a sandbox |
//! | `access` | how servers in pods are reached |
//! | `life` | pause, resume, delete, logs |
//! | `snapshot`, `source` | the workspace of a sandbox as a volume snapshot, and what a workspace begins with |
//! | `backends` | who uses sandboxes, and whether it lives |
//! | `garbage` | what nobody wants any more |
//! | `checks` | why a cluster cannot be used, for `doctor` |

mod access;
mod agent_sandbox;
mod backends;
mod body;
mod capabilities;
mod checks;
mod claim;
mod claim_object;
mod claims;
mod cluster;
mod create;
mod fault;
mod garbage;
mod gate;
mod inner;
mod life;
mod names;
mod network;
mod options;
mod place;
mod pool;
mod pool_owner;
mod provider;
mod quantity;
mod record;
mod sandbox_object;
mod snapshot;
mod source;
mod start;
mod view;
mod watch;

pub use options::{AccessMode, KubernetesOptions, PodSecurity, ProgramFrom, SandboxApi, Storage};
pub use provider::Kubernetes;
