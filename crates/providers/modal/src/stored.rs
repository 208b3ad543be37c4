//! What is made once for many sandboxes: the app, our program as a mount, images (`hosted-apis` 5.2, 5.4).

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gloveport_hosted::{
    fault::wrong,
    service::{Again, Request},
    settings::is_safe,
};
use gloveport_provider::{Phase, ProviderError, Teller};
use http::{HeaderMap, HeaderValue, Method};
use md5::Md5;
use sha2::{Digest as _, Sha256};
use tokio::time::{sleep, timeout};

use crate::{
    inner::Inner,
    options::Image,
    wire::{
        self, AppGetOrCreate, Blob, BlobCreate, Environment, FileIsThere, ImageGetOrCreate, ImageJoin, ImageJoined,
        ImageMade, MountFile, MountGetOrCreate, Outcome, PutFile, Text, Texts,
    },
};

/// Programs from this size on are brought as blobs.
const BLOB: usize = 4 * 1024 * 1024;
/// How long the program may be on its way.
const UPLOAD: Duration = Duration::from_mins(10);
/// Pauses between looks at a file that has arrived, until the service says that it is there.
const ARRIVED: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];
/// How long the service may wait before it says how far an image is.
const STEP: f32 = 55.0;
/// How long it may say nothing.
const SILENCE: Duration = Duration::from_secs(65);
/// Pause before it is asked again how far an image is, when the answer was cut off.
const AGAIN: Duration = Duration::from_millis(500);
/// The newest of the builders that put their own Python into every image.
const OLD_BUILDER: &str = "2024.10";
/// Most characters of a line of a build that are shown, and most lines that an error repeats.
const LINE: usize = 200;
const LINES: usize = 20;

impl Inner {
    /// The app in which the sandboxes are. It is made if it is missing.
    pub(crate) async fn app(&self) -> Result<&str, ProviderError> {
        let made = self.app.get_or_try_init(async || {
            let wish = AppGetOrCreate {
                app_name: self.options.app.clone(),
                environment_name: self.options.environment.clone(),
                object_creation_type: 1,
            };
            let made: Text = self.control.ask("look for the app", "AppGetOrCreate", &wish).await?;
            Ok::<_, ProviderError>(made.text)
        });
        made.await.map(String::as_str)
    }

    /// A mount with our program at this path. What it has is uploaded the first time.
    pub(crate) async fn mount(&self, path: &str) -> Result<String, ProviderError> {
        let (control, digest) = (&self.control, self.program.digest().await?.to_owned());
        let wish = Texts { texts: vec![digest.clone()] };
        let missing: Texts = control.ask("look for our program", "MountBatchedCheckExistence", &wish).await?;
        if missing.texts.contains(&digest) {
            self.upload(&digest).await?;
        }
        let file = MountFile { filename: path.to_owned(), sha256_hex: digest, size: None, mode: Some(0o755) };
        let wish =
            MountGetOrCreate { object_creation_type: 4, files: vec![file], app_id: self.app().await?.to_owned() };
        let made: Text = control.ask("mount our program", "MountGetOrCreate", &wish).await?;
        Ok(made.text)
    }

    async fn upload(&self, digest: &str) -> Result<(), ProviderError> {
        let (control, action) = (&self.control, "store our program");
        let content = self.program.read().await?;
        if gloveport_ids::hex(&Sha256::digest(&content)) != digest {
            return Err(control.service.failed(action, "the file has changed since this process has started"));
        }
        let mut wish = PutFile { sha256_hex: digest.to_owned(), ..PutFile::default() };
        if content.len() < BLOB {
            wish.data = Some(content);
        } else {
            wish.data_blob_id = Some(self.blob(content).await?);
        }
        for pause in ARRIVED {
            sleep(pause).await;
            let key = control.key(action)?;
            let told: FileIsThere = control.ask_as(action, "MountPutFile", &wish, &key, UPLOAD).await?;
            if told.exists {
                return Ok(());
            }
        }
        Err(control.service.failed(action, "it was uploaded, and the service does not have it"))
    }

