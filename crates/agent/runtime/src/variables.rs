//! Variables of a session: set in all its tools, and tokens among them that grow old.

use std::collections::BTreeMap;

use gloveport_protocol::{Action, Secret};

use crate::{Runtime, RuntimeError, environment::set_variables, git_providers};

impl Runtime {
    /// Sets variables in all tools, now and after their restart. Names are put into upper case (runtime-interface 6.2).
    ///
    /// Values arrive byte for byte and nothing in them is ever executed. A name that no shell accepts, or a value with
    /// a NUL, is refused before anything is set.
    pub async fn add_env_vars(&self, variables: &BTreeMap<String, Secret>) -> Result<(), RuntimeError> {
        let connection = self.connection()?;
        tokio::select! {
            set = set_variables(&**connection, self.has_plugin("jupyter"), variables) => set,
            () = self.session.stop.cancelled() => Err(RuntimeError::Closed),
        }
    }

    /// Fetches newer tokens where a command speaks of them, for the tools and for what is masked
    /// (runtime-interface 11.4). What fails is reported and leaves the old ones.
    pub(crate) async fn refresh_tokens(&self, action: &Action) {
        let Action::Run(run) = action else { return };
        let providers = git_providers::referenced_providers(&run.command);
        if providers.is_empty() {
            return;
        }
        let session = &self.session;
        let tokens = git_providers::env_vars(session.providers.tokens(), &providers, session.refresh.as_ref()).await;
        if tokens.is_empty() {
            return;
        }
        if let Some(stream) = &session.stream {
            stream.update_secrets(tokens.clone());
        }
        if let Err(error) = self.add_env_vars(&tokens).await {
            tracing::warn!(sid = self.sid(), %error, "the tools keep the old tokens");
        }
    }
}
