//! From a manifest or a list of manifests to what is unpacked.

use std::future::Future;

use super::{Layer, Place, Resolved};
use crate::{
    config,
    digest::Digest,
    error::ImageError,
    limits::{DOCUMENT, Limits},
    manifest::{self, Descriptor, Document},
    platform::Platform,
};

/// Lists of lists of manifests that are followed.
const DEEPEST: usize = 3;

/// What has the documents and layers of images.
pub(crate) trait Blobs {
    /// A manifest or list by its digest.
    fn manifest(&self, descriptor: &Descriptor, digest: Digest) -> impl Future<Output = Result<Vec<u8>, ImageError>>;
    /// A configuration by its digest.
    fn document(&self, descriptor: &Descriptor, digest: Digest) -> impl Future<Output = Result<Vec<u8>, ImageError>>;
    /// Where a layer is.
    fn layer(&self, descriptor: Descriptor, digest: Digest) -> Result<Place, ImageError>;
}

/// Finds what is unpacked, from the manifest or list that `first` is. Every document is checked by its digest.
pub(crate) async fn resolve(
    blobs: &impl Blobs,
    first: Vec<u8>,
    image: &str,
    limits: &Limits,
) -> Result<Resolved, ImageError> {
    let own = Platform::own();
    let origin = Digest::of(&first);
    let mut bytes = first;
    let mut followed = 0;
    let manifest = loop {
        match manifest::parse(&bytes, limits.layers, image)? {
            Document::Manifest(manifest) => break manifest,
            Document::List(_) if followed == DEEPEST => {
                return Err(ImageError::invalid(image, "its list of manifests leads to further lists again and again"));
            }
            Document::List(list) => {
                followed += 1;
                let chosen = manifest::choose(&list, &own, image)?;
                let digest = bounded(chosen, "a manifest", image)?;
                let read = blobs.manifest(chosen, digest).await?;
                bytes = checked(read, digest, "the manifest", image)?;
            }
        }
    };
    let digest = bounded(&manifest.config, "the configuration", image)?;
    let read = blobs.document(&manifest.config, digest).await?;
    let (config, unpacked) = config::parse(&checked(read, digest, "the configuration", image)?, &own, image)?;
    if unpacked.len() != manifest.layers.len() {
        let (layers, named) = (manifest.layers.len(), unpacked.len());
        let reason = format!("its manifest has {layers} layers, and its configuration names {named}");
        return Err(ImageError::invalid(image, reason));
    }
    let mut layers = Vec::new();
    for (descriptor, unpacked) in manifest.layers.into_iter().zip(unpacked) {
        let digest = descriptor.digest(image)?;
        layers.push(Layer { place: blobs.layer(descriptor, digest)?, unpacked });
    }
    Ok(Resolved { digest, origin: Some(origin), config, layers })
}

/// The digest of a document that is small enough to be read.
fn bounded(descriptor: &Descriptor, what: &str, image: &str) -> Result<Digest, ImageError> {
    if descriptor.size > DOCUMENT {
        return Err(ImageError::Bound { what: format!("{what} of `{image}`"), limit: DOCUMENT, unit: "bytes" });
    }
    descriptor.digest(image)
}

/// Bytes that have the digest that they must have.
pub(crate) fn checked(bytes: Vec<u8>, expected: Digest, what: &str, image: &str) -> Result<Vec<u8>, ImageError> {
    let found = Digest::of(&bytes);
    if found == expected {
        return Ok(bytes);
    }
    let what = format!("{what} of `{image}`");
    Err(ImageError::Digest { what, expected: expected.to_string(), found: found.to_string() })
}
