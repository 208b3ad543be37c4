//! The native interface of the sandbox as a whole: pause and resume.

use gloveport_protocol::sandbox::SandboxStatus;

use crate::{ActionExecutionClient, ClientError, call::Call};

impl ActionExecutionClient {
    /// Stops all processes of the tools where they are. Of a sandbox that is paused already it is no error.
    pub async fn pause(&self) -> Result<SandboxStatus, ClientError> {
        self.change("v1/sandbox/pause").await
    }

    /// Lets them go on. Of a sandbox that is not paused it is no error.
    pub async fn resume(&self) -> Result<SandboxStatus, ClientError> {
        self.change("v1/sandbox/resume").await
    }

    /// Whether the sandbox is paused, and since when nobody has used it.
    pub async fn sandbox_status(&self) -> Result<SandboxStatus, ClientError> {
        let call = Call::get("v1/sandbox", self.session().limits.other);
        let body = self.session().request(&call).await?;
        self.session().parse(call.path, &body)
    }

    async fn change(&self, path: &str) -> Result<SandboxStatus, ClientError> {
        let nothing = serde_json::Value::Object(serde_json::Map::new());
        let call = Call::post(path, &nothing, Some(self.session().limits.other))?;
        let body = self.session().request(&call).await?;
        self.session().parse(call.path, &body)
    }
}
