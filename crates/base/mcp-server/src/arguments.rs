//! Arguments of a call, and what a model got wrong about them.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{computer::Failure, schema::LONGEST_WAIT, tool::Tool};

/// Reads the arguments of a call.
pub(crate) fn parse<T: DeserializeOwned>(tool: Tool, arguments: JsonObject) -> Result<T, Failure> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let place = match error.path().to_string().as_str() {
            "." | "?" => String::new(),
            place => format!("{place}: "),
        };
        Failure::new(format!("the arguments of {} are wrong: {place}{}", tool.name(), error.inner()))
    })
}

/// How long a call waits.
pub(crate) fn wait(seconds: Option<f64>, default: f64) -> Result<Duration, Failure> {
    let seconds = seconds.unwrap_or(default);
    if !(0.0..=LONGEST_WAIT).contains(&seconds) {
        return Err(Failure::new(format!("wait must be between 0 and {LONGEST_WAIT} seconds, and is {seconds}")));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A path as the sandbox has it.
pub(crate) fn absolute(directory: &str, path: &str) -> Result<String, Failure> {
    if path.is_empty() || path.contains('\0') {
        return Err(Failure::new(format!("{path:?} is no path")));
    }
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    Ok(format!("{}/{}", directory.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_starts_in_the_workspace() {
        for (path, expected) in [("a", "/w/a"), ("./a/b", "/w/a/b"), ("/etc", "/etc"), ("..", "/w/..")] {
            assert_eq!(absolute("/w", path).unwrap(), expected);
        }
        assert_eq!(absolute("/", "a").unwrap(), "/a");
        assert!(absolute("/w", "").is_err() && absolute("/w", "a\0").is_err());
    }

    #[test]
    fn a_wait_that_is_none_is_refused() {
        assert_eq!(wait(None, 2.0).unwrap(), Duration::from_secs(2));
        assert_eq!(wait(Some(0.0), 2.0).unwrap(), Duration::ZERO);
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 600.1] {
            assert!(wait(Some(wrong), 2.0).is_err(), "{wrong}");
        }
    }
}
