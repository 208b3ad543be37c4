//! The OpenAPI document, one function for each group of routes.
#![expect(clippy::needless_pass_by_value, reason = "the pieces of the document are built where they are used")]

mod files;
mod kernels;
mod sandbox;
mod terminals;
mod transfers;

use serde_json::{Map, Value, json};

/// The whole document.
pub(super) fn document(version: &str) -> Value {
    let mut paths = Map::new();
    for group in [v0(), v1(), terminals::paths(), transfers::paths(), health(), docs()] {
        paths.extend(group);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gloveport",
            "version": version,
            "description": "A sandbox for an agent. The routes without a prefix are those of OpenHands 0.62; /v1 is the \
                native API. If the server has a session key, every route but /alive and /server_info needs it in the \
                header X-Session-API-Key, and answers 403 without it. A WebSocket of a browser, which cannot set headers, \
                offers it as a protocol instead: gloveport.key. and the key in base64url without padding, beside \
                gloveport.terminal.v1.",
        },
        "security": [{"sessionKey": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "sessionKey": {"type": "apiKey", "in": "header", "name": "X-Session-API-Key"},
            },
            "schemas": schemas(),
        },
    })
}

type Paths = Map<String, Value>;

/// A group of paths from pairs of a path and its methods.
fn paths<const N: usize>(entries: [(&str, Value); N]) -> Paths {
    entries.into_iter().map(|(path, methods)| (path.to_owned(), methods)).collect()
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// An operation: summary, description, body and answers. All that have a body share the answers about it.
fn operation(summary: &str, description: &str, body: Option<Value>, answers: Value) -> Value {
    let mut operation = json!({"summary": summary, "description": description, "responses": answers});
    if let Some(schema) = body {
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        operation["responses"]["408"] = failure("The body did not arrive in time.");
        operation["responses"]["413"] = failure("The body is too large.");
    }
    operation["responses"]["403"] = failure("The session key is missing or wrong.");
    operation
}

/// An operation that needs no key.
fn open(mut operation: Value) -> Value {
    operation["security"] = json!([]);
    if let Some(answers) = operation["responses"].as_object_mut() {
        answers.shift_remove("403");
    }
    operation
}

fn answer(description: &str, schema: Value) -> Value {
    typed(description, "application/json", schema)
}

fn typed(description: &str, content_type: &str, schema: Value) -> Value {
    json!({"description": description, "content": {content_type: {"schema": schema}}})
}

/// An error of the OpenHands form.
fn failure(description: &str) -> Value {
    answer(description, reference("Detail"))
}

/// An error of the native form.
fn refusal(description: &str) -> Value {
    answer(description, reference("Error"))
}

fn parameter(place: &str, name: &str, schema: Value, description: &str) -> Value {
    json!({"in": place, "name": name, "required": place == "path", "schema": schema, "description": description})
}

fn id() -> Value {
    parameter("path", "id", json!({"type": "string"}), "Id of the command.")
}

fn v0() -> Paths {
    let action = json!({
        "type": "object",
        "required": ["action"],
        "properties": {"action": {"type": "object", "description": "A serialised action.", "required": ["action"]}},
    });
    let servers = json!({"type": "array", "items": reference("McpServer")});
    paths([
        (
            "/alive",
            json!({"get": open(operation(
                "Whether the server is ready",
                "A server that answers is ready.",
                None,
                json!({"200": answer("It is.", reference("Alive"))}),
            ))}),
        ),
        (
            "/server_info",
            json!({"get": open(operation(
                "What the server's process uses",
                "Takes a tenth of a second, the length of the CPU sample.",
                None,
                json!({"200": answer("The numbers.", reference("ServerInfo"))}),
            ))}),
        ),
        (
            "/execute_action",
            json!({"post": operation(
                "Execute an action",
                "Answers when there is an observation. A client that goes away does not end the action: a run action with \
                 an empty command fetches the rest of the output.",
                Some(action),
                json!({
                    "200": answer("The observation.", json!({"type": "object", "required": ["observation", "content"]})),
                    "422": answer("The body does not have the form.", reference("ValidationError")),
                    "500": failure("The action is unknown or wrong, or can not be executed."),
                }),
            )}),
        ),
        (
            "/list_files",
            json!({"post": operation(
                "List a directory",
                "Directories first, with a trailing slash. A directory that can not be listed has no entries.",
                Some(json!({"type": "object", "properties": {"path": {"type": ["string", "null"]}}})),
                json!({
                    "200": answer("The names.", json!({"type": "array", "items": {"type": "string"}})),
                    "500": failure("The body does not have the form."),
                }),
            )}),
        ),
        (
            "/update_mcp_server",
            json!({"post": operation(
                "Set the MCP servers",
                "This version checks the list and has no proxy for it: only an empty one is set.",
                Some(servers),
                json!({"200": answer("The list is empty.", reference("UpdateMcpResponse")), "400": failure("Not a list."), "500": failure("A wrong entry, or no proxy.")}),
            )}),
        ),
        (
            "/vscode/connection_token",
            json!({"get": operation(
                "Token of the editor",
                "Null: this version has no editor.",
                None,
                json!({"200": answer("The token.", reference("ConnectionToken"))}),
            )}),
        ),
    ])
}

fn v1() -> Paths {
    let mut paths = v1_commands();
    paths.extend(v1_output());
    paths.extend(files::paths());
    paths.extend(kernels::paths());
    paths.extend(sandbox::paths());
    paths
}

fn v1_commands() -> Paths {
    let mut start = operation(
        "Run a command",
        "Streams events: `start` {id, offset, repeated}, `output` {offset, text} or {offset, base64}, `waiting` \
         {waiting_for_input}, `gap` {from, to} for bytes that are no longer kept, `error` {message}, and `exit` \
         (ExecEnd). The id of an event is the offset behind it. Repeating the request with the same id follows the \
         command that runs; with Last-Event-ID \
         from there on, and then it is never started again. The header X-Exec-Id tells the id at once. Closing the stream \
         does not end the command.",
        Some(reference("ExecRequest")),
        json!({
            "200": typed("The events.", "text/event-stream", json!({"type": "string"})),
            "202": answer("Started or known, with follow=false.", reference("ExecStatus")),
            "400": refusal("A wrong field, value, query or Last-Event-ID."),
            "404": refusal("Last-Event-ID was sent and no command has the id."),
            "409": refusal("The id was used for a different request."),
            "416": refusal("Last-Event-ID is behind the end."),
            "429": refusal("Too many commands run or wait."),
            "500": refusal("The shell can not be started."),
        }),
    );
    start["parameters"] = json!([
        parameter("query", "follow", json!({"type": "boolean", "default": true}), "False answers at once."),
        parameter("header", "Last-Event-ID", json!({"type": "integer"}), "Offset to continue from."),
    ]);
    let mut status = operation(
        "How a command stands",
        "",
        None,
        json!({"200": answer("Its state.", reference("ExecStatus")), "404": refusal("No command has this id.")}),
    );
    status["parameters"] = json!([id()]);
    let execs = json!({"type": "array", "items": reference("ExecStatus")});
    let list = operation(
        "List commands",
        "In the order of their start.",
        None,
        json!({"200": answer("The commands.", json!({"type": "object", "properties": {"execs": execs}}))}),
    );
    let mut cancel = operation(
        "Give a command up",
        "One that waits for its turn never begins. One that runs is interrupted, and quit 2 s later if it does not end; its \
         end tells `cancelled`. One that has ended stays as it is.",
        None,
        json!({
            "202": answer("How it stands.", reference("ExecStatus")),
            "404": refusal("No command has this id."),
        }),
    );
    cancel["parameters"] = json!([id()]);
    paths([
        ("/v1/exec", json!({"get": list, "post": start})),
        ("/v1/exec/{id}", json!({"get": status, "delete": cancel})),
    ])
}

fn v1_output() -> Paths {
    let header = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    let mut bytes = typed("The bytes.", "application/octet-stream", json!({"type": "string", "format": "binary"}));
    bytes["headers"] = json!({
        "X-Output-Offset": header("Offset of the first byte; absent for a command that waits for its turn."),
        "X-Output-Next": header("Offset behind the last byte; absent with follow=true."),
        "X-Output-State": header("queued, running or ended, when the answer began."),
    });
    let mut output = operation(
        "Output of a command",
        "Offsets count from the beginning of its output. With `Accept: text/event-stream` the answer is the stream of events from \
         that offset.",
        None,
        json!({
            "200": bytes,
            "400": refusal("A wrong query."),
            "404": refusal("No command has this id."),
            "410": refusal("The bytes are no longer kept."),
            "416": refusal("The offset is behind the end."),
            "500": refusal("The output can not be read."),
        }),
    );
    let number = || json!({"type": "integer", "minimum": 0});
    output["parameters"] = json!([
        id(),
        parameter("query", "offset", number(), "Where to begin; the beginning of the command's output if absent."),
        parameter(
            "query",
            "follow",
            json!({"type": "boolean", "default": false}),
            "Go on until the command has ended."
        ),
        parameter("query", "max", number(), "Most bytes; at most 1 MiB without follow."),
    ]);
    let accepted = |schema: Option<Value>, summary: &str, description: &str| {
        let mut operation = operation(
            summary,
            description,
            schema,
            json!({
                "202": answer("Sent.", reference("ExecStatus")),
                "404": refusal("No command has this id."),
                "409": refusal("The command does not run."),
            }),
        );
        operation["parameters"] = json!([id()]);
        operation
    };
    let mut input = accepted(
        Some(reference("ExecInput")),
        "Type into a command",
        "A key such as C-d is sent without Enter. The name of a key (Up, Escape, F1) presses it, and Enter follows.",
    );
    input["responses"]["400"] = refusal("A wrong field.");
    paths([
        ("/v1/exec/{id}/output", json!({"get": output})),
        ("/v1/exec/{id}/input", json!({"post": input})),
        ("/v1/exec/{id}/interrupt", json!({"post": accepted(None, "Interrupt a command", "As C-c does.")})),
    ])
}

fn health() -> Paths {
    paths([
        (
            "/ready",
            json!({"get": operation(
                "How each part stands",
                "",
                None,
                json!({
                    "200": answer("Every part that was asked for is ready.", reference("Readiness")),
                    "503": answer("A part is starting or failed.", reference("Readiness")),
                }),
            )}),
        ),
        (
            "/metrics",
            json!({"get": operation(
                "Counters for Prometheus",
                "",
                None,
                json!({"200": typed("The text format.", "text/plain", json!({"type": "string"}))}),
            )}),
        ),
    ])
}

fn docs() -> Paths {
    paths([
        (
            "/openapi.json",
            json!({"get": operation(
                "This document",
                "",
                None,
                json!({"200": answer("OpenAPI 3.1.", json!({"type": "object"}))}),
            )}),
        ),
        (
            "/docs",
            json!({"get": operation(
                "This document for people",
                "",
                None,
                json!({"200": typed("A page.", "text/html", json!({"type": "string"}))}),
            )}),
        ),
    ])
}

/// A schema of an object from its properties; the ones without `?` at the end are required.
fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = properties.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let all: Map<String, Value> =
        properties.iter().map(|(name, schema)| (name.trim_end_matches('?').to_owned(), schema.clone())).collect();
    json!({"type": "object", "required": required, "properties": all})
}

