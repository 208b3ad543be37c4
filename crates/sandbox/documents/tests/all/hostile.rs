//! Documents that are made to harm whoever reads them.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::common::{docx, file, form, honest, markdown, package, page_with_forms, reader, ten_fold_pdf, xlsx};
use gloveport_documents::{DrawError, Format, Interrupt, Page, ReadError, Reader};

/// One that gives up soon.
fn impatient() -> Reader {
    reader().within(Duration::from_secs(30), Duration::from_secs(2))
}

/// A form that draws itself.
fn self_drawing() -> Vec<u8> {
    page_with_forms([form(5, "/F Do")])
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The children of this process, by their commands.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        (rest.split_whitespace().nth(1)? == own).then(|| name.to_owned())
    });
    found.collect()
}

fn draw(reader: &Reader, content: &[u8]) -> Result<usize, DrawError> {
    let mut shown = 0;
    reader.draw(file(content), &Interrupt::default(), |page| {
        if let Page::Picture(mut picture) = page {
            std::io::copy(&mut picture.png, &mut std::io::sink())?;
            shown += 1;
        }
        Ok(())
    })?;
    Ok(shown)
}

#[test]
fn a_form_that_draws_itself_ends_its_reader_and_nothing_else() {
    let (reader, document) = (reader(), self_drawing());
    assert!(document.len() < 1_800);
    for _ in 0..4 {
        let error = markdown(&reader, Format::Pdf, &document).unwrap_err();
        assert!(matches!(error, ReadError::Deep), "{error:?}");
        assert_eq!(error.to_string(), "it is nested too deep to be read");
    }
    // The library that draws has a bound, and any end is well.
    if let Err(error) = draw(&impatient(), &document) {
        assert!(matches!(error, DrawError::Read(_)), "{error}");
    }
    assert_eq!(markdown(&reader, Format::Pdf, &honest("fine")).unwrap(), "fine\n\n");
    assert!(children().is_empty());
}

#[test]
fn ten_fold_nesting_is_given_up_and_holds_up_nobody() {
    let (impatient, patient, document) = (impatient(), reader(), ten_fold_pdf());
    assert!(document.len() < 3_500, "{}", document.len());
    let (before, began) = (resident(), Instant::now());
    let burning: Vec<_> = (0..4)
        .map(|number| {
            let (reader, document) = (impatient.clone(), document.clone());
            thread::spawn(move || match number % 2 {
                0 => markdown(&reader, Format::Pdf, &document).map(drop),
                _ => draw(&reader, &document).map(drop).map_err(|error| match error {
                    DrawError::Read(error) => error,
                    DrawError::Output(error) => panic!("{error}"),
                }),
            })
        })
        .collect();
    // It waits for its turn behind some of them, and then gets it.
    assert_eq!(markdown(&patient, Format::Pdf, &honest("fine")).unwrap(), "fine\n\n");
    for thread in burning {
        let error = thread.join().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Slow(_) | ReadError::Memory(_) | ReadError::Deep), "{error:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(resident() < before + 32 * 1024 * 1024, "{} {before}", resident());
    assert!(children().is_empty());
}

