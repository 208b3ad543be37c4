//! `gloveport session audit`: what was recorded of a session up to now.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use gloveport_audit::Reader;
use gloveport_provider::{LogStream, Provider, SessionId};
use tempfile::NamedTempFile;

use super::{arguments::AuditArgs, runtimes::Runtimes};
use crate::{
    audit::line,
    follow::{Wanted, write},
    output::print_painted,
};

pub(super) async fn audit(runtimes: &Runtimes, AuditArgs { id, json }: &AuditArgs) -> anyhow::Result<ExitCode> {
    let (session, mut pieces) = match runtimes.find(id).await {
        Ok(found) => {
            let session = found.sandbox.session_id;
            let pieces = found.provider.audit_log(&session).await?;
            (session, pieces)
        }
        Err(error) => left(runtimes, id).await?.ok_or(error)?,
    };
    let copy = copied(&mut pieces).await.with_context(|| format!("cannot copy the audit log of `{session}`"))?;
    let path = copy.path();
    let reading = || format!("cannot read the audit log of `{session}`");
    let lines = BufReader::new(copy.reopen().with_context(reading)?);
    for (text, record) in lines.lines().zip(Reader::open(path).with_context(reading)?) {
        let record = record.with_context(|| format!("the audit log of `{session}` is not as it was written"))?;
        if record.session != session.as_str() {
            continue;
        }
        if !json {
            print_painted(&line(&record))?;
        } else if write(format!("{}\n", text.with_context(reading)?).as_bytes())? == Wanted::NoMore {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The log of a sandbox that has ended, where it is still kept.
async fn left(runtimes: &Runtimes, id: &str) -> anyhow::Result<Option<(SessionId, LogStream)>> {
    let session = SessionId::new(id)?;
    let ask = async |_: String, provider: Arc<dyn Provider>| provider.audit_log(&session).await;
    let (found, _) = runtimes.ask(ask).await;
    Ok(found.into_iter().next().map(|pieces| (session, pieces)))
}

/// A copy of what is there, without the beginning of a record that is just being written.
async fn copied(pieces: &mut LogStream) -> anyhow::Result<NamedTempFile> {
    let mut copy = NamedTempFile::new()?;
    let (mut length, mut whole) = (0, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        copy.write_all(&piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            whole = length + at as u64 + 1;
        }
        length += piece.len() as u64;
    }
    copy.flush().and_then(|()| copy.as_file().set_len(whole))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_record_that_is_just_being_written_is_left_out() {
        for (pieces, whole) in [
            (vec!["a\nb\n"], "a\nb\n"),
            (vec!["a\nb", "c\nd"], "a\nbc\n"),
            (vec!["a\n", "b"], "a\n"),
            (vec!["a"], ""),
            (vec![], ""),
        ] {
            let given: Vec<_> = pieces.iter().map(|piece| Ok((*piece).into())).collect();
            let copy = copied(&mut stream::iter(given).boxed()).await.unwrap();
            assert_eq!(fs::read_to_string(copy.path()).unwrap(), whole, "{pieces:?}");
        }
    }
}
