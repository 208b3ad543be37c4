//! A plugin that a manifest describes.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use gloveport_protocol::{ActionEvent, BoxFuture, ExecuteError, Observation, ObservationEvent};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    http,
    manifest::{Actions, Manifest},
    plugin::{Plugin, PluginError, PluginHost, PluginState},
    service::{Listens, ProgramLog, Service, SetUp, Standing, Values},
    text::printable,
};

/// Time for an action that says none.
const ACTION_LIMIT: Duration = Duration::from_mins(10);
/// Longest answer of a service to an action.
const ANSWER: usize = 16 * 1024 * 1024;
/// How much of an answer that is no observation an error shows.
const SHOWN: usize = 500;

/// A plugin that a manifest describes.
#[derive(Debug)]
pub struct ManifestPlugin {
    manifest: Manifest,
    standing: Standing,
    service: OnceLock<Arc<Service>>,
    /// What a set-up without a service printed.
    log: Arc<ProgramLog>,
    cancel: CancellationToken,
}

impl ManifestPlugin {
    /// The plugin of this manifest. Nothing of it is started.
    pub fn new(manifest: Manifest) -> Self {
        let log = Arc::new(ProgramLog::new(manifest.name.clone()));
        let cancel = CancellationToken::new();
        Self { manifest, standing: Standing::new(), service: OnceLock::new(), log, cancel }
    }

    /// What it is made from.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Starts its service also if that waits for its first use, and returns when it is healthy. It must be initialised.
    pub async fn start_now(&self) -> Result<(), PluginError> {
        match self.service.get() {
            Some(service) => service.start().await,
            None => Ok(()),
        }
    }

    /// The last bytes that its programs printed.
    pub fn logs(&self) -> Vec<u8> {
        self.service.get().map_or_else(|| self.log.bytes(), |service| service.logs())
    }

    async fn start(&self, host: &PluginHost) -> Result<(), PluginError> {
        match (&self.manifest.service, &self.manifest.set_up) {
            (Some(spec), _) => {
                let mut spec = spec.clone();
                spec.command = self.with_folder(&spec.command)?;
                spec.set_up = spec.set_up.as_deref().map(|words| self.with_folder(words)).transpose()?;
                for value in spec.environment.values_mut() {
                    *value = self.text_with_folder(value);
                }
                let is_eager = spec.eager;
                let make = || Service::with_standing(spec, host.clone(), self.standing.clone());
                let service = self.service.get_or_init(make);
                if is_eager { service.start().await } else { Ok(()) }
            }
            (None, Some((command, limit))) => {
                self.standing.set(PluginState::Starting { step: "running its set-up command".into() });
                let name = self.manifest.name.clone();
                let set_up = SetUp { name, command: self.with_folder(command)?, limit: *limit };
                let outcome = set_up.run(host, &self.log, &self.cancel).await.map_err(|failure| failure.error);
                self.standing.set(match &outcome {
                    Ok(()) => PluginState::Ready,
                    Err(PluginError { reason, remedy }) => {
                        PluginState::Failed { reason: reason.clone(), remedy: remedy.clone() }
                    }
                });
                outcome
            }
            (None, None) => {
                self.standing.set(PluginState::Ready);
                Ok(())
            }
        }
    }

    /// The words with the folder of the manifest in them.
    fn with_folder(&self, words: &[OsString]) -> Result<Vec<OsString>, PluginError> {
        self.folder().command(words).map_err(|error| {
            let reason = format!("cannot start {}: {error}", self.manifest.name);
            PluginError::new(reason, "or put the plugin into a folder with a plain name")
        })
    }

    fn text_with_folder(&self, text: &str) -> String {
        self.folder().replace(OsStr::new(text)).to_string_lossy().into_owned()
    }

    fn folder(&self) -> Values<'_> {
        Values(vec![("plugin", self.manifest.folder.as_os_str())])
    }

    /// Lets the service execute an action.
    async fn ask(&self, actions: &Actions, event: &ActionEvent) -> Result<Observation, ExecuteError> {
        let name = &self.manifest.name;
        let failed =
            |what: String| ExecuteError::Failed(format!("the plugin {name} cannot execute the action: {what}"));
        let service = self.service.get().ok_or_else(|| failed("it is not initialised".into()))?;
        let lease = service.lease().await.map_err(|error| failed(error.to_string()))?;
        let body = serde_json::to_vec(event).map_err(|error| failed(error.to_string()))?;
        let path = &actions.path;
        let answer = http::post(lease.endpoint(), path, Bytes::from(body), ANSWER)
            .await
            .map_err(|error| failed(format!("POST {path}: {error}")))?;
        if !(200..300).contains(&answer.status) {
            let shown = shown(&answer.body);
            return Err(failed(format!("it answered POST {path} with status {}{shown}", answer.status)));
        }
        let observation = serde_json::from_slice::<ObservationEvent>(&answer.body);
        let no_observation = |error| failed(format!("it answered POST {path} with no observation: {error}"));
        Ok(observation.map_err(no_observation)?.observation)
    }
}

/// The beginning of an answer, as an error shows it.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body));
    let text = printable(text.trim());
    if text.is_empty() { text } else { format!(": {text}") }
}

impl Plugin for ManifestPlugin {
    fn name(&self) -> &str {
        &self.manifest.name
    }

    fn requires(&self) -> Vec<String> {
        self.manifest.requires.clone()
    }

    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(self.start(host))
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.standing.state()
    }

    fn handles(&self) -> Vec<String> {
        self.manifest.actions.as_ref().map(|actions| actions.handles.clone()).unwrap_or_default()
    }

    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(async move {
            let kind = event.action.kind();
            let taken = |actions: &&Actions| actions.handles.iter().any(|handled| handled == kind);
            let Some(actions) = self.manifest.actions.as_ref().filter(taken) else {
                return Err(ExecuteError::Failed(format!("{} plugin does not support run method", self.name())));
            };
            let limit = event.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let limit = limit.unwrap_or(ACTION_LIMIT);
            timeout(limit, self.ask(actions, event)).await.unwrap_or(Err(ExecuteError::Timeout { limit }))
        })
    }

    fn environment(&self, workspace: &Path) -> Vec<(String, String)> {
        let base = OsString::from(format!("/plugins/{}", self.manifest.name));
        let folder = self.manifest.folder.as_os_str();
        let values = Values(vec![("plugin", folder), ("workspace", workspace.as_os_str()), ("base", &base)]);
        let value = |text: &str| values.replace(OsStr::new(text)).to_string_lossy().into_owned();
        self.manifest.environment.iter().map(|(name, text)| (name.clone(), value(text))).collect()
    }

    fn service(&self) -> Option<Arc<Service>> {
        let listens = self.manifest.service.as_ref().is_some_and(|spec| spec.listens != Listens::Nowhere);
        self.service.get().filter(|_| listens).cloned()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.cancel.cancel();
            if let Some(service) = self.service.get() {
                service.stop().await;
            }
            self.standing.set(PluginState::Stopped);
        })
    }
}
