"""What an agent-server's sandbox does, as the unmodified workspaces of the OpenHands SDK and plain requests see it.

usage: cases.py URL TOKEN DIRECTORY [--speed COUNT]

DIRECTORY is the one that the server was started in; its home is `home` beside it, and both see the same files as this
program. The server is started as `run` does it: TOKEN is its first key, TOKEN-2 its second. The last line is a JSON
object: for each case what the client got. With --speed it tells what calls take instead, in milliseconds, and how many
commands a second eight clients get. (The SDK logs on the standard output, too.)
"""

import asyncio
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urljoin

import httpx
from openhands.sdk.workspace import AsyncRemoteWorkspace, RemoteWorkspace
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

# Seconds after which a case counts as one that hangs, and a request as one without an answer.
CASE, REQUEST = 40, 20
EXECUTE, START = "/api/bash/execute_bash_command", "/api/bash/start_bash_command"
EVENTS, SEARCH = "/api/bash/bash_events", "/api/bash/bash_events/search"
CASES = []


def case(function):
    CASES.append(function)
    return function


class Server:
    def __init__(self, url, token, directory):
        self.url, self.token, self.directory = url, token, Path(directory)
        self.home = self.directory.parent / "home"
        # Each request has a connection of its own: a server may close one that is kept just when it is used again.
        self.http = httpx.Client(base_url=url, timeout=REQUEST, limits=httpx.Limits(max_keepalive_connections=0))
        self.workspace = RemoteWorkspace(host=url, api_key=token, working_dir=directory)

    def place(self, name):
        """A fresh directory for one case."""
        place = self.directory / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def send(self, method, path, key=True, headers=None, **more):
        """A response. With `key` another than true, that is sent as the key; nothing if it is none."""
        headers = dict(headers or {})
        if key:
            headers["X-Session-API-Key"] = self.token if key is True else key
        return self.http.request(method, path, headers=headers, **more)

    def asked(self, method, path, *names, **more):
        """The status, the body and these headers of an answer."""
        response = self.send(method, path, **more)
        try:
            body = response.json()
        except ValueError:
            body = response.text
        if response.status_code == 422 and isinstance(body, dict) and isinstance(body.get("detail"), list):
            body = [[one["type"], one["loc"]] for one in body["detail"]]
        found = {"status": response.status_code, "body": body} | {name: response.headers.get(name) for name in names}
        if found.get("location"):
            # It may leave out what it has in common with the request.
            found["location"] = urljoin(str(response.url), found["location"])
        return found

    def executed(self, command, **more):
        """What a command's answer says of its end, without what tells it from others."""
        answer = self.asked("POST", EXECUTE, json={"command": command} | more)
        if answer["status"] != 200:
            return answer
        return {name: answer["body"][name] for name in ("exit_code", "stdout", "stderr")}

    def outputs(self, command):
        """The output events of a command, once it has ended."""
        until = time.monotonic() + REQUEST
        while time.monotonic() < until:
            wanted = {"kind__eq": "BashOutput", "command_id__eq": command}
            found = self.send("GET", SEARCH, params=wanted).json()["items"]
            if found and found[-1]["exit_code"] is not None:
                return found
            time.sleep(0.05)
        raise TimeoutError(f"command {command} does not end")

    def started(self, command, **more):
        return self.send("POST", START, json={"command": command} | more).json()["id"]


def together(**calls):
    """The results of calls that wait and are made at the same time."""
    with ThreadPoolExecutor(len(calls)) as pool:
        running = {name: pool.submit(call) for name, call in calls.items()}
        return {name: one.result() for name, one in running.items()}


def took(call):
    """What a call returns, and the whole seconds that it took."""
    began = time.monotonic()
    found = call()
    return {"found": found, "seconds": int(time.monotonic() - began)}


def shifted(time, hours):
    """The same time as another zone writes it."""
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    return datetime.datetime.fromisoformat(time).astimezone(zone).isoformat()


def raised(call):
    try:
        return call()
    except Exception as error:
        return {"raises": type(error).__name__, "message": str(error)}


def kinds(value):
    """The names of an object's fields, with the types of their values."""
    return {name: "number" if type(one) in (int, float) else type(one).__name__ for name, one in sorted(value.items())}


# --- the workspaces of the SDK


COMMANDS = [
    "echo hi",
    "printf x",
    "true",
    "false",
    "exit 7",
    "exit 255",
    "echo out; echo err >&2; exit 3",
    "echo a; echo b",
    "echo a\necho b",
    "",
    "# nothing",
    "no-such-program",
    "ls /no/such",
    "if true",
    "echo 'a",
    'echo "a\\nb"',
    "source /dev/null",
    "echo $0",
    "[[ a == a ]]",
    "echo {1..3}",
    "cat <<'END'\none\n  two\nEND",
    "kill -9 $$",
    "kill -15 $$",
    "sh -c 'kill -9 $$'",
    "echo before; kill -TERM $$",
    "cat; echo end",
    "read x; echo $?",
    "tty",
    "printf 'a\\r\\nb\\r'",
    "printf '\\377\\376ok'",
    "printf 'gr\\303\\274n \\360\\237\\230\\200\\n'",
    "echo grün 😀 é",
    "printf '\\033[1;31mred\\033[0m\\n'",
    "printf 'a\\000b' | od -c | head -n 1",
    "printf 'a\\000b'",
    "seq 20000",
    "umask",
    "ps -o pid= -o pgid= -o sid= -p $$ | awk '{ print ($1 == $2), ($1 == $3) }'",
    "ulimit -c",
    "trap '' PIPE; yes | head -n 1",
    "X=1; export X; cd /",
    "echo ${X-unset}; pwd",
]


@case
def commands(server):
    return {text: server.workspace.execute_command(text).model_dump() for text in COMMANDS}


@case
def directories(server):
    place = server.place("directories")
    (place / "with space é").mkdir()
    (place / "link").symlink_to("with space é")
    (place / "file").write_text("")
    run = lambda cwd: server.workspace.execute_command("pwd", cwd=cwd).model_dump()
    return {
        "absent": server.workspace.execute_command("pwd").model_dump(),
        "absolute": run(place),
        "with a space": run(place / "with space é"),
        "relative": run("directories"),
        "of a link": run(place / "link"),
        "missing": run(place / "no such"),
        "a file": run(place / "file"),
        "a tilde": run("~"),
        "empty": run(""),
        "parents": run("directories/../directories"),
    }


@case
def the_environment(server):
    names = ["SESSION_API_KEY", "OH_SECRET_KEY", "OH_SESSION_API_KEYS_0", "OH_SESSION_API_KEYS_1", "AI_AGENT"]
    names += ["OTEL_EXPORTER_OTLP_HEADERS", "HOME", "TERM", "LANG", "OF_THE_TEST"]
    found = {name: server.workspace.execute_command(f"printenv {name}").stdout for name in names}
    found["any key"] = server.workspace.execute_command(f"env | grep -c '{server.token}'").stdout
    found["all"] = server.workspace.execute_command("env | grep -o '^[A-Z_0-9]*' | sort").stdout.split()
    return found


