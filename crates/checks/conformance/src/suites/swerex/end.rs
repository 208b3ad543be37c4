//! The end of all sessions (`swe-rex-api` 2).

use serde_json::json;

use super::calls::{in_session, printed, run, shell};
use crate::{Check, check::Expect, server::Request};

pub(super) fn checks() -> Vec<Check> {
    vec![
        in_session("close/all", "all sessions are closed, and the server goes on", "swe-rex-api 2")
            .send(run("true"), Expect::status(200))
            .send(Request::post("/close", ""), Expect::whole(json!({})))
            // What comes of the names of closed sessions is another matter here and there.
            .send(run("echo"), Expect::status(511))
            .send(Request::get("/is_alive"), Expect::status(200).at("/is_alive", true))
            .send(shell("echo on"), printed("on\n", "", 0)),
    ]
}
