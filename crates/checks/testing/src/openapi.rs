//! `OpenAPI` documents that are files: whether they say what is served, and whether they say it well.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

/// Paths and methods of the routes that stand in the sources of a directory, each as `.route("/path", method(handler))`. Those
/// that are a way to something else, with `any`, are left out.
///
/// # Panics
///
/// The sources cannot be read.
pub fn routes(directory: &Path) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    add_routes(directory, &mut found);
    found
}

fn add_routes(directory: &Path, found: &mut BTreeSet<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_routes(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let call = format!(".{}(", "route");
            for route in text.split(&call).skip(1) {
                let rest = route.trim_start();
                let Some((path, rest)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else { continue };
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

/// Paths and methods of a document.
///
/// # Panics
///
/// It has none.
pub fn documented(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods = |methods: &Value| methods.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    paths.flat_map(|(path, each)| methods(each).into_iter().map(move |method| (path.clone(), method))).collect()
}

/// Checks that each call of a document has an id, a group, a summary, the parameters of its path, and answers with the form that
/// `form` names by path and status; that every reference leads somewhere, and that every form is used.
///
/// # Panics
///
/// Something of that does not hold.
#[track_caller]
pub fn check(document: &Value, form: impl Fn(&str, &str) -> Option<&'static str>) {
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
                if let Some(form) = form(path, status) {
                    let found = &answer["content"]["application/json"]["schema"]["$ref"];
                    assert_eq!(*found, format!("#/components/schemas/{form}"), "{call} {status}");
                }
            }
        }
    }
    let text = document.to_string();
    let references: BTreeSet<&str> = text.split("\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for pointer in &references {
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(references.contains(format!("/components/schemas/{name}").as_str()), "{name}");
    }
}
