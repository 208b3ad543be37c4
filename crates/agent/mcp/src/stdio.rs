//! Servers that are programs: started here, spoken to over their standard streams, and ended with all that they started.

use std::{io, path::Path, process::Stdio, sync::Arc, time::Duration};

use gloveport_platform::{find_program, group, is_executable};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::{ConnectError, Server, StdioServer, fate::Fate, http::LARGEST};

/// Variables of this process that a server gets, on all systems: the values of others may be secrets.
const INHERITED: [&str; 17] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];
/// How long a server may take to end after its input has ended, and again after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long the end of a program, and of what it writes, is waited for to tell why a connection ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Most bytes of a line for people; the rest of it is left out.
const LINE: usize = 4 * 1024;

/// The program, its streams, and what it writes for people.
pub(crate) struct Program {
    lines: AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>,
    group: Group,
    stderr: JoinHandle<()>,
    fate: Arc<Fate>,
}

impl Program {
    /// Starts a server.
    pub(crate) fn start(server: &StdioServer, fate: &Arc<Fate>) -> Result<Self, ConnectError> {
        let (name, command) = (&server.name, &server.command);
        let failed = |source| ConnectError::Start { server: name.clone(), command: command.clone(), source };
        let path = server.env.get("PATH").map(|path| path.expose().to_owned());
        let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
        let directory = std::env::current_dir().map_err(failed)?;
        // With a slash it is a path. Only names are looked for.
        let found = if Path::new(command).components().nth(1).is_some() {
            Some(directory.join(command)).filter(|path| std::fs::metadata(path).is_ok_and(|file| is_executable(&file)))
        } else {
            find_program(command, &path, &directory)
        };
        let program =
            found.ok_or_else(|| ConnectError::NoProgram { server: name.clone(), command: command.clone() })?;
        let mut command = Command::new(program);
        let inherited = INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .args(&server.args)
            .env_clear()
            .envs(inherited)
            .envs(server.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group::lead(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Group::of(child).map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        Ok(Self {
            lines: AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LARGEST),
            group,
            stderr: tokio::spawn(keep(stderr, Server::Stdio(server.clone()), Arc::clone(fate))),
            fate: Arc::clone(fate),
        })
    }

    /// Waits a moment for the end of the program, and remembers it.
    async fn explain(&mut self) {
        let told = async {
            let ended = self.group.ended().await;
            // What it still writes comes until the last process that it started has ended.
            if !self.stderr.is_finished() {
                let _ended = (&mut self.stderr).await;
            }
            ended
        };
        let how = match timeout(LAST_WORDS, told).await {
            Ok(Some(status)) => format!("its program ended ({status})"),
            _ => match self.group.status() {
                Some(status) => format!("its program ended ({status})"),
                None => "its program closed its output".to_owned(),
            },
        };
        self.fate.end(how);
    }
}

impl Transport<RoleClient> for Program {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // If this is given up in the middle, the output has still ended the next time.
        let message = Transport::<RoleClient>::receive(&mut self.lines).await;
        if message.is_none() {
            self.explain().await;
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // The end of its input tells a server to end. One that does not read what it was sent does not come to it.
        let closed = timeout(GRACE, Transport::<RoleClient>::close(&mut self.lines)).await;
        self.group.end().await;
        closed.unwrap_or(Ok(()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stderr.abort();
    }
}

/// A program and all that it started, which end with this.
struct Group {
    /// `None` when it was waited for. Until then its process id, and with it the group, is nobody else's.
    child: Option<Child>,
    end: group::End,
    status: Option<String>,
}

impl Group {
    fn of(child: Child) -> io::Result<Self> {
        match group::End::of(&child) {
            Ok(end) => Ok(Self { child: Some(child), end, status: None }),
            Err(error) => {
                group::kill(&child);
                Err(error)
            }
        }
    }

    /// Waits for the program to end by itself, and ends what it has left behind. How it ended.
    async fn ended(&mut self) -> Option<String> {
        if let Some(child) = &mut self.child {
            self.end.reached(child).await.ok()?;
            group::kill(child);
            self.status = child.wait().await.ok().map(|status| status.to_string());
            self.child = None;
        }
        self.status()
    }

    fn status(&self) -> Option<String> {
        self.status.clone()
    }

    /// Ends them within a time limit: by themselves, when asked, or by force.
    async fn end(&mut self) {
        if timeout(GRACE, self.ended()).await.is_ok() {
            return;
        }
        let asked = self.child.as_ref().is_some_and(group::ask_to_end);
        if asked && timeout(GRACE, self.ended()).await.is_ok() {
            return;
        }
        if let Some(child) = &self.child {
            group::kill(child);
        }
        let _ended = timeout(GRACE, self.ended()).await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = &self.child {
            group::kill(child);
        }
    }
}

/// Keeps what a program writes for people, line by line and without the secrets that it was given.
async fn keep(mut stderr: impl AsyncRead + Unpin, server: Server, fate: Arc<Fate>) {
    let name = server.name();
    let tell = |line: &[u8]| {
        let line = server.mask(String::from_utf8_lossy(line).trim_end());
        tracing::debug!(server = name, "{line}");
        fate.wrote(line);
    };
    let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
    // What cannot be read any more is no reason to end the connection.
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        for byte in &buffer[..count] {
            if *byte == b'\n' {
                tell(&line);
                line.clear();
            } else if line.len() < LINE {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        tell(&line);
    }
}
