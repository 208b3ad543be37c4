//! Builds by the engine itself, over its interface.

use std::collections::{BTreeMap, HashMap};

use bollard::{body_try_stream, query_parameters::BuildImageOptions};
use futures_util::StreamExt as _;
use gloveport_docker_engine::{Engine, EngineError};
use tokio::time::timeout;

use super::DockerOptions;
use crate::{
    arguments::EngineArguments,
    builder::{BuildRequest, Progress},
    context,
    error::ImageError,
    lines::Lines,
};

/// Builds and gives the first name. A connection that is dropped ends the build, and its containers are removed.
pub(super) async fn build(
    engine: &Engine,
    options: &DockerOptions,
    request: &BuildRequest<'_>,
    progress: &Progress,
) -> Result<(), ImageError> {
    let image = request.image()?;
    let query = query(request, image)?;
    let limit = options.limits.build;
    // The library's own limit is for answers; this one may take its time.
    let docker = engine.docker().await?.clone().with_timeout(limit);
    let mut said = docker.build_image(query, None, Some(body_try_stream(context::stream(request.folder))));
    let mut lines = Lines::new(progress);
    let building = async {
        while let Some(info) = said.next().await {
            let info = info.map_err(|error| engine.explain(&format!("build {image}"), limit, error))?;
            if let Some(text) = info.stream {
                lines.push(text.as_bytes());
            } else if let Some(status) = info.status.filter(|_| info.progress_detail.is_none()) {
                lines.line(&match info.id {
                    Some(id) => format!("{id}: {status}"),
                    None => status,
                });
            }
        }
        Ok(())
    };
    match timeout(limit, building).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(image, error, lines.into_last())),
        Err(_elapsed) => {
            Err(ImageError::TimedOut { what: format!("the build of {image}"), limit, log: lines.into_last() })
        }
    }
}

fn failed(image: &str, error: EngineError, log: Vec<String>) -> ImageError {
    match error {
        EngineError::Answer { message, .. } => ImageError::Build { image: image.into(), reason: message, log },
        other => other.into(),
    }
}

fn query(request: &BuildRequest<'_>, image: &str) -> Result<BuildImageOptions, ImageError> {
    let words = EngineArguments::parse(request.extra_arguments, |name| std::env::var(name).ok())?;
    let map = |pairs: BTreeMap<String, String>| -> Option<HashMap<String, String>> {
        (!pairs.is_empty()).then(|| pairs.into_iter().collect())
    };
    Ok(BuildImageOptions {
        t: Some(image.to_owned()),
        rm: true,
        forcerm: true,
        nocache: words.no_cache,
        pull: words.pull.then(|| "1".to_owned()),
        buildargs: map(words.build_args),
        labels: map(words.labels),
        extrahosts: (!words.hosts.is_empty()).then(|| words.hosts.join(",")),
        networkmode: words.network,
        target: words.target.unwrap_or_default(),
        platform: request.platforms.first().map(ToString::to_string).unwrap_or_default(),
        ..BuildImageOptions::default()
    })
}
