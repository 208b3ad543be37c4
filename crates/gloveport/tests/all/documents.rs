//! Documents read by the binary itself, as its own child.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path};

use crate::support::{Server, alive, gloveport, text, until};
use gloveport_sys::process;
use gloveport_testing::{pdf_of_forms, self_drawing_pdf, ten_fold_pdf};
use serde_json::{Value, json};

fn honest() -> Vec<u8> {
    pdf_of_forms("BT /F1 12 Tf 20 200 Td (Hello) Tj ET", &[])
}

fn view_body(path: &Path) -> String {
    let arguments = json!({"path": path, "command": "view", "impl_source": "oh_aci"});
    json!({"action": {"action": "edit", "args": arguments}}).to_string()
}

fn view(server: &Server, path: &Path) -> String {
    let (status, body) = server.request("POST", "/execute_action", "", &view_body(path));
    assert_eq!(status, 200, "{body}");
    let observation: Value = serde_json::from_str(&body).unwrap();
    observation["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_document_is_read_by_a_child_of_the_binary() {
    let home = tempfile::tempdir().unwrap();
    for (name, content) in [("honest.pdf", honest()), ("self.pdf", self_drawing_pdf())] {
        fs::write(home.path().join(name), content).unwrap();
    }
    let view = |name: &str| gloveport(home.path()).arg("view").arg(home.path().join(name)).output().unwrap();
    let honest = view("honest.pdf");
    assert_eq!(honest.status.code(), Some(0), "{}", text(&honest.stderr));
    assert!(text(&honest.stdout).contains("Hello"), "{}", text(&honest.stdout));
    let hostile = view("self.pdf");
    assert_eq!(hostile.status.code(), Some(1));
    assert!(text(&hostile.stderr).contains("it is nested too deep to be read"), "{}", text(&hostile.stderr));
    // By hand, it reads for nobody.
    let output = gloveport(home.path()).args(["read-document", "pdf", "1"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), String::new()));
}

#[test]
fn hostile_documents_end_no_server_and_its_end_ends_their_readers() {
    let mut server = Server::compat(&[], &[]);
    let place = |name: &str, content: Vec<u8>| {
        let path = server.home.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let (honest, hostile, endless) =
        (place("honest.pdf", honest()), place("self.pdf", self_drawing_pdf()), place("ten.pdf", ten_fold_pdf()));
    for _ in 0..3 {
        let content = view(&server, &hostile);
        assert!(
            content.contains("Error in converting file to Markdown: it is nested too deep to be read"),
            "{content}"
        );
        assert!(view(&server, &honest).contains("Hello"));
    }
    assert_eq!(server.run("echo there", 20.0)["content"], "there");
    let reader_of = |server: &Server| {
        server.descendants().into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains("read-document")
        })
    };
    // A client that leaves takes the reader of its document with it.
    let stream = server.send("POST", "/execute_action", "", &view_body(&endless));
    until("the document is read", || reader_of(&server).is_some());
    drop(stream);
    until("nobody reads it", || reader_of(&server).is_none());
    // So does the server, however it ends.
    let _stream = server.send("POST", "/execute_action", "", &view_body(&endless));
    until("the document is read", || reader_of(&server).is_some());
    let reader = reader_of(&server).unwrap();
    assert!(process::stat(reader).is_some());
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    until("the reader is gone", || !alive(reader));
}
