//! Tenants of a gateway with a database: who asks, and the places of their sandboxes.

use std::{net::IpAddr, sync::Arc, time::Duration};

use gloveport_gateway_store::{KeyCheck, Place, Reserved, Session, SessionState, Store, StoreError, Tenant, Wants};
use gloveport_provider::{Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState, SessionId};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::{Instant, sleep};

use crate::{
    audit::Audit,
    fault::Fault,
    heads::API_KEY,
    held::{HOLD, Held, Untold},
    identity::{self, DEFAULT, Identity},
    options::Size,
    policy::{self, Asked},
    shared::Shared,
};

/// How long a start waits for another start of the same session.
const WAIT: Duration = Duration::from_mins(2);
/// Pause between two looks at it. Another gateway's work tells nothing by itself.
const LOOK: Duration = Duration::from_millis(200);
/// Pauses between looks at whether somebody was told of a sandbox that is there.
const SETTLING: [Duration; 4] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(40), Duration::from_millis(80)];
/// When to try again what needs the database.
const AWAY: Duration = Duration::from_secs(5);

/// What a gateway with a database has.
#[derive(Debug)]
pub(crate) struct Tenancy {
    pub(crate) store: Store,
    pub(crate) audit: Arc<Audit>,
    /// What a sandbox counts for.
    pub(crate) size: Size,
    /// A name of this gateway.
    pub(crate) gateway: String,
}

/// A sandbox that was asked for.
pub(crate) struct Started {
    pub(crate) sandbox: Sandbox,
    /// It was made for this request.
    pub(crate) is_new: bool,
    /// Its place until somebody was told of it, where it is new and a database keeps places.
    pub(crate) held: Option<Held>,
}

impl Started {
    fn there(sandbox: Sandbox) -> Self {
        Self { sandbox, is_new: false, held: None }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        if error.is_temporary() {
            tracing::warn!(%error, "the database is away");
            let detail = "the database of the gateway does not answer; sandboxes go on, try this again";
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).after(AWAY);
        }
        match error {
            StoreError::Value { .. } => Self::wrong(error.to_string()),
            error => {
                tracing::error!(%error, "the database did not do what it was asked to");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the database of the gateway did not do what it was asked to",
                )
            }
        }
    }
}

pub(crate) fn refused() -> Fault {
    let detail = "the key in the header X-API-Key is missing or wrong; it is that of `gloveport gateway --key-file`, or \
        one of `gloveport gateway key create`";
    Fault::new(StatusCode::UNAUTHORIZED, detail)
}

