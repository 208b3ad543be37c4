//! A provider whose calls have spans in traces.

use std::{fmt, sync::Arc, time::Duration};

use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, NetworkChange, NetworkState, Progress,
    Provider, ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot, WarmKind,
};
use tracing::{Instrument as _, Span, field::Empty, info_span};

use crate::trace::TRACE_TARGET;

/// The same provider, with spans.
pub(crate) struct Traced(pub(crate) Arc<dyn Provider>);

type Answer<'a, T> = BoxFuture<'a, Result<T, ProviderError>>;

impl Traced {
    /// A call, with what it is about and how it ended.
    fn call<'a, T: 'a>(&'a self, name: &'static str, about: &str, call: Answer<'a, T>) -> Answer<'a, T> {
        let span = info_span!(
            target: TRACE_TARGET,
            "provider",
            otel.kind = "client",
            otel.name = format!("{} {name}", self.0.name()),
            otel.status_code = Empty,
            otel.status_description = Empty,
            provider.name = self.0.name(),
            about,
        );
        if span.is_disabled() {
            return call;
        }
        let ended = async move {
            let ended = call.await;
            if let Err(error) = &ended {
                let span = Span::current();
                span.record("otel.status_code", "ERROR");
                span.record("otel.status_description", error.to_string());
            }
            ended
        };
        Box::pin(ended.instrument(span))
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Provider for Traced {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn learn(&self) -> Answer<'_, ()> {
        self.0.learn()
    }

    fn create<'a>(&'a self, spec: &'a SandboxSpec, progress: &'a Progress) -> Answer<'a, Sandbox> {
        self.call("create", spec.session_id.as_str(), self.0.create(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Sandbox>> {
        self.call("find", id.as_str(), self.0.find(id))
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Sandbox>> {
        self.call("find session", session.as_str(), self.0.find_session(session))
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> Answer<'a, Vec<Sandbox>> {
        self.call("list", "", self.0.list(filter))
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.call("pause", id.as_str(), self.0.pause(id))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.call("resume", id.as_str(), self.0.resume(id))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, bool> {
        self.call("delete", id.as_str(), self.0.delete(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> Answer<'a, LogStream> {
        self.call("logs", id.as_str(), self.0.logs(id, options))
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> Answer<'a, GcReport> {
        self.call("collect garbage", "", self.0.collect_garbage(options))
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.call("hold", id.as_str(), self.0.hold(id))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.call("release", id.as_str(), self.0.release(id))
    }

    fn network<'a>(&'a self, id: &'a SandboxId, change: &'a NetworkChange) -> Answer<'a, NetworkState> {
        self.call("network", id.as_str(), self.0.network(id, change))
    }

    fn audit_log<'a>(&'a self, session: &'a SessionId) -> Answer<'a, LogStream> {
        self.call("audit_log", session.as_str(), self.0.audit_log(session))
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> Answer<'a, String> {
        self.call("snapshot", id.as_str(), self.0.snapshot(id, name))
    }

    fn snapshots(&self) -> Answer<'_, Vec<Snapshot>> {
        self.0.snapshots()
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> Answer<'a, bool> {
        self.call("delete_snapshot", image, self.0.delete_snapshot(image))
    }

    fn fork<'a>(&'a self, id: &'a SandboxId, session: &'a SessionId, progress: &'a Progress) -> Answer<'a, Sandbox> {
        self.call("fork", id.as_str(), self.0.fork(id, session, progress))
    }

    fn keep_warm<'a>(&'a self, kinds: &'a [WarmKind]) -> Answer<'a, Vec<usize>> {
        self.0.keep_warm(kinds)
    }

    fn warm(&self, count: usize) -> Answer<'_, ()> {
        self.0.warm(count)
    }

    fn cannot(&self, what: &str) -> ProviderError {
        self.0.cannot(what)
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        self.0.check()
    }

    fn poll_interval(&self) -> Duration {
        self.0.poll_interval()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}
