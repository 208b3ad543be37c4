//! Waits for the start of a pod, brings our program into it, and says what it waits for.

use std::{sync::Arc, time::Duration};

use gloveport_provider::{Phase, ProviderError, Teller};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{AttachParams, ListParams};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    ProgramFrom,
    fault::{cut, failed, given_up},
    inner::Inner,
    names::BRINGER,
    view::{self, Stage},
    watch::{Seen, Waiter},
};

/// Bytes of our program that are sent at a time.
const CHUNK: usize = 64 * 1024;
/// Time to send it.
const SENDING: Duration = Duration::from_mins(3);
/// How often the events of a pod that waits are read, for people.
const EVENTS: Duration = Duration::from_secs(2);
/// Time for one answer about events.
const EVENTS_WITHIN: Duration = Duration::from_secs(5);
/// Events of a pod that are looked at.
const MOST_EVENTS: u32 = 50;
/// How long an image may fail to be pulled: registries are away for a moment.
const PULLING: Duration = Duration::from_secs(20);

/// How a pod did not start.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// It never will.
    Failed(ProviderError),
    /// Its node has ended it, or somebody has removed it.
    Taken(String),
}

impl From<ProviderError> for NotStarted {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

/// What is waited with.
pub(crate) struct Starting<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    /// Name of the pod, and its identity.
    pub(crate) pod: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) tell: &'a Teller,
    pub(crate) phase: Phase,
    pub(crate) given_up: &'a CancellationToken,
    /// Our program goes in through this backend.
    pub(crate) brings: bool,
}

impl Starting<'_> {
    /// Waits until the server of the pod has been started.
    pub(crate) async fn wait(&self, mut waiter: Waiter) -> Result<(), NotStarted> {
        let limit = self.inner.options.start_within;
        let end = Instant::now() + limit;
        let (mut read_events, mut told) = (Instant::now() + EVENTS, String::new());
        let mut waits_for = String::new();
        let mut brought = !self.brings;
        let mut pulling_since: Option<Instant> = None;
        loop {
            let seen = tokio::select! {
                seen = waiter.next() => seen,
                () = self.given_up.cancelled() => return Err(given_up().into()),
                () = sleep_until(end) => return Err(self.late(&waits_for).await.into()),
                () = sleep_until(read_events) => {
                    if let Some(event) = self.latest_event().await && event != told {
                        self.tell.enter(self.phase_of(&event), &event);
                        told = event;
                    }
                    read_events = Instant::now() + EVENTS;
                    continue;
                }
            };
            let pod = match seen {
                Seen::Nothing => continue,
                Seen::Absent => return Err(NotStarted::Taken("its pod was removed".to_owned())),
                Seen::Pod(pod) if pod.metadata.uid.as_deref() != Some(self.uid) => continue,
                Seen::Pod(pod) => pod,
            };
            match view::stage(&pod) {
                Stage::Runs | Stage::Ended(_) | Stage::Loops(_) => return Ok(()),
                Stage::Brings if brought => {}
                Stage::Brings => {
                    self.tell.enter(self.phase, "bringing the server into the pod");
                    self.bring().await?;
                    brought = true;
                }
                Stage::Waits(reason) | Stage::Unknown(reason) => waits_for = reason,
                Stage::Taken(reason) => return Err(NotStarted::Taken(reason)),
                Stage::Failed(reason) if reason.starts_with("ImagePullBackOff") => {
                    let since = *pulling_since.get_or_insert_with(Instant::now);
                    waits_for = reason;
                    if since.elapsed() >= PULLING || is_final(&waits_for) {
                        return Err(self.failed(&waits_for).await.into());
                    }
                }
                Stage::Failed(reason) => return Err(self.failed(&reason).await.into()),
            }
        }
    }

    fn phase_of(&self, event: &str) -> Phase {
        if event.starts_with("Pulling") { Phase::PreparingImage } else { self.phase }
    }

    /// Sends our program to the container that waits for it.
    async fn bring(&self) -> Result<(), ProviderError> {
        let failed = |error: String| failed("take our program", error);
        let mut program = open(&self.inner.options.program).await?;
        let api = self.inner.cluster.api::<Pod>().await?;
        let parameters =
            AttachParams::default().container(BRINGER).stdin(true).stdout(false).stderr(true).max_stdin_buf_size(CHUNK);
        let attached = self.inner.cluster.ask("take our program", || api.attach(self.pod, &parameters));
        let mut attached = attached.await?;
        let (stdin, stderr) = (attached.stdin(), attached.stderr());
        let Some(mut stdin) = stdin else { return Err(failed("it gives no way to send it".to_owned())) };
        let sent = timeout(SENDING, async {
            tokio::io::copy_buf(&mut program, &mut stdin).await?;
            stdin.flush().await
        });
        let sent = tokio::select! {
            sent = sent => sent,
            () = self.given_up.cancelled() => return Err(given_up()),
        };
        let Ok(sent) = sent else {
            return Err(ProviderError::Timeout { action: "sending our program".to_owned(), limit: SENDING });
        };
        // The container ends when it has all; what it complains of is its reason.
        let mut complaint = Vec::new();
        if let Some(stderr) = stderr {
            let _late = timeout(SENDING, stderr.take(4096).read_to_end(&mut complaint)).await;
        }
        drop(stdin);
        attached.abort();
        let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
        match sent {
            Ok(()) if complaint.is_empty() => Ok(()),
            Ok(()) => Err(failed(complaint)),
            Err(error) if complaint.is_empty() => Err(failed(error.to_string())),
            Err(error) => Err(failed(format!("{error}; the container wrote: {complaint}"))),
        }
    }

    /// What happened to the pod last, in words.
    async fn latest_event(&self) -> Option<String> {
        self.events(false).await.pop()
    }

    /// What happened to the pod, the latest last.
    async fn events(&self, warnings: bool) -> Vec<String> {
        let Ok(api) = self.inner.cluster.api::<Event>().await else { return Vec::new() };
        let parameters = ListParams::default().fields(&format!("involvedObject.uid={}", self.uid)).limit(MOST_EVENTS);
        // They are for people; whoever may not read them does without.
        let Ok(Ok(events)) = timeout(EVENTS_WITHIN, api.list(&parameters)).await else { return Vec::new() };
        let mut events = events.items;
        events.retain(|event| !warnings || event.type_.as_deref() == Some("Warning"));
        let at = |event: &Event| event.last_timestamp.as_ref().map(|time| time.0);
        events.sort_by_key(at);
        events.into_iter().filter_map(|event| event.message.map(|message| cut(&message))).collect()
    }

    async fn failed(&self, reason: &str) -> ProviderError {
        let mut reason = with_hint(reason);
        for event in self.events(true).await.into_iter().rev().take(3) {
            if !reason.contains(&event) {
                reason = format!("{reason}; {event}");
            }
        }
        let log = self.inner.last_lines(self.pod).await;
        ProviderError::Start { reason, log }
    }

    async fn late(&self, waits_for: &str) -> ProviderError {
        let limit = self.inner.options.start_within.as_secs();
        let waits = if waits_for.is_empty() { String::new() } else { format!(": {waits_for}") };
        let hint = "; `start_within` in [extended.kubernetes] is how long it may take";
        self.failed(&format!("its pod has not started within {limit} s{waits}{hint}")).await
    }
}

