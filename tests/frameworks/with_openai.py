"""The OpenAI Agents SDK's own loop and scripted model, with tools that work in a sandbox."""

import asyncio
import os
import sys
import time

os.environ |= {"OPENAI_AGENTS_DISABLE_TRACING": "1"}

from agents import (
    Agent,
    ApplyPatchOperation,
    ApplyPatchTool,
    LocalShellCommandRequest,
    LocalShellTool,
    RunContextWrapper,
    Runner,
    ShellTool,
)
from agents.editor import ApplyPatchEditor
from agents.testing import ScriptedModel, assistant_message
from agents.tool import ShellActionRequest, ShellCallData, ShellCommandRequest
from gloveport import AsyncSandbox, GloveportError
from gloveport.openai_agents import GloveportEditor, GloveportShell
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall
from openai.types.responses.response_output_item import LocalShellCall

from checks import LEVEL, check, example, finish, hold, killed, nothing_is_left

KINDS = {
    "apply_patch_call": ResponseApplyPatchToolCall,
    "local_shell_call": LocalShellCall,
    "shell_call": ResponseFunctionShellToolCall,
}


def call(kind, number=1, **more):
    """What a model says to use a tool."""
    given = {"type": kind, "id": f"{kind}-{number}", "call_id": f"{kind}-{number}", "status": "completed", **more}
    return KINDS[kind].model_validate(given)


def patch(number, kind, path, diff=None):
    operation = {"type": kind, "path": path, **({"diff": diff} if diff else {})}
    return call("apply_patch_call", number, operation=operation)


def local(command, **more):
    action = {"type": "exec", "command": command, "env": {}, **more}
    return call("local_shell_call", action=action)


async def shell(box):
    executor = GloveportShell(box, timeout=20)

    async def run(*commands, executor=executor, timeout_ms=None, most=None):
        action = ShellActionRequest(list(commands), timeout_ms=timeout_ms, max_output_length=most)
        request = ShellCommandRequest(RunContextWrapper(None), ShellCallData("call", action))
        return [(each.stdout, each.stderr, each.status, each.exit_code) for each in (await executor(request)).output]

    seen = await run("echo out; echo err >&2; echo $WORD; exit 3", "pwd")
    wanted = [("out\ngiven\n", "err\n", "completed", 3), (f"{box.workspace}\n", "", "completed", 0)]
    check("commands have their outputs apart, and their codes", seen == wanted, seen)
    check("each is in a shell of its own", (await run("cd /; X=1", "echo $X; pwd"))[1][0] == f"\n{box.workspace}\n")
    seen = await run("kill -9 $$")
    check("the end by a signal is what a shell calls it", seen[0][3] == 137, seen)
    seen = await run("echo begun; sleep 12345", "echo never", timeout_ms=1000)
    check(
        "one whose time is over is the last, and its output is there", seen == [("begun\n", "", "timeout", None)], seen
    )
    check("it is ended", (await run("pgrep -fx 'sleep 12345'"))[0][0] == "")
    begun = time.monotonic()
    seen = await run("sleep 100", timeout_ms=100_000, executor=GloveportShell(box, timeout=1))
    check("a model cannot ask for more time", seen[0][2] == "timeout" and time.monotonic() - begun < 20, seen)
    seen = await run("head -c 5000000 /dev/zero | tr '\\0' x; echo end")
    is_so = len(seen[0][0]) < 1_100_000 and seen[0][0].endswith("end\n") and "left out" in seen[0][0]
    check("of 5 MB of output the beginning and the end are kept", is_so, len(seen[0][0]))
    seen = await run("pwd", executor=GloveportShell(box, cwd="/usr"))
    check("a directory can be named", seen[0][0] == "/usr\n", seen)
    seen = await run(f"cat {os.environ['SECRET_FILE']}")
    check(f"with the isolation {LEVEL} files of this machine's user are not there", LEVEL == "none" or not seen[0][0])

    running = asyncio.create_task(run("sleep 54321"))

    async def runs():
        return (await run("pgrep -fx 'sleep 54321'"))[0][0] != ""

    async with asyncio.timeout(20):
        while not await runs():
            await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    check("a command of a cancelled run is ended", not await runs())

    async def one(command, **more):
        return await executor(LocalShellCommandRequest(RunContextWrapper(None), local(command, **more)))

    seen = await one(
        ["bash", "-c", "echo out; echo err >&2; echo $A; pwd; exit 3"], env={"A": "b"}, working_directory="/usr"
    )
    check("a local shell has one output and the code", seen == "out\nerr\nb\n/usr\n\n[exit code 3]", seen)
    seen = await one(["sleep", "100"], timeout_ms=500)
    check("it says when the time is over", "0.5 seconds" in seen, seen)
    seen = await one(["true"], working_directory="/no/such/directory")
    check("and which directory is not there", "/no/such" in seen, seen)
    seen = await one(["no-such-program"])
    check("and which program", "no-such-program" in seen and "127" in seen, seen)
    check("it does not run as somebody else", "'root'" in await one(["id"], user="root"))


