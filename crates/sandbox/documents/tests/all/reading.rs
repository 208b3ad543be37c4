//! Documents read apart, and what the child that reads them may do.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs, io,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::common::{docx, file, honest, markdown, program, reader, ten_fold_pdf, xlsx};
use gloveport_documents::{DrawError, Format, Interrupt, Page, ReadError, Reader};

#[test]
fn documents_are_shown_as_their_text() {
    let reader = reader();
    let paragraph = "<w:p><w:r><w:t>hello</w:t></w:r></w:p>";
    let cells = "<worksheet><sheetData><row r='1'><c r='A1' t='s'><v>0</v></c></row></sheetData></worksheet>";
    for (format, content, expected) in [
        (Format::Pdf, honest("Hello"), "Hello\n\n"),
        (Format::Docx, docx(paragraph), "hello"),
        (Format::Xlsx, xlsx(cells, "<sst><si><t>text</t></si></sst>"), "## S\n| text |\n| --- |"),
        (Format::Pptx, b"only text\n\n\n\nhere  \n".to_vec(), "only text\n\nhere\n"),
        (Format::Audio, b"RIFF".to_vec(), "### Audio Transcript:\nError. Could not transcribe this audio."),
    ] {
        assert_eq!(markdown(&reader, format, &content).unwrap(), expected, "{format:?}");
    }
    for format in [Format::Pdf, Format::Docx, Format::Audio] {
        let error = markdown(&reader, format, b"").unwrap_err();
        assert_eq!(error.to_string(), "the file is empty", "{format:?}");
    }
    let error = markdown(&reader, Format::Docx, b"PK\x03\x04\0\0\xff").unwrap_err();
    assert!(error.to_string().starts_with("the file is not a valid document: "), "{error}");
}

#[test]
fn pages_are_drawn_and_those_that_are_not_taken_are_passed_over() {
    let reader = reader();
    for takes in [true, false] {
        let mut pages = Vec::new();
        reader
            .draw(file(&honest("Hello")), &Interrupt::default(), |page| {
                let Page::Picture(mut picture) = page else { panic!("{page:?}") };
                let mut png = Vec::new();
                if takes {
                    picture.png.read_to_end(&mut png)?;
                    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
                }
                pages.push((picture.number, picture.width, picture.height));
                Ok(())
            })
            .unwrap();
        // 300 by 200 points at scale 1.5.
        assert_eq!(pages, [(1, 450, 300)]);
    }
    let error = reader.draw(file(b"text"), &Interrupt::default(), |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "the file is not a PDF, or is damaged");
    let refused = |_: Page<'_>| Err(io::ErrorKind::BrokenPipe.into());
    let error = reader.draw(file(&honest("Hello")), &Interrupt::default(), refused).unwrap_err();
    assert!(matches!(error, DrawError::Output(_)), "{error:?}");
}

