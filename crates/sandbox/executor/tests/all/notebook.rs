//! The `run_ipython` action in real kernels (ipython-and-plugins 2.3 and 2.4).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test programs stop at the first broken assumption"
)]

use std::{sync::Arc, time::Duration};

use gloveport_executor::{
    Executor, ExecutorOptions, PartState,
    plugins::{AgentSkills, FirstKernel, Notebook, PluginOptions},
};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, Observation, RunAction, RunIpythonAction, RunIpythonObservation,
};
use gloveport_testing::python;

struct Sandbox {
    executor: Arc<Executor>,
    directory: tempfile::TempDir,
}

impl Sandbox {
    async fn start(first: FirstKernel) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let skills = AgentSkills::new();
        let notebook = Notebook::new(Some(Arc::clone(&skills)), Some(python()), first);
        let plugins = PluginOptions {
            all: vec![skills, Arc::clone(&notebook) as _],
            notebook: Some(notebook),
            ..PluginOptions::default()
        };
        let workspace = directory.path().canonicalize().unwrap();
        let options = ExecutorOptions { plugins, ..ExecutorOptions::inherited(workspace) };
        Self { executor: Executor::start(options).await.unwrap(), directory }
    }

    async fn execute(&self, action: Action, timeout: Option<f64>) -> Observation {
        let event = ActionEvent { timeout, ..ActionEvent::from(action) };
        let limit = Duration::from_mins(1);
        tokio::time::timeout(limit, self.executor.execute(&event)).await.expect("no end").unwrap()
    }

    async fn observe(&self, code: &str, timeout: Option<f64>) -> RunIpythonObservation {
        let action = RunIpythonAction { include_extra: false, ..RunIpythonAction::new(code) };
        match self.execute(Action::RunIpython(action), timeout).await {
            Observation::RunIpython(observation) => observation,
            other => panic!("{code}: {other:?}"),
        }
    }

    async fn cell(&self, code: &str) -> String {
        self.observe(code, None).await.content
    }

    fn part(&self, name: &str) -> PartState {
        self.executor.parts().into_iter().find(|part| part.name == name).unwrap().state
    }

    /// The workspace as the kernel shows it.
    fn workspace(&self) -> String {
        self.directory.path().canonicalize().unwrap().display().to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_has_the_two_lines_about_directory_and_interpreter() {
    let sandbox = Sandbox::start(FirstKernel::AtOnce).await;
    let action = RunIpythonAction::new("print('Hello, `World`!\\n')");
    let Observation::RunIpython(observation) = sandbox.execute(Action::RunIpython(action.clone()), None).await else {
        panic!("it is no observation of a cell");
    };
    let expected = format!(
        "Hello, `World`!\n[Jupyter current working directory: {}]\n[Jupyter Python interpreter: {}]",
        sandbox.workspace(),
        python().display()
    );
    assert_eq!((observation.content, observation.code, observation.image_urls), (expected, action.code, None));
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notebook_follows_the_shell_and_keeps_its_own_directory_until_then() {
    let sandbox = Sandbox::start(FirstKernel::AtOnce).await;
    let workspace = sandbox.workspace();
    let here = "import os; print(os.getcwd())";
    assert_eq!(sandbox.cell(here).await, workspace);
    assert_eq!(sandbox.cell("os.chdir('/')\nprint(os.getcwd())").await, "/");
    assert_eq!(sandbox.cell(here).await, "/");
    sandbox.execute(Action::Run(RunAction::new("mkdir -p sub && cd sub")), None).await;
    assert_eq!(sandbox.cell(here).await, format!("{workspace}/sub"));
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_limits_deaths_and_silence_have_their_texts_and_the_next_cell_works() {
    let sandbox = Sandbox::start(FirstKernel::AtOnce).await;
    assert_eq!(sandbox.cell("kept = 41").await, "[Code executed successfully with no output]");
    let observation = sandbox.observe("print('lost')\nwhile True: pass", Some(1.0)).await;
    assert_eq!(observation.content, "[Execution timed out (1.0 seconds).]");
    assert_eq!(sandbox.cell("kept + 1").await, "42");
    let lost = "A new kernel takes its place; variables and imports of the old one are gone.";
    assert_eq!(
        sandbox.cell("print('half', flush=True)\nimport os; os._exit(1)").await,
        format!("half\n[The kernel ended while it ran the cell: it ended with exit code 1. {lost}]")
    );
    assert_eq!(sandbox.cell("'kept' in globals()").await, "False");
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kernel_knows_the_skills_and_edits_with_the_editor_of_the_sandbox() {
    let sandbox = Sandbox::start(FirstKernel::AtOnce).await;
    let path = format!("{}/made.txt", sandbox.workspace());
    let created = format!("print(file_editor('create', path='{path}', file_text='one\\ntwo\\n'))");
    let answer = sandbox.cell(&created).await;
    assert!(answer.contains(&format!("\"output\": \"File created successfully at: {path}\"")), "{answer}");
    let shown = sandbox.cell(&format!("open_file('{path}')")).await;
    let header = format!("[File: {path} (2 lines total)]");
    assert_eq!(
        shown,
        format!("{header}\n(this is the beginning of the file)\n1|one\n2|two\n(this is the end of the file)")
    );
    // After a death, too, and under the name that OpenHands has for the module.
    sandbox.cell("import os; os._exit(1)").await;
    let again = "from openhands.runtime.plugins.agent_skills.agentskills import find_file as found\n\
                 found is find_file, callable(file_editor)";
    assert_eq!(sandbox.cell(again).await, "(True, True)");
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_figure_is_an_image_url() {
    let sandbox = Sandbox::start(FirstKernel::AtOnce).await;
    let observation = sandbox.observe("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()", None).await;
    let images = observation.image_urls.unwrap();
    assert!(matches!(&images[..], [image] if image.starts_with("data:image/png;base64,iVBOR")), "{images:?}");
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_is_not_needed_does_not_start_and_close_leaves_none() {
    let sandbox = Sandbox::start(FirstKernel::WhenNeeded).await;
    assert_eq!((sandbox.part("jupyter"), sandbox.part("agent_skills")), (PartState::Idle, PartState::Idle));
    let pid: u32 = sandbox.cell("import os; os.getpid()").await.parse().unwrap();
    // What the kernel says of itself is passed on a moment later.
    let both = || (sandbox.part("jupyter"), sandbox.part("agent_skills"));
    let ready = async {
        while both() != (PartState::Ready, PartState::Ready) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), ready).await.is_ok(), "{:?}", both());
    sandbox.executor.close().await;
    assert!(gloveport_sys::process::stat(pid).is_none_or(|stat| stat.state == 'Z'), "the kernel lives");
}

#[tokio::test(flavor = "multi_thread")]
async fn named_kernels_share_nothing() {
    let sandbox = Sandbox::start(FirstKernel::WhenNeeded).await;
    let notebook = sandbox.executor.plugins().notebook().unwrap();
    sandbox.cell("name = 'default'").await;
    for name in ["one", "two"] {
        let kernel = notebook.kernel(name).await.unwrap();
        let cell = gloveport_executor::kernels::Cell {
            code: format!("'name' in globals(), (name := '{name}')"),
            ..Default::default()
        };
        assert_eq!(kernel.execute(cell).await.unwrap().text, format!("(False, '{name}')"));
    }
    assert_eq!(sandbox.cell("name").await, "'default'");
    let names: Vec<String> = notebook.kernels().list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["default", "one", "two"]);
    notebook.kernels().remove("one").await.unwrap();
    assert!(notebook.kernels().find("one").is_none());
    assert!(notebook.kernel("a/b").await.is_err());
    sandbox.executor.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_cannot_start_is_an_observation_that_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let notebook = Notebook::new(None, Some("/no/such/python".into()), FirstKernel::AtOnce);
    let plugins =
        PluginOptions { all: vec![Arc::clone(&notebook) as _], notebook: Some(notebook), ..PluginOptions::default() };
    let options = ExecutorOptions { plugins, ..ExecutorOptions::inherited(directory.path().to_owned()) };
    let executor = Executor::start(options).await.unwrap();
    let event = ActionEvent::from(Action::RunIpython(RunIpythonAction::new("1")));
    match executor.execute(&event).await.unwrap() {
        Observation::Error(error) => assert!(error.content.contains("/no/such/python"), "{}", error.content),
        other => panic!("{other:?}"),
    }
    // The shell is not concerned.
    let event = ActionEvent::from(Action::Run(RunAction::new("echo works")));
    match executor.execute(&event).await.unwrap() {
        Observation::Run(run) => assert_eq!(run.content, "works"),
        other => panic!("{other:?}"),
    }
    executor.close().await;
}
