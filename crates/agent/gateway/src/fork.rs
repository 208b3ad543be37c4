//! A sandbox that is made of another one, within the quotas of its tenant.

use gloveport_gateway_store::{Reserved, Wants};
use gloveport_provider::{Progress, Sandbox, SessionId};
use http::StatusCode;

use crate::{
    fault::Fault,
    held::HOLD,
    identity::Identity,
    policy,
    shared::Shared,
    tenancy::{Started, refused},
};

impl Shared {
    /// A sandbox of another session of the same tenant that begins with the files of this one.
    pub(crate) async fn fork(&self, who: &Identity, source: &Sandbox, session: &SessionId) -> Result<Started, Fault> {
        if !self.can.snapshots {
            return Err(self.provider.cannot("forks").into());
        }
        let engine = self.engine_session(who.name(), session)?;
        let silent = Progress::silent();
        let making = self.provider.fork(&source.id, &engine, &silent);
        let (Some(tenancy), Some(tenant)) = (&self.tenancy, &who.tenant) else {
            self.turns.makes(who.name(), session.as_str());
            return Ok(Started { sandbox: making.await?, is_new: true, held: None });
        };
        // It is as large as what it is made of.
        let row = tenancy.store.of_runtime(source.id.as_str()).await?;
        let (cpu_millis, memory_bytes) =
            row.map_or_else(|| tenancy.size.times(1), |row| (row.cpu_millis, row.memory_bytes));
        let wants = Wants { session: session.as_str(), image: source.image.as_deref(), cpu_millis, memory_bytes };
        match tenancy.store.reserve(&tenant.name, &wants, &tenancy.gateway, HOLD).await? {
            Reserved::NoTenant => Err(refused()),
            Reserved::Refused(refusal) => Err(policy::used_up(&refusal)),
            Reserved::There(_) => Err(exists(session)),
            Reserved::Made(place) => match self.create_in(tenancy, who, making, (place, &wants)).await? {
                started if started.is_new => Ok(started),
                _ => Err(exists(session)),
            },
        }
    }
}

/// The answer to who asks for a new sandbox of a session that has one.
pub(crate) fn exists(session: &SessionId) -> Fault {
    let detail = format!(
        "the session `{session}` has a sandbox already; use it, delete it, or ask with ?if_exists=return for the one that \
         there is"
    );
    Fault::new(StatusCode::CONFLICT, detail).called("session_exists")
}
