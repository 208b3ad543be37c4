//! Documents shown as Markdown (file-editor 3.8).
//!
//! A document is converted on a thread of its own, within a time; few are at once. What a compressed document unpacks
//! to is bounded before it is read.

mod docx;
mod markdown;
mod package;
mod pdf;
mod pptx;
mod xlsx;
mod xml;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use gloveport_text::{binary, encoding, path, python};

/// How long a conversion may take, with the wait for its turn.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Conversions at once. One that takes too long counts until it ends.
const CONVERSIONS: usize = 2;

/// Bytes of a conversion's stack; parsers of nested data call themselves.
const STACK: usize = 16 * 1024 * 1024;

/// What is known of a recording without a service that listens to it.
const NO_TRANSCRIPT: &str = "### Audio Transcript:\nError. Could not transcribe this audio.";

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A text of Word.
    Docx,
    /// A workbook of Excel.
    Xlsx,
    /// Slides of PowerPoint.
    Pptx,
    /// Portable Document Format.
    Pdf,
    /// A recording.
    Audio,
}

impl Format {
    /// The kind of a document by its name, in capital or small letters.
    pub fn of(path: &str) -> Option<Self> {
        Some(match path::extension(path).to_ascii_lowercase().as_str() {
            ".docx" => Self::Docx,
            ".xlsx" => Self::Xlsx,
            ".pptx" => Self::Pptx,
            ".pdf" => Self::Pdf,
            ".mp3" | ".wav" | ".m4a" | ".flac" => Self::Audio,
            _ => return None,
        })
    }
}

/// Why a document can not be shown.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It is not what its name says.
    #[error("the file is not a valid document: {0}")]
    Invalid(String),
    /// What it unpacks to is too large.
    #[error("the unpacked document is larger than {} MB", .0 / (1024 * 1024))]
    Large(usize),
    /// It is too deep or has too many parts.
    #[error("the document is too complex: {0}")]
    Complex(&'static str),
    /// The conversion took too long.
    #[error("the conversion took longer than {} seconds", .0.as_secs_f64())]
    Slow(Duration),
    /// Others that take too long left no room for this one.
    #[error("other conversions did not end within {} seconds", .0.as_secs_f64())]
    Busy(Duration),
    /// The converter failed by itself.
    #[error("the converter failed on this document")]
    Failed,
    /// No thread can be started.
    #[error("cannot start the conversion: {0}")]
    Thread(io::Error),
}

/// Converts documents.
#[derive(Debug)]
pub struct Converter {
    turns: Arc<Turns>,
    time_limit: Duration,
}

impl Default for Converter {
    fn default() -> Self {
        Self { turns: Arc::new(Turns::new(CONVERSIONS)), time_limit: TIME_LIMIT }
    }
}

impl Converter {
    /// The document as Markdown.
    ///
    /// # Errors
    ///
    /// It is damaged, too large or too complex, or there is no answer in time.
    pub fn convert(&self, format: Format, bytes: Vec<u8>) -> Result<String, ConversionError> {
        if bytes.is_empty() {
            return Err(ConversionError::Empty);
        }
        self.apart(move || converted(format, bytes))
    }

    /// Does the work on a thread of its own.
    fn apart(
        &self,
        work: impl FnOnce() -> Result<String, ConversionError> + Send + 'static,
    ) -> Result<String, ConversionError> {
        let deadline = Instant::now() + self.time_limit;
        let turn = self.turns.take(deadline).ok_or(ConversionError::Busy(self.time_limit))?;
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            // The libraries read what others wrote; a defect of theirs ends this conversion and nothing else.
            let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ConversionError::Failed));
            drop(turn);
            // Nobody listens if it took too long.
            let _ = sender.send(result);
        };
        thread::Builder::new().name("document".into()).stack_size(STACK).spawn(run).map_err(ConversionError::Thread)?;
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ConversionError::Slow(self.time_limit)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(ConversionError::Failed),
        }
    }
}

fn converted(format: Format, bytes: Vec<u8>) -> Result<String, ConversionError> {
    let converted = match format {
        Format::Docx => docx::convert(&bytes),
        Format::Xlsx => xlsx::convert(&bytes),
        Format::Pptx => pptx::convert(&bytes),
        Format::Pdf => pdf::convert(&bytes),
        Format::Audio => return Ok(NO_TRANSCRIPT.to_owned()),
    };
    match converted {
        Ok(text) => Ok(tidied(&text)),
        // A text that has the name of a document is shown as it is.
        Err(ConversionError::Invalid(reason)) if !binary::is_binary(&bytes) => match encoding::decode(bytes, None) {
            Ok((text, _)) => Ok(tidied(&text)),
            Err(_) => Err(ConversionError::Invalid(reason)),
        },
        Err(error) => Err(error),
    }
}

