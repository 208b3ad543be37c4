//! `jupyter`: the plugin that runs cells (ipython-and-plugins 2).

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use gloveport_kernel::{KernelOptions, KernelState, Step};
use gloveport_plugin::{Plugin, PluginError, PluginHost, PluginState};
use gloveport_protocol::BoxFuture;
use gloveport_skills::Skills;
use tokio::sync::watch;

use super::AgentSkills;
use gloveport_protocol::kernels::DEFAULT_KERNEL;

use crate::kernels::{self, Kernels, KernelsError};

/// When the first kernel is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstKernel {
    /// With the sandbox, in the background.
    AtOnce,
    /// With the first cell.
    WhenNeeded,
}

/// The kernels of a sandbox as a plugin.
#[derive(Debug)]
pub struct Notebook {
    skills: Option<Arc<AgentSkills>>,
    interpreter: Option<PathBuf>,
    first: FirstKernel,
    host: OnceLock<PluginHost>,
    kernels: Kernels,
    state: watch::Sender<PluginState>,
}

impl Notebook {
    /// Kernels of `interpreter`, or of the one that is found, which know the functions of `skills`.
    pub fn new(skills: Option<Arc<AgentSkills>>, interpreter: Option<PathBuf>, first: FirstKernel) -> Arc<Self> {
        Arc::new(Self {
            skills,
            interpreter,
            first,
            host: OnceLock::new(),
            kernels: Kernels::default(),
            state: watch::Sender::new(PluginState::Idle),
        })
    }

    /// The kernels that there are.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// The kernel of this name. It begins to start if there is none.
    pub async fn kernel(&self, name: &str) -> Result<gloveport_kernel::Kernel, KernelsError> {
        if let Some(kernel) = self.kernels.find(name) {
            return Ok(kernel);
        }
        kernels::check(name)?;
        let host = self.host.get().ok_or(KernelsError::Closed)?;
        let options = self.options(host).await?;
        let (kernel, made) = self.kernels.start(name, options)?;
        if made && name == DEFAULT_KERNEL {
            tokio::spawn(follow(kernel.state(), self.state.clone()));
        }
        Ok(kernel)
    }

    async fn options(&self, host: &PluginHost) -> Result<KernelOptions, PluginError> {
        let mut surroundings = host.surroundings.clone();
        if !surroundings.user_name.is_empty() {
            let user = surroundings.user_name.clone();
            surroundings.set("USER", user);
        }
        let mut options = KernelOptions { interpreter: self.interpreter.clone(), ..KernelOptions::new(surroundings) };
        if let Some(skills) = &self.skills {
            let skills = skills.skills(host).await?;
            options.packages = Some(skills.packages().to_owned());
            options.surroundings.set("GLOVEPORT_EDITOR_SOCKET", skills.socket());
            options.startup.push(Skills::import_cell().to_owned());
        }
        Ok(options)
    }
}

impl Plugin for Notebook {
    fn name(&self) -> &'static str {
        "jupyter"
    }

    fn requires(&self) -> Vec<String> {
        self.skills.iter().map(|skills| skills.name().to_owned()).collect()
    }

    /// A kernel that cannot be started does not hold up the rest: it says so when a cell is run.
    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async {
            self.host.get_or_init(|| host.clone());
            if self.first == FirstKernel::AtOnce
                && let Err(error) = self.kernel(DEFAULT_KERNEL).await
            {
                tracing::warn!(%error, "the IPython kernel cannot be started");
            }
            Ok(())
        })
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.kernels.close().await;
            self.state.send_replace(PluginState::Stopped);
        })
    }
}

/// The state of the plugin is that of its first kernel.
async fn follow(mut kernel: watch::Receiver<KernelState>, plugin: watch::Sender<PluginState>) {
    loop {
        let state = match &*kernel.borrow_and_update() {
            KernelState::Starting(step) => PluginState::Starting { step: describe(*step).to_owned() },
            KernelState::Ready(_) => PluginState::Ready,
            KernelState::Failed { reason, remedy } => {
                PluginState::Failed { reason: reason.clone(), remedy: remedy.clone() }
            }
            KernelState::Closed => PluginState::Idle,
        };
        plugin.send_if_modified(|now| {
            let changes = *now != state && *now != PluginState::Stopped;
            if changes {
                *now = state;
            }
            changes
        });
        if kernel.changed().await.is_err() {
            return;
        }
    }
}

fn describe(step: Step) -> &'static str {
    match step {
        Step::Finding => "looking for a Python with ipykernel",
        Step::Installing => "installing ipykernel",
        Step::Launching => "starting the kernel",
    }
}
