//! Uses the file store that the environment describes, as the configuration names it: `FILE_STORE`, `FILE_STORE_PATH`,
//! `FILE_STORE_WEB_HOOK_URL`, and the credentials of the service.
//!
//! `FILE_STORE=s3 FILE_STORE_PATH=bucket cargo run -p gloveport-event-stream --example file_store -- list sessions`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output is what the program is for")]

use std::{env, process::ExitCode};

use bytes::Bytes;
use gloveport_event_stream::{
    StoreError,
    store::{StoreOptions, open_store},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments).await {
        Ok(output) => {
            println!("{output}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &[&str]) -> Result<String, StoreError> {
    let environment = |name: &str| env::var(name).ok();
    let store = open_store(StoreOptions {
        kind: environment("FILE_STORE").unwrap_or_else(|| "local".to_owned()),
        path: environment("FILE_STORE_PATH"),
        web_hook_url: environment("FILE_STORE_WEB_HOOK_URL"),
        web_hook_headers: None,
        web_hook_batch: environment("FILE_STORE_WEB_HOOK_BATCH").is_some(),
        home: env::home_dir(),
        environment: &environment,
    })?;
    let output = match arguments {
        ["write", path, content] => {
            store.write(path, Bytes::from((*content).to_owned())).await?;
            "written".to_owned()
        }
        ["read", path] => String::from_utf8_lossy(&store.read(path).await?).into_owned(),
        ["list", path] => store.list(path).await?.join("\n"),
        ["delete", path] => {
            store.delete(path).await?;
            "deleted".to_owned()
        }
        _ => "usage: file_store write PATH CONTENT | read PATH | list PATH | delete PATH".to_owned(),
    };
    store.flush().await;
    Ok(output)
}
