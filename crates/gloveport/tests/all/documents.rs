//! Documents read by the binary itself, as its own child.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path};

use crate::support::{Server, alive, gloveport, text, until};
use gloveport_sys::process;
use serde_json::{Value, json};

/// A PDF of one page, whose content is drawn by the forms behind it, each of which may draw the next one.
fn pdf(content: &str, forms: &[String]) -> String {
    let stream = |entries: &str, content: &str| {
        format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
    };
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
    let resources = format!("/Resources << /XObject << /F 5 0 R >> /Font << /F1 {font} >> >>");
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] {resources} /Contents 4 0 R >>"),
        stream("", content),
    ];
    for (number, form) in (5..).zip(forms) {
        let next = if forms.len() == 1 { number } else { number + 1 };
        let resources = format!("/Resources << /XObject << /F {next} 0 R >> >>");
        objects.push(stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 300 300] {resources}"), form));
    }
    let (mut file, mut places) = ("%PDF-1.4\n".to_owned(), Vec::new());
    for (number, object) in (1..).zip(&objects) {
        places.push(format!("{:010} 00000 n \n", file.len()));
        file = format!("{file}{number} 0 obj\n{object}\nendobj\n");
    }
    let (start, count) = (file.len(), objects.len() + 1);
    format!(
        "{file}xref\n0 {count}\n0000000000 65535 f \n{}trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        places.concat()
    )
}

fn honest() -> String {
    pdf("BT /F1 12 Tf 20 200 Td (Hello) Tj ET", &[])
}

fn self_drawing() -> String {
    pdf("/F Do", &["/F Do".to_owned()])
}

fn ten_fold() -> String {
    let mut forms = vec!["/F Do ".repeat(10); 10];
    forms.push("0 0 1 1 re f".to_owned());
    pdf("/F Do", &forms)
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
    for (name, content) in [("honest.pdf", honest()), ("self.pdf", self_drawing())] {
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
    let place = |name: &str, content: String| {
        let path = server.home.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let (honest, hostile, endless) =
        (place("honest.pdf", honest()), place("self.pdf", self_drawing()), place("ten.pdf", ten_fold()));
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
