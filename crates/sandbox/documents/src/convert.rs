//! Kinds of documents.

use gloveport_text::path;

#[cfg(not(feature = "documents"))]
use crate::error::ConversionError;

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

/// That this build shows none, but what is known of a recording.
#[cfg(not(feature = "documents"))]
pub(crate) fn converted(format: Format, _bytes: Vec<u8>) -> Result<String, ConversionError> {
    match format {
        Format::Audio => Ok(NO_TRANSCRIPT.to_owned()),
        Format::Docx | Format::Xlsx | Format::Pptx | Format::Pdf => Err(ConversionError::LeftOut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "documents"))]
    #[test]
    fn a_build_without_converters_says_so() {
        for format in [Format::Docx, Format::Xlsx, Format::Pptx, Format::Pdf] {
            let error = converted(format, b"x".to_vec()).unwrap_err().to_string();
            assert!(error.contains("leaves documents out"), "{error}");
        }
        assert_eq!(converted(Format::Audio, b"RIFF".to_vec()).unwrap(), NO_TRANSCRIPT);
    }

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
}
