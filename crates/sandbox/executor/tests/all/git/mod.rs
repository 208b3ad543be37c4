//! Changes and differences of git repositories (`runtime-interface` §12).
//!
//! One table of repositories runs against three answerers: the executor, the scripts for sandboxes whose server is not
//! ours, and the reference's own scripts, where they are installed (`scripts/setup --reference`).

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test programs stop at the first broken assumption")]

mod answerers;
mod repositories;

use std::time::{Duration, Instant};

use answerers::{Answerer, Difference, Lab, reference};
use repositories::{Against, SCENARIOS, Scenario};
use serde_json::{Value, json};

/// What a scenario expects of its changes.
fn expected(scenario: &Scenario) -> Value {
    let change = |(status, path): &(&str, &str)| json!({"status": status, "path": path});
    scenario.changes.iter().map(change).collect()
}

async fn check(answerer: &dyn Answerer, lab: &Lab, scenario: &Scenario) -> Vec<String> {
    let mut wrong = Vec::new();
    let place = lab.path(scenario.cwd);
    let (changes, wanted) = (answerer.changes(&place).await, expected(scenario));
    if changes != wanted {
        wrong.push(format!("{}: {}\n   changes  {changes}\n   expected {wanted}", answerer.name(), scenario.name));
    }
    for (file, wanted) in scenario.diffs {
        let found = answerer.diff(&place, file).await;
        let fits = match (&found, wanted) {
            (Ok(found), Ok((original, modified))) => {
                *found == Difference { original: (*original).to_owned(), modified: (*modified).to_owned() }
            }
            (Err(found), Err(wanted)) => found.contains(wanted),
            _ => false,
        };
        if !fits {
            wrong.push(format!(
                "{}: {}: {file}\n   found    {found:?}\n   expected {wanted:?}",
                answerer.name(),
                scenario.name
            ));
        }
    }
    wrong
}

