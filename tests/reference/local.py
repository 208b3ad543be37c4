"""The reference's `LocalRuntime`, unmodified but for what it starts, does with our server what it does with its own:
setup with a warm server, start, attach, refill, close, delete.

    local.py BINARY

Each server is driven in a process and a home of its own, once with `sys.executable` as it is and once with a link to
BINARY; then statuses, addresses, observations, errors, and what is left running and on disk are compared. Prints one
line a check and, last, `N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

KEY = "key of the backend"
# What both must say, whatever the other one says.
EXPECTED = {
    "warm servers after setup": 1,
    "statuses of a new session": ["STATUS$STARTING_RUNTIME", "STATUS$STARTING_RUNTIME", "STATUS$READY"],
    "statuses of an attached session": ["STATUS$STARTING_RUNTIME", "STATUS$STARTING_RUNTIME"],
    "a request without the key": 403,
    "a request with the key": 200,
    "warm servers after a refill": 1,
    "the attached session sees the same shell": "5 /usr",
    "a closed attached session leaves the server": True,
    "a closed session ends the server": True,
    "nothing to attach to": "AgentRuntimeDisconnectedError: No existing server found for session unknown",
    "warm servers after the last session is deleted": 0,
}


def drive(launcher, home):
    """What happens with the server that `launcher` starts; ours is a link, the reference's is the interpreter."""
    os.makedirs(os.path.join(home, "tmp"))
    os.environ.update(
        HOME=home, TMPDIR=os.path.join(home, "tmp"), TMUX_TMPDIR=os.path.join(home, "tmp"), USER="root", LOG_LEVEL="ERROR",
        NO_CHANGE_TIMEOUT_SECONDS="2", SKIP_DEPENDENCY_CHECK="1", SU_TO_USER="false", SESSION_API_KEY=KEY,
        INITIAL_NUM_WARM_SERVERS="1", DESIRED_NUM_WARM_SERVERS="1",
    )
    from openhands import agenthub  # noqa: F401  registers the agents
    from openhands.core.config import OpenHandsConfig
    from openhands.events import EventStream
    from openhands.events.action import CmdRunAction, FileReadAction, FileWriteAction
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.local import local_runtime
    from openhands.runtime.impl.local.local_runtime import LocalRuntime
    from openhands.storage import get_file_store

    seen = {}
    config = OpenHandsConfig()
    config.workspace_base = config.workspace_mount_path_in_sandbox = os.path.join(home, "work")
    os.mkdir(config.workspace_base)
    config.enable_browser = config.run_as_openhands = False
    # An agent without plugins: the notebook is not what is compared here.
    config.default_agent = "DummyAgent"
    registry, store = LLMRegistry(config), get_file_store("local", os.path.join(home, "store"))

    def session(sid, attach=False):
        statuses = []
        stream = EventStream(f"{sid}-{time.monotonic_ns()}", store)
        runtime = LocalRuntime(
            config, stream, registry, sid=sid, attach_to_existing=attach, env_vars={"FROM_CLIENT": 'a "b" $c'},
            status_callback=lambda level, status, text: statuses.append(status.value),
        )
        return runtime, statuses

    def run(runtime, command):
        """The answer that comes twice: the reference can take the prompt before a command for its end."""
        answers = [None]
        while len(answers) < 6:
            answers.append(runtime.run(CmdRunAction(command=command)).content)
            if answers[-1] == answers[-2]:
                break
        return answers[-1]

    def warm(expected):
        deadline = time.monotonic() + 60
        while len(local_runtime._WARM_SERVERS) != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        return len(local_runtime._WARM_SERVERS)

    real, sys.executable = sys.executable, launcher
    try:
        began = time.monotonic()
        LocalRuntime.setup(config, headless_mode=True)
        times = {"setup": time.monotonic() - began}
        seen["warm servers after setup"] = len(local_runtime._WARM_SERVERS)

        began = time.monotonic()
        first, statuses = session("first")
        asyncio.run(first.connect())
        times["from a warm server"] = time.monotonic() - began
        seen["statuses of a new session"] = list(statuses)
        seen["address of the server"] = first.action_execution_server_url.rsplit(":", 1)[0]
        seen["editor"] = first.vscode_url
        seen["key"] = first.session_api_key
        seen["web hosts are addresses of this machine"] = all(url.startswith("http://localhost:") for url in first.web_hosts)
        seen["the workspace is the user's directory"] = run(first, "pwd") == config.workspace_base
        seen["variables arrive"] = run(first, 'echo "$FROM_CLIENT"')
        seen["mode of the local runtime"] = run(first, "echo $LOCAL_RUNTIME_MODE")
        path = os.path.join(config.workspace_base, "a.txt")
        first.write(FileWriteAction(path=path, content="one"))
        seen["a file arrives"] = first.read(FileReadAction(path=path)).content
        for name, headers in (("a request without the key", {}), ("a request with the key", {"X-Session-API-Key": KEY})):
            body = json.dumps({"path": config.workspace_base}).encode()
            headers = {**headers, "Content-Type": "application/json"}
            request = urllib.request.Request(f"{first.action_execution_server_url}/list_files", body, headers)
            try:
                seen[name] = urllib.request.urlopen(request, timeout=10).status
            except urllib.error.HTTPError as error:
                seen[name] = error.code
        seen["warm servers after a refill"] = warm(1)

        run(first, "x=5; cd /usr")
        second, statuses = session("first", attach=True)
        asyncio.run(second.connect())
        seen["statuses of an attached session"] = list(statuses)
        seen["the attached session sees the same shell"] = run(second, "echo $x $PWD")
        process = first.server_process
        second.close()
        seen["a closed attached session leaves the server"] = process.poll() is None
        seen["and the first session goes on"] = run(first, "echo $x $PWD")

        try:
            asyncio.run(session("unknown", attach=True)[0].connect())
            seen["nothing to attach to"] = "connected"
        except Exception as error:
            seen["nothing to attach to"] = f"{type(error).__name__}: {error}"

        first.close()
        seen["a closed session ends the server"] = process.poll() is not None
        seen["warm servers after a session is closed"] = warm(1)
        # One more start of the reference's server would tell nothing new.
        os.environ["DESIRED_NUM_WARM_SERVERS"] = "0"
        began = time.monotonic()
        third, statuses = session("third")
        asyncio.run(third.connect())
        times["from a warm server, again"] = time.monotonic() - began
        seen["statuses of the next session"] = list(statuses)
        asyncio.run(LocalRuntime.delete("third"))
        seen["warm servers after the last session is deleted"] = len(local_runtime._WARM_SERVERS)
        third.close()
    finally:
        sys.executable = real
    seen["the work stays"] = sorted(os.listdir(config.workspace_base))
    return {"seen": seen, "times": times}


