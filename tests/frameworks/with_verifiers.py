"""verifiers' own agent `bash`, interception and environments, with a scripted model and programs in sandboxes."""

import asyncio
import os
import sys
from pathlib import Path

import verifiers.v1 as vf
from gloveport.verifiers import GloveportConfig, GloveportEnv, GloveportRuntime
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from checks import HOME, LEVEL, ROOT, check, example, finish, hold, killed, nothing_is_left, sessions

sys.path[:0] = [str(ROOT / "clients/python/examples/frameworks"), HOME]

from verifiers_agent import Answer, bash, scripted  # noqa: E402

TASKSET = '''"""A task, and the environment that it is done in."""

import verifiers.v1 as vf
from gloveport.verifiers import GloveportEnv
from verifiers_agent import Answer

__all__ = ["Answers", "GloveportEnv"]


class Answers(vf.Taskset[Answer, vf.TasksetConfig]):
    def load(self):
        yield Answer(vf.TaskData(prompt="What is it?", workdir="elsewhere"))
        yield Answer(vf.TaskData(prompt="What is it?", image="python:3.13"))
'''


def tools():
    """What the agent's program is installed with; it finds it installed, so that no network is needed."""
    place = Path(HOME, "tools")
    place.mkdir()
    Path(HOME, "answers.py").write_text(TASKSET)
    python = Path(sys.executable).resolve()
    places = [each for each in sys.path if each.endswith(("-packages", "/verifiers", "/httpx"))]
    programs = {
        "uv": f'case "$*" in *--help*) echo --script ;; "python find"*) echo {place}/bin/python ;; esac',
        "bin/python": f'PYTHONPATH={":".join(places)} exec {python} "$@"',
    }
    for name, text in programs.items():
        file = place / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    # What is in PATH is there in sandboxes, too.
    seen = [place, Path(sys.base_prefix).resolve(), *places]
    os.environ["PATH"] = ":".join(map(str, [*seen, os.environ["PATH"]]))


def config(**more):
    return GloveportConfig(isolation=LEVEL, **more)


async def fails(call, kind):
    try:
        await call
    except kind as error:
        return str(error)
    return ""


async def programs(box):
    done = await box.run(["sh", "-c", "echo out; echo err >&2; echo $WORD$MORE; pwd; exit 3"], {"MORE": "more"})
    seen = (done.exit_code, done.stdout, done.stderr)
    workspace = box._box.workspace
    check("a program has its outputs apart, and its code", seen == (3, f"out\ngivenmore\n{workspace}\n", "err\n"), seen)
    done = await box.with_env({"WORD": "mine"}).run(["sh", "-c", "echo $WORD"], {})
    check("views have variables of their own", done.stdout == "mine\n", done)
    check(
        "the end by a signal is what a shell calls it", (await box.run(["sh", "-c", "kill -9 $$"], {})).exit_code == 137
    )
    told = await fails(asyncio.wait_for(box.run(["sleep", "1234"], {}), 0.5), TimeoutError)
    left = (await box.run(["pgrep", "-fx", "sleep 1234"], {})).stdout
    check("a program that is given up is ended", told is not None and left == "", left)
    check("it lives", await box.alive())
    done = await box.run(["cat", os.environ["SECRET_FILE"]], {})
    check(
        f"with the isolation {LEVEL} files of this machine's user are not there", LEVEL == "none" or done.exit_code == 1
    )

    data = bytes(range(256)) * 1000
    await box.write("a/b", data)
    check("files are kept as they are", await box.read("a/b") == data and await box.read(f"{workspace}/a/b") == data)
    check("a limit of bytes that fits is none", await box.read("a/b", len(data)) == data)
    check("one that does not says so", "byte limit" in await fails(box.read("a/b", 1000), vf.SandboxError))
    told = await fails(box.read("no/such"), vf.SandboxError)
    check("a file that is not there says which", "no/such" in told, told)

    await box.run_background(["sh", "-c", "echo begun; exec sleep 4321"], {}, "log")
    async with asyncio.timeout(20):
        while (await box.run(["pgrep", "-fx", "sleep 4321"], {})).exit_code != 0:
            await asyncio.sleep(0.05)
    check("a program in the background has a log", await box.read("log") == b"begun\n")

    live = await box.open_process(["sh", "-c", "echo err >&2; cat; exit 5"], {})
    await live.write(b"one\n")
    check("a live process answers", await anext(live.stdout) == b"one\n" and await live.poll() is None)
    await live.terminate()
    code = await live.wait()
    check("it can be ended", code == 143 and await live.poll() == 143, code)
    rest = [each async for each in live.stdout], [each async for each in live.stderr]
    check("its outputs end", rest == ([], [b"err\n"]), rest)
    await live.kill()
    other = await box.open_process(["sleep", "100"], {})
    await other.kill()
    check("or killed", await other.wait() == 137)
    await box.open_process(["sleep", "54321"], {})


