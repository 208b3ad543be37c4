//! Interrupts (`swe-rex-api` 3).

use serde_json::json;

use super::calls::{ended, gives, in_session, interrupt, raised, run, run_with, says, talk};
use crate::{Check, check::Expect};

const SPEC: &str = "swe-rex-api 3";

pub(super) fn checks() -> Vec<Check> {
    vec![
        in_session("interrupts/idle", "a session that does nothing can be interrupted", SPEC)
            .send(interrupt(), ended(0))
            .send(run("echo after"), gives("after\n", 0)),
        in_session("interrupts/running", "an interrupt ends what runs", SPEC)
            .send(talk("echo begun; sleep 100", &["begun"]), ended(0))
            .send(interrupt(), ended(0))
            .send(run("echo after"), gives("after\n", 0)),
        in_session("interrupts/deaf", "what does not hear an interrupt is killed", SPEC)
            .send(
                run_with(
                    "sh -c 'trap \"\" INT; sleep 100'",
                    &json!({"is_interactive_command": true, "timeout": 0.5, "expect": ["never"]}),
                ),
                raised("CommandTimeoutError"),
            )
            .send(interrupt(), ended(0))
            .send(run("echo after"), Expect::status(200).at("/exit_code", 0).has("/output", "after\n")),
        in_session("interrupts/state", "an interrupt leaves the session's state alone", SPEC)
            .send(run("X=1; cd /"), gives("", 0))
            .send(run_with("sleep 100", &json!({"timeout": 0.5})), raised("CommandTimeoutError"))
            .send(interrupt(), ended(0))
            .send(run("echo $X; pwd"), gives("1\n/\n", 0)),
        Check::new("interrupts/missing", "a session that is not there cannot be interrupted", SPEC)
            .send(interrupt(), says("SessionDoesNotExistError", "session '{session}' does not exist")),
    ]
}
