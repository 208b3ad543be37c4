"""Gateways in homes of their own, and what tests do with them."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid

KEY = "a key of the gateway for tests"


class Checks:
    """Prints one line a check, and how many passed."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, value, expected):
        if value == expected:
            self.passed += 1
            print(f"ok      {name}")
        else:
            self.failed += 1
            print(f"FAILED  {name}: {value!r}, not {expected!r}")

    def check_all(self, seen, expected):
        """What was seen beside what is expected is told, too."""
        for name, value in expected.items():
            self.check(name, seen.get(name, "not reached"), value)
        for name in seen.keys() - expected.keys():
            print(f"        {name}: {seen[name]}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed else 0


def ask(url, path, key=KEY):
    request = urllib.request.Request(f"{url}{path}", headers={"X-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@contextlib.contextmanager
def gateway(checks, binary, *words):
    """A gateway with these arguments: its URL and its home. At the end it must end well, and its log must have no key."""
    home = tempfile.mkdtemp(prefix="reference-remote-")
    # A test that runs out of time must not leave its gateway behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(os.path.join(home, "key"), "w") as file:
        file.write(KEY)
    environment = dict(os.environ, HOME=home, TMPDIR=home, XDG_STATE_HOME=home)
    environment.pop("XDG_RUNTIME_DIR", None)
    command = [os.path.abspath(binary), "gateway", "--port", "0", "--key-file", os.path.join(home, "key"), *words]
    with open(os.path.join(home, "log"), "w") as log:
        running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        os.environ.update(HOME=home, LOG_LEVEL="ERROR")
        yield running.stdout.readline().strip().removeprefix("listening on "), home
    finally:
        running.terminate()
        code = running.wait(30)
    checks.check("the gateway ends when it is asked to", code, 0)
    with open(os.path.join(home, "log")) as log:
        checks.check("its log has no key", KEY in log.read(), False)
    sandboxes = os.path.join(home, "gloveport", "local", "sandboxes")
    left = os.listdir(sandboxes) if os.path.isdir(sandboxes) else []
    checks.check("nothing of the sandboxes is left", left, [])
    shutil.rmtree(home, ignore_errors=True)


def client(url, home, image, plugins=()):
    """The configuration of an OpenHands backend that uses the gateway, and what makes sessions with it."""
    from openhands import agenthub  # noqa: F401  registers the agents
    from openhands.core.config import OpenHandsConfig
    from openhands.events import EventStream
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.remote.remote_runtime import RemoteRuntime
    from openhands.storage import get_file_store
    from pydantic import SecretStr

    config = OpenHandsConfig()
    config.runtime = "remote"
    config.workspace_base = None
    config.workspace_mount_path_in_sandbox = "/workspace"
    config.enable_browser = config.run_as_openhands = False
    config.sandbox.remote_runtime_api_url = url
    config.sandbox.api_key = KEY if isinstance(config.sandbox.api_key, (str, type(None))) else SecretStr(KEY)
    config.sandbox.runtime_container_image = image
    config.sandbox.runtime_startup_env_vars = {"AT_START": "from the configuration"}
    registry, store = LLMRegistry(config), get_file_store("local", os.path.join(home, "store"))

    def session(name, attach=False):
        statuses = []
        runtime = RemoteRuntime(
            config, EventStream(f"{name}-{uuid.uuid4()}", store), registry, sid=name,
            plugins=list(plugins), attach_to_existing=attach,
            env_vars={"FROM_CLIENT": 'a "b"'}, status_callback=lambda level, status, text: statuses.append(status.value),
        )
        return runtime, statuses

    return config, session


def told(error):
    """An error as a check shows it; whole with VERBOSE."""
    import traceback

    return traceback.format_exc() if os.environ.get("VERBOSE") else f"{type(error).__name__}: {error}"
