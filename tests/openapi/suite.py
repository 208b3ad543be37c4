"""The checks of `run`: a fuzzer and a generated client."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.executable).parent
NOBODY = 65534
KEY = "a-key-for-all-tests"
# Most seconds for all requests that are made up. Two cores that do nothing else need a third of it.
TIME = 720

results = {"passed": 0, "failed": 0, "skipped": 0}


def report(result, name, detail=""):
    results[result] += 1
    word = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}[result]
    print(f"{word:7} {name}" + (f": {detail}" if detail else ""), flush=True)


def check(name, condition, detail=""):
    report("passed" if condition else "failed", name, "" if condition else detail)


class Server:
    """A server on the loopback address, in a directory of its own."""

    # What it is asked whether it lives, and the header with its key.
    health = "/alive"
    header = "X-Session-API-Key"

    def __init__(self, binary, root, as_nobody, python=None):
        self.home = root / "home"
        self.temporary = root / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        self.log = root / "log"
        # What is not everybody's cannot be reached by nobody.
        program = root / "gloveport"
        shutil.copy(binary, program)
        program.chmod(0o755)
        user = {}
        if as_nobody and os.geteuid() == 0:
            root.chmod(0o755)
            for owned in (self.home, self.temporary):
                os.chown(owned, NOBODY, NOBODY)
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "SESSION_API_KEY": KEY,
            # Pages that are made up take longer than a request may.
            "GLOVEPORT_BROWSER": "off",
        }
        if python:
            environment["GLOVEPORT_PYTHON"] = str(python)
        command = [program, *self.arguments(root, python)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=self.home, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **user
            )
        self.url = self.wait()

    def arguments(self, root, python):
        # Without a Python that has a kernel, one would be installed.
        plugins = [] if python else ["--no-plugins"]
        return ["serve", "--host", "127.0.0.1", "--port", "0", *plugins]

    def wait(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            for word in self.log.read_text(errors="replace").split():
                if word.startswith("http://127.0.0.1:"):
                    url = word.rstrip("/.,;)")
                    try:
                        with urllib.request.urlopen(url + self.health, timeout=5):
                            return url
                    except OSError:
                        pass
            time.sleep(0.05)
        raise SystemExit(f"the server does not start:\n{self.log.read_text(errors='replace')}")

    def lives(self):
        return self.process.poll() is None

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Gateway(Server):
    """A gateway over sandboxes of this machine, which end with it."""

    health = "/healthz"
    header = "X-API-Key"

    def arguments(self, root, python):
        key = root / "key"
        key.write_text(KEY)
        key.chmod(0o644)
        sessions = self.home / "sessions"
        return ["gateway", "--runtime", "local", "--port", "0", "--key-file", key, "--sessions-directory", sessions]

    def ask(self, method, path):
        request = urllib.request.Request(self.url + path, method=method, headers={self.header: KEY})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def end(self):
        # They outlive the gateway.
        if self.lives():
            for sandbox in json.loads(self.ask("GET", "/v1/sandboxes?include_ended=true"))["sandboxes"]:
                self.ask("DELETE", f"/v1/sandboxes/{sandbox['id']}")
        super().end()


# Each part of the calls has a process of its own: to make a request up takes more time than to answer it. Threads are no
# help, and more than one make Hypothesis fail. A paused server would answer nothing else.
PARTS = [
    ["--include-tag=files"],
    ["--include-tag=commands", "--include-tag=terminals"],
    ["--exclude-tag=files", "--exclude-tag=commands", "--exclude-tag=terminals", "--exclude-path=/v1/sandbox/pause"],
]
# Calls that have parameters, about.
CALLS = 36
# The same of a gateway. A call with a body that is right starts a sandbox, which takes a moment.
PARTS_OF_GATEWAY = [
    # Events have no end.
    ["--include-tag=sandboxes", "--exclude-path=/v1/sandboxes/events"],
    ["--include-tag=sessions"],
    ["--exclude-tag=sandboxes", "--exclude-tag=sessions"],
]
CALLS_OF_GATEWAY = 38
# Most requests for a gateway.
CASES_OF_GATEWAY = 3000


def fuzz(binary, cases, seed, kind=Server, all_parts=PARTS, calls=CALLS, name="the document"):
    """Rounds of made-up requests until there are enough."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        # As nobody it cannot reach the user's own Python.
        python = None if os.geteuid() == 0 else kernel_python()[0]
        server = kind(binary, root, as_nobody=True, python=python)
        counts, began, rounds, failed = {}, time.monotonic(), 0, False
        try:
            print(f"seed {seed}", flush=True)
            while not failed and sum(counts.values()) < cases and time.monotonic() - began < TIME:
                left = cases - sum(counts.values())
                each = max(10, min(200, left // calls))
                parts = [Part(server, root, number, seed + rounds, each, rounds == 0, arguments)
                         for number, arguments in enumerate(all_parts)]
                before = sum(counts.values())
                for part in parts:
                    code, output, found = part.end(began + TIME + 60)
                    for call, number in found.items():
                        counts[call] = counts.get(call, 0) + number
                    if code != 0:
                        failed = True
                        print(output, flush=True)
                rounds += 1
                failed = failed or sum(counts.values()) == before
            check(f"every answer is one that {name} describes", not failed,
                  f"schemathesis found what is printed above (seed {seed + rounds - 1})")
            total, took = sum(counts.values()), time.monotonic() - began
            print(f"{total} requests in {rounds} rounds and {took:.0f} s", flush=True)
            check(f"{cases} requests were made up from {name} and answered", total >= cases, f"{total} were, in {took:.0f} s")
            wrong = {call: number for call, number in counts.items()
                     if call.rsplit(" ", 1)[1].startswith("5") and "/v1/" in call and not call.endswith(" 501")}
            check("no call of the native interface was answered with 5xx", not wrong, json.dumps(wrong))
            check("the server lives", server.lives(), server.log.read_text(errors="replace")[-2000:])
        finally:
            server.end()


class Part:
    """One round of Schemathesis over a part of the calls."""

    def __init__(self, server, root, number, seed, each, is_first, arguments):
        self.counts = root / f"counts-{number}"
        self.counts.unlink(missing_ok=True)
        # The cases at the edges of the schemas are the same for every seed.
        phases = "coverage,fuzzing" if is_first else "fuzzing"
        command = [
            BIN / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", f"{server.url}/openapi.json",
            "--header", f"{server.header}: {KEY}", "--phases", phases, "--max-examples", str(each),
            "--seed", str(seed), "--warnings", "off", "--no-shrink", *arguments,
        ]
        environment = dict(
            os.environ, SCHEMATHESIS_HOOKS="hooks", PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1",
            GLOVEPORT_OPENAPI_COUNTS=str(self.counts), NO_COLOR="1",
        )
        self.log = root / f"log-{number}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT)

    def end(self, until):
        late = ""
        try:
            self.process.wait(max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            # It counts what it has done so far.
            self.process.send_signal(signal.SIGINT)
            late = "\nended because its time was over"
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        found = json.loads(self.counts.read_text()) if self.counts.exists() else {}
        output = self.log.read_text(errors="replace")
        # Whether there were enough is another question.
        found_nothing = late and "= FAILURES =" not in output and "= ERRORS =" not in output
        return 0 if found_nothing else self.process.returncode, output[-20000:] + late, found


def generate(server, root):
    """A package with a client for what the server says of itself."""
    request = urllib.request.Request(f"{server.url}/openapi.json", headers={server.header: KEY})
    with urllib.request.urlopen(request, timeout=30) as answer:
        (root / "openapi.json").write_bytes(answer.read())
    (root / "config.yml").write_text(
        "package_name_override: generated\n"
        "post_hooks: []\n"
        "content_type_overrides:\n"
        "  application/x-tar: application/octet-stream\n"
        "  application/zip: application/octet-stream\n"
        "  application/pdf: application/octet-stream\n"
        "  image/png: application/octet-stream\n"
    )
    command = [BIN / "openapi-python-client", "generate", "--path", root / "openapi.json", "--config",
               root / "config.yml", "--meta", "none", "--output-path", root / "generated", "--fail-on-warning"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)


def kernel_python():
    """A Python with a kernel, or nothing, and which one was looked at."""
    python = pathlib.Path(os.environ.get("GLOVEPORT_TEST_PYTHON", "~/.cache/gloveport/python/bin/python")).expanduser()
    command = [python, "-I", "-c", "import ipykernel"]
    has_kernel = python.exists() and subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    return (python if has_kernel else None), python


def client(binary):
    python, looked_at = kernel_python()
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        # The Python with a kernel is the user's own. The client does nothing that could harm.
        server = Server(binary, root, as_nobody=False, python=python)
        try:
            made = generate(server, root)
            check("a client is generated without a warning", made.returncode == 0, made.stdout + made.stderr)
            if made.returncode != 0:
                return
            command = [sys.executable, HERE / "client.py", server.url, KEY, "cell" if python else "no-cell"]
            environment = dict(os.environ, PYTHONPATH=str(root), PYTHONDONTWRITEBYTECODE="1")
            ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=180,
                                   check=False)
            for line in ended.stdout.splitlines():
                result, _, name = line.partition(" ")
                if result in results:
                    report(result, name)
            check("the program with the client ends well", ended.returncode == 0, ended.stdout + ended.stderr)
            if not python:
                report("skipped", "the client runs a cell", f"{looked_at} has no ipykernel; run scripts/setup")
        finally:
            server.end()


def client_of_gateway(binary):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        server = Gateway(binary, root, as_nobody=False)
        try:
            made = generate(server, root)
            check("a client of the gateway is generated without a warning", made.returncode == 0, made.stdout + made.stderr)
        finally:
            server.end()


def main():
    binary, cases, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    client(binary)
    client_of_gateway(binary)
    fuzz(binary, cases, seed)
    fuzz(binary, min(cases, CASES_OF_GATEWAY), seed, Gateway, PARTS_OF_GATEWAY, CALLS_OF_GATEWAY,
         "the document of the gateway")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**results), flush=True)
    sys.exit(1 if results["failed"] else 0)


main()
