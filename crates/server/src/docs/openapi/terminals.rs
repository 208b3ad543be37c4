//! Routes of terminals.

use gloveport_executor::terminals::signal_names;
use serde_json::{Map, Value, json};

use super::{Paths, answer, object, operation, parameter, reference, refusal};

/// All of them.
pub(super) fn paths() -> Paths {
    super::paths([
        ("/v1/terminals", json!({"get": list(), "post": start()})),
        ("/v1/terminals/{id}", json!({"get": status(), "delete": remove()})),
        ("/v1/terminals/{id}/resize", json!({"post": resize()})),
        ("/v1/terminals/{id}/attach", json!({"get": attach()})),
    ])
}

fn id() -> Value {
    parameter("path", "id", json!({"type": "string"}), "Id of the terminal.")
}

fn list() -> Value {
    let terminals = json!({"type": "array", "items": reference("TerminalStatus")});
    operation(
        "List the terminals",
        "Those that run, and the latest that ended.",
        None,
        json!({"200": answer("The terminals.", json!({"type": "object", "properties": {"terminals": terminals}}))}),
    )
}

fn start() -> Value {
    operation(
        "Start a terminal",
        "A program on a terminal of its own, which lives on when nobody is attached. A request whose id is known answers \
         with the terminal that runs and starts nothing.",
        Some(reference("TerminalRequest")),
        json!({
            "200": answer("It was started before.", reference("TerminalStatus")),
            "201": answer("It is started.", reference("TerminalStatus")),
            "400": refusal("The request, the directory or the program is not what it must be."),
            "409": refusal("The id belongs to a terminal with another argv, cwd or env."),
            "429": refusal("Too many terminals run."),
            "500": refusal("The terminal can not be opened."),
        }),
    )
}

fn status() -> Value {
    one(operation(
        "Tell how a terminal stands",
        "",
        None,
        json!({"200": answer("How it stands.", reference("TerminalStatus")), "404": refusal("It is not known.")}),
    ))
}

fn remove() -> Value {
    one(operation(
        "End a terminal",
        "Its program and everything that it started are asked to end, killed after half a second, and forgotten.",
        None,
        json!({"200": answer("How it ended.", reference("TerminalStatus")), "404": refusal("It is not known.")}),
    ))
}

fn resize() -> Value {
    one(operation(
        "Set the size of a terminal",
        "",
        Some(reference("TerminalSize")),
        json!({
            "200": answer("How it stands.", reference("TerminalStatus")),
            "400": refusal("The size is not what it must be."),
            "404": refusal("It is not known."),
            "409": refusal("It has ended."),
        }),
    ))
}

fn attach() -> Value {
    let mut attach = one(operation(
        "Attach to a terminal over a WebSocket",
        "Binary messages are bytes of the terminal, in both directions. Text messages are JSON: TerminalMessage from the \
         server, the first of which is start, and TerminalControl from the client. Any number of clients up to 64 may be \
         attached; each gets the output at its own pace, and is told of a gap when it comes later than output is kept. \
         The server sends a ping every 15 s. It closes with 1000 behind the message exit, 1001 when it stops, 1008 when \
         a message is not understood or larger than 256 KiB, 4000 when the client was silent for 75 s, 4001 when the same \
         client came again, and 4002 when the output can not be read.",
        None,
        json!({
            "101": {"description": "The WebSocket is open."},
            "400": refusal("The query is not what it must be."),
            "404": refusal("The terminal is not known."),
            "416": refusal("The offset is behind the end of the output."),
            "426": refusal("The request does not ask for a WebSocket."),
            "429": refusal("Too many clients are attached."),
        }),
    ));
    let whole = json!({"type": "integer", "minimum": 0});
    let more = [
        ("offset", whole.clone(), "Offset of the output to begin at; the oldest that is kept if it is absent."),
        ("columns", whole.clone(), "New width of the terminal; together with rows."),
        ("rows", whole, "New height."),
        (
            "client",
            json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}),
            "Name that the client gives itself. When it comes again under this name, its connection before is closed, and \
             the message start tells how much of its input arrived.",
        ),
    ];
    if let Some(parameters) = attach["parameters"].as_array_mut() {
        parameters.extend(more.map(|(name, schema, description)| parameter("query", name, schema, description)));
    }
    attach
}

fn one(mut operation: Value) -> Value {
    operation["parameters"] = json!([id()]);
    operation
}

/// The bodies and messages.
pub(super) fn schemas() -> Map<String, Value> {
    let (string, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let length = json!({"type": "integer", "minimum": 1, "maximum": 65535});
    let kind = |name: &str| ("type", json!({"const": name}));
    let state = |name: &str| ("state", json!({"const": name}));
    let mut request = object([
        ("id?", json!({"type": ["string", "null"], "pattern": "^[A-Za-z0-9._-]{1,128}$"})),
        (
            "argv?",
            json!({"type": ["array", "null"], "items": {"type": "string"}, "minItems": 1,
            "description": "Program and arguments; the user's shell if it is absent."}),
        ),
        ("cwd?", json!({"type": ["string", "null"]})),
        ("env?", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        ("columns?", length.clone()),
        ("rows?", length.clone()),
    ]);
    request["additionalProperties"] = json!(false);
    let exit = [("exit_code", integer.clone()), ("signal", json!({"type": ["integer", "null"]}))];
    let running = object([state("running"), ("pid", integer.clone())]);
    let ended = json!({"allOf": [object([state("ended")]), reference("TerminalExit")]});
    let status = object([
        ("id", string.clone()),
        ("argv", strings),
        ("cwd", string.clone()),
        ("columns", length.clone()),
        ("rows", length.clone()),
        ("attached", integer.clone()),
        ("start", integer.clone()),
        ("end", integer.clone()),
    ]);
    let sizes = object([("columns", length.clone()), ("rows", length)]);
    let control = json!({"oneOf": [
        {"allOf": [object([kind("resize")]), reference("TerminalSize")]},
        object([kind("signal"), ("name", json!({"enum": signal_names().collect::<Vec<_>>()}))]),
    ]});
    let message = json!({"oneOf": [
        object([kind("start"), ("id", string.clone()), ("offset", integer.clone()), ("end", integer.clone()),
            ("input", integer.clone())]),
        object([kind("gap"), ("from", integer.clone()), ("to", integer.clone())]),
        object([kind("input"), ("offset", integer)]),
        object([kind("error"), ("message", string)]),
        {"allOf": [object([kind("exit")]), reference("TerminalExit")]},
    ]});
    super::paths([
        ("TerminalRequest", request),
        ("TerminalSize", sizes),
        ("TerminalExit", object(exit)),
        ("TerminalStatus", json!({"allOf": [status, {"oneOf": [object([state("starting")]), running, ended]}]})),
        ("TerminalControl", control),
        ("TerminalMessage", message),
    ])
}
