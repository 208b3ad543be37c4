"""Our server: started for a test, and spoken to over HTTP."""

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from steps import Died

# Seconds: until a server is ready, of a request (longer than the server's own limit of a step), and of its end.
START, PATIENCE, END = 120, 150, 20


class Server:
    """Any server that speaks as ours does."""

    def __init__(self, url, key=None):
        self.url, self.key = url.rstrip("/"), key

    def perform(self, action, args):
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["X-Session-API-Key"] = self.key
        body = json.dumps({"action": {"action": action, "args": args}}).encode()
        request = urllib.request.Request(f"{self.url}/execute_action", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                seen = json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            return {"observation": "error", "content": f"HTTP {error.code}: {text}", "extras": {}}
        except (OSError, ValueError) as error:
            raise Died(str(error)) from error
        return {**seen, "content": seen.get("content") or "", "extras": seen.get("extras") or {}}


class Ours(Server):
    """One that is started from a binary. `with` ends it."""

    def __init__(self, binary):
        self.binary, self.process = os.path.abspath(binary), None

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        super().__init__(f"http://127.0.0.1:{port}")
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        work = os.path.join(self.home.name, "work")
        os.mkdir(work)
        words = [
            self.binary, "action-execution-server", str(port), "--working-dir", work, "--username", "root", "--user-id", "0",
            "--enable-browser",
        ]
        environment = {name: value for name, value in os.environ.items() if name not in ("SESSION_API_KEY", "RUST_BACKTRACE")}
        environment["HOME"] = self.home.name
        self.log = open(os.path.join(self.home.name, "log"), "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + START
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/alive", timeout=5).read()
                return self
            except OSError:
                time.sleep(0.02)
        said = self.said()
        self.__exit__()
        raise SystemExit(f"{self.binary} does not start:\n{said}")

    def said(self):
        """The end of what it has logged."""
        self.log.flush()
        self.log.seek(0)
        return self.log.read()[-3000:]

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.home.cleanup()
