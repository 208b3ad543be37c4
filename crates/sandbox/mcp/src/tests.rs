//! The proxy between a client of the SDK and programs that do what a test wants.

mod calls;
mod lists;
mod runs;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_protocol::McpServerEntry;
use gloveport_sys::Surroundings;
use gloveport_testing::{MCP_SERVER, within};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, CreateMessageRequestParams,
        CreateMessageResult, Implementation, LoggingMessageNotificationParam, ProgressNotificationParam,
        ResourceUpdatedNotificationParam, SamplingCapability, SamplingMessage,
    },
    service::{NotificationContext, RequestContext, RunningService, ServiceError},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    proxy::{Proxy, Waits},
    session::Session,
};

/// A proxy for a directory with the program that tests use.
struct Place {
    directory: tempfile::TempDir,
    proxy: Arc<Proxy>,
}

impl Place {
    fn new() -> Self {
        Self::with(Waits::default())
    }

    fn with(waits: Waits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("server.py"), MCP_SERVER).unwrap();
        let mut surroundings = Surroundings::inherited(directory.path().to_owned());
        surroundings.set("SESSION_API_KEY", "secret of the sandbox");
        Self { proxy: Proxy::with_waits(surroundings, waits), directory }
    }

    fn script(&self) -> PathBuf {
        self.directory.path().join("server.py")
    }

    /// Sets servers, each with a mode.
    fn set(&self, servers: &[(&str, &str)]) -> Vec<String> {
        self.proxy.update(servers.iter().map(|(name, mode)| entry(&self.script(), name, mode)).collect())
    }

    async fn client(&self) -> Client {
        let (told, heard) = mpsc::unbounded_channel();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let session = Session::new(&self.proxy);
        tokio::spawn(async move {
            let running = Box::pin(session.serve(tokio::io::split(theirs))).await.unwrap();
            running.waiting().await
        });
        let service = Box::pin(Ears(told).serve(tokio::io::split(ours))).await.unwrap();
        Client { service, heard }
    }
}

fn entry(script: &Path, name: &str, mode: &str) -> McpServerEntry {
    let args = json!([script, name, mode]);
    McpServerEntry::from_value(&json!({"name": name, "command": "python3", "args": args, "env": {"OWN": "x"}})).unwrap()
}

/// A client, and what it was told.
struct Client {
    service: RunningService<RoleClient, Ears>,
    heard: mpsc::UnboundedReceiver<Value>,
}

impl Client {
    async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        within(self.service.call_tool(params)).await
    }

    /// The text of the result of a call.
    async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        text(&result)
    }

    /// Why a call failed.
    async fn failure(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments).await.unwrap_err() {
            ServiceError::McpError(error) => error.message.into_owned(),
            other => panic!("{other}"),
        }
    }

    async fn hear(&mut self) -> Value {
        within(self.heard.recv()).await.unwrap()
    }
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Keeps what a client is told, and answers questions.
struct Ears(mpsc::UnboundedSender<Value>);

impl Ears {
    fn note(&self, what: &str, value: impl serde::Serialize) {
        let _closed = self.0.send(json!([what, value]));
    }
}

impl ClientHandler for Ears {
    async fn create_message(
        &self,
        _asked: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("an answer"), "model".to_owned()))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.note("progress", step);
    }

    async fn on_logging_message(&self, line: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.note("log", line.data);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("tools", ());
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("prompts", ());
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("resources", ());
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.note("updated", updated.uri);
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.sampling = Some(SamplingCapability::default());
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }
}
