//! A fresh sandbox for a session of the library.

use std::path::PathBuf;

use gloveport_config::Loaded;
use gloveport_provider::SessionId;
use gloveport_runtime::{BroughtTools, Hosted, HostedOptions};

use super::{
    MakeArgs,
    runtimes::Runtimes,
    settings::{Wanted, wanted},
};

/// What a fresh sandbox is made from, beside what the configuration says.
pub(crate) struct Fresh {
    /// The runtime that hosts it.
    pub(crate) runtime: String,
    pub(crate) session: SessionId,
    pub(crate) image: Option<String>,
    /// A directory of this machine to work in.
    pub(crate) workspace: Option<PathBuf>,
    /// Plugins that it is to have.
    pub(crate) plugins: Vec<String>,
}

/// A sandbox that is made when the session connects and deleted when it ends, whatever the configuration says of sandboxes
/// that go on: its session is not one to come back to.
pub(crate) fn hosted(loaded: Loaded, fresh: Fresh) -> anyhow::Result<Hosted> {
    let Fresh { runtime, session, image, workspace, plugins } = fresh;
    let runtimes = Runtimes::of(loaded, Some(runtime))?;
    let (name, provider) = runtimes.one()?;
    let flags = MakeArgs { image, workspace, plugin: plugins, ..MakeArgs::default() };
    let Wanted { spec, options } = wanted(&runtimes, &name, &provider.capabilities(), session, flags, Vec::new())?;
    let tools = BroughtTools::of_program(runtimes.context.inside.clone()).with_plugins(spec.plugins.clone());
    let options = HostedOptions { tools: Some(tools), ..options };
    Ok(Hosted::new(provider, spec, HostedOptions { keep_alive: false, pause_closed: false, warm: 0, ..options }))
}
