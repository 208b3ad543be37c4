//! Edits by a model, played by a server on a loopback socket that speaks chat completions.
#![expect(clippy::unwrap_used, reason = "a helper that fails ends its test")]

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use gloveport_client::Pause;
use gloveport_protocol::{
    BoxFuture, EditAction, EditObservation, ErrorObservation, FileEditSource, Observation, Secret,
};
use gloveport_runtime::llm_edit::{EditFiles, LlmEditor, LlmOptions, ReadFailure, Retries};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

const PATH: &str = "/workspace/a.py";
const KEY: &str = "sk-hunter2";

/// What the endpoint does about one request.
#[derive(Clone)]
enum Reply {
    Say(String),
    Call(Value),
    Status(u16, &'static str),
    Body(&'static str),
    Never,
}

/// An endpoint that gives its replies in order and remembers the requests.
struct Endpoint {
    url: String,
    state: Arc<Played>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Played {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<(Option<String>, Value)>>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Endpoint {
    async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = Mutex::new(replies.into_iter().collect());
        let state = Arc::new(Played { replies, ..Played::default() });
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, task }
    }

    fn options(&self) -> LlmOptions {
        LlmOptions {
            api_key: Some(KEY.into()),
            retries: Retries { count: 2, ..Retries::default() },
            pause: Arc::new(Pauses::default()),
            ..LlmOptions::new(self.url.parse().unwrap(), "draft-1")
        }
    }

    fn editor(&self) -> LlmEditor {
        LlmEditor::new(self.options()).unwrap()
    }

    fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    fn count(&self) -> usize {
        self.state.requests.lock().unwrap().len()
    }
}

async fn complete(State(state): State<Arc<Played>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let key = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    state.requests.lock().unwrap().push((key, body));
    let reply = state.replies.lock().unwrap().pop_front();
    let completion = |message: Value| {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
        Json(json!({"id": "r1", "choices": [{"message": message}], "usage": usage})).into_response()
    };
    match reply {
        Some(Reply::Say(text)) => completion(json!({"role": "assistant", "content": text})),
        Some(Reply::Call(arguments)) => {
            let function = json!({"name": "edit_file", "arguments": arguments.to_string()});
            completion(json!({"content": null, "tool_calls": [{"id": "c", "type": "function", "function": function}]}))
        }
        Some(Reply::Status(status, body)) => (StatusCode::from_u16(status).unwrap(), body).into_response(),
        Some(Reply::Body(body)) => body.into_response(),
        Some(Reply::Never) => std::future::pending().await,
        None => (StatusCode::IM_A_TEAPOT, "no reply is left").into_response(),
    }
}

fn code(text: &str) -> Reply {
    Reply::Say(format!("Here it is.\n<updated_code>{text}</updated_code>"))
}

/// Notes waits instead of waiting.
#[derive(Default, Clone)]
struct Pauses(Arc<Mutex<Vec<Duration>>>);

impl Pause for Pauses {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(time);
        Box::pin(std::future::ready(()))
    }
}

/// Files in memory. The linter finds each line with `WRONG`.
#[derive(Default)]
struct Memory {
    files: Mutex<BTreeMap<String, String>>,
    written: Mutex<Vec<String>>,
    refuses_writes: bool,
}

impl Memory {
    fn with(text: &str) -> Self {
        Self { files: Mutex::new([(PATH.to_owned(), text.to_owned())].into()), ..Self::default() }
    }

    fn text(&self) -> String {
        self.files.lock().unwrap()[PATH].clone()
    }

    fn written(&self) -> Vec<String> {
        self.written.lock().unwrap().clone()
    }
}

impl EditFiles for Memory {
    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<String, ReadFailure>> {
        let result = match self.files.lock().unwrap().get(path) {
            Some(text) if text == "unreadable" => Err(ReadFailure::Failed("it is a directory".to_owned())),
            Some(text) => Ok(text.clone()),
            None => Err(ReadFailure::NotFound),
        };
        Box::pin(std::future::ready(result))
    }

