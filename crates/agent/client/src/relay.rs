//! The interface of OpenHands 0.62 in a sandbox whose only server is an `agent-server` of OpenHands' SDK 1.x
//! (`agent-server-workspace-api`).
//!
//! That server knows commands and files and no tools: no shell that keeps its state, no editor, no cells. So our program is put
//! into the sandbox and serves the tools there, on an address that nobody outside reaches. A request is a file that is uploaded,
//! a command that asks our server, and a file with the answer that is downloaded. The bodies are files because an `agent-server`
//! keeps each command and its output.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_protocol::BoxFuture;
use http_body_util::BodyExt as _;
use reqwest::{Body, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    ClientError, ClientOptions,
    call::{Call, Carry, Payload},
    exec::random_id,
    session::{ERROR_BODY, Session, read, status_error},
    transfer::{Form, Pieces, file_pieces},
};

/// What is passed on: the calls of OpenHands 0.62.
const CALLS: [&str; 8] = [
    "alive",
    "server_info",
    "execute_action",
    "list_files",
    "upload_file",
    "download_files",
    "update_mcp_server",
    "vscode/connection_token",
];
/// The exit code of a call when our server is not there.
const NO_SERVER: i64 = 90;
/// How long our server may take to start, in seconds.
const START: u64 = 60;
/// How long a step of the preparation may take.
const STEP: Duration = Duration::from_mins(1);
/// How long the upload of our program may pause.
const UPLOAD: Duration = Duration::from_mins(5);
/// Given to the `agent-server` beyond the limit of a call.
const MARGIN: Duration = Duration::from_secs(30);
/// The limit of a call that has none: 30 days.
const NO_LIMIT: Duration = Duration::from_hours(720);
/// How often our server is asked whether it lives while nothing else is, and after how long without a question it ends.
const BEAT: Duration = Duration::from_mins(5);
const IDLE_STOP: Duration = Duration::from_mins(30);

/// Most bytes of the name of a session, which becomes the name of a directory.
const LONGEST_SESSION: usize = 120;

/// Makes our directories, of which nobody else can enter any (`@NAME@`: the program, `@SESSION@`: the session), and says where they
/// are and whether the program is there.
const PREPARE: &str = r#"set -e
umask 077
d="${TMPDIR:-/tmp}/gloveport-$(id -u)"
mkdir -p "$d"
if [ -L "$d" ] || [ ! -O "$d" ]; then echo "$d belongs to somebody else" >&2; exit 1; fi
chmod 700 "$d"
mkdir -p "$d/bin" "$d/@SESSION@"
echo "$d"
if [ -x "$d/bin/@NAME@" ]; then echo there; else echo missing; fi
uname -sm"#;

/// Gives an upload its name: a program that runs cannot be written to.
const PLACE: &str = r"set -e
chmod 700 @UPLOAD@
mv -f @UPLOAD@ @PROGRAM@";

/// Starts our server, unless it serves already, and waits for it.
const SERVE: &str = r"umask 077
@PROGRAM@ relayed-server --directory @DIRECTORY@ --workspace @WORKSPACE@ --idle-stop @IDLE@@PLUGINS@ </dev/null >@LOG@ 2>&1 &
@PROGRAM@ relayed-call --directory @DIRECTORY@ --name @CALL@ --wait @WAIT@ GET alive
code=$?
if [ $code != 0 ]; then tail -n 5 @LOG@ >&2; fi
exit $code";

/// Which interface a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireOfServer {
    /// That of OpenHands 0.62.
    ActionExecution,
    /// That of OpenHands' SDK 1.x.
    AgentServer,
}

/// Which interface the server at this URL has, by what it says of itself.
///
/// # Errors
///
/// It does not answer, or it refuses the key.
pub async fn wire_of(options: &ClientOptions) -> Result<WireOfServer, ClientError> {
    let session = Session::new(&ClientOptions { relay: None, ..options.clone() })?;
    let told: Value = match session.once_json(&Call::get("server_info", session.limits.other)).await {
        Ok(told) => told,
        // One that stays silent about itself is no `agent-server`.
        Err(ClientError::Status(_) | ClientError::Answer { .. }) => Value::Null,
        Err(error) => return Err(error),
    };
    let is_agent_server = told.get("resources").is_none() && (told.get("sdk_version").or(told.get("title"))).is_some();
    Ok(if is_agent_server { WireOfServer::AgentServer } else { WireOfServer::ActionExecution })
}

