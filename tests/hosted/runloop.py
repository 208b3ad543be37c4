"""Drives the stand-in of Runloop with Runloop's own SDK, unmodified."""

import re
import threading
import time
import urllib.error
import urllib.request

from drive import Checks, StandIn, arguments, recorded

PROGRAM, FILE, RECORD = arguments()
stand_in = StandIn(PROGRAM, "runloop")

import runloop_api_client  # noqa: E402
from runloop_api_client import Runloop, RunloopSDK  # noqa: E402

check = Checks("runloop")
client = Runloop(max_retries=2)
sdk = RunloopSDK()


def get(url, headers):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def refused(status, work):
    try:
        work()
    except runloop_api_client.APIStatusError as error:
        assert error.status_code == status, error
        return True
    raise AssertionError("it was not refused")


# The wish of our own client, with texts in the place of what is different each time. What the SDK sends for it is recorded, and
# the requests of our client are compared with that.
WISH = {
    "name": "s1",
    "environment_variables": {"A": "b"},
    "metadata": {"gloveport.runloop.session": "s1"},
    "launch_parameters": {
        "launch_commands": ["true"],
        "resource_size_request": "SMALL",
        "lifecycle": {"after_idle": {"idle_time_seconds": 900, "on_idle": "suspend"}},
    },
    "tunnel": {"auth_mode": "authenticated", "http_keep_alive": False, "wake_on_http": False},
}


def life():
    """One life, of which every request is recorded."""
    stand_in.ask("requests")
    client.accounts.me()
    stored = client.objects.create(name="gloveport-0", content_type="binary", metadata={"sha256": "0"})
    upload = urllib.request.Request(stored.upload_url, b"#!/bin/sh\necho program\n", method="PUT")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(upload, timeout=30).close()
    client.objects.complete(stored.id)
    found = client.objects.list(name="gloveport-0", state="READ_ONLY", limit=100)
    assert [one.id for one in found.objects] == [stored.id]
    mount = {"type": "object_mount", "object_id": stored.id, "object_path": f"{home}/bin/program"}
    policy = client.network_policies.create(
        name="s1", allow_all=False, allowed_hostnames=["pypi.org"], allowed_cidrs=[{"cidr": "10.0.0.0/8"}]
    )
    parameters = {**WISH["launch_parameters"], "network_policy_id": policy.id}
    made = client.devboxes.create(**{**WISH, "mounts": [mount], "launch_parameters": parameters})
    client.post(
        f"/v1/devboxes/{made.id}/wait_for_status",
        body={"statuses": ["running", "failure", "shutdown"], "timeout_seconds": 30},
        cast_to=object,
    )
    client.devboxes.retrieve(made.id)
    list(client.devboxes.list(limit=100, extra_query={"include_total_count": False}))
    client.devboxes.execute(made.id, command="sync", command_id="00000000-0000-7000-8000-000000000000")
    client.devboxes.download_file(made.id, path="/etc/hostname").read()
    follow = client.devboxes.executions.execute_async(made.id, command="echo followed; sleep 60")
    with client.devboxes.executions.stream_stdout_updates(follow.execution_id, devbox_id=made.id) as stream:
        assert next(iter(stream)).output == "followed\n"
    client.devboxes.executions.retrieve(follow.execution_id, devbox_id=made.id)
    client.devboxes.executions.kill(follow.execution_id, devbox_id=made.id, kill_process_group=True)
    client.devboxes.logs.list(made.id)
    client.devboxes.keep_alive(made.id)
    snapshot = client.devboxes.snapshot_disk_async(made.id, name="n", metadata={"a": "b"})
    client.devboxes.disk_snapshots.query_status(snapshot.id)
    list(client.devboxes.list_disk_snapshots(limit=100, extra_query={"include_total_count": False}))
    client.devboxes.delete_disk_snapshot(snapshot.id)
    client.devboxes.suspend(made.id)
    client.devboxes.await_suspended(made.id)
    client.devboxes.resume(made.id)
    built = client.blueprints.create(name="gloveport-image-0", dockerfile="FROM debian:13\n")
    client.blueprints.retrieve(built.id)
    list(client.blueprints.list(name="gloveport-image-0", limit=100, extra_query={"include_total_count": False}))
    client.devboxes.shutdown(made.id)
    list(client.network_policies.list(name="s1", limit=100, extra_query={"include_total_count": False}))
    client.network_policies.delete(policy.id)
    client.objects.delete(stored.id)
    return [plain(seen) for seen in stand_in.ask("requests") if "upload" not in seen["path"]]


def plain(seen):
    """A request without what is different each time."""
    text = re.sub(r"\b(dbx|obj|snp|bp|np|exec)_\d+", r"{\1}", repr(seen).replace(home, "{home}"))
    found = eval(text, {}, {})  # noqa: S307  # of `repr`
    if isinstance(found["body"], dict) and "statuses" in found["body"]:
        # The SDK has them in a set.
        found["body"]["statuses"].sort()
    return found


