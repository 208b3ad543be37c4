//! `POST /upload`: a form with a file, and where it goes.

use std::{
    fs::File,
    io::{self, Write as _},
    sync::Arc,
};

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::{invalid, result};
use crate::{
    answer,
    app::App,
    body::{BodyError, closing},
    form::{Form, FormError, Part, boolean},
    transfer::{self, Busy, Stopper},
};

/// Longest value that is no file, in bytes.
const VALUE: usize = 64 * 1024;

/// Why an upload is not stored.
enum Refusal {
    /// A part is missing or wrong: its name, and what of it.
    Field(&'static str, &'static str, String),
    Malformed(String),
    Body(BodyError),
    Busy(Busy),
    Spool(io::Error),
}

impl From<FormError> for Refusal {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Body(error) => Self::Body(error),
            FormError::Malformed(text) => Self::Malformed(text),
        }
    }
}

/// What came.
struct Received {
    file: File,
    name: String,
    target: String,
    unzip: bool,
}

pub(super) async fn upload(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    app.action_arrived();
    let refusal = match receive(&app, &headers, body).await {
        Ok(received) => return store(&app, received).await,
        Err(refusal) => refusal,
    };
    // A part of the request may still be on its way.
    closing(match refusal {
        Refusal::Field(field, kind, text) => {
            invalid(&json!({"type": kind, "loc": ["body", field], "msg": text, "input": null}))
        }
        Refusal::Malformed(text) => {
            answer::detail(StatusCode::BAD_REQUEST, format!("There was an error parsing the body: {text}"))
        }
        Refusal::Body(error) => error.answer(),
        Refusal::Busy(error) => answer::detail(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        Refusal::Spool(error) => {
            answer::detail(StatusCode::INTERNAL_SERVER_ERROR, format!("The upload cannot be kept: {error}"))
        }
    })
}

async fn receive(app: &App, headers: &HeaderMap, body: Body) -> Result<Received, Refusal> {
    let boundary = headers.get(CONTENT_TYPE).and_then(|value| multer::parse_boundary(value.to_str().ok()?).ok());
    let missing = |field| Refusal::Field(field, "missing", "Field required".to_owned());
    let boundary = boundary.ok_or_else(|| missing("file"))?;
    let _turn = app.transfers.turn().await.map_err(Refusal::Busy)?;
    let mut form = Form::new(transfer::pieces(body, &app.options.limits).map_err(Refusal::Body)?, boundary);
    let (mut file, mut target, mut unzip) = (None, None, false);
    while let Some(mut part) = form.next().await? {
        match part.name() {
            Some("file") => {
                let name = part.filename().unwrap_or_default();
                file = Some((spool(part).await?, name));
            }
            Some("target_path") => target = Some(value(part, "target_path").await?),
            Some("unzip") => {
                let text = value(part, "unzip").await?;
                let wrong = || Refusal::Field("unzip", "bool_parsing", format!("{text:?} is no boolean"));
                unzip = boolean(&text).ok_or_else(wrong)?;
            }
            _ => while part.piece().await?.is_some() {},
        }
    }
    let (file, name) = file.ok_or_else(|| missing("file"))?;
    // An empty value is none, as in FastAPI.
    let target = target.filter(|target| !target.is_empty()).ok_or_else(|| missing("target_path"))?;
    Ok(Received { file, name, target, unzip })
}

/// Keeps a file without a name until it is known where it goes.
async fn spool(mut part: Part) -> Result<File, Refusal> {
    let (feeder, mut source) = transfer::pipe();
    let spool = spawn_blocking(move || {
        let mut file = tempfile::tempfile()?;
        while let Some(piece) = source.next()? {
            file.write_all(&piece)?;
        }
        Ok(file)
    });
    let mut refused = false;
    while let Some(piece) = part.piece().await? {
        refused = refused || feeder.send(piece).await.is_err();
    }
    feeder.end().await;
    spool.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(Refusal::Spool)
}

async fn value(mut part: Part, name: &'static str) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    while let Some(piece) = part.piece().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > VALUE {
            return Err(Refusal::Field(name, "string_too_long", format!("it has more than {VALUE} bytes")));
        }
    }
    String::from_utf8(bytes).map_err(|_| Refusal::Field(name, "string_unicode", "it is no UTF-8".to_owned()))
}

async fn store(app: &Arc<App>, received: Received) -> Response {
    let Some(face) = &app.swerex else { return answer::unexpected() };
    let (swerex, limits) = (Arc::clone(&face.swerex), app.options.limits.archive);
    // Once all has come it is stored, though the client may go; what takes long stops then.
    let stopper = Stopper::default();
    let stop = stopper.flag();
    let stored = spawn_blocking(move || {
        let Received { mut file, name, target, unzip } = received;
        swerex.store(&mut file, &name, &target, unzip, &limits, &stop)
    });
    match stored.await {
        Ok(stored) => result(stored.map(|()| json!({}))).into_response(),
        Err(error) => {
            tracing::error!(%error, "/upload");
            answer::unexpected()
        }
    }
}
