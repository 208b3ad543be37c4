//! `GET /openapi.json`: the document of the interface. It is the file `openapi.json`, with what is served beside the interface;
//! tests compare it with the routes, and with what is answered.

use axum::{Json, Router, routing::get};
use serde_json::Value;

/// The document without the version of the program.
const DOCUMENT: &str = include_str!("openapi.json");

/// It tells nothing of anybody, so it needs no key.
pub(crate) fn router(beside: Option<&Value>) -> Router {
    let document = document(env!("CARGO_PKG_VERSION"), beside);
    Router::new().route("/openapi.json", get(async || Json(document)))
}

/// The document of this version. What a test has read can be read.
fn document(version: &str, beside: Option<&Value>) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = version.into();
    if let Some(beside) = beside {
        let tags = document["tags"].as_array_mut().into_iter();
        tags.for_each(|tags| tags.extend(beside["tags"].as_array().into_iter().flatten().cloned()));
        for pointer in ["/paths", "/components/schemas"] {
            let known = document.pointer_mut(pointer).and_then(Value::as_object_mut);
            let more = beside.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
            if let Some(known) = known {
                for (name, value) in more {
                    known.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use gloveport_testing::openapi;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let served = openapi::routes(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
        assert_eq!(openapi::documented(&document("1", None)), served);
        assert!(served.len() > 30);
    }

    #[test]
    fn every_call_has_an_id_a_group_a_summary_and_answers_with_the_form_of_errors_of_its_api() {
        openapi::check(&document("1", None), |path, status| match path {
            "/readyz" => None,
            _ if status.starts_with('2') => None,
            _ => Some(if path.starts_with("/v1/") { "Error" } else { "Detail" }),
        });
    }

    #[test]
    fn what_is_served_beside_the_interface_is_in_the_document_and_changes_nothing_of_it() {
        let beside = json!({
            "tags": [{"name": "more"}],
            "paths": {"/v1/more": {"get": {}}, "/healthz": {"get": {"summary": "another"}}},
            "components": {"schemas": {"More": {"type": "object"}, "Error": {"type": "string"}}},
        });
        let (alone, both) = (document("1", None), document("1", Some(&beside)));
        assert_eq!(both["tags"].as_array().unwrap().last(), Some(&json!({"name": "more"})));
        assert_eq!(
            (&both["paths"]["/v1/more"], &both["paths"]["/healthz"]),
            (&json!({"get": {}}), &alone["paths"]["/healthz"])
        );
        let schemas = &both["components"]["schemas"];
        assert_eq!(
            (&schemas["More"], &schemas["Error"]),
            (&json!({"type": "object"}), &alone["components"]["schemas"]["Error"])
        );
    }

    #[test]
    fn the_capabilities_are_those_that_there_are() {
        let known = serde_json::to_value(gloveport_provider::Capabilities::NONE).unwrap();
        let document = document("1", None);
        let told = document["components"]["schemas"]["CapabilitySet"]["properties"].as_object().unwrap();
        let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<BTreeSet<String>>();
        assert_eq!(names(told), names(known.as_object().unwrap()));
    }
}
