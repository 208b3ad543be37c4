//! Routes of IPython kernels and of plugins.

use serde_json::{Value, json};

use super::{Paths, answer, object, operation, parameter, paths as pairs, refusal, typed};

pub(super) fn paths() -> Paths {
    pairs([
        ("/v1/kernels", json!({"get": list()})),
        ("/v1/kernels/{name}", json!({"delete": change("End a kernel", "200", "It has ended.")})),
        ("/v1/kernels/{name}/execute", json!({"post": execute()})),
        (
            "/v1/kernels/{name}/interrupt",
            json!({"post": change("Interrupt the cell that runs", "202", "It is being interrupted.")}),
        ),
        (
            "/v1/kernels/{name}/restart",
            json!({"post": change("End a kernel and start another one of its name", "202", "It is being started.")}),
        ),
        ("/v1/plugins", json!({"get": plugins()})),
        ("/v1/plugins/{name}/logs", json!({"get": logs()})),
    ])
}

fn name(of: &str) -> Value {
    parameter("path", "name", json!({"type": "string"}), of)
}

fn list() -> Value {
    let kernels = json!({"type": "array", "items": status()});
    operation(
        "List the IPython kernels",
        "The kernel `default` is the one of the action run_ipython.",
        None,
        json!({"200": answer("The kernels.", object([("kernels", kernels)]))}),
    )
}

fn execute() -> Value {
    let body = json!({
        "type": "object",
        "required": ["code"],
        "additionalProperties": false,
        "properties": {
            "code": {"type": "string"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds; none if it is absent."},
        },
    });
    let mut operation = operation(
        "Run a cell",
        "It runs after those that wait for the same kernel, which is started if there is none of this name. A client that \
         leaves does not end it. With `follow` the answer is a stream of the events `text`, `image` and, at last, `end` or \
         `failed`.",
        Some(body),
        json!({
            "200": answer("It ended.", result()),
            "400": refusal("The name, the query or the request is not what it must be."),
            "404": refusal("The sandbox has no plugin jupyter."),
            "429": refusal("Too many kernels run."),
            "503": refusal("The kernel cannot be started."),
        }),
    );
    operation["parameters"] = json!([
        name("Name of the kernel."),
        parameter("query", "follow", json!({"type": "boolean", "default": false}), "Answer with a stream of events."),
    ]);
    operation["responses"]["200"]["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
    operation
}

fn change(summary: &str, code: &str, description: &str) -> Value {
    let mut operation = operation(
        summary,
        "",
        None,
        json!({code: answer(description, status()), "404": refusal("There is no such kernel."),
            "503": refusal("The kernel cannot do it.")}),
    );
    operation["parameters"] = json!([name("Name of the kernel.")]);
    operation
}

fn status() -> Value {
    object([
        ("name", json!({"type": "string"})),
        ("state", json!({"enum": ["starting", "ready", "failed", "closed"]})),
        ("interpreter", json!({"type": "string"})),
        ("pid", json!({"type": "integer"})),
        ("reason", json!({"type": "string"})),
        ("remedy", json!({"type": "string"})),
    ])
}

fn result() -> Value {
    object([
        ("text", json!({"type": "string", "description": "What it showed, without colours."})),
        ("images", json!({"type": "array", "items": {"type": "string"}, "description": "As data: URLs."})),
        ("end", json!({"enum": ["completed", "raised", "timed-out", "died"]})),
        ("kernel_lost_before", json!({"type": "boolean"})),
        ("interpreter", json!({"type": "string"})),
    ])
}

fn plugins() -> Value {
    let plugin = object([
        ("name", json!({"type": "string"})),
        ("state", json!({"enum": ["off", "idle", "starting", "ready", "failed"]})),
        ("step", json!({"type": "string"})),
        ("reason", json!({"type": "string"})),
        ("remedy", json!({"type": "string"})),
        ("path", json!({"type": "string", "description": "Where its service is reached."})),
        ("token", json!({"type": "string", "description": "Lets a browser in, as `?tkn=`."})),
    ]);
    operation(
        "List the plugins",
        "",
        None,
        json!({"200": answer("The plugins.", object([("plugins", json!({"type": "array", "items": plugin}))]))}),
    )
}

fn logs() -> Value {
    let mut operation = operation(
        "Read what the service of a plugin printed last",
        "",
        None,
        json!({
            "200": typed("The last bytes.", "text/plain", json!({"type": "string"})),
            "404": refusal("There is no such plugin, or it has no service."),
        }),
    );
    operation["parameters"] = json!([name("Name of the plugin.")]);
    operation
}
