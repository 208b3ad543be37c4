//! What a server writes. It keeps the file bounded by giving it another name and beginning a new one.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId};

use crate::{
    fault::{self, blocking},
    lock,
    state::{EARLIER_LOG, LOG, State},
    view,
};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Pause between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(100);
/// Lines of a log that an error shows.
const SHOWN: usize = 20;
/// Bytes of them at most.
const SHOWN_BYTES: u64 = 8 * 1024;

/// The last lines of a server's log, for an error about it.
pub(crate) fn last_lines(directory: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(directory.join(LOG))?;
        let start = file.metadata()?.len().saturating_sub(SHOWN_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join("\n"))
    };
    read().unwrap_or_default()
}

/// The log of a sandbox.
pub(crate) async fn stream(state: State, id: SandboxId, options: LogOptions) -> Result<LogStream, ProviderError> {
    let directory = state.sandbox(&id);
    let reader = blocking(move || {
        let path = directory.join(LOG);
        open(&directory, options).map_err(fault::file("read", &path))?.ok_or(ProviderError::NotFound(id))
    })
    .await?;
    Ok(stream::unfold(Some(reader), next).boxed())
}

struct Reader {
    directory: PathBuf,
    /// What is still to be read, the oldest first.
    files: VecDeque<File>,
    follow: bool,
}

fn open(directory: &Path, options: LogOptions) -> io::Result<Option<Reader>> {
    let find = |name: &str| match File::open(directory.join(name)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    // In this order: a log that gets its other name in between is there twice and not missing.
    let Some(current) = find(LOG)? else { return Ok(None) };
    let mut files: VecDeque<File> = find(EARLIER_LOG)?.into_iter().chain([current]).collect();
    if let Some(lines) = options.tail {
        let mut missing = lines;
        let mut kept = VecDeque::new();
        while let Some(mut file) = files.pop_back() {
            missing = seek_lines(&mut file, missing)?;
            kept.push_front(file);
            if missing == 0 {
                break;
            }
        }
        files = kept;
    }
    Ok(Some(Reader { directory: directory.to_owned(), files, follow: options.follow }))
}

/// Goes to the beginning of the last `wanted` lines of a file; answers how many lines are missing.
fn seek_lines(file: &mut File, wanted: usize) -> io::Result<usize> {
    let mut end = file.metadata()?.len();
    if wanted == 0 {
        file.seek(SeekFrom::Start(end))?;
        return Ok(0);
    }
    let mut found = 0;
    let mut first = true;
    let mut block = vec![0; PIECE];
    while end > 0 {
        let length = usize::try_from(end).unwrap_or(PIECE).min(PIECE);
        let start = end - length as u64;
        file.seek(SeekFrom::Start(start))?;
        let block = block.get_mut(..length).unwrap_or_default();
        file.read_exact(block)?;
        for (at, byte) in block.iter().enumerate().rev() {
            if *byte != b'\n' {
                continue;
            }
            // The newline at the very end closes the last line and begins none.
            if first && at + 1 == length {
                continue;
            }
            found += 1;
            if found == wanted {
                file.seek(SeekFrom::Start(start + at as u64 + 1))?;
                return Ok(0);
            }
        }
        first = false;
        end = start;
    }
    file.seek(SeekFrom::Start(0))?;
    // The first line of a file has no newline before it.
    Ok(wanted - found - usize::from(!first))
}

async fn next(reader: Option<Reader>) -> Option<(Result<Bytes, ProviderError>, Option<Reader>)> {
    let mut reader = reader?;
    loop {
        // Looked at before the reading: what comes after the end of the sandbox is nothing.
        let step = blocking(move || {
            let lives = view::is_locked(&reader.directory);
            let piece = reader.read().map_err(fault::file("read", &reader.directory.join(LOG)))?;
            Ok((reader, lives, piece))
        });
        let (back, lives, piece) = match step.await {
            Ok(step) => step,
            Err(error) => return Some((Err(error), None)),
        };
        reader = back;
        if !piece.is_empty() {
            return Some((Ok(piece), Some(reader)));
        }
        if !(reader.follow && lives) {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Reader {
    /// The next piece; empty at the end of what is there.
    fn read(&mut self) -> io::Result<Bytes> {
        let mut buffer = vec![0; PIECE];
        while let Some(mut file) = self.files.front() {
            let count = file.read(&mut buffer)?;
            if count > 0 {
                buffer.truncate(count);
                return Ok(buffer.into());
            }
            if self.files.len() > 1 {
                self.files.pop_front();
            } else if self.follow && !lock::is_at(file, &self.directory.join(LOG)) {
                // It has its other name now. What was written before that is read once more, then comes the new one.
                let Ok(new) = File::open(self.directory.join(LOG)) else { break };
                self.files.push_back(new);
            } else {
                break;
            }
        }
        Ok(Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn text(reader: &mut Reader) -> String {
        let mut bytes = Vec::new();
        loop {
            let piece = reader.read().unwrap();
            if piece.is_empty() {
                return String::from_utf8(bytes).unwrap();
            }
            bytes.extend_from_slice(&piece);
        }
    }

    #[test]
    fn the_last_lines_are_found_across_both_files() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(EARLIER_LOG), "1\n2\n3\n").unwrap();
        fs::write(directory.path().join(LOG), "4\n5\n").unwrap();
        for (tail, expected) in [
            (None, "1\n2\n3\n4\n5\n"),
            (Some(0), ""),
            (Some(1), "5\n"),
            (Some(2), "4\n5\n"),
            (Some(3), "3\n4\n5\n"),
            (Some(9), "1\n2\n3\n4\n5\n"),
        ] {
            let mut reader = open(directory.path(), LogOptions { follow: false, tail }).unwrap().unwrap();
            assert_eq!(text(&mut reader), expected, "{tail:?}");
        }
    }

    #[test]
    fn lines_that_are_longer_than_a_piece_are_counted_once() {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{}\n", "x".repeat(PIECE - 1));
        fs::write(directory.path().join(LOG), line.repeat(3)).unwrap();
        let mut reader = open(directory.path(), LogOptions { follow: false, tail: Some(2) }).unwrap().unwrap();
        assert_eq!(text(&mut reader).len(), 2 * PIECE);
    }

    #[test]
    fn a_follower_goes_on_in_the_new_file_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (log, earlier) = (directory.path().join(LOG), directory.path().join(EARLIER_LOG));
        fs::write(&log, "a\n").unwrap();
        let mut reader = open(directory.path(), LogOptions { follow: true, tail: None }).unwrap().unwrap();
        assert_eq!(text(&mut reader), "a\n");
        File::options().append(true).open(&log).unwrap().write_all(b"b\n").unwrap();
        fs::rename(&log, &earlier).unwrap();
        fs::write(&log, "c\n").unwrap();
        assert_eq!(text(&mut reader), "b\nc\n");
    }
}
