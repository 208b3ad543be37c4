"""An unmodified `RemoteRuntime` of the reference works at `gloveport gateway` over sandboxes of this machine.

    remote_runtime.py BINARY

The gateway runs in a home of its own. Shell, file, editor and IPython actions, copies, the second client, pause,
resume, attach and stop go through it. Nothing of the sandboxes is left at the end. Prints one line a check and, last,
`N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
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

EXPECTED = {
    "statuses": ["STATUS$STARTING_RUNTIME", "STATUS$READY"],
    "the shell keeps its state": ["", "5 /tmp"],
    "variables arrive": 'a "b"',
    "variables of the start arrive": "from the configuration",
    "exit codes arrive": 3,
    "a file is written and read": "one\ntwo\n",
    "the editor edits": [True, "one\nthree"],
    "a cell runs": "21",
    "the kernel keeps its state": "40",
    "AgentSkills are there": True,
    "a file is copied in": True,
    "a directory is copied out": True,
    "the key of the sandbox is the API's": True,
    "a wrong key is refused": 401,
    "a second client is attached": "up",
    "a closed client that attached leaves the sandbox": "running",
    "a closed session that is kept is paused": "paused",
    "a request to a paused sandbox": 503,
    "a paused session is resumed by the next": ["up", "STATUS$READY"],
    "a closed session is stopped": 404,
    "there is nothing to attach to": "AgentRuntimeNotFoundError: Could not find existing runtime for SID: unknown",
    "a build is refused with a reason": True,
}


def ask(url, path, key=KEY):
    request = urllib.request.Request(f"{url}{path}", headers={"X-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def drive(url, home):
    from openhands import agenthub  # noqa: F401  registers the agents
    from openhands.core.config import OpenHandsConfig
    from openhands.events import EventStream
    from openhands.events.action import (
        CmdRunAction, FileEditAction, FileReadAction, FileWriteAction, IPythonRunCellAction,
    )
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.remote.remote_runtime import RemoteRuntime
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement
    from openhands.storage import get_file_store
    from pydantic import SecretStr

    config = OpenHandsConfig()
    config.runtime = "remote"
    config.workspace_base = None
    config.workspace_mount_path_in_sandbox = "/workspace"
    config.enable_browser = config.run_as_openhands = False
    config.sandbox.remote_runtime_api_url = url
    config.sandbox.api_key = KEY if isinstance(config.sandbox.api_key, (str, type(None))) else SecretStr(KEY)
    config.sandbox.runtime_container_image = "debian:13"
    config.sandbox.runtime_startup_env_vars = {"AT_START": "from the configuration"}
    registry, store = LLMRegistry(config), get_file_store("local", os.path.join(home, "store"))
    sid = uuid.uuid4().hex

    def session(name=sid, attach=False):
        statuses = []
        runtime = RemoteRuntime(
            config, EventStream(f"{name}-{uuid.uuid4()}", store), registry, sid=name,
            plugins=[AgentSkillsRequirement(), JupyterRequirement()], attach_to_existing=attach,
            env_vars={"FROM_CLIENT": 'a "b"'}, status_callback=lambda level, status, text: statuses.append(status.value),
        )
        return runtime, statuses

    seen = {}
    runtime, statuses = session()

    def run(command, of=None):
        return (of or runtime).run(CmdRunAction(command=command)).content.strip().replace("\r", "")

    def cell(code):
        return runtime.run_ipython(IPythonRunCellAction(code=code)).content

    try:
        asyncio.run(runtime.connect())
        seen["statuses"] = statuses
        seen["the shell keeps its state"] = [run("x=5; cd /tmp"), run("echo $x $PWD")]
        seen["variables arrive"] = run('echo "$FROM_CLIENT"')
        seen["variables of the start arrive"] = run('echo "$AT_START"')
        seen["exit codes arrive"] = runtime.run(CmdRunAction(command="(exit 3)")).exit_code
        place = os.path.join(home, "files")
        os.mkdir(place)
        path = os.path.join(place, "a.txt")
        runtime.write(FileWriteAction(path=path, content="one\ntwo"))
        seen["a file is written and read"] = runtime.read(FileReadAction(path=path)).content
        edited = runtime.edit(FileEditAction(path=path, command="str_replace", old_str="two", new_str="three"))
        seen["the editor edits"] = ["has been edited" in edited.content, run(f"cat {path}")]
        seen["a cell runs"] = cell("y = 20\nprint(y + 1)").splitlines()[0]
        seen["the kernel keeps its state"] = cell("print(y * 2)").splitlines()[0]
        seen["AgentSkills are there"] = "one" in cell(f"open_file({path!r})")
        with open(os.path.join(home, "up.txt"), "w") as file:
            file.write("up")
        runtime.copy_to(os.path.join(home, "up.txt"), place)
        seen["a file is copied in"] = "up.txt" in runtime.list_files(place)
        copied = runtime.copy_from(place)
        seen["a directory is copied out"] = os.path.getsize(copied) > 100
        told = ask(url, f"/sessions/{sid}")[1]
        seen["the key of the sandbox is the API's"] = told["session_api_key"] == runtime.session_api_key
        seen["a wrong key is refused"] = ask(url, "/list", "wrong")[0]

        other, _ = session(attach=True)
        asyncio.run(other.connect())
        seen["a second client is attached"] = run(f"cat {place}/up.txt", other)
        other.close()
        seen["a closed client that attached leaves the sandbox"] = ask(url, f"/sessions/{sid}")[1]["status"]

        config.sandbox.keep_runtime_alive = config.sandbox.pause_closed_runtimes = True
        kept, _ = session()
        asyncio.run(kept.connect())
        kept.close()
        told = ask(url, f"/sessions/{sid}")[1]
        seen["a closed session that is kept is paused"] = told["status"]
        seen["a request to a paused sandbox"] = ask("", told["url"] + "/alive")[0]
        config.sandbox.keep_runtime_alive = False
        back, statuses = session()
        asyncio.run(back.connect())
        seen["a paused session is resumed by the next"] = [run(f"cat {place}/up.txt", back), statuses[-1]]
        back.close()
        seen["a closed session is stopped"] = ask(url, f"/sessions/{sid}")[0]

        try:
            asyncio.run(session("unknown", attach=True)[0].connect())
        except Exception as error:
            seen["there is nothing to attach to"] = f"{type(error).__name__}: {error}"
        # It was there before the others that have ended its sandbox; at its own end it would ask a gateway that is gone.
        try:
            runtime.close()
        except Exception:
            pass
        status, told = ask(url, "/registry_prefix")
        seen["a build is refused with a reason"] = status == 501 and "runtime_container_image" in told["detail"]
    except Exception as error:  # the checks that are missing say what was not reached
        import traceback
        seen["the session"] = traceback.format_exc() if os.environ.get("VERBOSE") else f"{type(error).__name__}: {error}"
    return seen


def main():
    binary = os.path.abspath(sys.argv[1])
    home = tempfile.mkdtemp(prefix="reference-remote-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(os.path.join(home, "key"), "w") as file:
        file.write(KEY)
    environment = dict(os.environ, HOME=home, TMPDIR=home, XDG_STATE_HOME=home)
    environment.pop("XDG_RUNTIME_DIR", None)
    words = [binary, "gateway", "--runtime", "local", "--port", "0", "--key-file", os.path.join(home, "key")]
    passed = failed = 0

    def check(name, value, expected):
        nonlocal passed, failed
        if value == expected:
            passed += 1
            print(f"ok      {name}")
        else:
            failed += 1
            print(f"FAILED  {name}: {value!r}, not {expected!r}")

    with open(os.path.join(home, "log"), "w") as log:
        gateway = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        url = gateway.stdout.readline().strip().removeprefix("listening on ")
        os.environ.update(HOME=home, LOG_LEVEL="ERROR")
        seen = drive(url, home)
        for name, expected in EXPECTED.items():
            check(name, seen.pop(name, "not reached"), expected)
        for name, value in seen.items():
            print(f"        {name}: {value}")
    finally:
        gateway.terminate()
        code = gateway.wait(30)
    check("the gateway ends when it is asked to", code, 0)
    with open(os.path.join(home, "log")) as log:
        check("its log has no key", KEY in log.read(), False)
    sandboxes = os.path.join(home, "gloveport", "local", "sandboxes")
    check("nothing of the sandboxes is left", os.listdir(sandboxes), [])
    shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