    fn write<'a>(&'a self, path: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), String>> {
        if self.refuses_writes {
            return Box::pin(std::future::ready(Err("the disk is full".to_owned())));
        }
        self.files.lock().unwrap().insert(path.to_owned(), text.to_owned());
        self.written.lock().unwrap().push(text.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }

    fn lint<'a>(&'a self, _: &'a str, old: &'a str, new: &'a str) -> BoxFuture<'a, Vec<String>> {
        let problems = new
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("WRONG") && !old.contains(line))
            .map(|(index, _)| format!("Line {}, Column 1: wrong", index + 1))
            .collect();
        Box::pin(std::future::ready(problems))
    }
}

fn action(content: &str, start: i64, end: i64) -> EditAction {
    EditAction {
        content: content.to_owned(),
        start,
        end,
        impl_source: FileEditSource::LlmBasedEdit,
        ..EditAction::new(PATH)
    }
}

fn change(old: &str, new: &str, diff: &str) -> Observation {
    Observation::Edit(EditObservation {
        path: PATH.to_owned(),
        prev_exist: true,
        old_content: Some(old.to_owned()),
        new_content: Some(new.to_owned()),
        impl_source: FileEditSource::LlmBasedEdit,
        ..EditObservation::new(format!("--- {PATH}\n+++ {PATH}\n{diff}"))
    })
}

fn error(reason: impl Into<String>) -> Observation {
    Observation::Error(ErrorObservation::new(reason.into()))
}

#[tokio::test]
async fn a_draft_is_merged_into_its_lines() {
    let endpoint = Endpoint::start([code("B\nbb")]).await;
    let options = LlmOptions { temperature: Some(0.0), max_output_tokens: Some(4096), ..endpoint.options() };
    let editor = LlmEditor::new(options).unwrap();
    let files = Memory::with("a\nb\nc\n");
    let edited = editor.edit(&files, &action("make it B", 2, 2)).await.unwrap();
    assert_eq!(edited.observation, change("a\nb\nc\n", "a\nB\nbb\nc\n", "@@ -2 +2,2 @@\n-b\n+B\n+bb"));
    assert_eq!(files.written(), ["a\nB\nbb\nc\n"]);
    let metrics = edited.llm_metrics.unwrap();
    assert_eq!(metrics["accumulated_token_usage"]["prompt_tokens"], 7);
    assert_eq!(metrics["token_usages"][0]["response_id"], "r1");
    let requests = endpoint.state.requests.lock().unwrap();
    let [(key, body)] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(key.as_deref(), Some("Bearer sk-hunter2"));
    let messages = body["messages"].as_array().unwrap();
    let text = messages[0]["content"].as_str().unwrap();
    assert!(text.contains("<original_code>b</original_code>"), "{text}");
    assert!(text.contains("<update_snippet>make it B</update_snippet>"), "{text}");
    let keys: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages", "temperature", "max_completion_tokens"]);
    assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("draft-1"), &json!(4096)));
}

