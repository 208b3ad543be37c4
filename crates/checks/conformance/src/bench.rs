//! The place that a check works in: a directory of its own in the sandbox.

use std::{io::Write as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    ConformanceError, Server, Wire,
    check::{Check, Problem, Step},
    ground,
    server::{Answer, Request, shown},
};

/// The directory of all checks of one run.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    pub(crate) server: Server,
    /// Absolute, in the sandbox.
    pub(crate) base: String,
    /// The directory that the server was started with.
    pub(crate) workspace: String,
    /// A name that nothing else has.
    pub(crate) name: String,
    /// Whether files can be uploaded; else they are written by commands.
    uploads: bool,
    /// Wait after each command.
    pub(crate) pause: Duration,
}

/// The directory of one check.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) scratch: Scratch,
    /// Absolute, in the sandbox, and there.
    pub(crate) dir: String,
}

impl Scratch {
    pub(crate) async fn make(server: &Server, pause: Duration) -> Result<Self, ConformanceError> {
        let name = format!("gloveport-conformance-{}", random_name()?);
        let base = format!("/tmp/{name}");
        let workspace = ground::begin(server, &base, pause).await?;
        let probe = server.send(&ground::upload(server.wire(), &base, "probe", b"probe")).await?;
        Ok(Self { server: server.clone(), base, workspace, name, uploads: probe.status == 200, pause })
    }

    /// Removes everything.
    pub(crate) async fn remove(&self) -> Result<(), ConformanceError> {
        // What a failed check left running must not hold this up.
        let command = format!("chmod -R u+rwx {0} ; rm -rf {0} {1}/{2}*", self.base, self.workspace, self.name);
        ground::clear(&self.server, &command).await
    }

    /// A new directory of a check, or of another attempt at it.
    pub(crate) async fn bench(&self, check: &Check, attempt: u32) -> Result<Bench, ConformanceError> {
        let slug: String = check.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let bench = Bench { scratch: self.clone(), dir: format!("{}/{slug}-{attempt}", self.base) };
        bench.put("", ".keep", b"").await?;
        Ok(bench)
    }
}

/// Twelve hexadecimal digits.
pub(crate) fn random_name() -> Result<String, ConformanceError> {
    gloveport_ids::random::<6>().map_err(|error| ConformanceError::Random(error.to_string()))
}

impl Bench {
    pub(crate) const fn server(&self) -> &Server {
        &self.scratch.server
    }

    /// The name of a session that no other check has.
    pub(crate) fn session(&self) -> String {
        let slug = self.dir.rsplit('/').next().unwrap_or_default();
        format!("{}-{slug}", self.scratch.name)
    }

    /// Ends the sessions of the check, where the protocol has any.
    pub(crate) async fn leave(&self) -> Result<(), ConformanceError> {
        let session = self.session();
        ground::leave(self.server(), &[format!("{session}-other"), session]).await
    }

