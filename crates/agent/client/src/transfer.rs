//! Copies between this machine and the sandbox (`action-execution-client` 5).

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream, stream::BoxStream};
use gloveport_archive::zip;
use reqwest::{Body, Method};
use tempfile::TempPath;
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncWriteExt as _},
};

use crate::{
    ActionExecutionClient, ClientError,
    call::{Call, Payload, Progress},
    exec::random_id,
    pipe::written_by,
    session::next_chunk,
};

/// A content as it is sent.
pub(crate) type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// Bytes read from a file at once.
const PIECE: usize = 64 * 1024;

impl ActionExecutionClient {
    /// Sends one file into a directory of the sandbox, under its own name.
    pub(crate) async fn upload_file(&self, source: &Path, destination: &str) -> Result<(), ClientError> {
        let length = tokio::fs::metadata(source).await;
        let length =
            length.map_err(|error| ClientError::File { action: "read", path: source.to_owned(), source: error })?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = source.to_owned();
        let content = move || file_pieces(path.clone()).boxed();
        self.upload(&name, length.len(), Box::new(content), destination, false).await
    }

    /// Sends the files of a plan as a zip file that the server unpacks. It is made while it is sent.
    pub(crate) async fn upload_zip(&self, plan: zip::Plan, destination: &str) -> Result<(), ClientError> {
        let length = plan.length();
        let plan = Arc::new(plan);
        let content = move || {
            let plan = Arc::clone(&plan);
            written_by(move |out| plan.write_to(out).map(drop)).boxed()
        };
        self.upload("upload.zip", length, Box::new(content), destination, true).await
    }

    /// Sends a body that is made anew for each attempt.
    async fn upload(
        &self,
        name: &str,
        length: u64,
        content: Box<dyn Fn() -> Pieces + Send + Sync>,
        destination: &str,
        recursive: bool,
    ) -> Result<(), ClientError> {
        let form = Form::new(name, &random_id(self.url())?);
        let content_type = form.content_type();
        let total = form.around(length);
        let make = move |progress| form.body(content(), progress);
        let payload = Payload::Stream { content_type, length: Some(total), make: Box::new(make) };
        let call = Call {
            method: Method::POST,
            query: vec![("destination", destination.to_owned()), ("recursive", recursive.to_string())],
            payload,
            ..Call::get("upload_file", self.session().limits.upload)
        };
        let answer = self.session().request(&call).await.map_err(copy_timeout)?;
        tracing::debug!(answer = %String::from_utf8_lossy(&answer), name, destination, "copied into the sandbox");
        Ok(())
    }

    /// Copies all regular files below a directory of the sandbox into a temporary zip file on this machine, which is
    /// removed when its path is dropped.
    ///
    /// It is sent one time. An answer that is no success is an error, where the reference would keep its body as the
    /// zip file.
    pub async fn copy_from(&self, path: &str) -> Result<TempPath, ClientError> {
        let limits = self.session().limits;
        let call = Call { query: vec![("path", path.to_owned())], ..Call::get("download_files", limits.download) };
        let mut response = self.session().send(&call).await.map_err(copy_timeout)?;
        let temporary = tempfile::Builder::new().prefix("gloveport-").suffix(".zip").tempfile();
        let temporary = temporary.map_err(|error| ClientError::File {
            action: "make",
            path: std::env::temp_dir(),
            source: error,
        })?;
        let (file, zip) = temporary.into_parts();
        let failed = |error| ClientError::File { action: "write", path: zip.to_path_buf(), source: error };
        let mut file = File::from_std(file);
        let (most, mut stored) = (self.session().max_copy, 0);
        while let Some(piece) = next_chunk(&mut response, Some(limits.download)).await.map_err(copy_timeout)? {
            stored += piece.len() as u64;
            if stored > most {
                return Err(ClientError::TooLarge { url: response.url().to_string(), limit: most });
            }
            file.write_all(&piece).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(zip)
    }
}

/// A silence during a copy, in the words of the interface.
fn copy_timeout(error: ClientError) -> ClientError {
    match error {
        ClientError::Silent { .. } => ClientError::Timeout("Copy operation timed out".to_owned()),
        other => other,
    }
}

/// A multipart body with one file.
#[derive(Debug)]
pub(crate) struct Form {
    boundary: String,
    head: Bytes,
    tail: Bytes,
}

impl Form {
    pub(crate) fn new(name: &str, boundary: &str) -> Self {
        // As web browsers and the reference's client escape names.
        let name = name.replace('\\', "\\\\").replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        Self { head: head.into(), tail: format!("\r\n--{boundary}--\r\n").into(), boundary: boundary.to_owned() }
    }

    pub(crate) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// The length of the body around a content of this length.
    pub(crate) const fn around(&self, length: u64) -> u64 {
        length + (self.head.len() + self.tail.len()) as u64
    }

    /// The body around the content of the file.
    pub(crate) fn body(&self, content: Pieces, progress: Progress) -> Body {
        let once = |bytes: &Bytes| stream::once(std::future::ready(Ok::<_, io::Error>(bytes.clone())));
        let whole = once(&self.head).chain(content).chain(once(&self.tail));
        Body::wrap_stream(whole.inspect(move |_| {
            progress.send_replace(tokio::time::Instant::now());
        }))
    }
}

/// The content of a file in pieces.
pub(crate) fn file_pieces(path: PathBuf) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold(Source::Closed(path), async |source| {
        let file = match source {
            Source::Closed(path) => File::open(path).await?,
            Source::Open(file) => file,
        };
        let mut piece = Vec::with_capacity(PIECE);
        let mut part = file.take(PIECE as u64);
        let count = part.read_to_end(&mut piece).await?;
        Ok((count > 0).then(|| (Bytes::from(piece), Source::Open(part.into_inner()))))
    })
}

enum Source {
    Closed(PathBuf),
    Open(File),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_header() {
        let form = Form::new("a\"b\\c\r\nd é.txt", "b0undary");
        assert_eq!(
            form.head,
            "--b0undary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b\\\\c%0D%0Ad é.txt\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
    }
}
