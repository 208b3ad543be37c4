//! Makes sandboxes: one for one wish, however often an answer is lost.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gloveport_hosted::{
    fault::wrong,
    making::{LOOKS, Maker, Origin, WISHES, exists},
    record::Record,
};
use gloveport_provider::{NetworkPolicy, Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller};
use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    capabilities,
    control::Wished,
    inner::{Inner, Tokens},
    launch::Launch,
    names::{LABELS, NAME, RESERVED},
    wire::{Create, Network, Told},
};

/// Everything, as the service writes it.
const EVERYTHING: &str = "0.0.0.0/0";
/// Time beyond its own that a sandbox has until the service ends it.
const GRACE: Duration = Duration::from_mins(1);
/// First of the ports that are taken by chance, and how many there are.
const BY_CHANCE: (u16, u16) = (20_000, 12_000);

impl Inner {
    /// Makes a sandbox in a task of its own: what nobody waits for any more is ended.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        origin: Origin,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        spec.check(NAME, &capabilities::of(&self.options))?;
        let (inner, spec) = (Arc::clone(self), spec.clone());
        let make = |tell, given_up| async move { inner.make(&spec, origin, &tell, &given_up).await };
        let inner = Arc::clone(self);
        let take_back = |id| async move { inner.take_back(&id).await };
        self.maker().in_a_task(progress, make, take_back).await
    }

    fn maker(&self) -> Maker<'_> {
        Maker {
            name: NAME,
            backend: &self.backend,
            service: &self.control.service,
            labels: &LABELS,
            directory: &self.options.directory,
            workspace: self.options.workspace.as_deref(),
            port: self.options.port,
            by_chance: BY_CHANCE,
            reserved: &RESERVED,
            private: self.options.traffic == crate::Traffic::Private,
        }
    }

    async fn take_back(&self, id: &SandboxId) {
        if let Err(error) = self.delete(id).await {
            tracing::warn!(%id, %error, "a sandbox that nobody waits for is left; it ends with its time limit");
        }
    }

    async fn make(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        origin: Origin,
        progress: &Teller,
        given_up: &CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        for found in self.of_session(&spec.session_id).await? {
            if found.state.is_live() {
                return Err(exists(spec, found.id));
            }
            self.delete(&found.id).await?;
        }
        if given_up.is_cancelled() {
            return self.maker().unwanted();
        }
        progress.enter(Phase::Creating, "");
        let key = self.maker().key(spec)?;
        let wish = self.maker().random()?;
        let record = self.maker().record(spec, &key, &wish, &origin)?;
        let (id, tokens) = self.wish(spec, &record, &wish, &origin).await?;
        let launch = Launch { id: &id, record: &record, spec, key: &key, tokens: &tokens };
        let begun = async {
            self.is_first(spec, &id).await?;
            if given_up.is_cancelled() {
                return self.maker().unwanted();
            }
            progress.enter(Phase::Started, "");
            // An upload may take long, and is of no use where nobody waits.
            let unwanted = || self.maker().unwanted();
            given_up.run_until_cancelled(self.launch(&launch)).await.unwrap_or_else(unwanted)?;
            // Another one that was wished for at the same time may have become visible only now.
            self.is_first(spec, &id).await?;
            self.maker().outcome(self.find(&id).await?, self.last_lines(&launch)).await
        };
        match begun.await {
            Ok(sandbox) => {
                if !spec.keep_alive {
                    self.backend.own().insert(id);
                }
                self.keep_going();
                Ok(sandbox)
            }
            Err(error) => {
                self.take_back(&id).await;
                Err(error)
            }
        }
    }

    /// Wishes for a sandbox until there is one, and never for two: a wish whose answer was lost is looked for by its name.
    async fn wish(
        &self,
        spec: &SandboxSpec,
        record: &Record,
        wish: &str,
        origin: &Origin,
    ) -> Result<(SandboxId, Tokens), ProviderError> {
        let metadata = LABELS.write(record, spec, wish)?;
        let limit =
            self.options.time_limit.min(spec.time_to_live.map_or(Duration::MAX, |time| time.saturating_add(GRACE)));
        let image = origin.snapshot.as_deref().or(spec.image.as_deref());
        let body = Create {
            template: self.options.template(image),
            timeout: limit.as_secs().max(1),
            metadata: &metadata,
            // At the end of its own time it is to end, and at the service's limit to rest.
            auto_pause: spec.keep_alive && limit == self.options.time_limit,
            allow_internet_access: (spec.network == NetworkPolicy::None).then_some(false),
            network: network(&spec.network, !record.private)?,
            secure: None,
        };
        let mut unsure = None;
        for _ in 0..WISHES {
            match self.control.create(&body, wish).await? {
                Wished::Made(made) => return Ok((made.id.clone(), self.reached(made))),
                Wished::Unsure(error) => {
                    tracing::debug!(%error, wish, "the answer to a wish for a sandbox was lost");
                    if let Some(found) = self.granted(wish).await? {
                        return Ok(found);
                    }
                    unsure = Some(error);
                }
            }
        }
        Err(unsure.unwrap_or_else(|| self.control.service.failed("make a sandbox", "it does not say why")))
    }

    /// The sandbox that was made for a wish, if there is one.
    async fn granted(&self, wish: &str) -> Result<Option<(SandboxId, Tokens)>, ProviderError> {
        let labels: BTreeMap<String, String> = [(LABELS.wish.to_owned(), wish.to_owned())].into();
        for pause in LOOKS {
            sleep(pause).await;
            if let Some(told) = self.control.list(&labels).await?.into_iter().next()
                && let Some(made) = self.control.connect(&told.id, self.options.time_limit).await?
            {
                return Ok(Some((told.id, self.reached(made))));
            }
        }
        Ok(None)
    }

    /// Whether a sandbox is the first of its session: of several that are made at once, the one that began first by the
    /// service's clock stays.
    async fn is_first(&self, spec: &SandboxSpec, id: &SandboxId) -> Result<(), ProviderError> {
        let labels: BTreeMap<String, String> = [(LABELS.session.to_owned(), spec.session_id.to_string())].into();
        let mut all = self.control.list(&labels).await?;
        all.retain(|told| LABELS.read(told.metadata.as_ref()).is_some());
        all.sort_by(|one, other| begun(one).cmp(&begun(other)));
        match all.into_iter().next() {
            Some(first) if first.id != *id => Err(exists(spec, first.id)),
            _ => Ok(()),
        }
    }
}

