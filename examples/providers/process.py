#!/usr/bin/env python3
"""A provider for gloveport in Python, without anything but its standard library (docs/exec-providers.md).

A sandbox is our server as a process of this machine with a directory of its own. There is no daemon: what is known of
a sandbox is in its directory, and whether it runs is asked of the system. The state is in
$GLOVEPORT_PROVIDER_PROCESS_STATE, else in $XDG_STATE_HOME or ~/.local/state.
"""

import contextlib
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

GRACE = 5.0
FOLLOW = 0.05
CAPABILITIES = {
    "isolation": "none",
    "host_directories": True,
    "limit_memory": True,
    "labels": True,
    "pause": True,
    "pause_keeps_processes": True,
    "logs": True,
    "follow_logs": True,
    "time_to_live": True,
    "keep_alive": True,
    "orphans": True,
}


class Refusal(Exception):
    """An error for the backend: one of the codes of the protocol, a text, and more fields."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.answer = {"error": {"code": code, "message": message, **more}}


def state_directory():
    own = os.environ.get("GLOVEPORT_PROVIDER_PROCESS_STATE")
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    directory = Path(own) if own else Path(base) / "gloveport-provider-process"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


@contextlib.contextmanager
def registry():
    """Only one program at a time looks for a session and takes it."""
    with open(state_directory() / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# Processes: a number alone may be somebody else's by now, with the time of its start it is not.


def stat(pid):
    """Parent and start of a process that has not ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (int(fields[1]), int(fields[19]))


def name_process(pid):
    found = stat(pid)
    return [pid, found[1] if found else 0]


def runs(process):
    found = process and stat(process[0])
    return bool(found) and found[1] == process[1]


def send(process, number):
    """Signals a process that cannot have become another meanwhile."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process[0])
        try:
            if runs(process):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def children(process):
    found = []
    for entry in os.listdir("/proc"):
        known = entry.isdigit() and stat(int(entry))
        if known and known[0] == process[0]:
            found.append([int(entry), known[1]])
    return found


def end(process):
    """Ends a server and waits for it and for the guard that ends its programs."""
    if not runs(process):
        return
    family = [process, *children(process)]
    send(process, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while any(map(runs, family)) and time.monotonic() < until:
        time.sleep(0.005)
    send(process, signal.SIGKILL)
    while any(map(runs, family)) and time.monotonic() < until + GRACE:
        time.sleep(0.005)
    if any(map(runs, family)):
        raise Refusal("failed", f"the process {process[0]} does not end")


# Sandboxes.


class Sandbox:
    def __init__(self, directory):
        self.directory = directory
        self.known = json.loads((directory / "sandbox.json").read_text())

    @classmethod
    def all(cls):
        for directory in sorted(state_directory().iterdir()):
            # One that is being made or removed this moment has no file yet, or no more.
            with contextlib.suppress(OSError, ValueError):
                yield cls(directory)

    @classmethod
    def get(cls, name):
        return next((one for one in cls.all() if one.known["id"] == name), None)

    @classmethod
    def of_session(cls, session):
        found = [one for one in cls.all() if one.known["session_id"] == session]
        return max(found, key=lambda one: (one.is_live(), one.known["created"]), default=None)

    def save(self):
        file = self.directory / ".sandbox.json"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump(self.known, out)
        file.rename(self.directory / "sandbox.json")

    def is_live(self):
        return self.state()[0] in ("pending", "running", "paused")

    def state(self):
        if "server" not in self.known:
            return ("pending", "") if runs(self.known["maker"]) else ("failed", "its making was given up")
        if not runs(self.known["server"]):
            return ("stopped", "its server has ended")
        return ("paused" if self.known.get("paused") else "running", "")

    def holders(self):
        """Whether each backend that holds it lives: it has its file locked as long as it does."""
        alive = []
        for holder in (self.directory / "holders").iterdir():
            with contextlib.suppress(OSError):
                alive.append(locked(holder.read_text()))
        return alive

    def lifetime(self):
        if not self.known["keep_alive"]:
            return "backend"
        holders = self.holders()
        return "orphaned" if holders and not any(holders) else "kept"

    def garbage(self, everything):
        """Why nobody wants it any more."""
        lifetime = self.lifetime()
        if not self.is_live():
            return self.state()[1]
        if self.known["expires"] and time.time() >= self.known["expires"]:
            return "its time is over"
        if lifetime == "orphaned" or lifetime == "backend" and not any(self.holders()):
            return "its backend has died"
        if everything and lifetime == "kept" and not any(self.holders()):
            return "no backend holds it"
        return None

    def view(self):
        state, reason = self.state()
        shown = ("id", "session_id", "url", "session_key", "labels", "workspace", "created", "expires")
        view = {name: self.known.get(name) for name in shown}
        return {**view, "state": state, "reason": reason, "lifetime": self.lifetime()}

    def remove(self):
        watcher = self.known.get("watcher")
        if watcher and watcher[0] != os.getpid():
            send(watcher, signal.SIGKILL)
        end(self.known.get("server"))
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.directory.exists():
            raise Refusal("failed", f"{self.directory} cannot be removed")


def locked(path):
    """Whether somebody holds the lock of this file; nobody does if there is none."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def needed(request):
    found = Sandbox.get(request["id"])
    if found is None:
        raise Refusal("not-found", f"there is no sandbox {request['id']}")
    return found