def agent(client):
    return vf.Agent(vf.AgentConfig(model="scripted", client=client, harness={"id": "bash"}))


async def agents(box):
    steps = bash("echo 42 >answer; pwd; echo $WORD"), {"content": "It is 42."}
    with scripted(*steps) as client:
        trace = await agent(client).run(Answer(vf.TaskData(prompt="What is it?")), runtime=box)
    check("an agent works to its end", trace.ok and trace.last_reply == "It is 42.", trace.errors)
    told = [str(each.message.content) for each in trace.nodes if each.message.role == "tool"]
    check("its model is told what its commands print", told == [f"{box._box.workspace}\ngiven\n"], told)
    check("it is rewarded for what it leaves there", trace.reward == 1, trace.reward)
    again = vf.Trace.model_validate_json(trace.model_dump_json())
    check("its record can be read again", again.agent.runtime.id == box._box.id, again.agent)


async def environments():
    with scripted(bash("pwd; echo 42 >answer"), {"content": "It is 42."}) as client:
        named = {"taskset": {"id": "answers"}, "sandbox": {"isolation": LEVEL}, "agent": {"harness": {"id": "bash"}}}
        env = load_environment(resolve_env_config(named))
        check("a taskset that exports it has the environment", isinstance(env, GloveportEnv), env)
        ctx = vf.ModelContext(model="scripted", client=client, sampling=None)
        one, other = env.taskset
        async with env.serving():
            episode = await env.run_slot(env.slots(one)[0], ctx)
            failed = await env.run_slot(env.slots(other)[0], ctx)
    check("an episode succeeds", episode.ok and episode.traces[0].reward == 1, episode.errors)
    told = [str(each.message.content) for each in episode.traces[0].nodes if each.message.role == "tool"]
    check("in the directory that its task names", told and "/elsewhere" in told[0], told)
    told = failed.errors[0].message if failed.errors else ""
    check("a task that needs an image says which runtimes have none", "python:3.13" in told and "local" in told, told)
    nothing_is_left("of the episodes")


async def cancelled():
    """While the sandbox starts, and while its directory is made."""
    given_up = 0
    for delay in range(5, 60, 5):
        box = GloveportRuntime(GloveportConfig(isolation=LEVEL, workdir="made"))
        starting = asyncio.create_task(box.start())
        await asyncio.sleep(delay / 1000)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        given_up += starting.cancelled()
        if not starting.cancelled():
            await box.stop()
        nothing_is_left(f"of one whose start is cancelled after {delay} ms")
    check("some were cancelled", given_up > 0)
    await fails(GloveportRuntime(GloveportConfig(isolation=LEVEL, workdir="/dev/null/x")).start(), vf.SandboxError)
    nothing_is_left("of one whose directory cannot be made")


async def refusals():
    told = await fails(GloveportRuntime(config(network="none")).__aenter__(), ValueError)
    check("a sandbox that could not reach its model is refused", "network" in told, told)
    told = await fails(GloveportRuntime(GloveportConfig(runtime="no-such")).__aenter__(), vf.SandboxError)
    check("one that cannot be started says why", "no-such" in told, told)
    told = await fails(GloveportRuntime().run(["true"], {}), vf.SandboxError)
    check("one that is not started says so", "not started" in told, told)
    try:
        async with GloveportRuntime(config()):
            raise KeyError("on purpose")
    except KeyError:
        check("an exception ends it", not sessions())


async def main():
    async with GloveportRuntime(config(env={"WORD": "given"})) as box:
        await programs(box)
        await agents(box)
    check("one that is stopped runs nothing", "closed" in await fails(box.run(["true"], {}), vf.SandboxError))
    nothing_is_left("of a sandbox that is stopped")
    await cancelled()
    await environments()
    await refusals()


async def held():
    async with GloveportRuntime(GloveportConfig(isolation="none")) as box:
        await box.open_process(["sleep", "600"], {})
        await asyncio.to_thread(hold)


if sys.argv[1:] == ["hold"]:
    asyncio.run(held())
else:
    tools()
    asyncio.run(main())
    nothing_is_left("of all these")
    example("verifiers_agent.py", "It is done. 1.0")
    killed()
    finish()
