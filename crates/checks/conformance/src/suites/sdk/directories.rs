//! Directories (`agent-server-workspace-api` 5).

use reqwest::Method;
use serde_json::{Value, json};

use super::calls::{ok, same};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 5";

fn make(path: &str) -> Request {
    Request::new(Method::POST, "/api/file/create_directory").query("path", path)
}

fn list(path: &str) -> Request {
    Request::get("/api/file/search_subdirs").query("path", path)
}

fn named(names: &[&str]) -> Expect {
    let items: Value = names.iter().map(|name| json!({"name": name, "path": format!("{{dir}}/{name}")})).collect();
    Expect::whole(json!({"items": items, "next_page_id": null}))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = makes();
    checks.extend(lists());
    checks
}

fn makes() -> Vec<Check> {
    let made = || Expect::whole(json!({"success": true}));
    let refused = || Expect::detail(400, "Path exists and is not a directory");
    vec![
        Check::new("directories/make", "a directory is made, with those above it", SPEC)
            .send(make("{dir}/a/b c/ü"), made())
            .prepare("test -d '{dir}/a/b c/ü'"),
        Check::new("directories/again", "a directory that is there is no error", SPEC)
            .send(make("{dir}/a"), made())
            .send(make("{dir}/a"), made()),
        Check::new("directories/file", "a file is no directory", SPEC)
            .file("file", "text")
            .send(make("{dir}/file"), refused())
            .send(make("{dir}/file/below"), refused()),
        Check::new("directories/relative", "a path has to be absolute", SPEC)
            .send(make("relative"), Expect::detail(400, "Path must be absolute")),
        Check::new("directories/no-path", "a path is needed in the query", SPEC).send(
            Request::json("/api/file/create_directory", &json!({"path": "{dir}/x"})),
            Expect::status(422).at("/detail/0/loc", json!(["query", "path"])),
        ),
    ]
}

fn lists() -> Vec<Check> {
    vec![
        Check::new("directories/list", "the directories below one are listed by their names", SPEC)
            .prepare("cd '{dir}' && mkdir -p b/inner A a 'with space' .hidden && touch file && ln -s b link")
            .send(list("{dir}"), named(&["A", "a", "b", "with space"])),
        Check::new("directories/hidden", "hidden ones are listed where that is wanted", SPEC)
            .prepare("cd '{dir}' && mkdir -p b .hidden")
            .send(list("{dir}").query("include_hidden", "true"), named(&[".hidden", "b"]))
            .send(list("{dir}").query("include_hidden", "false"), named(&["b"])),
        Check::new("directories/pages", "pages follow each other without a gap", SPEC)
            .prepare("cd '{dir}' && mkdir a b c d e")
            .code(|bench| Box::pin(pages(bench))),
        Check::new("directories/empty", "there may be none", SPEC)
            .prepare("mkdir -p '{dir}/empty'")
            .send(list("{dir}/empty"), named(&[])),
        Check::new("directories/list-refused", "what is no directory is refused", SPEC)
            .file("file", "text")
            .send(list("{dir}/no such"), Expect::detail(404, "Directory not found"))
            .send(list("{dir}/file"), Expect::detail(400, "Path is not a directory"))
            .send(list("relative"), Expect::detail(400, "Path must be absolute"))
            .send(Request::get("/api/file/search_subdirs"), Expect::status(422))
            .send(list("{dir}").query("limit", "0"), Expect::status(422))
            .send(list("{dir}").query("limit", "101"), Expect::status(422)),
        Check::new("directories/home", "the home and its directories are told", SPEC)
            .code(|bench| Box::pin(home(bench))),
    ]
}

async fn pages(bench: &Bench) -> Result<(), Problem> {
    let (mut seen, mut page) = (Vec::new(), None::<String>);
    // More pages than there can be are an end that does not come.
    for _ in 0..4 {
        let request = list("{dir}").query("limit", "2");
        let request = page.take().map_or_else(|| request.clone(), |page| request.clone().query("page_id", page));
        let answer = ok(bench, &request).await?;
        let names = answer["items"].as_array().map(|items| items.iter().map(|item| item["name"].clone()).collect());
        seen.push(names.unwrap_or(Value::Null));
        page = answer["next_page_id"].as_str().map(str::to_owned);
        if page.is_none() {
            break;
        }
    }
    same("pages of two", &json!([["a", "b"], ["c", "d"], ["e"]]), &Value::from(seen))
}

async fn home(bench: &Bench) -> Result<(), Problem> {
    let step = "GET /api/file/home";
    let home = ok(bench, &Request::get("/api/file/home")).await?;
    let is_absolute = home["home"].as_str().is_some_and(|home| home.starts_with('/'));
    Problem::unless(is_absolute, step, "an absolute path as `home`", &home.to_string())?;
    same(step, &json!([{"label": "/", "path": "/"}]), &home["locations"])?;
    let favorites = home["favorites"].as_array().map(Vec::as_slice).unwrap_or_default();
    let are_below = favorites.iter().all(|one| {
        let label = one["label"].as_str().unwrap_or(".");
        let path = format!("{}/{label}", home["home"].as_str().unwrap_or_default().trim_end_matches('/'));
        !label.starts_with('.') && one["path"] == path
    });
    Problem::unless(are_below && home["favorites"].is_array(), step, "directories of the home", &home.to_string())
}