@case
def limits_of_the_workspace(server):
    run = server.workspace.execute_command
    return together(
        ended=lambda: took(lambda: run("echo a; echo b >&2; sleep 30", timeout=2.9).model_dump()),
        below_a_second=lambda: run("echo hi", timeout=0.5).model_dump(),
        given_up=lambda: took(lambda: run("trap '' TERM; echo a; sleep 30", timeout=1).model_dump()),
        a_job_that_holds_the_pipe=lambda: took(lambda: run("sleep 2.2 & echo x").model_dump()),
        a_job_that_does_not=lambda: took(lambda: run("sleep 5 >/dev/null 2>&1 & echo x").model_dump()),
    )


@case
def large_outputs(server):
    one = server.workspace.execute_command("head -c 2500000 /dev/zero | tr '\\0' a; echo end >&2")
    return [one.exit_code, len(one.stdout), set(one.stdout) == {"a"}, one.stderr]


@case
def commands_in_the_background(server):
    workspace = server.workspace
    plain = lambda output: output and {name: output[name] for name in ("exit_code", "stdout", "stderr", "order")}
    found = {}
    command = workspace.start_command("echo begun; sleep 30", timeout=40)
    time.sleep(0.5)
    found["a running one has no output"] = workspace.get_command_output(command)
    found["stop"] = workspace.stop_command(command)
    server.outputs(command)
    found["a stopped one"] = plain(workspace.get_command_output(command))
    found["stop again"] = workspace.stop_command(command)
    found["stop of an unknown one"] = workspace.stop_command(str(uuid.uuid4()))
    found["output of an unknown one"] = workspace.get_command_output(str(uuid.uuid4()))
    command = workspace.start_command("pwd; exit 4", cwd="/")
    server.outputs(command)
    found["an ended one"] = plain(workspace.get_command_output(command))
    found["the latest of all"] = plain(workspace.get_command_output())
    found["stop of no id"] = raised(lambda: workspace.stop_command("no-id"))
    return found


@case
def files_of_the_workspace(server):
    place, workspace = server.place("files"), server.workspace
    source, back = place / "source", place / "back"
    source.write_bytes(bytes(range(256)) * 400)
    (place / "empty").write_bytes(b"")
    send = lambda what, to: workspace.file_upload(what, to).model_dump()
    fetch = lambda what, to=back: workspace.file_download(what, to).model_dump()
    found = {
        "upload": send(source, place / "a/b/file"),
        "upload of bytes": send(b"text\n", place / "bytes"),
        "upload of an empty file": send(place / "empty", place / "empty copy"),
        "upload over a file": send(b"short", place / "bytes"),
        "upload with a space": send(b"1", place / "a b/ü 😀 +&%20#?"),
        "upload onto a directory": send(b"1", place / "a"),
        "upload below a file": send(b"1", place / "bytes/below"),
        "upload to a relative path": send(b"1", "relative"),
        "upload of nothing": send(place / "no such", place / "x"),
        "download": fetch(place / "a/b/file"),
        "download is the same": back.read_bytes() == source.read_bytes(),
        "download with a space": fetch(place / "a b/ü 😀 +&%20#?", place / "new/parents/one"),
        "download of an empty file": fetch(place / "empty copy"),
        "download of nothing": fetch(place / "no such"),
        "download of a directory": fetch(place / "a"),
        "download of a relative path": fetch("files/bytes"),
    }
    found["there"] = {
        str(path.relative_to(place)): [path.stat().st_size, oct(path.stat().st_mode)]
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
    return found


@case
def alive_and_what_it_is(server):
    info = server.workspace.get_server_info()
    names = ["conversation_runtime", "available_conversation_runtimes", "docs", "redoc", "app_backend_ingress_url"]
    return {
        "alive": server.workspace.alive,
        "not alive": RemoteWorkspace(host="http://127.0.0.1:1", working_dir="/").alive,
        "info": kinds(info),
        "values": {name: info[name] for name in names},
        "fresh": 0 <= info["idle_time"] <= info["uptime"] < 600,
        "/": kinds(server.send("GET", "/", key=None).json()),
    }


@case
def the_workspace_without_a_right_key(server):
    found = {}
    for name, key in [("none", None), ("wrong", "wrong")]:
        workspace = RemoteWorkspace(host=server.url, api_key=key, working_dir="/")
        found[name] = [
            workspace.execute_command("echo hi").model_dump(),
            workspace.file_download("/etc/hostname", server.directory / "never").model_dump(),
            raised(lambda: workspace.git_changes("/")),
            workspace.alive,
        ]
    return found


@case
def the_asynchronous_workspace(server):
    async def run():
        place = server.place("asynchronous")
        where = {"host": server.url + "/", "working_dir": str(place)}
        async with AsyncRemoteWorkspace(api_key=server.token, **where) as workspace:
            command = await workspace.start_command("sleep 30")
            await workspace.stop_command(command)
            several = [workspace.execute_command(f"echo {number}; exit {number}") for number in range(4)]
            return [
                (await workspace.execute_command("echo out; echo err >&2; exit 5", cwd=str(place))).model_dump(),
                [one.model_dump() for one in await asyncio.gather(*several)],
                server.outputs(command)[-1]["exit_code"],
                (await workspace.file_upload(b"text", place / "file")).model_dump(),
                (await workspace.file_download(place / "file", place / "back")).model_dump(),
                kinds(await workspace.get_server_info()),
                workspace.alive,
                await workspace.git_changes("."),
            ]

    return asyncio.run(run())


# --- conventions


@case
def without_a_key(server):
    open_ones = ["/alive", "/health", "/ready"]
    found = {path: server.asked("GET", path, "content-type", key=None) for path in open_ones}
    found |= {path: server.asked("GET", path, key=None)["status"] for path in ["/", "/server_info", "/openapi.json"]}
    closed = [
        ("POST", EXECUTE), ("POST", START), ("GET", SEARCH), ("GET", EVENTS + "/x"), ("GET", EVENTS + "/"),
        ("DELETE", EVENTS), ("POST", f"/api/bash/bash_commands/{uuid.UUID(int=7)}/stop"), ("POST", "/api/file/upload"),
        ("GET", "/api/file/download"), ("POST", "/api/file/create_directory"), ("GET", "/api/file/home"),
        ("GET", "/api/file/search_subdirs"), ("GET", "/api/git/changes"), ("GET", "/api/git/diff"),
        ("GET", "/api/git/commits"), ("GET", "/api/git/commits/abcd/changes"), ("GET", "/api/vscode/status"),
        ("GET", "/api/vscode/url"), ("POST", "/api/hooks"), ("GET", "/api/tools/"),
    ]  # fmt: skip
    found |= {f"{method} {path}": server.asked(method, path, key=None) for method, path in closed}
    return found


@case
def keys(server):
    home = lambda **more: server.asked("GET", "/api/file/home", "www-authenticate", **more)["status"]
    return {
        "wrong": server.asked("GET", "/api/file/home", "www-authenticate", key="wrong"),
        "second": home(key=server.token + "-2"),
        "of the older variable": home(key=server.token + "-old"),
        "another case": home(key=server.token.upper()),
        "a part": home(key=server.token[:-1]),
        "with a tab": home(key=f"{server.token}\ttab"),
        "empty": home(key=None, headers={"X-Session-API-Key": ""}),
        "as bearer": home(key=None, headers={"Authorization": f"Bearer {server.token}"}),
        "as the header of others": home(key=None, headers={"X-API-Key": server.token}),
        "in the query": home(key=None, params={"session_api_key": server.token}),
        "wrong one and a bad body": server.asked("POST", EXECUTE, key="wrong", content="{"),
    }


@case
def paths_and_methods(server):
    found = {}
    for key in (True, None):
        for method, path in [
            ("GET", "/no/such"), ("GET", "/api"), ("GET", "/api/no/such"), ("GET", EXECUTE), ("PUT", EXECUTE),
            ("POST", SEARCH), ("GET", EVENTS), ("POST", EVENTS), ("POST", "/health"), ("HEAD", "/health"),
            ("GET", "/api/hooks"), ("POST", "/api/file/download"), ("HEAD", "/api/file/download"),
            ("GET", EXECUTE + "/x"), ("DELETE", EVENTS + "/x"), ("GET", "/api/bash/bash_commands/x/stop"),
        ]:  # fmt: skip
            name = f"{method} {path}" + ("" if key else " without a key")
            found[name] = server.asked(method, path, "allow", "content-type", key=key)
    return found


@case
def slashes(server):
    found = {}
    for method, path in [
        ("POST", EXECUTE + "/"), ("GET", SEARCH + "/?limit=1"), ("GET", "/health/"), ("GET", "/api/tools"),
        ("GET", "/api/vscode/status/"), ("DELETE", EVENTS + "/"), ("POST", "/api/hooks/"),
        ("GET", "/api/file/home/?include_hidden=true"), ("GET", "/api/no/such/"), ("GET", "/api/git/changes/?path=/"),
    ]:  # fmt: skip
        found[f"{method} {path}"] = server.asked(method, path, "location", "allow")
    found["without a key"] = server.asked("GET", "/api/file/home/", "location", key=None)
    return found


@case
def origins(server):
    wanted = "X-Session-API-Key, Content-Type"
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
    names = ["origin", "methods", "headers", "credentials", "max-age"]
    listed = [f"access-control-{'' if name == 'max-age' else 'allow-'}{name}" for name in names] + ["vary"]
    found = {}
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://localhost.example", "https://allowed.example",
                   "https://other.example", "null"]:  # fmt: skip
        headers = {"Origin": origin}
        found[f"preflight of {origin}"] = server.asked("OPTIONS", EXECUTE, *listed, key=None, headers=headers | asks)
        found[f"request of {origin}"] = server.asked("GET", "/alive", *listed, key=None, headers=headers)
    headers = {"Origin": "http://localhost:3000"}
    found["refused"] = server.asked("GET", "/api/file/home", *listed, key="wrong", headers=headers)
    found["unknown path"] = server.asked("GET", "/no/such", *listed, headers=headers)
    found["preflight of an unknown path"] = server.asked("OPTIONS", "/no/such", *listed, headers=headers | asks)
    found["preflight of another method"] = server.asked(
        "OPTIONS", EXECUTE, *listed, headers=headers | {"Access-Control-Request-Method": "PATCH"}
    )
    found["no preflight"] = server.asked("OPTIONS", EXECUTE, "allow", headers=headers)
    found["no origin"] = server.asked("GET", "/alive", *listed)
    return found


