//! Calls of the agent that runs in every sandbox (`hosted-apis` 2.3): files and processes.

use std::{collections::BTreeMap, fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use form_urlencoded::byte_serialize;
use gloveport_client::causes;
use gloveport_hosted::{
    fault,
    service::{Again, Answer, Request, Service},
};
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::Response;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    connect::{Decoder, Part, envelope},
    names::TAG,
};

/// How long an upload of our program may take.
const UPLOAD: Duration = Duration::from_mins(10);
/// How long a small program in a sandbox may take.
const RUN: Duration = Duration::from_mins(1);
/// Most bytes that such a program may say.
const SAID: usize = 64 * 1024;
/// How often the agent says that a stream lives, in seconds, and how long one is silent at most.
const KEEPALIVE: (&str, Duration) = ("30", Duration::from_mins(2));

/// Why the agent did not do something.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no such sandbox any more, or it rests.
    Gone(String),
    /// Anything else.
    Other(ProviderError),
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        Self::Other(error)
    }
}

impl Fault {
    /// The error of a call about a sandbox that must be there.
    pub(crate) fn of(self, id: &SandboxId) -> ProviderError {
        match self {
            Self::Gone(_) => ProviderError::NotFound(id.clone()),
            Self::Other(error) => error,
        }
    }
}

/// A program that is to run in a sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct Program<'a> {
    pub(crate) cmd: &'a str,
    pub(crate) args: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) envs: BTreeMap<String, String>,
    pub(crate) cwd: &'a str,
}

impl Program<'_> {
    /// A script with its arguments, `$1` first.
    pub(crate) fn script(script: &str, arguments: &[&str]) -> Self {
        let words = ["-c", script, "gloveport"].into_iter().chain(arguments.iter().copied());
        Self { cmd: "/bin/sh", args: words.map(str::to_owned).collect(), envs: BTreeMap::new(), cwd: "/" }
    }
}

/// A process of a sandbox.
#[derive(Debug, Deserialize)]
pub(crate) struct Process {
    #[serde(default)]
    pub(crate) tag: Option<String>,
    #[serde(default)]
    config: Config,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    envs: BTreeMap<String, String>,
}

impl Process {
    /// Whether it is our server, or what watches it.
    pub(crate) fn is_server(&self) -> bool {
        self.tag.as_deref() == Some(TAG)
    }

    /// A variable that it was started with, if the agent tells it.
    pub(crate) fn variable(&self, name: &str) -> Option<&String> {
        self.config.envs.get(name)
    }
}

/// What happens to a process.
#[derive(Debug)]
pub(crate) enum Event {
    /// It has written something.
    Said(Bytes),
    /// It has ended, with this code.
    Ended(i64),
}

/// The agent of a sandbox.
pub(crate) struct Agent<'a> {
    service: &'a Service,
    /// URL before the path.
    url: String,
    headers: HeaderMap,
    limit: Duration,
}

impl<'a> Agent<'a> {
    /// The agent at this URL, which asks for these headers.
    pub(crate) fn new(service: &'a Service, url: String, headers: HeaderMap, limit: Duration) -> Self {
        Self { service, url, headers, limit }
    }

    fn request(&self, method: Method, path: &str, kind: &'static str, body: impl Into<Bytes>) -> Request {
        let mut headers = self.headers.clone();
        headers.insert("content-type", HeaderValue::from_static(kind));
        let (url, limit) = (format!("{}{path}", self.url), self.limit);
        Request { method, url, headers, body: body.into(), again: Again::Always, limit }
    }

    /// A request to the process service, as this user.
    fn rpc(&self, method: &str, user: &str, kind: &'static str, body: Vec<u8>) -> Result<Request, Fault> {
        let mut request = self.request(Method::POST, &format!("/process.Process/{method}"), kind, body);
        let user = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:"))));
        let user = user.map_err(|error| self.service.failed("tell the user", error))?;
        request.headers.insert("authorization", user);
        request.headers.insert("connect-protocol-version", HeaderValue::from_static("1"));
        Ok(request)
    }

