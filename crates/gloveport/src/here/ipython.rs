//! `gloveport ipython` in this process.

use std::{convert::Infallible, process::ExitCode, time::Duration};

use anyhow::Context as _;
use gloveport_executor::{
    Executor,
    cell::outcome,
    kernels::{Cell, KernelState, Output},
};
use gloveport_protocol::kernels::DEFAULT_KERNEL;
use gloveport_sandbox::{Owner, plugins, tools};
use tokio::sync::mpsc;

use super::login;
use crate::{
    ipython::{IpythonArgs, Shown},
    output::tell,
    run::command_text,
};

/// A kernel that is not there after this time is told of.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pieces of output that wait to be printed.
const WAITING: usize = 64;

/// Runs the cell in a kernel of this process.
pub(crate) async fn ipython(arguments: IpythonArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let cell = arguments.cell;
    let (code, _) = command_text(&cell.code)?;
    let directory = std::env::current_dir().context("the current directory cannot be used")?;
    let mut options = tools::executor_options(owner, directory.clone())?;
    options.environment.retain(|(name, _)| login::is_kept(name));
    options.plugins = plugins::for_cells(arguments.python)?;
    let executor = Executor::start(options).await?;
    let performed = async {
        let notebook = executor.plugins().notebook().context("there is no notebook")?;
        let kernel = notebook.kernel(DEFAULT_KERNEL).await?;
        // The time limit is that of the cell. What is wrong with the kernel, the cell tells.
        let mut state = kernel.state();
        drop(state.wait_for(|state| !matches!(state, KernelState::Starting(_))).await);
        let (sender, mut output) = mpsc::channel(WAITING);
        let limit = cell.timeout.map(Duration::from_secs_f64);
        let asked = Cell { code, limit, directory: Some(directory), progress: Some(sender), detailed: false };
        let run = tokio::spawn(async move { kernel.execute(asked).await });
        let mut shown = Shown::new(cell.images, cell.json);
        while let Some(piece) = output.recv().await {
            match piece {
                Output::Text(text) => shown.text(&text)?,
                Output::Image { media_type, base64 } => shown.image(media_type, &base64)?,
                // The cell is not asked for details.
                Output::Stream { .. } | Output::Display { .. } | Output::Raised { .. } => {}
            }
        }
        let end = run.await.context("the cell did not end")??.end;
        shown.end(outcome(end))
    };
    let result = tokio::select! {
        result = performed => result,
        never = tell_steps(&executor) => match never {},
    };
    executor.close().await;
    result
}

/// Tells what is being done for a kernel that takes its time: the first one on a machine may have to be installed.
async fn tell_steps(executor: &Executor) -> Infallible {
    let mut told = None;
    loop {
        tokio::time::sleep(PATIENCE).await;
        let parts = executor.parts();
        let step = parts.into_iter().filter(|part| part.name == "jupyter").find_map(|part| part.step);
        if step.is_some() && step != told {
            tell(&format!("gloveport: {}; this takes a moment", step.as_deref().unwrap_or_default()));
            told = step;
        }
    }
}