#[tokio::test]
async fn every_repository_of_the_table_is_answered_natively() {
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let lab = Lab::new(scenario.build);
        wrong.extend(check(&lab.native().await, &lab, scenario).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_repository_of_the_table_is_answered_by_the_scripts() {
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let lab = Lab::new(scenario.build);
        wrong.extend(check(&lab.scripts(), &lab, scenario).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the table says so the reference answers otherwise; everywhere else it answers the same.
#[tokio::test]
async fn the_reference_answers_the_same_but_for_listed_differences() {
    let Some(reference) = reference() else {
        println!("skipped: the reference is not installed; `scripts/setup --reference` does that");
        return;
    };
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let lab = Lab::new(scenario.build);
        let differences = check(&lab.with(&reference), &lab, scenario).await;
        match scenario.reference {
            Against::Same => wrong.extend(differences),
            Against::Differs(reason) if differences.is_empty() => {
                wrong.push(format!("{}: the reference answers the same after all: {reason}", scenario.name));
            }
            Against::Differs(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_observation_is_that_of_a_static_command() {
    let lab = Lab::new("git init -q w; echo x > w/a");
    let native = lab.native().await;
    let run = native.observe(answerers::CHANGES, &lab.path("w")).await;
    assert_eq!(
        (run.content.as_str(), run.command.as_str(), run.hidden, run.metadata.exit_code),
        (r#"[{"status":"A","path":"a"}]"#, answerers::CHANGES, true, 0)
    );
    assert_eq!(run.metadata.suffix, "\n[The command completed with exit code 0.]");
    assert_eq!(run.metadata.working_dir, Some(lab.path("w").display().to_string()));
    assert!(run.metadata.username.is_some() && run.metadata.hostname.is_some());
    let failed = native.observe(&answerers::diff_command("../b"), &lab.path("w")).await;
    assert_eq!(failed.metadata.exit_code, 1);
    assert!(failed.content.starts_with("no_repository: "), "{}", failed.content);
}

/// A repository that names a program wherever git would run one for differences.
const HOSTILE: &str = r#"
    git init -q --bare o.git; git clone -q o.git w 2>/dev/null; cd w
    printf '#!/bin/sh\ntouch %s/ran\ncat "$1" 2>/dev/null\n' "$PWD" > ../evil; chmod +x ../evil
    printf '*.txt diff=evil\n' > .gitattributes
    echo 1 > a.txt; git add .; git commit -qm 1; git push -q origin HEAD
    git config diff.external "$PWD/../evil"; git config diff.evil.textconv "$PWD/../evil"
    git config diff.evil.command "$PWD/../evil"; git config core.fsmonitor "$PWD/../evil"
    git config core.pager "$PWD/../evil"; git config core.askPass "$PWD/../evil"
    mkdir -p .git/hooks; for hook in post-index-change post-checkout reference-transaction; do
        cp ../evil .git/hooks/$hook; done
    rm -f ran; echo 2 > a.txt
"#;

#[tokio::test]
async fn no_program_that_a_repository_names_is_run() {
    let lab = Lab::new(HOSTILE);
    let native = lab.native().await;
    let scripts = lab.scripts();
    for answerer in [&native as &dyn Answerer, &scripts] {
        let place = lab.path("w");
        assert_eq!(answerer.changes(&place).await, json!([{"status": "M", "path": "a.txt"}]), "{}", answerer.name());
        let found = answerer.diff(&place, "a.txt").await.unwrap();
        assert_eq!(found, Difference { original: "1".to_owned(), modified: "2".to_owned() }, "{}", answerer.name());
        assert!(!lab.path("w/ran").exists(), "{}", answerer.name());
    }
}

#[tokio::test]
async fn looking_changes_nothing_in_the_repository() {
    // An index with outdated times is one that git would write anew.
    let lab =
        Lab::new("git init -q w; cd w; echo 1 > a; git add a; git commit -qm 1; touch -d '2001-01-01' a; echo n > n");
    let native = lab.native().await;
    let before = std::fs::read(lab.path("w/.git/index")).unwrap();
    let expected = json!([{"status": "A", "path": "a"}, {"status": "A", "path": "n"}]);
    assert_eq!(native.changes(&lab.path("w")).await, expected);
    assert_eq!(lab.scripts().changes(&lab.path("w")).await, expected);
    assert_eq!(std::fs::read(lab.path("w/.git/index")).unwrap(), before);
}

#[tokio::test]
async fn a_server_of_a_remote_that_does_not_answer_is_not_waited_for() {
    let build = "git init -q w; cd w; echo 1 > a; git add a; git commit -qm 1; git remote add origin ssh://nowhere/x; \
                 git config core.sshCommand 'sleep 600;:'";
    let lab = Lab::new(build);
    let native = lab.native().await;
    let scripts = lab.scripts();
    let place = lab.path("w");
    let start = Instant::now();
    let (one, other) = tokio::join!(native.changes(&place), scripts.changes(&place));
    let expected = json!([{"status": "A", "path": "a"}]);
    assert_eq!((one, other), (expected.clone(), expected));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test]
async fn without_git_there_is_an_error_that_says_so() {
    let lab = Lab::new("git init -q w; echo x > w/a");
    let native = lab.native_with_path("/nowhere").await;
    let error = "git is not installed in the sandbox; install it to see changes";
    assert_eq!(native.changes(&lab.path("w")).await, json!({"error": error}));
    assert_eq!(native.diff(&lab.path("w"), "a").await, Err(error.to_owned()));
}

#[tokio::test]
async fn names_that_are_no_text_are_shown_and_break_nothing() {
    let lab =
        Lab::new("git init -q w; cd w; printf x > $'bad\\xff'; git add .; git commit -qm 1; printf y > $'new\\xfe'");
    let expected = json!([{"status": "A", "path": "bad\u{FFFD}"}, {"status": "A", "path": "new\u{FFFD}"}]);
    assert_eq!(lab.native().await.changes(&lab.path("w")).await, expected);
    assert_eq!(lab.scripts().changes(&lab.path("w")).await, expected);
}

#[tokio::test]
async fn many_changes_are_all_listed() {
    let lab = Lab::new("git init -q w; cd w; mkdir d; for i in $(seq 20000); do : > d/file_with_a_long_name_$i; done");
    for changes in [lab.native().await.changes(&lab.path("w")).await, lab.scripts().changes(&lab.path("w")).await] {
        assert_eq!(changes.as_array().map(Vec::len), Some(20_000));
    }
}