#[test]
fn hostile_office_documents_are_errors_or_texts_in_time() {
    let reader = reader();
    let deep = |count: usize| format!("{}{}", "<w:sdt>".repeat(count), "</w:sdt>".repeat(count));
    let entities = {
        let mut text = "<!DOCTYPE x [<!ENTITY a0 'lol'>".to_owned();
        for level in 1..12 {
            let parent = format!("&a{};", level - 1).repeat(10);
            text = format!("{text}<!ENTITY a{level} '{parent}'>");
        }
        text + "<!ENTITY f SYSTEM 'file:///etc/passwd'>]>"
    };
    let body = "<w:document><w:body><w:p><w:r><w:t>&a11;&f;</w:t></w:r></w:p></w:body></w:document>";
    let expanded = package(&[("word/document.xml", &format!("{entities}{body}"))]);
    assert_eq!(markdown(&reader, Format::Docx, &expanded).unwrap(), "&a11;&f;");
    let huge = " ".repeat(80 * 1024 * 1024);
    let cells = "<worksheet><sheetData><row r='1'><c r='A1' t='s'><v>0</v></c></row></sheetData></worksheet>";
    for (name, format, document) in [
        ("elements within elements", Format::Docx, docx(&deep(100_000))),
        ("tables within tables", Format::Docx, docx(&"<w:tbl><w:tr><w:tc>".repeat(60))),
        ("a part that unpacks to much", Format::Docx, docx(&huge)),
        ("a sheet that unpacks to much", Format::Xlsx, xlsx(&format!("<worksheet>{huge}</worksheet>"), "<sst/>")),
        ("a sheet within sheets", Format::Xlsx, xlsx(&"<sheetData>".repeat(200_000), "<sst/>")),
        ("strings within strings", Format::Xlsx, xlsx(cells, &"<si><t>".repeat(200_000))),
        ("slides within slides", Format::Pptx, package(&[("ppt/presentation.xml", &"<p:sldIdLst>".repeat(100_000))])),
        ("no package at all", Format::Pptx, vec![b'P'; 1_000_000]),
    ] {
        let began = Instant::now();
        let result = markdown(&reader, format, &document);
        assert!(began.elapsed() < Duration::from_secs(20), "{name} {:?}", began.elapsed());
        match result {
            Ok(text) => assert!(text.len() < 4 * 1024 * 1024, "{name}"),
            Err(ReadError::Refused(reason)) => assert!(!reason.is_empty() && reason.len() < 500, "{name}"),
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
    // Numbers that are believed cost memory; here they are no more than numbers.
    for strings in [
        "<sst count='4294967295' uniqueCount='4294967295'><si><t>text</t></si></sst>",
        "<sst count='18446744073709551615' uniqueCount='18446744073709551615'><si><t>text</t></si></sst>",
    ] {
        match markdown(&reader, Format::Xlsx, &xlsx(cells, strings)) {
            Ok(text) => assert_eq!(text, "## S\n| text |\n| --- |"),
            Err(ReadError::Refused(_) | ReadError::Memory(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    let far = "<worksheet><dimension ref='A1:XFD1048576'/><sheetData><row r='1048576'><c r='XFD1048576'><v>1</v></c></row></sheetData></worksheet>";
    let text = markdown(&reader, Format::Xlsx, &xlsx(far, "<sst/>")).unwrap();
    assert!(text.starts_with("## S\n") && text.len() < 1024 * 1024, "{}", text.len());
    assert!(children().is_empty());
}

#[test]
fn many_documents_at_once_take_turns_and_too_many_are_refused() {
    let reader = impatient();
    let document = ten_fold_pdf();
    let results: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..48)
            .map(|_| {
                let reader = reader.clone().within(Duration::from_secs(1), Duration::from_secs(1));
                let document = &document;
                scope.spawn(move || (markdown(&reader, Format::Pdf, document), children().len()))
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |wanted: fn(&ReadError) -> bool| {
        results.iter().filter(|(result, _)| result.as_ref().is_err_and(wanted)).count()
    };
    let slow = count(|error| matches!(error, ReadError::Slow(_) | ReadError::Deep | ReadError::Memory(_)));
    let busy = count(|error| matches!(error, ReadError::Busy(_)));
    let crowded = count(|error| matches!(error, ReadError::Crowded));
    assert_eq!(slow + busy + crowded, 48, "{results:?}");
    assert!(slow >= 2 && busy >= 1 && crowded >= 1, "{slow} {busy} {crowded}");
    assert!(results.iter().all(|(_, children)| *children <= 2), "{results:?}");
}

#[test]
fn a_reader_is_killed_when_nobody_waits_any_more() {
    let (reader, interrupt) = (reader(), Interrupt::default());
    let waiting = thread::spawn({
        let interrupt = interrupt.clone();
        move || reader.markdown(Format::Pdf, file(&ten_fold_pdf()), &interrupt).unwrap_err()
    });
    while children().is_empty() {
        thread::yield_now();
    }
    interrupt.interrupt();
    assert!(matches!(waiting.join().unwrap(), ReadError::Left));
    assert!(children().is_empty());
}

#[test]
fn a_reader_ends_with_the_thread_that_waits_for_it() {
    use std::process::{Command, Stdio};
    // A program that shows a document and is killed meanwhile: this very test, told so by a variable.
    if std::env::var_os("GLOVEPORT_TEST_SHOW").is_some() {
        let _never = markdown(&reader(), Format::Pdf, &ten_fold_pdf());
        return;
    }
    let name = "hostile::a_reader_ends_with_the_thread_that_waits_for_it";
    let mut shower = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("GLOVEPORT_TEST_SHOW", "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let reader_of = |parent: u32| {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_child = stat
                .rsplit_once(')')
                .is_some_and(|(_, rest)| rest.split_whitespace().nth(1) == Some(parent.to_string().as_str()));
            is_child
                && fs::read(format!("/proc/{pid}/cmdline"))
                    .unwrap_or_default()
                    .windows(13)
                    .any(|w| w == b"read-document")
        })
    };
    let reader = loop {
        if let Some(reader) = reader_of(shower.id()) {
            break reader;
        }
        thread::yield_now();
    };
    shower.kill().unwrap();
    shower.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let is_there = || {
        let stat = fs::read_to_string(format!("/proc/{reader}/stat")).unwrap_or_default();
        Path::new(&format!("/proc/{reader}")).exists() && !stat.contains(") Z ")
    };
    while is_there() {
        assert!(Instant::now() < deadline, "the reader lives on");
        thread::yield_now();
    }
}
