//! Whether an image is there, and its pull with progress (docker-runtime 15.1).

use std::{collections::HashMap, time::Duration};

use bollard::{models::ImageInspect, query_parameters::CreateImageOptionsBuilder};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::{Engine, EngineError};

/// How long a pull may take in all.
const PULL: Duration = Duration::from_mins(30);
/// How long it may say nothing.
const SILENCE: Duration = Duration::from_mins(3);
/// Longest text of a pull's progress.
const LONGEST: usize = 200;

/// The image of this name, or none if the engine does not have it.
pub async fn inspect(engine: &Engine, image: &str) -> Result<Option<ImageInspect>, EngineError> {
    let docker = engine.docker().await?;
    match engine.ask(&format!("look at the image `{image}`"), docker.inspect_image(image)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Pulls an image, and tells how far it is: a line for people, at most one for each ten hundredths of the layers.
pub async fn pull(
    engine: &Engine,
    image: &str,
    platform: Option<&str>,
    mut told: impl FnMut(&str),
) -> Result<(), EngineError> {
    let docker = engine.docker().await?;
    let action = format!("pull the image `{image}`");
    let (name, tag) = split(image);
    let mut options = CreateImageOptionsBuilder::default().from_image(name);
    if let Some(tag) = tag {
        options = options.tag(tag);
    }
    if let Some(platform) = platform {
        options = options.platform(platform);
    }
    let mut stream = Box::pin(docker.create_image(Some(options.build()), None, None));
    let mut layers = Layers::default();
    let pulling = async {
        loop {
            let Ok(next) = timeout(SILENCE, stream.next()).await else {
                let endpoint = engine.endpoint().to_string();
                return Err(EngineError::Timeout { endpoint, action: format!("go on to {action}"), limit: SILENCE });
            };
            let Some(next) = next else { return Ok(()) };
            let info = next.map_err(|error| engine.explain(&action, SILENCE, error))?;
            let detail = info.progress_detail.as_ref();
            let amounts = detail.and_then(|detail| Some((detail.current?, detail.total?)));
            if let Some(line) = layers.line(info.id.as_deref(), info.status.as_deref().unwrap_or_default(), amounts) {
                told(&line);
            }
        }
    };
    match timeout(PULL, pulling).await {
        Ok(pulled) => pulled,
        Err(_) => Err(EngineError::Timeout { endpoint: engine.endpoint().to_string(), action, limit: PULL }),
    }
}

/// The name and the tag of an image; a digest stays with the name, and no tag means `latest`.
fn split(image: &str) -> (&str, Option<&str>) {
    if image.contains('@') {
        return (image, None);
    }
    match image.rsplit_once(':') {
        // A colon before a slash is that of a port.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, Some("latest")),
    }
}

/// How far each layer is.
#[derive(Default)]
struct Layers {
    parts: HashMap<String, (i64, i64)>,
    last: i64,
}

impl Layers {
    /// Most layers that are followed.
    const MOST: usize = 512;

    fn line(&mut self, id: Option<&str>, status: &str, amounts: Option<(i64, i64)>) -> Option<String> {
        let Some(id) = id else {
            return (!status.is_empty()).then(|| status.chars().take(LONGEST).collect());
        };
        match (amounts, status) {
            (Some((current, total)), _) if total > 0 && status != "Extracting" && self.parts.len() < Self::MOST => {
                self.parts.insert(id.to_owned(), (current.min(total), total));
            }
            (_, "Download complete" | "Pull complete") => {
                if let Some(part) = self.parts.get_mut(id) {
                    part.0 = part.1;
                }
            }
            _ => return None,
        }
        let (current, total) =
            self.parts.values().fold((0_i64, 0_i64), |sum, part| (sum.0 + part.0, sum.1.saturating_add(part.1)));
        let percent = current.saturating_mul(100).checked_div(total).unwrap_or(0);
        // More layers may become known, so that it goes back.
        if (percent - self.last).abs() < 10 && !(percent == 100 && self.last != 100) {
            return None;
        }
        self.last = percent;
        Some(format!("{percent} % of {} MB", total / 1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_tag_and_a_digest_has_none() {
        for (image, expected) in [
            ("debian", ("debian", Some("latest"))),
            ("debian:12", ("debian", Some("12"))),
            ("host:5000/a", ("host:5000/a", Some("latest"))),
            ("host:5000/a:b", ("host:5000/a", Some("b"))),
            ("a@sha256:00", ("a@sha256:00", None)),
        ] {
            assert_eq!(split(image), expected);
        }
    }

    #[test]
    fn progress_is_told_in_steps() {
        let mut layers = Layers::default();
        assert_eq!(layers.line(None, "Pulling from library/x", None).unwrap(), "Pulling from library/x");
        assert_eq!(layers.line(Some("a"), "Pulling fs layer", None), None);
        assert_eq!(layers.line(Some("a"), "Downloading", Some((5_000_000, 100_000_000))), None);
        assert_eq!(layers.line(Some("a"), "Downloading", Some((20_000_000, 100_000_000))).unwrap(), "20 % of 100 MB");
        assert_eq!(layers.line(Some("a"), "Downloading", Some((21_000_000, 100_000_000))), None);
        assert_eq!(layers.line(Some("a"), "Download complete", None).unwrap(), "100 % of 100 MB");
        assert_eq!(layers.line(Some("a"), "Pull complete", None), None);
    }
}
