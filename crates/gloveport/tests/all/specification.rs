//! Every test that `SPECIFICATION.md` names exists, and every section of `docs/spec` that a comment cites.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

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

/// The pages of `docs/spec`, and the numbers of their sections.
fn pages(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(entry.path()).unwrap();
        let headings = text.lines().filter(|line| line.starts_with('#')).filter_map(|line| line.split(' ').nth(1));
        let numbers = headings.map(|number| number.trim_end_matches('.').to_owned()).collect();
        pages.insert(entry.path().file_stem().unwrap().to_str().unwrap().to_owned(), numbers);
    }
    pages
}

/// The number that follows a page's name in a comment: `(file-editor 3.6)`, `spec/bash-session.md 5`, `bash-session §3`.
fn cited(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(".md").unwrap_or(rest);
    let rest = rest.strip_prefix('`').unwrap_or(rest).strip_prefix(' ')?;
    let rest = rest.strip_prefix('§').unwrap_or(rest);
    let end = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (!number.is_empty()).then_some(number)
}

#[test]
fn every_section_that_a_comment_cites_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = pages(&root.join("docs/spec"));
    let mut sources = String::new();
    collect(&root.join("crates"), &mut sources);
    let (mut found, mut missing) = (0, BTreeSet::new());
    for (page, numbers) in &pages {
        for (start, _) in sources.match_indices(page.as_str()) {
            let before = sources[..start].chars().next_back();
            let is_name = before.is_none_or(|before| !before.is_alphanumeric() && before != '-' && before != '_');
            let Some(number) = cited(&sources[start + page.len()..]).filter(|_| is_name) else { continue };
            found += 1;
            // Rules of a section have numbers of their own below its.
            let is_there = |number: &str| numbers.contains(number);
            if !is_there(number) && !number.rsplit_once('.').is_some_and(|(section, _)| is_there(section)) {
                missing.insert(format!("{page} {number}"));
            }
        }
    }
    assert!(found > 400, "only {found} sections are cited");
    assert_eq!(missing, BTreeSet::new());
}

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