/// Without blanks at the ends of lines, and with one empty line at most.
fn tidied(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 && !tidy.ends_with("\n\n") {
            tidy.push('\n');
        }
        tidy.push_str(python::strip_end(line));
    }
    tidy
}

/// How many may work at once.
#[derive(Debug)]
struct Turns {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The right to work.
struct Turn(Arc<Turns>);

impl Turns {
    fn new(free: usize) -> Self {
        Self { free: Mutex::new(free), freed: Condvar::new() }
    }

    fn take(self: &Arc<Self>, deadline: Instant) -> Option<Turn> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let left = deadline.saturating_duration_since(Instant::now());
        let (mut free, waited) =
            self.freed.wait_timeout_while(free, left, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && *free == 0 {
            return None;
        }
        *free -= 1;
        Some(Turn(Arc::clone(self)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_names() {
        for (path, expected) in [
            ("/a.docx", Some(Format::Docx)),
            ("/a.XLSX", Some(Format::Xlsx)),
            ("/a.b.pptx", Some(Format::Pptx)),
            ("/a.Pdf", Some(Format::Pdf)),
            ("/a.mp3", Some(Format::Audio)),
            ("/a.wav", Some(Format::Audio)),
            ("/a.m4a", Some(Format::Audio)),
            ("/a.flac", Some(Format::Audio)),
            ("/a.doc", None),
            ("/pdf", None),
            ("/.pdf", None),
        ] {
            assert_eq!(Format::of(path), expected, "{path}");
        }
    }

    #[test]
    fn empty_lines_and_blanks_at_ends_are_tidied() {
        for (text, expected) in [
            ("a  \n\n\n\nb\t\n", "a\n\nb\n"),
            ("a\n\nb", "a\n\nb"),
            ("a\n \n \x0cb\n\n\x0c", "a\n\n \x0cb\n\n"),
            ("", ""),
        ] {
            assert_eq!(tidied(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_with_the_name_of_a_document_is_shown_and_garbage_is_not() {
        let converter = Converter::default();
        for format in [Format::Docx, Format::Xlsx, Format::Pptx, Format::Pdf] {
            assert_eq!(converter.convert(format, b"hello  \n".to_vec()).unwrap(), "hello\n");
            let error = converter.convert(format, b"PK\x03\x04\0\0\xff".to_vec()).unwrap_err();
            assert!(matches!(error, ConversionError::Invalid(_)), "{format:?}: {error}");
            assert!(matches!(converter.convert(format, Vec::new()), Err(ConversionError::Empty)));
        }
        assert_eq!(converter.convert(Format::Audio, b"RIFF".to_vec()).unwrap(), NO_TRANSCRIPT);
    }

    #[test]
    fn a_defect_of_a_library_ends_one_conversion() {
        let converter = Converter::default();
        for _ in 0..=CONVERSIONS {
            assert!(matches!(converter.apart(|| panic!("a defect")), Err(ConversionError::Failed)));
        }
        assert_eq!(converter.apart(|| Ok("fine".into())).unwrap(), "fine");
    }

    #[test]
    fn conversions_that_do_not_end_are_given_up_and_leave_no_room_until_they_do() {
        let converter = Converter { time_limit: Duration::from_millis(20), ..Converter::default() };
        let (stop, stopped) = mpsc::channel::<()>();
        let stopped = Arc::new(Mutex::new(stopped));
        for _ in 0..CONVERSIONS {
            let stopped = Arc::clone(&stopped);
            let endless = move || {
                let _ = stopped.lock().unwrap().recv();
                Ok(String::new())
            };
            assert!(matches!(converter.apart(endless), Err(ConversionError::Slow(_))));
        }
        let error = converter.apart(|| Ok(String::new())).unwrap_err();
        assert_eq!(error.to_string(), "other conversions did not end within 0.02 seconds");
        drop(stop);
        let patient = Converter { time_limit: Duration::from_mins(1), turns: Arc::clone(&converter.turns) };
        assert_eq!(patient.apart(|| Ok("at last".into())).unwrap(), "at last");
    }
}