/// What sandboxes of a session are ordered by.
fn begun(told: &Told) -> (Option<Timestamp>, &SandboxId) {
    (told.started_at.as_deref().and_then(|at| at.parse().ok()), &told.id)
}

/// Whom a sandbox may talk to, and who may talk to it.
fn network(policy: &NetworkPolicy, public: bool) -> Result<Network, ProviderError> {
    let (mut allow_out, mut deny_out) = (Vec::new(), Vec::new());
    if let NetworkPolicy::Only(hosts) = policy {
        for host in hosts {
            let with_port =
                host.rsplit_once(':').is_some_and(|(name, port)| !name.contains(':') && port.parse::<u16>().is_ok());
            if with_port {
                return Err(wrong(
                    "network",
                    format!("E2B lets through hosts and networks, and no ports; write `{host}` without"),
                ));
            }
        }
        allow_out.clone_from(hosts);
        deny_out.push(EVERYTHING.to_owned());
    }
    Ok(Network { allow_public_traffic: public, allow_out, deny_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_closed_but_for_what_is_named_and_ports_are_refused() {
        let only = |hosts: &[&str]| NetworkPolicy::Only(hosts.iter().map(|host| (*host).to_owned()).collect());
        let open = network(&NetworkPolicy::Full, true).unwrap();
        assert!(open.allow_public_traffic && open.allow_out.is_empty() && open.deny_out.is_empty());
        let closed = network(&only(&["pypi.org", "10.0.0.0/8", "::1"]), false).unwrap();
        assert_eq!((closed.allow_out.len(), closed.deny_out.as_slice()), (3, &[EVERYTHING.to_owned()][..]));
        let error = network(&only(&["pypi.org:443"]), false).unwrap_err().to_string();
        assert!(error.contains("no ports"), "{error}");
    }
}
