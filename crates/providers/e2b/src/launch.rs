//! Our program in a sandbox: it is uploaded once, and started.

use std::{collections::BTreeMap, fs, io, path::PathBuf, time::SystemTime};

use bytes::Bytes;
use gloveport_protocol::Secret;
use gloveport_provider::{
    ProviderError, SandboxId, SandboxSpec,
    container::{Input, KEY},
};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use crate::{
    agent::{Agent, Fault, Program, Start},
    inner::{Inner, Tokens},
    names::{self, EDITOR, TAG, WORK},
    record::Record,
};

/// Makes our directories and the workspace (`$1`: that of all, `$2`: the sandbox's own, `$3`: the workspace), gives the latter
/// two to the user `$4`, and says whether the program `$5` is there.
const PREPARE: &str = r#"set -e
mkdir -p "$1/bin" "$2" "$3"
chmod 755 "$1" "$1/bin"
chmod 700 "$2"
chown "$4" "$2" "$3"
if test -x "$5"; then echo there; else echo missing; fi"#;

/// Gives an upload (`$1`) its name (`$2`): a program that runs cannot be written to.
const PLACE: &str = r#"set -e
chmod 755 "$1"
mv -f "$1" "$2""#;

/// Runs our server with its output in a file that stays short, and keeps its exit code (`$1`: the sandbox's directory; then
/// the command). Its standard input is that of the script.
const SERVE: &str = r#"dir=$1
shift
echo $$ >"$dir/pid"
: >>"$dir/log"
while sleep 20; do
  if test "$(wc -c <"$dir/log")" -gt 8388608; then tail -c 4194304 "$dir/log" >"$dir/log.1"; : >"$dir/log"; fi
done </dev/null >/dev/null 2>&1 &
"$@" >>"$dir/log" 2>&1
echo $? >"$dir/ended.new"
mv "$dir/ended.new" "$dir/ended"
kill $!"#;

/// The end of a log (`$1`).
const LAST: &str = r#"tail -n 20 "$1""#;

/// What a server is started with.
pub(crate) struct Launch<'a> {
    pub(crate) id: &'a SandboxId,
    pub(crate) record: &'a Record,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) key: &'a Secret,
    pub(crate) tokens: &'a Tokens,
}

impl Inner {
    /// The path of our program in sandboxes. It follows from the content, so that no sandbox runs one of another build.
    async fn program(&self) -> Result<String, ProviderError> {
        let name = self.program.get_or_try_init(async || {
            let digest = Sha256::digest(self.read_program().await?);
            Ok::<_, ProviderError>(format!("gloveport-{}", gloveport_ids::hex(&digest[..8])))
        });
        Ok(format!("{}/bin/{}", self.options.directory, name.await?))
    }

    /// The file that is put into sandboxes. It is read for each upload: it is large, and uploads are rare.
    async fn read_program(&self) -> Result<Vec<u8>, ProviderError> {
        let path = self.options.program.clone();
        let failed =
            |path: PathBuf, source| ProviderError::File { action: "read the program for sandboxes,", path, source };
        let read = spawn_blocking(move || {
            let is_elf = gloveport_provider::program::is_for_containers(&path);
            let wrong =
                || io::Error::new(io::ErrorKind::InvalidData, "it is no program for Linux, which sandboxes are");
            let content = is_elf.and_then(|is_elf| if is_elf { fs::read(&path) } else { Err(wrong()) });
            content.map_err(|source| failed(path, source))
        });
        read.await.map_err(|error| self.control.service.failed("read the program", error))?
    }

    /// Brings our program into a sandbox and starts it as the server.
    pub(crate) async fn launch(&self, launch: &Launch<'_>) -> Result<(), ProviderError> {
        let agent = self.agent(launch.id, launch.tokens)?;
        let started = async {
            let program = self.program().await?;
            self.prepare(&agent, launch.record, &program).await?;
            self.start(&agent, launch, program).await
        };
        started.await.map_err(|fault: Fault| match fault {
            Fault::Gone(reason) => ProviderError::Start {
                reason: format!("it is gone, or somebody paused it ({reason})"),
                log: String::new(),
            },
            Fault::Other(error) => error,
        })
    }

    /// The last that a server has written; empty where nobody can tell any more.
    pub(crate) async fn last_lines(&self, launch: &Launch<'_>) -> String {
        let Ok(agent) = self.agent(launch.id, launch.tokens) else { return String::new() };
        let log = format!("{}/log", launch.record.directory);
        let said = agent.run("read the log of a sandbox", LAST, &[&log]).await;
        said.map(|(_, said)| said).unwrap_or_default()
    }

