//! Code that is run.

use std::{collections::BTreeMap, convert::Infallible};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_client::{CellDetail, CellDetails};
use gloveport_protocol::kernels::{CellOutcome, CellRequest};
use http::{HeaderValue, header::CONTENT_TYPE};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    contexts::check_language,
    handle::{Interpreter, refused},
    results::{error, line, python_text, told},
};
use crate::Refusal;

/// Seconds for variables to be set.
const SETTING: f64 = 120.0;

#[derive(Debug, Deserialize)]
pub(super) struct ExecuteRequest {
    code: String,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
}

/// A cell that runs. When the client goes away, it is interrupted, as nobody else would.
struct Running {
    interpreter: Interpreter,
    kernel: String,
    details: Option<CellDetails>,
    has_variables: bool,
    guard: Interrupt,
}

/// Interrupts a cell whose client is gone.
struct Interrupt {
    interpreter: Interpreter,
    kernel: String,
    /// There is something to interrupt.
    is_armed: bool,
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let (interpreter, kernel) = (self.interpreter.clone(), std::mem::take(&mut self.kernel));
        self.interpreter.shared.tasks.spawn(async move {
            if let Err(error) = interpreter.place.client.kernels().interrupt(&kernel).await {
                tracing::debug!(%error, "code whose client is gone could not be interrupted");
            }
            if let Err(refusal) = interpreter.set_back(&kernel).await {
                tracing::debug!(reason = refusal.message, "variables could not be set back");
            }
        });
    }
}

/// Runs code, and tells what it shows as it comes.
pub(super) async fn execute(interpreter: Interpreter, request: ExecuteRequest) -> Result<Response, Refusal> {
    let ExecuteRequest { code, context_id, language, env_vars } = request;
    check_language(language.as_deref())?;
    let kernel = interpreter.kernel_of(context_id.as_deref()).await?;
    let variables = env_vars.unwrap_or_default();
    let has_variables = !variables.is_empty();
    if has_variables {
        interpreter.set(&kernel, &variables).await?;
    }
    let kernels = interpreter.place.client.kernels();
    let details = kernels.start_in_detail(&kernel, &CellRequest { code, timeout: None }).await.map_err(refused)?;
    let count = interpreter.shared.contexts.count(&interpreter.place.sandbox.id, &kernel);
    let guard = Interrupt { interpreter: interpreter.clone(), kernel: kernel.clone(), is_armed: true };
    let running = Running { interpreter, kernel, details: Some(details), has_variables, guard };
    let first = stream::once(std::future::ready(json!({"type": "number_of_executions", "execution_count": count})));
    let rest = stream::unfold(running, async |mut running| Some((running.next().await?, running)));
    let lines = first.chain(rest).map(|value| Ok::<_, Infallible>(Bytes::from(line(&value))));
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

impl Running {
    /// What it does next; none behind its end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let details = self.details.as_mut()?;
            let (value, is_over) = match details.next().await {
                Ok(Some(detail)) => {
                    let is_over = matches!(detail, CellDetail::Ended(_));
                    (told(detail, Timestamp::now().as_millisecond()), is_over)
                }
                Ok(None) => (None, true),
                Err(failure) => {
                    let message = refused(failure).message;
                    (Some(error("SandboxError", &message, "")), true)
                }
            };
            if is_over {
                self.end().await;
            }
            if value.is_some() {
                return value;
            }
        }
    }

    async fn end(&mut self) {
        self.details = None;
        self.guard.is_armed = false;
        if self.has_variables
            && let Err(refusal) = self.interpreter.set_back(&self.kernel).await
        {
            tracing::debug!(reason = refusal.message, "variables could not be set back");
        }
    }
}

impl Interpreter {
    /// Sets variables of the environment for one cell. Nothing of it is seen by the code.
    async fn set(&self, kernel: &str, variables: &BTreeMap<String, String>) -> Result<(), Refusal> {
        let variables: Value = variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let code = format!(
            "exec(\"import builtins, json, os\\nnew = json.loads(given)\\nbuiltins.__dict__['_gloveport_environment'] = {{name: \
             os.environ.get(name) for name in new}}\\nos.environ.update(new)\", {{'given': {}}})",
            python_text(&variables.to_string())
        );
        self.silently(kernel, code).await
    }

    /// Sets them back.
    async fn set_back(&self, kernel: &str) -> Result<(), Refusal> {
        let code = "exec(\"import builtins, os\\nfor name, value in \
                    builtins.__dict__.pop('_gloveport_environment', {}).items():\\n    os.environ.pop(name, None) if value is None \
                    else os.environ.__setitem__(name, value)\", {})";
        self.silently(kernel, code.to_owned()).await
    }

    async fn silently(&self, kernel: &str, code: String) -> Result<(), Refusal> {
        let request = CellRequest { code, timeout: Some(SETTING) };
        let result = self.place.client.kernels().execute(kernel, &request).await.map_err(refused)?;
        if result.end == CellOutcome::Completed {
            return Ok(());
        }
        Err(Refusal::wrong(format!("the variables cannot be set: {}", result.text)))
    }
}
