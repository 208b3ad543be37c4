//! What a workspace can begin with, as a claim for a volume names it.

use k8s_openapi::{api::core::v1::TypedLocalObjectReference, apimachinery::pkg::api::resource::Quantity};

/// The group of the API of volume snapshots.
pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";

/// What a workspace begins with.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) snapshot: String,
    /// The image of the sandbox that it is of, if that is known.
    pub(crate) image: Option<String>,
    /// The least size of a volume with it.
    pub(crate) size: Option<Quantity>,
}

impl Source {
    /// How a claim names it.
    pub(crate) fn reference(&self) -> TypedLocalObjectReference {
        TypedLocalObjectReference {
            api_group: Some(GROUP.to_owned()),
            kind: "VolumeSnapshot".to_owned(),
            name: self.snapshot.clone(),
        }
    }
}