/// A child at work on a document that does not end, started by hand as a reader starts it.
fn child(identity: &[&str]) -> std::process::Child {
    let mut child = Command::new(program())
        .args(["read-document", "pdf", &std::process::id().to_string()])
        .args(identity)
        .env_clear()
        .stdin(file(&ten_fold_pdf()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its filter is the last that it takes on.
    while !status(child.id()).contains("\nSeccomp:\t2\n") {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        thread::yield_now();
    }
    child
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

#[test]
fn a_child_has_no_rights_and_little_of_everything() {
    let is_root = fs::metadata("/proc/self").unwrap().permissions().mode() != 0
        && status(std::process::id()).contains("\nUid:\t0\t");
    let mut child = child(if is_root { &["65534", "65534", "4242"] } else { &[] });
    let status = status(child.id());
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
        line.split_once(':').unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!([field("NoNewPrivs"), field("Seccomp"), field("Threads")], ["1", "2", "1"]);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    if is_root {
        let four = "65534 65534 65534 65534";
        assert_eq!([field("Uid"), field("Gid"), field("Groups")], [four, four, "4242"]);
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        for (name, value) in [
            ("Max address space", "536870912"),
            ("Max cpu time", "30"),
            ("Max file size", "0"),
            ("Max core file size", "0"),
            ("Max open files", "3"),
            ("Max processes", "0"),
        ] {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            assert_eq!(line[name.len()..].split_whitespace().next(), Some(value), "{limits}");
        }
        assert_eq!(fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count(), 3);
        assert_eq!(fs::read(format!("/proc/{}/environ", child.id())).unwrap_or_default(), b"");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_child_reads_for_nobody_but_the_one_who_started_it() {
    for (arguments, complaint) in [
        (vec!["read-document", "pdf", "1"], "looking for the parent failed: it is gone, or did not start this process"),
        (vec!["read-document"], "read-document is started by programs that show documents, and by nobody else"),
    ] {
        let output = Command::new(program()).args(&arguments).stdin(file(&honest("Hello"))).output().unwrap();
        let complaints = String::from_utf8(output.stderr).unwrap();
        assert!(complaints.contains(complaint), "{complaints}");
        assert!(!output.status.success() && output.stdout.is_empty());
    }
}

#[test]
fn what_a_child_says_is_not_believed() {
    // Programs that are no readers, each in a process of its own, since a process has one.
    if let Some(program) = std::env::var_os("GLOVEPORT_TEST_READER") {
        gloveport_documents::choose_program(program);
        let reader = Reader::default().within(Duration::from_secs(5), Duration::from_secs(1));
        let text = reader.markdown(Format::Pdf, file(b"x"), &Interrupt::default()).unwrap_err();
        let mut shown = 0;
        let drawn = reader.draw(file(b"x"), &Interrupt::default(), |page| {
            if let Page::Picture(mut picture) = page {
                io::copy(&mut picture.png, &mut io::sink())?;
            }
            shown += 1;
            Ok(())
        });
        println!(
            "text: {text}\ndrawn: {shown} {}",
            drawn.map_or_else(|error| error.to_string(), |()| "all".to_owned())
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let nonsense = "its reader gave no answer that could be understood";
    for (script, text, drawn) in [
        (
            "exit 0",
            "its reader ended without an answer (exit code 0)",
            "its reader ended without an answer (exit code 0)",
        ),
        (
            "exit 7",
            "its reader ended without an answer (exit code 7)",
            "its reader ended without an answer (exit code 7)",
        ),
        (
            "kill -SYS $$",
            "its reader ended without an answer (signal 31)",
            "its reader ended without an answer (signal 31)",
        ),
        ("yes", nonsense, nonsense),
        ("printf 'T\\377\\377\\377\\377'", nonsense, nonsense),
        ("printf 'T\\001\\0\\0\\0\\377D\\0\\0\\0\\0'", nonsense, nonsense),
        ("printf 'T\\005\\0\\0\\0abc'", "its reader ended without an answer (exit code 0)", nonsense),
        ("printf 'P\\004\\0\\0\\0abcd'", nonsense, nonsense),
        // Width zero.
        ("printf 'P\\010\\0\\0\\0\\001\\0\\0\\0\\001\\0\\0\\0'", nonsense, nonsense),
        ("printf 'F\\003\\0\\0\\0abc'", "abc", "abc"),
        (
            "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$",
            "it takes more than 512 MB of memory to read",
            "it takes more than 1024 MB of memory to read",
        ),
        ("while :; do printf 'N\\0\\0\\0\\0'; done", nonsense, nonsense),
        ("exec sleep 60", "it took longer than 1 seconds to read", "it took longer than 1 seconds to read"),
    ] {
        let program = directory.path().join("reader");
        let mut source = fs::File::create(&program).unwrap();
        write!(source, "#!/bin/bash\nPATH=/usr/bin:/bin\n{script}\n").unwrap();
        source.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
        drop(source);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "reading::what_a_child_says_is_not_believed", "--nocapture"])
            .env("GLOVEPORT_TEST_READER", &program)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("text: {text}\n")), "{script}: {said}");
        assert!(said.lines().any(|line| line.starts_with("drawn: ") && line.ends_with(drawn)), "{script}: {said}");
    }
}

#[test]
fn without_a_program_nothing_is_read() {
    if std::env::var_os("GLOVEPORT_TEST_NONE").is_some() {
        let error = Reader::default().markdown(Format::Pdf, file(&honest("x")), &Interrupt::default()).unwrap_err();
        assert!(matches!(error, ReadError::NoProgram));
        println!("said: {error}");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "reading::without_a_program_nothing_is_read", "--nocapture"])
        .env("GLOVEPORT_TEST_NONE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("said: this program has no part that reads documents apart"), "{said}");
}
