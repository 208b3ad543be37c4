//! `GET /openapi.json`: the document of the interface. It is the file `openapi.json`; tests compare it with the routes, and with
//! what is answered.

use axum::{Json, Router, routing::get};
use serde_json::Value;

/// The document without the version of the program.
const DOCUMENT: &str = include_str!("openapi.json");

/// It tells nothing of anybody, so it needs no key.
pub(crate) fn router() -> Router {
    Router::new().route("/openapi.json", get(async || Json(document(env!("CARGO_PKG_VERSION")))))
}

/// The document of this version. What a test has read can be read.
fn document(version: &str) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = version.into();
    document
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// What stands in the sources as a route that is no way to something else.
    fn routes(directory: &Path, found: &mut BTreeSet<(String, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let call = format!(".{}(", "route");
                for route in text.split(&call).skip(1) {
                    let rest = route.trim_start();
                    let Some((path, rest)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
                        continue;
                    };
                    let handlers = rest.split(&call).next().unwrap().split(&[';', '\n'][..]).next().unwrap();
                    for method in ["get", "post", "put", "patch", "delete"] {
                        if handlers.contains(&format!(" {method}(")) || handlers.contains(&format!(".{method}(")) {
                            found.insert((path.to_owned(), method.to_owned()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let mut served = BTreeSet::new();
        routes(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut served);
        let document = document("1");
        let paths = document["paths"].as_object().unwrap().iter();
        let documented: BTreeSet<(String, String)> = paths
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
            })
            .collect();
        assert_eq!(documented, served);
        assert!(served.len() > 30);
    }

    #[test]
    fn every_call_has_an_id_a_group_a_summary_and_answers_with_the_form_of_errors_of_its_api() {
        let document = document("1");
        let groups: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        let mut ids = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let call = format!("{method} {path}");
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{call}");
                assert!(!operation["summary"].as_str().unwrap().is_empty(), "{call}");
                let tags = operation["tags"].as_array().unwrap();
                assert!(tags.len() == 1 && groups.contains(&&tags[0]), "{call}");
                let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
                let in_path = parameters.iter().filter(|one| one["in"] == "path").count();
                assert_eq!(in_path, path.matches('{').count(), "{call}");
                for (status, answer) in operation["responses"].as_object().unwrap() {
                    assert!(!answer["description"].as_str().unwrap().is_empty(), "{call} {status}");
                    if status.starts_with('2') || path == "/readyz" {
                        continue;
                    }
                    let form = if path.starts_with("/v1/") { "Error" } else { "Detail" };
                    let found = &answer["content"]["application/json"]["schema"]["$ref"];
                    assert_eq!(*found, format!("#/components/schemas/{form}"), "{call} {status}");
                }
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_form_is_used() {
        let document = document("1");
        let text = document.to_string();
        let references: BTreeSet<&str> =
            text.split("\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        for pointer in &references {
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(references.contains(format!("/components/schemas/{name}").as_str()), "{name}");
        }
    }

    #[test]
    fn the_capabilities_are_those_that_there_are() {
        let known = serde_json::to_value(gloveport_provider::Capabilities::NONE).unwrap();
        let document = document("1");
        let told = document["components"]["schemas"]["CapabilitySet"]["properties"].as_object().unwrap();
        let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<BTreeSet<String>>();
        assert_eq!(names(told), names(known.as_object().unwrap()));
    }
}