/// What a relay is made from.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// The session. One of the same name finds the tools of an earlier connection again.
    pub session: String,
    /// Our program for Linux on this machine.
    pub program: PathBuf,
    /// Its name in sandboxes, which follows from its content.
    pub name: String,
    /// Where the tools start, if the sandbox has it; else where the `agent-server` works.
    pub workspace: String,
    /// Plugins of the tools' server.
    pub plugins: Vec<String>,
}

/// The way to our tools in a sandbox whose server is an `agent-server`. See the module's text.
pub struct Relay {
    outer: Session,
    options: RelayOptions,
    /// Where our files are in the sandbox.
    place: Place,
    /// Calls whose answers may go.
    fetched: Mutex<Vec<String>>,
    /// Held while our server is started anew.
    starting: tokio::sync::Mutex<()>,
    /// Ends what asks whether it lives.
    _beating: DropGuard,
}

/// Paths in the sandbox.
#[derive(Clone, Debug)]
struct Place {
    /// Our program.
    program: String,
    /// The directory of our server.
    directory: String,
    /// What our server logs.
    log: String,
    /// How the `agent-server` is told of files.
    paths: Paths,
}

/// Where requests about files have their paths (`agent-server-workspace-api` 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paths {
    /// In the query.
    InQuery,
    /// In the URL, as servers before 1.13.1 want them.
    InUrl,
}

impl Paths {
    /// The form that this server has: a new one says of a directory that it is no file.
    async fn of(outer: &Session, directory: &str) -> Result<Self, ClientError> {
        let asked =
            Call { query: vec![("path", directory.to_owned())], ..Call::get("api/file/download", outer.limits.other) };
        match outer.once(&asked).await {
            Err(ClientError::Status(error)) if error.status == 400 => Ok(Self::InQuery),
            Ok(_) => Ok(Self::InQuery),
            Err(ClientError::Status(_)) => Ok(Self::InUrl),
            Err(error) => Err(error),
        }
    }

    /// The path and the query of a request about a file.
    fn of_request(self, call: &str, file: &str) -> (String, Vec<(&'static str, String)>) {
        match self {
            Self::InQuery => (call.to_owned(), vec![("path", file.to_owned())]),
            Self::InUrl => {
                let encoded = file.bytes().fold(String::new(), |text, byte| match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                        text + &char::from(byte).to_string()
                    }
                    _ => text + &format!("%{byte:02X}"),
                });
                (format!("{call}/{encoded}"), Vec::new())
            }
        }
    }
}

/// What an `agent-server` answers about a command.
#[derive(Deserialize)]
struct Ran {
    exit_code: Option<i64>,
    stdout: Option<String>,
    stderr: Option<String>,
}

impl Ran {
    /// What it printed, or why it failed.
    fn success(self, session: &Session, what: &str) -> Result<String, ClientError> {
        let Self { exit_code, stdout, stderr } = self;
        if exit_code == Some(0) {
            return Ok(stdout.unwrap_or_default());
        }
        let said = stderr.as_deref().map(str::trim).filter(|text| !text.is_empty()).map_or_else(
            || exit_code.map_or_else(|| "it did not end".to_owned(), |code| format!("exit code {code}")),
            |text| text.lines().last().unwrap_or_default().to_owned(),
        );
        Err(ClientError::Sandbox { url: session.base().to_string(), what: what.to_owned(), reason: said })
    }
}

impl Relay {
    /// Puts our program into the sandbox whose `agent-server` these options name, unless it is there, and starts the tools,
    /// unless they run.
    ///
    /// # Errors
    ///
    /// The server does not answer, has another interface, or cannot run our program.
    pub async fn start(options: &ClientOptions, relay: RelayOptions) -> Result<Arc<Self>, ClientError> {
        let outer = Session::new(&ClientOptions { relay: None, recovery: None, ..options.clone() })?;
        let place = prepare(&outer, &relay).await?;
        let beating = CancellationToken::new();
        let relay = Arc::new(Self {
            outer,
            options: relay,
            place,
            fetched: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            _beating: beating.clone().drop_guard(),
        });
        relay.serve().await?;
        tokio::spawn(beat(Arc::downgrade(&relay), beating));
        Ok(relay)
    }