fn schemas() -> Value {
    let mut schemas = common_schemas();
    schemas.extend(exec_schemas());
    schemas.extend(files::schemas());
    schemas.extend(terminals::schemas());
    Value::Object(schemas)
}

fn common_schemas() -> Map<String, Value> {
    let (string, integer, number) = (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "number"}));
    let error = object([("code", string.clone()), ("message", string.clone()), ("hint", string.clone())]);
    let resources = object([
        ("cpu_percent", number.clone()),
        ("memory", object([("rss", integer.clone()), ("vms", integer.clone()), ("percent", number.clone())])),
        (
            "disk",
            object([
                ("total", integer.clone()),
                ("used", integer.clone()),
                ("free", integer.clone()),
                ("percent", number.clone()),
            ]),
        ),
        ("io", object([("read_bytes", integer.clone()), ("write_bytes", integer)])),
    ]);
    let part = object([
        ("name", string.clone()),
        ("state", json!({"enum": ["off", "starting", "ready", "failed"]})),
        ("since_seconds", number.clone()),
        ("took_ms?", number.clone()),
        ("reason?", string.clone()),
        ("remedy?", string.clone()),
    ]);
    let readiness = object([
        ("status", json!({"enum": ["ready", "starting", "failed"]})),
        ("parts", json!({"type": "array", "items": part})),
    ]);
    let list_or_text = json!({"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]});
    let object_or_text =
        json!({"oneOf": [{"type": "object", "additionalProperties": {"type": "string"}}, {"type": "string"}]});
    paths([
        ("Detail", object([("detail", string.clone())])),
        ("ValidationError", object([("detail", string.clone()), ("errors", string.clone())])),
        ("Error", object([("error", error)])),
        ("Alive", object([("status", string.clone())])),
        ("ConnectionToken", object([("token", json!({"type": ["string", "null"]}))])),
        (
            "UpdateMcpResponse",
            object([("detail", json!({"type": "string"})), ("router_error_log", json!({"type": "string"}))]),
        ),
        (
            "McpServer",
            object([
                ("name", json!({"type": "string", "pattern": "^[a-zA-Z0-9_-]+$"})),
                ("command", string),
                ("args?", list_or_text),
                ("env?", object_or_text),
            ]),
        ),
        ("ServerInfo", object([("uptime", number.clone()), ("idle_time", number), ("resources", resources)])),
        ("Readiness", readiness),
    ])
}

fn exec_schemas() -> Map<String, Value> {
    let (string, integer, number) = (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "number"}));
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    let usage = object([
        ("cpu_seconds", number.clone()),
        ("peak_memory_bytes", nullable("integer")),
        ("written_bytes", nullable("integer")),
        ("wall_seconds", number),
    ]);
    let session = json!({"enum": ["main", "new"], "default": "main"});
    let mut request = object([
        ("id?", json!({"type": ["string", "null"], "pattern": "^[A-Za-z0-9._-]{1,128}$"})),
        ("command", string.clone()),
        ("session?", session.clone()),
        ("cwd?", json!({"type": ["string", "null"], "description": "Only with a new session."})),
        (
            "env?",
            json!({
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Only with a new session.",
            }),
        ),
        ("timeout?", json!({"type": ["number", "null"], "exclusiveMinimum": 0, "description": "Seconds."})),
    ]);
    request["additionalProperties"] = json!(false);
    let mut input = object([("text", string.clone())]);
    input["additionalProperties"] = json!(false);
    let end = [
        ("exit_code", nullable("integer")),
        ("reason", json!({"enum": ["exited", "timed_out", "cancelled", "refused", "shell_ended", "failed"]})),
        ("message", nullable("string")),
        ("start", integer.clone()),
        ("end", integer.clone()),
        ("cwd", string.clone()),
        ("usage", json!({"oneOf": [reference("ExecUsage"), {"type": "null"}]})),
    ];
    let state = |name: &str| ("state", json!({"const": name}));
    let running = object([state("running"), ("start", integer), ("waiting_for_input", json!({"type": "boolean"}))]);
    let ended = json!({"allOf": [object([state("ended")]), reference("ExecEnd")]});
    let any_state = json!({"oneOf": [object([state("queued")]), running, ended]});
    let status = object([("id", string.clone()), ("command", string), ("session", session)]);
    paths([
        ("ExecRequest", request),
        ("ExecInput", input),
        ("ExecUsage", usage),
        ("ExecEnd", object(end)),
        ("ExecStatus", json!({"allOf": [status, any_state]})),
    ])
}