@case
def tolerated_headers(server):
    headers = {f"X-OpenHands-Observability-{name}": "x" for name in ("Metadata", "Tags", "Span-Name")}
    headers |= {"traceparent": "00-00000000000000000000000000000001-0000000000000001-01", "baggage": "a=b"}
    return server.asked("POST", EXECUTE, json={"command": "true", "unknown": [1]}, headers=headers)


# Of each route its parameters must be told, by these names.
DESCRIBED = [
    "/alive", "/health", "/ready", "/server_info", EXECUTE, START, SEARCH, EVENTS, EVENTS + "/", EVENTS + "/{event_id}",
    "/api/bash/bash_commands/{command_id}/stop", "/api/file/upload", "/api/file/download", "/api/file/create_directory",
    "/api/file/home", "/api/file/search_subdirs", "/api/git/changes", "/api/git/diff",
    "/api/git/commits", "/api/git/commits/{sha}/changes", "/api/vscode/status", "/api/vscode/url", "/api/hooks",
]  # fmt: skip


@case
def the_description(server):
    document = server.send("GET", "/openapi.json", key=None).json()
    found = {"openapi": document["openapi"]}
    for path in DESCRIBED:
        found[path] = {
            method: sorted(
                [one["in"], one["name"], one.get("required", False)] for one in operation.get("parameters", [])
            )
            for method, operation in sorted(document["paths"].get(path, {}).items())
        }
    found["paths of older clients"] = [path for path in document["paths"] if "{path" in path and "/file/" in path]
    return found


# --- commands


@case
def what_is_no_request(server):
    found = {}
    bodies = {
        "nothing": {},
        "no command": {"json": {}},
        "null as the command": {"json": {"command": None}},
        "a number as the command": {"json": {"command": 7}},
        "a list": {"json": []},
        "a text": {"json": "echo hi"},
        "null": {"json": None},
        "broken JSON": {"content": "{", "headers": {"Content-Type": "application/json"}},
        "not UTF-8": {"content": b'{"command":"\xff"}', "headers": {"Content-Type": "application/json"}},
        "a number as cwd": {"json": {"command": "true", "cwd": 7}},
        "half a second": {"json": {"command": "true", "timeout": 1.5}},
        "null as the timeout": {"json": {"command": "true", "timeout": None}},
        "a word as the timeout": {"json": {"command": "true", "timeout": "soon"}},
        "several": {"json": {"cwd": 7, "timeout": "soon"}},
    }
    for name, body in bodies.items():
        found[name] = [server.asked("POST", path, **body) for path in (EXECUTE, START)]
    return found


@case
def accepted_requests(server):
    asked = lambda **more: server.asked("POST", EXECUTE, **more)
    return {
        "start": server.asked("POST", START, json={"command": "true"}),
        "start with all": server.asked("POST", START, json={"command": "true", "cwd": "/tmp", "timeout": 7}),
        "execute": asked(json={"command": "echo out; echo err >&2"}),
        "execute without output": asked(json={"command": "true", "cwd": None}),
        "execute with a vendor's type": asked(
            content='{"command":"true"}', headers={"Content-Type": "application/x+json; charset=utf-8"}
        ),
        "text as the timeout": server.asked("POST", START, json={"command": "true", "timeout": "5"}),
        "a whole number as the timeout": server.asked("POST", START, json={"command": "true", "timeout": 5.0}),
        "true as the timeout": server.asked("POST", START, json={"command": "true", "timeout": True}),
        "surrogates": server.executed("printf %s '\U0001f600' | wc -c"),
        "a missing directory": asked(json={"command": "true", "cwd": "/no/such"}),
    }