# Verbs.


def describe(request):
    if 1 not in request.get("protocols", []):
        raise Refusal("protocol", "this program speaks version 1 of the protocol")
    return {
        "protocol": 1,
        "name": "process",
        "capabilities": CAPABILITIES,
        "verbs": ["hold", "release"],
        "poll_interval": 0.1,
    }


def register(request):
    """Takes the session."""
    spec = request["spec"]
    session = spec["session_id"]
    with registry():
        old = Sandbox.of_session(session)
        if old and old.is_live():
            raise Refusal("session-exists", f"{session} has a sandbox", id=old.known["id"])
        if old:
            old.remove()
        name = f"{session[:100]}-{secrets.token_hex(6)}"
        directory = state_directory() / name
        directory.mkdir(mode=0o700)
        (directory / "holders").mkdir()
        sandbox = Sandbox.__new__(Sandbox)
        sandbox.directory = directory
        now = time.time()
        wanted = spec["workspace"]
        sandbox.known = {
            "id": name,
            "session_id": session,
            "labels": spec["labels"],
            "keep_alive": spec["keep_alive"],
            "created": now,
            "expires": now + spec["time_to_live"] if spec["time_to_live"] else None,
            "workspace": wanted.get("path") or str(directory / "workspace"),
            "session_key": spec["session_key"],
            "maker": name_process(os.getpid()),
        }
        if not spec["keep_alive"]:
            (directory / "holders" / request["backend"]["id"]).write_text(request["backend"]["lock"])
        sandbox.save()
    return sandbox


def give_up(*_):
    sys.exit("given up")


@contextlib.contextmanager
def undisturbed():
    """Puts off the end of this program: a process that is started and not yet known would be left behind by it."""
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, give_up)
    if asked:
        give_up()


