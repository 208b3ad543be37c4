//! Our program in a sandbox: it is uploaded once, and started.

use bytes::Bytes;
use gloveport_hosted::{
    record::Record,
    server::{self, LAST, PLACE, PREPARE, SERVE, command, environment},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxId, SandboxSpec};

use crate::{
    agent::{Agent, Fault, Program, Start},
    inner::{Inner, Tokens},
    names::TAG,
};

/// What a server is started with.
pub(crate) struct Launch<'a> {
    pub(crate) id: &'a SandboxId,
    pub(crate) record: &'a Record,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) key: &'a Secret,
    pub(crate) tokens: &'a Tokens,
}

impl Inner {
    /// The path of our program in sandboxes.
    async fn program(&self) -> Result<String, ProviderError> {
        Ok(format!("{}/bin/{}", self.options.directory, self.program.name().await?))
    }

    /// Brings our program into a sandbox and starts it as the server.
    pub(crate) async fn launch(&self, launch: &Launch<'_>) -> Result<(), ProviderError> {
        let agent = self.agent(launch.id, launch.tokens)?;
        let started = async {
            let program = self.program().await?;
            self.prepare(&agent, launch.record, &program).await?;
            self.start(&agent, launch, program).await
        };
        started.await.map_err(|fault: Fault| match fault {
            Fault::Gone(reason) => ProviderError::Start {
                reason: format!("it is gone, or somebody paused it ({reason})"),
                log: String::new(),
            },
            Fault::Other(error) => error,
        })
    }

    /// The last that a server has written; empty where nobody can tell any more.
    pub(crate) async fn last_lines(&self, launch: &Launch<'_>) -> String {
        let Ok(agent) = self.agent(launch.id, launch.tokens) else { return String::new() };
        let log = format!("{}/log", launch.record.directory);
        let said = agent.run("read the log of a sandbox", LAST, &[&log]).await;
        said.map(|(_, said)| said).unwrap_or_default()
    }

    async fn prepare(&self, agent: &Agent<'_>, record: &Record, program: &str) -> Result<(), Fault> {
        let action = "prepare a sandbox";
        let failed =
            |said: String| Fault::from(self.control.service.failed(action, format!("a script failed: {said}")));
        let paths = [&*self.options.directory, &*record.directory, &*record.workspace, &*self.options.user, program];
        match agent.run(action, PREPARE, &paths).await? {
            (0, said) if said.ends_with("there") => return Ok(()),
            (0, said) if said.ends_with("missing") => {}
            (_, said) => return Err(failed(said)),
        }
        let new = format!("{}/program.new", record.directory);
        agent.upload(&new, Bytes::from(self.program.read().await?)).await?;
        match agent.run(action, PLACE, &[&new, program]).await? {
            (0, _) => Ok(()),
            (_, said) => Err(failed(said)),
        }
    }

    async fn start(&self, agent: &Agent<'_>, launch: &Launch<'_>, program: String) -> Result<(), Fault> {
        let Launch { record, spec, .. } = launch;
        let action = "start the server of a sandbox";
        let words = command(record, spec, program);
        let words: Vec<&str> =
            [record.directory.as_str()].into_iter().chain(words.iter().map(String::as_str)).collect();
        let program = Program { envs: environment(record, spec, launch.key), ..Program::script(SERVE, &words) };
        let input = server::input(spec).map_err(|error| self.control.service.failed(action, error))?;
        let has_secrets = input.is_some();
        let start = Start { program, tag: Some(TAG), stdin: has_secrets };
        let running = match agent.start(action, &self.options.user, start).await {
            // The answer may have been lost, and two servers are one too many.
            Err(Fault::Other(error)) if error.is_temporary() => {
                let is_there = agent.processes().await?.iter().any(crate::agent::Process::is_server);
                return if is_there && !has_secrets { Ok(()) } else { Err(error.into()) };
            }
            started => started?,
        };
        if let Some(line) = input {
            agent.tell(running.pid, &line).await?;
        }
        Ok(())
    }
}
