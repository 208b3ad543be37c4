//! Calls of the daemon in a sandbox (`hosted-apis` 3.3): files and processes.

use std::time::Duration;

use bytes::Bytes;
use gloveport_hosted::service::{Again, Answer, Request, Service};
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::{control::encoded, wire::Executed};

/// How long an upload of our program may take.
const UPLOAD: Duration = Duration::from_mins(10);
/// How long a small program in a sandbox may take.
const RUN: Duration = Duration::from_mins(1);
/// What is between the parts of a form. It is in no program: a NUL is on either side of it there, at best.
const BOUNDARY: &str = "gloveport-4f1d0c9a7e6b";

/// Why the daemon did not do something.
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

/// The daemon of a sandbox.
pub(crate) struct Toolbox<'a> {
    pub(crate) service: &'a Service,
    /// URL before the path.
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) limit: Duration,
}

impl Toolbox<'_> {
    fn request(&self, method: Method, path: &str, kind: &'static str, body: impl Into<Bytes>) -> Request {
        let mut headers = self.headers.clone();
        headers.insert("content-type", HeaderValue::from_static(kind));
        let (url, limit) = (format!("{}{path}", self.url), self.limit);
        Request { method, url, headers, body: body.into(), again: Again::Always, limit }
    }

    fn post<B: Serialize>(&self, action: &str, path: &str, body: &B) -> Result<Request, Fault> {
        let body = serde_json::to_vec(body).map_err(|error| self.service.failed(action, error))?;
        Ok(self.request(Method::POST, path, "application/json", body))
    }

    /// What a refusal means. One that is stopped is told as a wrong request or a bad gateway, and one that is gone as not found.
    fn refused(&self, action: &str, answer: &Answer) -> Fault {
        let told = gloveport_hosted::fault::message(&answer.body);
        match answer.status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::BAD_GATEWAY => {
                Fault::Gone(format!("{told} (status {})", answer.status))
            }
            status => self.service.refused(action, status, &answer.body).into(),
        }
    }

    /// Runs a script to its end, and gives its exit code and what it said.
    pub(crate) async fn run(&self, action: &str, script: &str, arguments: &[&str]) -> Result<(i64, String), Fault> {
        let words = ["sh", "-c", script, "gloveport"].into_iter().chain(arguments.iter().copied());
        let command = words.map(quoted).collect::<Vec<_>>().join(" ");
        let body = json!({"command": command, "cwd": "/", "timeout": RUN.as_secs()});
        let mut request = self.post(action, "/process/execute", &body)?;
        request.limit = self.limit + RUN;
        let answer = self.service.ask(action, &request).await?;
        if !answer.status.is_success() {
            return Err(self.refused(action, &answer));
        }
        let Executed { exit_code, result } = self.service.read(action, &answer)?;
        Ok((exit_code, result.trim().to_owned()))
    }

    /// Writes a file; missing directories are made.
    pub(crate) async fn upload(&self, path: &str, content: Bytes) -> Result<(), Fault> {
        let action = "upload a file to a sandbox";
        let call = format!("/files/upload-v2?path={}", encoded(path));
        let mut request = self.request(Method::POST, &call, "application/octet-stream", content.clone());
        request.limit = UPLOAD;
        let mut answer = self.service.ask(action, &request).await?;
        // Older daemons take a form alone.
        let is_older = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::UNSUPPORTED_MEDIA_TYPE];
        if is_older.contains(&answer.status) {
            let kind = "multipart/form-data; boundary=gloveport-4f1d0c9a7e6b";
            let mut request = self.request(Method::POST, "/files/bulk-upload", kind, form(path, &content));
            request.limit = UPLOAD;
            answer = self.service.ask(action, &request).await?;
        }
        if answer.status.is_success() { Ok(()) } else { Err(self.refused(action, &answer)) }
    }

    /// Lets nobody but its owner read a file.
    pub(crate) async fn hide(&self, path: &str) -> Result<(), Fault> {
        let action = "hide a file of a sandbox";
        let call = format!("/files/permissions?path={}&mode=0600", encoded(path));
        let request = self.request(Method::POST, &call, "application/json", Bytes::new());
        let answer = self.service.ask(action, &request).await?;
        if answer.status.is_success() { Ok(()) } else { Err(self.refused(action, &answer)) }
    }

    /// Makes a session of processes. Whether it is new.
    pub(crate) async fn session(&self, name: &str) -> Result<bool, Fault> {
        let action = "make a session of processes in a sandbox";
        let request = self.post(action, "/process/session", &json!({"sessionId": name}))?;
        let answer = self.service.ask(action, &request).await?;
        match answer.status {
            StatusCode::CONFLICT => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// Ends a session of processes.
    pub(crate) async fn end_session(&self, name: &str) -> Result<(), Fault> {
        let action = "end a session of processes in a sandbox";
        let request =
            self.request(Method::DELETE, &format!("/process/session/{name}"), "application/json", Bytes::new());
        let answer = self.service.ask(action, &request).await?;
        let is_gone = answer.status.is_success() || answer.status == StatusCode::NOT_FOUND;
        if is_gone { Ok(()) } else { Err(self.refused(action, &answer)) }
    }

    /// Starts a command in a session, and does not wait for its end.
    pub(crate) async fn start(&self, session: &str, command: &str) -> Result<(), Fault> {
        let action = "start the server of a sandbox";
        let body = json!({"command": command, "runAsync": true});
        let request = self.post(action, &format!("/process/session/{session}/exec"), &body)?;
        let answer = self.service.ask(action, &request).await?;
        if answer.status.is_success() { Ok(()) } else { Err(self.refused(action, &answer)) }
    }
}

/// A word of a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-=:,@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A file as a form, as the service's own SDK sends it.
fn form(path: &str, content: &[u8]) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"files[0].path\"\r\n\r\n{path}\r\n\
         --{BOUNDARY}\r\ncontent-disposition: form-data; name=\"files[0].file\"; filename=\"{name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), content, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        for (word, expected) in
            [("a/b-c", "a/b-c"), ("", "''"), ("a b", "'a b'"), ("it's $x", r"'it'\''s $x'"), ("~", "'~'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_form_has_the_path_and_then_the_file() {
        let form = form("/opt/g/program.new", b"\0\xff");
        let text = String::from_utf8_lossy(&form);
        let (path, file) = (
            text.find("files[0].path\"\r\n\r\n/opt/g/program.new\r\n"),
            text.find("files[0].file\"; filename=\"program.new\""),
        );
        assert!(path.is_some() && path < file, "{text}");
        assert!(form.windows(4).any(|bytes| bytes == b"\0\xff\r\n") && text.ends_with(&format!("--{BOUNDARY}--\r\n")));
    }
}
