//! Portable documents as plain text, with a form feed between pages.

use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem;
use pdf_extract::{Document, Object, OutputError, extract_text_from_mem_by_pages};

use super::ConversionError;

/// Bytes that all streams of a document may unpack to, and bytes read for that.
const UNPACKED: usize = 128 * 1024 * 1024;

/// Bytes of a stream that is packed in a way which is not measured here.
const UNMEASURED: usize = 16 * 1024;

pub(super) fn convert(bytes: &[u8]) -> Result<String, ConversionError> {
    convert_within(bytes, UNPACKED)
}

fn convert_within(bytes: &[u8], limit: usize) -> Result<String, ConversionError> {
    if !bytes[..bytes.len().min(1024)].windows(5).any(|window| window == b"%PDF-") {
        return Err(ConversionError::Invalid("it has no PDF header".into()));
    }
    let mut measure = Measure { limit, left: limit };
    measure.raw(bytes)?;
    let document = Document::load_mem(bytes).map_err(|error| ConversionError::Invalid(error.to_string()))?;
    measure.streams(&document)?;
    drop(document);
    let pages = extract_text_from_mem_by_pages(bytes).map_err(|error| match error {
        OutputError::PdfError(error) => ConversionError::Invalid(error.to_string()),
        error => ConversionError::Invalid(error.to_string()),
    })?;
    Ok(pages.iter().flat_map(|page| [page.trim(), "\n\n\x0c"]).collect())
}

/// What may still be unpacked. The library that reads the document has no bound of its own.
struct Measure {
    limit: usize,
    left: usize,
}

impl Measure {
    /// Streams as they stand in the file: some are unpacked while the document is loaded.
    fn raw(&mut self, bytes: &[u8]) -> Result<(), ConversionError> {
        for start in memmem::find_iter(bytes, b"stream") {
            let rest = &bytes[start + b"stream".len()..];
            let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
            let Some(data) = rest.strip_prefix(b"\n") else { continue };
            if bytes[..start].ends_with(b"end") {
                continue;
            }
            if is_zlib(data) {
                self.inflate(data, 0)?;
            } else if is_loaded_at_once(&bytes[..start]) {
                // The tables of a document are packed in this way only by those who want to harm.
                return Err(ConversionError::Complex("its tables are packed in an unusual way"));
            }
        }
        Ok(())
    }

    /// Streams as the document names them.
    fn streams(&mut self, document: &Document) -> Result<(), ConversionError> {
        for object in document.objects.values() {
            let Object::Stream(stream) = object else { continue };
            let filters = stream.filters().unwrap_or_default();
            let is_measured = match filters.as_slice() {
                [] => true,
                [filter] => *filter != b"LZWDecode" && *filter != b"ASCII85Decode",
                _ => false,
            };
            if !is_measured && stream.content.len() > UNMEASURED {
                return Err(ConversionError::Complex("it has a large stream that is packed in an unusual way"));
            }
            if is_zlib(&stream.content) {
                self.inflate(&stream.content, 0)?;
            }
        }
        Ok(())
    }

    /// Counts what the data unpacks to, and what that unpacks to.
    fn inflate(&mut self, data: &[u8], depth: usize) -> Result<(), ConversionError> {
        let mut inflater = Decompress::new(true);
        let mut buffer = vec![0; 64 * 1024];
        let mut head = Vec::new();
        loop {
            let (read, written) = (inflater.total_in(), inflater.total_out());
            let from = usize::try_from(read).unwrap_or(usize::MAX).min(data.len());
            let status = inflater.decompress(&data[from..], &mut buffer, FlushDecompress::None);
            let new = usize::try_from(inflater.total_out() - written).unwrap_or(usize::MAX);
            let used = usize::try_from(inflater.total_in() - read).unwrap_or(usize::MAX);
            self.left = self.left.checked_sub(new.saturating_add(used)).ok_or(ConversionError::Large(self.limit))?;
            if depth < 3 {
                head.extend_from_slice(&buffer[..new]);
            }
            match status {
                Ok(Status::Ok) if new > 0 || used > 0 => {}
                // The end, or what is not packed in this way.
                _ => break,
            }
        }
        if is_zlib(&head) {
            return self.inflate(&head, depth + 1);
        }
        Ok(())
    }
}

