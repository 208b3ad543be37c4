"""A server that waits for its settings (OH_DEFERRED_INIT), ours beside OpenHands' own.

usage: deferred.py BINARY SERVER SCRATCH

BINARY is our program, SERVER is OpenHands' agent-server, and files for the test go into SCRATCH. Both are started three times:
with a secret, with a key of clients, and with neither; and are asked the same. What differs on purpose is in DIFFERENCES. Prints one
line a check, `passed  …` or `FAILED  …`; the last line counts them.
"""

import json
import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

COUNTS = {True: 0, False: 0}
# What differs, and why.
DIFFERENCES = {
    "an unknown path": "what the server will know it says only when it has its settings, so what it does not know is refused as well",
    "broken JSON without the secret": "the secret comes first",
    "a page of the settings": "the pages of the settings may ask, for which the settings are there",
}
ROUTES = [
    ("GET", "/alive"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/api/init"),
    ("GET", "/api/file/home"),
    ("GET", "/api/bash/bash_events/search"),
    ("POST", "/api/bash/execute_bash_command"),
    ("GET", "/api/conversations/search"),
]


def check(what, is_so, told=""):
    COUNTS[bool(is_so)] += 1
    print(f"passed  {what}" if is_so else f"FAILED  {what}: {told}", flush=True)


class Server:
    def __init__(self, name, program, scratch, variables):
        self.name = name
        self.work = scratch / "work"
        for directory in (self.work, scratch / "home"):
            directory.mkdir(parents=True, exist_ok=True)
        self.log = scratch / "log"
        for _ in range(5):
            self.port = random.randrange(20000, 40000)
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(scratch / "home"),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OH_ENABLE_VSCODE": "0",
                "OH_PRELOAD_TOOLS": "0",
                "GLOVEPORT_AGENT_SERVER": "none",
                "OH_DEFERRED_INIT": "true",
            }
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [program, "--host", "127.0.0.1", "--port", str(self.port)],
                    cwd=self.work,
                    env=environment | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            if self.lives():
                return
            self.end()
        raise SystemExit(f"the server of {name} does not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def lives(self):
        for _ in range(600):
            if self.process.poll() is not None:
                return False
            try:
                if self.ask("GET", "/ready")[0] == 200:
                    return True
            except OSError:
                pass
            time.sleep(0.1)
        return False

    def ask(self, method, path, body=None, headers=None):
        """Status, JSON and headers of an answer."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        request.add_header("content-type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text, told = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            status, text, told = error.code, error.read(), error.headers
        try:
            return status, json.loads(text), told
        except ValueError:
            return status, text.decode(errors="replace"), told

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def mistakes(answer):
    """The kinds and places of what is wrong with a body."""
    status, body, _ = answer
    if status == 422 and isinstance(body["detail"], list):
        return status, sorted((one["type"], json.dumps(one["loc"])) for one in body["detail"])
    return status, body


def plain(answer):
    status, body, _ = answer
    return status, body


def asked_with_secret(server):
    """What a server that waits with a secret answers, by what was asked."""
    found = {}
    secret = {"X-Init-API-Key": "the-secret"}
    key = {"X-Session-API-Key": "one"}
    for method, path in ROUTES:
        found[f"while it waits, {method} {path}"] = plain(server.ask(method, path, {} if method == "POST" else None))
    found["an unknown path"] = server.ask("GET", "/api/nothing/of/this/name")[0]
    found["a body without the secret"] = plain(server.ask("POST", "/api/init", {}))
    found["a body with a wrong secret"] = plain(server.ask("POST", "/api/init", {}, {"X-Init-API-Key": "wrong"}))
    found["a body with a key of clients"] = plain(server.ask("POST", "/api/init", {}, {"X-Session-API-Key": "the-secret"}))
    found["broken JSON without the secret"] = server.ask("POST", "/api/init", b"{")[0]
    found["broken JSON"] = server.ask("POST", "/api/init", b"{", secret)[0]
    for what, body in {
        "an unknown field": {"nothing_of_this_name": 1},
        "keys that are no list": {"session_api_keys": "one"},
        "a key that is no text": {"session_api_keys": ["one", 7]},
        "an empty key": {"session_api_keys": ["one", ""]},
        "variables that are no object": {"env": ["A"]},
        "a variable that is no text": {"env": {"A": 1}},
        "no conversation at a time": {"max_concurrent_runs": 0},
        "origins that are no list": {"allow_cors_origins": "https://x.example"},
        "a list": [],
    }.items():
        found[what] = mistakes(server.ask("POST", "/api/init", body, secret))
    found["after mistakes"] = plain(server.ask("GET", "/api/init"))
    settings = {
        "session_api_keys": ["one", "two"],
        "env": {"GREETING": "hello"},
        "bash_events_dir": str(server.work / "told"),
        "allow_cors_origins": ["https://late.example"],
        "web_url": None,
    }
    found["settings"] = plain(server.ask("POST", "/api/init", settings, secret))
    found["with settings, its state"] = plain(server.ask("GET", "/api/init"))
    found["settings again"] = plain(server.ask("POST", "/api/init", settings, secret))
    found["settings again, without the secret"] = plain(server.ask("POST", "/api/init", settings))
    found["an empty key, too late"] = plain(server.ask("POST", "/api/init", {"session_api_keys": [""]}, secret))
    command = {"command": "echo $GREETING"}
    for what, headers in {
        "no key": {},
        "the secret": {"X-Session-API-Key": "the-secret"},
        "the first key": key,
        "the second key": {"X-Session-API-Key": "two"},
    }.items():
        status, body, _ = server.ask("POST", "/api/bash/execute_bash_command", command, headers)
        found[f"a command with {what}"] = (status, body.get("stdout") if status == 200 else None)
    found["events are where the settings say"] = any((server.work / "told").iterdir())
    _, _, headers = server.ask("GET", "/api/bash/bash_events/search", None, key | {"Origin": "https://late.example"})
    found["a page of the settings"] = headers.get("access-control-allow-origin")
    return found


def asked_with_key(server):
    """With a key of clients and no secret: that key is the secret, and it stays where the settings have none."""
    found = {}
    found["settings without it"] = server.ask("POST", "/api/init", {})[0]
    found["settings with it"] = plain(server.ask("POST", "/api/init", {}, {"X-Init-API-Key": "client-key"}))
    for what, headers in {"no key": {}, "the key": {"X-Session-API-Key": "client-key"}}.items():
        found[f"a request with {what}"] = server.ask("GET", "/api/bash/bash_events/search", None, headers)[0]
    return found


def asked_openly(server):
    """With neither: anybody brings the settings."""
    found = {"settings": plain(server.ask("POST", "/api/init", {"env": {"A": "1"}}))}
    found["a request"] = server.ask("GET", "/api/bash/bash_events/search")[0]
    return found


def main(binary, reference, scratch):
    scratch = Path(scratch)
    (scratch / "bin").mkdir(parents=True, exist_ok=True)
    ours = scratch / "bin" / "agent-server"
    ours.symlink_to(Path(binary).resolve())
    for label, variables, ask in (
        ("with a secret", {"OH_SECRET_KEY": "the-secret"}, asked_with_secret),
        ("with a key", {"SESSION_API_KEY": "client-key", "OH_SESSION_API_KEYS_0": "client-key"}, asked_with_key),
        ("with neither", {}, asked_openly),
    ):
        answers = {}
        for name, program in (("ours", ours), ("theirs", reference)):
            server = Server(name, program, scratch / f"{name}-{label}".replace(" ", "-"), variables)
            try:
                answers[name] = ask(server)
            finally:
                server.end()
            if name == "ours":
                check(f"settings later: {label}: our server ends as it should", server.process.returncode == 0, server.process.returncode)
        for what, theirs in answers["theirs"].items():
            mine, differs = answers["ours"][what], what in DIFFERENCES
            check(
                f"settings later: {label}: {what}" + (f" (differs: {DIFFERENCES[what]})" if differs else ""),
                (without_texts(mine) == without_texts(theirs)) != differs,
                f"ours {mine!r}, theirs {theirs!r}",
            )
    print(f"{COUNTS[True]} passed, {COUNTS[False]} failed, 0 skipped")
    return COUNTS[False] != 0


def without_texts(answer):
    """An answer without the words for people, of which only those that say a state are compared."""
    if isinstance(answer, tuple) and isinstance(answer[1], dict) and isinstance(answer[1].get("detail"), str):
        text = answer[1]["detail"]
        return answer[0], text if "state" in text or "empty keys" in text or text == "Unauthorized" else None
    return answer


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
