//! What a service does instead of answering as it should, and what it was asked.

use std::{collections::VecDeque, time::Duration};

use axum::{
    http::{HeaderMap, HeaderName, Method},
    response::Response,
};
use serde_json::Value;

use crate::answers::broken;

/// Requests that are remembered; older ones are forgotten.
const REMEMBERED: usize = 10_000;

/// What a service does instead of answering as it should.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It answers this status with these headers and this message, and does nothing.
    Status(u16, Vec<(String, String)>, String),
    /// It does what it was asked for, and its answer is lost.
    Lost,
    /// It does nothing, and the connection ends.
    Dropped,
    /// It never answers.
    Silent,
    /// It answers as it should, so much later.
    Late(Duration),
}

impl Fault {
    /// It answers this status with these headers and this message, and does nothing.
    pub fn status(status: u16, headers: &[(&str, &str)], message: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::Status(status, headers, message.to_owned())
    }

    /// What is answered instead of what was asked for, if anything is: after a while, at once or never. Refusals are made by
    /// `refusal`.
    ///
    /// # Panics
    ///
    /// A header is none.
    pub async fn instead(&self, refusal: impl FnOnce(u16, &str) -> Response) -> Option<Response> {
        match self {
            Self::Status(status, headers, message) => {
                let mut answer = refusal(*status, message);
                for (name, value) in headers {
                    let name: HeaderName = name.parse().unwrap();
                    answer.headers_mut().insert(name, value.parse().unwrap());
                }
                Some(answer)
            }
            Self::Dropped => Some(broken()),
            Self::Silent => std::future::pending().await,
            Self::Late(time) => {
                tokio::time::sleep(*time).await;
                None
            }
            Self::Lost => None,
        }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// Its path with the query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, if that is JSON.
    pub body: Value,
}

impl Seen {
    /// A header, empty where there is none.
    pub fn header(&self, name: &str) -> String {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    }
}

struct Expected {
    method: Method,
    part: String,
    fault: Fault,
}

/// Faults that are to come, and requests that came.
#[derive(Default)]
pub(crate) struct Wire {
    expected: VecDeque<Expected>,
    pub(crate) seen: Vec<Seen>,
}

impl Wire {
    pub(crate) fn fail(&mut self, method: Method, part: &str, fault: Fault) {
        self.expected.push_back(Expected { method, part: part.to_owned(), fault });
    }

    pub(crate) fn came(&mut self, seen: Seen) -> Option<Fault> {
        let fits = |expected: &Expected| expected.method == seen.method && seen.path.contains(&expected.part);
        let at = self.expected.iter().position(fits);
        if self.seen.len() == REMEMBERED {
            self.seen.remove(0);
        }
        self.seen.push(seen);
        self.expected.remove(at?).map(|expected| expected.fault)
    }
}
