//! The native file API.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
};

use crate::common::{Answer, Server, request, within};
use http::HeaderValue;
use serde_json::{Value, json};

fn error(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    for field in ["message", "hint"] {
        assert!(!body["error"][field].as_str().unwrap().is_empty(), "{body}");
    }
    (answer.status.as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
}

fn names(list: &Value) -> Vec<&str> {
    list["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_entry_is_described_and_a_link_is_followed_only_if_asked() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::write(directory.join("file"), "12345").unwrap();
        symlink("file", directory.join("link")).unwrap();
        symlink("nowhere", directory.join("dangling")).unwrap();
        let file = server.get("/v1/files/stat?path=file").await.json();
        assert_eq!(
            (&file["kind"], &file["size"], &file["path"]),
            (&json!("file"), &json!(5), &json!(directory.join("file")))
        );
        assert_eq!(file.get("target"), None);
        let link = server.get("/v1/files/stat?path=link").await.json();
        assert_eq!(
            (&link["kind"], &link["target"], &link["target_kind"]),
            (&json!("symlink"), &json!("file"), &json!("file"))
        );
        let followed = server.get("/v1/files/stat?path=link&follow=true").await.json();
        assert_eq!((&followed["kind"], &followed["size"]), (&json!("file"), &json!(5)));
        let dangling = server.get("/v1/files/stat?path=dangling").await.json();
        assert_eq!(dangling.get("target_kind"), None);
        for (query, expected) in [
            ("path=missing", (404, "not_found")),
            ("path=dangling&follow=true", (404, "not_found")),
            ("", (400, "invalid_path")),
            ("path=", (400, "invalid_path")),
            ("path=a%00b", (400, "invalid_path")),
            ("path=a&path_base64=YQ==", (400, "invalid_path")),
            ("path_base64=***", (400, "invalid_path")),
            ("path=a&more=1", (400, "invalid_query")),
        ] {
            let answer = server.get(&format!("/v1/files/stat?{query}")).await;
            assert_eq!(error(&answer), (expected.0, expected.1.to_owned()), "{query}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_name_that_is_not_utf_8_is_listed_and_can_be_asked_for() {
    within(async {
        let server = Server::start().await;
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        fs::write(server.directory.path().join(name), "latin").unwrap();
        let list = server.get("/v1/files/list").await.json();
        assert_eq!(names(&list), ["caf\u{fffd}"]);
        let base64 = list["entries"][0]["path_base64"].as_str().unwrap();
        let answer = server.get(&format!("/v1/files/content?path_base64={base64}")).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, "latin"));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_list_has_the_levels_that_were_asked_for_and_says_when_it_is_cut() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::create_dir_all(directory.join("a/b/c")).unwrap();
        fs::write(directory.join("a/.hidden"), "").unwrap();
        fs::write(directory.join("z"), "").unwrap();
        for (query, expected, truncated) in [
            ("", vec!["a", "z"], false),
            ("depth=2", vec!["a", "a/.hidden", "a/b", "z"], false),
            ("depth=2&hidden=false", vec!["a", "a/b", "z"], false),
            ("depth=9&path=a", vec![".hidden", "b", "b/c"], false),
            ("limit=2", vec!["a", "z"], false),
        ] {
            let list = server.get(&format!("/v1/files/list?{query}")).await.json();
            assert_eq!((names(&list), &list["truncated"]), (expected, &json!(truncated)), "{query}");
        }
        let cut = server.get("/v1/files/list?limit=1").await.json();
        assert_eq!((names(&cut).len(), &cut["truncated"]), (1, &json!(true)));
        assert_eq!(error(&server.get("/v1/files/list?path=z").await), (409, "not_a_directory".to_owned()));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn any_part_of_a_file_can_be_read_and_a_known_version_is_not_sent_again() {
    within(async {
        let server = Server::start().await;
        let content: Vec<u8> = (0..700_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        fs::write(server.directory.path().join("big"), &content).unwrap();
        let get = async |headers: &[(&'static str, String)]| {
            let mut message = request("GET", "/v1/files/content?path=big", "");
            for (name, value) in headers {
                message.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
            }
            server.connect().await.request(message).await
        };
        let whole = get(&[]).await;
        assert_eq!((whole.status.as_u16(), whole.body.as_ref()), (200, content.as_slice()));
        assert_eq!(whole.headers["content-length"], "700000");
        let tag = whole.headers["etag"].to_str().unwrap().to_owned();
        let part = get(&[("range", "bytes=299990-600009".to_owned())]).await;
        assert_eq!((part.status.as_u16(), part.body.as_ref()), (206, &content[299_990..600_010]));
        assert_eq!(part.headers["content-range"], "bytes 299990-600009/700000");
        let same = get(&[("range", "bytes=0-0".to_owned()), ("if-range", tag.clone())]).await;
        assert_eq!((same.status.as_u16(), same.body.as_ref()), (206, &content[..1]));
        let other = get(&[("range", "bytes=0-0".to_owned()), ("if-range", "\"other\"".to_owned())]).await;
        assert_eq!((other.status.as_u16(), other.body.len()), (200, content.len()));
        let known = get(&[("if-none-match", tag)]).await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
        let behind = get(&[("range", "bytes=700000-".to_owned())]).await;
        assert_eq!(error(&behind), (416, "range_behind_end".to_owned()));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn what_has_no_content_is_refused_at_once_and_files_of_the_kernel_are_read() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        let fifo = directory.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        symlink("loop", directory.join("loop")).unwrap();
        for (path, expected) in [
            ("fifo", (409, "not_a_regular_file")),
            ("/dev/zero", (409, "not_a_regular_file")),
            (".", (409, "is_a_directory")),
            ("loop", (409, "file_refused")),
            ("missing", (404, "not_found")),
            ("fifo/x", (409, "not_a_directory")),
        ] {
            let answer = server.get(&format!("/v1/files/content?path={path}")).await;
            assert_eq!(error(&answer), (expected.0, expected.1.to_owned()), "{path}");
        }
        let answer = server.get("/v1/files/content?path=/proc/self/status").await;
        assert!(answer.text().starts_with("Name:"), "{}", answer.text());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn names_are_found_by_pattern() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::create_dir_all(directory.join("src/deep")).unwrap();
        fs::create_dir_all(directory.join("target")).unwrap();
        for name in ["src/a.rs", "src/deep/b.rs", "src/c.py", "target/d.rs", ".hidden.rs"] {
            fs::write(directory.join(name), "").unwrap();
        }
        fs::write(directory.join(".gitignore"), "target/\n").unwrap();
        for (body, expected) in [
            (json!({"patterns": ["**/*.rs"]}), vec!["src/a.rs", "src/deep/b.rs"]),
            (json!({"patterns": ["*.rs"], "respect_ignore": false}), vec!["src/a.rs", "src/deep/b.rs", "target/d.rs"]),
            (json!({"patterns": ["*.rs"], "hidden": true}), vec![".hidden.rs", "src/a.rs", "src/deep/b.rs"]),
            (json!({"patterns": ["*.rs", "!src/deep/**"]}), vec!["src/a.rs"]),
            (json!({"patterns": ["src/*.py"]}), vec!["src/c.py"]),
            (json!({"patterns": ["*.rs"], "path": "src/deep"}), vec!["b.rs"]),
            (json!({"patterns": ["nothing"]}), vec![]),
        ] {
            let answer = server.post("/v1/files/glob", body.to_string()).await.json();
            assert_eq!((names(&answer), &answer["truncated"]), (expected, &json!(false)), "{body}");
        }
        let cut = server.post("/v1/files/glob", r#"{"patterns": ["*.rs"], "limit": 1}"#).await.json();
        assert_eq!((names(&cut), &cut["truncated"]), (vec!["src/a.rs"], &json!(true)));
        for (body, code) in [
            (json!({"patterns": []}), "invalid_request"),
            (json!({"patterns": ["a{"]}), "invalid_request"),
            (json!({"patterns": ["a"], "unknown": 1}), "invalid_request"),
        ] {
            let answer = server.post("/v1/files/glob", body.to_string()).await;
            assert_eq!(error(&answer), (400, code.to_owned()), "{body}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn lines_are_found_by_expression_with_what_stands_around_them() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::write(directory.join("a.txt"), "one\ntwo\r\nthree\nfour\n").unwrap();
        fs::write(directory.join("b.md"), "TWO\n").unwrap();
        fs::write(directory.join("binary"), b"two\0two\n").unwrap();
        fs::write(directory.join("long"), format!("two{}", "x".repeat(10_000))).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(directory.join("fifo")).status().unwrap().success());
        let line = |path: &str, line: u64, text: &str, is_match: bool| {
            json!({"path": path, "line": line, "text": text, "is_match": is_match})
        };
        let long = format!("two{}", "x".repeat(4_093));
        for (body, expected) in [
            (json!({"pattern": "^two"}), vec![line("a.txt", 2, "two", true), line("long", 1, &long, true)]),
            (
                json!({"pattern": "two", "ignore_case": true, "globs": ["*.txt", "*.md"]}),
                vec![line("a.txt", 2, "two", true), line("b.md", 1, "TWO", true)],
            ),
            (
                json!({"pattern": "thr.e", "context": 1}),
                vec![line("a.txt", 2, "two", false), line("a.txt", 3, "three", true), line("a.txt", 4, "four", false)],
            ),
            (json!({"pattern": "t.o", "literal": true}), vec![]),
            (json!({"pattern": "o", "path": "b.md", "ignore_case": true}), vec![line("b.md", 1, "TWO", true)]),
        ] {
            let answer = server.post("/v1/files/grep", body.to_string()).await.json();
            assert_eq!(answer, json!({"lines": expected, "truncated": false, "skipped": []}), "{body}");
        }
        let cut = server.post("/v1/files/grep", r#"{"pattern": "o", "limit": 1}"#).await.json();
        assert_eq!(cut, json!({"lines": [line("a.txt", 1, "one", true)], "truncated": true, "skipped": []}));
        let wrong = server.post("/v1/files/grep", r#"{"pattern": "("}"#).await;
        assert_eq!(error(&wrong), (400, "invalid_request".to_owned()));
        let missing = server.post("/v1/files/grep", r#"{"pattern": "a", "path": "missing"}"#).await;
        assert_eq!(error(&missing), (404, "not_found".to_owned()));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn entries_are_made_moved_and_removed_and_nothing_is_lost_by_mistake() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        let post = async |path: &str, body: Value| server.post(&format!("/v1/files/{path}"), body.to_string()).await;
        let refused = async |path: &str, body: Value| error(&post(path, body).await);
        assert_eq!(post("mkdir", json!({"path": "a/b", "parents": true})).await.status, 200);
        assert_eq!(refused("mkdir", json!({"path": "a/b"})).await, (409, "exists".to_owned()));
        assert_eq!(refused("mkdir", json!({"path": "x/y"})).await, (404, "not_found".to_owned()));
        fs::write(directory.join("one"), "1").unwrap();
        fs::write(directory.join("two"), "2").unwrap();
        assert_eq!(refused("move", json!({"from": "one", "to": "two"})).await, (409, "exists".to_owned()));
        assert_eq!(fs::read(directory.join("two")).unwrap(), b"2");
        assert_eq!(post("move", json!({"from": "one", "to": "two", "overwrite": true})).await.status, 200);
        assert_eq!(fs::read(directory.join("two")).unwrap(), b"1");
        assert_eq!(refused("move", json!({"from": "one", "to": "three"})).await, (404, "not_found".to_owned()));
        assert_eq!(post("move", json!({"from": "two", "to": "new/three", "parents": true})).await.status, 200);
        assert_eq!(refused("move", json!({"from": "a", "to": "a/b/c"})).await, (400, "invalid_request".to_owned()));
        assert_eq!(refused("remove", json!({"path": "new"})).await, (409, "not_empty".to_owned()));
        assert_eq!(refused("remove", json!({"path": "gone"})).await, (404, "not_found".to_owned()));
        assert_eq!(post("remove", json!({"path": "gone", "missing_ok": true})).await.status, 200);
        assert_eq!(
            refused("remove", json!({"path": "/", "recursive": true})).await,
            (400, "invalid_request".to_owned())
        );
        symlink("new", directory.join("link")).unwrap();
        for path in ["new/..", "new/../", "new/.", "..", "/tmp/..", "/proc", "/.."] {
            let answer = refused("remove", json!({"path": path, "recursive": true})).await;
            assert_eq!(answer, (400, "invalid_request".to_owned()), "{path}");
        }
        assert!(directory.join("new/three").exists());
        for mode in [0o10000_u64, 65_535, 4_294_967_295] {
            let answer = refused("mkdir", json!({"path": "moded", "mode": mode})).await;
            assert_eq!(answer, (400, "invalid_request".to_owned()), "{mode}");
        }
        for (mode, bits) in [(json!("0700"), 0o700), (json!("755"), 0o755), (json!(0o711), 0o711)] {
            let made = post("mkdir", json!({"path": format!("m{bits}"), "mode": mode})).await;
            assert_eq!(made.status, 200, "{mode}");
            let told = server.get(&format!("/v1/files/stat?path=m{bits}")).await.json()["mode"].clone();
            assert_eq!(told, format!("{bits:04o}"), "{mode}");
            std::fs::remove_dir(directory.join(format!("m{bits}"))).unwrap();
        }
        assert!(!directory.join("moded").exists());
        assert_eq!(post("remove", json!({"path": "link", "recursive": true})).await.status, 200);
        assert!(directory.join("new/three").exists(), "the target of a removed link stays");
        assert_eq!(post("remove", json!({"path": "new", "recursive": true})).await.status, 200);
        assert!(!directory.join("new").exists());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_watch_tells_what_happens_below_a_directory_also_in_new_ones() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::create_dir(directory.join("old")).unwrap();
        let mut events = server.stream("/v1/files/watch?recursive=true").await;
        assert_eq!(events.next().await.unwrap().name, "ready");
        let mut change = async || {
            let event = events.next().await.unwrap();
            assert_eq!(event.name, "change");
            let path = event.data["path"].as_str().unwrap();
            let path = path.strip_prefix(directory.to_str().unwrap()).unwrap().to_owned();
            (event.data["change"].as_str().unwrap().to_owned(), path, event.data["is_directory"].as_bool().unwrap())
        };
        let event = |change: &str, path: &str, is_directory| (change.to_owned(), path.to_owned(), is_directory);
        fs::write(directory.join("old/file"), "x").unwrap();
        assert_eq!(change().await, event("created", "/old/file", false));
        assert_eq!(change().await, event("modified", "/old/file", false));
        fs::create_dir_all(directory.join("new/deeper")).unwrap();
        assert_eq!(change().await, event("created", "/new", true));
        assert_eq!(change().await, event("created", "/new/deeper", true));
        fs::rename(directory.join("old/file"), directory.join("new/deeper/file")).unwrap();
        let moved = [change().await, change().await];
        assert!(moved.contains(&event("removed", "/old/file", false)), "{moved:?}");
        assert!(moved.contains(&event("created", "/new/deeper/file", false)), "{moved:?}");
        fs::remove_file(directory.join("new/deeper/file")).unwrap();
        assert_eq!(change().await, event("removed", "/new/deeper/file", false));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_watched_file_is_followed_when_it_is_replaced_and_the_end_of_a_directory_is_told() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        fs::write(directory.join("file"), "1").unwrap();
        fs::create_dir(directory.join("sub")).unwrap();
        let mut file = server.stream("/v1/files/watch?path=file").await;
        let mut sub = server.stream("/v1/files/watch?path=sub").await;
        assert_eq!((file.next().await.unwrap().name, sub.next().await.unwrap().name), ("ready".into(), "ready".into()));
        fs::write(directory.join("other"), "2").unwrap();
        fs::rename(directory.join("other"), directory.join("file")).unwrap();
        let event = file.next().await.unwrap();
        assert_eq!(event.data["change"], "created");
        assert_eq!(event.data["path"], json!(directory.join("file")));
        fs::write(directory.join("file"), "3").unwrap();
        assert_eq!(file.next().await.unwrap().data["change"], "modified");
        fs::remove_dir(directory.join("sub")).unwrap();
        assert_eq!(sub.next().await.unwrap().data["change"], "removed");
        assert_eq!(sub.next().await.unwrap().name, "end");
        assert_eq!(sub.next().await, None);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_file_is_stored_whole_under_the_terms_of_the_request() {
    within(async {
        let server = Server::start().await;
        let directory = server.directory.path();
        let put = async |query: &str, tag: Option<&str>, content: &str| {
            let mut message = request("PUT", &format!("/v1/files/content?{query}"), content.to_owned());
            if let Some(tag) = tag {
                message.headers_mut().insert("if-match", HeaderValue::from_str(tag).unwrap());
            }
            server.connect().await.request(message).await
        };
        let stored = put("path=a/b/file&parents=true&mode=0640", None, "one").await;
        assert_eq!(stored.json(), json!({"path": directory.join("a/b/file"), "files": 1, "bytes": 3}));
        assert_eq!(fs::metadata(directory.join("a/b/file")).unwrap().permissions().mode() & 0o7777, 0o640);
        let tag = stored.header("etag").unwrap().to_owned();
        assert_eq!(put("path=a/b/file", Some(&tag), "two").await.status, 200);
        assert_eq!(fs::metadata(directory.join("a/b/file")).unwrap().permissions().mode() & 0o7777, 0o640);
        for (query, tag, expected) in [
            ("path=a/b/file", Some(tag.as_str()), (412, "changed")),
            ("path=none", Some(tag.as_str()), (412, "changed")),
            ("path=a/b/file&exclusive=true", None, (409, "exists")),
            ("path=c/d", None, (404, "not_found")),
            ("path=a", None, (409, "is_a_directory")),
            ("path=/dev/null", None, (409, "not_a_regular_file")),
            ("path=e&mode=999", None, (400, "invalid_query")),
            ("path=e&mode=17777", None, (400, "invalid_query")),
            ("path=a/b/file/x", None, (409, "not_a_directory")),
        ] {
            let answer = put(query, tag, "three").await;
            assert_eq!(error(&answer), (expected.0, expected.1.to_owned()), "{query}");
        }
        assert_eq!(fs::read(directory.join("a/b/file")).unwrap(), b"two");
        assert_eq!(put("path=new&exclusive=true", None, "").await.status, 200);
        assert_eq!(fs::read(directory.join("new")).unwrap(), b"");
        let mut all: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        all.sort();
        assert_eq!(all, ["a", "new"], "nothing else is left");
        server.stop().await;
    })
    .await;
}
