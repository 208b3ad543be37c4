//! Sandboxes of the runtime `local` with the small program in them.

use std::{fs, path::Path};

use gloveport_config::Config;
use gloveport_hosting::{WaitOptions, client, wait_until_alive};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, BrowseAction, Observation, RunAction};
use gloveport_provider::{ListFilter, Progress, Provider as _, ProviderContext, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_local::{Local, LocalOptions};

use crate::PROGRAM;

fn provider(place: &Path) -> Local {
    let environment = [("PATH", std::env::var("PATH").unwrap()), ("HOME", place.display().to_string())];
    let context = ProviderContext {
        config: Config::default(),
        program: PROGRAM.into(),
        inside: PROGRAM.into(),
        environment: environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        argument: None,
    };
    Local::new(LocalOptions { temporary: place.to_owned(), ..LocalOptions::new(&context).unwrap() }).unwrap()
}

/// The program of the server of a sandbox.
fn program_of(place: &Path, sandbox: &Sandbox) -> std::path::PathBuf {
    let state = place.join(".local/state/gloveport/local/sandboxes").join(sandbox.id.as_str());
    let record: serde_json::Value = serde_json::from_slice(&fs::read(state.join("sandbox.json")).unwrap()).unwrap();
    fs::read_link(format!("/proc/{}/exe", record["server"]["pid"])).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_variables_leave_the_browser_out_has_none() {
    let place = tempfile::tempdir().unwrap();
    let (local, progress) = (provider(place.path()), Progress::silent());
    let browse = ActionEvent::from(Action::Browse(BrowseAction::new("about:blank")));
    let mut spec = SandboxSpec::new(SessionId::new("none").unwrap());
    spec.leave_out_browser();
    let made = local.create(&spec, &progress).await.unwrap();
    let sandbox = wait_until_alive(&local, made, &WaitOptions::default(), &progress).await.unwrap();
    let observation = client(&sandbox).unwrap().execute(&browse).await.unwrap();
    let Observation::Error(error) = observation else { panic!("{observation:?}") };
    assert_eq!(error.content, "Browser functionality is not supported or disabled.");
    assert!(local.delete(&sandbox.id).await.is_ok());
    local.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_small_program_serves_a_sandbox_from_its_start_to_its_end() {
    let place = tempfile::tempdir().unwrap();
    let (local, progress) = (provider(place.path()), Progress::silent());
    let spec = SandboxSpec::new(SessionId::new("small").unwrap());
    let made = local.create(&spec, &progress).await.unwrap();
    let sandbox = wait_until_alive(&local, made, &WaitOptions::default(), &progress).await.unwrap();
    assert_eq!(program_of(place.path(), &sandbox), Path::new(PROGRAM).canonicalize().unwrap());

    let workspace = sandbox.workspace.clone().unwrap();
    let run = ActionEvent::from(Action::Run(RunAction::new("pwd; echo made > here")));
    let observation = client(&sandbox).unwrap().execute(&run).await.unwrap();
    assert!(matches!(observation, Observation::Run(run) if run.content == workspace), "{workspace}");
    assert_eq!(fs::read_to_string(Path::new(&workspace).join("here")).unwrap(), "made\n");

    assert!(local.delete(&sandbox.id).await.is_ok());
    // The workspace was made for the sandbox, and ends with it.
    assert!(!Path::new(&workspace).exists());
    assert_eq!(local.list(&ListFilter::default()).await.unwrap().len(), 0);
    local.close().await;
}
