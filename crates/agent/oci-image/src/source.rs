//! Where images come from.
//!
//! | file | idea |
//! |---|---|
//! | `files` | files of a layout: in a directory, or in a tar archive |
//! | `layout` | OCI's layout |
//! | `docker` | what `docker save` writes |
//! | `resolve` | from a manifest or a list of manifests to what is unpacked |

pub(crate) mod docker;
pub(crate) mod files;
pub(crate) mod layout;
pub(crate) mod resolve;

use crate::{config::Config, digest::Digest, manifest::Descriptor};
use files::Part;

/// What is unpacked.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The digest of its configuration.
    pub(crate) digest: Digest,
    /// The digest of what the reference stands for at the moment: a manifest, or a list of these.
    pub(crate) origin: Option<Digest>,
    pub(crate) config: Config,
    pub(crate) layers: Vec<Layer>,
}

/// A layer, before it is read.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) place: Place,
    /// The digest of its unpacked bytes.
    pub(crate) unpacked: Digest,
}

/// Where the bytes of a layer are.
#[derive(Debug)]
pub(crate) enum Place {
    /// In a file, and what digest they have there, if something says that.
    Here(Part, Option<Digest>),
    /// In the registry.
    There(Descriptor, Digest),
}

impl Place {
    /// Bytes as they are stored.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Here(part, _) => part.length(),
            Self::There(descriptor, _) => descriptor.size,
        }
    }
}
