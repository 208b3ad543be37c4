//! `/openapi.json`, and `/docs` for people.
//!
//! The document is the file `openapi.json`, because the code that says what is in it is ten times as large, and nothing has
//! to be put together when a server starts. A test derives it from the handlers and their types, compares both, and writes
//! the file if `GLOVEPORT_WRITE_OPENAPI` is set.

#[cfg(test)]
mod openapi;

use std::{fmt::Write as _, sync::Arc};

use axum::{extract::State, response::Response};
use http::StatusCode;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    answer::{self, with_type},
    app::App,
    policy,
    route::Route,
};

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(document, page))]
pub(crate) struct Operations;

/// Bytes of any kind, for the document.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it stands for bytes in the document of the interface")]
pub(crate) struct Binary(Vec<u8>);

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::get("/openapi.json", document), Route::get("/docs", page)]
}

/// The document without the version of the program.
const DOCUMENT: &str = include_str!("docs/openapi.json");

#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    operation_id = "get_openapi",
    summary = "Read this document",
    responses((status = 200, description = "OpenAPI 3.1.", body = Object)),
)]
async fn document(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &versioned(app.options.version))
}

#[utoipa::path(
    get,
    path = "/docs",
    tag = "server",
    operation_id = "get_docs",
    summary = "Read this document as a page",
    responses((status = 200, description = "A page.", body = String, content_type = "text/html")),
)]
async fn page(State(app): State<Arc<App>>) -> Response {
    policy::styled(with_type(StatusCode::OK, "text/html; charset=utf-8", html(&versioned(app.options.version))))
}

/// The document of this version. What a test has compared can be read.
fn versioned(version: &str) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = version.into();
    document
}

/// A page that lists the document and needs nothing else.
fn html(document: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let mut rows = String::new();
    for (path, methods) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let statuses: Vec<&str> = operation
                .get("responses")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|answers| answers.keys().map(String::as_str))
                .collect();
            let (summary, description) = (text(&operation["summary"]), text(&operation["description"]));
            // Writing to a `String` cannot fail.
            let _written = writeln!(
                rows,
                "<tr><td><b>{}</b></td><td><code>{}</code></td><td>{summary}<p>{description}</p></td><td>{}</td></tr>",
                method.to_uppercase(),
                escape(path),
                statuses.join(" ")
            );
        }
    }
    let schemas = serde_json::to_string_pretty(&document["components"]["schemas"]).unwrap_or_default();
    let (title, version) = (text(&document["info"]["title"]), text(&document["info"]["version"]));
    let about = text(&document["info"]["description"]);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}}\
         td{{vertical-align:top;padding:.4em .8em;border-top:1px solid #ccc}}p{{margin:.3em 0;color:#555}}\
         pre{{background:#f5f5f5;padding:1em;overflow:auto}}</style></head>\n\
         <body><h1>{title} {version}</h1><p>{about}</p>\n<table>\n{rows}</table>\n\
         <h2>Bodies</h2>\n<pre>{}</pre>\n</body></html>\n",
        escape(&schemas)
    )
}

/// Text as HTML shows it, within an attribute in double quotes, too.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::router;

    #[test]
    fn the_file_has_what_the_code_says() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/openapi.json");
        let written = format!("{}\n", openapi::document(""));
        if std::env::var_os("GLOVEPORT_WRITE_OPENAPI").is_some() {
            std::fs::write(file, &written).unwrap();
        }
        let hint = "run this test with GLOVEPORT_WRITE_OPENAPI=1, which writes the file";
        assert!(std::fs::read_to_string(file).unwrap() == written, "{hint}");
        assert_eq!(versioned("1"), openapi::document("1"));
    }

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let document = openapi::document("1");
        let documented: BTreeSet<(String, String)> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
            })
            .collect();
        let served: BTreeSet<(String, String)> =
            router::routes().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
        assert_eq!(documented, served);
    }

    #[test]
    fn every_call_has_an_id_a_group_a_summary_and_answers_with_one_form_of_errors() {
        let document = openapi::document("1");
        let mut ids = BTreeSet::new();
        let groups: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let call = format!("{method} {path}");
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{call}");
                assert!(!operation["summary"].as_str().unwrap().is_empty(), "{call}");
                let tags = operation["tags"].as_array().unwrap();
                assert!(tags.len() == 1 && groups.contains(&&tags[0]), "{call}");
                let placeholders = path.matches('{').count();
                let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
                assert_eq!(parameters.iter().filter(|one| one["in"] == "path").count(), placeholders, "{call}");
                for (status, answer) in operation["responses"].as_object().unwrap() {
                    assert!(!answer["description"].as_str().unwrap().is_empty(), "{call} {status}");
                    let form = &answer["content"]["application/json"]["schema"]["$ref"];
                    let forms: &[&str] = match (answer::is_native(path), status.as_str()) {
                        (_, "101" | "200" | "201" | "202" | "206" | "303" | "304") => continue,
                        (true, "503") if path == "/ready" => &["Readiness"],
                        (true, _) => &["Error"],
                        (false, _) => &["Detail", "ValidationError"],
                    };
                    let names = |name: &&str| *form == format!("#/components/schemas/{name}").as_str();
                    assert!(forms.iter().any(names), "{call} {status}: {answer}");
                }
            }
        }
        assert!(ids.len() > 40);
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        let document = openapi::document("1");
        let text = document.to_string();
        let mut references = 0;
        for rest in text.split("\"#").skip(1) {
            let pointer = rest.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            references += 1;
        }
        assert!(references > 20);
    }

    #[test]
    fn the_page_escapes_what_it_shows() {
        let page = html(&serde_json::json!({"info": {"title": "<b>"}, "paths": {}}));
        assert!(page.contains("&lt;b&gt;") && !page.contains("<title><b>"));
    }
}
