//! Talks to the gate of a running sandbox: a program that is started beside it tells it what changes, and prints its answer.

use std::time::Duration;

use bollard::{
    container::LogOutput,
    exec::{CreateExecOptions, StartExecResults},
    models::ContainerInspectResponse,
};
use futures_util::StreamExt as _;
use gloveport_contract::gate::{Answer, LONGEST};
use gloveport_provider::{NetworkChange, NetworkState, ProviderError, SandboxId};
use tokio::time::timeout;

use crate::{
    fault::{self, NAME, failed, wrong},
    inner::Inner,
};

/// Time for the whole conversation.
const LIMIT: Duration = Duration::from_secs(20);
/// Most bytes of a change: one word of a command line.
const LONGEST_CHANGE: usize = 100 * 1024;
/// Most bytes of what a program that failed has said.
const LONGEST_WORDS: usize = 4096;

impl Inner {
    /// Has the gate of a sandbox make a change, and tells what it does then.
    pub(crate) async fn change_network(
        &self,
        id: &SandboxId,
        change: &NetworkChange,
    ) -> Result<NetworkState, ProviderError> {
        let found = self.existing(id).await?;
        let gate = match &found.network {
            Some(network) => self.gate(id.as_str(), network).await?,
            None => None,
        };
        let unsupported = || ProviderError::Unsupported {
            provider: NAME.to_owned(),
            what: format!("changes of the network of `{id}`, which was started without a way out (`--network HOSTS`)"),
        };
        let gate = gate.ok_or_else(unsupported)?;
        let words = gate.config.as_ref().and_then(|config| config.cmd.as_deref()).unwrap_or_default();
        let program = words.first().filter(|_| words.iter().any(|word| word == "--proxy")).ok_or_else(unsupported)?;
        if !words.iter().any(|word| word == "--control") {
            let reason = format!("the gate of `{id}` was made by an earlier version; make the sandbox anew");
            return Err(failed("change the network", reason));
        }
        let action = format!("talk to the gate of `{id}`");
        let text = serde_json::to_string(change).map_err(|error| failed(&action, error))?;
        if text.len() > LONGEST_CHANGE {
            return Err(wrong("network", format!("a change may have {LONGEST_CHANGE} bytes; make several of it")));
        }
        let command = vec![program.clone(), "gate-change".to_owned(), text];
        let told = timeout(LIMIT, self.in_gate(&gate, command, &action)).await;
        let told = told.map_err(|_| ProviderError::Timeout { action: action.clone(), limit: LIMIT })??;
        match serde_json::from_slice(&told).map_err(|error| failed(&action, error))? {
            Answer::State(state) => Ok(state),
            Answer::Wrong(reason) => Err(wrong("network", reason)),
        }
    }

    /// What a program prints that is started in a gate.
    async fn in_gate(
        &self,
        gate: &ContainerInspectResponse,
        command: Vec<String>,
        action: &str,
    ) -> Result<Vec<u8>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let id = gate.id.as_deref().unwrap_or_default();
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command),
            ..CreateExecOptions::default()
        };
        let made = self.engine.ask(action, docker.create_exec(id, options)).await.map_err(fault::of)?;
        let started = self.engine.ask(action, docker.start_exec(&made.id, None)).await.map_err(fault::of)?;
        let StartExecResults::Attached { mut output, .. } = started else {
            return Err(failed(action, "the engine shows no output"));
        };
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        while let Some(piece) = output.next().await {
            match piece.map_err(|error| failed(action, error))? {
                LogOutput::StdOut { message } => printed.extend_from_slice(&message),
                LogOutput::StdErr { message } if said.len() < LONGEST_WORDS => said.extend_from_slice(&message),
                _ => {}
            }
            if u64::try_from(printed.len()).unwrap_or(u64::MAX) > LONGEST {
                return Err(failed(action, format!("it answered with more than {LONGEST} bytes")));
            }
        }
        if printed.is_empty() {
            return Err(failed(action, String::from_utf8_lossy(&said).trim()));
        }
        Ok(printed)
    }
}
