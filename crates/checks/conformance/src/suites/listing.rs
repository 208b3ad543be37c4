//! `/list_files` (`action-execution-api` 2.6).

use serde_json::json;

use crate::{Check, check::Expect, server::Request};

const SPEC: &str = "action-execution-api 2.6";

fn list(path: &str) -> Request {
    Request::post("/list_files", json!({ "path": path }).to_string())
}

pub(super) fn checks() -> Vec<Check> {
    let generic = "An unexpected error occurred. Please try again later.";
    vec![
        Check::new("list/order", "directories come first, with a slash; both groups ignore case in their order", SPEC)
            .prepare(
                "mkdir {dir}/l; cd {dir}/l; mkdir src Docs .hidden; touch readme.md Makefile .env a B; cd - >/dev/null",
            )
            .send(
                list("{dir}/l"),
                Expect::whole(json!([".hidden/", "Docs/", "src/", ".env", "a", "B", "Makefile", "readme.md"])),
            ),
        Check::new("list/links", "links count as what they lead to, and dangling ones are left out", SPEC)
            .prepare(
                "mkdir -p {dir}/l/d; cd {dir}/l; touch f; ln -s d to-d; ln -s f to-f; ln -s none gone; cd - >/dev/null",
            )
            .send(list("{dir}/l"), Expect::whole(json!(["d/", "to-d/", "f", "to-f"])))
            .send(list("{dir}/l/to-d"), Expect::whole(json!([]))),
        Check::new("list/names", "names of all kinds are listed as they are", SPEC)
            .prepare("mkdir {dir}/l; cd {dir}/l; touch -- 'a b' $'new\\nline' 'é漢😀' '\"q\"' '-x'; cd - >/dev/null")
            .send(list("{dir}/l"), Expect::whole(json!(["\"q\"", "-x", "a b", "new\nline", "é漢😀"]))),
        Check::new("list/nothing-there", "what is missing or no directory has no entries", SPEC)
            .file("f.txt", "x")
            .send(list("{dir}/missing"), Expect::whole(json!([])))
            .send(list("{dir}/f.txt"), Expect::whole(json!([]))),
        Check::new("list/relative", "a relative path belongs to the initial directory, wherever the shell is", SPEC)
            .prepare("mkdir -p {workspace}/{name}-r/sub && touch {workspace}/{name}-r/x && cd {dir}")
            .send(list("{name}-r"), Expect::whole(json!(["sub/", "x"])))
            .send(list("./{name}-r/../{name}-r/"), Expect::whole(json!(["sub/", "x"])))
            .prepare("cd {workspace}; rm -rf {workspace}/{name}-r"),
        Check::new("list/default", "without a path the initial directory is listed", SPEC).code(|bench| {
            Box::pin(async {
                bench.shell("touch {workspace}/{name}-probe && cd {dir}").await?;
                for body in ["{}", r#"{"path": null}"#] {
                    let answer = bench.send(&Request::post("/list_files", body)).await?.value();
                    let name = json!(bench.fill("{name}-probe"));
                    let found = answer.as_array().is_some_and(|names| names.contains(&name));
                    crate::check::Problem::unless(
                        found,
                        &format!("POST /list_files {body}"),
                        &format!("a list with {name}"),
                        &answer.to_string(),
                    )?;
                }
                bench.shell("cd {workspace}; rm {workspace}/{name}-probe").await.map(drop)
            })
        }),
        Check::new("list/bad-body", "a body that is no object is an error", SPEC)
            .send(Request::post("/list_files", ""), Expect::detail(500, generic))
            .send(Request::post("/list_files", "[]"), Expect::detail(500, generic))
            .send(Request::post("/list_files", "{"), Expect::detail(500, generic)),
    ]
}
