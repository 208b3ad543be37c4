//! `GET /download_files` (`action-execution-api` 2.8): a directory as a zip file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    extract::{Query, State},
    response::Response,
};
use gloveport_archive::{ArchiveError, zip::Plan};
use gloveport_protocol::{ErrorBody, ValidationErrorBody};
use http::{
    StatusCode, Uri,
    header::{CONTENT_DISPOSITION, CONTENT_LENGTH},
};

use tokio::sync::oneshot;

use crate::{answer, app::App, docs::Binary, transfer};

#[utoipa::path(
    get,
    path = "/download_files",
    tag = "openhands-0.62",
    operation_id = "download_files",
    summary = "Download a directory",
    description = "A zip of all regular files below it, links to files included. Anything but a directory gives a zip without \
        files. A failure on the way breaks the connection.",
    params(("path" = String, Query, description = "Absolute path.")),
    responses(
        (status = 200, description = "The zip file.", body = Binary, content_type = "application/zip"),
        (status = 422, description = "The path is missing.", body = ValidationErrorBody),
        (status = 500, description = "The path is relative, there is nothing, or something cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn download_files(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let Some(path) = path_of(&uri) else {
        return answer::invalid("the query has no `path`");
    };
    let failed = |text: String| answer::detail(StatusCode::INTERNAL_SERVER_ERROR, text);
    if !path.starts_with('/') {
        return failed("400: Path must be an absolute path".into());
    }
    let turn = match app.transfers.turn().await {
        Ok(turn) => turn,
        Err(busy) => return answer::detail(StatusCode::SERVICE_UNAVAILABLE, busy.to_string()),
    };
    let root = PathBuf::from(&path);
    let (sender, planned) = oneshot::channel();
    transfer::detached(move || {
        // Whether somebody still waits for it is his concern.
        let _taken = sender.send(plan(&root));
    });
    let plan = match planned.await {
        Ok(Ok(Some(plan))) => plan,
        Ok(Ok(None)) => return failed("404: File not found".into()),
        Ok(Err(error)) => return failed(error.to_string()),
        Err(error) => {
            tracing::error!(%error, "/download_files: the files can not be listed");
            return answer::unexpected();
        }
    };
    let length = plan.length();
    let body = transfer::stream(turn, move |sink| plan.write_to(sink).map(drop)).await;
    match body {
        Ok(body) => {
            let mut response = answer::with_type(StatusCode::OK, "application/zip", body);
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, length.into());
            let name = path.rsplit('/').next().unwrap_or_default();
            headers.insert(CONTENT_DISPOSITION, answer::disposition(name, ".zip"));
            response
        }
        Err(error) => failed(error.to_string()),
    }
}

/// The last `path` of a query.
fn path_of(uri: &Uri) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().rev().find_map(|(name, value)| (name == "path").then_some(value))
}

/// The files of a directory; none of anything else; `None` if there is nothing.
fn plan(root: &Path) -> Result<Option<Plan>, ArchiveError> {
    match fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => Plan::of_contents(root).map(Some),
        Ok(_) => Ok(Some(Plan::empty())),
        Err(_) => Ok(None),
    }
}
