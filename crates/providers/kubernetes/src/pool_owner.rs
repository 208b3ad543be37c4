//! The pool of a backend in the cluster: an object that owns what the backend has started ahead.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

#[derive(Debug)]
pub(crate) struct Owner {
    /// The id of the backend.
    pub(crate) own: String,
    /// What objects have that end with the pool.
    pub(crate) reference: OwnerReference,
    /// What its pods have in common.
    pub(crate) alike: String,
}
