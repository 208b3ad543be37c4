"""SWE-ReX's deployments and runtimes, by its own interface."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gloveport.swerex import GloveportDeploymentConfig
from swerex.deployment.abstract import AbstractDeployment
from swerex.deployment.hooks.abstract import DeploymentHook
from swerex.exceptions import CommandTimeoutError, DeploymentNotStartedError, NonZeroExitCodeError
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    ReadFileRequest,
    UploadRequest,
    WriteFileRequest,
)
from swerex.runtime.remote import RemoteRuntime

from checks import HOME, LEVEL, cancelled, check, example, finish, hold, killed, nothing_is_left, raised


class Steps(DeploymentHook):
    def __init__(self):
        self.seen = []

    def on_custom_step(self, message):
        self.seen.append(message)


async def used(runtime):
    """Every call of a runtime."""
    run = runtime.run_in_session
    await runtime.create_session(CreateBashSessionRequest(startup_timeout=20))
    await run(BashAction(command="cd /tmp && export WORD=kept", timeout=20))
    seen = await run(BashAction(command="echo $WORD in $PWD", timeout=20))
    check("a session keeps its directory and variables", seen.output.strip() == "kept in /tmp", seen)
    try:
        await run(BashAction(command="(exit 3)", timeout=20))
        told = "nothing"
    except NonZeroExitCodeError as error:
        told = str(error)
    check("a command that fails raises what SWE-ReX raises", "3" in told, told)
    try:
        await run(BashAction(command="sleep 100", timeout=0.5))
        told = "nothing"
    except CommandTimeoutError as error:
        told = str(error)
    check("so does one whose time is over", told != "nothing", told)
    await run(BashInterruptAction(timeout=5))
    typed = {"is_interactive_command": True, "expect": [">>> "], "timeout": 20, "check": "ignore"}
    await run(BashAction(command="python3 -q", **typed))
    seen = await run(BashAction(command="print(6 * 7)", **typed))
    check("an interactive program is typed to", "42" in seen.output, seen)
    await run(BashAction(command="exit()", is_interactive_quit=True, timeout=20, check="ignore"))
    await runtime.close_session(CloseBashSessionRequest())
    done = await runtime.execute(Command(command="echo out; echo err >&2; exit 4", shell=True, timeout=20))
    check(
        "a command has its two outputs and its code",
        (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 4),
        done,
    )
    await runtime.write_file(WriteFileRequest(path="/tmp/here/file", content="words\n"))
    text = (await runtime.read_file(ReadFileRequest(path="/tmp/here/file"))).content
    check("files are written and read", text == "words\n", text)
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        source = Path(scratch) / "tree"
        (source / "below").mkdir(parents=True)
        (source / "below/file").write_bytes(b"x" * 3_000_000)
        await runtime.upload(UploadRequest(source_path=str(source), target_path="/tmp/tree"))
    size = await runtime.execute(Command(command="wc -c </tmp/tree/below/file", shell=True, timeout=20))
    check("a tree of 3 MB is uploaded", size.stdout.strip() == "3000000", size)


def alone():
    """What is imported with the package."""
    names = ("swerex", "minisweagent", "inspect_ai", "openhands", "harbor", "pydantic", "anyio._core")
    call = f"import sys, gloveport; gloveport.Sandbox; print([each for each in {names} if each in sys.modules])"
    told = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True).stdout.strip()
    check("the package alone imports no framework", told == "[]", told)


async def main():
    config = GloveportDeploymentConfig(isolation=LEVEL, network="none" if LEVEL != "none" else None)
    deployment = config.get_deployment()
    check("a configuration gives a deployment", isinstance(deployment, AbstractDeployment))
    check("it is written down and read again", type(config)(**config.model_dump()) == config)
    check("one that is not started has no runtime", raised(DeploymentNotStartedError, lambda: deployment.runtime))
    steps = Steps()
    deployment.add_hook(steps)
    await deployment.start()
    check("it tells its hooks what it does", steps.seen == ["Starting sandbox"], steps.seen)
    check("its runtime is SWE-ReX's own client", isinstance(deployment.runtime, RemoteRuntime))
    check("it is alive", bool(await deployment.is_alive()), await deployment.is_alive())
    await used(deployment.runtime)
    seen = await deployment.runtime.execute(Command(command=["cat", os.environ["SECRET_FILE"]], timeout=20))
    check(
        f"with the isolation {LEVEL} files of this machine's user are not there",
        LEVEL == "none" or (seen.exit_code != 0 and "mine" not in seen.stdout),
        seen,
    )
    await deployment.stop()
    await deployment.stop()
    nothing_is_left("of a deployment that is stopped")

    def make():
        one = config.get_deployment()
        return one.start(), one.stop

    await cancelled(make)
    nowhere = GloveportDeploymentConfig(isolation=LEVEL, env={"TMPDIR": "/dev/null/x"}).get_deployment()
    try:
        await nowhere.start()
        told = ""
    except Exception as error:
        told = str(error)
    check("one whose server has no place says why", "/dev/null/x" in told, told)
    nothing_is_left("of one whose server has no place")
    try:
        await GloveportDeploymentConfig(runtime="no-such-runtime").get_deployment().start()
        told = ""
    except Exception as error:
        told = str(error)
    check("one that cannot be started says why", "no-such-runtime" in told, told)


async def held():
    deployment = GloveportDeploymentConfig(isolation="none").get_deployment()
    await deployment.start()
    hold()


if sys.argv[1:] == ["hold"]:
    asyncio.run(held())
else:
    alone()
    asyncio.run(main())
    example("swerex_session.py", "/tmp")
    killed()
    finish()
