//! `gloveport ipython`: one cell on a server, with what it shows as it comes, and what every way to run one shares.

mod arguments;

use std::{
    fs,
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_client::{ActionExecutionClient, CellEvent, ClientError};
use gloveport_protocol::{
    Action, ActionEvent, Observation, ObservationEvent, RunIpythonAction,
    kernels::{CellOutcome, CellRequest, CellResult, DEFAULT_KERNEL},
};
use gloveport_runtime::CellOutput;
use serde_json::json;

pub(crate) use self::arguments::{CellArgs, EXIT_CODES, IpythonArgs};
use crate::{
    exit::{INTERRUPTED, TIMED_OUT},
    key_file,
    output::{print_bytes, print_json},
    run::{command_text, told},
    signals,
};

/// What a server calls it that it has no kernels.
const NO_NOTEBOOK: &str = "no_notebook";
/// How the text of a cell begins whose time was over, as actions tell it.
const ACTION_TIMED_OUT: &str = "[Execution timed out (";
/// Most text that is collected.
const MOST_TEXT: usize = 64 * 1024 * 1024;

/// Runs the cell on a server.
pub(crate) async fn on_server(arguments: IpythonArgs) -> anyhow::Result<ExitCode> {
    let (code, _) = command_text(&arguments.cell.code)?;
    let url = arguments.url.as_deref().unwrap_or_default();
    let client =
        ActionExecutionClient::new(&key_file::options(url, arguments.key.as_deref(), arguments.key_file.as_deref())?)?;
    let mut shown = Shown::new(arguments.cell.images, arguments.cell.json);
    let request = CellRequest { code, timeout: arguments.cell.timeout };
    follow(&client, &arguments.kernel, &request, &mut shown, None).await?.exit_code(shown)
}

/// How following a cell on a server ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It has ended. Of the result only how is of interest.
    Ended(CellResult),
    /// It was interrupted twice, and is left to itself.
    Left,
    /// It was executed as an action, for lack of a better way.
    ByAction(Box<Observation>),
}

impl Followed {
    /// Whether it did not end within the time limit.
    pub(crate) fn timed_out(&self) -> bool {
        match self {
            Self::Ended(result) => result.end == CellOutcome::TimedOut,
            Self::ByAction(observation) => observation.content().starts_with(ACTION_TIMED_OUT),
            Self::Left => false,
        }
    }

    /// Our exit code, and what is printed at last.
    pub(crate) fn exit_code(&self, shown: Shown) -> anyhow::Result<ExitCode> {
        match self {
            Self::Ended(result) => shown.end(result.end),
            Self::Left => Ok(ExitCode::from(INTERRUPTED)),
            Self::ByAction(_) if self.timed_out() => shown.end(CellOutcome::TimedOut),
            Self::ByAction(observation) => {
                let ran = matches!(**observation, Observation::RunIpython(_));
                anyhow::ensure!(ran, "the cell did not run: {}", observation.content());
                // Such a server does not tell whether it raised an exception.
                shown.end(CellOutcome::Completed)
            }
        }
    }
}

/// Runs a cell in a kernel of a server, and shows what comes of it. C-c interrupts the cell that runs, a second one leaves
/// it to itself.
pub(crate) async fn follow(
    client: &ActionExecutionClient,
    kernel: &str,
    request: &CellRequest,
    shown: &mut Shown,
    mut kept: Option<&mut CellOutput>,
) -> anyhow::Result<Followed> {
    let mut interrupts = signals::interrupts()?;
    let kernels = client.kernels();
    let started = tokio::select! {
        started = kernels.start(kernel, request) => started,
        () = interrupts.recv() => return Ok(Followed::Left),
    };
    let mut cell = match started {
        Ok(cell) => cell,
        Err(ClientError::Status(error)) if error.is_unknown_call() => {
            return tokio::select! {
                done = by_action(client, kernel, request, shown) => done.map(|observation| Followed::ByAction(Box::new(observation))),
                () = interrupts.recv() => Ok(Followed::Left),
            };
        }
        Err(ClientError::Status(error)) if error.native.as_ref().is_some_and(|native| native.code == NO_NOTEBOOK) => {
            anyhow::bail!("{}; start it with --plugin jupyter", error.reason().unwrap_or_default());
        }
        Err(error) => return Err(told(error, client.url())),
    };
    let mut interrupted = false;
    loop {
        let event = tokio::select! {
            event = cell.next() => event.map_err(|error| told(error, client.url()))?,
            () = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Followed::Left);
                }
                interrupt(client, kernel).await;
                continue;
            }
        };
        let written = match event.context("the cell did not end")? {
            CellEvent::Text(text) => {
                if let Some(kept) = &mut kept {
                    kept.text(&text);
                }
                shown.text(&text)
            }
            CellEvent::Image { media_type, base64 } => {
                if let Some(kept) = &mut kept {
                    kept.image(&media_type, &base64);
                }
                shown.image(&media_type, &base64)
            }
            CellEvent::Ended(result) => return Ok(Followed::Ended(result)),
        };
        if let Err(error) = written {
            // Nobody wants what it goes on to show.
            interrupt(client, kernel).await;
            return Err(error);
        }
    }
}

