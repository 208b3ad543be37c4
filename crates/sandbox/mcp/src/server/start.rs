//! One start of a server: its program, its pipes, and the exchange of `initialize`.

use std::{ffi::OsString, sync::Arc, time::Duration};

use gloveport_plugin::{ProgramLog, ended};
use gloveport_protocol::McpServerEntry;
use gloveport_sys::{SessionProcess, Surroundings, surroundings::TalkingProgram};
use rmcp::{
    RoleClient, ServiceExt as _,
    model::ServerNotification,
    service::{ClientInitializeError, RunningService},
};
use tokio::{
    net::unix::pipe::{Receiver, Sender},
    sync::mpsc,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    back::{Asked, Back},
    lines::Lines,
};

/// Time for a program whose output has ended to end itself, so that its status can be told.
const STATUS: Duration = Duration::from_millis(500);
/// Time for the rest of what it prints on its standard error.
const REST: Duration = Duration::from_millis(200);
/// Variables that a server gets of the environment of the sandbox: the usual ones of the protocol's clients, and what
/// programs need to reach the network and to find their certificates, caches and language.
const VARIABLES: [&str; 22] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
];

/// What a server is started with: the user and the directory of the sandbox, and an environment of its own.
pub(super) fn surroundings(sandbox: &Surroundings, entry: &McpServerEntry) -> Surroundings {
    let mut own = sandbox.clone();
    own.environment.retain(|(name, _)| VARIABLES.iter().any(|variable| name == variable));
    if !own.user_name.is_empty() {
        let user = own.user_name.clone();
        own.set("USER", user.clone());
        own.set("LOGNAME", user);
    }
    for (name, value) in &entry.env {
        own.set(name, value);
    }
    own
}

/// A server that answered `initialize`.
pub(super) struct Started {
    pub(super) process: SessionProcess,
    pub(super) service: RunningService<RoleClient, Asked>,
    pub(super) back: Arc<Back>,
    pub(super) told: mpsc::Receiver<ServerNotification>,
    pub(super) errors: AbortOnDropHandle<()>,
}

/// Starts the program and greets it. Nothing is left of a start that fails or is given up.
pub(super) async fn start(
    entry: &McpServerEntry,
    surroundings: &Surroundings,
    log: &Arc<ProgramLog>,
    limit: Duration,
) -> Result<Started, String> {
    let printed = log.total();
    let argv: Vec<OsString> = std::iter::once(&entry.command).chain(&entry.args).map(OsString::from).collect();
    let talking = surroundings.start_to_talk(&argv).await.map_err(|error| error.to_string())?;
    let TalkingProgram { mut process, input, output, errors } = talking;
    let mut errors = AbortOnDropHandle::new(tokio::spawn(Arc::clone(log).read(errors)));
    let (back, told) = Back::new();
    let pipes = Sender::from_owned_fd(input).and_then(|input| Ok((Receiver::from_owned_fd(output)?, input)));
    let (output, input) = pipes.map_err(|error| format!("its pipes cannot be used: {error}"))?;
    let lines = Lines::new(output, input, Arc::clone(&back), Arc::clone(log));
    let greeted = timeout(limit, Asked { back: Arc::clone(&back) }.serve(lines)).await;
    let reason = match greeted {
        Ok(Ok(service)) => return Ok(Started { process, service, back, told, errors }),
        Ok(Err(error)) => match (back.broken(), timeout(STATUS, process.exited()).await) {
            (Some(broken), _) => broken,
            (None, Ok(exit)) => format!("{} before it answered `initialize`", ended(exit)),
            (None, Err(_)) => refused(&error),
        },
        Err(_) => format!("it did not answer `initialize` within {} s", limit.as_secs()),
    };
    process.end(Duration::ZERO).await;
    let _rest = timeout(REST, &mut errors).await;
    Err(format!("{reason}{}", last_words(log, printed)))
}

fn refused(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refused `initialize`: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => "it closed its output before it answered `initialize`".to_owned(),
        other => format!("its answer to `initialize` is none: {other}"),
    }
}

/// What a server printed last, as the end of an error.
pub(super) fn last_words(log: &ProgramLog, since: u64) -> String {
    let words = log.last_lines(since);
    if words.is_empty() { String::new() } else { format!(". The last of its output:{words}") }
}