/// Whether the data begins like a zlib stream.
fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

/// Whether the dictionary at the end belongs to a stream that is unpacked while the document is loaded.
fn is_loaded_at_once(before: &[u8]) -> bool {
    let from = before.len().saturating_sub(4096);
    let dictionary = match memmem::rfind(&before[from..], b" obj") {
        Some(at) => &before[from + at..],
        None => &before[from..],
    };
    let dictionary = unescaped(dictionary);
    let has = |name: &[u8]| memmem::find(&dictionary, name).is_some();
    (has(b"ObjStm") || has(b"XRef")) && has(b"Filter")
}

/// The bytes with those that are written as `#41`.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let escaped = match (first, tail) {
            (b'#', [high, low, ..]) => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        if escaped.is_some() {
            rest = &tail[2..];
        }
        plain.push(escaped.unwrap_or(*first));
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    /// A document whose pages have the given content streams, and the entries of their dictionaries.
    fn document(pages: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
        let mut objects = vec![
            b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
            format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()).into_bytes(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
        ];
        for (page, (entries, content)) in pages.iter().enumerate() {
            objects.push(
                format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>", 5 + 2 * page)
                    .into_bytes(),
            );
            let head = format!("<< /Length {} {entries} >>\nstream\n", content.len());
            objects.push([head.as_bytes(), content, b"\nendstream"].concat());
        }
        let mut file = b"%PDF-1.4\n".to_vec();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes();
        for (number, object) in (1..).zip(&objects) {
            writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
            file.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
            file.extend_from_slice(object);
            file.extend_from_slice(b"\nendobj\n");
        }
        let start = file.len();
        file.extend_from_slice(&table);
        file.extend_from_slice(
            format!("trailer << /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1).as_bytes(),
        );
        file
    }

    fn text(text: &str) -> Vec<u8> {
        format!("BT /F1 12 Tf 20 200 Td ({text}) Tj ET").into_bytes()
    }

    fn packed(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_text_of_pages_is_shown_with_form_feeds() {
        let file = document(&[("", text("Hello World")), ("/Filter /FlateDecode", packed(&text("Page two")))]);
        assert_eq!(convert(&file).unwrap(), "Hello World\n\n\x0cPage two\n\n\x0c");
    }

    #[test]
    fn a_document_that_unpacks_to_too_much_is_refused() {
        const LIMIT: usize = 1024 * 1024;
        let bomb = packed(&vec![b' '; LIMIT + 1]);
        let twice = packed(&bomb);
        for (filter, content) in [("/Filter /FlateDecode", bomb), ("/Filter [/FlateDecode /FlateDecode]", twice)] {
            let file = document(&[(filter, content)]);
            assert!(matches!(convert_within(&file, LIMIT), Err(ConversionError::Large(LIMIT))), "{filter}");
        }
        let file = document(&[("/Filter /LZWDecode", vec![0x80; UNMEASURED + 1])]);
        assert!(matches!(convert(&file), Err(ConversionError::Complex(_))));
        for kind in ["ObjStm", "XRef", "Obj#53tm"] {
            let entries = format!("/Type /{kind} /N 1 /First 4 /Filter /ASCII85Decode");
            let file = document(&[(&entries, vec![b'z'; 100])]);
            assert!(matches!(convert(&file), Err(ConversionError::Complex(_))), "{kind}");
        }
    }

    #[test]
    fn a_damaged_document_is_an_error() {
        for bytes in [&b"%PDF-1.4\n\xff\xfe\0"[..], b"%PDF-1.7\n1 0 obj\n<<\n\0\xff"] {
            assert!(matches!(convert(bytes), Err(ConversionError::Invalid(_))), "{bytes:?}");
        }
    }
}
