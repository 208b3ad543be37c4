//! What built images are called (`docker-runtime` §12).
//!
//! The rules are those of OpenHands 0.62, with its version in every tag. Two of its inputs do not exist here: in place of
//! its lock files the recipe counts, and in place of its source tree the files that are copied into the image. Its rules
//! have no answer for a registry with a port and for a digest; here these are names like others.

use crate::{base::ImageName, digest::Fingerprint, error::ImageError};

/// Variable with the repository of built images.
pub const REPOSITORY_VARIABLE: &str = "OH_RUNTIME_RUNTIME_IMAGE_REPO";
/// Repository of built images, if nothing else is said. Images of the reference are never mistaken for ours, and the
/// name belongs to nobody's registry.
pub const DEFAULT_REPOSITORY: &str = "localhost/gloveport/runtime";
/// The version of OpenHands whose rules these are.
pub const VERSION: &str = "0.62.0";

/// Longest tag.
const LONGEST_TAG: usize = 128;
/// From this length on the repository of the base is shortened.
const LONGEST_REPOSITORY: usize = 32;
/// What is kept of it.
const KEPT_REPOSITORY: usize = 24;
/// What is kept of a base in the versioned tag.
const KEPT_BASE: usize = 96;

/// Where built images go, and the version in their tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Repository, without a tag.
    repository: String,
    /// Version in the tags.
    version: String,
    /// The repository was chosen, so it can be one to pull from.
    is_chosen: bool,
}

/// A repository and a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// The repository.
    pub repository: String,
    /// The tag.
    pub tag: String,
}

impl Tagged {
    /// `repository:tag`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.repository, self.tag)
    }
}

/// The three names of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Of exactly this image.
    pub source: String,
    /// Of an image from the same recipe, maybe with another version of our program.
    pub lock: String,
    /// Of an image from the same base.
    pub versioned: String,
}

impl Naming {
    /// With the repository that was chosen, if one was. A slash at its end does not count.
    pub fn new(repository: Option<&str>) -> Result<Self, ImageError> {
        let chosen = repository.map(|text| text.trim_end_matches('/')).filter(|text| !text.is_empty());
        let repository = chosen.unwrap_or(DEFAULT_REPOSITORY).to_owned();
        let name: ImageName = repository.parse()?;
        if name.tag().is_some() || name.digest().is_some() {
            let reason = format!("a repository has no tag and no digest; correct {REPOSITORY_VARIABLE}");
            return Err(ImageError::Name { name: repository, reason });
        }
        Ok(Self { repository, version: VERSION.into(), is_chosen: chosen.is_some() })
    }

    /// The repository of built images.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Images of this repository may be pulled: somebody chose it.
    pub fn may_pull(&self) -> bool {
        self.is_chosen
    }

    /// The repository and the generic tag of what is made from a base (12.1). A base that is made already keeps its name.
    pub fn generic(&self, base: &ImageName) -> Tagged {
        let tag = match (base.tag(), base.digest()) {
            (Some(tag), None) => tag.to_owned(),
            (None, None) => "latest".to_owned(),
            (None, Some(digest)) => digest.replace([':', '+'], "-"),
            (Some(tag), Some(digest)) => format!("{tag}-{}", digest.replace([':', '+'], "-")),
        };
        if base.as_str().contains(&self.repository) {
            return Tagged { repository: base.repository().to_owned(), tag };
        }
        let mut repository = base.repository().to_owned();
        if repository.len() > LONGEST_REPOSITORY
            && let Some((head, tail)) = repository.split_at_checked(repository.len() - KEPT_REPOSITORY)
        {
            let hash = Fingerprint::of([head.as_bytes()]).hex();
            repository = format!("{}_{tail}", hash.get(..8).unwrap_or_default());
        }
        // Only a port brings a colon.
        let repository = repository.replace('/', "_s_").replace(':', "_p_");
        let mut tag = format!("oh_v{}_image_{repository}_tag_{tag}", self.version);
        if tag.len() > LONGEST_TAG {
            tag = format!("oh_v{}_image_{}", self.version, Fingerprint::of([tag.as_bytes()]).hex());
        }
        Tagged { repository: self.repository.clone(), tag }
    }

