//! What the service has beside what the core does, and a request that was understood so far.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use axum::response::Response;
use serde_json::Value;

use crate::{
    Execution, Sandbox, Shared, World,
    answers::{refusal, told},
};

/// A sandbox of Runloop.
pub type Devbox = Sandbox<More>;

/// What Runloop knows of a sandbox beside what the core does.
#[derive(Default)]
pub struct More {
    /// What was asked for.
    pub(super) wish: Value,
    /// States that it had, with their times in milliseconds.
    pub(super) transitions: Vec<(String, u64)>,
    /// When it was last of use.
    pub(super) used: Option<SystemTime>,
    pub(super) tunnel: Option<Value>,
    pub(super) failure: Option<&'static str>,
    pub(super) shutdown: Option<&'static str>,
    pub(super) ended: Option<SystemTime>,
    /// Programs by id.
    pub(super) executions: BTreeMap<String, Arc<Execution>>,
    /// What the platform has written of it.
    pub(super) logs: Vec<Value>,
}

/// What Runloop has beside sandboxes.
#[derive(Default)]
pub struct Runloop {
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    pub(super) blueprints: BTreeMap<String, Value>,
    pub(super) policies: BTreeMap<String, Value>,
    /// Answers by the id of their request.
    pub(super) wishes: HashMap<String, Value>,
}

pub(super) struct Object {
    pub(super) view: Value,
    pub(super) content: Vec<u8>,
}

pub(super) struct Snapshot {
    pub(super) view: Value,
    pub(super) layer: PathBuf,
}

impl Runloop {
    /// The programs that were stored, by name, with their lengths.
    pub fn objects(&self) -> Vec<(String, usize)> {
        let name = |object: &Object| object.view["name"].as_str().unwrap_or_default().to_owned();
        self.objects.values().map(|object| (name(object), object.content.len())).collect()
    }

    /// Names of the snapshots.
    pub fn snapshots(&self) -> Vec<String> {
        self.snapshots.values().map(|it| it.view["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Names of the network policies.
    pub fn policies(&self) -> Vec<String> {
        self.policies.values().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Names of the blueprints.
    pub fn blueprints(&self) -> Vec<String> {
        self.blueprints.values().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// A request that was understood so far.
pub(super) struct Call {
    pub(super) world: Shared<Runloop>,
    pub(super) query: Vec<(String, String)>,
    pub(super) json: Value,
    /// Its id, which is the same when it is sent again.
    pub(super) request: Option<String>,
}

impl Call {
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The answer of something that was made, now and when the same is asked again.
    pub(super) fn made(&self, world: &mut World<Runloop>, view: Value) -> Response {
        let answer = told(200, &view);
        if let Some(request) = &self.request {
            world.face.wishes.insert(request.clone(), view);
        }
        answer
    }

    /// A page of a list, and whether there is more: members in their order, after the one that was named.
    #[expect(clippy::result_large_err, reason = "an answer is what is wanted")]
    pub(super) fn page(&self, page: usize, all: Vec<Value>) -> Result<(Vec<Value>, bool), Response> {
        let begin = match self.of("starting_after") {
            None | Some("") => 0,
            Some(id) => match all.iter().position(|one| one["id"] == id) {
                Some(at) => at + 1,
                None => return Err(refusal(400, "starting_after names nothing")),
            },
        };
        let limit = self.of("limit").map_or(Some(20), |limit| limit.parse().ok()).unwrap_or_default();
        if !(1..=5000).contains(&limit) {
            return Err(refusal(400, "limit must be between 1 and 5000"));
        }
        let limit = limit.min(page);
        let more = all.len() > begin + limit;
        Ok((all.into_iter().skip(begin).take(limit).collect(), more))
    }
}
