//! Images of registries, by the API of OCI's distribution specification.
//!
//! | file | idea |
//! |---|---|
//! | `http` | requests: where they may lead, how long they may take, when they are sent again |
//! | `admission` | tokens, and what registries ask for before they give something |
//! | `credentials` | the file that `docker login` writes |
//! | `download` | layers, downloaded to files |

mod admission;
mod credentials;
mod download;
mod http;

use std::path::Path;

use crate::{
    digest::Digest,
    error::ImageError,
    limits::{DOCUMENT, Options},
    manifest::{ACCEPTED, Descriptor},
    reference::{Name, Version},
    source::{
        Place,
        resolve::{Blobs, checked},
    },
};
use http::Http;

/// The repository of a registry.
#[derive(Debug)]
pub(crate) struct Registry {
    http: Http,
    repository: String,
}

impl Registry {
    /// That of an image.
    ///
    /// # Errors
    ///
    /// There can be no HTTP client.
    pub(crate) fn new(name: &Name, options: &Options) -> Result<Self, ImageError> {
        let http = Http::new(&name.host, &name.repository, options)?;
        Ok(Self { http, repository: name.repository.clone() })
    }

    /// The manifest, or the list of manifests, that a tag or digest stands for.
    pub(crate) async fn first(&self, version: &Version) -> Result<Vec<u8>, ImageError> {
        match version {
            Version::Tag(tag) => self.document("manifests", tag, Some(ACCEPTED)).await,
            Version::Digest(digest) => {
                let bytes = self.document("manifests", &digest.to_string(), Some(ACCEPTED)).await?;
                checked(bytes, *digest, "the manifest", &self.repository)
            }
        }
    }

    /// Downloads a blob to a new file, and checks it meanwhile; `passed` is told of bytes.
    pub(crate) async fn download(
        &self,
        size: u64,
        digest: Digest,
        to: &Path,
        passed: &(impl Fn(u64) + Sync),
    ) -> Result<(), ImageError> {
        let path = format!("/v2/{}/blobs/{digest}", self.repository);
        download::download(&self.http, &path, size, digest, to, passed).await
    }

    async fn document(&self, kind: &str, version: &str, accept: Option<&str>) -> Result<Vec<u8>, ImageError> {
        let what = match kind {
            "manifests" => format!("get the manifest of {}, `{version}`,", self.repository),
            _ => format!("get the configuration of {}", self.repository),
        };
        self.http.small(&what, &format!("/v2/{}/{kind}/{version}", self.repository), accept, DOCUMENT).await
    }
}

impl Blobs for Registry {
    async fn manifest(&self, _descriptor: &Descriptor, digest: Digest) -> Result<Vec<u8>, ImageError> {
        self.document("manifests", &digest.to_string(), Some(ACCEPTED)).await
    }

    async fn document(&self, _descriptor: &Descriptor, digest: Digest) -> Result<Vec<u8>, ImageError> {
        self.document("blobs", &digest.to_string(), None).await
    }

    fn layer(&self, descriptor: Descriptor, digest: Digest) -> Result<Place, ImageError> {
        Ok(Place::There(descriptor, digest))
    }
}
