//! The command that is run once before anything else of a plugin.

use std::{ffi::OsString, sync::Arc, time::Duration};

use gloveport_sys::surroundings::RunError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    attempt::missing,
    failure::{Failure, Hope},
    log::ProgramLog,
    program::{GRACE, Program, ended},
    words::Values,
};
use crate::plugin::PluginHost;

/// A set-up command.
#[derive(Debug, Clone)]
pub(crate) struct SetUp {
    pub(crate) name: String,
    pub(crate) command: Vec<OsString>,
    pub(crate) limit: Duration,
}

impl SetUp {
    /// Runs it to its end. What it leaves behind is ended.
    pub(crate) async fn run(
        &self,
        host: &PluginHost,
        log: &Arc<ProgramLog>,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let Self { name, command, limit } = self;
        let remedy = "correct `command` in its [set-up]; the next use tries again";
        let base = OsString::from(format!("/plugins/{name}"));
        let values = Values(vec![("workspace", host.workspace.as_os_str()), ("base", &base)]);
        let argv = values
            .command(command)
            .map_err(|error| Failure::new(Hope::None, format!("cannot set up {name}: {error}"), remedy))?;
        let before = log.total();
        let mut program = Program::start(&host.surroundings, &argv, Arc::clone(log)).await.map_err(|error| {
            let remedy = if let RunError::Missing(program) = &error { missing(program) } else { remedy };
            Failure::new(Hope::None, format!("cannot set up {name}: {error}"), remedy)
        })?;
        let failed = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                program.end(GRACE).await;
                return Err(Failure::stopped(name));
            }
            exit = timeout(*limit, program.exited()) => if let Ok(exit) = exit {
                program.end(Duration::ZERO).await;
                (exit.code != Some(0)).then(|| ended(exit))
            } else {
                program.end(GRACE).await;
                Some(format!("it did not end within {} s", limit.as_secs_f64()))
            },
        };
        let Some(how) = failed else { return Ok(()) };
        let reason = format!("the set-up of {name} failed: {how}{}", log.last_lines(before));
        Err(Failure::new(Hope::None, reason, remedy))
    }
}
