//! Names, contents and builds of container images for sandboxes.
//!
//! Nobody needs a built image: a provider puts our program into any image when it starts a sandbox. Built ones are for
//! what takes long to install (Jupyter, Chromium, VS Code), and for backends that bring nothing along, such as an
//! unmodified OpenHands 0.62.
//!
//! | module | idea |
//! |---|---|
//! | `naming` | what built images are called |
//! | `base` | names of images, parsed once |
//! | `digest` | hashes in names |
//! | `recipe` | what an image is made of, and the Dockerfile for it |
//! | `platform` | what it is built for |
//! | `folder` | the folder that it is built from |
//! | `plan` | what is built, and from what |
//! | `builder` | whoever builds, and how far a build is |
//! | `docker` | builds by a Docker engine |
//! | `remote` | builds by a build service |
//! | `context` | a build folder as an archive |
//! | `lines` | the lines that a build says |
//! | `blocking` | work with files, on a thread for such work |
//! | `arguments` | extra arguments for an engine without BuildKit |

mod arguments;
mod base;
mod blocking;
mod builder;
mod context;
mod digest;
mod docker;
mod error;
mod folder;
mod lines;
mod naming;
mod plan;
mod platform;
mod recipe;
mod remote;

pub use base::ImageName;
pub use builder::{BuildLimits, BuildRequest, ImageBuilder, Lookup, Progress};
pub use digest::Fingerprint;
pub use docker::{DockerBuilder, DockerOptions, Method};
pub use error::ImageError;
pub use folder::{Contents, Programs, names, prepare as prepare_folder, user_id};
pub use naming::{DEFAULT_REPOSITORY, Names, Naming, REPOSITORY_VARIABLE, Tagged, VERSION};
pub use plan::{Built, Decision, Job, Reuse, build, build_program, decide, prepare};
pub use platform::Platform;
pub use recipe::{BuildFrom, DEFAULT_USER, ExtraCommands, Recipe, UserName, VsCode};
pub use remote::{RemoteBuilder, RemoteTimes};
