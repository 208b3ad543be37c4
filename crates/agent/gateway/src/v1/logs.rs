//! What the server of a sandbox writes, as it comes. Nothing is collected: whoever reads slowly gets it slowly.

use std::time::Duration;

use axum::{
    Extension,
    body::Body,
    extract::{Path, RawQuery, State},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use gloveport_provider::LogOptions;
use http::{HeaderName, header::CONTENT_TYPE};
use tokio::time::sleep;

use super::{
    context::{Handle, Who, own},
    query::Query,
};
use crate::fault::Fault;

/// How long a log is followed at most.
const LONGEST: Duration = Duration::from_hours(24);

/// The log of a sandbox; it ends with the client, with the sandbox, with its time and when the gateway drains.
pub(super) async fn logs(
    State(shared): Handle,
    Extension(who): Who,
    RawQuery(query): RawQuery,
    Path(id): Path<String>,
) -> Result<Response, Fault> {
    let query = Query::read(query.as_deref(), &["follow", "tail"])?;
    let options = LogOptions { follow: query.flag("follow")?, tail: query.number("tail", usize::MAX)? };
    if options.follow && !shared.can.follow_logs {
        return Err(shared.provider.cannot("following logs").into());
    }
    let sandbox = own(&shared, &who, &id).await?;
    let ticket = shared.streams.take(who.name())?;
    let pieces = shared.provider.logs(&sandbox.id, options).await?;
    let draining = shared.draining.clone();
    let pieces = pieces.take_until(async move {
        // What is there already is finished within the time for that.
        if options.follow {
            draining.run_until_cancelled(sleep(LONGEST)).await;
        } else {
            sleep(LONGEST).await;
        }
    });
    let counted = pieces.map(move |piece| {
        let _held = &ticket;
        piece.inspect_err(|error| tracing::warn!(%error, "a log was cut off"))
    });
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ];
    Ok((headers, Body::from_stream(counted)).into_response())
}
