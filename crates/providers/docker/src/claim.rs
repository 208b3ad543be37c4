//! A container that waits becomes a session's: its server is told what it is for, once, and it gets the name that the engine lets one
//! container have only.

use bollard::query_parameters::RenameContainerOptionsBuilder;
use gloveport_provider::{Phase, ProviderError, STARTED_AHEAD, Sandbox, SandboxId, SandboxSpec, Teller};

use crate::{
    claimed::Record,
    fault::{self, failed},
    inner::Inner,
    view::Container,
    waiting::{Kind, Waiting},
};

/// How often a name is asked for again that something ended has.
const RACES: u32 = 10;

impl Inner {
    /// Makes one of the containers that wait the sandbox of a session, if there is one of this kind.
    pub(crate) async fn claim(
        &self,
        kind: &Kind,
        (id, spec, key): (&SandboxId, &SandboxSpec, &str),
        tell: &Teller,
    ) -> Result<Option<Sandbox>, ProviderError> {
        while let Some(waiting) = self.pool.take(kind) {
            if let Some(existing) = self.container(id.as_str()).await?
                && existing.sandbox.state.is_live()
            {
                self.put_back(waiting);
                return Err(exists(spec, existing));
            }
            tell.enter(Phase::Creating, STARTED_AHEAD);
            match self.become_it(&waiting, id, spec, key).await {
                Ok(sandbox) => {
                    tell.enter(Phase::Started, "");
                    return Ok(Some(sandbox));
                }
                Err(error) => {
                    self.end_container(&waiting.engine_id).await;
                    if matches!(error, ProviderError::SessionExists { .. }) {
                        return Err(error);
                    }
                    tracing::warn!(%error, "a container that was started ahead is of no use; another one takes its place");
                }
            }
        }
        Ok(None)
    }

    async fn become_it(
        &self,
        waiting: &Waiting,
        id: &SandboxId,
        spec: &SandboxSpec,
        key: &str,
    ) -> Result<Sandbox, ProviderError> {
        let record = Record::new(spec, key)?;
        tokio::try_join!(self.record(&waiting.engine_id, &record), self.tell(waiting, spec, key))?;
        self.name_it(&waiting.engine_id, id, spec).await?;
        let made = self.container(&waiting.engine_id).await?;
        let made = made.ok_or_else(|| failed("claim a container", "it was removed at once"))?;
        self.holders.hold(&made.engine_id)?;
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(made.engine_id.clone());
        Ok(made.sandbox)
    }

    /// Gives a container the name of the session's sandbox. Of two that want it one gets it.
    async fn name_it(&self, engine_id: &str, id: &SandboxId, spec: &SandboxSpec) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let action = format!("name the container `{id}`");
        for _ in 0..RACES {
            let options = RenameContainerOptionsBuilder::default().name(id.as_str()).build();
            match self.engine.ask(&action, docker.rename_container(engine_id, options)).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(fault::of(error)),
            }
            let Some(existing) = self.container(id.as_str()).await? else { continue };
            if existing.sandbox.state.is_live() {
                return Err(exists(spec, existing));
            }
            if existing.backend.is_none() {
                let hint = "it has ended and was not made by this program; remove or rename it first";
                return Err(failed(action, format!("a container has that name already: {hint}")));
            }
            self.remove_whole(&existing).await?;
        }
        Err(failed(action, "its name is taken and given up all the time"))
    }
}

fn exists(spec: &SandboxSpec, existing: Container) -> ProviderError {
    ProviderError::SessionExists { session: spec.session_id.clone(), sandbox: existing.sandbox.id }
}