@case
def limits(server):
    run = server.executed
    place = server.place("limits")
    found = together(
        two_seconds=lambda: took(lambda: run("echo a; echo b >&2; sleep 30; echo later", timeout=2)),
        zero=lambda: run("echo hi", timeout=0),
        below_zero=lambda: run("echo hi", timeout=-1)["exit_code"],
        deaf=lambda: took(lambda: run("trap '' TERM; echo a; sleep 30; sleep 30", timeout=1)),
        trapped=lambda: took(lambda: run("trap 'echo trapped; exit 3' TERM; echo a; sleep 30 & wait", timeout=1)),
        a_job=lambda: took(lambda: run(f"(sleep 2.5; touch {place}/late) & echo a", timeout=1)),
        a_job_with_the_pipe=lambda: took(lambda: run("sleep 2.2 & echo x", timeout=20)),
    )
    time.sleep(1.5)
    return found | {"the job is ended, too": not (place / "late").exists()}


@case
def chunks(server):
    plain = lambda events: [
        [one["order"], len(one["stdout"] or ""), len(one["stderr"] or ""), one["exit_code"]] for one in events
    ]
    zeros = "head -c {} /dev/zero | tr '\\0' {}"
    large = zeros.format(2500000, "a") + ";" + zeros.format(1200000, "b") + " >&2; exit 7"
    limit = 1048576
    place = server.place("chunks")
    (place / "umlauts").write_text("x" + "ü" * 100000)
    body = server.asked("POST", EXECUTE, json={"command": large, "timeout": 60})["body"]
    events = server.outputs(body["command_id"])
    text = server.executed(f"cat {place}/umlauts")["stdout"]
    return {
        "several": plain(server.outputs(server.started(large))),
        "joined": [body["order"], len(body["stdout"]), len(body["stderr"]), body["exit_code"]],
        "joined is the last one": body["id"] == events[-1]["id"] and body["timestamp"] == events[-1]["timestamp"],
        "as large as one": plain(server.outputs(server.started(zeros.format(limit, "a")))),
        "larger by one": plain(server.outputs(server.started(zeros.format(limit + 1, "a")))),
        "characters": plain(server.outputs(server.started(f"yes é | tr -d '\\n' | head -c {2 * limit + 4}"))),
        "none is early": plain(server.outputs(server.started("echo a; sleep 0.3; echo b; sleep 0.3; echo c >&2"))),
        "a character that is read in two parts": text == "x" + "ü" * 100000,
        "grow together": events == sorted(events, key=lambda one: (one["timestamp"], one["order"])),
    }


@case
def stops(server):
    stop = lambda command: server.asked("POST", f"/api/bash/bash_commands/{command}/stop")
    found = {}
    running = server.started("echo a; sleep 30")
    deaf = server.started("trap '' TERM; echo a; sleep 30; sleep 30")
    tidy = server.started("trap 'echo tidied; exit 6' TERM; sleep 30 & wait")
    time.sleep(0.5)
    for name, command in [("running", running), ("deaf", deaf), ("tidy", tidy)]:
        found[name] = stop(command)
    at_once = server.started("sleep 30; echo later")
    found["at once"] = stop(at_once)
    for name, command in [("running", running), ("deaf", deaf), ("tidy", tidy), ("at once", at_once)]:
        found[name + ", its end"] = [
            [one[field] for field in ("order", "exit_code", "stdout", "stderr")] for one in server.outputs(command)
        ]
    found["ended"] = stop(running)
    found["with hyphens"] = stop(uuid.UUID(running))
    found["its output event"] = stop(server.outputs(running)[-1]["id"])
    found["unknown"] = stop(uuid.uuid4())
    found["no id"] = stop("no-id")
    found["with a wrong key"] = server.asked("POST", f"/api/bash/bash_commands/{running}/stop", key="wrong")
    return found


@case
def searches(server):
    server.send("DELETE", EVENTS)
    first = server.send("POST", EXECUTE, json={"command": "echo one"}).json()
    second = server.send("POST", EXECUTE, json={"command": "echo two >&2; exit 2"}).json()
    large = server.send("POST", EXECUTE, json={"command": "head -c 2200000 /dev/zero | tr '\\0' a"}).json()
    everything = server.send("GET", SEARCH).json()["items"]

    def plain(answer):
        if answer["status"] != 200:
            return answer
        return [
            [[one["kind"], one.get("order"), one.get("exit_code"), len(one.get("stdout") or "")] for one in items]
            if (items := answer["body"].pop("items")) is not None else None,
            answer["body"]["next_page_id"] is not None,
            sorted(answer["body"]),
        ]

    asked = lambda **more: plain(server.asked("GET", SEARCH, params=more))

    def pages(**more):
        found, page = [], None
        for _ in range(20):
            body = server.send("GET", SEARCH, params=more | ({"page_id": page} if page else {})).json()
            found.append([everything.index(one) for one in body["items"]])
            page = body["next_page_id"]
            if page is None:
                return found
        return "no end"

    command, output = everything[2]["timestamp"], everything[1]["timestamp"]
    found = {
        "all": server.asked("GET", SEARCH),
        "in order": pages(),
        "backwards": pages(sort_order="TIMESTAMP_DESC"),
        "pages of two": pages(limit=2),
        "pages of one, backwards": pages(limit=1, sort_order="TIMESTAMP_DESC"),
        "pages of outputs": pages(limit=1, kind__eq="BashOutput"),
        "pages of a command": pages(limit=2, command_id__eq=large["command_id"]),
        "pages of later outputs": pages(limit=2, order__gt=0),
        "outputs": asked(kind__eq="BashOutput"),
        "commands": asked(kind__eq="BashCommand"),
        "of a command": asked(command_id__eq=first["command_id"]),
        "of a command, with hyphens": asked(command_id__eq=str(uuid.UUID(first["command_id"]))),
        "of a command, commands": asked(command_id__eq=first["command_id"], kind__eq="BashCommand"),
        "of an output": asked(command_id__eq=second["id"]),
        "of an unknown command": asked(command_id__eq=str(uuid.uuid4())),
        "later outputs": asked(command_id__eq=large["command_id"], order__gt=0),
        "later outputs, backwards": asked(command_id__eq=large["command_id"], order__gt=0, sort_order="TIMESTAMP_DESC"),
        "no later outputs": asked(command_id__eq=large["command_id"], order__gt=99),
        "all orders": asked(command_id__eq=large["command_id"], order__gt=-1),
        "from a time": asked(timestamp__gte=command),
        "before a time": asked(timestamp__lt=command),
        "between": asked(timestamp__gte=output, timestamp__lt=command),
        "a time without a zone": asked(timestamp__gte=command.removesuffix("Z")),
        "a time of another zone": asked(
            timestamp__gte=shifted(command, 2), timestamp__lt=shifted(everything[4]["timestamp"], -5)
        ),
        "a day": asked(timestamp__gte="2001-01-01"),
        "seconds": asked(timestamp__gte="1000000000"),
        "an unknown page": asked(page_id="no-such-page", limit=2),
        "an empty page": asked(page_id="", limit=2),
        "an unknown parameter": asked(unknown="x", limit=1),
    }
    for name, value in [
        ("limit", "0"), ("limit", "101"), ("limit", "-1"), ("limit", "x"), ("limit", "1.5"), ("limit", ""),
        ("kind__eq", "BashError"), ("kind__eq", ""), ("command_id__eq", "x"), ("command_id__eq", ""),
        ("timestamp__gte", "x"), ("timestamp__lt", ""), ("order__gt", "x"), ("order__gt", "1.5"), ("sort_order", "UP"),
        ("sort_order", ""), ("limit", "100"), ("limit", " 5 "), ("limit", "1.0"),
    ]:  # fmt: skip
        found[f"{name}={value!r}"] = asked(**{name: value})
    found["several"] = server.asked("GET", SEARCH, params={"limit": 0, "kind__eq": "x"})
    found["twice"] = plain(server.asked("GET", SEARCH + "?limit=1&limit=2"))
    return found


