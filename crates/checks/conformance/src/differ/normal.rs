//! Answers without what must differ between two servers.

use serde_json::{Value, json};

use crate::{
    bench::{Bench, members_of},
    server::Answer,
};

/// Members of the metadata that tell about the host and not about the server.
const HOST: [&str; 3] = ["username", "hostname", "py_interpreter_path"];

/// What a server tells about its host and about what ran before.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// Members of the metadata that differ from those of the other server.
    different: Vec<&'static str>,
    /// The last background job of the shell before the first operation.
    job: Option<Value>,
}

impl Host {
    /// What one server told at the beginning, beside what the other did.
    pub(super) fn of(one: &Value, other: &Value) -> Self {
        let member = |value: &Value, name: &str| value.pointer(&format!("/extras/metadata/{name}")).cloned();
        let different = HOST.into_iter().filter(|name| member(one, name) != member(other, name)).collect();
        Self { different, job: member(one, "pid") }
    }
}

/// The status and the body. A zip file becomes its members, a text that is no JSON itself.
pub(super) fn normal(answer: &Answer, bench: &Bench, host: &Host) -> Value {
    let is_zip = answer.header("content-type").is_some_and(|kind| kind == "application/zip");
    let mut body = if is_zip { zip_members(&answer.body) } else { answer.value() };
    if let Some(metadata) = body.pointer_mut("/extras/metadata").and_then(Value::as_object_mut) {
        for name in &host.different {
            if metadata.get(*name).is_some_and(|value| !value.is_null()) {
                metadata.insert((*name).to_owned(), json!("{host}"));
            }
        }
        if metadata.get("exit_code") != Some(&json!(-1)) && metadata.get("pid") == host.job.as_ref() {
            metadata.insert("pid".to_owned(), json!(-1));
        }
        if metadata.get("pid").and_then(Value::as_i64).is_some_and(|pid| pid > 0) {
            metadata.insert("pid".to_owned(), json!("{pid}"));
        }
        if let Some(content) = body.get("content").and_then(Value::as_str).map(without_pids) {
            body["content"] = Value::String(content);
        }
    }
    json!({"status": answer.status, "body": without_directories(body, bench)})
}

/// The members of a zip file: texts as they are, everything else by length and a checksum.
fn zip_members(zip: &[u8]) -> Value {
    match members_of(zip) {
        Err(reason) => json!({ "bad_zip": reason }),
        Ok(members) => members
            .into_iter()
            .map(|(name, content)| match String::from_utf8(content) {
                Ok(text) => (name, Value::String(text)),
                Err(error) => (name, json!({"bytes": error.as_bytes().len(), "sum": sum(error.as_bytes())})),
            })
            .collect(),
    }
}

/// FNV-1a, which tells contents apart that differ by accident.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `[1] 4711`, which the shell says about a job, without the process id.
fn without_pids(text: &str) -> String {
    let line = |line: &str| match line.split_once("] ") {
        Some((job, pid))
            if job.strip_prefix('[').is_some_and(|job| !job.is_empty() && job.bytes().all(|b| b.is_ascii_digit()))
                && !pid.is_empty()
                && pid.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{job}] {{pid}}")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Names of directories of this server alone are replaced, in keys, too.
fn without_directories(value: Value, bench: &Bench) -> Value {
    let text = |text: String| text.replace(&bench.dir, "{dir}").replace(&bench.scratch.workspace, "{workspace}");
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(elements) => elements.into_iter().map(|element| without_directories(element, bench)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (text(key), without_directories(member, bench))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_process_ids_of_jobs_are_replaced() {
        assert_eq!(
            without_pids("[1] 4711\n[12] 5\n[x] 5\n[1] 5 a\n[]] 5\na [1] 5"),
            "[1] {pid}\n[12] {pid}\n[x] 5\n[1] 5 a\n[]] 5\na [1] 5"
        );
    }
}
