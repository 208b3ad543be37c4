//! Contexts: kernels by name.

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use gloveport_protocol::kernels::{CellOutcome, CellRequest, DEFAULT_KERNEL, KernelActivity};
use gloveport_provider::SandboxId;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    handle::{Interpreter, refused},
    results::python_text,
};
use crate::{Refusal, contexts::Known};

/// Seconds for a kernel to start and change its directory.
const START: f64 = 120.0;

#[derive(Debug, Deserialize)]
pub(super) struct CreateRequest {
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
}

/// Whether code is in the language of the kernels.
pub(super) fn check_language(language: Option<&str>) -> Result<(), Refusal> {
    match language.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "python" | "python3") => Ok(()),
        Some(other) => {
            Err(Refusal::not_offered(&format!("code in `{other}` (only python; run a program with a command) is")))
        }
    }
}

impl Interpreter {
    fn id(&self) -> &SandboxId {
        &self.place.sandbox.id
    }

    async fn told(&self, name: &str) -> Result<Value, Refusal> {
        let directory = match self.shared.contexts.known(self.id(), name).directory {
            Some(directory) => directory,
            None => self.place.facts().await.map_err(refused)?.directory.clone(),
        };
        Ok(json!({"id": name, "language": "python", "cwd": directory}))
    }

    pub(super) async fn list(&self) -> Result<Response, Refusal> {
        let kernels = self.place.client.kernels().list().await.map_err(refused)?;
        let mut told = Vec::new();
        for kernel in kernels.iter().filter(|kernel| kernel.state != KernelActivity::Closed) {
            told.push(self.told(&kernel.name).await?);
        }
        Ok(Json(told).into_response())
    }

    pub(super) async fn create(&self, request: CreateRequest) -> Result<Response, Refusal> {
        check_language(request.language.as_deref())?;
        let name = gloveport_ids::random::<12>().map_err(|error| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the system gives no random numbers: {error}"))
        })?;
        let directory = request.cwd.filter(|cwd| !cwd.is_empty());
        if let Err(refusal) = self.enter(&name, directory.as_deref()).await {
            // Nobody knows of it.
            let _gone = self.place.client.kernels().remove(&name).await;
            return Err(refusal);
        }
        let known = Known { directory, count: 0 };
        self.shared.contexts.set(self.id(), &name, known);
        Ok(Json(self.told(&name).await?).into_response())
    }

    /// Starts the kernel of a context in its directory.
    async fn enter(&self, name: &str, directory: Option<&str>) -> Result<(), Refusal> {
        let code = directory
            .map_or_else(String::new, |directory| format!("__import__('os').chdir({})", python_text(directory)));
        let request = CellRequest { code, timeout: Some(START) };
        let result = self.place.client.kernels().execute(name, &request).await.map_err(refused)?;
        if result.end == CellOutcome::Completed {
            return Ok(());
        }
        let reason = result.text.lines().last().unwrap_or_default().to_owned();
        Err(Refusal::wrong(format!("the context cannot be made: {reason}")))
    }

    async fn find(&self, id: &str) -> Result<(), Refusal> {
        let kernels = self.place.client.kernels().list().await.map_err(refused)?;
        if kernels.iter().any(|kernel| kernel.name == id && kernel.state != KernelActivity::Closed) {
            return Ok(());
        }
        Err(Refusal::new(StatusCode::NOT_FOUND, format!("Context {id} not found")))
    }

    pub(super) async fn remove(&self, id: &str) -> Result<Response, Refusal> {
        self.find(id).await?;
        self.place.client.kernels().remove(id).await.map_err(refused)?;
        self.shared.contexts.forget(self.id(), id);
        Ok(StatusCode::NO_CONTENT.into_response())
    }

    pub(super) async fn restart(&self, id: &str) -> Result<Response, Refusal> {
        self.find(id).await?;
        self.place.client.kernels().restart(id).await.map_err(refused)?;
        let directory = self.shared.contexts.known(self.id(), id).directory;
        self.shared.contexts.set(self.id(), id, Known { directory: directory.clone(), count: 0 });
        self.enter(id, directory.as_deref()).await?;
        Ok(Json(self.told(id).await?).into_response())
    }

    /// The kernel of a cell: that of its context, which must be there, or the one of the sandbox.
    pub(super) async fn kernel_of(&self, context: Option<&str>) -> Result<String, Refusal> {
        match context.filter(|context| !context.is_empty() && *context != DEFAULT_KERNEL) {
            None => Ok(DEFAULT_KERNEL.to_owned()),
            Some(context) => {
                self.find(context).await?;
                Ok(context.to_owned())
            }
        }
    }
}
