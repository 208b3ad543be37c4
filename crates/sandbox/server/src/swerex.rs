//! The API of SWE-ReX (docs/wires.md): sessions, commands and files, in place of all other interfaces.

mod answers;
pub(crate) mod face;
mod request;
mod upload;

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gloveport_swerex::{
    Exception, SweRex,
    types::{CloseSession, Command, CreateSession, ReadFile, SessionAction, WriteFile},
};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{answer, app::App, body, route::Route};
use answers::Answer;
use request::Request;

/// The header of a name by which a request is repeated.
const ID_HEADER: &str = "x-request-id";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/", hello),
        Route::get("/is_alive", is_alive),
        Route::post("/create_session", create_session),
        Route::post("/run_in_session", run_in_session),
        Route::post("/close_session", close_session),
        Route::post("/execute", execute),
        Route::post("/read_file", read_file),
        Route::post("/write_file", write_file),
        Route::post("/upload", upload::upload),
        Route::post("/close", close),
    ]
}

async fn hello() -> Response {
    answer::json(StatusCode::OK, &json!({"message": "hello world"}))
}

async fn is_alive() -> Response {
    answer::json(StatusCode::OK, &json!({"is_alive": true, "message": ""}))
}

async fn create_session(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    call(&app, &headers, body, |swerex: Arc<SweRex>, request: CreateSession| async move {
        swerex.create_session(request).await
    })
    .await
}

async fn run_in_session(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    call(&app, &headers, body, |swerex: Arc<SweRex>, action: SessionAction| async move {
        swerex.run_in_session(&action).await
    })
    .await
}

async fn close_session(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    call(&app, &headers, body, |swerex: Arc<SweRex>, request: CloseSession| async move {
        swerex.close_session(&request).await
    })
    .await
}

async fn execute(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    call(&app, &headers, body, |swerex: Arc<SweRex>, command: Command| async move { swerex.execute(&command).await })
        .await
}

async fn read_file(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    call(&app, &headers, body, |swerex: Arc<SweRex>, request: ReadFile| async move { swerex.read_file(request).await })
        .await
}

async fn write_file(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let write =
        |swerex: Arc<SweRex>, request: WriteFile| async move { swerex.write_file(request).await.map(|()| json!({})) };
    call(&app, &headers, body, write).await
}

async fn close(State(app): State<Arc<App>>) -> Response {
    if let Some(face) = &app.swerex {
        face.close().await;
    }
    answer::json(StatusCode::OK, &json!({}))
}

/// Does what a request asks for, to the end, though the client may go. One that is repeated gets the answer of the first.
async fn call<T, R, F>(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Body,
    work: impl FnOnce(Arc<SweRex>, T) -> F,
) -> Response
where
    T: Request,
    R: Serialize,
    F: Future<Output = Result<R, Exception>> + Send + 'static,
{
    app.action_arrived();
    let Some(face) = &app.swerex else { return answer::unexpected() };
    let limits = &app.options.limits;
    let bytes = match body::text_of_json(limits.json_body, body, limits).await {
        Ok(bytes) => bytes,
        Err(error) => return error.answer(),
    };
    let request = match request::understand::<T>(&bytes) {
        Ok(request) => request,
        Err(wrong) => return invalid(&wrong),
    };
    let work = work(Arc::clone(&face.swerex), request);
    let work = async move { result(work.await) };
    let id = headers.get(ID_HEADER).and_then(|id| id.to_str().ok());
    face.answers.once(id, work).await.into_response()
}

/// The answer to what was done.
fn result<R: Serialize>(done: Result<R, Exception>) -> Answer {
    match done {
        Ok(value) => Answer::new(StatusCode::OK, &value),
        Err(exception) => {
            Answer::new(StatusCode::NETWORK_AUTHENTICATION_REQUIRED, &json!({"swerexception": exception}))
        }
    }
}

/// The answer to a request that does not have its form.
fn invalid(wrong: &Value) -> Response {
    answer::json(StatusCode::UNPROCESSABLE_ENTITY, &json!({"detail": [wrong]}))
}