@case
def events_by_id(server):
    output = server.send("POST", EXECUTE, json={"command": "echo one"}).json()
    both = [output["command_id"], output["id"]]
    get = lambda one: server.asked("GET", f"{EVENTS}/{one}")
    several = lambda **more: server.asked("GET", EVENTS + "/", **more)
    return {
        "command": get(both[0]),
        "output": get(both[1]),
        "with hyphens": get(uuid.UUID(both[1])),
        "in upper case": get(both[1].upper())["status"],
        "unknown": get(uuid.uuid4().hex),
        "no id": get("no-id"),
        "several": several(json=[both[1], uuid.uuid4().hex, both[0], both[1]]),
        "several, one no id": several(json=["no-id", both[0]]),
        "several with hyphens": several(json=[str(uuid.UUID(both[1]))]),
        "none": several(json=[]),
        "no list": several(json={"ids": both}),
        "not of texts": several(json=[1, None]),
        "no body": several(),
        "broken JSON": several(content="[", headers={"Content-Type": "application/json"}),
    }


@case
def deletion(server):
    server.send("DELETE", EVENTS)
    server.executed("true")
    running = server.started("sleep 0.7; echo after")
    found = {"deleted": server.asked("DELETE", EVENTS), "again": server.asked("DELETE", EVENTS)}
    found["nothing is left"] = server.asked("GET", SEARCH)
    found["stop of a forgotten one"] = server.asked("POST", f"/api/bash/bash_commands/{uuid.uuid4()}/stop")
    outputs = server.outputs(running)
    found["a running one goes on"] = [[one["order"], one["exit_code"], one["stdout"]] for one in outputs]
    found["its command is gone"] = server.asked("GET", f"{EVENTS}/{running}")
    found["with a wrong key"] = server.asked("DELETE", EVENTS, key="wrong")
    return found


# --- the live view


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


# --- files


@case
def uploads(server):
    place = server.place("uploads")
    (place / "directory").mkdir()
    (place / "file").write_text("file")
    (place / "target").write_text("old")
    (place / "link").symlink_to("target")
    (place / "dangling").symlink_to("new")
    send = lambda path, files={"file": ("name", b"12345")}, **more: server.asked(
        "POST", "/api/file/upload", params={"path": str(path)}, files=files, **more
    )
    found = {
        "new": send(place / "new parents/one"),
        "over a file": send(place / "file"),
        "empty": send(place / "empty", {"file": ("name", b"")}),
        "through a link": send(place / "link"),
        "through a dangling link": send(place / "dangling"),
        "through parents": send(place / "directory/../through"),
        "onto a directory": send(place / "directory"),
        "onto a directory with a slash": send(f"{place}/directory/"),
        "a new one with a slash": send(f"{place}/slash/"),
        "below a file": send(place / "file/below"),
        "further below a file": send(place / "file/further/below"),
        "relative": send("relative"),
        "an empty path": send(""),
        "a long name": send(place / ("x" * 300)),
        "a byte of zero": send("/a\0b")["status"],
        "no path": server.asked("POST", "/api/file/upload", files={"file": ("name", b"1")}),
        "nothing": server.asked("POST", "/api/file/upload"),
        "no file": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}),
        "another name": send(place / "x", {"other": ("name", b"1")}),
        "a field": server.asked(
            "POST", "/api/file/upload", params={"path": str(place / "x")}, files={"file": (None, b"1")}
        ),
        "an empty filename": send(place / "x", {"file": ("", b"1")}),
        "no form": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}, content=b"1"),
        "JSON": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}, json={"file": "1"}),
        "a form without a boundary": server.asked(
            "POST", "/api/file/upload", params={"path": str(place / "x")}, content=b"1",
            headers={"Content-Type": "multipart/form-data"},
        ),
        "further fields": send(place / "further", data={"destination_path": "/other"}),
        "two files": send(place / "two", [("file", ("a", b"first")), ("file", ("b", b"second one"))]),
        "a type": send(place / "typed", {"file": ("name", b"12", "text/plain")}),
        "a path in the query twice": server.asked(
            "POST", f"/api/file/upload?path={place}/q1&path={place}/q2", files={"file": ("name", b"1")}
        ),
        "of an older client": server.asked(
            "POST", f"/api/file/upload/{place}/older", files={"file": ("name", b"1")},
            data={"destination_path": str(place / "older")},
        ),
        "large": send(place / "large", {"file": ("name", b"x" * 5_000_000)}),
    }  # fmt: skip
    found["there"] = {
        str(path.relative_to(place)): ["link" if path.is_symlink() else "file", path.stat().st_size]
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != "older"
    }
    return found


@case
def downloads(server):
    place = server.place("downloads")
    (place / "directory").mkdir()
    (place / "file").write_bytes(b"0123456789")
    (place / "empty").write_bytes(b"")
    (place / "a b").write_bytes(b"1")
    (place / "ü 😀.txt").write_bytes(b"2")
    (place / 'q"uote\\\'.txt').write_bytes(b"3")
    (place / "page.html").write_bytes(b"<p>")
    (place / "bytes").write_bytes(bytes(range(256)))
    (place / "link").symlink_to("file")
    (place / "dangling").symlink_to("no such")
    os.mkfifo(place / "pipe")
    for path in place.iterdir():
        if path.is_file():
            os.utime(path, (1_700_000_000, 1_700_000_000))
    names = ["content-type", "content-length", "content-disposition", "accept-ranges", "last-modified", "content-range"]
    get = lambda path, **more: server.asked("GET", "/api/file/download", *names, params={"path": str(path)}, **more)
    etag = server.send("GET", "/api/file/download", params={"path": str(place / "file")}).headers["etag"]

    def part(header, **more):
        found = get(place / "file", headers={"Range": header} | more)
        if (found["content-type"] or "").startswith("multipart/byteranges"):
            return [found["status"], "several parts", "0123456789"[4:6] in found["body"]]
        return found

    data = server.send("GET", "/api/file/download", params={"path": str(place / "bytes")}).content
    return {
        "file": get(place / "file"),
        "the mark of its state": bool(re.fullmatch(r'"[^"]+"', etag)),
        "the mark is the same again": etag
        == server.send("GET", "/api/file/download", params={"path": str(place / "file")}).headers["etag"],
        "empty": get(place / "empty"),
        "with a space": get(place / "a b"),
        "with letters": get(place / "ü 😀.txt"),
        "with quotes": get(place / 'q"uote\\\'.txt'),
        "a page": get(place / "page.html"),
        "bytes": data == bytes(range(256)),
        "a link": get(place / "link"),
        "through parents": get(place / "directory/../file"),
        "with a slash": get(f"{place}/file/"),
        "with dots": get(f"{place}/./file"),
        "a dangling link": get(place / "dangling"),
        "missing": get(place / "no such"),
        "below a file": get(place / "file/below"),
        "a directory": get(place / "directory"),
        "a pipe": get(place / "pipe"),
        "a device": get("/dev/null"),
        "relative": get("downloads/file"),
        "an empty path": get(""),
        "a tilde": get("~/file"),
        "a long name": get(place / ("x" * 300)),
        "a byte of zero": get("/a\0b")["status"],
        "no path": server.asked("GET", "/api/file/download"),
        "of an older client": server.asked("GET", f"/api/file/download/{place}/file"),
        "an older client's missing one": server.asked("GET", f"/api/file/download/{place}/no%20such"),
        "the first bytes": part("bytes=0-3"),
        "one byte": part("bytes=9-9"),
        "from a byte on": part("bytes=5-"),
        "the last bytes": part("bytes=-3"),
        "more than there are": part("bytes=5-100"),
        "more last bytes than there are": part("bytes=-100"),
        "behind the end": part("bytes=10-20"),
        "backwards": part("bytes=5-2"),
        "several": part("bytes=0-1,4-5"),
        "several that touch": part("bytes=0-1,2-5"),
        "no range": part("bytes=x"),
        "an empty range": part("bytes="),
        "another unit": part("lines=1-2"),
        "with the same mark": part("bytes=0-3", **{"If-Range": etag}),
        "with another mark": part("bytes=0-3", **{"If-Range": '"other"'}),
        "with the time": part("bytes=0-3", **{"If-Range": "Tue, 14 Nov 2023 22:13:20 GMT"}),
        "unless it is the same": get(place / "file", headers={"If-None-Match": etag}),
        "a range of an empty file": get(place / "empty", headers={"Range": "bytes=0-3"}),
        "a trajectory": server.asked("GET", f"/api/file/download-trajectory/{uuid.uuid4()}"),
        "a trajectory of no id": server.asked("GET", "/api/file/download-trajectory/x"),
    }


