//! Where the files are: on this machine, or in the sandbox of a server.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError, PutOptions};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, FileReadSource, Observation, ObservationEvent};

use super::{arguments::ServerArgs, copy::zipped, words};
use crate::{
    approve,
    exit::INTERRUPTED,
    here, key_file,
    operate::Done,
    output::{print, print_json, print_painted},
    visible,
};

/// What an editor's message begins with when it failed.
const EDITOR_ERROR: &str = "ERROR:\n";

/// The owner of the files.
pub(crate) enum Place {
    /// This machine, from this directory on.
    Here(here::Files),
    /// The sandbox behind a server.
    There(Box<ActionExecutionClient>),
}

impl Place {
    pub(crate) fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        let Some(url) = &server.url else {
            return here::Files::new().map(Self::Here);
        };
        let options = key_file::options(url, server.key.as_deref(), server.key_file.as_deref())?;
        Ok(Self::There(Box::new(ActionExecutionClient::new(&options)?)))
    }

    pub(crate) const fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// The path as an action carries it. A colon in front, which `cp` needs, is not a part of it. A relative path begins
    /// in the directory that the tools of the server start in.
    pub(crate) async fn absolute(&self, path: &str) -> anyhow::Result<String> {
        let path = path.strip_prefix(':').unwrap_or(path);
        match self {
            Self::Here(_) => {
                let absolute =
                    std::path::absolute(path).with_context(|| format!("`{path}` cannot be used as a path"))?;
                absolute.into_os_string().into_string().map_err(|path| {
                    anyhow::anyhow!("{} is not UTF-8, which actions cannot carry", path.to_string_lossy())
                })
            }
            Self::There(client) if !path.starts_with('/') => match client.files().stat(".", false).await {
                Ok(start) => Ok(format!("{}/{path}", start.path.trim_end_matches(['/', '.']))),
                Err(error) if lacks_native_files(&error) => Ok(path.to_owned()),
                Err(error) => Err(error.into()),
            },
            Self::There(_) => Ok(path.to_owned()),
        }
    }

    /// Executes an action on files.
    pub(super) async fn execute(&self, action: Action) -> anyhow::Result<Observation> {
        match self {
            Self::Here(files) => files.execute(action).await,
            Self::There(client) => Ok(client.execute(&ActionEvent::from(action)).await?),
        }
    }

    /// Writes a file whole; its directory is made if it is missing.
    pub(super) async fn store(&self, path: &str, content: Vec<u8>) -> anyhow::Result<()> {
        match self {
            Self::Here(_) => here::Files::store(path, &content),
            Self::There(client) => {
                let options = PutOptions { parents: true, ..PutOptions::default() };
                match client.files().write(path, content.clone(), &options).await {
                    Err(error) if lacks_native_files(&error) => {
                        let mut file = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
                        file.write_all(&content).context("cannot write a temporary file")?;
                        zipped::upload_file(client, file.path(), Path::new(path)).await
                    }
                    other => other.map(drop).map_err(Into::into),
                }
            }
        }
    }
}

/// A directory that a command is to begin in: a relative one is meant from where the tools of the server start.
pub(crate) async fn directory(client: &ActionExecutionClient, path: PathBuf) -> anyhow::Result<PathBuf> {
    // Of Linux, whatever this machine is.
    if path.has_root() {
        return Ok(with_slashes(path));
    }
    match client.files().stat(".", false).await {
        Ok(start) => Ok(with_slashes(Path::new(&start.path).join(path))),
        Err(error) if lacks_native_files(&error) => Ok(path),
        Err(error) => Err(error.into()),
    }
}

/// A path of a sandbox, which may be joined of parts, as it is called there: Windows joins with backslashes.
pub(super) fn with_slashes(path: PathBuf) -> PathBuf {
    if std::path::MAIN_SEPARATOR == '/' { path } else { path.to_string_lossy().replace('\\', "/").into() }
}

/// Whether the server does not know the native file API, as that of OpenHands.
pub(super) fn lacks_native_files(error: &ClientError) -> bool {
    match error {
        ClientError::Status(error) => error.is_unknown_call(),
        _ => false,
    }
}

/// What came of an action, for people and for programs.
pub(crate) struct Shown(pub(super) Done);

impl Shown {
    /// The whole observation; the exit code tells whether it succeeded.
    pub(super) fn print_json(self) -> anyhow::Result<ExitCode> {
        let event = match self.done(true)? {
            Ok(event) => event,
            Err(code) => return Ok(code),
        };
        let code = if failure(&event.observation).is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        print_json(&event.to_value())?;
        Ok(code)
    }

    /// The text that an agent gets to read.
    pub(super) fn print_content(self) -> anyhow::Result<ExitCode> {
        self.print(|observation| {
            let (content, is_view) = match observation {
                Observation::Read(read) => (read.content, read.impl_source == FileReadSource::OhAci),
                Observation::Edit(edit) => (edit.content, true),
                _ => (String::new(), false),
            };
            print(&content)?;
            // The list of a directory has no end of line.
            if is_view && !content.is_empty() && !content.ends_with('\n') {
                print("\n")?;
            }
            Ok(())
        })
    }

    /// The change as a diff.
    pub(super) fn print_change(self, with_colours: bool) -> anyhow::Result<ExitCode> {
        self.print(|observation| {
            let Observation::Edit(edit) = observation else { anyhow::bail!("the server did not answer with an edit") };
            match edit.diff.filter(|diff| !diff.is_empty()) {
                Some(diff) if with_colours => print_painted(&(coloured(&visible::lines(&diff)) + "\n")),
                Some(diff) => print(&(diff + "\n")),
                None => print(&edit.content),
            }
        })
    }

    /// Nothing to show but a failure.
    pub(super) fn succeeded(self) -> anyhow::Result<ExitCode> {
        self.print(|_| Ok(()))
    }

    /// Prints what succeeded.
    fn print(self, print: impl FnOnce(Observation) -> anyhow::Result<()>) -> anyhow::Result<ExitCode> {
        let observation = match self.done(false)? {
            Ok(event) => event.observation,
            Err(code) => return Ok(code),
        };
        if let Some(failure) = failure(&observation) {
            anyhow::bail!(words::for_people(&failure));
        }
        print(observation)?;
        Ok(ExitCode::SUCCESS)
    }

    /// What came of it. If it was not done, that is told, and our exit code is given.
    fn done(self, json: bool) -> anyhow::Result<Result<Box<ObservationEvent>, ExitCode>> {
        Ok(match self.0 {
            Done::Came(event) => Ok(event),
            Done::Refused(refused) => Err(approve::refused(&refused, json)?),
            Done::Interrupted => Err(ExitCode::from(INTERRUPTED)),
        })
    }
}

fn failure(observation: &Observation) -> Option<String> {
    match observation {
        Observation::Error(error) if error.content == "ERROR_BINARY_FILE" => {
            Some("it is a binary file, which `cp` copies".to_owned())
        }
        Observation::Error(error) => Some(error.content.clone()),
        Observation::Read(read) => read.content.strip_prefix(EDITOR_ERROR).map(str::to_owned),
        Observation::Edit(edit) => edit.content.strip_prefix(EDITOR_ERROR).map(str::to_owned),
        _ => None,
    }
}

fn coloured(diff: &str) -> String {
    let line = |line: &str| {
        let colour = match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => "1",
            Some(b'@') => "36",
            Some(b'-') => "31",
            Some(b'+') => "32",
            _ => return line.to_owned(),
        };
        format!("\x1b[{colour}m{line}\x1b[0m")
    };
    diff.split('\n').map(line).collect::<Vec<_>>().join("\n")
}