    /// What a refusal means. The proxy answers for a sandbox that is not there.
    fn refused(&self, action: &str, status: StatusCode, body: &[u8]) -> Fault {
        let told = fault::message(body);
        if status == StatusCode::BAD_GATEWAY && (told.is_empty() || told.contains("not found")) {
            return Fault::Gone(told);
        }
        let hint = format!("the agent of the sandbox: {told} (status {status})");
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.service.failed(action, hint).into(),
            _ => self.service.refused(action, status, body).into(),
        }
    }

    async fn unary<T: DeserializeOwned>(&self, action: &str, method: &str, body: &Value) -> Result<T, Fault> {
        let body = serde_json::to_vec(body).map_err(|error| self.service.failed(action, error))?;
        let request = self.rpc(method, "root", "application/json", body)?;
        let answer = self.service.ask(action, &request).await?;
        if !answer.status.is_success() {
            return Err(self.refused(action, answer.status, &answer.body));
        }
        Ok(self.service.read(action, &answer)?)
    }

    /// The processes that the agent has started and that still run.
    pub(crate) async fn processes(&self) -> Result<Vec<Process>, Fault> {
        #[derive(Deserialize)]
        struct Listed {
            #[serde(default)]
            processes: Vec<Process>,
        }
        let listed: Listed = self.unary("list the processes of a sandbox", "List", &json!({})).await?;
        Ok(listed.processes)
    }

    /// Writes to a process's standard input, and closes it.
    pub(crate) async fn tell(&self, pid: u32, text: &str) -> Result<(), Fault> {
        let process = json!({"pid": pid});
        let input = json!({"process": process, "input": {"stdin": STANDARD.encode(text)}});
        let action = "tell the server of a sandbox its secrets";
        let _: Value = self.unary(action, "SendInput", &input).await?;
        match self.unary::<Value>(action, "CloseStdin", &json!({"process": process})).await {
            // Older agents have no word for that; the server reads one line and no more.
            Err(Fault::Other(error)) if !error.is_temporary() => {
                tracing::debug!(%error, "the standard input of the server stays open");
                Ok(())
            }
            closed => closed.map(drop),
        }
    }

    /// Kills a process.
    pub(crate) async fn kill(&self, pid: u32) -> Result<(), Fault> {
        let body = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
        self.unary::<Value>("end a process of a sandbox", "SendSignal", &body).await.map(drop)
    }

    /// Starts a program as this user. It outlives what is returned, which tells what it says.
    pub(crate) async fn start(&self, action: &str, user: &str, start: Start<'_>) -> Result<Running, Fault> {
        let Start { program, tag, stdin } = start;
        let mut body = json!({"process": program, "stdin": stdin});
        if let (Some(tag), Some(members)) = (tag, body.as_object_mut()) {
            members.insert("tag".to_owned(), tag.into());
        }
        let body = serde_json::to_vec(&body).map_err(|error| self.service.failed(action, error))?;
        // Without a header for its time: that would be the time of the process.
        let mut request = self.rpc("Start", user, "application/connect+json", envelope(&body))?;
        request.headers.insert("keepalive-ping-interval", HeaderValue::from_static(KEEPALIVE.0));
        let answer = self.service.send(action, &request).await?;
        let status = answer.status();
        if !status.is_success() {
            let mut body = Vec::new();
            let mut rest = answer;
            while let Ok(Ok(Some(piece))) = timeout(self.limit, rest.chunk()).await {
                body.extend_from_slice(&piece);
                if body.len() > SAID {
                    break;
                }
            }
            return Err(self.refused(action, status, &body));
        }
        let (action, name) = (action.to_owned(), self.service.name());
        let mut running = Running { pid: 0, answer, decoder: Decoder::default(), action, name };
        let first = timeout(self.limit, running.message()).await;
        let late = || ProviderError::Timeout { action: running.action.clone(), limit: self.limit };
        match first.map_err(|_| late())?? {
            Some(Told { start: Some(Started { pid }), .. }) => {
                running.pid = pid;
                Ok(running)
            }
            _ => Err(self.service.failed(&running.action, "the agent did not say that the program has started").into()),
        }
    }

    /// Runs a script to its end as root, and gives its exit code and what it said.
    pub(crate) async fn run(&self, action: &str, script: &str, arguments: &[&str]) -> Result<(i64, String), Fault> {
        let program = Program::script(script, arguments);
        let mut running = self.start(action, "root", Start { program, tag: None, stdin: false }).await?;
        let reading = async {
            let mut said = Vec::new();
            loop {
                match running.event().await? {
                    Some(Event::Said(piece)) if said.len() + piece.len() <= SAID => said.extend_from_slice(&piece),
                    Some(Event::Said(_)) => {}
                    Some(Event::Ended(code)) => {
                        return Ok::<_, Fault>((code, String::from_utf8_lossy(&said).trim().to_owned()));
                    }
                    None => return Err(self.service.failed(action, "its end was not told").into()),
                }
            }
        };
        if let Ok(ended) = timeout(RUN, reading).await {
            return ended;
        }
        self.kill(running.pid).await?;
        Err(ProviderError::Timeout { action: action.to_owned(), limit: RUN }.into())
    }

    fn file(path: &str) -> String {
        format!("/files?username=root&path={}", byte_serialize(path.as_bytes()).collect::<String>())
    }

    /// Writes a file as root; missing directories are made.
    pub(crate) async fn upload(&self, path: &str, content: Bytes) -> Result<(), Fault> {
        let action = "upload a file to a sandbox";
        let mut request = self.request(Method::POST, &Self::file(path), "application/octet-stream", content.clone());
        request.limit = UPLOAD;
        let mut answer = self.service.ask(action, &request).await?;
        // Older agents take a form alone.
        if matches!(answer.status, StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE) {
            let kind = "multipart/form-data; boundary=gloveport-4f1d0c9a7e6b";
            let mut request = self.request(Method::POST, &Self::file(path), kind, form(path, &content));
            request.limit = UPLOAD;
            answer = self.service.ask(action, &request).await?;
        }
        if answer.status.is_success() { Ok(()) } else { Err(self.refused(action, answer.status, &answer.body)) }
    }

    /// Reads a small file as root, if there is one.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<String>, Fault> {
        let action = "read a file of a sandbox";
        let request = self.request(Method::GET, &Self::file(path), "application/octet-stream", Bytes::new());
        let Answer { status, body, .. } = self.service.ask(action, &request).await?;
        match status {
            status if status.is_success() => Ok(Some(String::from_utf8_lossy(&body).into_owned())),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(action, status, &body)),
        }
    }
}

