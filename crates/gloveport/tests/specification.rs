//! Every test that `SPECIFICATION.md` names exists.

use std::{fs, path::Path};

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let specification = fs::read_to_string(root.join("SPECIFICATION.md")).unwrap();
    let mut sources = String::new();
    collect(&root.join("crates"), &mut sources);
    let (mut named, mut missing) = (0, Vec::new());
    for promise in specification.split("\n\n").flat_map(|part| part.split("Test")).skip(1) {
        let quoted = promise.split('`').skip(1).step_by(2);
        for name in quoted.filter(|name| name.contains('_') && !name.contains('/')) {
            named += 1;
            if !sources.contains(&format!("fn {name}(")) && !sources.contains(&format!("\"{name}\"")) {
                missing.push(name);
            }
        }
    }
    assert!(named > 40, "only {named} tests are named");
    assert_eq!(missing, Vec::<&str>::new());
}

#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
fn collect(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
