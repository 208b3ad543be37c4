//! What a session can ask of a sandbox that a provider hosts (docker-runtime 11, remote-runtime-api 3.4).

use std::collections::BTreeMap;

use gloveport_provider::{PhaseTiming, Sandbox};

use crate::{
    Hosted, Runtime, RuntimeError,
    connection::urls::{editor, web_hosts},
};

impl Runtime {
    /// Lets the sandbox rest. Until it is resumed, actions fail; where sandboxes are kept
    /// ([`HostedOptions::keep_alive`](crate::HostedOptions::keep_alive)), the next one resumes it.
    pub async fn pause(&self) -> Result<(), RuntimeError> {
        let hosted = self.hosted("pausing")?;
        self.session.mcp_clients.clear().await;
        hosted.pause().await
    }

    /// Lets a paused sandbox go on, waits for its server, and sets its environment up again.
    pub async fn resume(&self) -> Result<(), RuntimeError> {
        self.hosted("resuming")?.resume().await
    }

    /// Ends the sandbox, also one that is kept, and removes all that belongs to it; `false` if it was gone. The
    /// session is still to be closed.
    pub async fn delete(&self) -> Result<bool, RuntimeError> {
        self.hosted("deleting the sandbox")?.delete().await
    }

    /// The sandbox as its engine tells it now.
    pub async fn sandbox(&self) -> Result<Sandbox, RuntimeError> {
        self.hosted("asking for the sandbox")?.sandbox().await
    }

    /// How long each phase of connecting took; empty without a provider.
    pub fn timings(&self) -> Vec<PhaseTiming> {
        self.session.connector.hosted().map(Hosted::timings).unwrap_or_default()
    }

    /// The URLs of programs in the sandbox, and the ports in it behind them.
    pub fn web_hosts(&self) -> Result<BTreeMap<String, u16>, RuntimeError> {
        Ok(web_hosts(&self.hosted("asking for web hosts")?.connected()?))
    }

    /// The URL of the web editor, with its token; none without the plugin, before `connect` is done, or where the
    /// provider gives it no address (action-execution-client 6).
    pub async fn vscode_url(&self) -> Result<Option<String>, RuntimeError> {
        let hosted = self.hosted("asking for the editor")?;
        if !self.has_plugin("vscode") || !self.is_initialized() {
            return Ok(None);
        }
        let token = self.connection()?.vscode_token().await?;
        if token.is_empty() {
            return Ok(None);
        }
        Ok(editor(hosted.engine(), &hosted.connected()?, &token, self.workspace_root()))
    }

    fn hosted(&self, what: &'static str) -> Result<&Hosted, RuntimeError> {
        self.session.connector.hosted().ok_or(RuntimeError::NotHosted(what))
    }
}
