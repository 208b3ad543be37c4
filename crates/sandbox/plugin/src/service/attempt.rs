//! One start of a service: from a place to listen at to a healthy program.

use std::{
    ffi::{OsStr, OsString},
    sync::Arc,
    time::Duration,
};

use gloveport_sys::{Exit, Surroundings, surroundings::RunError};
use tokio::time::{error::Elapsed, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Endpoint, Listens, ServiceSpec,
    failure::{Failure, Hope},
    health,
    log::ProgramLog,
    place::{PlaceError, Places, is_taken},
    program::{Program, ended},
    words::Values,
};
use crate::plugin::PluginHost;

/// What a service is started from.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) spec: ServiceSpec,
    pub(crate) host: PluginHost,
    pub(crate) log: Arc<ProgramLog>,
    pub(crate) cancel: CancellationToken,
}

/// A program that is healthy.
#[derive(Debug)]
pub(crate) struct Up {
    pub(crate) program: Program,
    pub(crate) endpoint: Option<Endpoint>,
    /// How much was in the log before it was started.
    pub(crate) log_before: u64,
}

impl Starter {
    /// Starts the program and waits until it is healthy. If it is not, nothing of it is left.
    pub(crate) async fn attempt(&self, places: &mut Places) -> Result<Up, Failure> {
        let Self { spec, log, cancel, .. } = self;
        let name = &spec.name;
        let endpoint = places.next().map_err(|error| no_place(name, &error))?;
        let (argv, surroundings) = self.prepared(endpoint.as_ref())?;
        let before = log.total();
        let mut program = match timeout(spec.start_limit, Program::start(&surroundings, &argv, Arc::clone(log))).await {
            Ok(started) => started.map_err(|error| not_started(name, &error))?,
            Err(_) => return Err(self.late(before, endpoint.as_ref())),
        };
        let healthy = health::wait(endpoint.as_ref(), &spec.health, program.pid());
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => End::Cancelled,
            exit = program.exited() => End::Exited(exit),
            healthy = timeout(spec.start_limit, healthy) => match healthy {
                Ok(()) => End::Healthy,
                Err(Elapsed { .. }) => End::Late,
            },
        };
        match end {
            End::Healthy => {
                places.proven(endpoint.as_ref());
                Ok(Up { program, endpoint, log_before: before })
            }
            End::Cancelled => {
                program.end(spec.end_grace).await;
                Err(Failure::stopped(name))
            }
            End::Exited(exit) => {
                program.end(Duration::ZERO).await;
                Err(self.ended_early(exit, before, endpoint.as_ref()))
            }
            End::Late => {
                program.end(spec.end_grace).await;
                Err(self.late(before, endpoint.as_ref()))
            }
        }
    }

    /// The command and its surroundings with all values in them.
    fn prepared(&self, endpoint: Option<&Endpoint>) -> Result<(Vec<OsString>, Surroundings), Failure> {
        let Self { spec, host, .. } = self;
        let base = OsString::from(format!("/plugins/{}", spec.name));
        let place = endpoint.map(Endpoint::value);
        let mut values = Values(vec![("workspace", host.workspace.as_os_str()), ("base", &base)]);
        values.0.extend(place.as_ref().map(|(name, value)| (*name, value.as_os_str())));
        let argv = values.command(&spec.command).map_err(|error| {
            let reason = format!("cannot start {}: {error}", spec.name);
            Failure::new(Hope::None, reason, "correct `command` in its [service]")
        })?;
        let mut surroundings = host.surroundings.clone();
        for (name, value) in &spec.environment {
            surroundings.set(name, values.replace(OsStr::new(value)));
        }
        Ok((argv, surroundings))
    }

    fn ended_early(&self, exit: Exit, before: u64, endpoint: Option<&Endpoint>) -> Failure {
        let Self { spec, log, .. } = self;
        let how = ended(exit);
        let awaited = spec.health.awaited(endpoint);
        let reason = format!("{} did not start: {how} before {awaited}{}", spec.name, log.last_lines(before));
        let hope = match (&spec.listens, endpoint) {
            (Listens::AnyPort, Some(Endpoint::Port(port))) if is_taken(*port) => Hope::OtherPort,
            _ => Hope::Again,
        };
        let remedy = if exit.code == Some(0) {
            "let its command stay in the foreground; the next use tries again"
        } else {
            "correct its command, or what it complains about; the next use tries again"
        };
        Failure::new(hope, reason, remedy)
    }

    fn late(&self, before: u64, endpoint: Option<&Endpoint>) -> Failure {
        let Self { spec, log, .. } = self;
        let limit = spec.start_limit.as_secs_f64();
        let awaited = spec.health.awaited(endpoint);
        let reason =
            format!("{} did not start: {limit} s passed before {awaited}{}", spec.name, log.last_lines(before));
        let remedy = "let it listen there, or give it more time with `start-limit`; the next use tries again";
        Failure::new(Hope::Again, reason, remedy)
    }
}

/// How the wait for health ended.
enum End {
    Healthy,
    Exited(Exit),
    Late,
    Cancelled,
}

fn no_place(name: &str, error: &PlaceError) -> Failure {
    let remedy = match error {
        PlaceError::Taken(_) => "end that program, or write `listens = \"port\"` for a port that is free",
        PlaceError::NoPort(_) => "end programs that hold ports",
        PlaceError::Directory(_) => "make the directory for temporary files writable",
    };
    Failure::new(Hope::Again, format!("{name} did not start: {error}"), remedy)
}

fn not_started(name: &str, error: &RunError) -> Failure {
    let (hope, remedy) = match error {
        RunError::Missing(program) => (Hope::None, missing(program)),
        _ => (Hope::Again, "see the log of the sandbox; the next use tries again"),
    };
    Failure::new(hope, format!("{name} did not start: {error}"), remedy)
}

/// What to do about a program that is not there.
pub(crate) fn missing(program: &str) -> &'static str {
    if program.contains('/') {
        "write it, and make it executable; the next use tries again"
    } else {
        "install it, or name another program; the next use tries again"
    }
}
