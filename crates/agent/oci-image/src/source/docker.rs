//! What `docker save` writes: `manifest.json`, which names a configuration and layers of the archive.

use serde::Deserialize;

use super::{Layer, Place, Resolved, files::Files};
use crate::{config, digest::Digest, error::ImageError, limits::Limits, platform::Platform, words::shown};

#[derive(Deserialize)]
struct Saved {
    #[serde(rename = "Config")]
    config: String,
    #[serde(default, rename = "RepoTags")]
    names: Option<Vec<String>>,
    #[serde(rename = "Layers")]
    layers: Vec<String>,
}

/// Finds the image with this name, or the only one.
pub(crate) fn find(files: &Files, name: Option<&str>, image: &str, limits: &Limits) -> Result<Resolved, ImageError> {
    let invalid = |reason: String| ImageError::invalid(image, reason);
    let text = files.read("manifest.json", image)?;
    let all: Vec<Saved> =
        serde_json::from_slice(&text).map_err(|error| invalid(format!("its `manifest.json` is none: {error}")))?;
    let is_meant = |saved: &&Saved| {
        let mut names = saved.names.iter().flatten();
        name.is_none_or(|name| names.any(|full| full == name || full.rsplit(':').next() == Some(name)))
    };
    let mut found = all.iter().filter(is_meant);
    let (Some(saved), None) = (found.next(), found.next()) else {
        let mut names: Vec<&str> =
            all.iter().flat_map(|saved| saved.names.iter().flatten()).map(String::as_str).collect();
        names.truncate(20);
        let names = shown(&names.join(", "), 1000);
        return Err(invalid(format!("write which image is meant behind a colon; the archive has: {names}")));
    };
    if saved.layers.len() > limits.layers {
        let what = format!("the image `{image}`");
        return Err(ImageError::Bound { what, limit: limits.layers as u64, unit: "layers" });
    }
    let bytes = files.read(&saved.config, image)?;
    let digest = Digest::of(&bytes);
    let (config, unpacked) = config::parse(&bytes, &Platform::own(), image)?;
    if unpacked.len() != saved.layers.len() {
        let (layers, named) = (saved.layers.len(), unpacked.len());
        return Err(invalid(format!("its manifest has {layers} layers, and its configuration names {named}")));
    }
    let mut layers = Vec::new();
    for (name, unpacked) in saved.layers.iter().zip(unpacked) {
        let part = files.open(name)?.ok_or_else(|| files.missing(name, image))?;
        layers.push(Layer { place: Place::Here(part, None), unpacked });
    }
    Ok(Resolved { digest, origin: None, config, layers })
}