first = check("a devbox is made and runs", lambda: sdk.devbox.create(name="first", metadata={"k": "v"}))
home = first.cmd.exec("echo -n $HOME").stdout() if first else "/root"


def commands():
    ran = first.cmd.exec("echo out; echo err >&2; exit 3")
    assert (ran.exit_code, ran.stdout().strip(), ran.stderr().strip()) == (3, "out", "err"), ran
    return True


check("a command gives its output and its code", commands)
check("a command has the home directory", lambda: first.cmd.exec("pwd").stdout().strip() == home)


def background():
    lines = []
    running = first.cmd.exec_async("for i in 1 2 3; do echo $i; sleep 0.1; done", stdout=lines.append)
    assert running.result().exit_code == 0
    assert "".join(lines).split() == ["1", "2", "3"], lines
    return True


check("a command in the background streams its output", background)


def standard_input():
    running = client.devboxes.executions.execute_async(first.id, command="read line; echo got $line", attach_stdin=True)
    assert client.devboxes.executions.send_std_in(running.execution_id, devbox_id=first.id, text="hello\n").success
    done = client.devboxes.wait_for_command(running.execution_id, devbox_id=first.id, statuses=["completed"])
    assert done.stdout == "got hello\n", done
    return True


check("a command reads its standard input", standard_input)


def killed():
    running = client.devboxes.executions.execute_async(first.id, command="sleep 600")
    done = client.devboxes.executions.kill(running.execution_id, devbox_id=first.id)
    assert done.status == "completed" and done.exit_status != 0, done
    return True


check("a command is killed", killed)


def files():
    first.file.write(file_path="a/b.txt", contents="text\n")
    assert first.file.read(file_path="a/b.txt") == "text\n"
    data = bytes(range(256)) * 4096
    first.file.upload(path="data", file=data)
    assert first.file.download(path="data") == data
    refused(404, lambda: client.devboxes.read_file_contents(first.id, file_path="nowhere"))
    return True


check("files are written, read, sent and fetched", files)
check("metadata comes back", lambda: first.get_info().metadata == {"k": "v"})
check("the account tells of itself", lambda: client.accounts.me().account_status == "ACCOUNT_STATUS_ENABLED")


def changed():
    client.devboxes.update(first.id, metadata={"other": "1"})
    return client.devboxes.retrieve(first.id).metadata == {"other": "1"}


check("metadata is replaced", changed)


def lists():
    made = [client.devboxes.create(name=f"n{number}").id for number in range(4)]
    paged = [one.id for one in client.devboxes.list(limit=2)]
    assert set(made) < set(paged) and len(paged) == len(set(paged)), paged
    for one in made:
        client.devboxes.await_running(one)
        client.devboxes.shutdown(one)
    running = [one.id for one in client.devboxes.list(status="running")]
    assert running == [first.id], running
    return client.devboxes.retrieve(made[0]).shutdown_reason == "api_shutdown"


check("lists come in pages and by status", lists)


def tunnels():
    tunnel = client.devboxes.enable_tunnel(first.id, auth_mode="authenticated")
    assert client.devboxes.retrieve(first.id).tunnel.tunnel_key == tunnel.tunnel_key
    port = 18000 + int(time.time()) % 10000
    client.devboxes.execute_async(first.id, command=f"exec python3 -m http.server {port} --bind 127.0.0.1")
    url = stand_in.variables["TUNNELS"].format(tunnel_key=tunnel.tunnel_key, port=port)
    token = {"X-Runloop-Tunnel-Authorization": f"Bearer {tunnel.auth_token}"}
    for _ in range(200):
        status, body = get(f"{url}/", token)
        if status == 200:
            break
        time.sleep(0.1)
    assert status == 200 and b"data" in body, (status, body)
    assert get(f"{url}/", {})[0] == 401
    client.devboxes.remove_tunnel(first.id)
    return get(f"{url}/", token)[0] == 404


check("a port is reached with the token of the tunnel alone", tunnels)


def rest():
    box = sdk.devbox.create(launch_parameters={"launch_commands": ["echo start >>starts"]}, tunnel={"auth_mode": "authenticated"})
    before = box.get_info().tunnel.auth_token
    box.cmd.exec_async("sleep 600")
    box.suspend()
    box.await_suspended()
    refused(400, lambda: client.devboxes.execute(box.id, command="true"))
    box.resume()
    box.await_running()
    assert box.cmd.exec("cat starts").stdout().split() == ["start", "start"]
    assert box.get_info().tunnel.auth_token != before
    box.shutdown()
    return True


check("one that has rested has its files, starts again, and has a new token", rest)


