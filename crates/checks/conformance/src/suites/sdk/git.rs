//! What has changed in a repository (`agent-server-workspace-api` 6), where the sandbox has git.

use serde_json::{Value, json};

use super::calls::{judged, ok, same};
use crate::{
    Check,
    bench::Bench,
    check::{Code, Expect, Problem, Want},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 6";

/// Three commits on `main`, and changes of several kinds that are not committed.
const REPOSITORY: &str = r#"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=Ada GIT_COMMITTER_NAME=Ada \
    GIT_AUTHOR_EMAIL=ada@example.org GIT_COMMITTER_EMAIL=ada@example.org
commit() {
    GIT_AUTHOR_DATE="2024-01-02T03:0$2:05+02:00" GIT_COMMITTER_DATE="2024-01-02T03:0$2:05+02:00" git commit -q -m "$1"
}
mkdir -p '{dir}/repository/sub' && cd '{dir}/repository' && git init -q && git symbolic-ref HEAD refs/heads/main &&
    echo kept > kept && printf 'one\ntwo\n' > changed && echo gone > removed && printf 'a\r\nb\r\n' > windows &&
    echo inner > sub/inner && echo ignored > .gitignore && git add . && commit first 1 &&
    printf 'one\nTWO\n' > changed && git add . && commit second 2 &&
    git rm -q removed && echo added > added && git add . && commit third 3 &&
    printf 'one\nTWO\nthree\n' > changed && printf 'a\r\nB\r\n' > windows && rm sub/inner && echo new > new &&
    echo x > ignored && git mv kept moved
"#;

/// A check that needs git and the repository.
fn check(id: &'static str, title: &'static str, code: Code) -> Check {
    Check::new(id, title, SPEC).code(|bench| Box::pin(repository(bench))).code(code)
}

fn get(route: &str, path: &str) -> Request {
    Request::get(&format!("/api/git/{route}")).query("path", path)
}

fn diff(modified: &str, original: &str) -> Expect {
    Expect::whole(json!({"modified": modified, "original": original}))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = outside();
    checks.extend(inside());
    checks
}

fn outside() -> Vec<Check> {
    vec![
        // git may not be there: where there is no repository that does not matter.
        Check::new("git/outside", "outside of a repository nothing has changed", SPEC)
            .file("file", "x\n")
            .send(get("changes", "{dir}"), Expect::whole(json!([])))
            .send(get("diff", "{dir}/file"), Expect::whole(json!({"modified": null, "original": null})))
            .send(get("commits", "{dir}"), Expect::whole(json!({"commits": [], "has_more": false}))),
        Check::new("git/refused", "what is no question about a repository is refused", SPEC)
            .send(Request::get("/api/git/changes"), Expect::status(422).at("/detail/0/loc", json!(["query", "path"])))
            .send(Request::get("/api/git/diff"), Expect::status(422).at("/detail/0/loc", json!(["query", "path"])))
            .send(get("commits", "{dir}").query("limit", "0"), Expect::status(422))
            .send(get("commits", "{dir}").query("limit", "201"), Expect::status(422))
            .send(get("commits/abc/changes", "{dir}"), Expect::status(422))
            .send(get("commits/main/changes", "{dir}"), Expect::status(422))
            .send(get("diff", "{dir}/file").query("commit", "HEAD"), Expect::status(422)),
    ]
}

fn inside() -> Vec<Check> {
    vec![
        check("git/changes", "what is not committed is listed with its kind", |bench| Box::pin(changes(bench))),
        check("git/changes-below", "only what is below the path is listed, from there", |bench| {
            Box::pin(changes_below(bench))
        }),
        check("git/changes-since", "changes since another commit are listed", |bench| Box::pin(changes_since(bench))),
        check("git/no-ref", "a name of no commit is an error", |bench| Box::pin(no_ref(bench))),
        check("git/diff", "of a file both states are told, without the last line end", |bench| Box::pin(diffs(bench))),
        check("git/diff-errors", "a file that never was is an error, and so is more than one base", |bench| {
            Box::pin(diff_errors(bench))
        }),
        check("git/commits", "the commits are listed, the newest first", |bench| Box::pin(commits(bench))),
        check("git/commit", "the changes of one commit are listed", |bench| Box::pin(commit(bench))),
        check("git/no-commits", "before the first commit all files are new", |bench| Box::pin(no_commits(bench))),
    ]
}

async fn repository(bench: &Bench) -> Result<(), Problem> {
    if bench.shell("command -v git || true").await?.is_empty() {
        return Err(Problem::skip("there is no git in the sandbox"));
    }
    bench.shell(REPOSITORY).await.map(drop)
}

fn change(status: &str, path: &str) -> Value {
    json!({"status": status, "path": path})
}

async fn changes(bench: &Bench) -> Result<(), Problem> {
    let expected = json!([
        change("UPDATED", "changed"),
        change("DELETED", "kept"),
        change("ADDED", "moved"),
        change("ADDED", "new"),
        change("DELETED", "sub/inner"),
        change("UPDATED", "windows"),
    ]);
    for request in [get("changes", "{dir}/repository"), get("changes", "{dir}/repository").query("ref", "HEAD")] {
        same("the changes", &expected, &ok(bench, &request).await?)?;
    }
    Ok(())
}

async fn changes_below(bench: &Bench) -> Result<(), Problem> {
    let below = ok(bench, &get("changes", "{dir}/repository/sub")).await?;
    same("the changes below `sub`", &json!([change("DELETED", "inner")]), &below)
}

async fn changes_since(bench: &Bench) -> Result<(), Problem> {
    let since = ok(bench, &get("changes", "{dir}/repository").query("ref", "HEAD~2")).await?;
    let has = |one: &Value| since.as_array().is_some_and(|since| since.contains(one));
    let are_there = has(&change("DELETED", "removed")) && has(&change("ADDED", "added"));
    Problem::unless(are_there, "changes since HEAD~2", "`removed` and `added`", &since.to_string())
}

async fn no_ref(bench: &Bench) -> Result<(), Problem> {
    let failed = Expect::status(400).want(Want::Present("/detail"));
    for request in [get("changes", "{dir}/repository"), get("diff", "{dir}/repository/changed")] {
        judged(bench, &request.query("ref", "no-such"), &failed).await?;
    }
    let unknown = get("diff", "{dir}/repository/changed").query("commit", "deadbeef");
    judged(bench, &unknown, &failed).await?;
    judged(bench, &get("commits/deadbeef/changes", "{dir}/repository"), &failed).await.map(drop)
}

async fn diffs(bench: &Bench) -> Result<(), Problem> {
    for (file, expected) in [
        ("changed", diff("one\nTWO\nthree", "one\nTWO")),
        ("windows", diff("a\nB", "a\nb")),
        ("new", diff("new", "")),
        ("sub/inner", diff("", "inner")),
        ("added", diff("added", "added")),
    ] {
        judged(bench, &get("diff", &format!("{{dir}}/repository/{file}")), &expected).await?;
    }
    let older = get("diff", "{dir}/repository/changed").query("ref", "HEAD~2");
    judged(bench, &older, &diff("one\nTWO\nthree", "one\ntwo")).await.map(drop)
}

async fn diff_errors(bench: &Bench) -> Result<(), Problem> {
    let missing = get("diff", "{dir}/repository/no-such");
    judged(bench, &missing, &Expect::detail(400, "File does not exist: {dir}/repository/no-such")).await?;
    let both = get("diff", "{dir}/repository/changed").query("ref", "HEAD").query("commit", "abcd");
    judged(bench, &both, &Expect::detail(400, "'ref' and 'commit' are mutually exclusive")).await?;
    bench.shell("head -c 1048577 /dev/zero | tr '\\0' x > '{dir}/repository/large'").await?;
    let large = "File too large for git diff: 1048577 bytes (max: 1048576 bytes)";
    judged(bench, &get("diff", "{dir}/repository/large"), &Expect::detail(400, large)).await.map(drop)
}

async fn commits(bench: &Bench) -> Result<(), Problem> {
    let all = ok(bench, &get("commits", "{dir}/repository")).await?;
    let told = |commit: &Value| json!([commit["subject"], commit["author"], commit["timestamp"]]);
    let list = all["commits"].as_array().map(Vec::as_slice).unwrap_or_default();
    let expected = json!([
        ["third", "Ada", "2024-01-02T03:03:05+02:00"],
        ["second", "Ada", "2024-01-02T03:02:05+02:00"],
        ["first", "Ada", "2024-01-02T03:01:05+02:00"],
    ]);
    same("the commits", &expected, &list.iter().map(told).collect())?;
    let head = bench.shell("git -C '{dir}/repository' rev-parse HEAD").await?;
    same("the newest commit", &json!(head.trim()), &list[0]["sha"])?;
    let is_short = list[0]["short_sha"].as_str().is_some_and(|short| short.len() >= 4 && head.starts_with(short));
    Problem::unless(is_short, "the newest commit", "a short form of its id", &list[0].to_string())?;
    for (limit, more) in [("1", true), ("3", false)] {
        let page = ok(bench, &get("commits", "{dir}/repository").query("limit", limit)).await?;
        same(&format!("{limit} commits"), &json!(more), &page["has_more"])?;
    }
    Ok(())
}

async fn commit(bench: &Bench) -> Result<(), Problem> {
    let head = bench.shell("git -C '{dir}/repository' rev-parse HEAD").await?;
    let (head, expected) = (head.trim(), json!([change("ADDED", "added"), change("DELETED", "removed")]));
    for id in [head.to_owned(), head.chars().take(8).collect::<String>().to_uppercase()] {
        let got = ok(bench, &get(&format!("commits/{id}/changes"), "{dir}/repository")).await?;
        same("the changes of the newest commit", &expected, &got)?;
    }
    let removed = get("diff", "{dir}/repository/removed").query("commit", head);
    judged(bench, &removed, &diff("", "gone")).await.map(drop)
}

async fn no_commits(bench: &Bench) -> Result<(), Problem> {
    bench.shell("mkdir '{dir}/empty' && cd '{dir}/empty' && git init -q && echo new > new").await?;
    for request in [get("changes", "{dir}/empty"), get("changes", "{dir}/empty").query("ref", "HEAD")] {
        same("the changes", &json!([change("ADDED", "new")]), &ok(bench, &request).await?)?;
    }
    judged(bench, &get("diff", "{dir}/empty/new"), &diff("new", "")).await?;
    let none = Expect::whole(json!({"commits": [], "has_more": false}));
    judged(bench, &get("commits", "{dir}/empty"), &none).await.map(drop)
}
