//! Any file and any edit: an edit that is refused changes nothing, one that is done changes what it says and is undone.
#![no_main]

use std::{fs, path::Path};

use gloveport_editor::{EditRequest, Editor, EditorOptions};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// A directory in memory, where there is some: a disk is much slower.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a directory for the file")
}

// The file's bytes, whether to insert, a line, and the two texts.
fuzz_target!(|input: (Vec<u8>, bool, i8, &str, &str)| {
    let (bytes, inserts, line, old, new) = input;
    let directory = directory();
    let file = directory.path().join("file");
    fs::write(&file, &bytes).expect("the file");
    let editor = Editor::new(EditorOptions::new(directory.path().to_owned()));
    let path = file.to_str().expect("a path of text");
    let request = if inserts {
        EditRequest { insert_line: Some(line.into()), new_str: Some(new), ..EditRequest::new("insert", path) }
    } else {
        EditRequest { old_str: Some(old), new_str: Some(new), ..EditRequest::new("str_replace", path) }
    };
    let result = editor.run(&request);
    let after = fs::read(&file).expect("the file");
    let Ok(report) = result else {
        assert_eq!(after, bytes, "a refused edit changed the file");
        return;
    };
    let (before, now) = (report.old_text.expect("the old text"), report.new_text.expect("the new text"));
    assert!(!before.contains('\r'));
    assert_eq!(report.diff.is_empty(), before == now);
    // Where nothing but the edit changes, what it does not touch is the same in the file.
    if !bytes.contains(&b'\r') && !new.contains('\r') {
        let same = before.bytes().zip(now.bytes()).take_while(|(before, now)| before == now).count();
        if String::from_utf8(bytes.clone()).is_ok() {
            let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            assert_eq!(after[..same + mark], bytes[..same + mark]);
            assert_eq!(&after[mark..], now.as_bytes());
        }
        if let Ok(undone) = editor.run(&EditRequest::new("undo_edit", path)) {
            assert_eq!(undone.new_text, Some(before));
            assert_eq!(fs::read(&file).expect("the file"), bytes, "an undone edit did not bring back the bytes");
        }
    }
});
