"""Drives a gateway with the SDKs of E2B. See run."""

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Seconds for a gateway to say where it listens, and for it to end.
START = 60
END = 30
# Sandboxes whose times are measured, the pause before each where some are started ahead, and commands.
ROUNDS = 20
PAUSE = 1.5
COMMANDS = 200


class Report:
    """The checks that were made."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, work):
        began = time.monotonic()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the check has failed
            self.failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            return False
        self.passed += 1
        print(f"ok      {name} ({time.monotonic() - began:.2f} s)", flush=True)
        return True

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIPPED {name}: {why}", flush=True)


class Gateway:
    """A gateway with the API of E2B, in a directory of its own."""

    def __init__(self, binary, directory, image=None, more=()):
        """Over the runtime docker with this image, or over local. `more` are arguments."""
        self.directory = directory
        self.image = image
        self.key = directory / "key"
        self.key.write_text(secrets.token_hex(32) + "\n")
        self.key.chmod(0o600)
        home = directory / "home"
        home.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "GLOVEPORT_"))},
            "HOME": str(home),
            # The interpreter that runs this has a kernel.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(directory / "run"),
        }
        (directory / "run").mkdir(mode=0o700)
        runtime = "docker" if image else "local"
        if image:
            self.environment["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = image
        words = [binary, "gateway", "--runtime", runtime, "--port", "0", "--key-file", str(self.key), "--e2b", *more]
        self.log = open(directory / "log", "w")
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment, cwd=directory
        )
        self.url = self.listening()

    def listening(self):
        timer = threading.Timer(START, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        assert line.startswith("listening on "), f"the gateway did not start: {line!r} {self.tail()}"
        return line.split()[-1]

    def tail(self):
        return (self.directory / "log").read_text()[-2000:]

    def sdk(self, binary):
        """What `gloveport gateway env --e2b` tells the SDKs, through a shell."""
        words = [binary, "gateway", "env", "--e2b", "--url", self.url, "--key-file", str(self.key)]
        lines = subprocess.run(words, check=True, text=True, capture_output=True, env=self.environment).stdout
        shell = f"{lines}\nenv -0"
        found = subprocess.run(["bash", "-c", shell], check=True, capture_output=True, text=True).stdout
        pairs = [pair.split("=", 1) for pair in found.split("\0") if pair.startswith("E2B_")]
        return dict(pairs)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the gateway did not end within {END} s") from None
        finally:
            self.log.close()
        assert code == 0, f"the gateway ended with {code}: {self.tail()}"


def run_node(report, node, directory, environment):
    words = [node, str(HERE / "suite.mjs"), str(directory)]
    process = subprocess.run(words, text=True, capture_output=True, env={**os.environ, **environment}, timeout=600)
    lines = process.stdout.splitlines()
    for line in lines:
        print(line, flush=True)
    report.passed += sum(line.startswith("ok ") for line in lines)
    report.failed += sum(line.startswith("FAILED") for line in lines)
    report.skipped += sum(line.startswith("SKIPPED") for line in lines)
    if process.returncode != 0 or "done" not in lines:
        report.failed += 1
        print(f"FAILED  JavaScript came to its end: {process.returncode} {process.stderr[-1000:]}", flush=True)


def wishes(environment, record):
    """What the SDK sends for the wishes of a runtime is what the file says, with which the runtime `e2b` is compared."""
    words = [sys.executable, str(HERE / "wishes.py"), *record, str(HERE / "recorded.json")]
    process = subprocess.run(words, text=True, capture_output=True, env={**os.environ, **environment}, timeout=120)
    assert process.returncode == 0, process.stderr[-600:]


def times(gateway):
    """How long the SDK waits: for a sandbox with the result of its first command, and for the result of another one."""
    from e2b import Sandbox

    def p50(found):
        return 1000 * sorted(found)[len(found) // 2]

    first, further = [], []
    for round in range(ROUNDS):
        # Those that wait are made meanwhile.
        time.sleep(PAUSE if gateway.image else 0)
        began = time.perf_counter()
        sandbox = Sandbox.create(timeout=60)
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
        first.append(time.perf_counter() - began)
        for _ in range(COMMANDS if round == ROUNDS - 1 else 0):
            began = time.perf_counter()
            sandbox.commands.run("echo hi")
            further.append(time.perf_counter() - began)
        sandbox.kill()
    print(f"Sandbox.create() to the result of the first command, p50 of {len(first)}: {p50(first):.1f} ms")
    print(f"commands.run('echo hi'), p50 of {len(further)}: {p50(further):.1f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--node", default="", help="a Node; empty if there is none")
    parser.add_argument("--modules", help="the directory with its node_modules")
    parser.add_argument("--image", help="over the runtime docker with this image; without it over local")
    parser.add_argument("--record", action="store_const", const=["--record"], default=[])
    parser.add_argument("--times", action="store_true", help="measure, and check nothing")
    options = parser.parse_args()
    binary = options.binary
    report = Report()
    directory = Path(tempfile.mkdtemp(prefix="gloveport-e2b-"))
    warm = ["--warm", "4"] if options.times and options.image else []
    gateway = Gateway(binary, directory, options.image, warm)
    try:
        os.environ.update(gateway.sdk(binary))
        if options.times:
            times(gateway)
            return 0
        # The SDKs read the environment when they are imported.
        import interpreter
        import sandboxes

        sandboxes.checks(report, gateway)
        interpreter.checks(report, gateway)
        if not options.image:
            report.check("the requests of the SDK are the recorded ones", lambda: wishes(gateway.sdk(binary), options.record))
        if options.node:
            run_node(report, options.node, options.modules, gateway.sdk(binary))
        else:
            report.skip("JavaScript", "there is no Node from 20 on, or no SDK for it")
    finally:
        report.check("the gateway ends when it is asked to", gateway.end)
        if report.failed:
            print(f"the log of the gateway: {directory / 'log'}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
