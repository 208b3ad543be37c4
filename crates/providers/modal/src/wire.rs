//! The messages of the service (`hosted-apis` 5.2 to 5.4), with the fields that are used here. Others are passed over.

#![expect(clippy::struct_field_names, reason = "fields are called as the service calls them")]

use std::collections::HashMap;

use prost::Message;

/// A message without fields.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Empty {}

/// A message with a text as its first field: an id that is asked about, or a token.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

/// Why a call has failed, in full.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RichStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<AnyMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyMessage {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// The call is to be repeated after this time.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct RetryPolicy {
    #[prost(float, tag = "1")]
    pub(crate) retry_after_secs: f32,
}

/// How something has ended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Outcome {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
    #[prost(string, tag = "2")]
    pub(crate) exception: String,
    #[prost(int32, tag = "3")]
    pub(crate) exitcode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppGetOrCreate {
    #[prost(string, tag = "1")]
    pub(crate) app_name: String,
    #[prost(string, tag = "2")]
    pub(crate) environment_name: String,
    /// 1: made if it is missing.
    #[prost(int32, tag = "3")]
    pub(crate) object_creation_type: i32,
}

/// The environment that was asked for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Environment {
    #[prost(string, tag = "1")]
    pub(crate) environment_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<EnvironmentMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnvironmentMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) settings: Option<EnvironmentSettings>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnvironmentSettings {
    #[prost(string, tag = "1")]
    pub(crate) image_builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageGetOrCreate {
    #[prost(message, optional, tag = "2")]
    pub(crate) image: Option<Image>,
    #[prost(string, tag = "4")]
    pub(crate) app_id: String,
    /// 1: that of the workspace.
    #[prost(int32, tag = "8")]
    pub(crate) namespace: i32,
    #[prost(string, tag = "9")]
    pub(crate) builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(string, repeated, tag = "6")]
    pub(crate) dockerfile_commands: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageMade {
    #[prost(string, tag = "1")]
    pub(crate) image_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageJoin {
    #[prost(string, tag = "1")]
    pub(crate) image_id: String,
    #[prost(float, tag = "2")]
    pub(crate) timeout: f32,
    #[prost(string, tag = "3")]
    pub(crate) last_entry_id: String,
}

/// How far an image is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageJoined {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<Outcome>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) task_logs: Vec<Log>,
    #[prost(string, tag = "3")]
    pub(crate) entry_id: String,
    #[prost(bool, tag = "4")]
    pub(crate) eof: bool,
}

/// A piece of what was written.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Log {
    #[prost(string, tag = "1")]
    pub(crate) data: String,
    #[prost(double, tag = "7")]
    pub(crate) timestamp: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Create {
    #[prost(string, tag = "1")]
    pub(crate) app_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) definition: Option<Definition>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) tags: Vec<Tag>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) secret_sources: Vec<SecretSource>,
}

/// What a sandbox is made from.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Definition {
    #[prost(string, repeated, tag = "1")]
    pub(crate) entrypoint_args: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) mount_ids: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) image_id: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) resources: Option<Resources>,
    #[prost(uint32, tag = "7")]
    pub(crate) timeout_secs: u32,
    #[prost(message, optional, tag = "17")]
    pub(crate) scheduler_placement: Option<Placement>,
    #[prost(message, optional, tag = "20")]
    pub(crate) open_ports: Option<Ports>,
    #[prost(message, optional, tag = "22")]
    pub(crate) network_access: Option<Network>,
    #[prost(string, tag = "26")]
    pub(crate) cloud_provider_str: String,
    #[prost(string, optional, tag = "28")]
    pub(crate) runtime: Option<String>,
    #[prost(string, optional, tag = "30")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "38")]
    pub(crate) readiness_probe: Option<Probe>,
}

/// What it may use: in MiB and in thousandths of a processor; 0 for the service's own.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Resources {
    #[prost(uint32, tag = "2")]
    pub(crate) memory_mb: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) milli_cpu: u32,
    #[prost(uint32, tag = "5")]
    pub(crate) memory_mb_max: u32,
    #[prost(uint32, tag = "7")]
    pub(crate) milli_cpu_max: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Placement {
    #[prost(string, repeated, tag = "4")]
    pub(crate) regions: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ports {
    #[prost(message, repeated, tag = "1")]
    pub(crate) ports: Vec<Port>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Port {
    #[prost(uint32, tag = "1")]
    pub(crate) port: u32,
    #[prost(bool, tag = "2")]
    pub(crate) unencrypted: bool,
}

/// 1 open, 2 closed, 3 to what is listed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Network {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(string, repeated, tag = "2")]
    pub(crate) allowed_cidrs: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) allowed_domains: Vec<String>,
}

/// It is ready when this port takes connections.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Probe {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) tcp_port: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) interval_ms: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tag {
    #[prost(string, tag = "1")]
    pub(crate) tag_name: String,
    #[prost(string, tag = "2")]
    pub(crate) tag_value: String,
}

/// Variables. Nobody can read them from the service. They are never shown, so there is no `Debug` of the values.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct SecretSource {
    #[prost(message, optional, tag = "2")]
    pub(crate) env: Option<Variables>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct Variables {
    #[prost(map = "string, string", tag = "1")]
    pub(crate) contents: HashMap<String, String>,
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretSource").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variables").field("count", &self.contents.len()).finish_non_exhaustive()
    }
}

