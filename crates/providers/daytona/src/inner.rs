//! What a backend has of the service and of its sandboxes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_hosted::{
    backend::Backend,
    program::Program,
    settings::{is_at_hand, is_safe},
};
use gloveport_provider::{ProviderError, SandboxId};

use crate::{
    DaytonaOptions,
    control::Control,
    toolbox::{Fault, Toolbox},
    wire::{Preview, Told},
};

/// Sandboxes whose previews are remembered; beyond that all are asked for anew.
const REMEMBERED: usize = 4096;

/// How a port of a sandbox is reached, as long as the sandbox is not changed.
#[derive(Clone, Debug)]
struct Known {
    /// When the sandbox was changed last: a start is a change, and the token is another one then.
    since: Option<String>,
    preview: Preview,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: DaytonaOptions,
    pub(crate) control: Control,
    /// What is its own, and what goes on.
    pub(crate) backend: Backend,
    /// The file that is put into sandboxes.
    pub(crate) program: Program,
    previews: Mutex<HashMap<(SandboxId, u16), Known>>,
    /// Sandboxes that this backend has made: lists may not have them yet.
    made: Mutex<BTreeSet<SandboxId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn new(options: DaytonaOptions) -> Self {
        Self {
            control: Control::new(&options),
            backend: Backend::new(options.backends.clone()),
            program: Program::new(options.program.clone()),
            options,
            previews: Mutex::default(),
            made: Mutex::default(),
        }
    }

    pub(crate) fn made(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        lock(&self.made)
    }

    /// A sandbox is gone.
    pub(crate) fn forget(&self, id: &SandboxId) {
        lock(&self.previews).retain(|(other, _), _| other != id);
        self.made().remove(id);
        self.backend.forget(id);
    }

    /// A sandbox rests or goes on: how it is reached is learnt anew.
    pub(crate) fn forget_previews(&self, id: &SandboxId) {
        lock(&self.previews).retain(|(other, _), _| other != id);
    }

    /// A URL to which keys may be sent: over TLS, or within this machine where the API is there, too.
    fn checked(&self, what: &str, url: &str) -> Result<String, ProviderError> {
        let trimmed = url.trim_end_matches('/');
        if is_safe(trimmed) && (trimmed.starts_with("https://") || is_at_hand(&self.options.api_url)) {
            return Ok(trimmed.to_owned());
        }
        let reason = format!("it says `{trimmed}` for {what}, which is no https:// URL; keys do not go there");
        Err(self.control.service.failed("tell how a sandbox is reached", reason))
    }

    /// The daemon of a sandbox.
    pub(crate) fn toolbox(&self, told: &Told) -> Result<Toolbox<'_>, ProviderError> {
        let missing = || self.control.service.failed("tell how a sandbox is reached", "it has no toolboxProxyUrl");
        let url = self.checked("its daemon", told.toolbox_proxy_url.as_deref().ok_or_else(missing)?)?;
        let url = format!("{url}/{}", told.id);
        let (headers, limit) = (self.control.headers()?, self.control.limit);
        Ok(Toolbox { service: &self.control.service, url, headers, limit })
    }

    /// How a port of a sandbox that runs is reached.
    pub(crate) async fn preview(&self, told: &Told, port: u16) -> Result<Preview, Fault> {
        let key = (told.id.clone(), port);
        let known = lock(&self.previews).get(&key).cloned();
        if let Some(known) = known.filter(|known| known.since.is_some() && known.since == told.updated_at) {
            return Ok(known.preview);
        }
        let gone = || Fault::Gone("it has no ports any more".to_owned());
        let mut preview = self.control.preview(&told.id, port).await?.ok_or_else(gone)?;
        preview.url = self.checked("a port", &preview.url)?;
        let mut all = lock(&self.previews);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(key, Known { since: told.updated_at.clone(), preview: preview.clone() });
        Ok(preview)
    }
}
