//! `gloveport session logs`.

use std::{io::IsTerminal as _, process::ExitCode};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use gloveport_provider::LogOptions;

use super::{arguments::LogsArgs, runtimes::Runtimes};
use crate::{
    follow::{Wanted, write},
    visible,
};

pub(super) async fn logs(runtimes: &Runtimes, arguments: &LogsArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let options = LogOptions { follow: arguments.follow, tail: arguments.tail };
    let mut pieces = found.provider.logs(&found.sandbox.id, options).await?;
    let output = std::io::stdout();
    if output.is_terminal() {
        let mut shown = visible::Stream::new(output);
        while let Some(piece) = pieces.next().await {
            shown.write(&piece?).context("cannot write to standard output")?;
        }
        shown.end().context("cannot write to standard output")?;
        return Ok(ExitCode::SUCCESS);
    }
    while let Some(piece) = pieces.next().await {
        if write(&piece?)? == Wanted::NoMore {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
