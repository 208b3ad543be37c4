"""Clients at two gateways that are killed again and again; see `run` for the usage."""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

from postgres import Postgres, free_port, programs

TENANT = "team"
# How long a client tries one thing, over all that is killed meanwhile.
PATIENCE = 120
# Every so many sessions one is kept to the end.
KEPT = 5
# Variables by which a process of a sandbox is known as one of this test.
MARK = "GLOVEPORT_TEST_LOAD"


class Gone(Exception):
    """The gateway does not answer, or not with what it was asked for."""


class Gateway:
    """A gateway that is started again when it was killed, on the same port."""

    def __init__(self, binary, home, key, database):
        self.port = free_port()
        self.command = [binary, "gateway", "--runtime", "local", "--port", str(self.port), "--database", database]
        self.environment = environment(home)
        self.log = open(os.path.join(home, f"log-{self.port}"), "ab")
        self.kills = 0
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
        )

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.kills += 1
        self.start()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.close()
        return code


def environment(home):
    values = dict(os.environ, HOME=home, TMPDIR=home, XDG_STATE_HOME=home, **{MARK: home})
    for name in ("XDG_RUNTIME_DIR", "GLOVEPORT_GATEWAY_DATABASE"):
        values.pop(name, None)
    return values


class Load:
    def __init__(self, gateways, key, quota):
        self.gateways, self.key, self.quota = gateways, key, quota
        self.lock = threading.Lock()
        self.kept = {}
        self.counts = Counter()
        self.wrong = []
        self.most = 0
        self.waits = []
        self.stop = threading.Event()

    def fault(self, text):
        with self.lock:
            self.wrong.append(text)

    def ask(self, method, path, body=None, headers=None, port=None):
        """One request to one of the gateways: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or random.choice(self.gateways).port, timeout=60)
        try:
            sent = {"X-API-Key": self.key, "Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, json.dumps(body) if body is not None else None, sent)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None, answer.headers
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            raise Gone(str(error)) from error
        finally:
            connection.close()

    def until(self, what, method, path, body=None, headers=None, done=(200,)):
        """The same until it is answered as it shall be, as a client does that meets a gateway that dies."""
        deadline = time.monotonic() + PATIENCE
        last = None
        while time.monotonic() < deadline:
            pause = random.uniform(0.05, 0.3)
            try:
                status, told, head = self.ask(method, path, body, headers)
                if status in done:
                    return status, told
                last = f"{status} {told}"
                if status == 429:
                    # Who wants another one when it is over goes home.
                    if self.stop.is_set():
                        return None, None
                    with self.lock:
                        self.counts["refused by the quota"] += 1
                    # What it says is for clients that have all day.
                    pause = min(float(head.get("Retry-After", 1)), 1.0) * random.uniform(0.5, 1.5)
                elif status not in (404, 500, 502, 503, 504):
                    break
                elif status == 404 and what != "start":
                    break
            except Gone as error:
                last = str(error)
                with self.lock:
                    self.counts["requests that were cut off"] += 1
            time.sleep(pause)
        self.fault(f"{what} {path}: {last}")
        return None, None

    def run(self, sandbox, command):
        """The words that a command in a sandbox prints, each of them once. A command may run twice, as whoever asks does
        not know whether it did; and what it printed for a request that was cut off comes with the next answer."""
        headers = {"X-Session-API-Key": sandbox["session_api_key"]}
        body = {"action": {"action": "run", "args": {"command": command}, "timeout": 60}}
        _, told = self.until("run", "POST", f"/{sandbox['runtime_id']}/execute_action", body, headers)
        return set(told["content"].split()) if told else None

    def client(self, number):
        made = 0
        while not self.stop.is_set():
            session = f"client-{number}-{made}"
            made += 1
            began = time.monotonic()
            status, sandbox = self.until("start", "POST", "/start", {"session_id": session})
            if status is None:
                continue
            with self.lock:
                self.waits.append(time.monotonic() - began)
                self.counts["sessions"] += 1
            # What a sandbox that was made twice would have lost.
            shown = self.run(sandbox, f"echo {session} > mark; cat mark")
            if shown != {session}:
                self.fault(f"{session}: its sandbox does not keep its files: {shown!r}")
            _, again = self.until("ask", "GET", f"/sessions/{session}")
            if again and again["runtime_id"] != sandbox["runtime_id"]:
                self.fault(f"{session}: it has another sandbox: {again['runtime_id']}, not {sandbox['runtime_id']}")
            shown = self.run(sandbox, "cat mark")
            if shown != {session}:
                self.fault(f"{session}: its files are lost: {shown!r}")
            if made % KEPT == 0 and len(self.kept) < self.quota // 2:
                with self.lock:
                    self.kept[session] = sandbox
                continue
            self.end(session, sandbox)

    def end(self, session, sandbox):
        # 404 is what a second try is told, where the answer of the first was cut off.
        status, _ = self.until("stop", "POST", "/stop", {"runtime_id": sandbox["runtime_id"]}, done=(200, 404))
        if status is not None:
            with self.lock:
                self.counts["stopped"] += 1

    def watch(self):
        """How many there are at a time, as the gateways tell it."""
        while not self.stop.wait(0.2):
            try:
                status, told, _ = self.ask("GET", "/list")
            except Gone:
                continue
            if status == 200:
                running = sum(1 for entry in told["runtimes"] if entry["status"] == "running")
                self.most = max(self.most, running)
                if running > self.quota:
                    self.fault(f"{running} sandboxes run, and {self.quota} may")


def sandboxes(home):
    place = os.path.join(home, "gloveport", "local", "sandboxes")
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def processes(home):
    """The processes of sandboxes that are there."""
    marked, found = f"{MARK}={home}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if marked in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def soon(condition, limit=60):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def main():
    parser = argparse.ArgumentParser(prog="tests/gateway/run")
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kill-every", type=float, default=3)
    parser.add_argument("--quota", type=int, default=30)
    parser.add_argument("binary", nargs="?")
    arguments = parser.parse_args()
    if not programs():
        print("skipped: there is no PostgreSQL; scripts/setup installs it")
        print("0 passed, 0 failed, 9 skipped")
        return 0
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.expanduser("~/.cache/gloveport/target")
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout.split("host: ")[1].split()[0] \
        if not arguments.binary else ""
    binary = os.path.abspath(arguments.binary or os.path.join(target, host, "release", "gloveport"))
    home = tempfile.mkdtemp(prefix="gloveport-load-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = failed = 0

    def check(name, value, shown=""):
        nonlocal passed, failed
        passed, failed = passed + bool(value), failed + (not value)
        print(f"{'ok     ' if value else 'FAILED '} {name}{f': {shown}' if shown != '' else ''}", flush=True)

    database = Postgres()
    gateways = []
    try:
        def gateway(*words):
            done = subprocess.run(
                [binary, "gateway", *words, "--database", database.url()], env=environment(home), capture_output=True,
                text=True, timeout=60,
            )
            if done.returncode != 0:
                raise SystemExit(f"gateway {' '.join(words)}: {done.stderr}")
            return done.stdout

        gateway("tenant", "create", TENANT, "--running", str(arguments.quota))
        key = gateway("key", "create", TENANT).strip()
        gateways += [Gateway(binary, home, key, database.url()) for _ in range(2)]
        load = Load(gateways, key, arguments.quota)
        load.until("ask", "GET", "/list")
        clients = [threading.Thread(target=load.client, args=(number,)) for number in range(arguments.clients)]
        watch = threading.Thread(target=load.watch)
        for thread in [*clients, watch]:
            thread.start()
        deadline = time.monotonic() + arguments.seconds
        turn = 0
        while time.monotonic() + arguments.kill_every < deadline:
            time.sleep(arguments.kill_every)
            gateways[turn % 2].kill()
            turn += 1
        time.sleep(max(0.0, deadline - time.monotonic()))
        load.stop.set()
        for thread in [*clients, watch]:
            thread.join(PATIENCE * 3)
        check("every client has ended", not any(thread.is_alive() for thread in clients))
        counts, waits = load.counts, sorted(load.waits)
        kills = sum(it.kills for it in gateways)
        check("gateways were killed", kills > 0, kills)
        median = f", p50 of a start {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.1f} s" if waits else ""
        check("sessions were used", counts["sessions"] > 0, f"{dict(counts)}{median}")
        check("the quota was reached and never exceeded", 0 < load.most <= arguments.quota, f"{load.most} of {arguments.quota}")
        lost = []
        for session, sandbox in load.kept.items():
            _, told = load.until("ask", "GET", f"/sessions/{session}")
            if not told or told["runtime_id"] != sandbox["runtime_id"] or load.run(sandbox, "cat mark") != {session}:
                lost.append(session)
        check("no session that was acknowledged is lost", load.kept and not lost, f"{len(load.kept)} were kept, lost {lost}")
        for session, sandbox in load.kept.items():
            load.end(session, sandbox)
        check("nothing was wrong on the way", not load.wrong, "; ".join(load.wrong[:10]))
        # A start whose client was cut off may have been answered to nobody; the reconciler ends what nobody was told of.
        _, told = load.until("ask", "GET", "/list")
        check("no sandbox is left", soon(lambda: not sandboxes(home)), sandboxes(home)[:5])
        check("no process of a sandbox is left", soon(lambda: len(processes(home)) == 2), len(processes(home)) - 2)
        codes = [it.end() for it in gateways]
        check("the gateways end when they are asked to", codes == [0, 0], codes)
        logs = b"".join(open(os.path.join(home, f"log-{it.port}"), "rb").read() for it in gateways)
        check("no log has the key", key.encode() not in logs and b"hunter2" not in logs)
        check("no gateway has panicked", b"panicked" not in logs)
    finally:
        for it in gateways:
            if it.process.poll() is None:
                it.process.kill()
        for pid in processes(home):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        database.end()
        if failed and os.environ.get("KEEP"):
            print(f"kept: {home}")
        else:
            shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
