//! `POST /upload_file` (`action-execution-api` 2.7): one file, or a zip file that is unpacked.

mod store;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, State},
    response::Response,
};
use gloveport_protocol::{ErrorBody, ValidationErrorBody};
use http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer,
    app::App,
    body::{BodyError, closing},
    docs::Binary,
    form::{Form, FormError, boolean},
    transfer::{self, Busy, Stopper},
};
use store::Target;

/// What was stored.
#[derive(Debug, Serialize, ToSchema)]
struct Uploaded {
    /// Its name.
    filename: String,
    /// The directory that it was stored in.
    destination: String,
    /// Whether it had to be a zip file.
    recursive: bool,
}

/// The form of the request, for the document of the interface.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the form is read piece by piece")]
struct UploadForm {
    /// The file, with its name.
    file: Binary,
}

/// Why nothing was stored.
#[derive(Debug, thiserror::Error)]
enum UploadError {
    /// The request does not have its form.
    #[error("{0}")]
    Invalid(String),
    /// The form breaks its own rules.
    #[error("There was an error parsing the body: {0}")]
    Malformed(String),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The text is the whole answer.
    #[error("{0}")]
    Failed(String),
    #[error("the upload did not end: {0}")]
    Defect(#[from] tokio::task::JoinError),
}

impl From<FormError> for UploadError {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Body(error) => Self::Body(error),
            FormError::Malformed(text) => Self::Malformed(text),
        }
    }
}

#[utoipa::path(
    post,
    path = "/upload_file",
    tag = "openhands-0.62",
    operation_id = "upload_file",
    summary = "Upload a file",
    description = "The destination is a directory, and is made if it is missing. A file whose name ends with .zip is unpacked \
        there. A file that exists is replaced when everything has arrived, and keeps mode and owner.",
    params(
        ("destination" = Option<String>, Query, description = "Absolute path of a directory; `/` if absent."),
        ("recursive" = Option<bool>, Query, description = "The file must be a zip file."),
    ),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "It is stored.", body = Uploaded),
        (status = 400, description = "The body is no whole form.", body = ErrorBody),
        (status = 422, description = "The request does not have the form.", body = ValidationErrorBody),
        (status = 500, description = "The destination is relative, the file is no zip file, or it cannot be stored.", body = ErrorBody),
    ),
)]
pub(super) async fn upload_file(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    let error = match receive(&app, &uri, &headers, body).await {
        Ok(uploaded) => return answer::json(StatusCode::OK, &uploaded),
        Err(error) => error,
    };
    // A part of the request may still be on its way.
    closing(match &error {
        UploadError::Invalid(text) => answer::invalid(text),
        UploadError::Malformed(_) => answer::detail(StatusCode::BAD_REQUEST, error.to_string()),
        UploadError::Body(error) => error.answer(),
        UploadError::Busy(_) => answer::detail(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        UploadError::Failed(text) => answer::detail(StatusCode::INTERNAL_SERVER_ERROR, text),
        UploadError::Defect(_) => {
            tracing::error!(%error, "/upload_file");
            answer::unexpected()
        }
    })
}

async fn receive(app: &App, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<Uploaded, UploadError> {
    let (destination, recursive) = parameters(uri)?;
    let boundary = headers
        .get(CONTENT_TYPE)
        .and_then(|value| multer::parse_boundary(value.to_str().ok()?).ok())
        .ok_or_else(|| UploadError::Invalid("the body must be multipart/form-data with a part `file`".into()))?;
    let turn = app.transfers.turn().await?;
    let mut form = Form::new(transfer::pieces(body, &app.options.limits)?, boundary);
    let (filename, content) = loop {
        let Some(mut part) = form.next().await? else {
            return Err(UploadError::Invalid("the form has no part `file`".into()));
        };
        if part.name() != Some("file") {
            while part.piece().await?.is_some() {}
            continue;
        }
        let filename = part.filename().ok_or_else(|| UploadError::Invalid("the part `file` has no filename".into()))?;
        break (filename, part);
    };
    let target = Target::new(&destination, &filename, recursive, app.options.limits.archive)?;
    let filename = target.filename().to_owned();

    let (feeder, source) = transfer::pipe();
    // A client that goes away drops this future, and with it both of these.
    let stopper = Stopper::default();
    let stop = stopper.flag();
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        target.store(source, &stop)
    });
    let fed = form.hand_on(content, &feeder).await;
    if fed.is_ok() {
        feeder.end().await;
    } else {
        drop(feeder);
    }
    // Also after a failure, so that nothing is left of it when it is answered.
    let stored = work.await?;
    fed?;
    stored.map_err(UploadError::Failed)?;
    Ok(Uploaded { filename, destination, recursive })
}

/// `destination` and `recursive` of a query.
fn parameters(uri: &Uri) -> Result<(String, bool), UploadError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| UploadError::Invalid(format!("the query can not be read: {error}")))?;
    // Of several values the last one counts.
    let last = |wanted: &str| pairs.iter().rev().find_map(|(name, value)| (name == wanted).then_some(value.as_str()));
    let recursive = match last("recursive") {
        Some(value) => boolean(value)
            .ok_or_else(|| UploadError::Invalid(format!("`recursive` must be a boolean, and is {value:?}")))?,
        None => false,
    };
    Ok((last("destination").unwrap_or("/").to_owned(), recursive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_read_with_its_defaults() {
        let parsed = |query: &str| {
            let uri: Uri = format!("/upload_file{query}").parse().unwrap();
            parameters(&uri).map_err(|error| error.to_string())
        };
        for (query, destination, recursive) in [
            ("", "/", false),
            ("?destination=%2Fa%20b&recursive=true", "/a b", true),
            ("?destination=/a&destination=/b&recursive=no&recursive=Y", "/b", true),
            ("?recursive=OFF&other=1", "/", false),
            ("?destination=", "", false),
        ] {
            assert_eq!(parsed(query), Ok((destination.to_owned(), recursive)), "{query}");
        }
        assert_eq!(parsed("?recursive=2"), Err("`recursive` must be a boolean, and is \"2\"".to_owned()));
        assert_eq!(parsed("?recursive="), Err("`recursive` must be a boolean, and is \"\"".to_owned()));
    }
}