    /// Puts the names of directories in the place of `{dir}`, `{workspace}` and `{name}`, and that of the check's session
    /// in the place of `{session}`.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{dir}", &self.dir)
            .replace("{workspace}", &self.scratch.workspace)
            .replace("{name}", &self.scratch.name)
            .replace("{session}", &self.session())
    }

    /// The same in all texts of a value.
    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(elements) => elements.iter().map(|element| self.fill_value(element)).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(key, member)| (key.clone(), self.fill_value(member))).collect())
            }
            other => other.clone(),
        }
    }

    /// Stores a file below the directory; missing directories are made.
    pub(crate) async fn put(&self, directory: &str, name: &str, content: &[u8]) -> Result<(), ConformanceError> {
        let directory = format!("{}/{directory}", self.dir);
        let directory = directory.trim_end_matches('/');
        let wire = self.server().wire();
        // A name with this ending would be unpacked.
        let is_unpacked = wire == Wire::V0 && name.to_ascii_lowercase().ends_with(".zip");
        if self.scratch.uploads && !is_unpacked {
            let answer = self.server().send(&ground::upload(wire, directory, name, content)).await?;
            if answer.status == 200 {
                return Ok(());
            }
            return Err(self.server().no_scratch(format!("{name} cannot be uploaded: {}", answer.value())));
        }
        let encoded = STANDARD.encode(content);
        let command = format!("mkdir -p '{directory}' && printf %s '{encoded}' | base64 -d > '{directory}/{name}'");
        let (exit, output) = ground::shell(self.server(), &command).await?;
        Server::rest(self.scratch.pause).await;
        if exit == 0 { Ok(()) } else { Err(self.server().no_scratch(format!("{name} cannot be written: {output}"))) }
    }

    /// Runs a command that must succeed and gives what it prints.
    pub(crate) async fn shell(&self, command: &str) -> Result<String, Problem> {
        let command = self.fill(command);
        let (exit, output) = ground::shell(self.server(), &command).await?;
        Server::rest(self.scratch.pause).await;
        Problem::unless(exit == 0, &command, "exit code 0", &format!("exit code {exit}: {output}"))?;
        Ok(output)
    }

    /// Sends a request with the names of directories filled in.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, Problem> {
        Ok(self.server().send(&self.filled(request)).await?)
    }

    /// A request with the names of directories filled in.
    pub(crate) fn filled(&self, request: &Request) -> Request {
        let mut request = request.clone();
        for (_, value) in &mut request.query {
            *value = self.fill(value);
        }
        if let Ok(text) = std::str::from_utf8(&request.body) {
            request.body = self.fill(text).into();
        }
        request
    }

    /// Does the steps of a check. The result is the reason of another behaviour that the specification allows, where
    /// that one was seen.
    pub(crate) async fn perform(&self, check: &Check) -> Result<Option<&'static str>, Problem> {
        let mut seen = None;
        for step in &check.steps {
            match step {
                Step::File(path, content) => {
                    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
                    self.put(directory, name, content).await?;
                }
                Step::Prepare(command) => {
                    self.shell(command).await?;
                }
                Step::Act(action, expect) => {
                    let action = self.fill_value(action);
                    let answer = self.server().execute(&action).await?;
                    seen = expect.judge(&action_text(&action), &answer, self)?.or(seen);
                    if action["action"] == "run" {
                        Server::rest(self.scratch.pause).await;
                    }
                }
                Step::Send(request, expect) => {
                    let answer = self.send(request).await?;
                    let step = format!("{} {}", request.method, request.path);
                    seen = expect.judge(&step, &answer, self)?.or(seen);
                }
                Step::Code(code) => code(self).await?,
            }
        }
        Ok(seen)
    }
}

fn action_text(action: &Value) -> String {
    let mut text = format!("{} ", action["action"].as_str().unwrap_or("action"));
    text.push_str(&action.get("args").map(Value::to_string).unwrap_or_default());
    shown(&text).chars().take(300).collect()
}

/// A zip file with these members, stored as they are.
pub(crate) fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in members {
        // Writing into memory fails only with names of more than 65,535 bytes.
        let _written = writer.start_file(*name, options).is_ok() && writer.write_all(content).is_ok();
    }
    writer.finish().map(std::io::Cursor::into_inner).unwrap_or_default()
}

/// The members of a zip file, sorted by name.
pub(crate) fn members_of(zip: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    /// Most bytes of all members together.
    const MOST: u64 = 256 * 1024 * 1024;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(zip)).map_err(|error| error.to_string())?;
    let mut members = Vec::new();
    let mut left = MOST;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| error.to_string())?;
        let mut content = Vec::new();
        let read = std::io::copy(&mut std::io::Read::take(&mut member, left), &mut content);
        left -= read.map_err(|error| error.to_string())?;
        let name = member.name().map_err(|error| error.to_string())?;
        members.push((name.into_owned(), content));
    }
    members.sort();
    Ok(members)
}