@case
def new_directories(server):
    place = server.place("new-directories")
    (place / "file").write_text("")
    make = lambda path: server.asked("POST", "/api/file/create_directory", params={"path": str(path)})
    found = {
        "new": make(place / "a/b c/ü"),
        "again": make(place / "a/b c/ü"),
        "onto a file": make(place / "file"),
        "below a file": make(place / "file/below"),
        "further below a file": make(place / "file/further/below"),
        "relative": make("relative"),
        "an empty path": make(""),
        "a long name": make(place / ("x" * 300)),
        "where nothing can be": make("/proc/x"),
        "no path": server.asked("POST", "/api/file/create_directory"),
        "a path in the body": server.asked("POST", "/api/file/create_directory", json={"path": str(place / "x")}),
    }
    found["there"] = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    return found


@case
def lists_of_directories(server):
    place = server.place("lists")
    for name in ["b", "A", "a", "Ü", "é", ".hidden", "with space", "B/inner"]:
        (place / name).mkdir(parents=True)
    (place / "file").write_text("")
    (place / "link").symlink_to("b")
    many = server.place("many")
    for number in range(105):
        (many / f"d{number:03}").mkdir()
    get = lambda path, **more: server.asked("GET", "/api/file/search_subdirs", params={"path": str(path)} | more)

    def pages(path, **more):
        found, page = [], None
        for _ in range(20):
            body = get(path, **more | ({"page_id": page} if page else {}))["body"]
            found.append([one["name"] for one in body["items"]])
            page = body["next_page_id"]
            if page is None:
                return found
        return "no end"

    return {
        "all": get(place),
        "hidden ones, too": get(place, include_hidden="true"),
        "hidden ones by 1": get(place, include_hidden="1")["status"],
        "hidden ones by a word": get(place, include_hidden="maybe"),
        "pages of two": pages(place, limit=2),
        "more than a page": [len(page) for page in pages(many)],
        "of many, the next": get(many)["body"]["next_page_id"],
        "a page in lower case": get(place, page_id="with space", limit=1),
        "a page of another case": get(place, page_id="ü", limit=1),
        "an unknown page": get(place, page_id="zzz", limit=1),
        "with a slash": get(f"{place}/", limit=1),
        "with dots": get(f"{place}/b/../b"),
        "through a link": get(place / "link"),
        "empty": get(place / "b"),
        "missing": get(place / "no such"),
        "a file": get(place / "file"),
        "relative": get("lists"),
        "an empty path": get(""),
        "no path": server.asked("GET", "/api/file/search_subdirs"),
        "limit 0": get(place, limit=0),
        "limit 101": get(place, limit=101),
        "limit x": get(place, limit="x"),
    }


@case
def the_home(server):
    for name in ["Projects", "alpha", ".kept"]:
        (server.home / name).mkdir(exist_ok=True)
    (server.home / "link").unlink(missing_ok=True)
    (server.home / "link").symlink_to("alpha")
    get = lambda **more: server.asked("GET", "/api/file/home", params=more)
    plain, hidden = get(), get(include_hidden="true")
    hidden["body"]["favorites"] = [one for one in hidden["body"]["favorites"] if one["label"] in ("alpha", ".kept")]
    return {"plain": plain, "hidden ones, too": hidden, "no word": get(include_hidden="x")}


# --- git


GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada", "GIT_COMMITTER_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_EMAIL": "ada@example.org",
}  # fmt: skip


