//! Copies on this machine, with what a copy to a sandbox keeps.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
};

use anyhow::Context as _;
use gloveport_archive::{ArchiveError, tar};
use gloveport_sys::replace::{self, NewFile, Replacement};

use crate::{
    files::copied::{Copied, End, PIECE, limits, target},
    files::progress::Progress,
    output::WRITING,
};

pub(crate) async fn copy(source: End, destination: End, progress: &Progress) -> anyhow::Result<Copied> {
    let progress = progress.clone();
    tokio::task::spawn_blocking(move || match (source, destination) {
        (End::Here(from), End::Here(to)) => from_path_to_path(&from, &to, &progress),
        (End::Here(from), End::Stream) if from.is_dir() => {
            tar::pack(&from, io::stdout().lock()).map_err(unread)?;
            Ok(Copied::printed())
        }
        (End::Here(from), End::Stream) => {
            let file = replace::open_to_read(&from).with_context(|| format!("cannot read {}", from.display()))?;
            pump(file, io::stdout().lock(), &progress).context(WRITING)?;
            Ok(Copied::printed())
        }
        (End::Stream, End::Here(to)) if to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/") => {
            fs::create_dir_all(&to).with_context(|| format!("cannot make the directory {}", to.display()))?;
            // It may come out of a sandbox.
            let done = tar::unpack(io::stdin().lock(), &to, tar::Origin::Foreign, &limits())?;
            Ok(Copied::tree(&to, done.files, done.bytes))
        }
        (End::Stream, End::Here(to)) => store(io::stdin().lock(), &to, NewFile::default(), &progress),
        _ => anyhow::bail!("one of the two must be a path"),
    })
    .await?
}

/// An archive that nobody reads to its end is no failure that is told.
fn unread(error: ArchiveError) -> anyhow::Error {
    match error {
        ArchiveError::Output(error) => anyhow::Error::from(error).context(WRITING),
        other => other.into(),
    }
}

fn from_path_to_path(from: &Path, to: &Path, progress: &Progress) -> anyhow::Result<Copied> {
    let metadata = fs::metadata(from).with_context(|| format!("cannot read {}", from.display()))?;
    let to = target(from, to, to.is_dir())?;
    if !metadata.is_dir() {
        let file = replace::open_to_read(from).with_context(|| format!("cannot read {}", from.display()))?;
        progress.expect(metadata.len());
        return store(file, &to, NewFile { mode: Some(metadata.permissions().mode()), owner: None }, progress);
    }
    let resolved = fs::canonicalize(from).with_context(|| format!("cannot read {}", from.display()))?;
    // A relative name has an end that is no path.
    let whole = std::path::absolute(&to).with_context(|| format!("cannot use the path {}", to.display()))?;
    let inside = whole.ancestors().find_map(|parent| fs::canonicalize(parent).ok());
    anyhow::ensure!(
        !inside.is_some_and(|parent| parent.starts_with(&resolved)),
        "{} is inside of {}, so the copy would never end",
        to.display(),
        from.display()
    );
    fs::create_dir_all(&to).with_context(|| format!("cannot make the directory {}", to.display()))?;
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    std::thread::scope(|scope| {
        let packing = scope.spawn(|| tar::pack(from, io::BufWriter::with_capacity(PIECE, writer)));
        let unpacked = tar::unpack(Counted { reader, progress }, &to, tar::Origin::Trusted, &limits());
        let packed = packing.join().map_err(|_| anyhow::anyhow!("packing failed by a defect"))?;
        let done = unpacked?;
        packed?;
        Ok(Copied::tree(&to, done.files, done.bytes))
    })
}

fn store(source: impl Read, to: &Path, new: NewFile, progress: &Progress) -> anyhow::Result<Copied> {
    let cannot_write = || format!("cannot write {}", to.display());
    let mut replacement = Replacement::begin(to, new).with_context(cannot_write)?;
    let count = pump(source, replacement.file(), progress).with_context(cannot_write)?;
    replacement.commit().map(drop).with_context(cannot_write)?;
    Ok(Copied::file(to, count))
}

fn pump(mut source: impl Read, mut out: impl Write, progress: &Progress) -> io::Result<u64> {
    let mut buffer = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        match source.read(&mut buffer)? {
            0 => return out.flush().map(|()| bytes),
            count => {
                out.write_all(&buffer[..count])?;
                progress.add(count);
                bytes += count as u64;
            }
        }
    }
}

struct Counted<'a, R> {
    reader: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.progress.add(count);
        Ok(count)
    }
}
