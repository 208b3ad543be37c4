"""An unmodified `RemoteRuntime` of the reference works at `gloveport gateway` over sandboxes of this machine.

    remote_runtime.py BINARY

The gateway runs in a home of its own. Shell, file, editor and IPython actions, copies, the second client, pause,
resume, attach and stop go through it. Nothing of the sandboxes is left at the end. Prints one line a check and, last,
`N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import os
import sys
import uuid

from gateways import Checks, ask, client, gateway, told

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


def drive(url, home):
    from openhands.events.action import (
        CmdRunAction, FileEditAction, FileReadAction, FileWriteAction, IPythonRunCellAction,
    )
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement

    config, make = client(url, home, "debian:13", [AgentSkillsRequirement(), JupyterRequirement()])
    sid = uuid.uuid4().hex

    def session(name=sid, attach=False):
        return make(name, attach)

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
        seen["the key of the sandbox is the API's"] = ask(url, f"/sessions/{sid}")[1]["session_api_key"] == runtime.session_api_key
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
        sandbox = ask(url, f"/sessions/{sid}")[1]
        seen["a closed session that is kept is paused"] = sandbox["status"]
        seen["a request to a paused sandbox"] = ask("", sandbox["url"] + "/alive")[0]
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
        status, answer = ask(url, "/registry_prefix")
        seen["a build is refused with a reason"] = status == 501 and "runtime_container_image" in answer["detail"]
    except Exception as error:  # the checks that are missing say what was not reached
        seen["the session"] = told(error)
    return seen


def main():
    checks = Checks()
    with gateway(checks, sys.argv[1], "--runtime", "local") as (url, home):
        checks.check_all(drive(url, home), EXPECTED)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
