//! What both servers are asked to do, one JSON object a line.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    ConformanceError,
    bench::Bench,
    server::{Answer, Request},
};

/// One operation. In all texts `{dir}` stands for the scratch directory on each server.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// `POST /execute_action` with this action.
    Action(Value),
    /// `POST /list_files`; none leaves the path out.
    ListFiles(Option<String>),
    /// `POST /upload_file`.
    UploadFile(UploadFile),
    /// `GET /download_files`.
    DownloadFiles(String),
}

/// An upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadFile {
    /// The directory.
    pub destination: String,
    /// The name of the file.
    pub filename: String,
    /// Its bytes, in base64.
    pub base64: String,
    /// It is a zip file to be unpacked.
    #[serde(default)]
    pub recursive: bool,
}

impl Operation {
    pub(crate) fn upload(destination: &str, filename: &str, content: &[u8], recursive: bool) -> Self {
        Self::UploadFile(UploadFile {
            destination: destination.to_owned(),
            filename: filename.to_owned(),
            base64: STANDARD.encode(content),
            recursive,
        })
    }

    /// The line of this operation: an action is the object itself, the others have one member with their path.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Action(action) => action.clone(),
            Self::ListFiles(path) => {
                json!({"list_files": path.as_ref().map_or(json!({}), |path| json!({"path": path}))})
            }
            Self::UploadFile(upload) => json!({"upload_file": upload}),
            Self::DownloadFiles(path) => json!({"download_files": {"path": path}}),
        }
    }

    /// Reads a line.
    pub fn from_value(value: Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Path {
            path: Option<String>,
        }
        let Value::Object(object) = &value else { return Err("it is no object".to_owned()) };
        if object.contains_key("action") || object.contains_key("observation") {
            return Ok(Self::Action(value));
        }
        let mut members: Map<String, Value> = object.clone();
        let parse = |error: serde_json::Error| error.to_string();
        if let Some(body) = members.remove("list_files") {
            return Ok(Self::ListFiles(serde_json::from_value::<Path>(body).map_err(parse)?.path));
        }
        if let Some(body) = members.remove("upload_file") {
            let upload: UploadFile = serde_json::from_value(body).map_err(parse)?;
            STANDARD.decode(&upload.base64).map_err(|error| error.to_string())?;
            return Ok(Self::UploadFile(upload));
        }
        if let Some(body) = members.remove("download_files") {
            let path = serde_json::from_value::<Path>(body).map_err(parse)?.path;
            return path.map(Self::DownloadFiles).ok_or_else(|| "download_files has no path".to_owned());
        }
        Err("it has none of action, list_files, upload_file and download_files".to_owned())
    }

    /// Whether it is a command, which the reference needs a rest after.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Action(action) if action["action"] == "run")
    }

    /// Asks one server.
    pub(crate) async fn ask(&self, bench: &Bench) -> Result<Answer, ConformanceError> {
        match self {
            Self::Action(action) => bench.server().execute(&bench.fill_value(action)).await,
            Self::ListFiles(path) => {
                let body = path.as_ref().map_or(json!({}), |path| json!({ "path": bench.fill(path) }));
                bench.server().send(&Request::post("/list_files", body.to_string())).await
            }
            Self::UploadFile(upload) => {
                let content = STANDARD.decode(&upload.base64).unwrap_or_default();
                let request = Request::upload(&bench.fill(&upload.destination), "file", &upload.filename, &content);
                bench.server().send(&request.query("recursive", upload.recursive.to_string())).await
            }
            Self::DownloadFiles(path) => {
                bench.server().send(&Request::get("/download_files").query("path", bench.fill(path))).await
            }
        }
    }
}

/// Reads operations, one a line; blank lines and lines that begin with `#` are passed over.
pub fn read_operations(text: &str) -> Result<Vec<Operation>, ConformanceError> {
    let mut operations = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let operation = serde_json::from_str(line).map_err(|error| error.to_string()).and_then(Operation::from_value);
        operations.push(operation.map_err(|reason| ConformanceError::Operation { line: at + 1, reason })?);
    }
    Ok(operations)
}

/// Writes operations, one a line.
pub fn write_operations(operations: &[Operation]) -> String {
    let mut text = String::new();
    for operation in operations {
        text.push_str(&operation.to_value().to_string());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_were_written() {
        let operations = vec![
            Operation::Action(json!({"action": "run", "args": {"command": "echo {dir}"}})),
            Operation::ListFiles(None),
            Operation::ListFiles(Some("{dir}/a".into())),
            Operation::upload("{dir}", "a.bin", b"\x00\xff", true),
            Operation::DownloadFiles("{dir}".into()),
        ];
        assert_eq!(read_operations(&format!("# saved\n\n{}", write_operations(&operations))).unwrap(), operations);
    }

    #[test]
    fn a_line_that_is_no_operation_is_named() {
        for (line, reason) in [
            ("[1]", "it is no object"),
            ("{}", "it has none of action, list_files, upload_file and download_files"),
            (r#"{"download_files": {}}"#, "download_files has no path"),
        ] {
            let text = format!("{{\"list_files\": {{}}}}\n{line}");
            let error = read_operations(&text).unwrap_err();
            assert_eq!(error.to_string(), format!("line 2 is no operation: {reason}"));
        }
    }
}
