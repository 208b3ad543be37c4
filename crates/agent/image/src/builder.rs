//! Whoever builds images, and how far a build is.

use std::{fmt, future::Future, path::Path, sync::Arc, time::Duration};

use crate::{error::ImageError, platform::Platform};

/// Whether an image is looked for in a registry, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Only where the builder keeps images.
    Here,
    /// And in the registry; what is found there is fetched.
    Registry,
}

/// What is to be built.
#[derive(Debug, Clone)]
pub struct BuildRequest<'a> {
    /// The folder with the Dockerfile.
    pub folder: &'a Path,
    /// Names for the image; the first one is its main one.
    pub names: &'a [String],
    /// What it is built for; that of the engine if there are none.
    pub platforms: &'a [Platform],
    /// More arguments, as `docker buildx build` takes them.
    pub extra_arguments: &'a [String],
}

impl BuildRequest<'_> {
    /// The main name.
    pub(crate) fn image(&self) -> Result<&str, ImageError> {
        self.names.first().map(String::as_str).ok_or_else(|| ImageError::Value {
            what: "the list of names",
            value: String::new(),
            reason: "it is empty; an image needs one".into(),
        })
    }
}

/// Whoever builds images. A build that is dropped is given up, and leaves nothing of ours.
pub trait ImageBuilder: Send + Sync {
    /// Builds, and gives the image all the names. Answers the name to run it by.
    fn build(
        &self,
        request: &BuildRequest<'_>,
        progress: &Progress,
    ) -> impl Future<Output = Result<String, ImageError>> + Send;

    /// Gives an image one more name.
    fn tag(&self, image: &str, name: &str) -> impl Future<Output = Result<(), ImageError>> + Send;

    /// Whether there is an image of this name.
    fn image_exists(
        &self,
        name: &str,
        lookup: Lookup,
        progress: &Progress,
    ) -> impl Future<Output = Result<bool, ImageError>> + Send;
}

/// BuildLimits of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildLimits {
    /// For a build.
    pub build: Duration,
    /// For fetching an image.
    pub pull: Duration,
    /// For a question.
    pub request: Duration,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self { build: Duration::from_hours(1), pull: Duration::from_mins(30), request: Duration::from_secs(30) }
    }
}

type Tell = dyn Fn(&str) + Send + Sync;

/// Who is told what a build says, line by line.
#[derive(Clone)]
pub struct Progress(pub(crate) Option<Arc<Tell>>);

impl Progress {
    /// Tells nobody.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Tells each line to the function.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, line: &str) {
        if let Some(tell) = &self.0 {
            tell(line);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Progress")
    }
}