    /// Ends our server in the sandbox, with all that it has started. Our program stays for the next session.
    ///
    /// # Errors
    ///
    /// The `agent-server` does not answer, or the directory cannot be removed.
    pub async fn end(&self) -> Result<(), ClientError> {
        let Place { directory, log, .. } = &self.place;
        let command = format!("rm -rf {} {}", quoted(directory), quoted(log));
        run(&self.outer, &command, STEP).await?.success(&self.outer, "end the tools").map(drop)
    }

    /// Starts our server, unless it serves, and waits until it answers.
    async fn serve(&self) -> Result<(), ClientError> {
        let Place { program, directory, log, .. } = &self.place;
        let plugins = self.options.plugins.iter().map(|name| format!(" --plugin {}", quoted(name)));
        let call = random_id(self.outer.base().as_str())?;
        let command = filled(
            SERVE,
            &[
                ("@PROGRAM@", &quoted(program)),
                ("@DIRECTORY@", &quoted(directory)),
                ("@WORKSPACE@", &quoted(&self.options.workspace)),
                ("@IDLE@", &IDLE_STOP.as_secs().to_string()),
                ("@PLUGINS@", &plugins.collect::<String>()),
                ("@LOG@", &quoted(log)),
                ("@CALL@", &call),
                ("@WAIT@", &START.to_string()),
            ],
        );
        let limit = Duration::from_secs(START) + MARGIN;
        run(&self.outer, &command, limit).await?.success(&self.outer, "start the tools")?;
        self.forget(call);
        Ok(())
    }

    /// Sends a request one time. The answer has a status of success; its body is still to be read.
    async fn send(&self, call: &Call<'_>) -> Result<Response, ClientError> {
        let url = self.outer.url(call.path)?;
        if !CALLS.contains(&call.path) {
            let body = json!({"detail": "Not Found"});
            return Err(status_error(call, url, StatusCode::NOT_FOUND, None, &body).into());
        }
        let name = random_id(url.as_str())?;
        let request = format!("{}/{name}.request", self.place.directory);
        let content_type = match &call.payload {
            Payload::Empty => None,
            Payload::Json(body) => {
                let (body, length) = (body.clone(), body.len() as u64);
                let pieces = move || stream::once(std::future::ready(Ok(body.clone()))).boxed();
                upload(&self.outer, self.place.paths, &request, Some(length), Arc::new(pieces), call.limit).await?;
                Some("application/json".to_owned())
            }
            Payload::Stream { content_type, length, make } => {
                // The body tells of its own progress, and that of the upload tells the rest.
                let body = Mutex::new(Some(make(tokio::sync::watch::channel(tokio::time::Instant::now()).0)));
                let pieces = move || {
                    let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
                    pieces(body.unwrap_or_default())
                };
                upload(&self.outer, self.place.paths, &request, *length, Arc::new(pieces), call.limit).await?;
                Some(content_type.clone())
            }
        };
        let ran = run(&self.outer, &self.command(&name, call, content_type.as_deref())?, limit_of(call)).await?;
        if ran.exit_code == Some(NO_SERVER) {
            return Err(self.started_anew().await);
        }
        if ran.exit_code == Some(-1) {
            return Err(ClientError::Silent { url: url.to_string(), limit: call.limit.unwrap_or(NO_LIMIT) });
        }
        let status = ran.success(&self.outer, "ask the tools")?;
        let status = status.trim().parse().map_err(|_| self.outer.bad_answer(call.path, "its status is no number"))?;
        let file = format!("{}/{name}.answer", self.place.directory);
        let mut answer = download(&self.outer, self.place.paths, &file, call.limit).await?;
        self.forget(name);
        if StatusCode::is_success(&status) {
            return Ok(answer);
        }
        let body = match read(&mut answer, call.limit, ERROR_BODY).await {
            Ok(body) => serde_json::from_slice(&body).unwrap_or(Value::Null),
            Err(ClientError::TooLarge { .. }) => Value::Null,
            Err(error) => return Err(error),
        };
        Err(status_error(call, url, status, None, &body).into())
    }

