//! Edits by a model in the files of the sandbox (runtime-interface 15).

use std::{path::Path, time::Duration};

use gloveport_changes::lint::{self, PythonLinter};
use gloveport_config::Config;
use gloveport_protocol::{Action, BoxFuture, EditAction, ErrorObservation, Observation, ReadAction, WriteAction};
use reqwest::Url;

use crate::{
    Runtime, RuntimeError,
    execution::Outcome,
    llm_edit::{EditFiles, LlmEditor, LlmOptions, ReadFailure, Retries},
};

/// The name of the configuration of the model that edits.
const DRAFT_EDITOR: &str = "draft_editor";
/// How servers begin to say that a file is missing.
const MISSING: &str = "File not found";
/// The address of models without one of their own.
const OPENAI: &str = "https://api.openai.com/v1";

/// The editor that the configuration asks for; none where it is off.
pub(crate) fn editor(config: &Config) -> Result<Option<LlmEditor>, RuntimeError> {
    if !config.agent(&config.default_agent).enable_llm_editor {
        return Ok(None);
    }
    let llm = config.llm(DRAFT_EDITOR);
    let address = llm.base_url.as_deref().unwrap_or(OPENAI);
    let base_url = Url::parse(address).map_err(|source| RuntimeError::ModelAddress { source: Box::new(source) })?;
    let whole = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    let seconds = |number: i64| Duration::from_secs(number.max(0).unsigned_abs());
    let defaults = LlmOptions::new(base_url, llm.model.strip_prefix("openai/").unwrap_or(&llm.model));
    let options = LlmOptions {
        api_key: llm.api_key,
        temperature: Some(llm.temperature),
        max_output_tokens: llm.max_output_tokens.map(whole),
        context_window: llm.max_input_tokens.unwrap_or_default().max(0).unsigned_abs(),
        input_cost_per_token: llm.input_cost_per_token,
        output_cost_per_token: llm.output_cost_per_token,
        timeout: llm.timeout.map_or(defaults.timeout, seconds),
        retries: Retries {
            count: whole(llm.num_retries),
            least: seconds(llm.retry_min_wait),
            most: seconds(llm.retry_max_wait),
        },
        correct_num: whole(llm.correct_num),
        ..defaults
    };
    Ok(Some(LlmEditor::new(options)?))
}

impl Runtime {
    pub(crate) async fn edit_with_model(&self, edit: &EditAction) -> Result<Outcome, RuntimeError> {
        let Some(editor) = &self.session.llm_editor else {
            return Ok(Outcome::of(Observation::Error(ErrorObservation::new(
                "Edits by a model are off: set `enable_llm_editor = true` in the section [agent] of the configuration, \
                 and name the model in [llm.draft_editor].",
            ))));
        };
        let files = SandboxFiles { runtime: self, lints: self.session.config.sandbox.enable_auto_lint };
        let edited = tokio::select! {
            edited = editor.edit(&files, edit) => edited?,
            () = self.session.stop.cancelled() => return Err(RuntimeError::Closed),
        };
        Ok(Outcome { observation: edited.observation, llm_metrics: edited.llm_metrics })
    }
}

/// The files of a session's sandbox.
struct SandboxFiles<'a> {
    runtime: &'a Runtime,
    lints: bool,
}

impl EditFiles for SandboxFiles<'_> {
    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<String, ReadFailure>> {
        Box::pin(async move {
            match self.runtime.execute(&Action::Read(ReadAction::new(path)).into()).await {
                Ok(Observation::Read(read)) => Ok(read.content),
                Ok(other) if other.content().starts_with(MISSING) => Err(ReadFailure::NotFound),
                Ok(other) => Err(ReadFailure::Failed(other.content().to_owned())),
                Err(error) => Err(ReadFailure::Failed(error.to_string())),
            }
        })
    }

    fn write<'a>(&'a self, path: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match self.runtime.execute(&Action::Write(WriteAction::new(path, text)).into()).await {
                Ok(Observation::Write(_)) => Ok(()),
                Ok(other) => Err(other.content().to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn lint<'a>(&'a self, path: &'a str, old: &'a str, new: &'a str) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            if !self.lints {
                return Vec::new();
            }
            let (path, old, new) = (path.to_owned(), old.to_owned(), new.to_owned());
            let find = move || lint::new_issues(&PythonLinter::default(), Path::new(&path), &old, &new);
            match tokio::task::spawn_blocking(find).await {
                Ok(issues) => issues.iter().map(ToString::to_string).collect(),
                Err(error) => {
                    tracing::warn!(%error, "an edit is not linted");
                    Vec::new()
                }
            }
        })
    }
}
