//! Processes that are started, and those that are followed again.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    time::Duration,
};

use axum::{extract::Request, response::Response};
use gloveport_client::{AttachOptions, ClientError};
use gloveport_protocol::{
    processes::{ProcessFrom, ProcessRequest, ProcessStatus},
    terminals::{TerminalRequest, TerminalState},
};
use http::HeaderMap;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Pty, SelectRequest, events};
use crate::{
    agent::{
        handle::Agent,
        paths,
        target::{Target, terminal_id},
        user,
    },
    connect::{self, Code, ConnectError, Events, KeepAlive},
};

/// The shell that the SDKs name, and the one that there is where it is missing.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    cmd: String,
    args: Vec<String>,
    envs: HashMap<String, String>,
    cwd: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StartRequest {
    process: Option<Config>,
    #[serde(default)]
    pty: Option<Pty>,
    #[serde(default)]
    tag: Option<String>,
    /// Old clients do not say it, and send input.
    #[serde(default)]
    stdin: Option<bool>,
}

/// What is started.
struct Plan {
    argv: Vec<String>,
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    limit: Option<Duration>,
}

/// Starts a process and tells what it does. It lives on when nobody listens any more, until its time is over.
pub(super) async fn start(agent: Agent, request: Request) -> Response {
    let headers = request.headers().clone();
    let keep_alive = KeepAlive::new(&headers, events::keep_alive());
    let started = async {
        let limit = connect::limit(&headers)?;
        let request: StartRequest = connect::only_message(request).await?;
        Ok((agent.started(&headers, request, limit).await?, limit))
    };
    match started.await {
        // What has its own time limit says itself that it is over.
        Ok((events, limit)) => {
            connect::stream(Ok(events), keep_alive, limit.map(|limit| limit + Duration::from_secs(5)))
        }
        Err(error) => connect::stream(Err(error), keep_alive, None),
    }
}

/// Tells what a process does that was started before.
pub(super) async fn connect(agent: Agent, request: Request) -> Response {
    let headers = request.headers().clone();
    let keep_alive = KeepAlive::new(&headers, events::keep_alive());
    let followed = async {
        let limit = connect::limit(&headers)?;
        let SelectRequest { process } = connect::only_message(request).await?;
        let target = agent.target(process.as_ref()).await?;
        Ok((agent.followed(&target).await?, limit))
    };
    match followed.await {
        Ok((events, limit)) => connect::stream(Ok(events), keep_alive, limit),
        Err(error) => connect::stream(Err(error), keep_alive, None),
    }
}

impl Agent {
    async fn started(
        &self,
        headers: &HeaderMap,
        request: StartRequest,
        limit: Option<Duration>,
    ) -> Result<Events, ConnectError> {
        let StartRequest { process, pty, tag, stdin } = request;
        let plan = self.plan(headers, process.unwrap_or_default(), limit).await?;
        match pty {
            Some(pty) => self.on_terminal(plan, pty, tag.as_deref()).await,
            None => self.with_pipes(plan, tag, stdin.unwrap_or(true)).await,
        }
    }

    async fn plan(&self, headers: &HeaderMap, config: Config, limit: Option<Duration>) -> Result<Plan, ConnectError> {
        let Config { cmd, args, envs, cwd } = config;
        if cmd.is_empty() {
            return Err(ConnectError::wrong("the call names no program"));
        }
        let facts = self.place.facts().await?;
        let cwd = paths::absolute(cwd.as_deref().unwrap_or_default(), facts)?;
        let mut env: BTreeMap<String, String> = envs.into_iter().collect();
        let mut argv = match user::named(headers, facts)? {
            Some(name) => user::words(&name, facts, std::mem::take(&mut env).into_iter()),
            None => Vec::new(),
        };
        argv.push(cmd);
        argv.extend(args);
        Ok(Plan { argv, cwd: cwd.into(), env, limit })
    }

    async fn with_pipes(&self, plan: Plan, tag: Option<String>, stdin: bool) -> Result<Events, ConnectError> {
        let timeout = plan.limit.map(|limit| limit.as_secs_f64().max(0.001));
        let mut request = ProcessRequest { argv: plan.argv, cwd: Some(plan.cwd), env: plan.env, stdin, tag, timeout };
        let processes = self.place.client.processes();
        let started: ProcessStatus = match processes.start(&request).await {
            Err(error) if lacks_shell(&error, &request.argv) => {
                SHELLS[1].clone_into(&mut request.argv[0]);
                processes.start(&request).await?
            }
            started => started?,
        };
        let output = processes.follow(&started.id, ProcessFrom::Start).await?;
        Ok(events::of_pipes(started.pid, output))
    }

    async fn on_terminal(&self, plan: Plan, pty: Pty, tag: Option<&str>) -> Result<Events, ConnectError> {
        let mut request = TerminalRequest {
            id: Some(terminal_id(tag)?),
            argv: Some(plan.argv),
            cwd: Some(plan.cwd),
            env: plan.env,
            ..TerminalRequest::default()
        };
        if let Some(size) = pty.size() {
            (request.columns, request.rows) = (size.columns, size.rows);
        }
        let terminals = self.place.client.terminals();
        let started = match terminals.start(request.clone()).await {
            Err(error) if request.argv.as_ref().is_some_and(|argv| lacks_shell(&error, argv)) => {
                if let Some(word) = request.argv.as_mut().and_then(|argv| argv.first_mut()) {
                    SHELLS[1].clone_into(word);
                }
                terminals.start(request).await?
            }
            started => started?,
        };
        let TerminalState::Running { pid } = started.state else {
            return Err(ConnectError::new(Code::Internal, "the program on the terminal ended at once"));
        };
        if let Some(limit) = plan.limit {
            self.end_after(started.id.clone(), limit);
        }
        let options = AttachOptions { offset: Some(0), ..AttachOptions::default() };
        Ok(events::of_terminal(pid, terminals.attach(&started.id, options).await?))
    }

    /// Ends a terminal when its time is over, whoever still looks at it.
    fn end_after(&self, id: String, limit: Duration) {
        let (place, stop) = (self.place.clone(), self.shared.stop.clone());
        self.shared.tasks.spawn(async move {
            // It ends with the gateway, and the terminal with its sandbox.
            if timeout(limit, stop.cancelled()).await.is_err()
                && let Err(error) = place.client.terminals().remove(&id).await
            {
                tracing::debug!(%error, "a terminal whose time is over is gone already, or stays");
            }
        });
    }

    async fn followed(&self, target: &Target) -> Result<Events, ConnectError> {
        match target {
            Target::Pipes(process) => {
                let output = self.place.client.processes().follow(&process.id, ProcessFrom::Now).await?;
                Ok(events::of_pipes(process.pid, output))
            }
            Target::Terminal(terminal) => {
                let options = AttachOptions { offset: Some(terminal.end), ..AttachOptions::default() };
                let attached = self.place.client.terminals().attach(&terminal.id, options).await?;
                Ok(events::of_terminal(target.pid().unwrap_or_default(), attached))
            }
        }
    }
}

/// Whether the shell that the SDKs name is what is missing.
fn lacks_shell(error: &ClientError, argv: &[String]) -> bool {
    let ClientError::Status(status) = error else { return false };
    let is_missing = status.native.as_ref().is_some_and(|native| native.code == "no_such_program");
    is_missing && argv.first().is_some_and(|word| word == SHELLS[0])
}
