//! What is asked in a sandbox: the router of its task (`hosted-apis` 5.3).

use std::time::Duration;

use bytes::Bytes;
use gloveport_hosted::settings::{is_at_hand, is_safe};
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderName};
use prost::Message;
use tokio::{sync::Mutex, time::timeout};

use crate::{
    channel::Channel,
    control::{Refused, Try, attempts, common, found, one, value_of},
    grpc::{Code, Failure, Messages, Status, framed},
    inner::Inner,
    wire::{Access, GetTask, Ready, Snapshot, StdioPiece, StdioRead, Task, Text, Within},
};

/// Where the calls are.
const PATH: &str = "/modal.task_command_router.TaskCommandRouter/";
/// How long a task is waited for, of a sandbox that has just been made.
const TASK: f32 = 20.0;
/// How much longer than asked for the answer to a wait may take.
const GRACE: Duration = Duration::from_secs(5);

/// The router of one sandbox.
pub(crate) struct Router<'a> {
    inner: &'a Inner,
    id: SandboxId,
    pub(crate) task: String,
    reached: Mutex<Reached>,
}

struct Reached {
    channel: std::sync::Arc<Channel>,
    jwt: String,
}

impl Inner {
    /// The router of a sandbox; none if that does not run.
    pub(crate) async fn router(&self, id: &SandboxId) -> Result<Option<Router<'_>>, ProviderError> {
        let wish = GetTask { sandbox_id: id.to_string(), timeout: Some(TASK) };
        let told: Option<Task> = self.control.told("tell the task of a sandbox", "SandboxGetTaskIdV2", &wish).await?;
        let Some(task) = told.and_then(|task| task.task_id).filter(|task| !task.is_empty()) else { return Ok(None) };
        let Some(access) = self.access(id).await? else { return Ok(None) };
        self.router_of(id, task, access).map(Some)
    }

    /// The router of a sandbox with this task, which is reached so.
    pub(crate) fn router_of(&self, id: &SandboxId, task: String, access: Access) -> Result<Router<'_>, ProviderError> {
        let reached = Mutex::new(self.reached(access)?);
        Ok(Router { inner: self, id: id.clone(), task, reached })
    }

    async fn access(&self, id: &SandboxId) -> Result<Option<Access>, ProviderError> {
        let wish = Text { text: id.to_string() };
        let action = "tell how a sandbox is reached";
        match self.control.ask(action, "SandboxGetCommandRouterAccess", &wish).await {
            // It has ended.
            Err(Refused { code: Some(Code::FailedPrecondition), .. }) => Ok(None),
            asked => found(asked),
        }
    }

    fn reached(&self, access: Access) -> Result<Reached, ProviderError> {
        if !is_safe(&access.url) || (is_at_hand(&access.url) && !is_at_hand(&self.options.server_url)) {
            let reason = "it names an address without TLS, or one of this machine";
            return Err(self.control.service.failed("tell how a sandbox is reached", reason));
        }
        Ok(Reached { channel: std::sync::Arc::new(Channel::new(&access.url)), jwt: access.jwt })
    }
}

impl Router<'_> {
    /// Whether the sandbox is ready; waits so long for it.
    pub(crate) async fn is_ready(&self, within: Duration) -> Result<bool, Refused> {
        let wish = Within { id: self.task.clone(), timeout: within.as_secs_f32() };
        match self.ask("wait for a sandbox", "SandboxWaitUntilReady", &wish, within + GRACE).await {
            Ok(Ready { ready_at }) => Ok(ready_at > 0.0),
            Err(Refused { code: Some(Code::DeadlineExceeded), .. }) => Ok(false),
            Err(refused) => Err(refused),
        }
    }

    /// Keeps the files of the sandbox as an image for so long, and gives the id of that.
    pub(crate) async fn snapshot(&self, stays: Duration, limit: Duration) -> Result<String, Refused> {
        let action = "make a snapshot";
        let wish = Snapshot {
            task_id: self.task.clone(),
            // The same over all tries, so that there is one image.
            snapshot_id: self.inner.control.key(action)?,
            ttl_seconds: Some(i64::try_from(stays.as_secs()).unwrap_or(i64::MAX)),
        };
        let made: Text = self.ask(action, "TaskSnapshotFilesystem", &wish, limit).await?;
        Ok(made.text)
    }

    /// What the server writes, from this byte on.
    pub(crate) async fn output(&self, offset: u64) -> Result<Messages<StdioPiece>, Refused> {
        let (action, limit) = ("read the log of a sandbox", self.inner.control.limit);
        let body = framed(&StdioRead { task_id: self.task.clone(), offset });
        let mut is_renewed = false;
        loop {
            let begun = timeout(limit, Box::pin(self.begin("SandboxStdioReadV2", 0, body.clone()))).await;
            let begun = begun.unwrap_or_else(|_| {
                let message = "there is no answer".to_owned();
                Err(Failure::Status(Status { code: Code::DeadlineExceeded, message, retry_after: None }))
            });
            match begun {
                Err(failure) if failure.code() == Some(Code::Unauthenticated) && !is_renewed => {
                    is_renewed = true;
                    self.renew(action).await?;
                }
                begun => return begun.map_err(|failure| self.inner.control.refused(action, limit, failure)),
            }
        }
    }

    async fn ask<A: Message, B: Message + Default>(
        &self,
        action: &str,
        method: &str,
        message: &A,
        limit: Duration,
    ) -> Result<B, Refused> {
        let body = framed(message);
        let mut is_renewed = false;
        loop {
            let once = |number| {
                let body = body.clone();
                async move { one(self.begin(method, number, body).await?).await }
            };
            match Box::pin(attempts(limit, once)).await {
                Err(failure) if failure.code() == Some(Code::Unauthenticated) && !is_renewed => {
                    is_renewed = true;
                    self.renew(action).await?;
                }
                asked => return asked.map_err(|failure| self.inner.control.refused(action, limit, failure)),
            }
        }
    }

    async fn begin<B: Message + Default>(
        &self,
        method: &str,
        number: u32,
        body: Bytes,
    ) -> Result<Messages<B>, Failure> {
        let (channel, headers) = {
            let reached = self.reached.lock().await;
            (std::sync::Arc::clone(&reached.channel), headers(number, &reached.jwt)?)
        };
        Messages::of(channel.send(&format!("{PATH}{method}"), headers, body).await?)
    }

    /// Asks for another right to be let in.
    async fn renew(&self, action: &str) -> Result<(), Refused> {
        let failed = |error| Refused { code: None, error };
        let gone = || failed(self.inner.control.service.failed(action, "the sandbox does not run any more"));
        let access = self.inner.access(&self.id).await.map_err(failed)?.ok_or_else(gone)?;
        *self.reached.lock().await = self.inner.reached(access).map_err(failed)?;
        Ok(())
    }
}

fn headers(number: u32, jwt: &str) -> Result<HeaderMap, Failure> {
    let mut headers = common(Try { key: "", number })?;
    let mut value = value_of(&format!("Bearer {jwt}"))?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static("authorization"), value);
    Ok(headers)
}
