//! `gloveport run --runtime cli`, and `--no-tty`: one command without a sandbox, as the cli runtime runs it.
//!
//! The command has our standard input, output and error, so nothing is copied, and programs see the terminal if there is
//! one. With `--json` its output is collected for the observation.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::Context as _;
use gloveport_cli_runtime::{
    CliOptions, CliRuntime, CommandInput,
    attended::{self, AttendedEnd},
};
use gloveport_protocol::{ActionExecutor as _, ObservationEvent};

use super::login;
use crate::{
    cli::RunArgs,
    directory,
    exit::TIMED_OUT,
    logging,
    names::CLI,
    run::{command_text, print_observation, run_event, status},
};

pub(crate) fn confined(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(!arguments.tty, "the runtime `{CLI}` has no terminals; leave --tty out, its commands have yours");
    let (text, _) = command_text(&arguments.command)?;
    let directory = match &arguments.cwd {
        Some(directory) => directory::existing(directory)?,
        None => std::env::current_dir().context("the current directory cannot be used; choose one with --cwd")?,
    };
    let is_replaced = |name: &OsString| arguments.env.iter().any(|(new, _)| name == new.as_str());
    // The runtime `cli` hands on everything, as that of OpenHands does.
    let is_meant = |name: &OsString| !arguments.no_tty || login::is_kept(name);
    let mut environment: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| is_meant(name) && !is_replaced(name)).collect();
    environment.extend(arguments.env.iter().map(|(name, value)| (name.into(), value.into())));
    // One thread: more take longer to start than most commands run.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if arguments.json {
        logging::for_people();
        let options = CliOptions {
            environment,
            timeout: f64::INFINITY,
            input: CommandInput::Inherited,
            ..CliOptions::new(directory)
        };
        return runtime.block_on(observed(options, text, arguments.timeout));
    }
    let limit = arguments.timeout.map(Duration::from_secs_f64);
    match runtime.block_on(attended::run(&text, &directory, environment, limit))? {
        AttendedEnd::Exited(code) => Ok(status(code.into())),
        AttendedEnd::TimedOut => {
            logging::for_people();
            tracing::warn!("the command did not end within the time limit");
            Ok(ExitCode::from(TIMED_OUT))
        }
        AttendedEnd::Ended(signal) => Ok(status((128 + signal).into())),
    }
}

async fn observed(options: CliOptions, text: String, timeout: Option<f64>) -> anyhow::Result<ExitCode> {
    let runtime = CliRuntime::open(options)?;
    let event = run_event(text, timeout);
    let result = tokio::select! {
        result = runtime.execute(&event) => result,
        _ = tokio::signal::ctrl_c() => {
            runtime.close().await;
            return Ok(status(130));
        }
    };
    runtime.close().await;
    print_observation(&ObservationEvent::from(result?).to_value())
}