def running(home):
    """Processes that have this home."""
    mark, found = f"HOME={home}\0".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                theirs = mark in file.read() + b"\0"
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            if theirs and int(pid) != os.getpid() and line:
                found.append((int(pid), line))
        except OSError:
            continue
    return found


def one(name, launcher):
    """Drives one server in a process of its own, and looks at what it leaves."""
    with tempfile.TemporaryDirectory(prefix="reference-local-", ignore_cleanup_errors=True) as home:
        link = os.path.join(home, "python")
        if launcher:
            os.symlink(launcher, link)
        result = os.path.join(home, "result.json")
        words = [sys.executable, os.path.abspath(__file__), "--drive", link if launcher else sys.executable, home, result]
        environment = {key: value for key, value in os.environ.items() if key != "RUST_BACKTRACE"}
        # Whatever outlives the client must not be waited for because it holds a pipe.
        with open(os.path.join(home, "errors"), "w+", encoding="utf-8") as errors:
            process = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
            )
            try:
                process.wait(timeout=420)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            deadline = time.monotonic() + 5
            while process.returncode == 0 and running(home) and time.monotonic() < deadline:
                time.sleep(0.05)
            left = running(home)
            for pid, _ in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            errors.seek(0)
            text = errors.read()[-3000:]
        if not os.path.exists(result):
            print(f"FAILED  {name}\n{text}")
            return None
        with open(result, encoding="utf-8") as file:
            found = json.load(file)
        # Directories of journals are for files that a killed process was writing; temporary workspaces must be gone.
        disk = sorted(entry for entry in os.listdir(os.path.join(home, "tmp")) if entry.startswith("openhands_workspace_"))
        found["running"], found["disk"] = [line for _, line in left], disk
        for step, seconds in found["times"].items():
            print(f"        {name}: {step} {seconds:.2f} s")
        return found


def main():
    passed = failed = 0

    def check(name, found, expected):
        nonlocal passed, failed
        if found == expected:
            passed += 1
            print(f"ok      {name}")
        else:
            failed += 1
            print(f"FAILED  {name}\n        expected {expected!r}\n        found    {found!r}")

    reference = one("the reference", None)
    ours = one("gloveport", os.path.abspath(sys.argv[1]))
    if reference is None or ours is None:
        print("0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    for name in reference["seen"]:
        if name in EXPECTED:
            check(f"the reference: {name}", reference["seen"][name], EXPECTED[name])
        check(name, ours["seen"].get(name), reference["seen"][name])
    print(f"        the reference leaves running: {reference['running']}, on disk: {reference['disk']}")
    check("nothing is left running", ours["running"], [])
    check("no more is left on disk than by the reference", [name for name in ours["disk"]], reference["disk"])
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--drive":
        found = drive(sys.argv[2], sys.argv[3])
        with open(sys.argv[4], "w", encoding="utf-8") as file:
            json.dump(found, file)
        sys.stdout.flush()
        # Threads of the client may outlive it.
        os._exit(0)
    main()