def snapshots():
    first.file.write(file_path="kept", contents="kept")
    snapshot = first.snapshot_disk(name="mine", metadata={"a": "b"})
    assert snapshot.get_info().status == "complete"
    copy = sdk.devbox.create_from_snapshot(snapshot.id)
    assert copy.get_info().snapshot_id == snapshot.id
    assert [one.id for one in client.devboxes.list_disk_snapshots(extra_query={"metadata[a]": "b"})] == [snapshot.id]
    copy.shutdown()
    snapshot.delete()
    refused(404, lambda: client.devboxes.create(snapshot_id=snapshot.id))
    return True


check("a snapshot is made, used, listed and deleted", snapshots)


def objects():
    stored = sdk.storage_object.upload_from_bytes(b"bytes", name="o", content_type="binary")
    mount = {"type": "object_mount", "object_id": stored.id, "object_path": f"{home}/mounted"}
    box = sdk.devbox.create(mounts=[mount])
    assert box.file.download(path=f"{home}/mounted") == b"bytes"
    box.shutdown()
    assert [one.id for one in client.objects.list(name="o").objects] == [stored.id]
    stored.delete()
    refused(400, lambda: client.devboxes.create(mounts=[mount]))
    return True


check("an object is stored once and mounted", objects)


def blueprints():
    built = sdk.blueprint.create(name="image", dockerfile="FROM debian:13\n")
    box = sdk.devbox.create_from_blueprint_name("image")
    box.shutdown()
    assert [one.id for one in client.blueprints.list(name="image")] == [built.id]
    refused(404, lambda: client.devboxes.create(blueprint_name="nobody"))
    client.blueprints.delete(built.id)
    return True


check("a blueprint is built and used by its name", blueprints)


def failed_start():
    made = client.devboxes.create(launch_parameters={"launch_commands": ["exit 7"]})
    try:
        client.devboxes.await_running(made.id)
    except Exception:  # noqa: BLE001
        pass
    told = client.devboxes.retrieve(made.id)
    assert (told.status, told.failure_reason) == ("failure", "execution_failed"), told
    return True


check("a launch command that fails is a failure", failed_start)


def entry_point():
    made = client.devboxes.create_and_await_running(entrypoint="sleep 0.5")
    for _ in range(100):
        told = client.devboxes.retrieve(made.id)
        if told.status == "shutdown":
            break
        time.sleep(0.1)
    return told.shutdown_reason == "entrypoint_exit"


check("the end of the entry point is the end of the devbox", entry_point)


def limits():
    refused(400, lambda: client.devboxes.create(launch_parameters={"keep_alive_time_seconds": 172801}))
    refused(400, lambda: client.devboxes.create(blueprint_id="a", snapshot_id="b"))
    refused(400, lambda: client.devboxes.create(launch_parameters={"resource_size_request": "HUGE"}))
    refused(404, lambda: client.devboxes.retrieve("dbx_nobody"))
    refused(401, lambda: Runloop(bearer_token="wrong").devboxes.create())
    return True


check("what the service refuses is refused", limits)


def busy():
    for status, headers in [(429, {"retry-after-ms": "10"}), (503, {"retry-after": "0"}), (409, {})]:
        stand_in.ask("fail", method="GET", path="/v1/accounts/me", status=status, headers=headers, message="busy")
        client.accounts.me()
    return True


check("a refusal for now is outlived", busy)


def lost():
    before = len(list(client.devboxes.list(status="running")))
    stand_in.ask("fail", method="POST", path="/v1/devboxes")
    box = client.devboxes.create(name="lost")
    client.devboxes.await_running(box.id)
    after = list(client.devboxes.list(status="running"))
    client.devboxes.shutdown(box.id)
    return len(after) == before + 1


check("a wish whose answer was lost makes one devbox", lost)


def idle():
    policy = {"lifecycle": {"after_idle": {"idle_time_seconds": 60, "on_idle": "suspend"}}}
    box = client.devboxes.create_and_await_running(launch_parameters=policy)
    stand_in.ask("advance", seconds=50)
    client.devboxes.keep_alive(box.id)
    stand_in.ask("advance", seconds=50)
    assert client.devboxes.retrieve(box.id).status == "running"
    stand_in.ask("advance", seconds=61)
    assert client.devboxes.retrieve(box.id).status == "suspended"
    client.devboxes.shutdown(box.id)
    return True


check("one that nobody uses rests, and a sign of life counts", idle)
check("requests of a life are those that were recorded", lambda: recorded(FILE, life(), RECORD))


def over():
    stand_in.ask("advance", seconds=172_800)
    return client.devboxes.retrieve(first.id).shutdown_reason == "keep_alive_timeout"


check("the time of a devbox is over", over)
check("the stand-in ends with its input", lambda: threading.Thread(target=stand_in.end).start() or stand_in.process.wait(30) == 0)
check.end()
