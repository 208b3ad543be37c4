//! The `write` action (`file-editor` §2).

use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek as _, Write as _},
    ops::Range,
    os::unix::fs::{MetadataExt as _, fchown},
    path::Path,
};

use gloveport_protocol::{ErrorObservation, ExecuteError, Observation, WriteAction, WriteObservation};
use gloveport_sys::{
    os_error::numbered,
    replace::{self, NewFile, Replaced, Replacement},
};

use super::{
    Files, paths, refused,
    text::{self, LineCount, TextError},
};

/// What came of a `write`.
pub(crate) struct Written {
    pub(crate) result: Result<Observation, ExecuteError>,
    /// To be dropped when the result is told.
    pub(crate) old: Option<Replaced>,
}

impl Files {
    /// Writes a file. `directory` is where relative paths begin: that of the shell. What is dropped last is the old
    /// content.
    pub(crate) fn write(&self, action: &WriteAction, directory: &Path) -> Written {
        let mut old = None;
        let result = self.write_keeping(action, directory, &mut old);
        Written { result, old }
    }

    fn write_keeping(
        &self,
        action: &WriteAction,
        directory: &Path,
        old: &mut Option<Replaced>,
    ) -> Result<Observation, ExecuteError> {
        let path = paths::resolve(&action.path, directory);
        let shown = paths::shown(&path).0;
        // What is there and no directory is told by the system in a moment, with the whole path.
        if let Some(parent) = path.parent().filter(|parent| fs::metadata(parent).is_err()) {
            fs::create_dir_all(parent).map_err(|error| refused(&error, parent))?;
        }
        let new = NewFile { owner: None, ..self.new_file };
        let mut replacement = match Replacement::begin(&path, new) {
            Ok(replacement) => replacement,
            Err(error) => return unopened(&error, &path, &shown),
        };
        match fill(&mut replacement, action) {
            Ok(()) => {}
            Err(TextError::NotUtf8) => return Ok(failed(format!("File could not be decoded as utf-8: {shown}"))),
            Err(TextError::Read(error)) => return Err(ExecuteError::Failed(numbered(&error))),
        }
        let owned = match (replacement.old(), self.new_file.owner) {
            (None, Some(owner)) => give_to(replacement.file(), owner),
            _ => Ok(()),
        };
        *old = Some(replacement.commit().map_err(|error| refused(&error, &path))?);
        if let Err(error) = owned {
            let error = numbered(&error);
            return Ok(failed(format!(
                "File {shown} written, but failed to change ownership and permissions: {error}"
            )));
        }
        Ok(Observation::Write(WriteObservation::new(String::new(), shown)))
    }
}

fn failed(content: String) -> Observation {
    Observation::Error(ErrorObservation::new(content))
}

fn unopened(error: &io::Error, path: &Path, shown: &str) -> Result<Observation, ExecuteError> {
    if error.kind() == io::ErrorKind::NotFound {
        return Ok(failed(format!("File not found: {shown}")));
    }
    if error.kind() == io::ErrorKind::IsADirectory {
        return Ok(failed(format!("Path is a directory: {shown}. You can only write to files")));
    }
    match replace::special_kind(path) {
        Some(kind) => Ok(failed(format!("Path is a {kind}: {shown}. You can only write to files"))),
        None => Err(refused(error, path)),
    }
}

fn give_to(file: &File, (user, group): (u32, u32)) -> io::Result<()> {
    let has = file.metadata()?;
    if (has.uid(), has.gid()) == (user, group) { Ok(()) } else { fchown(file, Some(user), Some(group)) }
}

/// Writes the new lines between those of the old file that stay.
fn fill(replacement: &mut Replacement, action: &WriteAction) -> Result<(), TextError> {
    let old = replacement.old().map(File::try_clone).transpose()?;
    let mut out = BufWriter::with_capacity(64 * 1024, replacement.file());
    let Some(mut old) = old else {
        out.write_all(action.content.as_bytes())?;
        out.write_all(b"\n")?;
        return Ok(out.flush()?);
    };
    // All of the old file must be text, even if nothing of it stays.
    let mut count = LineCount::default();
    old.rewind()?;
    text::in_pieces(&old, |piece| {
        count.add(piece);
        Ok(())
    })?;
    let lines = count.lines();
    let before = if action.start == 0 { 0..0 } else { 0..python_index(action.start, lines) };
    let after = if action.end == -1 { lines..lines } else { python_index(action.end, lines)..lines };
    copy(&mut old, &before, &mut out)?;
    out.write_all(action.content.as_bytes())?;
    out.write_all(b"\n")?;
    copy(&mut old, &after, &mut out)?;
    Ok(out.flush()?)
}

/// Copies lines of the old file.
fn copy(old: &mut File, wanted: &Range<usize>, out: &mut impl io::Write) -> Result<(), TextError> {
    if wanted.is_empty() {
        return Ok(());
    }
    old.rewind()?;
    let mut count = LineCount::default();
    text::in_pieces(old, |piece| {
        out.write_all(text::within(piece, count.ends(), wanted).as_bytes())?;
        count.add(piece);
        Ok(())
    })
}

/// An index of a Python slice: negative ones count from the end, and what is out of range is clamped.
fn python_index(index: i64, length: usize) -> usize {
    match usize::try_from(index) {
        Ok(index) => index.min(length),
        Err(_) => length.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}
