"""What Schemathesis has to know of this server: what no request may do, and what ends."""

import atexit
import json
import os
import re
import threading
from collections import Counter

import schemathesis

FILE = os.environ["GLOVEPORT_OPENAPI_COUNTS"]
# A command, and so its stream of events, ends after that many seconds.
LIMIT = 0.5

counts = Counter()
lock = threading.Lock()


def text(value):
    return value if isinstance(value, str) else ""


def is_watch(case):
    return case.operation.path == "/v1/files/watch"


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """A stream of events is a text as a whole. Here each of its events would be compared with what the document says."""
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                answer.get("content", {}).get("text/event-stream", {}).pop("schema", None)


@schemathesis.hook
def filter_case(context, case):
    # Events of a sandbox that there is have no end, nor has its log if it is followed. Its id can be one of the answer to an
    # earlier request.
    if re.fullmatch("made-up-.*|[0-9a-f]{16}", text((case.path_parameters or {}).get("id"))):
        follows = text((case.query or {}).get("follow")) == "true" or (case.query or {}).get("follow") is True
        return not follows and not case.operation.path.endswith("/events")
    # A watch of what is there has no end.
    query = case.query or {}
    return not is_watch(case) or (text(query.get("path")) != "" and "path_base64" not in query)


def shorten(place, most):
    """A time limit that is right becomes a short one, and so does a missing one; a wrong one stays."""
    value = place.get("timeout")
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    if value is None or (right and value > most):
        place["timeout"] = most


def tame(body):
    """A sandbox that is asked for with a right name is one of a few, and starts whatever else is said of it."""
    session = body.get("session_id")
    if session is None or (isinstance(session, str) and re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,127}", session)):
        body["session_id"] = f"made-up-{len(session or '') % 4}"
    # Variables such as LD_PRELOAD keep its server from starting.
    for variables in ("environment", "secrets"):
        if isinstance(body.get(variables), dict):
            body[variables] = {f"MADE_UP_{number}": value for number, value in enumerate(body[variables].values())}


@schemathesis.hook
def map_case(context, case):
    path = case.operation.path
    if is_watch(case) and text((case.query or {}).get("path")):
        case.query["path"] = "/nowhere/" + case.query["path"]
    if path in ("/v1/exec", "/v1/kernels/{name}/execute") and isinstance(case.body, dict):
        shorten(case.body, LIMIT)
    if isinstance(case.query, dict) and isinstance(case.query.get("wait"), (int, float)) and case.query["wait"] > LIMIT:
        case.query["wait"] = LIMIT
    if path in ("/start", "/v1/sandboxes", "/v1/sessions") and isinstance(case.body, dict):
        tame(case.body)
    if path == "/execute_action" and isinstance(case.body, dict) and isinstance(case.body.get("action"), dict):
        shorten(case.body["action"], LIMIT)
    return case


@schemathesis.serializer("application/x-tar")
def tar(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def after_call(context, case, response):
    with lock:
        counts[f"{case.method.upper()} {case.operation.path} {response.status_code}"] += 1


@atexit.register
def write():
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump(counts, file)
