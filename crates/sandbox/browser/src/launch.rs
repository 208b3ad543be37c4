//! One start of Chromium: its profile, its command line, its pipes.

mod profile;
mod settings;

use std::{
    ffi::OsString,
    io,
    os::fd::AsFd as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_sys::{SessionProcess, surroundings::StartedProgram};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    cdp::{self, CdpError, Connection, within},
    find,
    options::BrowserOptions,
    world::Shared,
};
use profile::Profile;

/// What is kept of what it writes.
const WORDS: usize = 4096;
/// What Chromium says where it cannot have its own sandbox.
const NO_SANDBOX: &str = "No usable sandbox";

/// Why there is no browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed.
    pub reason: String,
    /// What can be done.
    pub remedy: String,
}

/// A Chromium that is up.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) process: SessionProcess,
    pub(crate) connection: Connection,
    pub(crate) shared: Shared,
    pub(crate) version: String,
    /// Whether pages are kept apart from the rest of the sandbox by Chromium's own sandbox.
    pub(crate) sandboxed: bool,
    profile: Profile,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Launched {
    /// Ends it, and returns when nothing of it is left.
    pub(crate) async fn end(self) {
        // It closes its files when it is asked in this way.
        let asked = self.connection.browser();
        let _ended_or_not = asked.call_within("Browser.close", json!({}), Duration::from_secs(2)).await;
        self.process.end(Duration::from_secs(2)).await;
        self.profile.remove().await;
    }
}

/// Starts a browser, unless it is given up. Nothing is left of a start that fails.
pub(crate) async fn launch(options: &BrowserOptions, given_up: &CancellationToken) -> Result<Launched, Failure> {
    let program = find::program(options).map_err(|find::NoBrowser { reason, remedy }| Failure { reason, remedy })?;
    let is_root = options
        .surroundings
        .identity
        .as_ref()
        .map_or_else(|| rustix::process::geteuid().is_root(), |identity| identity.uid == 0);
    match start(options, &program, !is_root, given_up).await {
        Err(failure) if !is_root && failure.reason.contains(NO_SANDBOX) => {
            tracing::warn!(
                "this kernel lets the user have no user namespaces, so pages are not kept apart by Chromium's own sandbox; \
                 install `chromium-sandbox` in the image, or allow user namespaces"
            );
            start(options, &program, false, given_up).await
        }
        started => started,
    }
}

async fn start(
    options: &BrowserOptions,
    program: &Path,
    sandboxed: bool,
    given_up: &CancellationToken,
) -> Result<Launched, Failure> {
    let profile = Profile::create(options).await.map_err(|error| Failure {
        reason: format!("its profile in {} cannot be made: {error}", std::env::temp_dir().display()),
        remedy: "make room or set TMPDIR to a directory that can be written".to_owned(),
    })?;
    match start_with(options, program, sandboxed, &profile, given_up).await {
        Ok(Up { process, connection, shared, version, tasks }) => {
            Ok(Launched { process, connection, shared, version, sandboxed, profile, _tasks: tasks })
        }
        Err(failure) => {
            profile.remove().await;
            Err(failure)
        }
    }
}

struct Up {
    process: SessionProcess,
    connection: Connection,
    shared: Shared,
    version: String,
    tasks: Vec<AbortOnDropHandle<()>>,
}

async fn start_with(
    options: &BrowserOptions,
    program: &Path,
    sandboxed: bool,
    profile: &Profile,
    given_up: &CancellationToken,
) -> Result<Up, Failure> {
    let failed = |reason: String| Failure {
        reason,
        remedy: format!("see what `{} --headless about:blank` says as the user of the sandbox", program.display()),
    };
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(format!("there are no pipes: {error}")));
    let ((its_input, input), (output, its_output)) = (pipe()?, pipe()?);
    let mut surroundings = options.surroundings.clone();
    // Its address space is far larger than what it uses; its memory is watched instead.
    surroundings.memory_limit = None;
    profile.prepare(&mut surroundings);
    let mut argv: Vec<OsString> = vec![program.into()];
    argv.extend(settings::arguments(&surroundings, profile.path(), sandboxed));
    let started = surroundings.start_with(&argv, &[its_input.as_fd(), its_output.as_fd()]).await;
    let StartedProgram { mut process, output: log } =
        started.map_err(|error| failed(format!("{} does not start: {error}", program.display())))?;
    drop((its_input, its_output));
    let words = Arc::new(Mutex::new(Vec::new()));
    let shared = Shared::new();
    let begun = (|| {
        let log = AbortOnDropHandle::new(tokio::spawn(read_log(Receiver::from_owned_fd(log)?, Arc::clone(&words))));
        let (connection, tasks) = cdp::start(input, output, shared.clone())?;
        Ok::<_, io::Error>((connection, tasks, log))
    })();
    let result = match begun {
        Ok((connection, tasks, log)) => {
            let up = tokio::select! {
                up = within(options.start_limit, settle_in(&connection, &shared, options)) => up,
                _ = process.exited() => Some(Err(CdpError::Closed)),
                () = given_up.cancelled() => None,
            };
            match up {
                Some(Ok(version)) => Ok((connection, version, tasks.into_iter().chain([log]).collect())),
                Some(Err(error)) => {
                    // Its last words come with its end.
                    let _ended = within(Duration::from_secs(2), process.exited()).await;
                    let _read = within(Duration::from_secs(1), log).await;
                    Err(error.to_string())
                }
                None if given_up.is_cancelled() => Err("it is not needed any more".to_owned()),
                None => Err(format!("it was not up within {} s", options.start_limit.as_secs_f64())),
            }
        }
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok((connection, version, tasks)) => Ok(Up { process, connection, shared, version, tasks }),
        Err(error) => {
            let status = process.exit().map(|exit| format!(" with status {}", exit.shell_status()));
            process.end(Duration::ZERO).await;
            let words = words.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let words = String::from_utf8_lossy(&words);
            let status = status.unwrap_or_default();
            Err(failed(format!("{} did not come up: {error}{status}: {}", program.display(), words.trim())))
        }
    }
}

/// Has the browser tell of all pages and keep downloads, and opens the first page; answers with its version.
async fn settle_in(connection: &Connection, shared: &Shared, options: &BrowserOptions) -> Result<String, CdpError> {
    let browser = connection.browser();
    // The limit of the whole start ends this.
    let version = browser.call_within("Browser.getVersion", json!({}), options.start_limit * 2).await?;
    let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
    browser.call("Target.setAutoAttach", attach).await?;
    let keep = json!({
        "behavior": "allowAndName", "downloadPath": options.downloads.to_string_lossy(), "eventsEnabled": true,
    });
    browser.call("Browser.setDownloadBehavior", keep).await?;
    browser.call("Target.createTarget", json!({ "url": "about:blank" })).await?;
    let ready =
        shared.until(options.start_limit, |world| world.pages.iter().any(|page| page.prepared).then_some(())).await;
    ready.ok_or(CdpError::Closed)?;
    Ok(version.get("product").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Keeps the pipe empty, and the last that came.
async fn read_log(mut log: Receiver, words: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; WORDS];
    while let Ok(count @ 1..) = log.read(&mut buffer).await {
        let piece = buffer.get(..count).unwrap_or_default();
        tracing::debug!(target: "gloveport_browser::log", "{}", String::from_utf8_lossy(piece).trim_end());
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(piece);
        let surplus = words.len().saturating_sub(WORDS);
        words.drain(..surplus);
    }
}
