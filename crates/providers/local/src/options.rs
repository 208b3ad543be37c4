//! What can be set on the provider.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gloveport_oci_image::{ImageError, Store};
use gloveport_provider::{ProviderContext, ProviderError};

use crate::{fault::engine, owners::Hands, state::State, steps::Observer};

/// How the provider works.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The binary of sandboxes, which is started as `PROGRAM sandbox-server`.
    pub program: PathBuf,
    /// Directory with what must be known about sandboxes. All backends that share it see the same sandboxes. It is made
    /// if it is missing, for this user alone.
    pub state: PathBuf,
    /// Directory in which temporary workspaces are made.
    pub temporary: PathBuf,
    /// What tools get as environment, below what a sandbox asks for. The backend's own keys are left out.
    pub environment: BTreeMap<String, String>,
    /// Scheme and host under which servers of this machine are reached (`sandbox.local_runtime_url`).
    pub url: String,
    /// Servers that wait for a session after each start of a sandbox (`DESIRED_NUM_WARM_SERVERS`).
    pub warm: usize,
    /// Longest time that the start of a sandbox may take.
    pub start_limit: Duration,
    /// Time for a server to end when it is told to; then it is killed.
    pub grace: Duration,
    /// Is told each step.
    pub observer: Observer,
}

impl LocalOptions {
    /// The options that the configuration and the environment of the backend ask for.
    ///
    /// The state is in `$XDG_STATE_HOME/gloveport/local`, else in `~/.local/state/gloveport/local`.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty());
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        let base = base.ok_or_else(|| {
            engine("find a place for the state of sandboxes", "HOME is not set; set it or XDG_STATE_HOME")
        })?;
        let warm = match variable("DESIRED_NUM_WARM_SERVERS") {
            None => 0,
            Some(text) => text.trim().parse().map_err(|_| {
                let reason = format!("it must be a whole number, and is `{text}`");
                ProviderError::Spec { field: "DESIRED_NUM_WARM_SERVERS".to_owned(), reason }
            })?,
        };
        Ok(Self {
            program: context.inside.clone(),
            state: base.join("gloveport/local"),
            temporary: absolute("TMPDIR").unwrap_or_else(|| "/tmp".into()),
            environment: context.environment.clone(),
            url: context.config.sandbox.local_runtime_url.clone(),
            warm,
            start_limit: Duration::from_mins(2),
            grace: Duration::from_secs(5),
            observer: Observer::default(),
        })
    }

    /// Images that root directories of sandboxes are made from, with the owners that they name, where this user has others
    /// beside itself.
    ///
    /// # Errors
    ///
    /// The directory cannot be made.
    pub fn images(&self) -> Result<Store, ImageError> {
        let directory = State::new(self.state.clone()).images();
        if let Ok(hands) = Hands::of(self) {
            match Store::open(&directory, Some(Arc::new(hands))) {
                Err(error @ ImageError::Owners { .. }) => {
                    tracing::warn!(%error, "files of images belong to you alone; `gloveport doctor` says more");
                }
                opened => return opened,
            }
        }
        self.images_of_one_owner()
    }

    /// The same, where all files belong to the user; or, for root, to whom the images say.
    pub(crate) fn images_of_one_owner(&self) -> Result<Store, ImageError> {
        Store::open(&State::new(self.state.clone()).images(), None)
    }
}
