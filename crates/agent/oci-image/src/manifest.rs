//! Manifests and lists of manifests, of OCI and of Docker.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{digest::Digest, error::ImageError, platform::Platform, words::shown};

/// What clients say that they understand.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
/// The annotation with the tag of an image of a layout.
pub(crate) const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";

/// What stands for some bytes elsewhere.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Descriptor {
    #[serde(default, rename = "mediaType")]
    pub(crate) media_type: String,
    digest: String,
    /// Bytes.
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) platform: Option<Platform>,
    #[serde(default)]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    pub(crate) fn digest(&self, image: &str) -> Result<Digest, ImageError> {
        self.digest.parse().map_err(|reason: String| ImageError::invalid(image, reason))
    }
}

/// An image for one platform.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// What a reference of a registry or layout stands for.
#[derive(Debug, Clone)]
pub(crate) enum Document {
    Manifest(Manifest),
    List(Vec<Descriptor>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: u64,
    #[serde(default)]
    media_type: String,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// Reads a manifest or a list.
///
/// # Errors
///
/// It is neither, or both, or of the first version, or stands for something else than files of programs.
pub(crate) fn parse(bytes: &[u8], most_layers: usize, image: &str) -> Result<Document, ImageError> {
    let invalid = |reason: String| ImageError::invalid(image, reason);
    let raw: Raw = serde_json::from_slice(bytes).map_err(|error| invalid(format!("its manifest is none: {error}")))?;
    if raw.schema_version == 1 || raw.fs_layers.is_some() {
        return Err(invalid(
            "its manifest is of schema version 1, which is not supported; push the image again with a current program"
                .into(),
        ));
    }
    if raw.schema_version != 2 {
        return Err(invalid(format!("its manifest is of schema version {}, which is not known", raw.schema_version)));
    }
    let claims_list = raw.media_type.contains("index") || raw.media_type.contains("manifest.list");
    match (raw.config, raw.layers, raw.manifests) {
        (None, None, Some(manifests)) if raw.media_type.is_empty() || claims_list => Ok(Document::List(manifests)),
        (Some(config), Some(layers), None) if !claims_list => {
            if layers.len() > most_layers {
                let what = format!("the image `{image}`");
                return Err(ImageError::Bound { what, limit: most_layers as u64, unit: "layers" });
            }
            for layer in &layers {
                check_layer(&layer.media_type).map_err(invalid)?;
            }
            Ok(Document::Manifest(Manifest { config, layers }))
        }
        _ => Err(invalid("its manifest is neither that of one image nor a list of manifests".into())),
    }
}

fn check_layer(media_type: &str) -> Result<(), String> {
    let named = shown(media_type, 100);
    if media_type.contains("encrypted") {
        return Err(format!("a layer is encrypted (`{named}`), which is not supported"));
    }
    // What it is compressed with is told by its first bytes, whatever stands here.
    if media_type.is_empty() || media_type.contains(".tar") {
        return Ok(());
    }
    Err(format!("a layer is no archive of files but `{named}`; this is not an image of a container"))
}

/// The manifest of a list that fits this machine best.
///
/// # Errors
///
/// None fits.
pub(crate) fn choose<'a>(list: &'a [Descriptor], own: &Platform, image: &str) -> Result<&'a Descriptor, ImageError> {
    let fits = list.iter().filter_map(|entry| Some((own.fit(entry.platform.as_ref()?)?, entry)));
    if let Some((_, entry)) = fits.min_by_key(|(fit, _)| *fit) {
        return Ok(entry);
    }
    // A list of one that says nothing is what some programs write for their own machine; its configuration tells.
    if let [only] = list
        && only.platform.is_none()
    {
        return Ok(only);
    }
    let mut offered: Vec<String> = list
        .iter()
        .filter_map(|entry| entry.platform.as_ref())
        .filter(|platform| platform.os != "unknown")
        .map(Platform::to_string)
        .collect();
    offered.sort();
    offered.dedup();
    let more = offered.len().saturating_sub(20);
    offered.truncate(20);
    let mut offered =
        if offered.is_empty() { "platforms that it does not name".to_owned() } else { offered.join(", ") };
    if more > 0 {
        offered = format!("{offered} and {more} more");
    }
    Err(ImageError::Platform { image: image.to_owned(), wanted: own.to_string(), offered })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(media_type: &str) -> String {
        format!(r#"{{"mediaType": "{media_type}", "digest": "{}", "size": 1}}"#, Digest::of(b""))
    }

    #[test]
    fn what_is_no_manifest_of_an_image_is_refused_with_words() {
        let layer = descriptor("application/vnd.oci.image.layer.v1.tar+gzip");
        let config = descriptor("application/vnd.oci.image.config.v1+json");
        for (text, part) in [
            ("garbage".to_owned(), "its manifest is none"),
            (r#"{"schemaVersion": 1, "fsLayers": []}"#.into(), "schema version 1, which is not supported"),
            (r#"{"schemaVersion": 3}"#.into(), "schema version 3"),
            (r#"{"schemaVersion": 2}"#.into(), "neither"),
            (format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [], "manifests": []}}"#), "neither"),
            (
                format!(r#"{{"schemaVersion": 2, "mediaType": "x.index.y", "config": {config}, "layers": []}}"#),
                "neither",
            ),
            (
                format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [{layer}, {layer}, {layer}]}}"#),
                "more than 2 layers",
            ),
            (
                format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [{}]}}"#, descriptor("chart")),
                "not an image of a container",
            ),
            (
                format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [{}]}}"#, descriptor("tar+encrypted")),
                "is encrypted",
            ),
            (
                format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [{}]}}"#, layer.replace(": 1", ": -1")),
                "its manifest is none",
            ),
        ] {
            let error = parse(text.as_bytes(), 2, "x").unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_manifest_for_this_machine_is_chosen_or_the_others_are_named() {
        let entry = |platform: &str| {
            let text = format!(r#"{{"digest": "{platform}", "size": 1, "platform": {platform}}}"#);
            let text = text.replacen(&format!("\"{platform}\""), "\"d\"", 1);
            serde_json::from_str::<Descriptor>(&text).unwrap()
        };
        let arm = entry(r#"{"os": "linux", "architecture": "arm64", "variant": "v8"}"#);
        let intel = entry(r#"{"os": "linux", "architecture": "amd64"}"#);
        let proof = entry(r#"{"os": "unknown", "architecture": "unknown"}"#);
        let own = Platform { os: "linux".into(), architecture: "amd64".into(), variant: None };
        let list = [arm.clone(), proof.clone(), intel];
        let chosen = choose(&list, &own, "x").unwrap();
        assert_eq!(chosen.platform.as_ref().unwrap().architecture, "amd64");
        let error = choose(&[arm, proof], &own, "x").unwrap_err().to_string();
        assert!(error.contains("nothing for linux/amd64, but only for linux/arm64/v8;"), "{error}");
    }
}