/// Whether a registry said no.
fn is_final(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["not found", "manifest unknown", "denied", "unauthorized", "does not exist"]
        .iter()
        .any(|text| reason.contains(text))
}

fn with_hint(reason: &str) -> String {
    let hint = if reason.contains("ImagePull") || reason.contains("InvalidImageName") || reason.contains("ErrImage") {
        "; check the name of the image, and `kubernetes.image_pull_secret` if its registry asks for a login"
    } else if reason.contains("Unschedulable") {
        "; ask for less (`kubernetes.resource_cpu_request`, `resource_memory_request`), or add nodes"
    } else {
        ""
    };
    format!("{reason}{hint}")
}

/// Our program, a piece at a time: many sandboxes may be made at once.
async fn open(path: &std::path::Path) -> Result<BufReader<tokio::fs::File>, ProviderError> {
    let told = |source| ProviderError::File { action: "read", path: path.to_owned(), source };
    Ok(BufReader::with_capacity(CHUNK, tokio::fs::File::open(path).await.map_err(told)?))
}

impl Inner {
    /// Length of our program, if it goes into pods through this backend.
    pub(crate) async fn program_size(&self, is_ours: bool) -> Result<u64, ProviderError> {
        if !is_ours || !matches!(self.options.program_from, ProgramFrom::Stream { .. }) {
            return Ok(0);
        }
        let path = &self.options.program;
        let told = |source| ProviderError::File { action: "put into a pod", path: path.clone(), source };
        if !gloveport_provider::program::is_for_containers(path).map_err(told)? {
            let reason = format!(
                "it is no program for Linux; put a {} that was built for Linux beside it, or set `program_image`",
                gloveport_provider::program::SMALL
            );
            return Err(told(std::io::Error::new(std::io::ErrorKind::Unsupported, reason)));
        }
        Ok(tokio::fs::metadata(path).await.map_err(told)?.len())
    }
}
