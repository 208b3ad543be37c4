"""The live view of commands."""

import json
import sys
import time
import uuid

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from .harness import EVENTS, EXECUTE, REQUEST, SEARCH, case, took


def socket_of(server, query="", key=True, path="/sockets/bash-events"):
    headers = {"X-Session-API-Key": server.token if key is True else key} if key else {}
    url = server.url.replace("http", "ws", 1) + path + query
    return connect(url, additional_headers=headers, open_timeout=REQUEST, close_timeout=2, max_size=None, proxy=None)


def refused(server, *arguments, **more):
    """How the handshake ends, or the socket after it."""
    try:
        with socket_of(server, *arguments, **more) as socket:
            return closing(socket, 2)
    except InvalidStatus as error:
        return {"status": error.response.status_code}


def closing(socket, limit=REQUEST):
    try:
        return {"received": socket.recv(timeout=limit)}
    except ConnectionClosed as error:
        return {"code": error.rcvd and error.rcvd.code, "reason": error.rcvd and error.rcvd.reason}
    except TimeoutError:
        return "open"


def received(socket, enough):
    """Events up to one that is the last wanted."""
    found = []
    until = time.monotonic() + REQUEST
    while time.monotonic() < until:
        found.append(json.loads(socket.recv(timeout=REQUEST)))
        if enough(found[-1]):
            return found
    raise TimeoutError("the events do not come")


def ran(socket, text="echo hi; echo err >&2; exit 2"):
    socket.send(json.dumps({"command": text}))
    return received(socket, lambda event: event.get("exit_code") is not None)


@case
def keys_of_a_socket(server):
    def first(frame):
        with socket_of(server, key=None) as socket:
            socket.send(frame)
            return closing(socket, 0.5)

    def usable(key, query="", frame=None):
        with socket_of(server, query, key=key) as socket:
            if frame:
                socket.send(frame)
            return [event["kind"] for event in ran(socket)]

    authenticated = json.dumps({"type": "auth", "session_api_key": server.token})
    wrong = json.dumps({"type": "auth", "session_api_key": "wrong"})
    return {
        "in the header": usable(True),
        "in the query": usable(None, f"?session_api_key={server.token}"),
        "in the first frame": usable(None, frame=authenticated),
        "the second key": usable(server.token + "-2"),
        "in the query, and wrong in the header": usable("wrong", f"?session_api_key={server.token}"),
        "in the header, and again as a frame": usable(True, frame=authenticated),
        "in the header, and a wrong one as a frame": usable(True, frame=wrong),
        "wrong in the header": refused(server, key="wrong"),
        "wrong in the query": refused(server, "?session_api_key=wrong", key=None),
        "wrong in the query, and right in the header": refused(server, "?session_api_key=wrong"),
        "empty in the query": refused(server, "?session_api_key=", key=None),
        "wrong in the frame": first(wrong),
        "a frame with a number": first('{"type":"auth","session_api_key":7}'),
        "a frame without a key": first('{"type":"auth"}'),
        "a frame of another type": first(json.dumps({"type": "other", "session_api_key": server.token})),
        "a command as the first frame": first('{"command":"true"}'),
        "no object": first("[1]"),
        "no JSON": first("hello"),
    }


@case
def sockets_of_other_paths(server):
    events = f"/sockets/events/{uuid.UUID(int=7)}"
    with socket_of(server, key=None, path=events) as socket:
        socket.send(json.dumps({"type": "auth", "session_api_key": server.token}))
        unknown = closing(socket)["code"]
    return {
        "unknown": refused(server, path="/sockets/no-such"),
        "unknown without a key": refused(server, key=None, path="/sockets/no-such"),
        "of HTTP": refused(server, path="/health"),
        "a conversation": refused(server, path=events).get("code"),
        "a conversation, with a frame": unknown,
        "a conversation, wrong key": refused(server, key="wrong", path=events),
        "plain GET": server.asked("GET", "/sockets/bash-events"),
    }


@case
def commands_of_a_socket(server):
    found = {}
    with socket_of(server) as socket, socket_of(server) as other:
        found["events"] = ran(socket)
        seen = received(other, lambda event: event.get("exit_code") is not None)
        found["another one sees them, too"] = seen == found["events"]
        output = server.send("POST", EXECUTE, json={"command": "echo of a request"}).json()
        seen = received(socket, lambda event: event.get("exit_code") is not None)
        found["of a request"] = [seen[-1] == output, [event["kind"] for event in seen]]
        found["are stored"] = server.send("GET", f"{EVENTS}/{found['events'][0]['id']}").json() == found["events"][0]
        found["chunks"] = [
            [event["kind"], event.get("order"), len(event.get("stdout") or ""), event.get("exit_code")]
            for event in ran(socket, "head -c 1100000 /dev/zero | tr '\\0' a")
        ]
        for name, text in [
            ("no JSON", "hello"), ("no object", "[]"), ("no command", "{}"), ("a number", '{"command":7}'),
            ("a bad timeout", '{"command":"true","timeout":1.5}'), ("null", "null"), ("a text", '"x"'),
        ]:  # fmt: skip
            socket.send(text)
            error = json.loads(socket.recv(timeout=REQUEST))
            print(f"{name}: {error}", file=sys.stderr)
            found[name] = error | {"detail": bool(error.pop("detail", None))}
        found["is still open"] = [event["kind"] for event in ran(socket, "true")]
        found["errors are seen by one only"] = "BashError" not in [
            event["kind"] for event in received(other, lambda event: event.get("command") == "true")
        ]
    found["errors are not stored"] = "BashError" not in server.send("GET", SEARCH).text
    return found


@case
def events_that_are_sent_again(server):
    server.send("DELETE", EVENTS)
    server.executed("echo one")
    server.executed("echo two >&2")
    found = {}
    for query in ["?resend_mode=all", "?resend_all=true"]:
        events = server.send("GET", SEARCH).json()["items"]
        with socket_of(server, query) as socket:
            again = [json.loads(socket.recv(timeout=REQUEST)) for _ in events]
            found[query] = [again == events, [event["kind"] for event in ran(socket, "true")]]
    for query in ["", "?resend_all=false"]:
        with socket_of(server, query) as socket:
            found[query or "not asked for"] = [event["kind"] for event in ran(socket, "true")]
    for query in ["?resend_mode=since", "?resend_mode=x", "?resend_all=x"]:
        found[query] = refused(server, query)
    return found


@case
def too_many_sockets(server):
    sockets = []
    try:
        for _ in range(50):
            sockets.append(socket_of(server))
        found = {"one more": refused(server)}
        found["the last of them"] = [event["kind"] for event in ran(sockets[-1], "true")]
    finally:
        for socket in sockets:
            socket.close()
    with socket_of(server) as socket:
        found["afterwards"] = [event["kind"] for event in ran(socket, "true")]
    return found


@case
def a_socket_without_a_key(server):
    def closed():
        with socket_of(server, key=None) as socket:
            return closing(socket, 30)

    # A server that has other work may be late.
    found = took(closed)
    return {"found": found["found"], "after about ten seconds": 9 <= found["seconds"] < 25}
