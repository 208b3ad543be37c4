//! Builds by a Docker engine (`docker-runtime` 15.1): through BuildKit where its command line and the plugin `buildx` are
//! there, through the engine itself where they are not. Podman's engine is always asked itself.

mod buildx;
mod classic;

use std::{path::PathBuf, sync::Arc};

use bollard::query_parameters::TagImageOptionsBuilder;
use gloveport_docker_engine::{About, Engine, EngineError, images};

use crate::{
    arguments,
    base::ImageName,
    builder::{BuildLimits, BuildRequest, ImageBuilder, Lookup, Progress},
    error::ImageError,
};

/// Oldest engine with BuildKit.
const OLDEST: (u32, u32) = (18, 9);

/// How images are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By BuildKit where it is there, else by the engine itself.
    #[default]
    Best,
    /// By BuildKit, or not at all.
    BuildKit,
    /// By the engine itself.
    Engine,
}

/// What a [`DockerBuilder`] does.
#[derive(Debug, Clone, Default)]
pub struct DockerOptions {
    /// How it builds.
    pub method: Method,
    /// A directory that BuildKit keeps its cache in.
    pub cache: Option<PathBuf>,
    /// BuildLimits of time.
    pub limits: BuildLimits,
    /// The program `docker`, if it is not the one in `PATH`.
    pub program: Option<PathBuf>,
}

/// Builds with an engine.
#[derive(Debug)]
pub struct DockerBuilder {
    engine: Arc<Engine>,
    options: DockerOptions,
}

impl DockerBuilder {
    /// With an engine, which is asked when it is needed first.
    pub fn new(engine: Arc<Engine>, options: DockerOptions) -> Self {
        Self { engine, options }
    }

    /// Whether BuildKit is used; an error if it must be and cannot.
    async fn uses_buildkit(&self, request: &BuildRequest<'_>) -> Result<bool, ImageError> {
        let must = match self.options.method {
            Method::Engine => return Ok(false),
            Method::BuildKit => Some("BuildKit was asked for"),
            Method::Best if self.options.cache.is_some() => Some("a directory for the cache needs BuildKit"),
            Method::Best if request.platforms.len() > 1 => Some("an image for several platforms needs BuildKit"),
            Method::Best if arguments::goes_elsewhere(request.extra_arguments) => {
                Some("an image that goes elsewhere than into the engine needs BuildKit")
            }
            Method::Best => None,
        };
        let about = self.engine.about().await?;
        let reason = match too_old(about) {
            Some(reason) => Some(reason),
            None => buildx::missing(&self.options).await,
        };
        match (reason, must) {
            (None, _) => Ok(true),
            (Some(_), None) => Ok(false),
            (Some(reason), Some(must)) => Err(ImageError::Unsupported {
                reason: format!("{must}, and {reason}"),
                remedy: "install Docker's command line with the plugin buildx (docker-buildx-plugin)".into(),
            }),
        }
    }
}

impl ImageBuilder for DockerBuilder {
    async fn build(&self, request: &BuildRequest<'_>, progress: &Progress) -> Result<String, ImageError> {
        let image = request.image()?;
        let buildkit = self.uses_buildkit(request).await?;
        tracing::debug!(image, buildkit, "an image is built");
        if buildkit {
            buildx::build(&self.engine, &self.options, request, progress).await?;
            if arguments::goes_elsewhere(request.extra_arguments) {
                return Ok(image.to_owned());
            }
        } else {
            classic::build(&self.engine, &self.options, request, progress).await?;
            for name in request.names.iter().skip(1) {
                self.tag(image, name).await?;
            }
        }
        for name in request.names {
            if !self.image_exists(name, Lookup::Here, progress).await? {
                let reason = format!("the engine has no image {name} afterwards");
                return Err(ImageError::Build { image: image.into(), reason, log: Vec::new() });
            }
        }
        Ok(image.to_owned())
    }

    async fn tag(&self, image: &str, name: &str) -> Result<(), ImageError> {
        let parsed: ImageName = name.parse()?;
        let options = TagImageOptionsBuilder::default().repo(parsed.repository()).tag(parsed.tag().unwrap_or("latest"));
        let docker = self.engine.docker().await?;
        let asked = docker.tag_image(image, Some(options.build()));
        let action = format!("give the image `{image}` the name `{name}`");
        Ok(self.engine.within(self.options.limits.request, &action, asked).await?)
    }

    async fn image_exists(&self, name: &str, lookup: Lookup, progress: &Progress) -> Result<bool, ImageError> {
        if name.is_empty() {
            return Ok(false);
        }
        let name: ImageName = name.parse()?;
        if images::inspect(&self.engine, name.as_str()).await?.is_some() {
            return Ok(true);
        }
        if lookup == Lookup::Here {
            return Ok(false);
        }
        let told = |line: &str| progress.tell(&format!("{name}: {line}"));
        let pulled =
            tokio::time::timeout(self.options.limits.pull, images::pull(&self.engine, name.as_str(), None, told));
        match pulled.await {
            Ok(Ok(())) => Ok(true),
            // An engine answers alike whether there is no such image or the registry cannot be asked.
            Ok(Err(error @ EngineError::Answer { .. })) => {
                tracing::debug!(%name, %error, "the image was not pulled");
                Ok(false)
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_elapsed) => Err(ImageError::TimedOut {
                what: format!("the pull of {name}"),
                limit: self.options.limits.pull,
                log: Vec::new(),
            }),
        }
    }
}

/// Why an engine has no BuildKit.
fn too_old(about: &About) -> Option<String> {
    if about.podman {
        return Some(format!("this engine is Podman {}", about.version));
    }
    let mut numbers = about.version.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    (version < OLDEST)
        .then(|| format!("Docker server version must be >= 18.09 to use BuildKit, and is {}", about.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_buildkit_are_known() {
        let about = |version: &str, podman| About {
            version: version.into(),
            api: "1.41".into(),
            podman,
            architecture: "amd64".into(),
            system: "linux".into(),
        };
        for (version, podman, old) in [
            ("17.12.1-ce", false, true),
            ("18.06.3-ce", false, true),
            ("18.09.0", false, false),
            ("20.10.24+dfsg1", false, false),
            ("28.2.2", false, false),
            ("5.0.0", true, true),
        ] {
            assert_eq!(too_old(&about(version, podman)).is_some(), old, "{version}");
        }
    }
}
