//! Our program in a sandbox: it is uploaded once, and started, also after each rest of a container.

use std::time::Duration;

use bytes::Bytes;
use gloveport_hosted::{
    record::Record,
    seal,
    server::{self, LAST, PLACE, SERVE, command, environment},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxSpec};
use tokio::time::{Instant, sleep};

use crate::{
    inner::Inner,
    names::{SECRETS, SERVER},
    toolbox::{Fault, Toolbox, quoted},
    view::{self, Server},
    wire::Told,
};

/// How long a server may take until it is seen, and how often it is looked for.
const BEGIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// Makes our directories and the workspace (`$1`: that of all, `$2`: the sandbox's own, `$3`: the workspace), whoever the daemon
/// works as, forgets an earlier server, and says whether the program `$4` is there.
const PREPARE: &str = r#"set -e
as_root() { "$@" 2>/dev/null || sudo -n "$@"; }
as_root mkdir -p "$1/bin" "$2" "$3"
test -w "$1/bin" || as_root chown "$(id -u)" "$1" "$1/bin"
test -w "$2" || as_root chown "$(id -u)" "$2"
test -w "$3" || as_root chown "$(id -u)" "$3"
chmod 755 "$1" "$1/bin"
chmod 700 "$2"
rm -f "$2/pid" "$2/ended" "$2/start" "$2/started"
if test -x "$4"; then echo there; else echo missing; fi"#;

/// The sealed secrets of a directory (`$1`), if there are any.
const SEALED: &str = r#"if test -e "$1/sealed"; then cat "$1/sealed"; fi"#;

/// What a server is started with.
pub(crate) struct Launch<'a> {
    pub(crate) told: &'a Told,
    pub(crate) record: &'a Record,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) key: &'a Secret,
}

impl Inner {
    /// Brings our program into a sandbox and starts it as the server.
    pub(crate) async fn launch(&self, launch: &Launch<'_>) -> Result<(), ProviderError> {
        let toolbox = self.toolbox(launch.told)?;
        let started = async {
            let program = format!("{}/bin/{}", self.options.directory, self.program.name().await?);
            self.prepare(&toolbox, launch.record, &program).await?;
            self.start(&toolbox, launch, program).await
        };
        started.await.map_err(|fault: Fault| match fault {
            Fault::Gone(reason) => ProviderError::Start {
                reason: format!("it is gone, or somebody stopped it ({reason})"),
                log: String::new(),
            },
            Fault::Other(error) => error,
        })
    }

    /// The last that a server has written; empty where nobody can tell any more.
    pub(crate) async fn last_lines(&self, told: &Told, record: &Record) -> String {
        let Ok(toolbox) = self.toolbox(told) else { return String::new() };
        let log = format!("{}/log", record.directory);
        let said = toolbox.run("read the log of a sandbox", LAST, &[&log]).await;
        said.map(|(_, said)| said).unwrap_or_default()
    }

    async fn prepare(&self, toolbox: &Toolbox<'_>, record: &Record, program: &str) -> Result<(), Fault> {
        let action = "prepare a sandbox";
        let failed = |said: String| {
            let reason = format!("a script failed: {said}; its user must be root, have sudo, or own the directory");
            Fault::from(self.control.service.failed(action, reason))
        };
        let paths = [&*self.options.directory, &*record.directory, &*record.workspace, program];
        match toolbox.run(action, PREPARE, &paths).await? {
            (0, said) if said.ends_with("there") => return Ok(()),
            (0, said) if said.ends_with("missing") => {}
            (_, said) => return Err(failed(said)),
        }
        let new = format!("{}/program.new", record.directory);
        toolbox.upload(&new, Bytes::from(self.program.read().await?)).await?;
        match toolbox.run(action, PLACE, &[&new, program]).await? {
            (0, _) => Ok(()),
            (_, said) => Err(failed(said)),
        }
    }

