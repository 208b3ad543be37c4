//! Large bodies through the gateway, beside the direct way to the same sandbox.

use std::{fs::File, io::Read as _, path::Path};

use rustix::fs::{StatVfs, statvfs};
use serde::Serialize;
use tempfile::TempDir;

use super::program::{Gateway, Inside, Runtime};
use crate::sample::{Sample, in_turn};

/// Where files are in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";
/// Bytes that are sent and compared at once.
const PIECE: usize = 256 * 1024;

/// Numbers of large bodies.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BodyNumbers {
    /// `PUT /v1/files/content` through the gateway.
    pub(crate) up: Sample,
    /// The same without the gateway, in turn.
    pub(crate) direct_up: Sample,
    /// `GET /v1/files/content` through the gateway.
    pub(crate) down: Sample,
    /// The same without the gateway, in turn.
    pub(crate) direct_down: Sample,
    /// What the gateway's largest memory meanwhile was above that of before, in bytes.
    pub(crate) growth: u64,
    /// Bytes of a body.
    pub(crate) size: u64,
}

/// Sends and fetches a file of this size so many times, through the gateway and directly in turn.
pub(super) fn measure(
    gateway: &Gateway,
    sandbox: &Runtime,
    inside: &Inside,
    size: u64,
    rounds: usize,
) -> anyhow::Result<BodyNumbers> {
    let place = place(size)?;
    let file = place.path().join("large");
    let path = format!("/v1/files/content?path={}", file.display());
    let piece: Vec<u8> = (0..PIECE).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect();
    let (mut through, mut direct) = (gateway.client_of(sandbox)?, inside.client(sandbox)?);
    through.run("true")?;

    let before = gateway.resident()?;
    gateway.forget_peak()?;
    let (up, direct_up) = in_turn(&mut through, &mut direct, rounds, |client| client.upload(&path, &piece, size))?;
    // The last one may have gone directly.
    through.upload(&path, &piece, size)?;
    compare_file(&file, &piece, size)?;
    let (down, direct_down) = in_turn(&mut through, &mut direct, rounds, |client| {
        let read = client.download(&path, |_| ())?;
        anyhow::ensure!(read == size, "{read} bytes of {size} came");
        Ok(())
    })?;
    let mut comparison = Comparison::with(&piece);
    through.download(&path, |part| comparison.take(part))?;
    comparison.end(size)?;
    let growth = gateway.peak()?.saturating_sub(before);
    Ok(BodyNumbers { up, direct_up, down, direct_down, growth, size })
}

/// A directory for the file, in memory where there is room for it.
fn place(size: u64) -> anyhow::Result<TempDir> {
    // The old file is there until the new one is whole.
    let has_room = |room: StatVfs| room.f_bavail.saturating_mul(room.f_frsize) / 3 > size;
    let mut place = tempfile::Builder::new();
    place.prefix("gloveport-bench-");
    Ok(if statvfs(MEMORY).is_ok_and(has_room) { place.tempdir_in(MEMORY)? } else { place.tempdir()? })
}

fn compare_file(path: &Path, piece: &[u8], size: u64) -> anyhow::Result<()> {
    let (mut file, mut comparison) = (File::open(path)?, Comparison::with(piece));
    let mut part = vec![0; piece.len()];
    loop {
        match file.read(&mut part)? {
            0 => return comparison.end(size),
            read => comparison.take(&part[..read]),
        }
    }
}

/// Whether bytes are a piece again and again.
struct Comparison<'a> {
    piece: &'a [u8],
    taken: u64,
    is_same: bool,
}

impl<'a> Comparison<'a> {
    fn with(piece: &'a [u8]) -> Self {
        Self { piece, taken: 0, is_same: true }
    }

    fn take(&mut self, mut part: &[u8]) {
        while !part.is_empty() {
            let at = usize::try_from(self.taken % self.piece.len() as u64).unwrap_or_default();
            let (now, rest) = part.split_at(part.len().min(self.piece.len() - at));
            self.is_same &= now == &self.piece[at..at + now.len()];
            self.taken += now.len() as u64;
            part = rest;
        }
    }

    fn end(&self, size: u64) -> anyhow::Result<()> {
        let Self { taken, is_same, .. } = *self;
        anyhow::ensure!(is_same && taken == size, "a body of {size} bytes became another one of {taken}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_only_with_every_byte_in_its_place() {
        let ends = |parts: &[&[u8]], size| {
            let mut comparison = Comparison::with(b"abc");
            for part in parts {
                comparison.take(part);
            }
            comparison.end(size).is_ok()
        };
        for (parts, size, expected) in [
            (&[&b"abcabca"[..]][..], 7, true),
            (&[b"a", b"bca", b"", b"bca"], 7, true),
            (&[b"abcabca"], 8, false),
            (&[b"abcab"], 4, false),
            (&[b"abcabcb"], 7, false),
            (&[b"abc", b"bca"], 6, false),
        ] {
            assert_eq!(ends(parts, size), expected, "{parts:?} {size}");
        }
    }
}
