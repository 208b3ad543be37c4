//! Plugins of manifests with real programs: they are initialised, execute actions, and end.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use crate::support::{Place, SERVER, get, is_alive, plugin, within};
use gloveport_plugin::{Endpoint, Plugin, PluginState};
use gloveport_protocol::{Action, ActionEvent, ExecuteError, Observation, RunAction};
use serde_json::json;

/// A plugin whose service is the server of the tests.
fn server(place: &Place) -> Arc<dyn Plugin> {
    fs::write(place.path().join("server.py"), SERVER).unwrap();
    let text = "name = \"echo\"\n[service]\ncommand = [\"python3\", \"-u\", \"./server.py\", \"{port}\"]\n\
                [actions]\nhandles = [\"run_ipython\"]\npath = \"/act\"\n\
                [environment]\nECHO_URL = \"{base}/\"\nECHO = \"{plugin}:{workspace}\"\n";
    plugin(place.path(), text)
}

fn cell(code: &str) -> ActionEvent {
    ActionEvent::from_value(json!({"action": "run_ipython", "args": {"code": code}})).unwrap()
}

#[tokio::test]
async fn an_action_is_posted_to_the_service_and_its_answer_is_the_observation() {
    let place = Place::new();
    let echo = server(&place);
    echo.initialize(&place.host()).await.unwrap();
    assert_eq!((echo.handles(), place.starts()), (vec!["run_ipython".to_owned()], 0));
    assert_eq!(*echo.state().borrow(), PluginState::Idle);
    let observation = echo.execute(&cell("print(1)")).await.unwrap();
    let Observation::RunIpython(ran) = observation else { panic!("{observation:?}") };
    assert_eq!((ran.content.as_str(), ran.code.as_str()), ("/act PRINT(1)", "print(1)"));
    let all = futures_of(&echo, 20).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!((place.starts(), echo.state().borrow().clone()), (1, PluginState::Ready));
    echo.stop().await;
    assert_eq!(*echo.state().borrow(), PluginState::Stopped);
}

/// What comes of many actions at once.
async fn futures_of(plugin: &Arc<dyn Plugin>, count: usize) -> Vec<Result<Observation, ExecuteError>> {
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let plugin = Arc::clone(plugin);
            tokio::spawn(async move { plugin.execute(&cell(&format!("x{number}"))).await })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    all
}

#[tokio::test]
async fn what_goes_wrong_with_an_action_is_told() {
    let place = Place::new();
    let echo = server(&place);
    let before = "the plugin echo cannot execute the action: ";
    let told = |error: ExecuteError| error.to_string();
    let error = told(echo.execute(&cell("x")).await.unwrap_err());
    assert_eq!(error, format!("{before}it is not initialised"));
    echo.initialize(&place.host()).await.unwrap();
    for (code, expected) in [
        ("refuse", "it answered POST /act with status 503: <!DOCTYPE"),
        ("text", "it answered POST /act with no observation: "),
        ("long", "POST /act: the answer is longer than 16777216 bytes"),
    ] {
        let error = told(echo.execute(&cell(code)).await.unwrap_err());
        assert!(error.starts_with(&format!("{before}{expected}")), "{error}");
    }
    let run = ActionEvent::from(Action::Run(RunAction::new("true")));
    assert_eq!(told(echo.execute(&run).await.unwrap_err()), "echo plugin does not support run method");
    let mut slow = cell("slow");
    slow.timeout = Some(0.3);
    let error = echo.execute(&slow).await.unwrap_err();
    assert_eq!(error, ExecuteError::Timeout { limit: Duration::from_millis(300) });
    echo.stop().await;
    let error = told(echo.execute(&cell("x")).await.unwrap_err());
    assert_eq!(error, format!("{before}the service echo is stopped; start the sandbox again"));
}

