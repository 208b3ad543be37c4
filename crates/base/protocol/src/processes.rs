//! Bodies of processes (`/v1/processes`): programs with pipes instead of a terminal, so that standard output and standard
//! error stay apart and their input can be closed.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessRequest {
    /// Program and arguments.
    #[schema(min_items = 1, example = json!(["ls", "-l"]))]
    pub argv: Vec<String>,
    /// Directory to start in, as an absolute path; where the sandbox's tools start if it is absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub cwd: Option<PathBuf>,
    /// Variables added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// It gets what is sent as its input; without this its input is empty.
    #[serde(default)]
    pub stdin: bool,
    /// A name that the caller gives it, which listings show. Several may have the same.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub tag: Option<String>,
    /// Seconds after which it and everything that it started are ended.
    #[serde(default)]
    #[schema(exclusive_minimum = 0)]
    pub timeout: Option<f64>,
}

/// A process as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessStatus {
    /// Its id, which no other process of the sandbox has had.
    pub id: String,
    /// Process id of the program.
    pub pid: u32,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Directory that it was started in.
    #[schema(value_type = String)]
    pub cwd: PathBuf,
    /// The name that the caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ProcessEnd>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessEnd {
    /// Exit status; absent for one that a signal ended, and where it is not known.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Number of the signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// Answer to `GET /v1/processes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    /// Name of the user that they work as.
    pub user: String,
    /// Directory that tools start in.
    pub directory: String,
    /// Those that run, and the latest that ended, in the order of their start.
    pub processes: Vec<ProcessStatus>,
}

/// A signal for a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSignal {
    /// Its name without `SIG`.
    #[schema(example = "TERM")]
    pub name: String,
    /// Everything that the program started gets it, too, but for what made a process group of its own.
    #[serde(default)]
    pub group: bool,
}

/// From where on the output of a process is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessFrom {
    /// From what is kept on.
    #[default]
    Start,
    /// From what comes now on.
    Now,
}

/// Which of its two streams a process wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something that a process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It wrote something.
    Output {
        /// Where.
        stream: ProcessStream,
        /// What.
        bytes: Vec<u8>,
    },
    /// So many bytes came before whoever follows, or faster than they were taken, and are not kept.
    Lost(u64),
    /// It ended. Nothing follows.
    Ended(ProcessEnd),
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_request_needs_words_alone_and_its_mistakes_are_refused() {
        let request: ProcessRequest = from_value(json!({"argv": ["ls"]})).unwrap();
        assert_eq!(request, ProcessRequest { argv: vec!["ls".to_owned()], ..ProcessRequest::default() });
        for wrong in [json!({}), json!({"argv": "ls"}), json!({"argv": [], "shell": true})] {
            assert!(from_value::<ProcessRequest>(wrong.clone()).is_err(), "{wrong}");
        }
        let end = ProcessEnd { exit_code: None, signal: Some(9), timed_out: false };
        assert_eq!(to_value(end).unwrap(), json!({"exit_code": null, "signal": 9}));
    }
}
