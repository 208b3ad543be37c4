"""OpenHands 0.62 with our runtime, by its own way to find and use one."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from checks import HOME, LEVEL, check, example, finish, hold, killed, nothing_is_left, sessions

os.environ |= {
    "LOG_LEVEL": "ERROR",
    "GLOVEPORT_SANDBOX": json.dumps({"isolation": LEVEL}),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}

from openhands import agenthub  # noqa: F401  registers the agents
from openhands.core.config import OpenHandsConfig
from openhands.core.exceptions import AgentRuntimeDisconnectedError, AgentRuntimeUnavailableError
from openhands.events import EventStream
from openhands.events.action import CmdRunAction, FileReadAction, FileWriteAction
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime import get_runtime_cls
from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient
from openhands.storage import get_file_store

NAME = "gloveport.openhands.GloveportRuntime"


def made(sid, scratch, attach=False, **sandbox):
    config = OpenHandsConfig(runtime=NAME)
    config.enable_browser = config.run_as_openhands = False
    for name, value in sandbox.items():
        setattr(config.sandbox, name, value)
    store = get_file_store("local", scratch)
    seen = []
    runtime = get_runtime_cls(config.runtime)(
        config,
        EventStream(sid, store),
        LLMRegistry(config),
        sid=sid,
        attach_to_existing=attach,
        env_vars={"WORD": "given"},
        status_callback=lambda kind, status, message: seen.append(status.value),
    )
    return runtime, seen


def output(runtime, command):
    action = CmdRunAction(command)
    action.set_hard_timeout(20)
    return runtime.run_action(action)


async def used(scratch):
    runtime, statuses = made("one", scratch)
    check("its name gives the class", isinstance(runtime, ActionExecutionClient))
    await runtime.connect()
    check("it tells how far it is", statuses == ["STATUS$STARTING_RUNTIME", "STATUS$READY"], statuses)
    work = asyncio.to_thread
    seen = await work(output, runtime, "cd /tmp && echo $WORD in $PWD; (exit 3)")
    check(
        "a command runs, with the variables of the conversation",
        (seen.content.strip(), seen.exit_code) == ("given in /tmp", 3),
        seen,
    )
    seen = await work(output, runtime, "pwd")
    check("its shell keeps its state", seen.content.strip() == "/tmp", seen)
    root = str(runtime.workspace_root)
    await work(runtime.run_action, FileWriteAction(f"{root}/file", "words\n"))
    seen = await work(runtime.run_action, FileReadAction(f"{root}/file"))
    check("files are written and read", seen.content.strip() == "words", seen)
    check("they are in its workspace", "file" in await work(runtime.list_files), root)
    source = Path(scratch, "source")
    source.write_text("copied\n")
    await work(runtime.copy_to, str(source), root)
    seen = await work(output, runtime, f"cat {root}/source")
    check("files are copied there", seen.content.strip() == "copied", seen)
    zipped = await work(runtime.copy_from, root)
    check("and from there", zipped.read_bytes()[:2] == b"PK", zipped)
    zipped.unlink()
    seen = await work(output, runtime, f"cat {os.environ['SECRET_FILE']}")
    check(
        f"with the isolation {LEVEL} files of this machine's user are not there",
        LEVEL == "none" or "mine" not in seen.content,
        seen,
    )
    hosts = runtime.web_hosts
    check(
        "two ports of programs have addresses", len(hosts) == 2 and all(url.startswith("http") for url in hosts), hosts
    )

    other, _ = made("one", scratch, attach=True)
    await other.connect()
    seen = await work(output, other, "pwd")
    check("another runtime of the conversation has the same sandbox", seen.content.strip() == "/tmp", seen)
    other.close()
    check("and leaves it", len(sessions()) == 1, sessions())
    runtime.close()
    runtime.close()
    nothing_is_left("of a runtime that is closed")

    kept, _ = made("two", scratch, keep_runtime_alive=True)
    await kept.connect()
    kept.close()
    check("one that is kept stays", len(sessions()) == 1, sessions())
    await type(kept).delete("two")
    nothing_is_left("of a conversation that is deleted")

    try:
        await made("three", scratch, attach=True)[0].connect()
        told = ""
    except AgentRuntimeDisconnectedError as error:
        told = str(error)
    check("nothing to attach to is told", "three" in told, told)
    os.environ["GLOVEPORT_SANDBOX"] = '{"runtime": "no-such-runtime"}'
    try:
        await made("four", scratch)[0].connect()
        told = ""
    except AgentRuntimeUnavailableError as error:
        told = str(error)
    check("one that cannot be started says why", "no-such-runtime" in told, told)
    os.environ["GLOVEPORT_SANDBOX"] = json.dumps({"isolation": LEVEL})
    # While the sandbox starts, while it is asked whether it lives, while its shell gets the variables.
    cancelled = 0
    for delay in range(5, 60, 5):
        runtime, _ = made("five", scratch)
        starting = asyncio.create_task(runtime.connect())
        await asyncio.sleep(delay / 1000)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        cancelled += starting.cancelled()
        if not starting.cancelled():
            runtime.close()
        nothing_is_left(f"of one whose start is cancelled after {delay} ms")
    check("some were cancelled", cancelled > 0)


async def held(scratch):
    runtime, _ = made("held", scratch)
    await runtime.connect()
    hold()


if sys.argv[1:] == ["hold"]:
    # It is killed, so the place is another's.
    asyncio.run(held(os.environ["HOME"] + "/held"))
else:
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        asyncio.run(used(scratch))
    example("openhands_runtime.py", "Linux")
    killed()
    finish()
