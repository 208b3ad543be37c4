//! Documents as Markdown, each kind by its own converter.

use gloveport_text::{binary, encoding, python};

use crate::{Format, convert::NO_TRANSCRIPT, docx, error::ConversionError, pdf, pptx, xlsx};

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
