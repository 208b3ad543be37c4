//! One request on its way to a server, with its progress and its cancellation.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, GetExtensions as _,
        GetMeta as _, ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification, ServerResult,
    },
    service::{PeerRequestOptions, RequestContext, ServiceError},
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    back::{PROGRESS, ProgressTo},
    server::Live,
};

/// Prefix of the fields of `_meta` that belong to the connection on which they come.
const OF_CONNECTION: &str = "io.modelcontextprotocol/";

/// Sends a request, and returns the result as the server wrote it.
pub(crate) async fn forward(
    live: &Live,
    mut request: ClientRequest,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let Some(_call) = live.call() else {
        let text = format!("the MCP server {} works on too many calls; try again later", live.name);
        return Err(ErrorData::internal_error(text, None));
    };
    let _calling = live.back.calling(context);
    let mut meta = context.meta.clone();
    meta.0.0.retain(|name, _| !name.starts_with(OF_CONNECTION));
    *request.get_meta_mut() = meta;
    let token = context.meta.get_progress_token();
    let (to, mut progress) = mpsc::channel(PROGRESS);
    if token.is_some() {
        request.extensions_mut().insert(ProgressTo(to));
    } else {
        drop(to);
    }
    let sent = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let handle = match sent.await {
        Ok(handle) => handle,
        Err(error) => return Err(failed(live, error).await),
    };
    let id = handle.id.clone();
    let mut answer = std::pin::pin!(handle.await_response());
    let answer = loop {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                let why = CancelledNotificationParam::new(Some(id), Some("the client cancelled it".to_owned()));
                let cancelled = ClientNotification::from(CancelledNotification::new(why));
                // Nobody waits for the answer any more, and a server that is gone does not work on it either.
                let _gone = live.peer.send_notification(cancelled).await;
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            Some(step) = progress.recv() => tell(context, token.as_ref(), step).await,
            answer = &mut answer => break answer,
        }
    };
    // What was told before the answer is passed on before it.
    while let Ok(step) = progress.try_recv() {
        tell(context, token.as_ref(), step).await;
    }
    match answer {
        Ok(ServerResult::CustomResult(result)) => Ok(result.0),
        Ok(other) => serde_json::to_value(other).map_err(|error| ErrorData::internal_error(error.to_string(), None)),
        Err(error) => Err(failed(live, error).await),
    }
}

async fn tell(
    context: &RequestContext<RoleServer>,
    token: Option<&ProgressToken>,
    mut step: ProgressNotificationParam,
) {
    let Some(token) = token else { return };
    step.progress_token = token.clone();
    let told = ServerNotification::from(ProgressNotification::new(step));
    // The end of the client's connection cancels the call as well.
    let _gone = context.peer.send_notification(told).await;
}

async fn failed(live: &Live, error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            ErrorData::internal_error(live.gone().await.to_string(), None)
        }
        other => ErrorData::internal_error(format!("the MCP server {} did not answer: {other}", live.name), None),
    }
}
