//! What faces answer with, and how they read what they are asked.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use serde_json::{Value, json};

/// A status with JSON.
pub fn told(status: u16, body: &Value) -> Response {
    (code(status), [("content-type", "application/json")], body.to_string()).into_response()
}

/// A status with a message, as most services write it.
pub fn refusal(status: u16, message: &str) -> Response {
    told(status, &json!({"code": status, "message": message}))
}

/// A status without a body.
pub fn empty(status: u16) -> Response {
    code(status).into_response()
}

/// Bytes.
pub fn bytes(content: Vec<u8>) -> Response {
    ([("content-type", "application/octet-stream")], content).into_response()
}

/// An answer whose connection ends before its body.
pub fn broken() -> Response {
    let error = Err::<Bytes, _>(std::io::Error::other("lost"));
    Response::new(Body::from_stream(stream::once(async move { error })))
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap()
}

/// Names and values of a query.
pub fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// A part of a form.
pub struct Part {
    /// Its name.
    pub name: String,
    /// The name of the file that it is, if it is one.
    pub file_name: Option<String>,
    /// What it has.
    pub content: Bytes,
}

/// The parts of a form with files; none if the body is no such form.
pub async fn form(headers: &HeaderMap, body: Bytes) -> Option<Vec<Part>> {
    let kind = headers.get("content-type")?.to_str().ok()?;
    let boundary = multer::parse_boundary(kind).ok()?;
    let mut form = multer::Multipart::new(stream::once(async move { Ok::<_, std::io::Error>(body) }), boundary);
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.ok()? {
        let (name, file_name) = (field.name()?.to_owned(), field.file_name().map(str::to_owned));
        parts.push(Part { name, file_name, content: field.bytes().await.ok()? });
    }
    Some(parts)
}
