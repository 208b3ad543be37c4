//! Documents made by hand, and the program that reads them.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs::File,
    io::{Cursor, Seek as _, Write as _},
    path::PathBuf,
};

use gloveport_documents::{Format, Interrupt, ReadError, Reader, choose_program};
pub(crate) use gloveport_testing::{pdf, pdf_stream, ten_fold_pdf};
use zip::{ZipWriter, write::SimpleFileOptions};

/// The program that cargo builds beside the tests.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/document_reader");
    assert!(program.exists(), "cargo builds {} with all tests of the crate", program.display());
    program
}

pub(crate) fn reader() -> Reader {
    choose_program(program());
    Reader::default()
}

pub(crate) fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    file
}

pub(crate) fn markdown(reader: &Reader, format: Format, content: &[u8]) -> Result<String, ReadError> {
    reader.markdown(format, file(content), &Interrupt::default())
}

/// A PDF of one page that draws the form of object 5; other objects follow that.
pub(crate) fn page_with_forms(forms: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /XObject << /F 5 0 R >> >> /Contents 4 0 R >>"
            .to_owned(),
        pdf_stream("", "/F Do"),
    ];
    objects.extend(forms);
    pdf(&objects)
}

/// A form that may draw the one of object `next`.
pub(crate) fn form(next: usize, content: &str) -> String {
    let entries =
        format!("/Type /XObject /Subtype /Form /BBox [0 0 300 300] /Resources << /XObject << /F {next} 0 R >> >>");
    pdf_stream(&entries, content)
}

/// An honest PDF of one page.
pub(crate) fn honest(text: &str) -> Vec<u8> {
    pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>"
            .to_owned(),
        pdf_stream("", &format!("BT /F1 12 Tf 20 100 Td ({text}) Tj ET")),
    ])
}

/// A document of the given parts, packed.
pub(crate) fn package(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A text of Word with this in its body.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    package(&[("word/document.xml", &format!("<w:document><w:body>{body}</w:body></w:document>"))])
}

/// A workbook of one sheet, with these shared strings.
pub(crate) fn xlsx(sheet: &str, strings: &str) -> Vec<u8> {
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let list = "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>";
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id='{id}' Type='{relations}/{kind}' Target='{target}'/>")
    };
    package(&[
        ("[Content_Types].xml", "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"),
        ("_rels/.rels", &format!("{list}{}</Relationships>", relation("r1", "officeDocument", "xl/workbook.xml"))),
        (
            "xl/workbook.xml",
            &format!(
                "<workbook xmlns='{main}' xmlns:r='{relations}'><sheets><sheet name='S' sheetId='1' r:id='r1'/></sheets>\
                 </workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            &format!(
                "{list}{}{}</Relationships>",
                relation("r1", "worksheet", "worksheets/sheet1.xml"),
                relation("r2", "sharedStrings", "sharedStrings.xml")
            ),
        ),
        ("xl/worksheets/sheet1.xml", sheet),
        ("xl/sharedStrings.xml", strings),
    ])
}
