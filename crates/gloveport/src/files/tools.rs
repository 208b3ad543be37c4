//! What executes actions on files: a place, and where it is a session's, its gate and its history.

use gloveport_protocol::{Action, Observation, ObservationEvent, WriteObservation};
use gloveport_runtime::Operations;

use super::{
    arguments::ServerArgs,
    place::{Place, Shown},
};
use crate::operate::{Done, operate, writing};

/// The file tools of a place.
pub(crate) struct Tools {
    place: Place,
    /// What rates and records all that is done.
    operations: Option<Operations>,
}

impl Tools {
    /// Those of this machine or of a server, by its flags.
    pub(super) fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Ok(Self { place: Place::new(server)?, operations: None })
    }

    /// Those of a session.
    pub(crate) fn of_session(place: Place, operations: Operations) -> Self {
        Self { place, operations: Some(operations) }
    }

    /// Where the files are.
    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Executes an action.
    pub(super) async fn execute(&self, action: Action) -> anyhow::Result<Shown> {
        let as_recorded = self.operations.is_some().then(|| action.clone());
        self.done(as_recorded, Box::pin(self.place.execute(action))).await
    }

    /// Writes a file whole; its directory is made if it is missing.
    pub(super) async fn store(&self, path: &str, content: Vec<u8>) -> anyhow::Result<Shown> {
        let as_recorded = self.operations.is_some().then(|| writing(path, &content));
        let work = async {
            self.place.store(path, content).await?;
            Ok(Observation::Write(WriteObservation::new("", path)))
        };
        self.done(as_recorded, Box::pin(work)).await
    }

    async fn done(
        &self,
        as_recorded: Option<Action>,
        work: impl Future<Output = anyhow::Result<Observation>>,
    ) -> anyhow::Result<Shown> {
        let (Some(operations), Some(action)) = (&self.operations, as_recorded) else {
            return Ok(Shown(Done::Came(Box::new(ObservationEvent::from(work.await?)))));
        };
        Ok(Shown(operate(operations, action, work).await?))
    }
}
