//! What the service has beside what the core does, and a call that was understood so far.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{body::Bytes, response::Response};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::{grpc::refused, proto::Message};
use crate::{Execution, Sandbox, Shared, World};

/// How long a token lasts that is given out.
const TOKEN: Duration = Duration::from_mins(20);

/// A sandbox of Modal.
pub(super) type Made = Sandbox<More>;

/// What Modal knows of a sandbox beside what the core does.
#[derive(Default)]
pub struct More {
    pub(super) app: String,
    pub(super) name: String,
    pub(super) task: String,
    /// What it was made from.
    pub(super) definition: Message,
    /// Its variables.
    pub(super) environment: BTreeMap<String, String>,
    /// How it has ended: status, exit code, words.
    pub(super) result: Option<(u64, i32, String)>,
    /// The entry point, once it was started; its output stays.
    pub(super) entry: Option<Arc<Execution>>,
    /// Programs in it by id.
    pub(super) execs: BTreeMap<String, Arc<Exec>>,
    pub(super) began: Option<SystemTime>,
}

/// A program that was started in a sandbox.
pub(super) struct Exec {
    pub(super) execution: Execution,
    /// Bytes that were written to its standard input.
    pub(super) written: AtomicU64,
}

/// What Modal has beside sandboxes.
#[derive(Default)]
pub struct Modal {
    /// Ids of apps by environment and name.
    pub(super) apps: BTreeMap<(String, String), String>,
    /// Files by the SHA-256 of their content.
    pub(super) files: BTreeMap<String, Bytes>,
    pub(super) blobs: BTreeMap<String, Bytes>,
    /// Mounts: path, digest, mode.
    pub(super) mounts: BTreeMap<String, Vec<(String, String, u32)>>,
    pub(super) images: BTreeMap<String, Image>,
    /// Variables that are kept, as sandboxes of the first generation have theirs.
    pub(super) secrets: BTreeMap<String, BTreeMap<String, String>>,
    /// Answers by the name of their call.
    pub(super) wishes: HashMap<String, Message>,
    /// When the tokens end that were given out.
    pub(super) tokens: BTreeMap<String, SystemTime>,
    /// The version of what builds images; empty for one that is taken.
    pub builder: String,
}

/// An image.
#[derive(Clone, Default)]
pub(super) struct Image {
    /// What it is built from.
    pub(super) commands: Vec<String>,
    pub(super) is_built: bool,
    /// The files of a snapshot.
    pub(super) layer: Option<PathBuf>,
}

impl Modal {
    /// How many files were stored, and their lengths.
    pub fn files(&self) -> Vec<usize> {
        self.files.values().map(Bytes::len).collect()
    }

    /// How many images were kept of the files of sandboxes.
    pub fn snapshots(&self) -> usize {
        self.images.values().filter(|image| image.layer.is_some()).count()
    }

    /// What images were built from.
    pub fn images(&self) -> Vec<String> {
        self.images.values().filter(|image| image.layer.is_none()).map(|image| image.commands.join("\n")).collect()
    }

    /// No token that was given out is good any more.
    pub fn forget_tokens(&mut self) {
        self.tokens.clear();
    }
}

/// A call that was understood so far.
pub(super) struct Call {
    pub(super) world: Shared<Modal>,
    /// What is asked.
    pub(super) method: String,
    /// With what; several where a client sends a stream.
    pub(super) messages: Vec<Message>,
    /// Its name, which is the same when it is sent again.
    pub(super) key: String,
}

impl Call {
    /// The first message.
    pub(super) fn wish(&self) -> Message {
        self.messages.first().cloned().unwrap_or_default()
    }
}

/// A sandbox by its id, whether it has ended or not.
#[expect(clippy::result_large_err, reason = "an answer is what is wanted")]
pub(super) fn sandbox<'a>(world: &'a mut World<Modal>, id: &str) -> Result<&'a mut Made, Response> {
    world.sandboxes.get_mut(id).ok_or_else(|| refused(5, &format!("Sandbox with ID {id} not found")))
}

/// A time as the service writes it.
pub(super) fn seconds(time: std::time::SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A token that lasts for a while, for this.
pub(super) fn token(world: &mut World<Modal>, of: &str) -> String {
    let ends = world.now() + TOKEN;
    let ends_at = ends.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let claims = json!({"exp": ends_at, "sub": of, "n": World::<Modal>::next("")}).to_string();
    let token = format!("{}.{}.x", URL_SAFE_NO_PAD.encode("{}"), URL_SAFE_NO_PAD.encode(claims));
    world.face.tokens.insert(token.clone(), ends);
    token
}

/// Whether a token was given out and still lasts.
pub(super) fn is_good(world: &World<Modal>, token: &str) -> bool {
    world.face.tokens.get(token).is_some_and(|ends| *ends > world.now())
}