def git(place, *arguments, minute=0):
    when = {f"GIT_{who}_DATE": f"2024-01-02T03:{minute:02}:05+02:00" for who in ("AUTHOR", "COMMITTER")}
    environment = os.environ | GIT | when
    done = subprocess.run(["git", *arguments], cwd=place, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(place):
    """Three commits on `main`, and changes of all kinds that are not committed."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    (place / "sub").mkdir()
    for name, text in {
        "kept": "kept\n", "changed": "one\ntwo\n", "removed": "gone\n", "renamed": "a long text that is renamed\n" * 9,
        "windows": "a\r\nb\r\n", "sub/inner": "inner\n", "binary": "\0", ".gitignore": "ignored\n", "mode": "#!\n",
    }.items():  # fmt: skip
        (place / name).write_bytes(text.encode())
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first", minute=1)
    (place / "changed").write_text("one\nTWO\n")
    git(place, "commit", "-q", "-a", "-m", "second: ü\n\nwith a body", minute=2)
    git(place, "rm", "-q", "removed")
    (place / "added").write_text("added\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "third", minute=3)
    (place / "changed").write_text("one\nTWO\nthree\n")
    (place / "windows").write_bytes(b"a\r\nB\r\n")
    (place / "binary").write_bytes(b"\0\xff\xfe")
    (place / "sub/inner").unlink()
    git(place, "mv", "renamed", "moved")
    (place / "new").write_text("new\n")
    (place / "newdir/deeper").mkdir(parents=True)
    (place / "newdir/deeper/file").write_text("x")
    (place / "ignored").write_text("x")
    (place / "mode").chmod(0o755)
    (place / "large").write_text("x" * 1_048_577)
    return place


@case
def git_of_the_workspace(server):
    place = repository(server.directory / "repository")
    workspace = RemoteWorkspace(host=server.url, api_key=server.token, working_dir=str(place))
    plain = lambda call: raised(lambda: call().model_dump(mode="json"))
    spaces = server.directory / "spaces"
    spaces.mkdir()
    git(spaces, "init", "-q", "-b", "main")
    (spaces / "with space").write_text("1\n")
    git(spaces, "add", ".")
    git(spaces, "commit", "-q", "-m", "first")
    (spaces / "with space").write_text("2\n")
    letters = server.directory / "letters"
    letters.mkdir()
    git(letters, "init", "-q", "-b", "main")
    (letters / "é.txt").write_text("1\n")
    git(letters, "add", ".")
    git(letters, "commit", "-q", "-m", "first")
    (letters / "é.txt").write_text("2\n")
    (letters / "neu ü").write_text("2\n")
    changes = lambda path: raised(lambda: [one.model_dump(mode="json") for one in workspace.git_changes(path)])
    return {
        "changes": changes("."),
        "changes below": changes("sub"),
        "changes of a space": changes(spaces),
        "changes of letters": changes(letters),
        "changes of nothing": changes("/no/such"),
        "diff": plain(lambda: workspace.git_diff("changed")),
        "diff of an absolute path": plain(lambda: workspace.git_diff(place / "changed")),
        "diff of a space": plain(lambda: workspace.git_diff(spaces / "with space")),
        "diff of letters": plain(lambda: workspace.git_diff(letters / "é.txt")),
        "diff of nothing": plain(lambda: workspace.git_diff("no-such")),
    }


@case
def git_requests(server):
    place = repository(server.directory / "requests")
    head = git(place, "rev-parse", "HEAD")
    empty = server.directory / "no-commits"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")
    (empty / "new").write_text("new\n")
    outside = server.place("no-repository")
    (outside / "file").write_text("x\n")
    clone = server.directory / "clone"
    git(server.directory, "clone", "-q", str(place), str(clone))
    (clone / "kept").write_text("changed\n")
    git(clone, "commit", "-q", "-a", "-m", "of the clone", minute=4)
    (clone / "new").write_text("new\n")
    outer = server.directory / "outer"
    repository(outer)
    repository(outer / "nested")
    beside = server.directory / "beside"
    repository(beside / "one")
    branch = server.directory / "branch"
    repository(branch)
    git(branch, "stash", "-q", "-u")
    git(branch, "checkout", "-q", "-b", "feature")
    (branch / "kept").write_text("feature\n")
    git(branch, "commit", "-q", "-a", "-m", "of the branch", minute=5)

    get = lambda route, path, **more: short(server.asked("GET", f"/api/git/{route}", params={"path": str(path)} | more))
    changes = lambda path, **more: get("changes", path, **more)
    diff = lambda path, **more: get("diff", path, **more)
    commits = lambda path, **more: get("commits", path, **more)
    return {
        "changes": changes(place),
        "changes of HEAD": changes(place, ref="HEAD"),
        "changes of an older one": changes(place, ref="HEAD~2"),
        "changes of a branch": changes(place, ref="main"),
        "changes of no ref": changes(place, ref="no-such"),
        "changes of an option": changes(place, ref="--output=/tmp/x"),
        "changes of an empty ref": changes(place, ref=""),
        "changes below": changes(place / "sub"),
        "changes of new files below": changes(place / "newdir"),
        "changes without commits": changes(empty),
        "changes without commits, of HEAD": changes(empty, ref="HEAD"),
        "changes outside": changes(outside),
        "changes of a file": changes(place / "changed"),
        "changes of nothing": changes(place / "no such"),
        "changes of a relative path": changes("requests")["status"],
        "changes of a clone": changes(clone),
        "changes of a clone, of HEAD": changes(clone, ref="HEAD"),
        "changes with a nested one": changes(outer),
        "changes beside a repository": changes(beside),
        "changes on a branch": changes(branch),
        "changes without a path": server.asked("GET", "/api/git/changes"),
        "diff": diff(place / "changed"),
        "diff of an older one": diff(place / "changed", ref="HEAD~2"),
        "diff of no ref": diff(place / "changed", ref="no-such"),
        "diff of a kept file": diff(place / "kept"),
        "diff of a new file": diff(place / "new"),
        "diff of a removed file": diff(place / "sub/inner"),
        "diff of a renamed file": diff(place / "moved"),
        "diff of line ends": diff(place / "windows"),
        "diff of bytes": diff(place / "binary"),
        "diff of an ignored file": diff(place / "ignored"),
        "diff of a large file": diff(place / "large"),
        "diff of a directory": diff(place / "sub"),
        "diff of nothing": diff(place / "no-such"),
        "diff outside": diff(outside / "file"),
        "diff of nothing outside": diff(outside / "no-such"),
        "diff without commits": diff(empty / "new"),
        "diff of a commit": diff(place / "changed", commit=head),
        "diff of a commit before": diff(place / "added", commit=head[:7]),
        "diff of what a commit removed": diff(place / "removed", commit=head),
        "diff of what no commit has": diff(place / "no-such", commit=head),
        "diff of an unknown commit": diff(place / "changed", commit="deadbeef"),
        "diff of no commit": diff(place / "changed", commit="HEAD"),
        "diff of both": diff(place / "changed", commit=head, ref="HEAD"),
        "diff of a commit outside": diff(outside / "file", commit=head),
        "diff without a path": server.asked("GET", "/api/git/diff"),
        "commits": commits(place),
        "commits, the first": commits(place, limit=1),
        "commits, exactly": commits(place, limit=3),
        "commits below": commits(place / "sub"),
        "commits without commits": commits(empty),
        "commits outside": commits(outside),
        "commits of nothing": commits(place / "no such"),
        "commits, limit 0": commits(place, limit=0),
        "commits, limit 201": commits(place, limit=201),
        "commits without a path": server.asked("GET", "/api/git/commits"),
        "changes of a commit": get(f"commits/{head}/changes", place),
        "changes of a short commit": get(f"commits/{head[:6].upper()}/changes", place),
        "changes of a commit below": get(f"commits/{head}/changes", place / "sub"),
        "changes of an unknown commit": get("commits/deadbeef/changes", place),
        "changes of a short name": get("commits/abc/changes", place),
        "changes of a word": get("commits/main/changes", place),
        "changes of a commit outside": get(f"commits/{head}/changes", outside),
        "changes of a commit without a path": server.asked("GET", f"/api/git/commits/{head}/changes"),
    }


def short(answer):
    """Of a failure of git what a client may rely on: the text tells of commands, which are the server's own matter."""
    body = answer["body"]
    if answer["status"] == 400 and isinstance(body, dict) and body["detail"].startswith("Git command failed"):
        print(body["detail"], file=sys.stderr)
        body["detail"] = "Git command failed"
    return answer


# --- the rest


@case
def the_editor(server):
    get = lambda path, **more: server.asked("GET", f"/api/vscode/{path}", **more)
    return {
        "status": get("status"),
        "url": get("url"),
        "url with all": get("url", params={"base_url": "http://other:1", "workspace_dir": "/a b"}),
        "no such": get("no-such"),
    }


HOOKS = {
    "valid": {"pre_tool_use": [{"matcher": "terminal", "hooks": [{"type": "command", "command": "a", "timeout": 5}]}]},
    "in camel case": {"PreToolUse": [{"hooks": [{"command": "a", "async": True}]}], "Stop": []},
    "below hooks": {"hooks": {"SessionStart": [{"matcher": "*", "hooks": [{"command": "a", "name": "n"}]}]}},
    "below hooks, and more": {"hooks": {"stop": [{"hooks": [{"command": "a"}]}]}, "more": 1},
    "all": {name: [{"hooks": [{"command": name}]}] for name in ("pre_tool_use", "post_tool_use", "user_prompt_submit",
                                                                "session_start", "session_end", "stop")},
    "a prompt": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "system_prompt": "s"}]}]},
    "an agent": {"stop": [{"hooks": [{"type": "agent", "system_prompt": "s", "tools": ["x"], "max_iterations": 1}]}]},
    "an agent with nothing": {"stop": [{"hooks": [{"type": "agent"}]}]},
    "more in a hook": {"stop": [{"hooks": [{"command": "a", "more": 1}], "more": 1}]},
    "no hooks in a matcher": {"stop": [{}]},
    "empty lists": {"stop": [], "session_end": []},
    "empty": {},
    "empty hooks": {"hooks": {}},
    "both cases": {"Stop": [{"hooks": [{"command": "a"}]}], "stop": []},
    "an unknown key": {"other": [], "stop": [{"hooks": [{"command": "a"}]}]},
    "an unknown key in camel case": {"Other": [], "stop": [{"hooks": [{"command": "a"}]}]},
    "a command without one": {"stop": [{"hooks": [{"type": "command"}]}]},
    "a prompt without one": {"stop": [{"hooks": [{"type": "prompt"}]}]},
    "a prompt with a command": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "command": "a"}]}]},
    "an unknown type": {"stop": [{"hooks": [{"type": "other", "command": "a"}]}]},
    "text as the timeout": {"stop": [{"hooks": [{"command": "a", "timeout": "7"}]}]},
    "half a second": {"stop": [{"hooks": [{"command": "a", "timeout": 0.5}]}]},
    "async as a word": {"stop": [{"hooks": [{"command": "a", "async": "yes"}]}]},
    "async with its other name": {"stop": [{"hooks": [{"command": "a", "async_": True}]}]},
    "a background prompt": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "async": True}]}]},
    "no list": {"stop": {"hooks": []}},
    "a list": [],
    "null": None,
    "null for a key": {"stop": None},
    "no JSON": "{",
}  # fmt: skip


