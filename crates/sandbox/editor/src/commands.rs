//! What each command does with a file that was checked (file-editor 3.5 and 3.6).

use std::{path::Path, sync::Arc};

use memchr::memmem;

use crate::{
    diff,
    documents::{Format, Interrupt},
    editor::Editor,
    encoding::TextEncoding,
    error::{EditorError, Hint, LineNumbers},
    lint::{self, Linter},
    listing, output, python,
    request::{EditReport, ViewRange},
    source::{self, Source},
};

/// Lines shown before and behind an edit.
const WINDOW: usize = 4;

const REVIEW_REPLACED: &str =
    "Review the changes and make sure they are as expected. Edit the file again if necessary.";
const REVIEW_INSERTED: &str = "Review the changes and make sure they are as expected (correct indentation, no \
    duplicate lines, etc). Edit the file again if necessary.";

/// An edit that is done, and how it is told.
pub(crate) struct Edit {
    /// None for a new file.
    old: Option<Arc<String>>,
    new: Arc<String>,
    told: Told,
}

enum Told {
    Whole(String),
    /// With a judgement between the two, if there is a linter.
    Reviewed(String, &'static str),
}

impl Edit {
    pub(crate) fn report(self, path: &str, linter: Option<&dyn Linter>) -> EditReport {
        let old = self.old.as_ref().map_or("", |text| text.as_str());
        let diff = diff::unified(path, old, &self.new);
        let output = match self.told {
            Told::Whole(output) => output,
            Told::Reviewed(mut output, review) => {
                if let Some(linter) = linter {
                    output.push('\n');
                    output.push_str(&lint::report(linter, Path::new(path), old, &self.new));
                    output.push('\n');
                }
                output.push_str(review);
                output
            }
        };
        EditReport { output, diff, old_text: self.old, new_text: Some(self.new) }
    }
}

/// Shows a file, a document or a directory.
pub(crate) fn view(
    editor: &Editor,
    path: &str,
    is_directory: bool,
    range: Option<ViewRange<'_>>,
    interrupt: &Interrupt,
) -> Result<EditReport, EditorError> {
    let range = range.filter(|range| !range.is_empty());
    let output = if is_directory {
        if let Some(range) = range {
            return Err(invalid("view_range", &range, Hint::RangeOfDirectory));
        }
        let listing = listing::list(&editor.options.reach, path)?;
        output::directory(&listing.paths, path, listing.hidden)
    } else if let Some(format) = Format::of(path) {
        let file = source::open(&editor.options.reach, path)?;
        let text = editor
            .options
            .documents
            .markdown(format, file, interrupt)
            .map_err(|error| EditorError::Conversion { path: path.to_owned(), reason: error.to_string() })?;
        output::markdown(&text, path)
    } else {
        let source = editor.read(path)?;
        match range {
            Some(range) => part(&source.text, path, range)?,
            None => output::numbered(&source.text, path, 1),
        }
    };
    Ok(EditReport { output, diff: String::new(), old_text: None, new_text: None })
}

/// The lines of a range.
fn part(text: &str, path: &str, range: ViewRange<'_>) -> Result<String, EditorError> {
    let ViewRange::Lines(&[first, second]) = range else {
        return Err(invalid("view_range", &range, Hint::RangeType));
    };
    let lines = python::lines(text);
    let begin = match usize::try_from(first) {
        Ok(begin) if (1..=lines).contains(&begin) => begin,
        _ => return Err(invalid("view_range", &range, Hint::RangeFirst { first, lines })),
    };
    let mut note = String::new();
    let end = match usize::try_from(second) {
        Ok(end) if end > lines => {
            note = format!("NOTE: We only show up to {lines} since there're only {lines} lines in this file.\n");
            lines
        }
        Ok(end) if end >= begin => end,
        Err(_) if second == -1 => lines,
        _ => return Err(invalid("view_range", &range, Hint::RangeSecond { first, second })),
    };
    let shown = python::joined_lines(slice(text, begin - 1, end));
    Ok(note + &output::numbered(&shown, path, begin))
}

/// Lines from the 0-based `first` to before `end`, with their LF.
fn slice(text: &str, first: usize, end: usize) -> &str {
    let rest = &text[python::line_start(text, first)..];
    &rest[..python::line_start(rest, end - first)]
}

/// Makes a new file.
pub(crate) fn create(editor: &Editor, path: &str, text: Option<&str>) -> Result<Edit, EditorError> {
    let text = text.ok_or(EditorError::MissingParameter { parameter: "file_text", command: "create" })?;
    editor.write(path, text, TextEncoding::Utf8)?;
    let new = Arc::new(text.to_owned());
    editor.history.push(path, Arc::clone(&new), TextEncoding::Utf8);
    Ok(Edit { old: None, new, told: Told::Whole(format!("File created successfully at: {path}")) })
}

/// Replaces the only occurrence of a text.
pub(crate) fn replace(
    editor: &Editor,
    path: &str,
    old_str: Option<&str>,
    new_str: Option<&str>,
) -> Result<Edit, EditorError> {
    let old_str = old_str.ok_or(EditorError::MissingParameter { parameter: "old_str", command: "str_replace" })?;
    if new_str == Some(old_str) {
        return Err(invalid("new_str", &old_str, Hint::Same));
    }
    let source = editor.read(path)?;
    let (at, old_str, new_str) = find(&source.text, path, old_str, new_str.unwrap_or_default())?;
    let end = at + old_str.len();
    let new = [&source.text[..at], new_str, &source.text[end..]].concat();
    editor.write(path, &new, source.encoding)?;

    let first = (python::newlines(&source.text[..at]) + 1).saturating_sub(WINDOW);
    let last = python::newlines(&source.text[..at]) + 1 + WINDOW + python::newlines(new_str);
    let shown = output::numbered(
        slice(&python::universal_newlines(&new), first, last),
        &format!("a snippet of {path}"),
        first + 1,
    );
    let told = Told::Reviewed(format!("The file {path} has been edited. {shown}"), REVIEW_REPLACED);
    Ok(remembered(editor, path, source, new, told))
}

/// Where the text occurs, and what is replaced by what: as given, or without white space around it.
fn find<'a>(
    text: &str,
    path: &str,
    old_str: &'a str,
    new_str: &'a str,
) -> Result<(usize, &'a str, &'a str), EditorError> {
    let (trimmed_old, trimmed_new) = (python::strip(old_str), python::strip(new_str));
    let is_trimmed = trimmed_old != old_str || trimmed_new != new_str;
    for (old_str, new_str) in
        [(old_str, new_str), (trimmed_old, trimmed_new)].into_iter().take(1 + usize::from(is_trimmed))
    {
        match occurrence(text, old_str) {
            Ok(Some(at)) => return Ok((at, old_str, new_str)),
            Ok(None) => {}
            Err(lines) => return Err(EditorError::ManyMatches { old_str: old_str.to_owned(), lines }),
        }
    }
    Err(EditorError::NoMatch { old_str: trimmed_old.to_owned(), path: path.to_owned() })
}