    async fn prepare(&self, agent: &Agent<'_>, record: &Record, program: &str) -> Result<(), Fault> {
        let action = "prepare a sandbox";
        let failed =
            |said: String| Fault::from(self.control.service.failed(action, format!("a script failed: {said}")));
        let paths = [&*self.options.directory, &*record.directory, &*record.workspace, &*self.options.user, program];
        match agent.run(action, PREPARE, &paths).await? {
            (0, said) if said.ends_with("there") => return Ok(()),
            (0, said) if said.ends_with("missing") => {}
            (_, said) => return Err(failed(said)),
        }
        let new = format!("{}/program.new", record.directory);
        agent.upload(&new, Bytes::from(self.read_program().await?)).await?;
        match agent.run(action, PLACE, &[&new, program]).await? {
            (0, _) => Ok(()),
            (_, said) => Err(failed(said)),
        }
    }

    async fn start(&self, agent: &Agent<'_>, launch: &Launch<'_>, program: String) -> Result<(), Fault> {
        let Launch { record, spec, .. } = launch;
        let action = "start the server of a sandbox";
        let words = command(record, spec, program);
        let words: Vec<&str> =
            [record.directory.as_str()].into_iter().chain(words.iter().map(String::as_str)).collect();
        let program = Program { envs: environment(launch), ..Program::script(SERVE, &words) };
        let has_secrets = !spec.secrets.is_empty();
        let start = Start { program, tag: Some(TAG), stdin: has_secrets };
        let running = match agent.start(action, &self.options.user, start).await {
            // The answer may have been lost, and two servers are one too many.
            Err(Fault::Other(error)) if error.is_temporary() => {
                let is_there = agent.processes().await?.iter().any(crate::agent::Process::is_server);
                return if is_there && !has_secrets { Ok(()) } else { Err(error.into()) };
            }
            started => started?,
        };
        if has_secrets {
            let secrets = spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
            let line = serde_json::to_string(&Input { secrets });
            let line = line.map_err(|error| self.control.service.failed(action, error))?;
            agent.tell(running.pid, &format!("{line}\n")).await?;
        }
        Ok(())
    }
}

/// The command of our server (`gloveport_contract::container`).
fn command(record: &Record, spec: &SandboxSpec, program: String) -> Vec<String> {
    let mut words = vec![program, "container-server".to_owned()];
    words.extend(["--port".to_owned(), record.port.to_string()]);
    words.extend(["--workspace".to_owned(), record.workspace.clone()]);
    words.extend(spec.plugins.iter().flat_map(|plugin| ["--plugin".to_owned(), plugin.clone()]));
    // The upload of our program is not the session's time. The clock goes on while a sandbox rests.
    let expires = expires(spec, SystemTime::now());
    words.extend(expires.into_iter().flat_map(|at| ["--expires".to_owned(), at.to_string()]));
    let idle = spec.idle_stop.map(|idle| idle.as_secs_f64());
    words.extend(idle.into_iter().flat_map(|idle| ["--idle-stop".to_owned(), idle.to_string()]));
    if !spec.secrets.is_empty() {
        words.push("--input".to_owned());
    }
    words
}

/// The variables of our server and its tools.
fn environment(launch: &Launch<'_>) -> BTreeMap<String, String> {
    let Launch { record, spec, key, .. } = launch;
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    set("port", record.port.to_string());
    set("PYTHONUNBUFFERED", "1".to_owned());
    set("PIP_BREAK_SYSTEM_PACKAGES", "1".to_owned());
    set("OPENHANDS_SESSION_ID", spec.session_id.to_string());
    for (name, variables) in [
        (EDITOR.0, &["VSCODE_PORT"][..]),
        (WORK[0].0, &["APP_PORT_1", "WORK_PORT_1"]),
        (WORK[1].0, &["APP_PORT_2", "WORK_PORT_2"]),
    ] {
        for variable in variables {
            if let Some(port) = record.ports.get(name) {
                set(variable, port.to_string());
            }
        }
    }
    all.extend(spec.environment.clone());
    all.insert(KEY.to_owned(), key.expose().to_owned());
    all
}

/// When a sandbox with this time to live ends, in seconds since 1970.
pub(crate) fn expires(spec: &SandboxSpec, now: SystemTime) -> Option<f64> {
    spec.time_to_live.and_then(|time| now.checked_add(time)).map(names::seconds)
}
