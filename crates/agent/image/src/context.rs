//! A build folder as an archive, made while it travels.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use bytes::Bytes;
use futures_util::Stream;
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;

/// Size of a piece.
const PIECE: usize = 64 * 1024;
/// Pieces that may wait for whoever reads them.
const WAITING: usize = 8;

/// The archive as a stream. Its thread ends when nobody reads any more.
pub(crate) fn stream(folder: &Path) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let folder = folder.to_path_buf();
    tokio::task::spawn_blocking(move || {
        let mut output = BufWriter::with_capacity(PIECE, Pieces(sender.clone()));
        if let Err(error) = write(&folder, &mut output).and_then(|()| output.flush()) {
            let _nobody_reads = sender.blocking_send(Err(error));
        }
    });
    futures_util::stream::poll_fn(move |context| receiver.poll_recv(context))
}

/// Writes the archive. Everything in it belongs to root; its root is `.`.
pub(crate) fn write(folder: &Path, output: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(output);
    add(&mut archive, folder, Path::new("."))?;
    archive.finish()
}

fn add(archive: &mut Builder<impl Write>, path: &Path, name: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(path)?;
    let mut header = Header::new_gnu();
    header.set_mode(gloveport_platform::mode(&facts));
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(gloveport_platform::modified(&facts).0).unwrap_or_default());
    header.set_size(0);
    if facts.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        return archive.append_link(&mut header, name, fs::read_link(path)?);
    }
    if facts.is_dir() {
        header.set_entry_type(EntryType::Directory);
        archive.append_data(&mut header, name, io::empty())?;
        let mut names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        return names.iter().try_for_each(|inner| add(archive, &path.join(inner), &name.join(inner)));
    }
    header.set_size(facts.len());
    archive.append_data(&mut header, name, File::open(path)?)
}

struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map_err(|_nobody_reads| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use futures_util::{StreamExt as _, TryStreamExt as _};

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/tmp")).unwrap();
        fs::set_permissions(folder.path().join("root/tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(folder.path().join("Dockerfile"), vec![b'x'; 300_000]).unwrap();
        symlink("../nowhere", folder.path().join("root/link")).unwrap();
        folder
    }

    #[tokio::test]
    async fn a_folder_travels_with_links_and_modes_and_belongs_to_root() {
        let folder = folder();
        let bytes: Vec<Bytes> = stream(folder.path()).try_collect().await.unwrap();
        let mut archive = tar::Archive::new(io::Cursor::new(bytes.concat()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            found.push((entry.path().unwrap().display().to_string(), header.mode().unwrap(), entry.size()));
        }
        let names: Vec<&str> =
            found.iter().map(|(name, ..)| name.trim_start_matches("./").trim_end_matches('/')).collect();
        assert_eq!(names, [".", "Dockerfile", "root", "root/link", "root/tmp"]);
        assert_eq!((found[1].2, found[4].1), (300_000, 0o1777));
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_ends_the_thread() {
        let folder = folder();
        let mut stream = Box::pin(stream(folder.path()));
        stream.next().await.unwrap().unwrap();
        drop(stream);
        // The runtime waits for threads that block; this test would not end.
    }
}
