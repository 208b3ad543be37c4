//! `gloveport session ipython`: a cell in a kernel of a session, as an operation.

use std::process::ExitCode;

use gloveport_protocol::{Action, EventSource, Observation, RunIpythonAction, kernels::CellRequest};
use gloveport_runtime::{Begun, CellOutput, CellSeen};

use super::{arguments::IpythonArgs, operations, runtimes::Runtimes, settings};
use crate::{
    approve, explained,
    ipython::{self, Followed, Shown},
    operate::bounded,
    output, run,
};

pub(super) async fn ipython(runtimes: &Runtimes, arguments: IpythonArgs) -> anyhow::Result<ExitCode> {
    let IpythonArgs { id, kernel, record, cell } = arguments;
    let (code, from_stdin) = run::command_text(&cell.code)?;
    let configured = if cell.timeout.is_some() { None } else { settings::command_limit(&runtimes.loaded)? };
    let timeout = cell.timeout.or(configured.map(|limit| limit.as_secs_f64()));
    let mut found = runtimes.find(&id).await?;
    let client = found.client().await?;
    let operations = operations::of_session(runtimes, &client, &found, record.handling(from_stdin)).await?;
    // The lines about directory and interpreter are for agents.
    let action = RunIpythonAction { include_extra: false, ..RunIpythonAction::new(&code) };
    let operation = match operations.begin(Action::RunIpython(action), EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return approve::refused(&refused, cell.json),
    };
    let mut kept = operation.cell_output();
    let mut shown = Shown::new(cell.images, cell.json);
    let request = CellRequest { code, timeout };
    let followed = ipython::follow(&client, &kernel, &request, &mut shown, Some(&mut kept)).await;
    operation.finish(observation(kept, &request, &kernel, &followed)).await?;
    let followed = followed?;
    if configured.is_some() && followed.timed_out() {
        settings::tell_limit(&runtimes.loaded);
    }
    followed.exit_code(shown)
}

/// What came of the cell, for the history.
fn observation(
    kept: CellOutput,
    request: &CellRequest,
    kernel: &str,
    followed: &anyhow::Result<Followed>,
) -> Observation {
    let seen = match followed {
        Ok(Followed::ByAction(observation)) => return bounded(observation),
        Ok(Followed::Left) => CellSeen::Left,
        Ok(Followed::Ended(result)) => {
            CellSeen::Ended { end: result.end, timeout: request.timeout, kernel_lost_before: result.kernel_lost_before }
        }
        Err(error) if output::is_unread(error) => CellSeen::Unread,
        Err(error) => {
            return kept.observation(&request.code, kernel, CellSeen::Lost { reason: &explained(error) });
        }
    };
    kept.observation(&request.code, kernel, seen)
}
