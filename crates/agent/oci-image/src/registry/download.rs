//! Layers, downloaded to files: hashed as they come, and continued where a connection broke.

use std::path::Path;

use reqwest::{StatusCode, header::CONTENT_RANGE};
use tokio::{
    fs::File,
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

use super::http::{Failure, Http, again, from};
use crate::{
    digest::{Digest, Passing},
    error::ImageError,
};

/// Bytes that wait to be written at once.
const PIECE: usize = 1024 * 1024;

/// A file that is downloaded to.
struct Download<'a> {
    http: &'a Http,
    what: String,
    path: &'a str,
    size: u64,
    to: &'a Path,
    file: File,
    passing: Passing,
}

/// Downloads `size` bytes with this digest to a new file; `passed` is told of bytes, and of none twice.
pub(super) async fn download(
    http: &Http,
    path: &str,
    size: u64,
    digest: Digest,
    to: &Path,
    passed: &(impl Fn(u64) + Sync),
) -> Result<(), ImageError> {
    let mut file = File::create_new(to).await.map_err(ImageError::store("make", to))?;
    file.set_max_buf_size(PIECE);
    let what = format!("download the layer {digest}");
    let mut download = Download { http, what, path, size, to, file, passing: Passing::default() };
    let (mut attempt, mut told) = (1, 0);
    while let Err(failure) = download.go_on(&mut told, passed).await {
        http.pause(&download.what, failure, &mut attempt).await?;
    }
    download.file.flush().await.map_err(ImageError::store("write", to))?;
    let found = download.passing.digest();
    if found == digest {
        return Ok(());
    }
    let what = format!("the layer {digest}");
    Err(ImageError::Digest { what, expected: digest.to_string(), found: found.to_string() })
}

impl Download<'_> {
    /// Downloads what is missing.
    async fn go_on(&mut self, told: &mut u64, passed: &(impl Fn(u64) + Sync)) -> Result<(), Failure> {
        let wrong = |reason: String| Failure::Final(self.http.failed(&self.what, reason));
        if self.passing.bytes() == self.size && self.size > 0 {
            return Ok(());
        }
        let offset = self.passing.bytes();
        let mut answer = self.http.get(&self.what, self.path, &from(offset)).await?;
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
            if offset == 0 || !range.starts_with(&format!("bytes {offset}-")) {
                return Err(wrong("it answered with another part than was asked for".into()));
            }
        } else if offset > 0 {
            // It begins anew.
            self.passing = Passing::default();
            let emptied = async {
                self.file.set_len(0).await?;
                self.file.rewind().await
            };
            emptied.await.map_err(|error| Failure::Final(ImageError::store("empty", self.to)(error)))?;
        }
        let announced = answer.content_length().map(|length| length.saturating_add(self.passing.bytes()));
        if let Some(announced) = announced.filter(|announced| *announced != self.size) {
            let reason = format!("it has {announced} bytes, and the manifest says {}", self.size);
            return Err(Failure::Final(self.http.failed(&self.what, reason)));
        }
        while let Some(piece) = answer.chunk().await.map_err(again)? {
            self.passing.update(&piece);
            let done = self.passing.bytes();
            if done > self.size {
                let reason = format!("it has more bytes than the {} that the manifest says", self.size);
                return Err(Failure::Final(self.http.failed(&self.what, reason)));
            }
            let written = self.file.write_all(&piece).await;
            written.map_err(|error| Failure::Final(ImageError::store("write", self.to)(error)))?;
            if done > *told {
                passed(done - *told);
                *told = done;
            }
        }
        if self.passing.bytes() < self.size {
            return Err(Failure::Again(
                format!("it ended after {} of {} bytes", self.passing.bytes(), self.size),
                None,
            ));
        }
        Ok(())
    }
}