impl Shared {
    /// Who asks.
    pub(crate) async fn identify(&self, headers: &HeaderMap, address: Option<IpAddr>) -> Result<Identity, Fault> {
        let shown = headers.get(API_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        let is_default = self.has_file_key(headers);
        let Some(tenancy) = &self.tenancy else {
            return if is_default { Ok(Identity { tenant: None, key: None, address }) } else { Err(refused()) };
        };
        let (tenant, key) = if is_default {
            let found = tenancy.store.find_tenant(DEFAULT).await?;
            let gone = || Fault::new(StatusCode::FORBIDDEN, "the tenant `default`, whose key this is, was deleted");
            (Box::new(found.ok_or_else(gone)?), None)
        } else {
            tenancy.of_key(shown, address).await?
        };
        if tenant.disabled {
            tenancy.audit.refused(address, key, "the tenant is disabled");
            return Err(Fault::new(StatusCode::FORBIDDEN, format!("the tenant `{}` is disabled", tenant.name)));
        }
        Ok(Identity { tenant: Some(tenant), key, address })
    }

    /// Whether a sandbox is one of the tenant's; with its session as the tenant calls it.
    pub(crate) async fn of_tenant(&self, who: &Identity, mut sandbox: Sandbox) -> Result<Option<Sandbox>, Fault> {
        let owner = self.owner_of(&sandbox).await?.filter(|(tenant, _)| tenant == who.name());
        Ok(owner.map(|(_, session)| {
            sandbox.session_id = session;
            sandbox
        }))
    }

    /// Whose a sandbox is, and what that tenant calls its session; nobody's if no gateway has made it.
    pub(crate) async fn owner_of(&self, sandbox: &Sandbox) -> Result<Option<(String, SessionId)>, Fault> {
        if !self.is_own(sandbox) {
            return Ok(None);
        }
        let called = (identity::tenant_of(sandbox).to_owned(), identity::session_of(sandbox));
        let Some(tenancy) = &self.tenancy else { return Ok(Some(called)) };
        let has_label = self.can.labels;
        if has_label
            && (called.1 == sandbox.session_id || self.engine_session(&called.0, &called.1)? == sandbox.session_id)
        {
            return Ok(Some(called));
        }
        // The label of a fork tells the session of the sandbox that it was made from.
        let row = tenancy.store.of_runtime(sandbox.id.as_str()).await?;
        Ok(match row {
            Some(row) if !has_label || row.tenant == called.0 => {
                let session = SessionId::new(row.session).unwrap_or_else(|_| sandbox.session_id.clone());
                Some((row.tenant, session))
            }
            Some(_) | None => has_label.then_some(called),
        })
    }

    /// The sandbox of a session: a new one, the one that it has, or what was `left` by requests whose clients have gone.
    pub(crate) async fn start(
        &self,
        who: &Identity,
        spec: SandboxSpec,
        asked: &Asked,
        left: Option<&SandboxId>,
    ) -> Result<Started, Fault> {
        self.start_telling(who, spec, asked, (left, &Progress::silent())).await
    }

    /// The same, told as it goes on: what is told comes after the decision that the tenant may have it.
    pub(crate) async fn start_telling(
        &self,
        who: &Identity,
        mut spec: SandboxSpec,
        asked: &Asked,
        (left, progress): (Option<&SandboxId>, &Progress),
    ) -> Result<Started, Fault> {
        spec.confinement.clone_from(&self.options.confinement);
        let image = asked.image.as_deref().unwrap_or_default();
        if self.builds.as_ref().is_some_and(|builds| builds.is_of_others(who.name(), image)) {
            return Err(Fault::new(StatusCode::FORBIDDEN, "the image is another tenant's"));
        }
        let is_own = self.builds.as_ref().is_some_and(|builds| builds.is_of(who.name(), image));
        let session = spec.session_id.clone();
        let (Some(tenancy), Some(tenant)) = (&self.tenancy, &who.tenant) else {
            return self.create(who, &spec, progress).await;
        };
        let is_own = is_own || self.is_own_snapshot(who, image).await?;
        policy::apply(tenant, asked, (self.can.images, is_own), &mut spec)?;
        spec.session_id = self.engine_session(&tenant.name, &session)?;
        if self.can.labels {
            spec.labels.extend(identity::labels(&tenant.name, &session, &spec.session_id));
        }
        let wants = tenancy.size.wants(session.as_str(), asked);
        let is_left = |row: &Session| left.is_some_and(|left| row.runtime.as_deref() == Some(left.as_str()));
        let until = Instant::now() + WAIT;
        while Instant::now() < until {
            match tenancy.store.reserve(&tenant.name, &wants, &tenancy.gateway, HOLD).await? {
                Reserved::NoTenant => return Err(refused()),
                Reserved::Refused(refusal) => return Err(policy::used_up(&refusal)),
                Reserved::Made(place) => {
                    let making = async {
                        progress.enter(Phase::Creating, "");
                        self.warm.make(&*self.provider, &spec, progress).await
                    };
                    return self.create_in(tenancy, who, making, (place, &wants)).await;
                }
                // Another gateway is at it: what it makes is there when its client has been told, or gone.
                Reserved::There(row) if row.state == SessionState::Reserved && !is_left(&row) => sleep(LOOK).await,
                Reserved::There(row) => {
                    let Some(runtime) = row.runtime else { break };
                    match self.live(who, &runtime).await? {
                        Some(sandbox) => return Ok(Started::there(self.go_on(who, &sandbox.id).await?)),
                        None => tenancy.store.ended(&runtime, "the sandbox is gone").await?,
                    }
                }
            }
        }
        let detail = "the sandbox of this session is being made by another request; ask again";
        Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, detail).after(AWAY))
    }

    /// The engine's name of a session.
    pub(crate) fn engine_session(&self, tenant: &str, session: &SessionId) -> Result<SessionId, Fault> {
        identity::engine_session(self.tenancy.as_ref().map(|tenancy| &tenancy.store), tenant, session)
    }

    /// The sandbox of a session, ended or not. Until the client that it is made for knows of it, it is pending to others, as it
    /// may be taken back.
    pub(crate) async fn of_session(&self, who: &Identity, session: &str) -> Result<Option<Sandbox>, Fault> {
        let Ok(session) = SessionId::new(session) else { return Ok(None) };
        let engine = self.engine_session(who.name(), &session)?;
        if let Some(sandbox) = self.provider.find_session(&engine).await? {
            let mut own = self.of_tenant(who, sandbox).await?;
            if let Some(sandbox) = own.as_mut().filter(|sandbox| sandbox.state == SandboxState::Running)
                && self.is_untold(who, &session).await?
            {
                sandbox.state = SandboxState::Pending;
            }
            return Ok(own);
        }
        // A sandbox of another database has another name at the engine, and was taken over.
        let Some(tenancy) = &self.tenancy else { return Ok(None) };
        let row = tenancy.store.of_session(who.name(), session.as_str()).await?;
        match row.and_then(|row| row.runtime) {
            Some(runtime) => self.live(who, &runtime).await,
            None => Ok(None),
        }
    }

    /// A sandbox of the tenant that has not ended.
    async fn live(&self, who: &Identity, runtime: &str) -> Result<Option<Sandbox>, Fault> {
        let Ok(id) = SandboxId::new(runtime) else { return Ok(None) };
        match self.provider.find(&id).await?.filter(|sandbox| sandbox.state.is_live()) {
            Some(sandbox) => self.of_tenant(who, sandbox).await,
            None => Ok(None),
        }
    }

    async fn create(&self, who: &Identity, spec: &SandboxSpec, progress: &Progress) -> Result<Started, Fault> {
        progress.enter(Phase::Creating, "");
        self.turns.makes(who.name(), spec.session_id.as_str());
        match self.warm.make(&*self.provider, spec, progress).await {
            Ok(sandbox) => Ok(Started { sandbox, is_new: true, held: None }),
            Err(ProviderError::SessionExists { sandbox, .. }) => Ok(Started::there(self.go_on(who, &sandbox).await?)),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a sandbox in a place that is reserved.
    pub(crate) async fn create_in(
        &self,
        tenancy: &Tenancy,
        who: &Identity,
        making: impl Future<Output = Result<Sandbox, ProviderError>>,
        (place, wants): (Place, &Wants<'_>),
    ) -> Result<Started, Fault> {
        let mut held = Held::new(tenancy.store.clone(), place);
        let (id, made) = match making.await {
            Ok(sandbox) => (sandbox.id.clone(), Some(sandbox)),
            Err(ProviderError::SessionExists { sandbox, .. }) => (sandbox, None),
            Err(error) => {
                held.reason = error.to_string();
                return Err(error.into());
            }
        };
        let Some(sandbox) = made else {
            // Others know it already. Should the row not be written, it is adopted.
            if !held.told(&id).await? {
                tenancy.store.adopt(who.name(), wants, id.as_str(), false, &tenancy.gateway).await?;
            }
            return Ok(Started::there(self.go_on(who, &id).await?));
        };
        let held = if held.made(&id).await? {
            Some(held)
        } else {
            // It took so long that the place was taken from it.
            tenancy.store.adopt(who.name(), wants, id.as_str(), false, &tenancy.gateway).await?;
            None
        };
        let told = self.of_tenant(who, sandbox).await?;
        Ok(Started { sandbox: told.ok_or_else(|| Fault::missing("runtime"))?, is_new: true, held })
    }

    /// Somebody was told of a sandbox: its place is no longer only reserved.
    pub(crate) async fn settle(&self, id: &SandboxId, held: Option<Held>) {
        let Some(held) = held else { return };
        if let Err(error) = held.told(id).await {
            tracing::warn!(%id, %error, "the database does not know yet that a sandbox is there");
        }
    }

    /// Whether the sandbox of a session is being made, or its client was not told of it yet.
    async fn is_untold(&self, who: &Identity, session: &SessionId) -> Result<bool, Fault> {
        let Some(tenancy) = &self.tenancy else { return Ok(self.turns.is_untold(who.name(), session.as_str())) };
        for pause in SETTLING {
            let row = tenancy.store.of_session(who.name(), session.as_str()).await?;
            match row.filter(|row| row.state == SessionState::Reserved) {
                None => return Ok(false),
                Some(row) if row.runtime.is_none() => return Ok(true),
                // Its client may have the answer by now, and the database is told of that behind it.
                Some(_) => sleep(pause).await,
            }
        }
        Ok(true)
    }

    /// Deletes a sandbox that was made for somebody who was not told of it, unless another gateway has told somebody. Other
    /// gateways wait until it is gone.
    pub(crate) async fn take_back(&self, Untold { sandbox, held }: Untold) {
        let id = &sandbox.id;
        if self.tenancy.is_some() {
            let is_its = match &held {
                Some(held) => held.withdrawn(id).await,
                None => false,
            };
            if !is_its {
                tracing::warn!(%id, "a sandbox whose client has gone is left: its place is no longer this gateway's");
                return;
            }
        }
        let deleted = self.provider.delete(id).await;
        self.known.forget(id);
        match deleted {
            Ok(_) => tracing::info!(%id, "a sandbox whose client has gone was deleted"),
            Err(error) => tracing::warn!(%id, %error, "a sandbox whose client has gone is left"),
        }
        self.hub.ended(id);
        // With this the place is free.
        drop(held);
    }

    /// A sandbox that goes on if it rests.
    pub(crate) async fn go_on(&self, who: &Identity, id: &SandboxId) -> Result<Sandbox, Fault> {
        let sandbox = self.own(who, id.as_str()).await?;
        if sandbox.state != SandboxState::Paused {
            return Ok(sandbox);
        }
        if let Some(tenancy) = &self.tenancy
            && let Some(refusal) = tenancy.store.resuming(who.name(), id.as_str()).await?
        {
            return Err(policy::used_up(&refusal));
        }
        let resumed = self.provider.resume(id).await;
        self.known.forget(id);
        self.hub.nudge();
        if resumed.is_err() {
            self.noted(async |store| store.paused(id.as_str()).await).await;
        }
        resumed?;
        self.own(who, id.as_str()).await
    }

    /// Tells the database what has happened to a sandbox. What it does not get to know now it learns from the engine later.
    pub(crate) async fn noted(&self, note: impl AsyncFnOnce(&Store) -> Result<(), StoreError>) {
        let Some(tenancy) = &self.tenancy else { return };
        if let Err(error) = note(&tenancy.store).await {
            tracing::warn!(%error, "the database does not know yet what has become of a sandbox");
        }
    }

    /// Writes a line of the audit log.
    pub(crate) fn audit<T>(&self, who: &Identity, action: &str, target: &str, outcome: &Result<T, Fault>) {
        if let Some(tenancy) = &self.tenancy {
            tenancy.audit.note(who, action, target, outcome.as_ref().map(|_| ()));
        }
    }
}

impl Tenancy {
    async fn of_key(&self, shown: &[u8], address: Option<IpAddr>) -> Result<(Box<Tenant>, Option<String>), Fault> {
        let (key, why) = match std::str::from_utf8(shown) {
            Err(_) | Ok("") => (None, "there is no key"),
            Ok(shown) => match self.store.check_key(shown).await? {
                KeyCheck::Good { tenant, id } => return Ok((tenant, Some(id))),
                KeyCheck::Unknown => (None, "the key is unknown"),
                KeyCheck::Revoked { id } => (Some(id), "the key was revoked"),
                KeyCheck::Expired { id } => (Some(id), "the key has expired"),
            },
        };
        self.audit.refused(address, key, why);
        Err(refused())
    }
}

impl Size {
    /// What a sandbox counts for.
    pub(crate) fn wants<'a>(&self, session: &'a str, asked: &'a Asked) -> Wants<'a> {
        let (cpu_millis, memory_bytes) = asked.amounts.unwrap_or_else(|| self.times(asked.factor));
        Wants { session, image: asked.image.as_deref(), cpu_millis, memory_bytes }
    }

    /// So many times the base size.
    pub(crate) fn times(&self, factor: u32) -> (u64, u64) {
        let factor = u64::from(factor.max(1));
        (self.cpu_millis.saturating_mul(factor), self.memory_bytes.saturating_mul(factor))
    }
}
