//! The `read` action (`file-editor` §1).

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
    ops::Range,
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_editor::{binary, documents::Interrupt};
use gloveport_protocol::{ErrorObservation, ExecuteError, FileReadSource, Observation, ReadAction, ReadObservation};
use gloveport_sys::replace;

use super::{
    Files, edit, paths, refused,
    text::{self, LineCount, TextError},
};

/// Most bytes that one answer carries of a file.
pub const ANSWER_LIMIT: u64 = 32 * 1024 * 1024;
/// Content of the observation for a binary file.
pub const BINARY_FILE: &str = "ERROR_BINARY_FILE";

impl Files {
    /// Reads a file. `directory` is where relative paths begin: that of the shell.
    pub(crate) fn read(
        &self,
        action: &ReadAction,
        directory: &Path,
        interrupt: &Interrupt,
    ) -> Result<Observation, ExecuteError> {
        // The reference looks at the path as it is given, so the test does not meet relative ones.
        if action.path.starts_with('/') && binary::is_binary_file(Path::new(&action.path)) {
            return Ok(failed(BINARY_FILE));
        }
        if action.impl_source == FileReadSource::OhAci {
            return Ok(edit::view(&self.editor, action, &action.path, interrupt));
        }
        let path = paths::resolve(&action.path, directory);
        let shown = paths::shown(&path).0;
        let file = match replace::open_to_read(&path) {
            Ok(file) => file,
            Err(error) => return unopened(&error, &path, &shown, directory),
        };
        let content = match media_type(&shown) {
            Some(media_type) => data_url(&file, media_type),
            None => slice(file, action.start, action.end),
        };
        let content = match content {
            Ok(content) => content,
            Err(Unread::NotUtf8) => return Ok(failed(format!("File could not be decoded as utf-8: {shown}."))),
            Err(Unread::TooLarge) => return Ok(failed(too_large(&shown, &path))),
            Err(Unread::Os(error)) => return Err(refused(&error, &path)),
        };
        Ok(Observation::Read(ReadObservation {
            impl_source: FileReadSource::Default,
            ..ReadObservation::new(content, shown)
        }))
    }
}

fn failed(content: impl Into<String>) -> Observation {
    Observation::Error(ErrorObservation::new(content.into()))
}

fn unopened(error: &io::Error, path: &Path, shown: &str, directory: &Path) -> Result<Observation, ExecuteError> {
    if error.kind() == io::ErrorKind::NotFound {
        let directory = directory.display();
        return Ok(failed(format!("File not found: {shown}. Your current working directory is {directory}.")));
    }
    if error.kind() == io::ErrorKind::IsADirectory {
        return Ok(failed(format!("Path is a directory: {shown}. You can only read files")));
    }
    match replace::special_kind(path) {
        // The reference would wait for ever.
        Some(kind) => Ok(failed(format!("Path is a {kind}: {shown}. You can only read files"))),
        None => Err(refused(error, path)),
    }
}

fn too_large(shown: &str, path: &Path) -> String {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!(
        "File is too large to be read at once: {shown} has {size} bytes, and an answer carries at most {ANSWER_LIMIT}. \
         Read some of its lines with start and end, or use a command such as head, tail or grep."
    )
}

/// Type of the files that are shown as data instead of text.
fn media_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension.to_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "bmp" => "image/bmp",
        "gif" => "image/gif",
        "pdf" => "application/pdf",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "ogg" => "audio/ogg",
        _ => return None,
    })
}

enum Unread {
    NotUtf8,
    TooLarge,
    Os(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

impl From<TextError> for Unread {
    fn from(error: TextError) -> Self {
        match error {
            TextError::NotUtf8 => Self::NotUtf8,
            TextError::Read(error) => Self::Os(error),
        }
    }
}

/// The whole content, if it is small enough for one answer.
fn whole(file: &File) -> Result<Option<Vec<u8>>, Unread> {
    let size = file.metadata()?.len();
    if size > ANSWER_LIMIT {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(ANSWER_LIMIT + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= ANSWER_LIMIT).then_some(bytes))
}

fn data_url(file: &File, media_type: &str) -> Result<String, Unread> {
    let bytes = whole(file)?.ok_or(Unread::TooLarge)?;
    let mut url = format!("data:{media_type};base64,");
    STANDARD.encode_string(bytes, &mut url);
    Ok(url)
}

/// The lines that are asked for. A file that is larger than an answer is never held whole.
fn slice(mut file: File, start: i64, end: i64) -> Result<String, Unread> {
    if let Some(bytes) = whole(&file)? {
        let text = text::decode(bytes)?;
        if (start, end) == (0, -1) {
            return Ok(text);
        }
        let mut count = LineCount::default();
        count.add(&text);
        return Ok(text::lines(&text, &range(start, end, count.lines())));
    }
    file.rewind()?;
    let mut count = LineCount::default();
    text::in_pieces(&file, |piece| {
        count.add(piece);
        Ok(())
    })?;
    let wanted = range(start, end, count.lines());
    file.rewind()?;
    let (mut content, mut count) = (String::new(), LineCount::default());
    let mut is_too_large = false;
    text::in_pieces(&file, |piece| {
        if !is_too_large {
            content.push_str(text::within(piece, count.ends(), &wanted));
            is_too_large = content.len() as u64 > ANSWER_LIMIT;
        }
        count.add(piece);
        Ok(())
    })?;
    if is_too_large { Err(Unread::TooLarge) } else { Ok(content) }
}

/// The lines that `start` and `end` mean in a text of `lines` lines (1.2).
fn range(start: i64, end: i64, lines: usize) -> Range<usize> {
    let bounded = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX).min(lines);
    let start = bounded(start);
    if end == -1 {
        return start..lines;
    }
    let begin = start.min(lines.saturating_sub(2));
    begin..bounded(end).max(begin + 1)
}