/// The only place where a text occurs; the lines of all places if there are more.
fn occurrence(text: &str, wanted: &str) -> Result<Option<usize>, LineNumbers> {
    let mut numbers = LineNumbers::default();
    if wanted.is_empty() {
        if text.is_empty() {
            return Ok(Some(0));
        }
        // Nothing occurs at every place, and so in every line.
        let lines = python::newlines(text) + 1;
        let _ = (1..=lines).all(|line| numbers.push(line));
        return Err(numbers);
    }
    let mut places = memmem::find_iter(text.as_bytes(), wanted.as_bytes());
    let Some(first) = places.next() else { return Ok(None) };
    let Some(second) = places.next() else { return Ok(Some(first)) };
    let (mut line, mut from) = (1, 0);
    for place in [first, second].into_iter().chain(places) {
        line += python::newlines(&text[from..place]);
        from = place;
        if !numbers.push(line) {
            break;
        }
    }
    Err(numbers)
}

/// Inserts lines behind the line with the given number.
pub(crate) fn insert(
    editor: &Editor,
    path: &str,
    line: Option<i64>,
    new_str: Option<&str>,
) -> Result<Edit, EditorError> {
    let missing = |parameter| EditorError::MissingParameter { parameter, command: "insert" };
    let line = line.ok_or_else(|| missing("insert_line"))?;
    let new_str = new_str.ok_or_else(|| missing("new_str"))?;
    let source = editor.read(path)?;
    let lines = python::lines(&source.text);
    let before = match usize::try_from(line) {
        Ok(before) if before <= lines => before,
        _ => return Err(invalid("insert_line", &line, Hint::InsertLine(lines))),
    };
    let at = python::line_start(&source.text, before);
    let new = [&source.text[..at], new_str, "\n", &source.text[at..]].concat();
    editor.write(path, &new, source.encoding)?;

    let new = python::into_universal_newlines(new);
    let pieces = python::newlines(new_str) + 1;
    let first = before.saturating_sub(WINDOW);
    let last = (lines + pieces).min(before + WINDOW + pieces);
    let shown = output::numbered(slice(&new, first, last), "a snippet of the edited file", first + 1);
    let told = Told::Reviewed(format!("The file {path} has been edited. {shown}"), REVIEW_INSERTED);
    Ok(remembered(editor, path, source, new, told))
}

/// An edit that can be undone.
fn remembered(editor: &Editor, path: &str, source: Source, new: String, told: Told) -> Edit {
    let old = Arc::new(source.text);
    editor.history.push(path, Arc::clone(&old), source.encoding);
    Edit { old: Some(old), new: Arc::new(new), told }
}

/// Puts back what a file was before its last edit.
pub(crate) fn undo(editor: &Editor, path: &str) -> Result<Edit, EditorError> {
    let source = editor.read(path)?;
    let state = editor.history.newest(path).ok_or_else(|| EditorError::NoHistory(path.to_owned()))?;
    editor.write(path, &state.text, state.encoding)?;
    editor.history.forget(path, &state);
    let shown = output::numbered(&state.text, path, 1);
    let told = Told::Whole(format!("Last edit to {path} undone successfully. {shown}"));
    Ok(Edit { old: Some(Arc::new(source.text)), new: state.text, told })
}

fn invalid(parameter: &'static str, value: &dyn ToString, hint: Hint) -> EditorError {
    EditorError::InvalidParameter { parameter, value: value.to_string(), hint }
}