    /// Brings bytes to where the service wants them. That is another service, which gets no token.
    async fn blob(&self, content: Vec<u8>) -> Result<String, ProviderError> {
        let (service, action) = (&self.control.service, "store our program");
        let wish = BlobCreate {
            content_md5: STANDARD.encode(Md5::digest(&content)),
            content_sha256_base64: STANDARD.encode(Sha256::digest(&content)),
            content_length: i64::try_from(content.len()).unwrap_or(i64::MAX),
        };
        let blob: Blob = self.control.ask(action, "BlobCreate", &wish).await?;
        let several = blob.upload_urls.as_ref().and_then(|urls| urls.texts.first().cloned());
        let url = blob.upload_url.clone().or(several).ok_or_else(|| service.failed(action, "it does not say where"))?;
        // The signature of such a URL is in its query.
        if !is_safe(url.split('?').next().unwrap_or_default()) {
            return Err(service.failed(action, "it says so in a URL without TLS"));
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/octet-stream"));
        let request = Request {
            method: Method::PUT,
            url,
            headers,
            body: Bytes::from(content),
            again: Again::Always,
            limit: UPLOAD,
        };
        let answer = service.ask(action, &request).await?;
        if !answer.status.is_success() {
            return Err(service.failed(action, format!("its store answers with status {}", answer.status)));
        }
        let id = Some(blob.blob_id).filter(|id| !id.is_empty()).or_else(|| blob.blob_ids.into_iter().next());
        id.ok_or_else(|| service.failed(action, "it does not say what the upload is called"))
    }

    /// The id of an image. It is built the first time, which is told.
    pub(crate) async fn image(&self, image: Image<'_>, progress: &Teller) -> Result<String, ProviderError> {
        let reference = match image {
            Image::Id(id) => return Ok(id.to_owned()),
            Image::Registry(reference) => reference,
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        if reference.is_empty() || !reference.bytes().all(allowed) {
            return Err(wrong("image", format!("`{reference}` is no image of a registry")));
        }
        let (control, action) = (&self.control, "build an image");
        let wish = ImageGetOrCreate {
            image: Some(wire::Image { dockerfile_commands: vec![format!("FROM {reference}")] }),
            app_id: self.app().await?.to_owned(),
            namespace: 1,
            builder_version: self.builder().await?,
        };
        let made: ImageMade = control.ask(action, "ImageGetOrCreate", &wish).await?;
        match made.result.filter(|result| result.status != 0) {
            Some(result) => built(reference, &result, ""),
            None => self.join(reference, &made.image_id, progress).await,
        }?;
        Ok(made.image_id)
    }

    /// The version of what builds images in the environment.
    async fn builder(&self) -> Result<String, ProviderError> {
        let action = "tell the settings of the environment";
        let wish = Text { text: self.options.environment.clone() };
        let told: Environment = self.control.ask(action, "EnvironmentGetOrCreate", &wish).await?;
        let settings = told.metadata.and_then(|metadata| metadata.settings).unwrap_or_default();
        let version = settings.image_builder_version;
        if version.is_empty() || version.as_str() <= OLD_BUILDER {
            let reason = format!(
                "its image builder is `{version}`, which puts Python of its own into images; choose 2025.06 or a newer one \
                 in the settings of the workspace"
            );
            return Err(self.control.service.failed("build an image", reason));
        }
        Ok(version)
    }

    /// Waits until an image is built.
    async fn join(&self, reference: &str, image: &str, progress: &Teller) -> Result<(), ProviderError> {
        let (began, limit, action) = (Instant::now(), self.options.build_within, "build an image");
        let (mut last, mut log) = (String::new(), Vec::new());
        while began.elapsed() < limit {
            let wish = ImageJoin { image_id: image.to_owned(), timeout: STEP, last_entry_id: last.clone() };
            let opened = self.control.stream::<_, ImageJoined>(action, "ImageJoinStreaming", &wish).await;
            let mut steps = match opened {
                Ok(steps) => steps,
                Err(refused) if refused.error.is_temporary() => {
                    tracing::debug!(error = %refused.error, "how far an image is was not told; it is asked again");
                    sleep(AGAIN).await;
                    continue;
                }
                Err(refused) => return Err(refused.error),
            };
            let left = limit.saturating_sub(began.elapsed());
            // Streams are cut off after a while, and then begin again where they were.
            while let Ok(Ok(Some(step))) = timeout(SILENCE.min(left), steps.next()).await {
                for line in step.task_logs.iter().flat_map(|log| log.data.lines()).filter(|line| !line.is_empty()) {
                    let line: String = line.chars().take(LINE).collect();
                    progress.enter(Phase::PreparingImage, &line);
                    log.push(line);
                }
                log.drain(..log.len().saturating_sub(LINES));
                if !step.entry_id.is_empty() {
                    last = step.entry_id;
                }
                if let Some(result) = step.result.filter(|result| result.status != 0) {
                    return built(reference, &result, &log.join("\n"));
                }
                if step.eof {
                    break;
                }
            }
            sleep(AGAIN).await;
        }
        Err(ProviderError::Timeout { action: format!("waiting for Modal to build `{reference}`"), limit })
    }
}

/// What became of an image.
fn built(reference: &str, result: &Outcome, log: &str) -> Result<(), ProviderError> {
    if result.status == 1 {
        return Ok(());
    }
    let why = if result.exception.is_empty() { "it does not say why" } else { &result.exception };
    let log = if log.is_empty() { String::new() } else { format!("; it wrote last:\n{log}") };
    Err(wrong("image", format!("Modal could not make one from `{reference}`: {why}{log}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_could_not_be_built_is_told_with_the_end_of_its_log() {
        let outcome = |status, exception: &str| Outcome { status, exception: exception.to_owned(), exitcode: 0 };
        built("debian:13", &outcome(1, ""), "").unwrap();
        let error = built("nobody/x", &outcome(2, "no such image"), "pulling").unwrap_err().to_string();
        assert!(error.contains("`nobody/x`: no such image; it wrote last:\npulling"), "{error}");
    }
}