    /// The tag of images from the same base (12.2).
    pub fn versioned_tag(&self, base: &ImageName) -> String {
        let text = base.as_str().replace('/', "_s_").replace(':', "_t_").replace(['@', '+'], "_d_").to_lowercase();
        let kept = text.len().saturating_sub(KEPT_BASE);
        format!("oh_v{}_{}", self.version, text.get(kept..).unwrap_or(&text))
    }

    /// The tag of images from the same recipe: its base, whether it has a browser, and all that it is made with (12.2).
    pub fn lock_tag(&self, base: &ImageName, browser: bool, inputs: &[&[u8]]) -> String {
        let mark: &[u8] = if browser { b"" } else { b"False" };
        let parts = [base.as_str().as_bytes(), mark].into_iter().chain(inputs.iter().copied());
        format!("oh_v{}_{}", self.version, Fingerprint::of(parts).short())
    }

    /// The three names of an image.
    pub fn names(&self, base: &ImageName, browser: bool, inputs: &[&[u8]], source: Fingerprint) -> Names {
        let repository = self.generic(base).repository;
        let lock = self.lock_tag(base, browser, inputs);
        Names {
            source: format!("{repository}:{lock}_{}", source.short()),
            versioned: format!("{repository}:{}", self.versioned_tag(base)),
            lock: format!("{repository}:{lock}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(base: &str) -> Tagged {
        Naming::new(Some("r/x")).unwrap().generic(&base.parse().unwrap())
    }

    #[test]
    fn a_registry_with_a_port_and_a_digest_are_names_like_others() {
        let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for (base, tag) in [
            ("h.x:5000/a:1".to_owned(), "oh_v0.62.0_image_h.x_p_5000_s_a_tag_1".to_owned()),
            ("localhost:5000/a".into(), "oh_v0.62.0_image_localhost_p_5000_s_a_tag_latest".into()),
            (format!("a@{digest}"), format!("oh_v0.62.0_image_a_tag_{}", digest.replace(':', "-"))),
        ] {
            assert_eq!(generic(&base), Tagged { repository: "r/x".into(), tag });
        }
        let naming = Naming::new(None).unwrap();
        let name: ImageName = format!("h.x:5000/a:1@{digest}").parse().unwrap();
        assert!(naming.generic(&name).name().parse::<ImageName>().is_ok());
        assert!(format!("r:{}", naming.versioned_tag(&name)).parse::<ImageName>().is_ok());
    }

    #[test]
    fn an_image_of_the_repository_keeps_its_name() {
        assert_eq!(generic("r/x:tag"), Tagged { repository: "r/x".into(), tag: "tag".into() });
        assert_eq!(generic("h.x:5000/r/x"), Tagged { repository: "h.x:5000/r/x".into(), tag: "latest".into() });
    }

    #[test]
    fn every_name_can_be_given_to_an_engine() {
        let naming = Naming::new(None).unwrap();
        let long = format!("h.example:5000/{}", "abc/".repeat(40) + "x");
        for base in ["debian:11", "UPPER.example:80/a:Tag", &long] {
            let base: ImageName = base.parse().unwrap();
            let names = naming.names(&base, false, &[b"x"], Fingerprint::of([b"y".as_slice()]));
            for name in [&names.source, &names.lock, &names.versioned, &naming.generic(&base).name()] {
                assert!(name.parse::<ImageName>().is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn a_repository_has_no_tag() {
        assert!(Naming::new(Some("a/b:c")).is_err());
        assert_eq!(Naming::new(Some("a/b/")).unwrap().repository(), "a/b");
        assert!(!Naming::new(Some("")).unwrap().may_pull());
        assert!(Naming::new(Some("a/b")).unwrap().may_pull());
    }
}
