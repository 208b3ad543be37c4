//! One edit from its request to its observation.

use std::sync::{Mutex, PoisonError};

use gloveport_changes::diff;
use gloveport_protocol::{EditAction, EditObservation, ErrorObservation, FileEditSource, Observation};
use serde_json::Value;

use super::{
    EditFiles, LlmEditError, LlmError, LlmOptions, ReadFailure,
    answer::{Correction, Draft, Message, updated_code},
    chat::Chat,
    metrics::Metrics,
    prompt,
    range::{self, Lines, MAX_LINES},
    similarity,
};

/// How often a model is asked for a block of code (runtime-interface 15).
const TRIES: usize = 3;
/// Most problems of a linter that are told.
const MAX_PROBLEMS: usize = 5;

/// Edits files by means of a model. One editor serves a whole session, whose cost it counts.
#[derive(Debug)]
pub struct LlmEditor {
    chat: Chat,
    metrics: Mutex<Metrics>,
}

/// What came of an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// A change of the file, or why there is none.
    pub observation: Observation,
    /// What the editor has cost so far, for the envelope of the observation; nothing if no model was asked.
    pub llm_metrics: Option<Value>,
}

/// An edit under way.
struct Edit<'a> {
    editor: &'a LlmEditor,
    files: &'a dyn EditFiles,
    path: &'a str,
    has_asked: bool,
}

/// A step that gave a text, or a reason for the agent.
type Step = Result<String, String>;

impl LlmEditor {
    /// An editor with this model.
    pub fn new(options: LlmOptions) -> Result<Self, LlmError> {
        let metrics = Mutex::new(Metrics::new(&options.model));
        Ok(Self { chat: Chat::new(options)?, metrics })
    }

    /// What the editor has cost so far.
    pub fn metrics(&self) -> Option<Value> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).to_value()
    }

    /// Makes an edit: the draft in the action's `content` is for the lines from its `start` to its `end`.
    ///
    /// A file that is not there is made of the draft alone. What a linter newly finds wrong is corrected by the model,
    /// as often as allowed; the file then has the last attempt.
    pub async fn edit(&self, files: &dyn EditFiles, action: &EditAction) -> Result<Edited, LlmEditError> {
        let mut edit = Edit { editor: self, files, path: &action.path, has_asked: false };
        let observation = match files.read(&action.path).await {
            Ok(text) => edit.change(&text, action).await?,
            Err(ReadFailure::NotFound) => edit.create(&action.content).await,
            Err(ReadFailure::Failed(reason)) => return Err(LlmEditError::Read { path: action.path.clone(), reason }),
        };
        Ok(Edited { observation, llm_metrics: edit.has_asked.then(|| self.metrics()).flatten() })
    }
}

