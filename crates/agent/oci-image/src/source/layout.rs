//! Images in OCI's layout: `index.json`, and blobs by their digests.

use super::{
    Place, Resolved,
    files::Files,
    resolve::{Blobs, checked, resolve},
};
use crate::{
    digest::Digest,
    error::ImageError,
    limits::Limits,
    manifest::{self, Descriptor, Document, REFERENCE_NAME},
    words::shown,
};

struct Layout<'a> {
    files: &'a Files,
    image: &'a str,
}

impl Layout<'_> {
    fn read(&self, digest: Digest) -> Result<Vec<u8>, ImageError> {
        self.files.read(&name(digest), self.image)
    }
}

fn name(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

impl Blobs for Layout<'_> {
    async fn manifest(&self, _descriptor: &Descriptor, digest: Digest) -> Result<Vec<u8>, ImageError> {
        self.read(digest)
    }

    async fn document(&self, _descriptor: &Descriptor, digest: Digest) -> Result<Vec<u8>, ImageError> {
        self.read(digest)
    }

    fn layer(&self, descriptor: Descriptor, digest: Digest) -> Result<Place, ImageError> {
        let name = name(digest);
        let part = self.files.open(&name)?.ok_or_else(|| self.files.missing(&name, self.image))?;
        if part.length() != descriptor.size {
            let reason = format!("`{name}` has {} bytes, and its manifest says {}", part.length(), descriptor.size);
            return Err(ImageError::invalid(self.image, reason));
        }
        Ok(Place::Here(part, Some(digest)))
    }
}

/// Finds the image with this tag, or the only one.
pub(crate) async fn find(
    files: &Files,
    tag: Option<&str>,
    image: &str,
    limits: &Limits,
) -> Result<Resolved, ImageError> {
    let index = files.read("index.json", image)?;
    let layout = Layout { files, image };
    let Document::List(list) = manifest::parse(&index, limits.layers, image)? else {
        return Err(ImageError::invalid(image, "its `index.json` is no list of manifests"));
    };
    let tag_of = |entry: &Descriptor| entry.annotations.as_ref().and_then(|all| all.get(REFERENCE_NAME).cloned());
    let tagged = |wanted: &str| -> Vec<&Descriptor> {
        // Some programs write the whole name there, with the tag at its end.
        let is_meant =
            |found: &str| found == wanted || found.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(':'));
        list.iter().filter(|entry| tag_of(entry).is_some_and(|found| is_meant(&found))).collect()
    };
    let found = match (tag, list.as_slice()) {
        (Some(tag), _) => tagged(tag),
        (None, [only]) => vec![only],
        // One image for several platforms, without a tag.
        (None, all) if all.iter().all(|entry| tag_of(entry).is_none()) => {
            return resolve(&layout, index, image, limits).await;
        }
        (None, _) => tagged("latest"),
    };
    let [entry] = found.as_slice() else {
        let mut tags: Vec<String> = list.iter().filter_map(tag_of).take(20).collect();
        tags.sort();
        let known = if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
        let count = if found.is_empty() { "no image" } else { "more than one image" };
        let tag = shown(tag.unwrap_or("latest"), 300);
        let reason = format!("there is {count} with the tag `{tag}`; tags: {}", shown(&known, 1000));
        return Err(ImageError::invalid(image, reason));
    };
    let digest = entry.digest(image)?;
    let manifest = checked(layout.read(digest)?, digest, "the manifest", image)?;
    resolve(&layout, manifest, image, limits).await
}
