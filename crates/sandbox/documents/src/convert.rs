//! Documents as Markdown, each kind by its own converter.

use gloveport_text::{binary, encoding, path, python};

use crate::{docx, error::ConversionError, pdf, pptx, xlsx};

/// What is known of a recording without a service that listens to it.
pub(crate) const NO_TRANSCRIPT: &str = "### Audio Transcript:\nError. Could not transcribe this audio.";

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

/// The document as Markdown.
pub(crate) fn converted(format: Format, bytes: Vec<u8>) -> Result<String, ConversionError> {
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
        for format in [Format::Docx, Format::Xlsx, Format::Pptx, Format::Pdf] {
            assert_eq!(converted(format, b"hello  \n".to_vec()).unwrap(), "hello\n");
            let error = converted(format, b"PK\x03\x04\0\0\xff".to_vec()).unwrap_err();
            assert!(matches!(error, ConversionError::Invalid(_)), "{format:?}: {error}");
        }
        assert_eq!(converted(Format::Audio, b"RIFF".to_vec()).unwrap(), NO_TRANSCRIPT);
    }
}
