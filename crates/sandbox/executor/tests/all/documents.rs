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
use gloveport_testing::{self_drawing_pdf, ten_fold_pdf};
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

    fn put(&self, name: &str, content: &[u8]) -> String {
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
    let path = lab.put("hostile.pdf", &self_drawing_pdf());
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
    let honest = lab.put("note.docx", b"only text\n");
    assert!(lab.view(&honest).await.ends_with("displayed in Markdown format:\nonly text\n\n"));
    lab.executor.close().await;
    assert_eq!(readers(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_ended_when_its_caller_leaves_and_commands_go_on_meanwhile() {
    let lab = Lab::start().await;
    let path = lab.put("endless.pdf", &ten_fold_pdf());
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
