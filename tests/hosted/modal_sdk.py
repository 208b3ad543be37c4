"""Drives the stand-in of Modal with Modal's own SDK, unmodified."""

import json
import os
import tempfile
import urllib.error
import urllib.request

from drive import Checks, StandIn, arguments, recorded

PROGRAM, FILE, RECORD = arguments()
# What the SDK keeps for itself is not that of whoever runs this.
os.environ["MODAL_CONFIG_PATH"] = os.path.join(tempfile.mkdtemp(), "modal.toml")
stand_in = StandIn(PROGRAM, "modal")

import modal  # noqa: E402

check = Checks("modal_sdk")
app = modal.App.lookup("tests", create_if_missing=True)
image = modal.Image.from_registry("debian:13")
directory = tempfile.mkdtemp()


def refused(work, kind=modal.exception.Error):
    try:
        work()
    except kind as error:
        return error
    raise AssertionError("it was not refused")


def get(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.URLError as error:
        return None, str(error).encode()


def create(*words, **settings):
    return modal.Sandbox.create(*(words or ("sleep", "300")), app=app, image=image, **settings)


def serve(port):
    """A program whose port is open."""
    return ("python3", "-m", "http.server", str(port), "--bind", "127.0.0.1")


# The wish of our own client.
def wish(name):
    program = os.path.join(directory, "program")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho started\necho more\nexec " + " ".join(serve(43218)) + "\n")
    os.chmod(program, 0o755)
    return {
        "image": modal.Image.from_registry("debian:13").add_local_file(program, "/tmp/stand-in-modal/program"),
        "name": name,
        "tags": {"gloveport.modal.session": name, "gloveport.modal.wish": "w"},
        "env": {"SESSION_API_KEY": "key"},
        "timeout": 3600,
        "cpu": 1.0,
        "memory": 512,
        "encrypted_ports": [43218, 12000],
        "readiness_probe": modal.Probe.with_tcp(43218, interval_ms=200),
        "outbound_cidr_allowlist": ["10.0.0.0/8"],
        "outbound_domain_allowlist": ["pypi.org"],
    }


def life():
    """One life, of which every request is recorded, and those before it with which the SDK begins."""
    made = modal.Sandbox.create("sh", "/tmp/stand-in-modal/program", app=modal.App.lookup("tests", create_if_missing=True), **wish("s1"))
    made.wait_until_ready(timeout=30)
    assert set(made.tunnels()) == {43218, 12000}
    assert next(iter(made.stdout)).strip() == "started"
    assert modal.Sandbox.from_name("tests", "s1").object_id == made.object_id
    same = modal.Sandbox.from_id(made.object_id)
    assert same.poll() is None and same.get_tags() == {"gloveport.modal.session": "s1", "gloveport.modal.wish": "w"}
    assert set(same.tunnels()) == {43218, 12000}
    assert [one.object_id for one in modal.Sandbox.list(app_id=app.app_id, tags={"gloveport.modal.session": "s1"})] == [made.object_id]
    same.snapshot_filesystem()
    same.set_tags({"a": "b"})
    made.terminate(wait=True)
    past = made.logs.tail(100)
    assert "started" in "".join(entry.message for entry in past)
    hidden = {made.object_id: "ID", app.app_id: "APP"}
    found = {}
    for request in stand_in.ask("requests"):
        if request["method"] != "POST" or request["body"] is None:
            continue
        text = json.dumps(request["body"])
        for one, name in hidden.items():
            text = text.replace(one, name)
        body = json.loads(text)
        # As often as a state is looked at, and in whatever order: one of each call, with all fields that it had.
        kept = found.setdefault(request["path"], {"metadata": body["metadata"], "messages": []})
        kept["messages"] = merged(kept["messages"], body["messages"])
    return recorded(FILE, [{"method": "POST", "path": path, "body": found[path]} for path in sorted(found)], RECORD)


def shape(value):
    """What a message has, without what is different each time."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    if isinstance(value, str):
        return "text"
    return "number"


def merged(known, new):
    for message in new:
        one = shape(message)
        if one not in known:
            known.append(one)
    return sorted(known, key=lambda one: json.dumps(one, sort_keys=True))


check("a life is as recorded", life)
first = check("a sandbox is made", lambda: create(name="first", env={"A": "b"}))
if first is None:
    check.end()
check("a sandbox runs until it ends", lambda: first.poll() is None)
check("it is found by its name", lambda: modal.Sandbox.from_name("tests", "first").object_id == first.object_id)
check("it is found by its id", lambda: modal.Sandbox.from_id(first.object_id).object_id == first.object_id)
check("one that is not there is not found", lambda: refused(lambda: modal.Sandbox.from_name("tests", "nobody"), modal.exception.NotFoundError))
check("a name is taken once", lambda: refused(lambda: create(name="first"), modal.exception.AlreadyExistsError))


def exec_():
    done = first.exec("sh", "-c", "echo out $A $B; echo err >&2; exit 7", env={"B": "c"})
    assert (done.stdout.read(), done.stderr.read(), done.wait()) == ("out b c\n", "err\n", 7)
    return True


check("a command has its variables, its outputs and its code", exec_)
check("a command has its directory", lambda: first.exec("pwd", workdir="/").stdout.read() == "/\n")


def stdin():
    done = first.exec("cat")
    done.stdin.write("one\n")
    done.stdin.drain()
    done.stdin.write("two\n")
    done.stdin.write_eof()
    done.stdin.drain()
    return done.stdout.read() == "one\ntwo\n" and done.wait() == 0


check("a command has its input", stdin)
check("a command has a time limit", lambda: first.exec("sleep", "20", timeout=1).wait() != 0)


def files():
    path = f"{directory}/deep/file"
    first.filesystem.write_bytes(b"\x00\xff", path)
    assert first.filesystem.read_bytes(path) == b"\x00\xff"
    first.filesystem.remove(path)
    refused(lambda: first.filesystem.read_bytes(path), Exception)
    return True


check("files are written, read and removed", files)


def entry():
    made = create("sh", "-c", "echo said; read line; echo heard $line; exit 3")
    made.stdin.write("it\n")
    made.stdin.drain()
    made.wait(raise_on_termination=False)
    assert made.returncode == 3, made.returncode
    return made.stdout.read() == "said\nheard it\n"


check("the entry point has input and output, and the sandbox ends with it", entry)


def ports():
    made = create(*serve(43217), encrypted_ports=[43217], readiness_probe=modal.Probe.with_tcp(43217))
    made.wait_until_ready(timeout=30)
    tunnel = made.tunnels()[43217]
    assert tunnel.url.startswith("https://"), tunnel.url
    status, body = get(f"http://{tunnel.host}:{tunnel.port}/")
    assert status == 200 and b"Directory listing" in body, (status, body)
    made.terminate(wait=True)
    return get(f"http://{tunnel.host}:{tunnel.port}/")[0] is None


check("ports are reached while the sandbox lives", ports)
check("what is not ready is told as such", lambda: refused(lambda: create(readiness_probe=modal.Probe.with_tcp(9)).wait_until_ready(timeout=1), Exception))


def tags():
    first.set_tags({"team": "a"})
    assert first.get_tags() == {"team": "a"}
    assert [one.object_id for one in modal.Sandbox.list(app_id=app.app_id, tags={"team": "a"})] == [first.object_id]
    return list(modal.Sandbox.list(app_id=app.app_id, tags={"team": "b"})) == []


check("tags are set and lists are filtered by them", tags)


def pages():
    made = [create(tags={"page": "x"}) for _ in range(3)]
    listed = [one.object_id for one in modal.Sandbox.list(app_id=app.app_id, tags={"page": "x"})]
    assert sorted(listed) == sorted(one.object_id for one in made), listed
    for one in made:
        one.terminate(wait=True)
    return list(modal.Sandbox.list(app_id=app.app_id, tags={"page": "x"})) == []


check("lists have all that live", pages)


def snapshot():
    kept = first.snapshot_filesystem()
    made = modal.Sandbox.create("true", app=app, image=kept)
    made.wait()
    return made.returncode == 0


check("a snapshot is an image", snapshot)
check("an unknown image is refused", lambda: refused(lambda: modal.Sandbox.create("true", app=app, image=modal.Image.from_id("im-none"))))
check("an image that cannot be built is refused", lambda: refused(lambda: modal.Sandbox.create("true", app=app, image=modal.Image.from_registry("nobody/x")), Exception))
check("a lifetime beyond the longest is refused", lambda: refused(lambda: create(timeout=100_000)))
check("a closed network has no ports", lambda: refused(lambda: create(block_network=True, encrypted_ports=[1]), Exception))
check("a connect token is made", lambda: first.create_connect_token(port=43217).token)


def over():
    made = create(timeout=60)
    stand_in.ask("advance", seconds=70)
    refused(lambda: made.wait(), modal.exception.SandboxTimeoutError)
    return True


check("what has reached its time ends", over)


def busy():
    stand_in.ask("fail", method="POST", path="/SandboxTagsGetV2", status=7, message="because it is so")
    assert "because it is so" in str(refused(lambda: first.get_tags(), Exception))
    stand_in.ask("fail", method="POST", path="/SandboxTagsGetV2", status=14, message="busy")
    return first.get_tags() is not None


check("refusals have their reason, and what passes is tried again", busy)
check("a sandbox is terminated", lambda: first.terminate(wait=True) is not None or True)
check("a name is free after the end", lambda: create(name="first").object_id != first.object_id)
stand_in.end()
check.end()
