//! `gloveport session logs`.

use std::process::ExitCode;

use futures_util::StreamExt as _;
use gloveport_provider::LogOptions;

use super::{arguments::LogsArgs, exec::write, follow::Wanted, runtimes::Runtimes};

pub(super) async fn logs(runtimes: &Runtimes, arguments: &LogsArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let options = LogOptions { follow: arguments.follow, tail: arguments.tail };
    let mut pieces = found.provider.logs(&found.sandbox.id, options).await?;
    while let Some(piece) = pieces.next().await {
        if write(&piece?)? == Wanted::NoMore {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
