//! Documents in the `read` and `edit` actions: read apart, and never at the cost of the server (`file-editor` §3.8).
#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_editor::documents::choose_program;
use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, EditAction, FileEditSource, FileReadSource, Observation, ReadAction,
    RunAction,
};
use tempfile::TempDir;

struct Lab {
    executor: Arc<Executor>,
    directory: TempDir,
}

impl Lab {
    async fn start() -> Self {
        let test = std::env::current_exe().unwrap();
        choose_program(test.parent().unwrap().parent().unwrap().join("examples/executor_document_reader"));
        let directory = tempfile::tempdir().unwrap();
        let options = ExecutorOptions::inherited(directory.path().to_owned());
        Self { executor: Executor::start(options).await.unwrap(), directory }
    }

    fn put(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn view(&self, path: &str) -> String {
        let action =
            EditAction { impl_source: FileEditSource::OhAci, command: "view".to_owned(), ..EditAction::new(path) };
        match self.executor.execute(&ActionEvent::from(Action::Edit(action))).await.unwrap() {
            Observation::Edit(edit) => edit.content,
            other => panic!("{other:?}"),
        }
    }

    async fn echo(&self) -> Duration {
        let began = Instant::now();
        self.executor.execute(&ActionEvent::from(Action::Run(RunAction::new("echo hi")))).await.unwrap();
        began.elapsed()
    }
}

/// A PDF whose page draws these forms, of which each may draw the next one.
fn pdf(forms: &[String]) -> String {
    let stream = |entries: &str, content: &str| {
        format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
    };
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /XObject << /F 5 0 R >> >> /Contents 4 0 R >>"
            .to_owned(),
        stream("", "/F Do"),
    ];
    for (number, content) in (5..).zip(forms) {
        let next = if forms.len() == 1 { number } else { number + 1 };
        let entries =
            format!("/Type /XObject /Subtype /Form /BBox [0 0 300 300] /Resources << /XObject << /F {next} 0 R >> >>");
        objects.push(stream(&entries, content));
    }
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in (1..).zip(&objects) {
        table = format!("{table}{:010} 00000 n \n", file.len());
        file = format!("{file}{number} 0 obj\n{object}\nendobj\n");
    }
    let (start, count) = (file.len(), objects.len() + 1);
    file + &format!(
        "xref\n0 {count}\n0000000000 65535 f \n{table}trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
}

fn self_drawing() -> String {
    pdf(&["/F Do".to_owned()])
}

fn ten_fold() -> String {
    let mut forms = vec!["/F Do ".repeat(10); 10];
    forms.push("0 0 1 1 re f".to_owned());
    pdf(&forms)
}

/// The processes that read documents for this one.
fn readers() -> usize {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)) == Some(own.as_str())
            && command.contains("read-document")
    });
    found.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_draws_itself_is_an_error_in_the_observation() {
    let lab = Lab::start().await;
    let path = lab.put("hostile.pdf", &self_drawing());
    let expected = format!(
        "ERROR:\nError in converting file to Markdown: it is nested too deep to be read. Please use Python code to read {path}"
    );
    for _ in 0..3 {
        assert_eq!(lab.view(&path).await, expected);
        assert!(lab.echo().await < Duration::from_secs(1));
    }
    // It is a text as far as its first bytes tell, so a `read` of it gets to the editor.
    let action = ReadAction { impl_source: FileReadSource::OhAci, ..ReadAction::new(&path) };
    let Observation::Read(read) = lab.executor.execute(&ActionEvent::from(Action::Read(action))).await.unwrap() else {
        panic!("it is no read")
    };
    assert_eq!(read.content, expected);
    let honest = lab.put("note.docx", "only text\n");
    assert!(lab.view(&honest).await.ends_with("displayed in Markdown format:\nonly text\n\n"));
    lab.executor.close().await;
    assert_eq!(readers(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_ended_when_its_caller_leaves_and_commands_go_on_meanwhile() {
    let lab = Lab::start().await;
    let path = lab.put("endless.pdf", &ten_fold());
    let both = async { tokio::join!(lab.view(&path), lab.view(&path)) };
    let busy = async {
        while readers() < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..5 {
            assert!(lab.echo().await < Duration::from_secs(1));
        }
    };
    // The callers leave when the commands are done.
    tokio::select! {
        shown = both => panic!("{shown:?}"),
        () = busy => {}
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while readers() > 0 {
        assert!(Instant::now() < deadline, "readers live on");
        tokio::task::yield_now().await;
    }
    lab.executor.close().await;
}