/// A sandbox that was made, and how its router is reached.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Created {
    #[prost(string, tag = "1")]
    pub(crate) sandbox_id: String,
    #[prost(string, tag = "3")]
    pub(crate) task_id: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) access: Option<Access>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tunnel {
    #[prost(string, tag = "1")]
    pub(crate) host: String,
    #[prost(uint32, tag = "2")]
    pub(crate) port: u32,
    #[prost(uint32, tag = "5")]
    pub(crate) container_port: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromName {
    #[prost(string, tag = "1")]
    pub(crate) sandbox_name: String,
    #[prost(string, tag = "2")]
    pub(crate) environment_name: String,
    #[prost(string, tag = "3")]
    pub(crate) app_name: String,
    #[prost(bool, tag = "4")]
    pub(crate) include_terminated: bool,
}

/// Asks about a sandbox (or a task), and waits so long for what is asked about.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Within {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(float, tag = "2")]
    pub(crate) timeout: f32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Waited {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct List {
    #[prost(string, tag = "1")]
    pub(crate) app_id: String,
    #[prost(double, tag = "2")]
    pub(crate) before_timestamp: f64,
    #[prost(string, tag = "3")]
    pub(crate) environment_name: String,
    #[prost(bool, tag = "4")]
    pub(crate) include_finished: bool,
    #[prost(message, repeated, tag = "5")]
    pub(crate) tags: Vec<Tag>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Listed {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sandboxes: Vec<Info>,
}

/// A sandbox of a list.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Info {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(double, tag = "3")]
    pub(crate) created_at: f64,
    #[prost(message, optional, tag = "4")]
    pub(crate) task_info: Option<TaskInfo>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) tags: Vec<Tag>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) tunnels: Vec<Tunnel>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskInfo {
    #[prost(message, optional, tag = "4")]
    pub(crate) result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tunnels {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<Outcome>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) tunnels: Vec<Tunnel>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTask {
    #[prost(string, tag = "1")]
    pub(crate) sandbox_id: String,
    #[prost(float, optional, tag = "2")]
    pub(crate) timeout: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Task {
    #[prost(string, optional, tag = "1")]
    pub(crate) task_id: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tags {
    #[prost(message, repeated, tag = "1")]
    pub(crate) tags: Vec<Tag>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SetTags {
    #[prost(string, tag = "2")]
    pub(crate) sandbox_id: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) tags: Vec<Tag>,
}

/// How the router of a sandbox is reached.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct Access {
    #[prost(string, tag = "1")]
    pub(crate) jwt: String,
    #[prost(string, tag = "2")]
    pub(crate) url: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FetchLogs {
    #[prost(string, tag = "1")]
    pub(crate) app_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) since: Option<Time>,
    #[prost(message, optional, tag = "3")]
    pub(crate) until: Option<Time>,
    #[prost(uint32, tag = "4")]
    pub(crate) limit: u32,
    #[prost(string, tag = "9")]
    pub(crate) sandbox_id: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Time {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Fetched {
    #[prost(message, repeated, tag = "1")]
    pub(crate) batches: Vec<Batch>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Batch {
    #[prost(message, repeated, tag = "2")]
    pub(crate) items: Vec<Log>,
}

/// Texts: digests that are asked about, and those that are missing.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Texts {
    #[prost(string, repeated, tag = "1")]
    pub(crate) texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlobCreate {
    #[prost(string, tag = "1")]
    pub(crate) content_md5: String,
    #[prost(string, tag = "2")]
    pub(crate) content_sha256_base64: String,
    #[prost(int64, tag = "3")]
    pub(crate) content_length: i64,
}

/// Where a blob is to be brought. Its URLs are rights by themselves.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct Blob {
    #[prost(string, optional, tag = "1")]
    pub(crate) upload_url: Option<String>,
    #[prost(string, tag = "2")]
    pub(crate) blob_id: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) blob_ids: Vec<String>,
    #[prost(message, optional, tag = "5")]
    pub(crate) upload_urls: Option<Texts>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blob").field("blob_id", &self.blob_id).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutFile {
    #[prost(string, tag = "2")]
    pub(crate) sha256_hex: String,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) data: Option<Vec<u8>>,
    #[prost(string, optional, tag = "5")]
    pub(crate) data_blob_id: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct FileIsThere {
    #[prost(bool, tag = "2")]
    pub(crate) exists: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MountGetOrCreate {
    /// 4: a nameless one of an app.
    #[prost(int32, tag = "4")]
    pub(crate) object_creation_type: i32,
    #[prost(message, repeated, tag = "5")]
    pub(crate) files: Vec<MountFile>,
    #[prost(string, tag = "6")]
    pub(crate) app_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MountFile {
    #[prost(string, tag = "1")]
    pub(crate) filename: String,
    #[prost(string, tag = "3")]
    pub(crate) sha256_hex: String,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) size: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    pub(crate) mode: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StdioRead {
    #[prost(string, tag = "1")]
    pub(crate) task_id: String,
    #[prost(uint64, tag = "2")]
    pub(crate) offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StdioPiece {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(crate) starting_offset: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Ready {
    #[prost(double, tag = "1")]
    pub(crate) ready_at: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Snapshot {
    #[prost(string, tag = "1")]
    pub(crate) task_id: String,
    #[prost(string, tag = "2")]
    pub(crate) snapshot_id: String,
    #[prost(int64, optional, tag = "3")]
    pub(crate) ttl_seconds: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_written_for_people_has_a_secret() {
        let contents = [("S".to_owned(), "hunter2".to_owned())].into();
        let create =
            Create { secret_sources: vec![SecretSource { env: Some(Variables { contents }) }], ..Create::default() };
        let access = Access { jwt: "hunter2".to_owned(), url: String::new() };
        let blob = Blob { upload_url: Some("hunter2".to_owned()), ..Blob::default() };
        assert!(!format!("{create:?} {access:?} {blob:?}").contains("hunter2"));
    }
}