async def editor(box):
    one = GloveportEditor(box)
    check("the editor is one of the SDK", isinstance(one, ApplyPatchEditor))
    file = box.path("a/b.txt")
    done = await one.create_file(ApplyPatchOperation("create_file", "a/b.txt", "+one\n+two\n"))
    check("a file is created", (done.status, await file.read_text()) == ("completed", "one\ntwo"), done)
    check("once", await fails(one.create_file(ApplyPatchOperation("create_file", "a/b.txt", "+x\n")), FileExistsError))
    await file.write_text("one\r\ntwo\r\n")
    await one.update_file(ApplyPatchOperation("update_file", "a/b.txt", "@@\n one\n-two\n+three\n"))
    check("it is changed, and keeps its ends of lines", await file.read_bytes() == b"one\r\nthree\r\n")
    wrong = ApplyPatchOperation("update_file", "a/b.txt", "@@\n no\n-such\n+line\n")
    check("a change that does not fit fails", await fails(one.update_file(wrong), ValueError))
    check("and changes nothing", await file.read_bytes() == b"one\r\nthree\r\n")
    await file.write_text("#!/bin/sh\necho old\n")
    await box.run("chmod 755 a/b.txt")
    moved = ApplyPatchOperation("update_file", "a/b.txt", "@@\n-echo old\n+echo new\n", move_to="c/d")
    await one.update_file(moved)
    check("it is moved with its mode", (await box.run("c/d")).output == "new\n" and not await file.exists())
    refused = await fails(one.delete_file(ApplyPatchOperation("delete_file", "c")), IsADirectoryError)
    check("a directory is not deleted", refused)
    await one.delete_file(ApplyPatchOperation("delete_file", "c/d"))
    check("a file is", not await box.path("c/d").exists())
    check(
        "one that is not there fails",
        await fails(one.delete_file(ApplyPatchOperation("delete_file", "x")), FileNotFoundError),
    )


async def fails(call, kind):
    try:
        await call
    except kind:
        return True
    return False


async def agent(box):
    commands = {"commands": ["cat note.txt; exit 4"], "timeout_ms": 20_000}
    steps = [
        [patch(1, "create_file", "note.txt", "+a\n+b\n")],
        [patch(2, "update_file", "note.txt", "@@\n a\n-b\n+c\n"), patch(3, "delete_file", "nothing")],
        [call("shell_call", action=commands)],
        [local(["sh", "-c", "wc -l <note.txt"])],
        [assistant_message("It is done.")],
    ]
    model = ScriptedModel(steps)
    shell = GloveportShell(box)
    tools = [ShellTool(executor=shell), ApplyPatchTool(editor=GloveportEditor(box))]
    one = Agent(name="worker", model=model, tools=[*tools, LocalShellTool(executor=shell)])
    done = await Runner.run(one, "Change the note.")
    items = [each.raw_item for each in done.new_items if each.type == "tool_call_output_item"]
    check("an agent of the SDK works to its end", done.final_output == "It is done." and len(items) == 5, items)
    told = [each.get("status") for each in items[:3]]
    check("it is told what was edited, and what was not", told == ["completed", "completed", "failed"], items)
    shown = items[3]["shell_output"][0]
    seen = (shown["stdout"], shown["outcome"])
    check("what a command printed, and its code", seen[0] == "a\nc" and seen[1]["exit_code"] == 4, shown)
    check("and what the local shell did", items[4]["output"].strip() == "1", items[4])


async def main():
    async with AsyncSandbox(isolation=LEVEL, env={"WORD": "given"}) as box:
        await shell(box)
        await editor(box)
        await agent(box)
    try:
        await GloveportEditor(box).delete_file(ApplyPatchOperation("delete_file", "x"))
        told = ""
    except GloveportError as error:
        told = str(error)
    check("a sandbox that is closed says so", "closed" in told, told)


async def held():
    async with AsyncSandbox(isolation="none") as box:
        await GloveportShell(box)(LocalShellCommandRequest(RunContextWrapper(None), local(["true"])))
        hold()


if sys.argv[1:] == ["hold"]:
    asyncio.run(held())
else:
    asyncio.run(main())
    nothing_is_left("of a sandbox that is closed")
    example("openai_agent.py", "42")
    killed()
    finish()
