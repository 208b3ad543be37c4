//! A file of a container, however long, as the engine packs it.

use std::{pin::Pin, sync::Arc, time::Duration};

use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder, RemoveContainerOptionsBuilder,
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use gloveport_docker_engine::Engine;
use gloveport_provider::{LogStream, ProviderError};
use tokio::time::timeout;

use crate::fault::{self, failed};

/// Time for the next piece.
const PIECE: Duration = Duration::from_secs(30);
/// Bytes of a block of an archive.
const BLOCK: usize = 512;

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, bollard::errors::Error>> + Send>>;

/// A file that is copied, and the container that is removed afterwards, if it is there for that alone.
pub(crate) struct Copying {
    engine: Arc<Engine>,
    container: String,
    path: String,
    is_own: bool,
}

impl Copying {
    /// Of a container of somebody else.
    pub(crate) const fn of(engine: Arc<Engine>, container: String, path: String) -> Self {
        Self { engine, container, path, is_own: false }
    }

    /// Of one that ends with this.
    pub(crate) const fn of_own(engine: Arc<Engine>, container: String, path: String) -> Self {
        Self { engine, container, path, is_own: true }
    }

    /// What is in the file; none if there is no file.
    pub(crate) async fn begin_if_there(mut self) -> Result<Option<LogStream>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let options = ContainerArchiveInfoOptionsBuilder::default().path(&self.path).build();
        let look = docker.get_container_archive_info(&self.container, Some(options));
        match self.engine.ask(&format!("look at `{}` in a container", self.path), look).await {
            Ok(_) => self.begin().await.map(Some),
            Err(error) if error.is_not_found() => {
                self.end().await;
                Ok(None)
            }
            Err(error) => Err(fault::of(error)),
        }
    }

    /// What is in the file.
    pub(crate) async fn begin(self) -> Result<LogStream, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let options = DownloadFromContainerOptionsBuilder::default().path(&self.path).build();
        let pieces: Pieces = Box::pin(docker.download_from_container(&self.container, Some(options)));
        let reading = Reading { copying: self, pieces, unpacking: Unpacking::default() };
        Ok(stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(piece)) => Some((Ok(piece), Some(reading))),
                Ok(None) => {
                    reading.copying.end().await;
                    None
                }
                Err(error) => {
                    reading.copying.end().await;
                    Some((Err(error), None))
                }
            }
        })
        .boxed())
    }

    async fn end(&mut self) {
        if std::mem::take(&mut self.is_own)
            && let Err(error) = remove(&self.engine, &self.container).await
        {
            tracing::warn!(%error, "a container that was only read is left");
        }
    }
}

impl Drop for Copying {
    /// Whoever reads may give up.
    fn drop(&mut self) {
        if self.is_own {
            let (engine, container) = (Arc::clone(&self.engine), std::mem::take(&mut self.container));
            tokio::spawn(async move {
                if let Err(error) = remove(&engine, &container).await {
                    tracing::warn!(%error, "a container that was only read is left");
                }
            });
        }
    }
}

/// Removes a container; of one that is gone it is no error. Named volumes stay.
pub(crate) async fn remove(engine: &Engine, container: &str) -> Result<(), ProviderError> {
    let docker = engine.docker().await.map_err(fault::of)?;
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    let removed = docker.remove_container(container, Some(options));
    match engine.ask("remove the container to read through", removed).await {
        Err(error) if !error.is_not_found() => Err(fault::of(error)),
        _ => Ok(()),
    }
}

