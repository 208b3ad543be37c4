//! What a plugin is to the sandbox, and how it stands.

use std::{fmt, path::Path, sync::Arc};

use gloveport_protocol::{ActionEvent, BoxFuture, ExecuteError, Observation};
use tokio::sync::watch;

use crate::service::Service;
pub use crate::{
    error::PluginError,
    state::{PluginHost, PluginState},
};

/// A plugin as the sandbox sees it.
///
/// One that executes the cells of a notebook by itself:
///
/// ```
/// use std::sync::Arc;
///
/// use gloveport_plugin::{Plugin, PluginError, PluginHost, PluginState, Registry, initialize_all, stop_all};
/// use gloveport_protocol::{
///     Action, ActionEvent, BoxFuture, ExecuteError, Observation, RunIpythonAction, RunIpythonObservation,
/// };
/// use gloveport_sys::Surroundings;
/// use tokio::sync::watch;
///
/// #[derive(Debug)]
/// struct Counter {
///     state: watch::Sender<PluginState>,
/// }
///
/// impl Plugin for Counter {
///     fn name(&self) -> &str {
///         "counter"
///     }
///
///     fn initialize<'a>(&'a self, _host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
///         Box::pin(async {
///             self.state.send_replace(PluginState::Ready);
///             Ok(())
///         })
///     }
///
///     fn state(&self) -> watch::Receiver<PluginState> {
///         self.state.subscribe()
///     }
///
///     fn handles(&self) -> Vec<String> {
///         vec!["run_ipython".to_owned()]
///     }
///
///     fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
///         Box::pin(async move {
///             let Action::RunIpython(cell) = &event.action else {
///                 return Err(ExecuteError::Failed("only cells can be counted".to_owned()));
///             };
///             let text = format!("{} lines", cell.code.lines().count());
///             Ok(Observation::RunIpython(RunIpythonObservation::new(text, cell.code.clone())))
///         })
///     }
///
///     fn stop(&self) -> BoxFuture<'_, ()> {
///         Box::pin(async {
///             self.state.send_replace(PluginState::Stopped);
///         })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let counter = Counter { state: watch::Sender::new(PluginState::Idle) };
/// let registry = Registry::new(vec![Arc::new(counter)]);
/// let plugins = registry.select(&["counter".to_owned()]).unwrap();
///
/// let workspace = std::env::temp_dir();
/// let host = PluginHost { surroundings: Surroundings::inherited(workspace.clone()), workspace };
/// initialize_all(&plugins, &host, std::time::Duration::from_secs(120)).await.unwrap();
///
/// let action = Action::RunIpython(RunIpythonAction::new("a = 1\nb = 2"));
/// let Observation::RunIpython(counted) = plugins[0].execute(&action.into()).await.unwrap() else { unreachable!() };
/// assert_eq!(counted.content, "2 lines");
/// stop_all(&plugins).await;
/// # });
/// ```
pub trait Plugin: fmt::Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// Names of plugins that must be initialised before this one.
    fn requires(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes it usable as far as the sandbox waits for it. What takes long goes on in the background.
    ///
    /// If the future is dropped the plugin is stopped next.
    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>>;

    /// How it stands, and every change of that.
    fn state(&self) -> watch::Receiver<PluginState>;

    /// Kinds of actions that it executes.
    fn handles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Executes an action of one of these kinds.
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        let _ = event;
        let text = format!("{} plugin does not support run method", self.name());
        Box::pin(async move { Err(ExecuteError::Failed(text)) })
    }

    /// Variables for the shells of a sandbox with this workspace.
    fn environment(&self, workspace: &Path) -> Vec<(String, String)> {
        let _ = workspace;
        Vec::new()
    }

    /// The service that requests for `/plugins/NAME/` go to.
    fn service(&self) -> Option<Arc<Service>> {
        None
    }

    /// What a browser shows to be let in (`/vscode/connection_token`); none for a plugin without a service.
    fn token(&self) -> Option<String> {
        None
    }

    /// What a browser shows to be let in under `/plugins/NAME/`.
    fn path_token(&self) -> Option<String> {
        self.token()
    }

    /// Ends it, and returns when nothing of it is left.
    fn stop(&self) -> BoxFuture<'_, ()>;
}
