//! Any bytes as a document: the child that reads it may come to any end, and whoever started it gets an answer or an
//! error in time, of a bounded size.
//!
//! The first byte chooses what is done. A package is put together here from its parts, which have a NUL between them, so
//! that a change of one byte reaches the parsers of XML and not only the checksum of the archive. The child is this very
//! program; what it runs does not guide the fuzzer.
#![no_main]

// Each is read by a process of its own.
// smoke-runs: 1000

use std::{
    io::{self, Cursor, Seek as _, Write as _},
    process,
    time::{Duration, Instant},
};

use gloveport_documents::{DrawError, Format, Interrupt, Page, ReadError, Reader, choose_program, run_if_asked};
use libfuzzer_sys::fuzz_target;
use zip::{ZipWriter, write::SimpleFileOptions};

/// Time for one document. Together with the start of its child it is told from a hang.
const WORK: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(5);

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fuzz_target!(
    init: {
        // A child of the fuzzer. How it ends does not matter, only what it told before.
        if run_if_asked(std::env::args_os()).is_some() {
            process::exit(0);
        }
        choose_program("/proc/self/exe");
    },
    |data: &[u8]| {
        let Some((choice, content)) = data.split_first() else { return };
        let parts: Vec<&[u8]> = content.split(|byte| *byte == 0).collect();
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        match choice % 8 {
            0 => show(Format::Pdf, content),
            1 => draw(content),
            2 => show(Format::Docx, content),
            3 => show(Format::Xlsx, content),
            4 => show(Format::Pptx, content),
            5 => show(
                Format::Docx,
                &package(&[
                    ("word/document.xml", part(0)),
                    ("word/numbering.xml", part(1)),
                    ("word/styles.xml", part(2)),
                    ("word/_rels/document.xml.rels", part(3)),
                ]),
            ),
            6 => show(Format::Xlsx, &workbook(part(0), part(1), part(2))),
            _ => show(
                Format::Pptx,
                &package(&[
                    ("ppt/presentation.xml", part(0)),
                    ("ppt/_rels/presentation.xml.rels", part(1)),
                    ("ppt/slides/slide1.xml", part(2)),
                    ("ppt/slides/_rels/slide1.xml.rels", part(3)),
                ]),
            ),
        }
    }
);

fn show(format: Format, content: &[u8]) {
    let began = Instant::now();
    match reader().markdown(format, file(content), &Interrupt::default()) {
        Ok(text) => assert!(text.len() <= 4 * 1024 * 1024, "{} bytes", text.len()),
        Err(error) => check(&error),
    }
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
}

fn draw(content: &[u8]) {
    let began = Instant::now();
    let mut pages = 0;
    let drawn = reader().draw(file(content), &Interrupt::default(), |page| {
        pages += 1;
        match page {
            Page::Picture(mut picture) => io::copy(&mut picture.png, &mut io::sink()).map(drop),
            Page::Note(_) => Ok(()),
        }
    });
    match drawn {
        Ok(()) => {}
        Err(DrawError::Read(error)) => check(&error),
        Err(DrawError::Output(error)) => panic!("nothing refuses a page: {error}"),
    }
    assert!(pages <= 201 && began.elapsed() < LIMIT, "{pages} {:?}", began.elapsed());
}

/// An error is the document's, not that of whoever reads it.
fn check(error: &ReadError) {
    match error {
        ReadError::Refused(reason) => assert!(!reason.is_empty() && reason.len() <= 4 * 1024, "{reason}"),
        ReadError::Slow(_) | ReadError::Memory(_) | ReadError::Deep => {}
        // By a signal; an exit without an answer would be a defect of the child.
        ReadError::Ended(end) => assert!(!end.contains("exit code"), "{end}"),
        other => panic!("{other}"),
    }
}

fn reader() -> Reader {
    Reader::default().within(LIMIT, WORK)
}

fn file(content: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("a file for the input");
    file.write_all(content).and_then(|()| file.rewind()).expect("room for the input");
    file
}

fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a part");
        writer.write_all(content).expect("room for the part");
    }
    writer.finish().expect("a package").into_inner()
}

fn workbook(sheet: &[u8], strings: &[u8], styles: &[u8]) -> Vec<u8> {
    let list = "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>";
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id='{id}' Type='{RELATIONS}/{kind}' Target='{target}'/>")
    };
    let first = format!("{list}{}</Relationships>", relation("r1", "officeDocument", "xl/workbook.xml"));
    let second = format!(
        "{list}{}{}{}</Relationships>",
        relation("r1", "worksheet", "worksheets/sheet1.xml"),
        relation("r2", "sharedStrings", "sharedStrings.xml"),
        relation("r3", "styles", "styles.xml")
    );
    let book = format!(
        "<workbook xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' xmlns:r='{RELATIONS}'>\
         <sheets><sheet name='S' sheetId='1' r:id='r1'/></sheets></workbook>"
    );
    package(&[
        ("[Content_Types].xml", b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"),
        ("_rels/.rels", first.as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/_rels/workbook.xml.rels", second.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet),
        ("xl/sharedStrings.xml", strings),
        ("xl/styles.xml", styles),
    ])
}
