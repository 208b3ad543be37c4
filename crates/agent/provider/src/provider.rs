//! The trait.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use gloveport_protocol::BoxFuture;
use serde::Serialize;

use crate::{
    Capabilities, NetworkChange, NetworkState, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId,
    Snapshot, WarmKind,
};

/// What the server of a sandbox writes, as bytes; a piece is at most 64 KiB.
pub type LogStream = BoxStream<'static, Result<Bytes, ProviderError>>;

/// Hosts sandboxes on one engine.
///
/// The engine is the only database: a provider that is made anew, in whatever process, finds every sandbox. All calls
/// may be made at the same time and given up at any time; a `create` that is given up leaves nothing behind, or
/// something that [`collect_garbage`](Self::collect_garbage) removes.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The name by which it is registered.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Asks the engine what it can do, where that is not known without; [`capabilities`](Self::capabilities) tells it from then
    /// on. An engine that does not answer is an error.
    fn learn(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        Box::pin(async { Ok(()) })
    }

    /// Makes a sandbox and returns as soon as the engine has it; its server need not answer yet. A session that has a
    /// live sandbox already is [`ProviderError::SessionExists`]; one that has ended is replaced.
    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>>;

    /// A sandbox by its id.
    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>>;

    /// The sandbox of a session; the live one, if it has several.
    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>>;

    /// All sandboxes that the filter lets through, the oldest first.
    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>>;

    /// Lets a sandbox rest. Of one that rests already it is no error.
    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// Lets a paused sandbox go on, under the same id and URL. Of one that runs it is no error. Its server may need a
    /// while until it answers.
    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// Ends a sandbox and removes all that belongs to it. Returns when nothing is left; `false` if there was none.
    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>>;

    /// What its server writes.
    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>>;

    /// Removes what nobody wants any more: what is left of sandboxes that have ended, those whose time is over, and
    /// orphans.
    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>>;

    /// This backend uses the sandbox from now on: should it die without [`release`](Self::release), the sandbox is an
    /// orphan. For an engine that cannot know it is nothing.
    fn hold<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Ok(()) })
    }

    /// This backend no longer uses a kept sandbox, which is to stay.
    fn release<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Ok(()) })
    }

    /// Changes whom a running sandbox may talk to, where a gate stands between it and them, and tells what that lets through.
    fn network<'a>(
        &'a self,
        _id: &'a SandboxId,
        _change: &'a NetworkChange,
    ) -> BoxFuture<'a, Result<NetworkState, ProviderError>> {
        Box::pin(async { Err(self.cannot("changes of the network of a running sandbox")) })
    }

    /// The audit log that a session's sandbox writes, as it is by now; several sandboxes may share it. Of a sandbox that has ended it
    /// is there as long as it could not be written to its file.
    fn audit_log<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async { Err(self.cannot("reading audit logs")) })
    }

    /// Keeps the files of a sandbox as an image of this name, and gives the name under which the engine knows it, for
    /// [`SandboxSpec::image`]. What is in volumes and directories of the machine is not part of it, and no secret is.
    fn snapshot<'a>(&'a self, _id: &'a SandboxId, _name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async { Err(self.cannot("snapshots")) })
    }

    /// The snapshots that were asked for through [`snapshot`](Self::snapshot), and not what forks are made through; the newest
    /// first where that is known, and [`MOST_SNAPSHOTS`](crate::MOST_SNAPSHOTS) at most.
    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(async { Err(self.cannot("lists of snapshots")) })
    }

    /// Deletes a snapshot by the name under which the engine knows it; `false` if there is no snapshot of this name. Other images
    /// stay, and one that a sandbox uses is refused where the engine cannot do without it.
    fn delete_snapshot<'a>(&'a self, _image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async { Err(self.cannot("the deletion of snapshots")) })
    }

    /// Makes a sandbox of another session that begins with the files of this one, and is made as it was, apart from what
    /// belongs to one sandbox alone: key, secrets, ports. Processes do not come with it.
    fn fork<'a>(
        &'a self,
        _id: &'a SandboxId,
        _session: &'a SessionId,
        _progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(async { Err(self.cannot("forks")) })
    }

    /// Starts sandboxes ahead until as many of each kind wait as it says, which `create` then uses where
    /// [`SandboxSpec::warm`] lets it, and ends those that wait beyond. Tells how many of each wait then.
    fn keep_warm<'a>(&'a self, _kinds: &'a [WarmKind]) -> BoxFuture<'a, Result<Vec<usize>, ProviderError>> {
        Box::pin(async { Err(self.cannot("warm sandboxes")) })
    }

    /// The same for sandboxes of the default kind, of which none are ended.
    fn warm(&self, count: usize) -> BoxFuture<'_, Result<(), ProviderError>> {
        Box::pin(async move { self.keep_warm(&[WarmKind::any(count)]).await.map(drop) })
    }

    /// The refusal of what this provider cannot do.
    fn cannot(&self, what: &str) -> ProviderError {
        ProviderError::Unsupported { provider: self.name().to_owned(), what: what.to_owned() }
    }

    /// What works and what does not, for `gloveport doctor`.
    fn check(&self) -> BoxFuture<'_, Vec<Check>>;

    /// How often the engine may be asked about a sandbox that is being started.
    fn poll_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// The backend ends: warm sandboxes and those that live with the backend are deleted.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Which sandboxes are listed.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Only those with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Also those that have ended.
    pub ended: bool,
}

/// Which part of a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOptions {
    /// Goes on until the sandbox ends.
    pub follow: bool,
    /// Begins with this many last lines; `None` for all that is kept.
    pub tail: Option<usize>,
}

/// What counts as garbage.
#[derive(Clone, Debug, Default)]
pub struct GcOptions {
    /// Also kept sandboxes that no living backend holds, though they are no orphans.
    pub all: bool,
    /// Only tells what would be removed.
    pub dry_run: bool,
}

/// What was removed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GcReport {
    /// What, in the order of removal.
    pub removed: Vec<Removed>,
    /// What could not be removed, with the reason.
    pub failed: Vec<String>,
}

/// Something that was removed.
#[derive(Clone, Debug, Serialize)]
pub struct Removed {
    /// The sandbox, if it was one.
    pub id: Option<SandboxId>,
    /// Its session, as far as it is known.
    pub session_id: Option<SessionId>,
    /// A directory or another object that was left.
    pub path: Option<PathBuf>,
    /// Why: "its backend has died", "its time is over", "it has ended".
    pub reason: String,
}

/// One thing that a provider needs.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What: "docker daemon".
    pub name: String,
    /// Whether it works.
    pub works: bool,
    /// What was found.
    pub found: String,
    /// What to do about it, if it does not work.
    pub remedy: Option<String>,
}
