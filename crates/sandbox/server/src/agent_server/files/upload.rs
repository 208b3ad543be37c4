//! A form with a file, which is stored whole or not at all.

use std::{
    fs,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use axum::{body::Body, response::Response};
use gloveport_sys::replace::{NewFile, Replacement};
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::super::answers::{failed, invalid, missing, os_text, wrong};
use crate::{
    answer,
    app::App,
    body::{BodyError, closing},
    form::{Form, FormError},
    transfer::{self, Busy, Source},
};

/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;

/// Why a file is not stored.
enum Refusal {
    NoFile,
    /// A part has the name, and is no file.
    NoName,
    NoBoundary,
    Malformed(String),
    Body(BodyError),
    Busy(Busy),
    Directory,
    Parent,
    Failed(String),
}

impl From<FormError> for Refusal {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Body(error) => Self::Body(error),
            FormError::Malformed(text) => Self::Malformed(text),
        }
    }
}

/// Stores the file of a form there.
pub(super) async fn store(app: &App, path: PathBuf, headers: &HeaderMap, body: Body) -> Response {
    app.action_arrived();
    let refusal = match receive(app, path, headers, body).await {
        Ok(bytes) => return answer::json(StatusCode::OK, &json!({"success": true, "file_size": bytes})),
        Err(refusal) => refusal,
    };
    // A part of the request may still be on its way.
    closing(match refusal {
        Refusal::NoFile => invalid(&[missing("body", "file")]),
        Refusal::NoName => invalid(&[wrong(
            "value_error",
            "body",
            "file",
            "Value error, Expected UploadFile",
            &serde_json::Value::Null,
        )]),
        Refusal::NoBoundary => answer::detail(StatusCode::BAD_REQUEST, "Missing boundary in multipart."),
        Refusal::Malformed(text) => {
            answer::detail(StatusCode::BAD_REQUEST, format!("There was an error parsing the body: {text}"))
        }
        Refusal::Body(error) => error.answer(),
        Refusal::Busy(error) => failed(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        Refusal::Directory => answer::detail(StatusCode::BAD_REQUEST, "Path is a directory"),
        Refusal::Parent => answer::detail(StatusCode::BAD_REQUEST, "A parent of the path is not a directory"),
        Refusal::Failed(text) => failed(StatusCode::INTERNAL_SERVER_ERROR, &format!("Failed to upload file: {text}")),
    })
}

async fn receive(app: &App, path: PathBuf, headers: &HeaderMap, body: Body) -> Result<u64, Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(kind);
    let is_form = kind.starts_with("multipart/form-data");
    let boundary = boundary.map_err(|_| if is_form { Refusal::NoBoundary } else { Refusal::NoFile })?;
    let turn = app.transfers.turn().await.map_err(Refusal::Busy)?;
    let mut form = Form::new(transfer::pieces(body, &app.options.limits).map_err(Refusal::Body)?, boundary);
    let content = loop {
        let Some(mut part) = form.next().await? else { return Err(Refusal::NoFile) };
        if part.name() == Some("file") {
            if part.filename().is_none_or(|name| name.is_empty()) {
                return Err(Refusal::NoName);
            }
            break part;
        }
        while part.piece().await?.is_some() {}
    };
    let (feeder, source) = transfer::pipe();
    let work = spawn_blocking(move || {
        let _turn = turn;
        write(&path, source)
    });
    let fed = form.hand_on(content, &feeder).await;
    if fed.is_ok() {
        feeder.end().await;
    } else {
        drop(feeder);
    }
    // Also after a failure, so that nothing is left of it when it is answered.
    let stored = work.await.map_err(|error| Refusal::Failed(error.to_string()))?;
    fed?;
    stored
}

fn write(path: &Path, mut source: Source) -> Result<u64, Refusal> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::IsADirectory => Refusal::Directory,
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Refusal::Parent,
        _ => Refusal::Failed(os_text(&error, path)),
    };
    if path.is_dir() {
        return Err(Refusal::Directory);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(refused)?;
    }
    let mut replacement = Replacement::begin(path, NewFile::default()).map_err(refused)?;
    let mut out = BufWriter::with_capacity(PIECE, replacement.file());
    let mut bytes = 0;
    while let Some(piece) = source.next().map_err(refused)? {
        out.write_all(&piece).map_err(refused)?;
        bytes += piece.len() as u64;
    }
    out.flush().map_err(refused)?;
    drop(out);
    drop(replacement.commit().map_err(refused)?);
    Ok(bytes)
}