    /// The command that asks our server.
    fn command(&self, name: &str, call: &Call<'_>, content_type: Option<&str>) -> Result<String, ClientError> {
        let Place { program, directory, .. } = &self.place;
        let mut url = self.outer.url(call.path)?;
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let path = url.query().map_or_else(|| call.path.to_owned(), |query| format!("{}?{query}", call.path));
        let mut command = format!("{} relayed-call --directory {} --name {name}", quoted(program), quoted(directory));
        for fetched in std::mem::take(&mut *self.fetched.lock().unwrap_or_else(PoisonError::into_inner)) {
            command.extend([" --fetched ", &fetched]);
        }
        if let Some(content_type) = content_type {
            command.extend([" --content-type ", &quoted(content_type)]);
        }
        command.extend([" ", call.method.as_str(), " ", &quoted(&path)]);
        Ok(command)
    }

    /// The answer of this call may go, with the next call.
    fn forget(&self, name: String) {
        /// More are not kept in mind; the server removes old ones by itself.
        const MOST: usize = 64;
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.len() < MOST {
            fetched.push(name);
        }
    }

    /// Starts the tools again that have ended, and says what that means.
    async fn started_anew(&self) -> ClientError {
        let _alone = self.starting.lock().await;
        let again = async {
            prepare(&self.outer, &self.options).await?;
            self.serve().await
        };
        if let Err(error) = again.await {
            return error;
        }
        let reason = "they had ended; they were started again, without the state of their shell".to_owned();
        ClientError::Sandbox { url: self.outer.base().to_string(), what: "ask the tools".to_owned(), reason }
    }
}

impl Carry for Relay {
    fn carry<'a>(&'a self, call: &'a Call<'_>) -> BoxFuture<'a, Result<Response, ClientError>> {
        Box::pin(self.send(call))
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Relay").field("server", &self.outer.base().as_str()).finish_non_exhaustive()
    }
}

/// Keeps our server from ending while somebody has a connection to it.
async fn beat(relay: Weak<Relay>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(BEAT) => {}
        }
        let Some(relay) = relay.upgrade() else { return };
        if let Err(error) = relay.send(&Call::get("alive", STEP)).await {
            tracing::debug!(%error, "the tools of the sandbox do not answer");
        }
    }
}

/// Makes our directories and puts our program there.
async fn prepare(outer: &Session, options: &RelayOptions) -> Result<Place, ClientError> {
    // The name of a session can be anything, and that of a directory cannot.
    if options.session.len() > LONGEST_SESSION {
        let reason = format!("the name of the session has more than {LONGEST_SESSION} bytes");
        return Err(ClientError::Request { url: outer.base().to_string(), reason });
    }
    let session = format!("s-{}", gloveport_ids::hex(options.session.as_bytes()));
    let command = filled(PREPARE, &[("@NAME@", &options.name), ("@SESSION@", &session)]);
    let told = run(outer, &command, STEP).await?.success(outer, "make a directory for the tools")?;
    let mut lines = told.lines();
    let (Some(root), Some(there), Some(system)) = (lines.next(), lines.next(), lines.next()) else {
        return Err(outer.bad_answer("api/bash/execute_bash_command", "it does not run commands as it should"));
    };
    let paths = Paths::of(outer, root).await?;
    let place = Place {
        paths,
        program: format!("{root}/bin/{}", options.name),
        directory: format!("{root}/{session}"),
        log: format!("{root}/{session}.log"),
    };
    if there == "there" {
        return Ok(place);
    }
    if system != "Linux x86_64" && system != format!("Linux {}", std::env::consts::ARCH) {
        let reason = format!("the sandbox is `{system}`, for which there is no program here");
        return Err(ClientError::Sandbox { url: outer.base().to_string(), what: "bring the tools".to_owned(), reason });
    }
    let upload_path = format!("{}.{}", place.program, random_id(outer.base().as_str())?);
    let source = options.program.clone();
    let length = tokio::fs::metadata(&source).await.map(|meta| meta.len());
    let length = length.map_err(|error| ClientError::File { action: "read", path: source.clone(), source: error })?;
    let pieces = move || file_pieces(source.clone()).boxed();
    upload(outer, paths, &upload_path, Some(length), Arc::new(pieces), Some(UPLOAD)).await?;
    let command = filled(PLACE, &[("@UPLOAD@", &quoted(&upload_path)), ("@PROGRAM@", &quoted(&place.program))]);
    run(outer, &command, STEP).await?.success(outer, "bring the tools")?;
    Ok(place)
}