async fn interrupt(client: &ActionExecutionClient, kernel: &str) {
    // One that has ended meanwhile is told of by its own events.
    let _not_running_any_more = client.kernels().interrupt(kernel).await;
}

/// Runs a cell as an action: what it shows comes when it has ended.
async fn by_action(
    client: &ActionExecutionClient,
    kernel: &str,
    request: &CellRequest,
    shown: &mut Shown,
) -> anyhow::Result<Observation> {
    anyhow::ensure!(
        kernel == DEFAULT_KERNEL,
        "the server has only the OpenHands interface, and with it one kernel; leave --kernel out"
    );
    let action = RunIpythonAction { include_extra: false, ..RunIpythonAction::new(&request.code) };
    let event = ActionEvent { timeout: request.timeout, ..ActionEvent::from(Action::RunIpython(action)) };
    let answer = client.post_action(&event, None).await.map_err(|error| told(error, client.url()))?;
    let observation =
        ObservationEvent::from_value(answer).context("the server's answer cannot be understood")?.observation;
    if let Observation::RunIpython(cell) = &observation {
        shown.text(&cell.content)?;
        for image in cell.image_urls.iter().flatten() {
            let parts = image.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            let (media_type, base64) = parts.context("the image is not what it must be")?;
            shown.image(media_type, base64)?;
        }
    }
    Ok(observation)
}

/// What was shown of a cell.
#[derive(Debug)]
pub(crate) struct Shown {
    /// All of it, if it is to be printed as JSON.
    collected: Option<Collected>,
    images: Option<PathBuf>,
    count: usize,
    ends_line: bool,
}

/// What a cell has shown.
#[derive(Debug, Default)]
struct Collected {
    text: String,
    /// As `data:` URLs.
    images: Vec<String>,
}

impl Shown {
    pub(crate) fn new(images: Option<PathBuf>, json: bool) -> Self {
        Self { collected: json.then(Collected::default), images, count: 0, ends_line: true }
    }

    /// Shows a piece of text.
    pub(crate) fn text(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some(collected) = &mut self.collected {
            anyhow::ensure!(
                collected.text.len() + text.len() <= MOST_TEXT,
                "the cell shows more than {} MiB, too much for --json; without it everything is printed as it comes",
                MOST_TEXT / 1024 / 1024
            );
            collected.text.push_str(text);
            return Ok(());
        }
        if let Some(last) = text.bytes().last() {
            self.ends_line = last == b'\n';
        }
        print_bytes(text.as_bytes())
    }

    /// Shows an image, or writes it to a file.
    pub(crate) fn image(&mut self, media_type: &str, base64: &str) -> anyhow::Result<()> {
        if let Some(collected) = &mut self.collected {
            collected.images.push(format!("data:{media_type};base64,{}", base64.trim()));
            return Ok(());
        }
        self.count += 1;
        let Some(directory) = &self.images else {
            tracing::warn!("the cell shows an image; --images DIRECTORY writes images to files");
            return Ok(());
        };
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let path = directory.join(format!("{}.{}", self.count, media_type.rsplit('/').next().unwrap_or("bin")));
        let bytes = STANDARD.decode(base64.trim()).context("the image is not what it must be")?;
        write(&path, &bytes)?;
        tracing::info!(path = %path.display(), "image written");
        Ok(())
    }

    /// Prints what is left when the cell has ended, and gives our exit code.
    pub(crate) fn end(self, end: CellOutcome) -> anyhow::Result<ExitCode> {
        if let Some(Collected { text, images }) = self.collected {
            print_json(&json!({"text": text, "images": images, "end": end}))?;
        } else if !self.ends_line && std::io::stdout().is_terminal() {
            print_bytes(b"\n")?;
        }
        match end {
            CellOutcome::Completed => Ok(ExitCode::SUCCESS),
            CellOutcome::Raised => Ok(ExitCode::FAILURE),
            CellOutcome::TimedOut => {
                tracing::warn!("the cell did not end within the time limit, and was interrupted");
                Ok(ExitCode::from(TIMED_OUT))
            }
            CellOutcome::Died => anyhow::bail!("the kernel ended while it ran the cell"),
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))
}
