//! The OpenAPI document, from what stands at the handlers and the types of their bodies.

use std::collections::BTreeMap;

use gloveport_protocol::{ErrorBody, SESSION_KEY_HEADER};
use serde_json::Value;
use utoipa::{
    OpenApi, PartialSchema, ToSchema,
    openapi::{
        Content, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder,
        path::{Operation, PathItem},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
        tag::TagBuilder,
    },
};

use super::Operations;
use crate::{
    answer::{self, ErrorEnvelope},
    health, v0, v1,
};

/// Groups of calls, in the order in which they are shown.
const TAGS: [(&str, &str); 10] = [
    ("commands", "Commands that are known by an id, and output that can be read from any offset."),
    ("files", "Files of the sandbox."),
    ("terminals", "Programs on a terminal of their own."),
    ("processes", "Programs with pipes."),
    ("kernels", "IPython kernels."),
    ("browser", "The browser of the sandbox."),
    ("plugins", "What the sandbox has beside its shell and its files."),
    ("sandbox", "The sandbox as a whole."),
    ("server", "How the server stands, and this document."),
    ("openhands-0.62", "The interface of OpenHands 0.62."),
];

#[derive(OpenApi)]
#[openapi(info(
    title = "gloveport",
    description = "A sandbox for an agent. The routes without a prefix are those of OpenHands 0.62; /v1 is the native API. If \
        the server has a session key, every route but /alive and /server_info needs it in the header X-Session-API-Key, and \
        answers 403 without it. A WebSocket of a browser, which cannot set headers, offers it as a protocol instead: \
        gloveport.key. and the key in base64url without padding, beside gloveport.terminal.v1."
))]
struct Whole;

/// The whole document.
pub(super) fn document(version: &str) -> Value {
    let mut whole = Whole::openapi();
    version.clone_into(&mut whole.info.version);
    whole.info.contact = None;
    whole.info.license = None;
    for part in v1::operations().into_iter().chain([
        health::Operations::openapi(),
        Operations::openapi(),
        v0::Operations::openapi(),
    ]) {
        whole.merge(part);
    }
    complete(&mut whole);
    let mut document = serde_json::to_value(&whole).unwrap();
    for methods in document["paths"].as_object_mut().unwrap().values_mut() {
        for operation in methods.as_object_mut().unwrap().values_mut() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(without_null);
        }
    }
    document
}

/// A parameter that may be absent is absent: there is no null in a query or a header.
fn without_null(parameter: &mut Value) {
    let kind = &mut parameter["schema"]["type"];
    if let Some(kinds) = kind.as_array() {
        *kind = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
    }
}

/// What is the same for all calls, or for all of a group.
fn complete(whole: &mut Document) {
    whole.tags = Some(TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build()).into());
    whole.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>("sessionKey", [])]);
    let components = whole.components.get_or_insert_default();
    let key = ApiKeyValue::new("X-Session-API-Key");
    assert!(key.name.eq_ignore_ascii_case(SESSION_KEY_HEADER));
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(key));
    components.security_schemes.insert("sessionKey".into(), RefOr::T(scheme));
    components.schemas.insert(ErrorEnvelope::name().into_owned(), ErrorEnvelope::schema());
    components.schemas.insert(ErrorBody::name().into_owned(), ErrorBody::schema());
    let mut referenced = Vec::new();
    ErrorEnvelope::schemas(&mut referenced);
    components.schemas.extend(referenced);
    for (path, item) in &mut whole.paths.paths {
        for operation in operations(item) {
            add_answers(path, operation);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().filter_map(Option::as_mut)
}

/// The answers that a call shares with others. What its handler says goes before.
fn add_answers(path: &str, operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
    let is_open = operation.security.is_some();
    let mut shared = BTreeMap::from([
        ("400", "The request is not what it must be."),
        ("403", "The session key is missing or wrong, or the system does not permit it."),
        ("500", "Something failed that nobody foresaw."),
        ("503", "The sandbox is paused, or too much is worked on."),
    ]);
    if operation.request_body.is_some() {
        shared.insert("408", "The body did not arrive in time.");
        shared.insert("413", "The body is too large.");
    }
    if tag == "files" {
        shared.insert("404", "Nothing is there.");
        shared.insert("409", "What is there does not allow it.");
        shared.insert("429", "Too many searches run.");
        shared.insert("507", "The disk is full.");
    }
    if tag == "browser" {
        shared.insert("404", "The sandbox has no browser.");
        shared.insert("409", "The page does not allow it.");
        shared.insert("502", "The browser has ended; it is started again with its next use.");
        shared.insert("503", "The browser cannot be started, the sandbox is paused, or too much is worked on.");
        shared.insert("504", "It took too long.");
    }
    if path == "/alive" {
        shared.retain(|status, _| *status == "400");
    }
    if is_open {
        // Pages of a browser are refused.
        shared.entry("403").and_modify(|text| *text = "A page of a browser asks.");
    }
    let form = if answer::is_native(path) { ErrorEnvelope::name() } else { ErrorBody::name() };
    for (status, text) in shared {
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| failure(text, &form));
    }
}

fn failure(text: &str, form: &str) -> RefOr<Response> {
    let content = Content::new(Some(Ref::from_schema_name(form)));
    RefOr::T(ResponseBuilder::new().description(text).content("application/json", content).build())
}