struct Reading {
    copying: Copying,
    pieces: Pieces,
    unpacking: Unpacking,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, ProviderError> {
        let action = format!("read `{}` in a container", self.copying.path);
        loop {
            match self.unpacking.next().map_err(|reason| failed(&action, reason))? {
                Unpacked::Piece(piece) => return Ok(Some(piece)),
                Unpacked::End => return Ok(None),
                Unpacked::Wants => {}
            }
            let late = |_| ProviderError::Timeout { action: action.clone(), limit: PIECE };
            match timeout(PIECE, self.pieces.next()).await.map_err(late)? {
                Some(piece) => {
                    let explain = |error| fault::of(self.copying.engine.explain(&action, PIECE, error));
                    self.unpacking.given.extend_from_slice(&piece.map_err(explain)?);
                }
                None => return Err(failed(action, "it was cut off")),
            }
        }
    }
}

/// Takes the first file out of an archive that comes in pieces.
#[derive(Debug, Default)]
struct Unpacking {
    given: BytesMut,
    /// Bytes that are skipped before the next header.
    skipped: u64,
    /// What is left of the file, once it has begun.
    left: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Unpacked {
    Piece(Bytes),
    End,
    Wants,
}

impl Unpacking {
    fn next(&mut self) -> Result<Unpacked, String> {
        loop {
            if let Some(left) = &mut self.left {
                if *left == 0 {
                    return Ok(Unpacked::End);
                }
                if self.given.is_empty() {
                    return Ok(Unpacked::Wants);
                }
                let count = self.given.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                return Ok(Unpacked::Piece(self.given.split_to(count).freeze()));
            }
            let skipped = self.given.len().min(usize::try_from(self.skipped).unwrap_or(usize::MAX));
            self.skipped -= skipped as u64;
            drop(self.given.split_to(skipped));
            if self.skipped > 0 || self.given.len() < BLOCK {
                return Ok(Unpacked::Wants);
            }
            let block = self.given.split_to(BLOCK);
            let header = tar::Header::from_byte_slice(&block);
            let size = header.size().map_err(|error| error.to_string())?;
            if header.entry_type().is_file() {
                self.left = Some(size);
            } else if header.entry_type().is_pax_local_extensions() || header.entry_type().is_pax_global_extensions() {
                self.skipped = size.checked_next_multiple_of(BLOCK as u64).ok_or("it is too long")?;
            } else {
                return Err("it is no file".to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(kinds: &[(tar::EntryType, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (kind, content) in kinds {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, "log", content.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap()
    }

    /// What comes out of an archive that comes in pieces of this size; none if it is not whole.
    fn unpacked(archive: &[u8], size: usize) -> Result<Option<String>, String> {
        let (mut unpacking, mut text, mut pieces) = (Unpacking::default(), Vec::new(), archive.chunks(size));
        loop {
            match unpacking.next()? {
                Unpacked::Piece(piece) => text.extend_from_slice(&piece),
                Unpacked::End => return Ok(Some(String::from_utf8(text).unwrap())),
                Unpacked::Wants => match pieces.next() {
                    Some(piece) => unpacking.given.extend_from_slice(piece),
                    None => return Ok(None),
                },
            }
        }
    }

    #[test]
    fn a_file_is_what_it_was_however_its_archive_comes() {
        use tar::EntryType::{Directory, Regular, XHeader};
        let long = "line\n".repeat(1000);
        let file = packed(&[(Regular, &long)]);
        let behind_others = packed(&[(XHeader, "30 mtime=1350244992.023960108\n"), (Regular, &long)]);
        for size in [1, 511, 512, 513, 100_000] {
            assert_eq!(unpacked(&file, size), Ok(Some(long.clone())), "{size}");
            assert_eq!(unpacked(&behind_others, size), Ok(Some(long.clone())), "{size}");
            assert_eq!(unpacked(&packed(&[(Regular, "")]), size), Ok(Some(String::new())));
            // Cut off in the file, in the header, and before it.
            for length in [4000, 300, 0] {
                assert_eq!(unpacked(&file[..length], size), Ok(None), "{size} {length}");
            }
            assert!(unpacked(&packed(&[(Directory, "")]), size).is_err());
        }
        assert!(unpacked(&[b'x'; 2 * BLOCK], 7).is_err());
    }
}