def start(sandbox, server):
    """Starts the server, whose address is the only line on its standard output."""
    workspace = Path(sandbox.known["workspace"])
    workspace.mkdir(parents=True, exist_ok=True)
    # The server gets what it is given and nothing of ours but what every program needs.
    plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if name in os.environ}
    command = [server["program"], *server["arguments"], "--port", "0", "--workspace", str(workspace)]
    with open(sandbox.directory / "log", "ab") as log:
        with undisturbed():
            child = subprocess.Popen(
                command,
                env={**plain, **server["environment"]},
                cwd=workspace,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            sandbox.known["server"] = name_process(child.pid)
    sandbox.save()
    readable, _, _ = select.select([child.stdout], [], [], 30)
    line = child.stdout.readline().decode() if readable else ""
    if not line.startswith("listening on http"):
        raise Refusal("start-failed", "the server told no address", log=tail(sandbox.directory / "log", 20).decode())
    sandbox.known["url"] = line.split()[-1]


def create(request):
    sandbox = register(request)
    try:
        start(sandbox, request["server"])
        progress("started", f"process {sandbox.known['server'][0]}")
        if not sandbox.known["keep_alive"] or sandbox.known["expires"]:
            watch = [sys.executable, __file__, "watch", sandbox.known["id"]]
            quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
            with undisturbed():
                watcher = subprocess.Popen(watch, start_new_session=True, cwd="/", **quiet)
                sandbox.known["watcher"] = name_process(watcher.pid)
        sandbox.save()
    except BaseException:
        sandbox.remove()
        raise
    return {"sandbox": sandbox.view()}


def watch(name):
    """Lives beside a sandbox that ends with its backend or at a time, and ends it then."""
    sandbox = Sandbox.get(name)
    if sandbox is None:
        return
    if sandbox.known["expires"]:
        signal.signal(signal.SIGALRM, lambda *_: (sandbox.remove(), sys.exit()))
        signal.setitimer(signal.ITIMER_REAL, max(sandbox.known["expires"] - time.time(), 0.001))
    if sandbox.known["keep_alive"]:
        signal.pause()
    for holder in (sandbox.directory / "holders").iterdir():
        with contextlib.suppress(OSError), open(holder.read_text()) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
    sandbox.remove()


def find(request):
    found = Sandbox.get(request["id"])
    return {"sandbox": found and found.view()}


def find_session(request):
    found = Sandbox.of_session(request["session_id"])
    return {"sandbox": found and found.view()}


def list_all(request):
    labels = request["labels"].items()
    chosen = (one for one in Sandbox.all() if labels <= one.known["labels"].items())
    return {"sandboxes": [one.view() for one in chosen if request["ended"] or one.is_live()]}


def rest(request, paused):
    """The server can pause itself: its programs are stopped, and it answers with 503 meanwhile."""
    sandbox = needed(request)
    state, reason = sandbox.state()
    if state not in ("running", "paused"):
        raise Refusal("wrong-state", f"it is {state}", state=state, reason=reason)
    url = f"{sandbox.known['url']}/v1/sandbox/{'pause' if paused else 'resume'}"
    headers = {"X-Session-API-Key": sandbox.known["session_key"]}
    # What is on this machine is asked without a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(urllib.request.Request(url, data=b"", headers=headers, method="POST"), timeout=60).close()
    sandbox.known["paused"] = paused
    sandbox.save()
    return {}


def delete(request):
    found = Sandbox.get(request["id"])
    if found:
        found.remove()
    return {"deleted": found is not None}


def tail(file, lines):
    return b"".join(file.read_bytes().splitlines(keepends=True)[-lines:] if lines else [])


def logs(request):
    sandbox = needed(request)
    out = sys.stdout.buffer
    with open(sandbox.directory / "log", "rb") as file:
        if request["tail"] is not None:
            content = file.read()
            kept = content.splitlines(keepends=True)[-request["tail"] :] if request["tail"] else []
            out.write(b"".join(kept))
        while True:
            ended = not sandbox.is_live()
            shutil.copyfileobj(file, out)
            out.flush()
            if ended or not request["follow"]:
                return
            time.sleep(FOLLOW)


def collect_garbage(request):
    removed, failed = [], []
    with registry():
        # A program that was killed between the two steps of taking a session leaves this.
        for directory in state_directory().iterdir():
            if directory.is_dir() and not (directory / "sandbox.json").exists():
                if not request["dry_run"]:
                    shutil.rmtree(directory, ignore_errors=True)
                removed.append({"path": str(directory), "reason": "its making was given up"})
    for sandbox in Sandbox.all():
        reason = sandbox.garbage(request["all"])
        if reason is None:
            continue
        try:
            if not request["dry_run"]:
                sandbox.remove()
            known = sandbox.known
            removed.append({"id": known["id"], "session_id": known["session_id"], "reason": reason})
        except Refusal as refusal:
            failed.append(f"{sandbox.known['id']}: {refusal}")
    return {"removed": removed, "failed": failed}


def hold(request):
    backend = request["backend"]
    (needed(request).directory / "holders" / backend["id"]).write_text(backend["lock"])
    return {}


def release(request):
    with contextlib.suppress(FileNotFoundError):
        (needed(request).directory / "holders" / request["backend"]["id"]).unlink()
    return {}


def check(_request):
    directory = state_directory()
    writable = os.access(directory, os.W_OK)
    remedy = None if writable else "set GLOVEPORT_PROVIDER_PROCESS_STATE to a directory that can be written"
    return {"checks": [{"name": "state", "works": writable, "found": str(directory), "remedy": remedy}]}


def progress(phase, detail=""):
    print(json.dumps({"phase": phase, "detail": detail}), flush=True)


VERBS = {
    "describe": describe,
    "create": create,
    "find": find,
    "find-session": find_session,
    "list": list_all,
    "pause": lambda request: rest(request, paused=True),
    "resume": lambda request: rest(request, paused=False),
    "delete": delete,
    "logs": logs,
    "collect-garbage": collect_garbage,
    "hold": hold,
    "release": release,
    "check": check,
}


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb == "watch":
        return watch(sys.argv[2])
    # A backend that gives up asks for the end first: what was begun is taken back.
    signal.signal(signal.SIGTERM, give_up)
    try:
        if verb not in VERBS:
            raise Refusal("unsupported", f"the verb {verb}")
        answer = VERBS[verb](json.load(sys.stdin))
        if answer is not None:
            print(json.dumps(answer))
    except OSError as error:
        print(json.dumps(Refusal("failed", str(error)).answer), file=sys.stderr if verb == "logs" else sys.stdout)
        sys.exit(1)
    except Refusal as refusal:
        # The output of `logs` is the log, so its error goes where people look.
        print(json.dumps(refusal.answer), file=sys.stderr if verb == "logs" else sys.stdout)
        sys.exit(1)


if __name__ == "__main__":
    main()
