//! Layers, one after the other, as one tree.
//!
//! | file | idea |
//! |---|---|
//! | `compression` | what layers are compressed with |
//! | `stream` | their bytes, made by one thread and read by another |
//! | `header`, `extended`, `sparse` | entries of tar streams |
//! | `index` | where the files of an archive are |
//! | `names` | names of entries, and signs that something is gone |
//! | `entries` | entries as files, directories and links |
//! | `tree`, `remove` | the tree, which nothing leads out of |

mod compression;
mod entries;
mod error;
mod extended;
mod header;
pub(crate) mod index;
mod names;
mod remove;
mod sparse;
mod stream;
mod tree;

use std::{
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use compression::Compression;
use entries::{Account, Entries, Gives};
use error::LayerError;
use stream::{Budget, MakeError, Maker, Stream};
use tree::Tree;

use crate::{
    digest::{Digest, Hashing, Passing},
    error::ImageError,
    limits::Limits,
    owners::Files,
};

/// Bytes that are read of a stored layer at once.
const PIECE: usize = 256 * 1024;

/// Unpacks the layers of one image.
#[derive(Debug)]
pub(crate) struct Unpacking {
    path: PathBuf,
    entries: Entries,
    /// Unpacked bytes of all layers so far, as archives.
    unpacked: u64,
    limits: Limits,
    stop: Arc<AtomicBool>,
}

/// A layer as it is stored.
pub(crate) struct Layer<R> {
    /// Its number, from 1 on.
    pub(crate) number: usize,
    pub(crate) input: R,
    /// What its stored bytes must be, unless that was checked before.
    pub(crate) stored: Option<Digest>,
    /// What its unpacked bytes must be.
    pub(crate) unpacked: Digest,
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Bytes of all files of all layers.
    pub(crate) bytes: u64,
    /// Device nodes that were left out.
    pub(crate) left_out: u64,
}

impl Unpacking {
    /// Into a directory that is there and empty, until `stop` is set. Files are given to their owners by somebody else later, or now
    /// where this is root.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened.
    pub(crate) fn new(
        path: &Path,
        limits: Limits,
        stop: Arc<AtomicBool>,
        gives_later: bool,
    ) -> Result<Self, ImageError> {
        let account =
            Account { entries: 0, most_entries: limits.entries, bytes: 0, most_bytes: limits.unpacked, left_out: 0 };
        let gives = match (gives_later, rustix::process::geteuid().is_root()) {
            (true, _) => Gives::Later,
            (false, true) => Gives::Now,
            (false, false) => Gives::Never,
        };
        let tree = Tree::open(path).map_err(|error| in_layer(error, 0, path))?;
        let entries = Entries::new(tree, account, gives);
        Ok(Self { path: path.to_owned(), entries, unpacked: 0, limits, stop })
    }

    /// Unpacks the next layer.
    ///
    /// # Errors
    ///
    /// It is damaged, has entries that cannot be unpacked, or is not the one that was expected; a bound is reached; the
    /// disk is full. The tree is of no use then.
    pub(crate) fn layer(&mut self, layer: Layer<impl Read + Send>) -> Result<(), ImageError> {
        let Layer { number, input, stored, unpacked } = layer;
        let budget = Budget {
            left: self.limits.unpacked.saturating_sub(self.unpacked),
            limit: self.limits.unpacked,
            stop: &Arc::clone(&self.stop),
        };
        let (maker, stream) = stream::ends();
        self.entries.tree.begin_layer();
        let (made, taken) = thread::scope(|scope| {
            let making = scope.spawn(|| make(input, stored.is_some(), maker, &budget));
            let taken = take(&mut self.entries, stream);
            // A decompressor that panics has met bytes that it cannot read.
            let made = making.join().unwrap_or_else(|_| {
                Err(MakeError::Input(std::io::Error::other("it is compressed in a way that cannot be read")))
            });
            (made, taken)
        });
        let made = made.map_err(|error| match error {
            MakeError::Image(error) => LayerError::Image(error),
            MakeError::Input(error) => LayerError::damaged(&format!("it cannot be read or decompressed: {error}")),
        });
        let passed = match (made, taken) {
            (Ok(Some(passed)), Ok(())) => passed,
            (Ok(Some(_) | None), taken) => {
                let error = taken.err().unwrap_or_else(|| LayerError::damaged("it was not read to its end"));
                return Err(in_layer(error, number, &self.path));
            }
            (Err(error), _) => return Err(in_layer(error, number, &self.path)),
        };
        self.unpacked = self.unpacked.saturating_add(passed.unpacked.bytes());
        let what = |form: &str| format!("layer {number} of the image, {form},");
        // What is not compressed is hashed once.
        let found = passed.unpacked.digest();
        if let Some(expected) = stored {
            same(what("as it is stored"), expected, passed.stored.map_or(found, Passing::digest))?;
        }
        same(what("unpacked"), unpacked, found)
    }

    /// Sets the times of directories. Beside the summary are those files that are still to be given to others.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub(crate) fn finish(self) -> Result<(Summary, Files), ImageError> {
        let (account, given) = self.entries.finish().map_err(|error| in_layer(error, 0, &self.path))?;
        Ok((Summary { bytes: account.bytes, left_out: account.left_out }, given))
    }
}

fn same(what: String, expected: Digest, found: Digest) -> Result<(), ImageError> {
    if expected == found {
        return Ok(());
    }
    Err(ImageError::Digest { what, expected: expected.to_string(), found: found.to_string() })
}

struct Passed {
    /// `None` if it was not asked for, or is the same as what was unpacked.
    stored: Option<Passing>,
    unpacked: Passing,
}

fn make(input: impl Read, hashed: bool, maker: Maker, budget: &Budget<'_>) -> Result<Option<Passed>, MakeError> {
    let mut input = BufReader::with_capacity(PIECE, input);
    let first = input.fill_buf().map_err(MakeError::Input)?;
    let compression = Compression::of(first).map_err(|reason| MakeError::Input(std::io::Error::other(reason)))?;
    if compression == Compression::None || !hashed {
        let made = maker.run(&mut *compression.reader(&mut input), budget)?;
        return Ok(made.map(|unpacked| Passed { stored: None, unpacked }));
    }
    let mut input = BufReader::with_capacity(PIECE, Hashing::new(input));
    let made = maker.run(&mut *compression.reader(&mut input), budget)?;
    Ok(made.map(|unpacked| Passed { stored: Some(input.into_inner().passed()), unpacked }))
}

/// Takes all entries of a layer, and reads it to its end.
fn take(entries: &mut Entries, mut stream: Stream) -> Result<(), LayerError> {
    while let Some(entry) = header::next(&mut stream)? {
        entries.take(&entry, &mut stream).map_err(|error| error.at(&entry.name))?;
    }
    stream.finish();
    Ok(())
}

fn in_layer(error: LayerError, layer: usize, path: &Path) -> ImageError {
    match error {
        LayerError::Refused { entry, reason } => ImageError::Layer { layer, entry, reason },
        LayerError::Full => ImageError::Full { path: path.to_owned(), needed: None },
        LayerError::Image(error) => error,
    }
}
