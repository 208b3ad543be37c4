//! Builds by a build service (`remote-runtime-api` 2.7–2.10).
//!
//! The service gets the folder and the names, nothing else: it knows no platforms and no further arguments.

use std::{
    io::{BufWriter, Seek as _, SeekFrom, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;
use reqwest::{
    Body, Client, RequestBuilder, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    blocking::blocking,
    builder::{BuildRequest, ImageBuilder, Lookup, Progress},
    context,
    error::ImageError,
};

/// Most of an answer that is read.
const LONGEST: usize = 1024 * 1024;
/// Most of it that an error shows.
const SHOWN: usize = 2000;
/// Size of a piece of what is sent.
const PIECE: usize = 64 * 1024;
/// How often a request is made that is answered with 429.
const ATTEMPTS: u32 = 3;

/// BuildLimits and pauses of a build service's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTimes {
    /// For a build, all in all.
    pub build: Duration,
    /// For a question.
    pub request: Duration,
    /// For sending the folder.
    pub upload: Duration,
    /// Between two questions how the build stands, and before it is asked for again while the service is busy.
    pub poll: Duration,
    /// After an answer 429.
    pub retry: Duration,
}

impl Default for RemoteTimes {
    fn default() -> Self {
        Self {
            build: Duration::from_mins(30),
            request: Duration::from_mins(1),
            upload: Duration::from_mins(10),
            poll: Duration::from_secs(30),
            retry: Duration::from_secs(4),
        }
    }
}

/// Builds with a build service.
pub struct RemoteBuilder {
    http: Client,
    url: String,
    key: HeaderValue,
    times: RemoteTimes,
}

#[derive(Deserialize)]
struct Prefix {
    registry_prefix: String,
}

#[derive(Deserialize)]
struct Existence {
    exists: bool,
    image: Option<Stored>,
}

#[derive(Deserialize)]
struct Stored {
    upload_time: Option<String>,
    image_size_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Accepted {
    build_id: String,
}

#[derive(Deserialize)]
struct Standing {
    status: String,
    image: Option<String>,
    error: Option<String>,
}

impl RemoteBuilder {
    /// With the service at this URL, and its key.
    pub fn new(http: Client, url: &str, key: &str, times: RemoteTimes) -> Result<Self, ImageError> {
        let mut key = HeaderValue::from_str(key).map_err(|_not_shown| ImageError::Value {
            what: "the key of the build service",
            value: "…".into(),
            reason: "it has characters that no header can have".into(),
        })?;
        key.set_sensitive(true);
        Ok(Self { http, url: url.trim_end_matches('/').to_owned(), key, times })
    }

    /// The repository that images of this service belong into: its prefix, and `/runtime` (2.7).
    pub async fn repository(&self) -> Result<String, ImageError> {
        let what = "failed to get the registry prefix";
        let answer: Prefix = self.get(what, "/registry_prefix", &[], None).await?;
        Ok(format!("{}/runtime", answer.registry_prefix.trim_end_matches('/')))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        query: &[(&str, &str)],
        progress: Option<&Progress>,
    ) -> Result<T, ImageError> {
        let mut attempt = 1;
        loop {
            let request = self.http.get(format!("{}{path}", self.url)).query(query);
            match self.send(what, request, self.times.request).await? {
                Answer::Busy if attempt < ATTEMPTS => {
                    if let Some(progress) = progress {
                        progress.tell("the build service is busy");
                    }
                    attempt += 1;
                    sleep(self.times.retry).await;
                }
                Answer::Busy => return Err(service(what, "the service is busy (status 429); try again later")),
                Answer::Text(text) => return understood(what, &text),
            }
        }
    }

    /// The answer to a request, which must have the status 200.
    async fn send(&self, what: &str, request: RequestBuilder, limit: Duration) -> Result<Answer, ImageError> {
        let request = request.header("X-API-Key", self.key.clone());
        let exchange = async {
            let answer = request.send().await.map_err(|error| service(what, &causes(&error.without_url())))?;
            let status = answer.status();
            let text = body(answer).await.map_err(|error| service(what, &causes(&error.without_url())))?;
            match status {
                StatusCode::OK => Ok(Answer::Text(text)),
                StatusCode::TOO_MANY_REQUESTS => Ok(Answer::Busy),
                _ => Err(service(what, &shown(&text, status))),
            }
        };
        match timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(ImageError::TimedOut { what: format!("{what}: the request"), limit, log: Vec::new() }),
        }
    }

    /// Sends the folder; answers the build's id (2.9).
    async fn begin(&self, request: &BuildRequest<'_>, image: &str, progress: &Progress) -> Result<String, ImageError> {
        let folder = request.folder.to_path_buf();
        let names = request.names.to_vec();
        let form = blocking(move || Form::write(&folder, &names)).await?;
        let what = format!("failed to build {image}");
        let mut attempt = 1;
        loop {
            progress.tell(&format!("sending {} MB to the build service", form.length.div_ceil(1_000_000)));
            let request = self
                .http
                .post(format!("{}/build", self.url))
                .header(CONTENT_TYPE, format!("multipart/form-data; boundary=\"{}\"", form.boundary))
                .header(CONTENT_LENGTH, form.length)
                .body(form.body()?);
            match self.send(&what, request, self.times.upload).await? {
                Answer::Text(text) => return Ok(understood::<Accepted>(&what, &text)?.build_id),
                Answer::Busy => {
                    progress.tell("the build service is busy");
                    sleep(if attempt < ATTEMPTS { self.times.retry } else { self.times.poll }).await;
                    attempt += 1;
                }
            }
        }
    }

    async fn follow(&self, id: &str, image: &str, progress: &Progress) -> Result<String, ImageError> {
        let mut told = String::new();
        loop {
            let what = "failed to get the build status";
            let standing: Standing = self.get(what, "/build_status", &[("build_id", id)], Some(progress)).await?;
            match standing.status.as_str() {
                "SUCCESS" => return Ok(standing.image.unwrap_or_else(|| image.to_owned())),
                status @ ("FAILURE" | "INTERNAL_ERROR" | "TIMEOUT" | "CANCELLED" | "EXPIRED") => {
                    let usual = || format!("Build failed with status: {status}. Build ID: {id}");
                    let reason = standing.error.filter(|text| !text.is_empty()).unwrap_or_else(usual);
                    return Err(ImageError::Build { image: image.into(), reason, log: Vec::new() });
                }
                status => {
                    if told != status {
                        told = status.chars().take(100).collect();
                        progress.tell(&format!("build {id}: {told}"));
                    }
                    sleep(self.times.poll).await;
                }
            }
        }
    }
}

impl ImageBuilder for RemoteBuilder {
    async fn build(&self, request: &BuildRequest<'_>, progress: &Progress) -> Result<String, ImageError> {
        let image = request.image()?;
        if !request.platforms.is_empty() || !request.extra_arguments.is_empty() {
            return Err(ImageError::Unsupported {
                reason: "a build service takes no platform and no further arguments".into(),
                remedy: "leave them out, or build with --builder docker".into(),
            });
        }
        let limit = self.times.build;
        let building = async {
            let began = Instant::now();
            let id = self.begin(request, image, progress).await?;
            tracing::debug!(id, took = ?began.elapsed(), "the build service has the folder");
            self.follow(&id, image, progress).await
        };
        match timeout(limit, building).await {
            Ok(built) => built,
            Err(_elapsed) => {
                Err(ImageError::TimedOut { what: format!("the build of {image}"), limit, log: Vec::new() })
            }
        }
    }

    async fn tag(&self, image: &str, name: &str) -> Result<(), ImageError> {
        Err(ImageError::Unsupported {
            reason: format!("a build service cannot give {image}, which is there, the name {name}"),
            remedy: "build with --force, or leave the name out".into(),
        })
    }

    /// The service knows its registry only, whatever is asked.
    async fn image_exists(&self, name: &str, _lookup: Lookup, progress: &Progress) -> Result<bool, ImageError> {
        let what = "failed to check image existence";
        let answer: Existence = self.get(what, "/image_exists", &[("image", name)], Some(progress)).await?;
        if let Some(image) = answer.image.filter(|_| answer.exists) {
            tracing::debug!(name, uploaded = image.upload_time, bytes = image.image_size_bytes, "the image exists");
        }
        Ok(answer.exists)
    }
}

enum Answer {
    Text(String),
    /// Status 429.
    Busy,
}

fn service(what: &str, reason: &str) -> ImageError {
    ImageError::Service { what: what.into(), reason: reason.into() }
}

fn understood<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, ImageError> {
    serde_json::from_str(text).map_err(|error| service(what, &format!("the answer cannot be understood: {error}")))
}

/// What an answer with another status says: its `detail`, or all of it.
fn shown(text: &str, status: StatusCode) -> String {
    #[derive(Deserialize)]
    struct Detail {
        detail: String,
    }
    let detail = serde_json::from_str(text).map(|Detail { detail }| detail);
    let text: String = detail.unwrap_or_else(|_other| text.trim().to_owned()).chars().take(SHOWN).collect();
    if text.is_empty() { format!("status {status}") } else { format!("{text} (status {})", status.as_u16()) }
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

async fn body(mut answer: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        let room = LONGEST - bytes.len();
        bytes.extend(piece.iter().take(room));
        if bytes.len() == LONGEST {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The body of a request, in a file without a name: it may be sent again, and is large.
struct Form {
    file: std::fs::File,
    boundary: String,
    length: u64,
}

impl Form {
    fn write(folder: &Path, names: &[String]) -> Result<Self, ImageError> {
        let place = std::env::temp_dir();
        let written = || -> std::io::Result<Self> {
            // Neither base64 nor a name of an image has a blank.
            let boundary = "gloveport build folder".to_owned();
            let mut output = BufWriter::with_capacity(PIECE, tempfile::tempfile()?);
            write!(
                output,
                "--{boundary}\r\nContent-Disposition: form-data; name=\"context\"; filename=\"context.tar.gz\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )?;
            let mut packed = GzEncoder::new(EncoderWriter::new(&mut output, &STANDARD), Compression::default());
            context::write(folder, &mut packed)?;
            packed.finish()?.finish()?;
            for (number, name) in names.iter().enumerate() {
                let field = if number == 0 { "target_image" } else { "tags" };
                write!(output, "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{name}")?;
            }
            write!(output, "\r\n--{boundary}--\r\n")?;
            let mut file = output.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            let length = file.seek(SeekFrom::End(0))?;
            Ok(Self { file, boundary, length })
        };
        written().map_err(ImageError::folder("pack the build folder in", place))
    }

    /// The body, from its beginning; several may be read at once.
    fn body(&self) -> Result<Body, ImageError> {
        let file = self
            .file
            .try_clone()
            .map_err(ImageError::folder("read the packed build folder in", std::env::temp_dir()))?;
        let file = Arc::new(file);
        let length = self.length;
        let pieces = stream::unfold(0_u64, move |at| {
            let file = Arc::clone(&file);
            async move {
                if at >= length {
                    return None;
                }
                let read = tokio::task::spawn_blocking(move || {
                    let mut piece = vec![0; PIECE];
                    let read = gloveport_platform::read_at(&file, &mut piece, at)?;
                    piece.truncate(read);
                    Ok::<_, std::io::Error>(piece)
                });
                let piece = read.await.map_err(std::io::Error::other).and_then(|piece| piece);
                let next = piece.as_ref().map_or(length, |piece| at + piece.len() as u64);
                Some((piece, if next == at { length } else { next }))
            }
        });
        Ok(Body::wrap_stream(pieces))
    }
}
