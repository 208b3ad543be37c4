//! The routes of the sandbox as a whole.

use serde_json::{Value, json};

use super::{Paths, answer, operation, paths as pairs, refusal};

pub(super) fn paths() -> Paths {
    pairs([
        (
            "/v1/sandbox",
            json!({"get": operation(
                "Whether the sandbox is paused, and since when nobody has used it",
                "Requests about the state of the server are no use of it.",
                None,
                json!({"200": answer("How it is.", status())}),
            )}),
        ),
        (
            "/v1/sandbox/pause",
            json!({"post": operation(
                "Stop all processes where they are",
                "Of a sandbox that is paused it is no error. Until it is resumed all requests but those about its state \
                 are answered with status 503, and time limits of commands in flight go on.",
                None,
                json!({
                    "200": answer("It is paused.", status()),
                    "500": refusal("The processes do not stop; all of them go on."),
                    "501": refusal("The server does not own its processes."),
                }),
            )}),
        ),
        (
            "/v1/sandbox/resume",
            json!({"post": operation(
                "Let all processes go on",
                "Of a sandbox that is not paused it is no error. What was stopped before the pause stays stopped.",
                None,
                json!({"200": answer("It runs.", status())}),
            )}),
        ),
    ])
}

fn status() -> Value {
    json!({
        "type": "object",
        "properties": {
            "state": {"enum": ["running", "paused"]},
            "since_seconds": {"type": "number", "description": "Time since it began to do that."},
            "idle_seconds": {"type": "number", "description": "Time since it was used last; 0 while it is used."},
        },
    })
}