/// A file as the one part of a form. Its boundary is in no program: a NUL is on either side of it there, at best.
fn form(path: &str, content: &[u8]) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let head = format!(
        "--gloveport-4f1d0c9a7e6b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n--gloveport-4f1d0c9a7e6b--\r\n"].concat()
}

/// What is started, and how.
pub(crate) struct Start<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) tag: Option<&'a str>,
    /// Its standard input can be written to.
    pub(crate) stdin: bool,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default)]
    event: Told,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    start: Option<Started>,
    data: Option<Data>,
    end: Option<End>,
}

#[derive(Debug, Deserialize)]
struct Started {
    pid: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    stdout: String,
    stderr: String,
}

/// The end of a process. What is 0 is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct End {
    exit_code: i64,
}

/// A process that was started, and what it says.
pub(crate) struct Running {
    pub(crate) pid: u32,
    answer: Response,
    decoder: Decoder,
    action: String,
    name: String,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Running {
    fn failed(&self, reason: impl fmt::Display) -> Fault {
        fault::failed(&self.name, &self.action, reason).into()
    }

    /// What is told next; none at the end of the stream.
    async fn message(&mut self) -> Result<Option<Told>, Fault> {
        loop {
            match self.decoder.part().map_err(|reason| self.failed(reason))? {
                Some(Part::Message(message)) => {
                    let read = serde_json::from_slice::<Message>(&message);
                    let read = read.map_err(|error| self.failed(format!("its event is not understood: {error}")))?;
                    return Ok(Some(read.event));
                }
                Some(Part::End(None)) => return Ok(None),
                Some(Part::End(Some(fault))) if fault.code == "unavailable" => return Err(Fault::Gone(fault.message)),
                Some(Part::End(Some(fault))) => {
                    return Err(self.failed(format!("{} ({})", fault.message, fault.code)));
                }
                None => {}
            }
            match timeout(KEEPALIVE.1, self.answer.chunk()).await {
                Ok(Ok(Some(piece))) => self.decoder.push(&piece),
                Ok(Ok(None)) => return Err(Fault::Gone("its stream has ended before its time".to_owned())),
                Ok(Err(error)) => return Err(Fault::Gone(causes(&error.without_url()))),
                Err(_) => return Err(self.failed(format!("it was silent for {} s", KEEPALIVE.1.as_secs()))),
            }
        }
    }

    /// What happens next; none at the end of the stream.
    pub(crate) async fn event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            match self.message().await? {
                Some(Told { data: Some(Data { stdout, stderr }), .. }) => {
                    let mut said = Vec::new();
                    for text in [stdout, stderr] {
                        let bytes = STANDARD.decode(text).map_err(|error| self.failed(error))?;
                        said.extend_from_slice(&bytes);
                    }
                    return Ok(Some(Event::Said(said.into())));
                }
                Some(Told { end: Some(End { exit_code }), .. }) => return Ok(Some(Event::Ended(exit_code))),
                // That it lives.
                Some(Told { .. }) => {}
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_the_file_between_its_boundaries() {
        let form = form("/opt/g/program.new", b"\0\xff");
        let text = String::from_utf8_lossy(&form);
        assert!(text.starts_with("--gloveport-") && text.contains("filename=\"program.new\"\r\n"), "{text}");
        assert!(form.windows(4).any(|bytes| bytes == b"\0\xff\r\n") && text.ends_with("--\r\n"), "{text}");
    }

    #[test]
    fn the_end_of_a_process_that_succeeded_has_no_code() {
        let message = r#"{"event":{"end":{"exited":true,"status":"exit status 0"}}}"#;
        let told: Message = serde_json::from_str(message).unwrap();
        assert_eq!(told.event.end.unwrap().exit_code, 0);
        let told: Message = serde_json::from_str(r#"{"event":{"keepalive":{}}}"#).unwrap();
        assert!(told.event.end.is_none() && told.event.data.is_none());
    }
}
