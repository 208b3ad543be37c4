//! `agent_skills`: functions that every kernel knows (ipython-and-plugins 3).

use std::sync::Arc;

use gloveport_plugin::{Plugin, PluginError, PluginHost, PluginState};
use gloveport_protocol::{ActionEvent, BoxFuture, ExecuteError, Observation};
use gloveport_skills::Skills;
use tokio::sync::{OnceCell, watch};

/// The functions for the kernels. They are unpacked when a kernel needs them first.
#[derive(Debug)]
pub struct AgentSkills {
    skills: OnceCell<Skills>,
    state: watch::Sender<PluginState>,
}

impl AgentSkills {
    /// The plugin, not yet unpacked.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { skills: OnceCell::new(), state: watch::Sender::new(PluginState::Idle) })
    }

    /// What the kernels need; it is made by the first call.
    pub(super) async fn skills(&self, host: &PluginHost) -> Result<&Skills, PluginError> {
        let made = self.skills.get_or_try_init(|| Skills::start(&host.surroundings)).await;
        match made {
            Ok(skills) => {
                self.state.send_replace(PluginState::Ready);
                Ok(skills)
            }
            Err(error) => {
                let error = PluginError::new(
                    format!("the functions of agent_skills cannot be unpacked: {error}"),
                    "make room or a writable directory for temporary files, or start without the plugin",
                );
                self.state
                    .send_replace(PluginState::Failed { reason: error.reason.clone(), remedy: error.remedy.clone() });
                Err(error)
            }
        }
    }
}

impl Plugin for AgentSkills {
    fn name(&self) -> &'static str {
        "agent_skills"
    }

    fn initialize<'a>(&'a self, _host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async { Ok(()) })
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    fn execute<'a>(&'a self, _event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(async { Err(ExecuteError::Failed("AgentSkillsPlugin does not support run method".to_owned())) })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(skills) = self.skills.get() {
                skills.close().await;
            }
            self.state.send_replace(PluginState::Stopped);
        })
    }
}