#[tokio::test]
async fn an_eager_service_is_healthy_when_it_is_initialised() {
    let place = Place::new();
    fs::write(place.path().join("server.py"), SERVER.replace("sys.argv[1]", "os.environ[\"AT\"]")).unwrap();
    let text = "name = \"eager\"\n[service]\ncommand = [\"python3\", \"./server.py\"]\nstart = \"eager\"\n\
                listens = \"socket\"\nenvironment = { AT = \"{socket}\" }\n";
    let eager = plugin(place.path(), text);
    assert!(eager.service().is_none());
    eager.initialize(&place.host()).await.unwrap();
    assert_eq!((place.starts(), eager.state().borrow().clone()), (1, PluginState::Ready));
    let lease = eager.service().unwrap().lease().await.unwrap();
    assert!(matches!(lease.endpoint(), Endpoint::Socket(_)));
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    eager.stop().await;
}

#[tokio::test]
async fn an_eager_service_that_does_not_start_is_an_error_of_its_initialisation() {
    let place = Place::new();
    let text = "name = \"broken\"\n[service]\ncommand = \"echo no licence; exit 4 # {port}\"\nstart = \"eager\"\n";
    let error = plugin(place.path(), text).initialize(&place.host()).await.unwrap_err();
    assert!(error.reason.contains("it ended with status 4") && error.reason.ends_with("\n  no licence"), "{error}");
}

#[tokio::test]
async fn a_plugin_of_a_set_up_only_is_ready_when_that_has_run() {
    let place = Place::new();
    let text = "name = \"tools\"\n[set-up]\ncommand = [\"sh\", \"./install\", \"{workspace}\"]\n";
    let folder = tempfile::Builder::new().prefix("a folder; with $blanks").tempdir().unwrap();
    let tools = plugin(folder.path(), text);
    let error = tools.initialize(&place.host()).await.unwrap_err();
    assert!(error.reason.starts_with("the set-up of tools failed: it ended with status"), "{error}");
    assert!(matches!(*tools.state().borrow(), PluginState::Failed { .. }));
    fs::write(folder.path().join("install"), "echo done >$1/installed").unwrap();
    tools.initialize(&place.host()).await.unwrap();
    assert_eq!((place.read("installed").as_str(), tools.state().borrow().clone()), ("done\n", PluginState::Ready));
}

#[tokio::test]
async fn the_folder_of_a_manifest_never_becomes_code_of_a_shell() {
    let place = Place::new();
    let text = "name = \"tools\"\n[set-up]\ncommand = \"./install\"\n";
    let tools = plugin(&place.path().join("a; touch owned"), text);
    let error = tools.initialize(&place.host()).await.unwrap_err();
    assert!(error.to_string().contains("characters that a shell interprets; write the command as a list"), "{error}");
}

#[test]
fn the_shells_of_the_sandbox_get_its_variables() {
    let place = Place::new();
    let expected = [("ECHO", format!("{}:/work", place.path().display())), ("ECHO_URL", "/plugins/echo/".to_owned())];
    let expected: Vec<_> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(server(&place).environment(Path::new("/work")), expected);
}

#[tokio::test]
async fn a_service_that_listens_nowhere_runs_and_is_offered_to_nobody() {
    let place = Place::new();
    let text = "name = \"watch\"\n[service]\ncommand = \"echo $$ >pids; sleep 600\"\nlistens = \"nowhere\"\nstart = \"eager\"\n";
    let watch = plugin(place.path(), text);
    watch.initialize(&place.host()).await.unwrap();
    within("it runs", || !place.pids().is_empty()).await;
    assert!(is_alive(place.pids()[0]) && watch.service().is_none());
    watch.stop().await;
    assert!(!is_alive(place.pids()[0]));
}

#[tokio::test]
async fn a_plugin_that_is_stopped_while_its_set_up_runs_leaves_nothing() {
    let place = Place::new();
    let tools = plugin(place.path(), "name = \"tools\"\n[set-up]\ncommand = \"echo $$ >pids; sleep 600\"\n");
    let initializing = tokio::spawn({
        let (tools, host) = (Arc::clone(&tools), place.host());
        async move { tools.initialize(&host).await }
    });
    within("it runs", || !place.pids().is_empty()).await;
    tools.stop().await;
    assert!(initializing.await.unwrap().is_err());
    assert!(!is_alive(place.pids()[0]));
}