@case
def hooks(server):
    place = server.place("hooks")
    (place / ".openhands").mkdir()
    file = place / ".openhands/hooks.json"
    ask = lambda **body: server.asked("POST", "/api/hooks", **(body or {"json": {"project_dir": str(place)}}))
    found = {"missing": ask()}
    for name, content in HOOKS.items():
        file.write_text(content if name == "no JSON" else json.dumps(content))
        found[name] = ask()
    file.write_bytes(b"")
    found["an empty file"] = ask()
    file.unlink()
    file.mkdir()
    found["a directory"] = ask()
    return found | {
        "no such project": ask(json={"project_dir": "/no/such"}),
        "a relative project": ask(json={"project_dir": "hooks"}),
        "null as the project": ask(json={"project_dir": None}),
        "an empty project": ask(json={"project_dir": ""}),
        "nothing": ask(json={}),
        "a number": ask(json={"project_dir": 7}),
        "a list as the body": ask(json=[]),
        "no body": ask(content=b""),
        "broken JSON": ask(content=b"{", headers={"Content-Type": "application/json"}),
    }


@case
def tools_and_the_start(server):
    tools = server.asked("GET", "/api/tools/")
    names = tools.pop("body")
    return {
        "tools": tools | {"are names": isinstance(names, list) and all(isinstance(name, str) for name in names)},
        "there are tools": bool(names),
        "init": server.asked("GET", "/api/init", key=None),
        "init with a key": server.asked("GET", "/api/init"),
        "start": server.asked("POST", "/api/init", json={}),
        "start without a key": server.asked("POST", "/api/init", key=None, json={}),
        "start without a body": server.asked("POST", "/api/init", key=None),
        "the desktop": server.asked("GET", "/api/desktop/url"),
    }


def speed(server, count):
    """Milliseconds at the median, and commands a second of eight clients."""
    server.send("DELETE", EVENTS)
    kept = httpx.Client(base_url=server.url, headers={"X-Session-API-Key": server.token}, timeout=REQUEST)

    def median(call):
        times = []
        for _ in range(count):
            began = time.perf_counter()
            call()
            times.append((time.perf_counter() - began) * 1000)
        return round(statistics.median(times), 2)

    def client(number):
        with httpx.Client(base_url=server.url, headers={"X-Session-API-Key": server.token}, timeout=60) as http:
            for _ in range(number):
                http.post(EXECUTE, json={"command": "true"}).raise_for_status()

    found = {
        "health": median(lambda: kept.get("/health").raise_for_status()),
        "execute_bash_command": median(
            lambda: kept.post(EXECUTE, json={"command": "true"}).raise_for_status()
        ),
        "execute_command": median(lambda: server.workspace.execute_command("true")),
    }
    server.send("DELETE", EVENTS)
    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, [max(1, count // 4)] * 8))
    found["commands_per_second"] = round(max(1, count // 4) * 8 / (time.perf_counter() - began), 1)
    return found


class Names:
    """Stands in for what is another at each time: ids by the order in which they come, times, places, the key."""

    ID = re.compile(r"(?<![0-9a-f-])(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f-])")
    TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

    def __init__(self, server):
        self.plain = {
            str(server.directory): "ROOT",
            quote(str(server.directory), safe=""): "ROOT",
            str(server.home): "HOME",
            server.url: "URL",
            server.token: "TOKEN",
        }

    def of(self, value):
        ids = {}

        def name(match):
            key = match[0].replace("-", "")
            return f"ID{ids.setdefault(key, len(ids) + 1)}" + (" with hyphens" if "-" in match[0] else "")

        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        for plain, stand_in in self.plain.items():
            text = text.replace(plain, stand_in)
        return json.loads(self.TIME.sub("TIME", self.ID.sub(name, text)))

    def found(self, value):
        """Each part has ids of its own, so that one that differs makes no other do."""
        return {name: self.of(one) for name, one in value.items()} if isinstance(value, dict) else self.of(value)


def bounded(function, server):
    """What a case finds, or that it breaks or hangs."""
    found = []

    def run():
        try:
            found.append(function(server))
        except Exception as error:
            traceback.print_exc()
            found.append({"broken": f"{type(error).__name__}: {error}"})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(CASE)
    return found[0] if found else {"broken": f"it takes more than {CASE} seconds"}


def main(url, token, directory, *rest):
    server = Server(url, token, directory)
    if rest:
        print("\n" + json.dumps(speed(server, int(rest[1]))))
        return
    names, found = Names(server), {}
    # It waits for ten seconds and does nothing else.
    waiting = ThreadPoolExecutor(1).submit(bounded, a_socket_without_a_key, server)
    for function in CASES:
        began = time.monotonic()
        value = waiting.result() if function is a_socket_without_a_key else bounded(function, server)
        found[function.__name__] = names.found(value)
        print(f"{function.__name__}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    print("\n" + json.dumps(found, ensure_ascii=False), flush=True)
    # A case that hangs holds nothing up.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
