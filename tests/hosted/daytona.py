"""Drives the stand-in of Daytona with Daytona's own SDK, unmodified."""

import json
import os
import re
import sys
import urllib.error
import urllib.request

from drive import Checks, StandIn, arguments, recorded

PROGRAM, FILE, RECORD = arguments()
stand_in = StandIn(PROGRAM, "daytona")
# The SDK has the name of this file.
sys.path.remove(os.path.dirname(os.path.abspath(__file__)))

import daytona  # noqa: E402
from daytona import (  # noqa: E402
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    Daytona,
    ListSandboxesQuery,
    Resources,
    SessionExecuteRequest,
)

check = Checks("daytona")
client = Daytona()


def get(url, headers):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def refused(work):
    try:
        work()
    except daytona.DaytonaError as error:
        return error
    raise AssertionError("it was not refused")


# The wish of our own client.
WISH = {
    "name": "s1",
    "labels": {"gloveport.daytona.session": "s1"},
    "public": False,
    "auto_stop_interval": 15,
    "auto_delete_interval": -1,
    "network_block_all": True,
}


def life():
    """One life, of which every request is recorded."""
    stand_in.ask("requests")
    made = client.create(CreateSandboxFromSnapshotParams(**WISH))
    made.fs.upload_file(b"#!/bin/sh\necho program\n", f"{home}/bin/program")
    made.fs.set_file_permissions(f"{home}/bin/program", mode="0755")
    ran = made.process.exec("echo there", cwd="/", timeout=60)
    assert (ran.exit_code, ran.result.strip()) == (0, "there"), ran
    made.process.create_session("gloveport-server")
    made.process.execute_session_command(
        "gloveport-server", SessionExecuteRequest(command=f"{home}/bin/program", run_async=True)
    )
    made.get_preview_link(60000)
    made.refresh_activity()
    made.stop()
    made.start()
    client.get("s1")
    assert [one.id for one in client.list(ListSandboxesQuery(labels=WISH["labels"], limit=100))] == [made.id]
    made.delete()
    hidden = {made.id: "ID", home: "HOME"}
    found = []
    for request in stand_in.ask("requests"):
        # Looks until a state is reached are as many as it takes.
        if request["method"] == "GET" and re.fullmatch(r"/api/sandbox/[^/?]+", request["path"]):
            continue
        if "socket.io" in request["path"] or request["path"] == "/api/config":
            continue
        text = json.dumps(request)
        for one, name in hidden.items():
            text = text.replace(one, name).replace(one.replace("/", "%2F"), name)
        found.append(json.loads(text))
    return recorded(FILE, found, RECORD)


first = check("a sandbox is made", lambda: client.create(CreateSandboxFromSnapshotParams(name="first", env_vars={"A": "b"})))
if first is None:
    check.end()
home = first.get_user_home_dir()
check("a life is as recorded", life)
check("a sandbox has an id and a state", lambda: first.id and first.state.value == "started")
check("a name is taken once", lambda: refused(lambda: client.create(CreateSandboxFromSnapshotParams(name="first"))))
check("it is found by its name", lambda: client.get("first").id == first.id)
check("one that is not there is not found", lambda: refused(lambda: client.get("nobody")))
check("a command has its variables", lambda: first.process.exec("echo $A $B", env={"B": "c"}).result.strip() == "b c")
check("a command has its code", lambda: first.process.exec("exit 7").exit_code == 7)
check("a command has its directory", lambda: first.process.exec("pwd", cwd="/").result.strip() == "/")
check("a command has a time limit", lambda: refused(lambda: first.process.exec("sleep 20", timeout=1)))
check("files are written", lambda: first.fs.upload_file(b"\x00\xff", f"{home}/deep/file") is None)
check("files are what was written", lambda: first.process.exec(f"od -An -tx1 {home}/deep/file").result.split() == ["00", "ff"])
check("files are removed", lambda: first.fs.delete_file(f"{home}/deep/file") is None)