    /// Starts the server. What is secret is in a file that only its user can read, and that removes itself.
    async fn start(&self, toolbox: &Toolbox<'_>, launch: &Launch<'_>, program: String) -> Result<(), Fault> {
        let Launch { record, spec, key, .. } = launch;
        let failed =
            |error: &dyn std::fmt::Display| self.control.service.failed("start the server of a sandbox", error);
        let input = server::input(spec).map_err(|error| failed(&error))?;
        let directory = &record.directory;
        if let Some(line) = &input {
            // Whoever resumes the sandbox reads them there.
            let api_key = self.control.service.key()?;
            let sealed = seal::seal(SECRETS, api_key, &spec.session_id, &Secret::new(line.as_str()));
            let sealed = sealed.map_err(|error| failed(&error))?;
            toolbox.upload(&format!("{directory}/sealed"), Bytes::from(sealed)).await?;
        }
        let words = command(record, spec, program);
        let script = script(record, &words, &environment(record, spec, key), input.as_deref());
        let start = format!("{directory}/start");
        toolbox.upload(&start, Bytes::from(script)).await?;
        toolbox.hide(&start).await?;
        toolbox.session(SERVER).await?;
        // Of several, for an answer may be lost, one finds the file.
        toolbox.start(SERVER, &format!("mv {start} {directory}/started && sh {directory}/started")).await?;
        // It is known from here on what becomes of it.
        let began = Instant::now();
        while began.elapsed() < BEGIN && view::server(toolbox, record).await? == Server::None {
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The secrets that a sandbox was started with, as its server reads them.
    pub(crate) async fn secrets(
        &self,
        toolbox: &Toolbox<'_>,
        record: &Record,
        spec: &SandboxSpec,
    ) -> Result<Option<Secret>, Fault> {
        let action = "read the secrets of a sandbox";
        let (code, sealed) = toolbox.run(action, SEALED, &[&record.directory]).await?;
        if code != 0 {
            return Err(self.control.service.failed(action, sealed).into());
        }
        if sealed.is_empty() {
            return Ok(None);
        }
        let opened = seal::open(SECRETS, self.control.service.key()?, &spec.session_id, &sealed);
        let other = || self.control.service.failed(action, "they were sealed with another API key");
        Ok(Some(opened.ok_or_else(other)?))
    }
}

/// The script that starts a server: its variables, and what it reads from its standard input.
fn script(
    record: &Record,
    words: &[String],
    environment: &std::collections::BTreeMap<String, String>,
    input: Option<&str>,
) -> String {
    let variables = environment.iter().filter(|(name, _)| is_name(name));
    let variables: Vec<String> = variables.map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect();
    let variables = variables.concat();
    let words = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let serve = format!("sh -c {} gloveport {} {words}", quoted(SERVE), record.directory);
    let serve = match input {
        // It is a command of the shell itself, so that no list of processes shows it.
        Some(line) => format!("printf '%s' {} | {serve}\n", quoted(line)),
        None => format!("exec {serve} </dev/null\n"),
    };
    format!("rm -f \"$0\"\n{variables}{serve}")
}

/// Whether a shell knows such a variable.
fn is_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_word) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_gives_variables_and_secrets_as_they_are_and_is_gone_then() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let record = Record {
            backend: String::new(),
            kept: true,
            created: 0.0,
            expires: None,
            key: String::new(),
            port: 1,
            ports: [].into(),
            directory: directory.path().display().to_string(),
            workspace: String::new(),
            image: None,
            private: true,
            fork: None,
        };
        let words = ["sh", "-c", "read -r line; echo \"$A|$line\"; exit 3"].map(str::to_owned);
        let environment =
            [("A".to_owned(), "it's $HOME\nx".to_owned()), ("not a name".to_owned(), "x".to_owned())].into();
        std::fs::write(path("started"), script(&record, &words, &environment, Some("{\"a\":\"'\"}\n"))).unwrap();
        let status = Command::new("sh").arg(path("started")).status().unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read_to_string(path("log")).unwrap(), "it's $HOME\nx|{\"a\":\"'\"}\n");
        assert_eq!(std::fs::read_to_string(path("ended")).unwrap(), "3\n");
        assert!(!path("started").exists());
    }
}
