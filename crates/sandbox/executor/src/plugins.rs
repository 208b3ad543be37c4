//! The plugins of a sandbox: what they execute, how they stand, and their end.

mod agent_skills;
mod notebook;
mod web;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

pub use gloveport_plugin::Plugin;
use gloveport_plugin::{PluginHost, PluginState};
use gloveport_protocol::{ActionEvent, ExecuteError, Observation};
use tokio::task::JoinSet;

pub use agent_skills::AgentSkills;
pub use notebook::{FirstKernel, Notebook};
pub use web::{DownloadPlace, FirstStart, NoWeb, Web};

use crate::{
    error::ExecutorError,
    parts::{Part, PartState},
};

/// Plugins that a sandbox is started with.
#[derive(Debug, Clone)]
pub struct PluginOptions {
    /// The plugins, each behind those that it requires.
    pub all: Vec<Arc<dyn Plugin>>,
    /// The one of them that runs cells, if there is one.
    pub notebook: Option<Arc<Notebook>>,
    /// The one that browses, if there is one.
    pub web: Option<Arc<Web>>,
    /// Time to initialise all of them (`INIT_PLUGIN_TIMEOUT`, ipython-and-plugins 1).
    pub limit: Duration,
}

impl Default for PluginOptions {
    fn default() -> Self {
        Self { all: Vec::new(), notebook: None, web: None, limit: Duration::from_mins(2) }
    }
}

/// The plugins of a sandbox, initialised. Dropping it ends the watch over them, not them; see [`stop`](Self::stop).
#[derive(Debug)]
pub struct Plugins {
    options: PluginOptions,
    parts: Arc<Mutex<Vec<Part>>>,
    _watchers: JoinSet<()>,
}

impl Plugins {
    /// Initialises all of them. If one cannot be initialised all are ended.
    pub(crate) async fn start(options: PluginOptions, host: PluginHost) -> Result<Self, ExecutorError> {
        let parts: Vec<Part> = options.all.iter().map(|plugin| Part::starting(plugin.name())).collect();
        let parts = Arc::new(Mutex::new(parts));
        let mut watchers = JoinSet::new();
        for (index, plugin) in options.all.iter().enumerate() {
            watchers.spawn(watch(Arc::clone(plugin), index, Arc::clone(&parts)));
        }
        gloveport_plugin::initialize_all(&options.all, &host, options.limit).await?;
        Ok(Self { options, parts, _watchers: watchers })
    }

    /// The plugins, each behind those that it requires.
    pub fn all(&self) -> &[Arc<dyn Plugin>] {
        &self.options.all
    }

    /// The plugin of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.options.all.iter().find(|plugin| plugin.name() == name)
    }

    /// The one that runs cells.
    pub fn notebook(&self) -> Option<&Arc<Notebook>> {
        self.options.notebook.as_ref()
    }

    /// The one that browses.
    pub fn web(&self) -> Option<&Arc<Web>> {
        self.options.web.as_ref()
    }

    /// Variables for the shells of the sandbox.
    pub(crate) fn environment(options: &PluginOptions, workspace: &Path) -> Vec<(String, String)> {
        options.all.iter().flat_map(|plugin| plugin.environment(workspace)).collect()
    }

    /// How each of them stands, in the order of [`all`](Self::all).
    pub fn parts(&self) -> Vec<Part> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has an action executed by the plugin that handles its kind; `None` if there is no such plugin.
    pub(crate) async fn execute(&self, event: &ActionEvent) -> Option<Result<Observation, ExecuteError>> {
        let kind = event.action.kind();
        let plugin = self.options.all.iter().find(|plugin| plugin.handles().iter().any(|handled| handled == kind))?;
        Some(plugin.execute(event).await)
    }

    /// Ends all of them.
    pub(crate) async fn stop(&self) {
        gloveport_plugin::stop_all(&self.options.all).await;
    }
}

/// Notes how a plugin stands and since when.
async fn watch(plugin: Arc<dyn Plugin>, index: usize, parts: Arc<Mutex<Vec<Part>>>) {
    let mut states = plugin.state();
    let mut began = Instant::now();
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(part) = parts.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
            let (state, step) = part_state(state);
            if state == PartState::Starting && part.state != PartState::Starting {
                began = Instant::now();
            }
            if state != part.state {
                part.since = Instant::now();
            }
            if state == PartState::Ready && part.state == PartState::Starting {
                part.took = Some(began.elapsed());
            }
            (part.state, part.step) = (state, step);
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

fn part_state(state: PluginState) -> (PartState, Option<String>) {
    match state {
        PluginState::Idle => (PartState::Idle, None),
        PluginState::Starting { step } => (PartState::Starting, Some(step)),
        PluginState::Ready => (PartState::Ready, None),
        PluginState::Failed { reason, remedy } => (PartState::Failed { reason, remedy }, None),
        PluginState::Stopped => (PartState::Off, None),
    }
}
