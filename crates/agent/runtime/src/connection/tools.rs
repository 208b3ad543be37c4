//! Tools for a sandbox whose server has none: an `agent-server` of OpenHands' SDK 1.x.

use std::{path::PathBuf, sync::Arc};

use gloveport_client::{ClientOptions, Relay, RelayOptions, WireOfServer, wire_of};
use gloveport_hosted::program::Program;

use crate::RuntimeError;

/// What is brought into a sandbox whose server is an `agent-server`.
#[derive(Clone, Debug)]
pub struct BroughtTools {
    program: Arc<Program>,
    workspace: String,
    plugins: Vec<String>,
}

impl BroughtTools {
    /// The tools of this program, which is ours for Linux. They start in `/workspace`, if the sandbox has it.
    pub fn of_program(program: PathBuf) -> Self {
        Self { program: Arc::new(Program::new(program)), workspace: "/workspace".to_owned(), plugins: Vec::new() }
    }

    /// With this workspace, which is a path in the sandbox.
    #[must_use]
    pub fn in_workspace(self, workspace: impl Into<String>) -> Self {
        Self { workspace: workspace.into(), ..self }
    }

    /// With these plugins.
    #[must_use]
    pub fn with_plugins(self, plugins: Vec<String>) -> Self {
        Self { plugins, ..self }
    }

    /// Brings them to the server that these options name, if it is an `agent-server`. None if it has tools of its own.
    pub(super) async fn bring(
        tools: Option<&Self>,
        options: &ClientOptions,
        sid: &str,
    ) -> Result<Option<Arc<Relay>>, RuntimeError> {
        if wire_of(options).await? == WireOfServer::ActionExecution {
            return Ok(None);
        }
        let Some(Self { program, workspace, plugins }) = tools else {
            let what = format!(
                "the server at {} is an agent-server of OpenHands' SDK 1.x, and no program is named whose tools could be \
                 brought into its sandbox",
                options.url
            );
            return Err(RuntimeError::Unavailable { what, source: None });
        };
        let relay = RelayOptions {
            session: sid.to_owned(),
            program: program.path().to_owned(),
            name: program.name().await?,
            workspace: workspace.clone(),
            plugins: plugins.clone(),
        };
        Ok(Some(Relay::start(options, relay).await?))
    }
}
