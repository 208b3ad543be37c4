//! The secrets of a session, which its history must not show.
//!
//! Only the sandbox knows them after its start. A label of it tells their names, where the runtime has labels; their
//! values are asked for when a command is written down.

use std::collections::BTreeMap;

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_protocol::{
    Secret,
    exec::{ExecRequest, Session},
};
use gloveport_provider::{Capabilities, Sandbox};

/// The label with the names of secret variables, with dots between them.
const LABEL: &str = "gloveport.secrets";
/// The name under which the session's key is hidden.
const KEY: &str = "SESSION_API_KEY";
/// Seconds for the values.
const LIMIT: f64 = 10.0;
/// Most bytes of all values.
const MOST: usize = 1 << 20;

/// Adds the label to those of a sandbox that is to be made.
pub(super) fn mark(labels: &mut BTreeMap<String, String>, secrets: &BTreeMap<String, Secret>, can: &Capabilities) {
    if !secrets.is_empty() && can.labels {
        let names: Vec<&str> = secrets.keys().map(String::as_str).collect();
        labels.insert(LABEL.to_owned(), names.join("."));
    }
}

/// The key and all secrets of a sandbox. An error means that they are not known, and nothing may be written down.
pub(super) async fn of(client: &ActionExecutionClient, sandbox: &Sandbox) -> anyhow::Result<BTreeMap<String, Secret>> {
    let mut secrets: BTreeMap<String, Secret> =
        sandbox.session_key.iter().map(|key| (KEY.to_owned(), key.clone())).collect();
    let names: Vec<&str> = sandbox.labels.get(LABEL).map(|names| names.split('.').collect()).unwrap_or_default();
    if !names.is_empty() {
        let values =
            values(client, &names).await.context("the sandbox cannot be asked for the secrets of the session")?;
        secrets.extend(names.into_iter().map(str::to_owned).zip(values));
    }
    Ok(secrets)
}

/// What the variables of these names are in the sandbox.
async fn values(client: &ActionExecutionClient, names: &[&str]) -> anyhow::Result<Vec<Secret>> {
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    anyhow::ensure!(names.iter().all(is_name), "the label {LABEL} was not made by gloveport");
    let words: Vec<String> = names.iter().map(|name| format!("\"${name}\"")).collect();
    let request = ExecRequest {
        id: None,
        command: format!("printf '%s\\0' {}", words.join(" ")),
        session: Session::New,
        cwd: None,
        env: BTreeMap::new(),
        timeout: Some(LIMIT),
    };
    let mut output = Vec::new();
    let take = |bytes: &[u8]| {
        if output.len() < MOST {
            output.extend_from_slice(bytes);
        }
        Ok::<(), ClientError>(())
    };
    let end = client.exec(request).await?.finish(take).await?;
    anyhow::ensure!(end.exit_code == Some(0), "the sandbox does not tell them");
    // The terminal sends CR before each LF.
    let output = String::from_utf8_lossy(&output).replace("\r\n", "\n");
    let values: Vec<Secret> = output.split_terminator('\0').map(Secret::from).collect();
    anyhow::ensure!(values.len() == names.len(), "the sandbox tells {} of {}", values.len(), names.len());
    Ok(values)
}