impl Edit<'_> {
    async fn create(&self, content: &str) -> Observation {
        match self.files.write(self.path, content.trim()).await {
            Ok(()) => edited(self.path, None, content),
            Err(reason) => error(reason),
        }
    }

    /// Changes a text and corrects the change. A correction that fails leaves the report of the linter.
    async fn change(&mut self, original: &str, action: &EditAction) -> Result<Observation, LlmEditError> {
        let draft = Draft { content: action.content.clone(), start: action.start, end: action.end };
        let mut text = match self.apply(original, &draft).await? {
            Ok(text) => text,
            Err(reason) => return Ok(error(reason)),
        };
        let mut corrections = 0;
        loop {
            if let Err(reason) = self.files.write(self.path, &text).await {
                return Ok(error(reason));
            }
            let problems = self.files.lint(self.path, original, &text).await;
            if problems.is_empty() {
                return Ok(edited(self.path, Some(original), &text));
            }
            let report = report(self.path, original, &text, &problems);
            corrections += 1;
            if corrections > self.editor.chat.options.correct_num {
                return Ok(error(report));
            }
            match self.corrected(&text, &problems).await {
                Ok(Some(corrected)) => text = corrected,
                Ok(None) => return Ok(error(report)),
                Err(failure) => {
                    tracing::error!(path = self.path, %failure, "what a linter found wrong could not be corrected");
                    return Ok(error(report));
                }
            }
        }
    }

    /// The text with a draft in it.
    async fn apply(&mut self, text: &str, draft: &Draft) -> Result<Step, LlmEditError> {
        let lines: Vec<&str> = text.split('\n').collect();
        let range = match range::lines(draft.start, draft.end, lines.len()) {
            Ok(Lines::Append) => return Ok(Ok(format!("{text}\n{}", draft.content))),
            Ok(Lines::Replace(range)) => range,
            Err(reason) => return Ok(Err(reason)),
        };
        if range.len() > MAX_LINES + 1 {
            let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
            return too_long(self.path, lines, range, draft.content.clone()).await.map(Err);
        }
        let Some(merged) = self.merged(&lines[range.clone()].join("\n"), &draft.content).await? else {
            let reason = "Failed to get new file contents. Please try to reduce the number of edits and try again.";
            return Ok(Err(reason.to_owned()));
        };
        let whole: Vec<&str> = lines[..range.start]
            .iter()
            .copied()
            .chain([merged.as_str()])
            .chain(lines[range.end..].iter().copied())
            .collect();
        Ok(Ok(whole.join("\n")))
    }

    /// Lines with a draft merged into them by the model; nothing if it never gave a block of code.
    async fn merged(&mut self, lines: &str, draft: &str) -> Result<Option<String>, LlmError> {
        let messages = prompt::merge(lines, draft);
        for _ in 0..TRIES {
            let answer = self.ask(&messages, None).await?;
            if let Some(code) = updated_code(&answer.text()) {
                return Ok(Some(code.to_owned()));
            }
        }
        Ok(None)
    }

    /// The text corrected by the model; nothing if it gives no correction that can be used.
    async fn corrected(&mut self, text: &str, problems: &[String]) -> Result<Option<String>, LlmEditError> {
        let messages = prompt::correct(self.path, text, &problems.join("\n"));
        let answer = match self.ask(&messages, Some(&prompt::tools())).await {
            // Some endpoints know no tools.
            Err(failure) if failure.is_bad_request() => self.ask(&messages, None).await?,
            answer => answer?,
        };
        match answer.correction(self.path) {
            None => Ok(None),
            Some(Correction::Whole(text)) => Ok(Some(text)),
            Some(Correction::Draft(draft)) => Ok(self.apply(text, &draft).await?.ok()),
        }
    }

    async fn ask(&mut self, messages: &Value, tools: Option<&Value>) -> Result<Message, LlmError> {
        self.has_asked = true;
        let LlmEditor { chat, metrics } = self.editor;
        let (completion, latency) = chat.complete(messages, tools).await?;
        metrics.lock().unwrap_or_else(PoisonError::into_inner).add(&chat.options, &completion, latency);
        Message::of(&completion).ok_or_else(|| LlmError::Answer("it has no message".to_owned()))
    }
}

fn error(reason: String) -> Observation {
    Observation::Error(ErrorObservation::new(reason))
}

/// What an edit did; without an old text, it made the file.
fn edited(path: &str, old: Option<&str>, new: &str) -> Observation {
    Observation::Edit(EditObservation {
        path: path.to_owned(),
        prev_exist: old.is_some(),
        old_content: Some(old.unwrap_or_default().to_owned()),
        new_content: Some(new.to_owned()),
        impl_source: FileEditSource::LlmBasedEdit,
        ..EditObservation::new(diff::unified(path, old.unwrap_or_default(), new))
    })
}

/// What a linter finds wrong with an edit, for the agent.
fn report(path: &str, original: &str, text: &str, problems: &[String]) -> String {
    let count = problems.len();
    let shown: Vec<_> = problems.iter().take(MAX_PROBLEMS).map(|problem| format!("- {problem}")).collect();
    let more = if count > MAX_PROBLEMS { format!("\n- and {} more", count - MAX_PROBLEMS) } else { String::new() };
    format!(
        "[The edit of {path} is written, but it does not pass the linter. New problems: {count}.]\n{}{more}\n\
         [The change:]\n{}\n[Correct the file with another edit.]",
        shown.join("\n"),
        diff::unified(path, original, text)
    )
}

/// Why a range is too long, and where the draft may belong.
async fn too_long(
    path: &str,
    lines: Vec<String>,
    range: std::ops::Range<usize>,
    draft: String,
) -> Result<String, LlmEditError> {
    let search = tokio::task::spawn_blocking(move || {
        let chunks = similarity::most_similar(&lines, &draft).into_iter().map(|chunk| {
            let (first, last) = (chunk.lines.start + 1, chunk.lines.end);
            let numbered =
                lines[chunk.lines.clone()].iter().zip(first..).map(|(line, number)| format!("{number}|{line}\n"));
            let numbered: String = numbered.collect();
            format!("[Lines {first} to {last}, similarity {:.2}:]\n{numbered}", chunk.similarity)
        });
        chunks.collect::<String>()
    });
    let snippets = search.await.map_err(|_| LlmEditError::Interrupted)?;
    let (first, last, count) = (range.start + 1, range.end, range.len());
    Ok(format!(
        "[The range of lines to edit is too long: lines {first} to {last} are {count}, and at most {MAX_LINES} can be edited at \
         once.]\nThese lines look most like the draft:\n{snippets}Edit {path} again with `start` and `end` set to fewer than \
         {MAX_LINES} lines."
    ))
}
