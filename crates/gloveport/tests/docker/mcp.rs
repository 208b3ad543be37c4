//! `gloveport mcp` with a container, used by `gloveport mcp call`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::{
    docker::{Engine, LIMIT, PYTHON, until},
    sessions::Home,
    support::{gloveport, text},
};

fn call(home: &Home, flags: &str, tool: &str, arguments: &Value) -> Output {
    let server = format!("{} mcp {flags}", env!("CARGO_BIN_EXE_gloveport"));
    let mut command = gloveport(home.path());
    command.current_dir(home.path()).args(["mcp", "call", tool, &arguments.to_string(), "--server", &server]);
    command.output().unwrap()
}

#[tokio::test]
async fn a_container_is_made_for_a_client_and_gone_with_it() {
    let engine = Engine::shared();
    let home = Home::new();
    fs::write(home.path().join(".env"), format!("DOCKER_HOST={}\n", engine.0)).unwrap();
    let mark = format!("mcp-{}", std::process::id());
    let flags = format!("--runtime docker --image {PYTHON} --network none --label {mark}=yes");
    let ran =
        call(&home, &flags, "shell", &json!({"command": "test -f /.dockerenv; echo $?; python3 -c 'print(6*7)'"}));
    assert_eq!((text(&ran.stdout).as_str(), ran.status.code()), ("0\n42\n[exit code 0]\n", Some(0)), "{ran:?}");
    let read = call(&home, &flags, "read_file", &json!({"path": "/etc/hostname"}));
    assert!(read.status.success() && !text(&read.stdout).trim().is_empty(), "{read:?}");
    let missing = call(&home, &flags, "read_file", &json!({"path": "nothing-here"}));
    assert!(missing.status.code() == Some(1) && text(&missing.stdout).contains("nothing-here"), "{missing:?}");
    tokio::time::timeout(LIMIT, until("the containers are gone", || engine.left(&mark).is_empty())).await.unwrap();
}