def session():
    first.process.create_session("one")
    refused(lambda: first.process.create_session("one"))
    done = first.process.execute_session_command("one", SessionExecuteRequest(command="echo out; echo err >&2; exit 3"))
    assert (done.exit_code, done.stdout.strip(), done.stderr.strip()) == (3, "out", "err"), done
    command = first.process.get_session_command("one", done.cmd_id)
    assert command.exit_code == 3, command
    logs = first.process.get_session_command_logs("one", done.cmd_id)
    assert logs.stdout.strip() == "out", logs
    first.process.delete_session("one")
    return True


check("sessions run commands", session)


def ports():
    first.process.create_session("server")
    serve = SessionExecuteRequest(command="python3 -m http.server 43217 --bind 127.0.0.1", run_async=True)
    first.process.execute_session_command("server", serve)
    link = first.get_preview_link(43217)
    for _ in range(100):
        status, body = get(link.url + "/", {"x-daytona-preview-token": link.token})
        if status == 200:
            break
        first.process.exec("sleep 0.1")
    assert status == 200 and b"Directory listing" in body, (status, body)
    assert get(link.url + "/", {})[0] == 401
    first.stop()
    assert get(link.url + "/", {"x-daytona-preview-token": link.token})[0] == 502
    first.start()
    assert first.get_preview_link(43217).token != link.token
    return True


check("ports ask for a token, which is another one after a start", ports)
check("labels are changed", lambda: first.set_labels({"team": "a"}) == {"team": "a"})
check("lists are filtered", lambda: [one.id for one in client.list(ListSandboxesQuery(labels={"team": "a"}))] == [first.id])
check("a list without matches is empty", lambda: list(client.list(ListSandboxesQuery(labels={"team": "b"}))) == [])


def pages():
    more = [client.create(CreateSandboxFromSnapshotParams(name=f"page{n}", labels={"page": "x"})) for n in range(3)]
    listed = list(client.list(ListSandboxesQuery(labels={"page": "x"}, limit=1)))
    assert sorted(one.id for one in listed) == sorted(one.id for one in more), listed
    for one in more:
        one.delete()
    return True


check("lists have pages", pages)


def image():
    made = client.create(CreateSandboxFromImageParams(image="debian:13", resources=Resources(cpu=2, memory=4)))
    assert (made.cpu, made.memory) == (2, 4), made
    made.delete()
    return True


check("an image has a size", image)


def snapshot():
    first.create_snapshot("kept")
    assert client.snapshot.get("kept").state.value == "active"
    made = client.create(CreateSandboxFromSnapshotParams(name="from", snapshot="kept"))
    made.delete()
    refused(lambda: client.create(CreateSandboxFromSnapshotParams(name="none", snapshot="unknown")))
    assert [one.name for one in client.snapshot.list().items] == ["kept"]
    client.snapshot.delete(client.snapshot.get("kept"))
    refused(lambda: client.snapshot.get("kept"))
    return True


check("a snapshot is made, used and removed", snapshot)
check("intervals are set", lambda: first.set_autostop_interval(5) is None and first.set_auto_delete_interval(-1) is None)


def idle():
    made = client.create(CreateSandboxFromSnapshotParams(name="idle", auto_stop_interval=1))
    gone = client.create(CreateSandboxFromSnapshotParams(name="gone", auto_stop_interval=1, auto_delete_interval=0))
    stand_in.ask("advance", seconds=70)
    assert client.get("idle").state.value == "stopped"
    refused(lambda: client.get(gone.id))
    made.delete()
    return True


check("what nobody uses is stopped, and deleted if it is to be", idle)


def busy():
    stand_in.ask("fail", method="GET", path="/api/sandbox/first", status=403, message="because")
    assert "because" in str(refused(lambda: client.get("first")))
    return True


check("refusals have their reason", busy)
check("a wrong key is refused", lambda: refused(lambda: Daytona(daytona.DaytonaConfig(api_key="x", api_url=f"{stand_in.url}/api")).get("first")))
check("a sandbox is deleted", lambda: first.delete() is None)
stand_in.end()
check.end()