/// Runs a command to its end.
async fn run(outer: &Session, command: &str, limit: Duration) -> Result<Ran, ClientError> {
    let body = json!({"command": command, "timeout": limit.as_secs().max(1)});
    let call = Call::post("api/bash/execute_bash_command", &body, Some(limit + MARGIN))?;
    outer.once_json(&call).await
}

/// Stores a content in a file of the sandbox.
async fn upload(
    outer: &Session,
    paths: Paths,
    file: &str,
    length: Option<u64>,
    pieces: Arc<dyn Fn() -> Pieces + Send + Sync>,
    limit: Option<Duration>,
) -> Result<(), ClientError> {
    let form = Form::new("upload", &random_id(outer.base().as_str())?);
    let (path, query) = paths.of_request("api/file/upload", file);
    let call = Call {
        method: Method::POST,
        query,
        payload: Payload::Stream {
            content_type: form.content_type(),
            length: length.map(|length| form.around(length)),
            make: Box::new(move |progress| form.body(pieces(), progress)),
        },
        limit,
        ..Call::get(&path, Duration::ZERO)
    };
    outer.once(&call).await.map(drop)
}

/// The content of a file of the sandbox, still to be read.
async fn download(outer: &Session, paths: Paths, file: &str, limit: Option<Duration>) -> Result<Response, ClientError> {
    let (path, query) = paths.of_request("api/file/download", file);
    outer.send(&Call { query, limit, ..Call::get(&path, Duration::ZERO) }).await
}

/// A body in pieces.
fn pieces(body: Body) -> Pieces {
    let data = body.into_data_stream();
    data.map(|piece: Result<Bytes, _>| piece.map_err(std::io::Error::other)).boxed()
}

/// How long the command of a call may take.
fn limit_of(call: &Call<'_>) -> Duration {
    call.limit.map_or(NO_LIMIT, |limit| limit + MARGIN)
}

/// A text with these words replaced, one after the other.
fn filled(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

/// One word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_whatever_is_in_it() {
        assert_eq!(quoted("a b'$(x)"), r"'a b'\''$(x)'");
    }

    #[test]
    fn older_servers_have_the_path_in_the_url() {
        let (path, query) = Paths::InUrl.of_request("api/file/upload", "/tmp/a b?#\u{e9}");
        assert_eq!((path.as_str(), query.len()), ("api/file/upload//tmp/a%20b%3F%23%C3%A9", 0));
        let (path, query) = Paths::InQuery.of_request("api/file/upload", "/tmp/a b");
        assert_eq!((path.as_str(), query), ("api/file/upload", vec![("path", "/tmp/a b".to_owned())]));
    }

    #[test]
    fn what_a_command_says_last_is_the_reason_of_its_failure() {
        let session = Session::new(&ClientOptions::new("http://127.0.0.1:1")).unwrap();
        let ran = |exit_code, stdout: &str, stderr: &str| Ran {
            exit_code,
            stdout: Some(stdout.to_owned()),
            stderr: Some(stderr.to_owned()),
        };
        assert_eq!(ran(Some(0), "out", "warning").success(&session, "x").unwrap(), "out");
        let reason = |ran: Ran| ran.success(&session, "bring the tools").unwrap_err().to_string();
        let told = reason(ran(Some(126), "", "first\nsh: 1: not found\n"));
        assert!(told.contains("bring the tools") && told.ends_with("sh: 1: not found"), "{told}");
        assert!(reason(ran(Some(1), "", " \n")).ends_with("exit code 1"));
        assert!(reason(ran(None, "", "")).ends_with("it did not end"));
    }
}