#[tokio::test]
async fn the_end_of_the_range_may_be_the_end_of_the_file() {
    let endpoint = Endpoint::start([code("#EDIT: all of it\nx")]).await;
    let files = Memory::with("a\nb\nc");
    let edited = endpoint.editor().edit(&files, &action("x", 2, -1)).await.unwrap();
    assert_eq!(edited.observation, change("a\nb\nc", "a\nx", "@@ -2,2 +2 @@\n-b\n-c\n+x"));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_made_of_the_draft() {
    let endpoint = Endpoint::start([]).await;
    let files = Memory::default();
    let edited = endpoint.editor().edit(&files, &action("\nx = 1\n", 1, -1)).await.unwrap();
    let expected = EditObservation {
        path: PATH.to_owned(),
        prev_exist: false,
        old_content: Some(String::new()),
        new_content: Some("\nx = 1\n".to_owned()),
        ..EditObservation::new(format!("--- {PATH}\n+++ {PATH}\n@@ -1,0 +2,2 @@\n+x = 1\n+"))
    };
    assert_eq!(edited.observation, Observation::Edit(expected));
    assert_eq!((edited.llm_metrics, files.text(), endpoint.count()), (None, "x = 1".to_owned(), 0));
}

#[tokio::test]
async fn lines_are_appended_without_a_model() {
    let endpoint = Endpoint::start([]).await;
    let files = Memory::with("a\nb");
    let edited = endpoint.editor().edit(&files, &action("c\nd", -1, -1)).await.unwrap();
    assert_eq!(edited.observation, change("a\nb", "a\nb\nc\nd", "@@ -2,0 +3,2 @@\n+c\n+d"));
    assert_eq!((edited.llm_metrics, endpoint.count()), (None, 0));
}

#[tokio::test]
async fn ranges_that_are_none_are_refused() {
    let endpoint = Endpoint::start([]).await;
    let files = Memory::with("a\nb");
    for (start, end) in [(0, -1), (3, -1), (1, 3), (2, 1), (-2, 1)] {
        let edited = endpoint.editor().edit(&files, &action("x", start, end)).await.unwrap();
        let Observation::Error(error) = edited.observation else { panic!("{:?}", edited.observation) };
        let beginning = format!("Invalid range for editing: start={start}, end={end}, total lines=2. ");
        assert!(error.content.starts_with(&beginning), "{}", error.content);
    }
    assert_eq!((files.written(), endpoint.count()), (Vec::new(), 0));
}

#[tokio::test]
async fn a_range_that_is_too_long_is_refused_with_the_lines_that_look_like_the_draft() {
    let endpoint = Endpoint::start([code("x")]).await;
    let lines: Vec<String> =
        (1..=310).map(|line| format!("{} {line}", if line > 300 { "needle" } else { "-" })).collect();
    let files = Memory::with(&lines.join("\n"));
    let edited = endpoint.editor().edit(&files, &action("needle needle needle", 5, 306)).await.unwrap();
    let Observation::Error(error) = edited.observation else { panic!("{:?}", edited.observation) };
    let lines: Vec<_> = error.content.lines().collect();
    assert_eq!(
        lines[0],
        "[The range of lines to edit is too long: lines 5 to 306 are 302, and at most 300 can be edited at once.]"
    );
    assert!(lines[2].starts_with("[Lines 301 to 310, similarity 0."), "{}", lines[2]);
    assert_eq!((lines[3], lines[12]), ("301|needle 301", "310|needle 310"));
    assert_eq!(lines.iter().filter(|line| line.starts_with("[Lines ")).count(), 3);
    assert_eq!((edited.llm_metrics, endpoint.count()), (None, 0));
    let edited = endpoint.editor().edit(&files, &action("x", 5, 305)).await.unwrap();
    assert!(matches!(edited.observation, Observation::Edit(_)), "301 lines are not too many");
}

#[tokio::test]
async fn a_model_that_gives_no_block_three_times_has_failed() {
    let endpoint = Endpoint::start(vec![Reply::Say("I cannot".to_owned()); 3]).await;
    let files = Memory::with("a");
    let edited = endpoint.editor().edit(&files, &action("x", 1, 1)).await.unwrap();
    let reason = "Failed to get new file contents. Please try to reduce the number of edits and try again.";
    assert_eq!(edited.observation, error(reason));
    assert_eq!(edited.llm_metrics.unwrap()["accumulated_token_usage"]["prompt_tokens"], 21);
    assert_eq!((files.written(), endpoint.count()), (Vec::new(), 3));
}

#[tokio::test]
async fn a_block_in_the_third_answer_counts() {
    let say = |text: &str| Reply::Say(text.to_owned());
    let endpoint = Endpoint::start([say(""), say("<updated_code>x"), code("x")]).await;
    let files = Memory::with("a");
    let edited = endpoint.editor().edit(&files, &action("x", 1, 1)).await.unwrap();
    assert_eq!(edited.observation, change("a", "x", "@@ -1 +1 @@\n-a\n+x"));
}

#[tokio::test]
async fn what_the_linter_finds_is_corrected_by_a_draft() {
    let fix = Reply::Call(json!({"path": PATH, "content": "right", "start": 2, "end": 2}));
    let endpoint = Endpoint::start([code("WRONG"), fix, code("right")]).await;
    let files = Memory::with("a\nb\nc");
    let edited = endpoint.editor().edit(&files, &action("x", 2, 2)).await.unwrap();
    assert_eq!(edited.observation, change("a\nb\nc", "a\nright\nc", "@@ -2 +2 @@\n-b\n+right"));
    assert_eq!(files.written(), ["a\nWRONG\nc", "a\nright\nc"]);
    let requests = endpoint.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1]["tools"][0]["function"]["name"], "edit_file");
    let asked = requests[1]["messages"][1]["content"].as_str().unwrap();
    assert!(asked.contains("Line 2, Column 1: wrong") && asked.contains("<file>a\nWRONG\nc</file>"), "{asked}");
    assert_eq!(edited.llm_metrics.unwrap()["token_usages"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_endpoint_without_tools_corrects_the_whole_file() {
    let refused = Reply::Status(400, r#"{"error": {"message": "tools are not supported"}}"#);
    let endpoint = Endpoint::start([code("WRONG"), refused, code("a\nright")]).await;
    let files = Memory::with("a\nb");
    let edited = endpoint.editor().edit(&files, &action("x", 2, 2)).await.unwrap();
    assert_eq!(edited.observation, change("a\nb", "a\nright", "@@ -2 +2 @@\n-b\n+right"));
    assert_eq!(endpoint.requests()[2].get("tools"), None);
}

#[tokio::test]
async fn corrections_have_an_end_and_the_last_attempt_stays() {
    let whole = |number: usize| code(&format!("WRONG {number}"));
    let endpoint = Endpoint::start((0..9).map(whole)).await;
    let options = LlmOptions { correct_num: 2, ..endpoint.options() };
    let files = Memory::with("a");
    let edited = LlmEditor::new(options).unwrap().edit(&files, &action("x", 1, 1)).await.unwrap();
    let expected = format!(
        "[The edit of {PATH} is written, but it does not pass the linter. New problems: 1.]\n\
         - Line 1, Column 1: wrong\n[The change:]\n--- {PATH}\n+++ {PATH}\n@@ -1 +1 @@\n-a\n+WRONG 2\n\
         [Correct the file with another edit.]"
    );
    assert_eq!(edited.observation, error(expected));
    assert_eq!(files.written(), ["WRONG 0", "WRONG 1", "WRONG 2"]);
    assert_eq!(endpoint.count(), 3);
    assert!(edited.llm_metrics.is_some());
}

#[tokio::test]
async fn a_correction_that_cannot_be_used_leaves_the_report() {
    for (reply, requests) in [
        (Reply::Say("no idea".to_owned()), 2),
        (Reply::Call(json!({"path": "/etc/passwd", "content": "x"})), 2),
        (Reply::Call(json!({"path": PATH, "content": "x", "start": 99})), 2),
        (Reply::Status(401, "{}"), 2),
        (Reply::Status(500, "{}"), 3),
    ] {
        let endpoint = Endpoint::start([code("WRONG"), reply]).await;
        let files = Memory::with("a");
        let edited = endpoint.editor().edit(&files, &action("x", 1, 1)).await.unwrap();
        let Observation::Error(error) = edited.observation else { panic!("{:?}", edited.observation) };
        assert!(error.content.contains("- Line 1, Column 1: wrong\n"), "{}", error.content);
        assert_eq!((files.written(), endpoint.count()), (vec!["WRONG".to_owned()], requests));
    }
}

#[tokio::test]
async fn an_endpoint_that_is_busy_is_asked_again() {
    let busy = Reply::Status(429, "{}");
    let endpoint = Endpoint::start([busy, Reply::Status(503, "<html>"), code("x")]).await;
    let pauses = Pauses::default();
    let options = LlmOptions { pause: Arc::new(pauses.clone()), ..endpoint.options() };
    let files = Memory::with("a");
    let edited = LlmEditor::new(options).unwrap().edit(&files, &action("x", 1, 1)).await.unwrap();
    assert_eq!(edited.observation, change("a", "x", "@@ -1 +1 @@\n-a\n+x"));
    assert_eq!(*pauses.0.lock().unwrap(), [Duration::from_secs(8), Duration::from_secs(16)]);
}

#[tokio::test]
async fn an_endpoint_that_fails_is_an_error_without_the_key() {
    let echo = r#"{"error": {"message": "Incorrect key sk-hunter2\n for you"}}"#;
    for (reply, expected) in [
        (Reply::Status(401, echo), "the endpoint refuses the key (status 401): check `api_key` of [llm.draft_editor]"),
        (Reply::Status(400, echo), "the endpoint answered with status 400: Incorrect key ********** for you"),
        (Reply::Status(302, ""), "the endpoint answered with status 302"),
        (
            Reply::Status(500, r#"{"detail": "overloaded"}"#),
            "gave up after 3 attempts: the endpoint answered with status 500: overloaded",
        ),
        (Reply::Body("no JSON"), "the answer of the endpoint cannot be understood: expected ident at line 1 column 2"),
        (Reply::Body("{}"), "the answer of the endpoint cannot be understood: it has no message"),
    ] {
        let endpoint = Endpoint::start(vec![reply; 3]).await;
        let files = Memory::with("a");
        let failure = endpoint.editor().edit(&files, &action("x", 1, 1)).await.unwrap_err();
        assert_eq!(failure.to_string(), format!("the draft editor gave no answer: {expected}"));
        assert_eq!(files.written(), [""; 0]);
    }
}

#[tokio::test]
async fn an_endpoint_that_is_slow_or_gone_is_an_error() {
    let endpoint = Endpoint::start(vec![Reply::Never; 3]).await;
    let options = LlmOptions { timeout: Duration::from_millis(200), ..endpoint.options() };
    let files = Memory::with("a");
    let editor = LlmEditor::new(options).unwrap();
    let failure = editor.edit(&files, &action("x", 1, 1)).await.unwrap_err().to_string();
    let expected = "gave up after 3 attempts: the endpoint did not answer within 0 s";
    assert_eq!(failure, format!("the draft editor gave no answer: {expected}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let editor = LlmEditor::new(LlmOptions { base_url, ..endpoint.options() }).unwrap();
    let failure = editor.edit(&files, &action("x", 1, 1)).await.unwrap_err().to_string();
    assert!(failure.contains("gave up after 3 attempts: the endpoint cannot be reached: "), "{failure}");
    assert!(!failure.contains(KEY), "{failure}");
}

#[tokio::test]
async fn files_that_cannot_be_read_or_written_are_reported() {
    let endpoint = Endpoint::start([code("x")]).await;
    let editor = endpoint.editor();
    let failure = editor.edit(&Memory::with("unreadable"), &action("x", 1, 1)).await.unwrap_err();
    assert_eq!(failure.to_string(), format!("cannot read {PATH}: it is a directory"));
    let full = Memory { refuses_writes: true, ..Memory::with("a") };
    let edited = editor.edit(&full, &action("x", 1, 1)).await.unwrap();
    assert_eq!(edited.observation, error("the disk is full"));
    let full = Memory { refuses_writes: true, ..Memory::default() };
    let edited = editor.edit(&full, &action("x", 1, 1)).await.unwrap();
    assert_eq!(edited.observation, error("the disk is full"));
}

#[tokio::test]
async fn the_cost_of_a_session_adds_up() {
    let endpoint = Endpoint::start([code("x"), code("y")]).await;
    let options = LlmOptions {
        input_cost_per_token: Some(1.0),
        headers: vec![("X-Team".to_owned(), Secret::from("t"))],
        ..endpoint.options()
    };
    let editor = LlmEditor::new(options).unwrap();
    let files = Memory::with("a");
    editor.edit(&files, &action("x", 1, 1)).await.unwrap();
    let edited = editor.edit(&files, &action("y", 1, 1)).await.unwrap();
    assert_eq!(edited.llm_metrics, editor.metrics());
    assert_eq!(editor.metrics().unwrap()["accumulated_cost"], 14.0);
}

#[test]
fn options_that_cannot_be_sent_are_refused() {
    let options = |base_url: &str| LlmOptions::new(base_url.parse().unwrap(), "m");
    for (options, expected) in [
        (options("file:///v1"), "the URL of the endpoint has to begin with http:// or https:// and a host"),
        (
            LlmOptions { api_key: Some("a\nb".into()), ..options("http://h/v1") },
            "the header `authorization` has a name or a value that cannot be sent",
        ),
        (
            LlmOptions { headers: vec![("a b".to_owned(), "c".into())], ..options("http://h/v1") },
            "the header `a b` has a name or a value that cannot be sent",
        ),
    ] {
        assert_eq!(LlmEditor::new(options).unwrap_err().to_string(), expected);
    }
}
