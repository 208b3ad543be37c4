"""Inspect's own checks of sandboxes, and evaluations with a scripted model."""

import asyncio
import contextlib
import os
import subprocess
import sys

import anyio
import inspect_ai
from gloveport.inspect_ai import GloveportSandboxConfig, GloveportSandboxEnvironment
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironmentSpec, sandbox
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.limits import override_max_exec_output_size

from checks import LEVEL, attempt, cancelled, check, example, finish, hold, killed, nothing_is_left, sessions, tell

ROOT = os.geteuid() == 0
#: Those that cannot hold, and why.
CANNOT = {
    "test_exec_large_command": "a program's words and variables have at most 1 MiB, and these are 8 bytes more",
    "test_exec_as_user": "a sandbox has one user, which `flags=['--user', …]` chooses where the runtime can",
}
if ROOT:
    why = "root reads and writes what it likes"
    CANNOT |= dict.fromkeys(
        [
            "test_read_file_not_allowed",
            "test_write_text_file_without_permissions",
            "test_write_binary_file_without_permissions",
        ],
        why,
    )


async def with_sandbox(call, **config):
    """Calls a function with a sandbox as Inspect starts one for a sample."""
    named = GloveportSandboxConfig(isolation=LEVEL, **config)
    environments = await GloveportSandboxEnvironment.sample_init("task", named, {})
    try:
        await call(environments["default"])
    finally:
        await GloveportSandboxEnvironment.sample_cleanup("task", named, environments, False)


async def checks_of_inspect(box):
    async def one(name):
        try:
            await asyncio.wait_for(getattr(self_check, name)(box), 60)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    async def all_of(names):
        return {name: await one(name) for name in names}

    # Most have the same names of files; those that wait do not.
    slow = [name for name in self_check.__all__ if "timeout" in name]
    quick = [name for name in self_check.__all__ if name not in slow]
    found = {}
    for part in await asyncio.gather(all_of(quick), *(all_of([name]) for name in slow)):
        found |= part
    for name, told in sorted(found.items()):
        what = name.removeprefix("test_").replace("_", " ")
        if name not in CANNOT:
            check(f"of Inspect: {what}", not told, told)
        elif told:
            tell("skipped", f"of Inspect: {what}: {CANNOT[name]}")
        else:
            check(f"of Inspect: {what} cannot hold: {CANNOT[name]}", False, "it does")


async def more(box):
    try:
        with override_max_exec_output_size(1000):
            await box.exec(["sh", "-c", "yes & yes"])
        told = None
    except OutputLimitExceededError as error:
        told = error
    check("output without end is ended at Inspect's limit", told and len(told.truncated_output) == 1000, told)
    left = (await box.exec(["pgrep", "-x", "yes"])).stdout
    check("with what has written it", left == "", left)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(box.exec(["sleep", "1234"]), 0.5)
    left = (await box.exec(["pgrep", "-fx", "sleep 1234"])).stdout
    check("a call whose task is cancelled ends its program", left == "", left)
    done = await box.exec(["no-such-program"])
    check("a program that is not there is an ordinary failure", not done.success and "no-such" in done.stderr, done)
    try:
        done = await box.exec(["sh", "-c", "echo begun; sleep 100"], timeout=1)
    except TimeoutError as error:
        check("the output until a time limit is there", getattr(error, "truncated_output", "") == "begun\n", error)
    connection = await box.connection()
    words = connection.command.split()
    words = [word for word in words if word != "-it"]
    seen = subprocess.run([*words, "--", "echo in it"], capture_output=True, text=True, check=False)
    check("the command of the connection leads into it", seen.stdout.strip() == "in it", seen)


def scripted(*outputs):
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    for output in outputs:
        output.usage = usage
    return get_model("mockllm/model", custom_outputs=list(outputs))


def call(command):
    return ModelOutput.for_tool_call("mockllm/model", "bash", {"command": command})


def evaluated(task, model, **named):
    return inspect_ai.eval(task, model=model, display="none", log_dir=os.environ["HOME"] + "/logs", **named)[0]


def evaluation():
    samples = [
        Sample(input="what is in the file?", target="42", files={"file": f"4{2}"}, id=number) for number in (1, 2)
    ]
    spec = SandboxEnvironmentSpec("gloveport", GloveportSandboxConfig(isolation=LEVEL))
    task = Task(dataset=samples, solver=[use_tools(bash()), generate()], scorer=includes(), sandbox=spec)
    turns = [call("cat file; touch mine; ls | wc -l"), ModelOutput.from_content("mockllm/model", "42")]
    log = evaluated(task, scripted(*turns, *[each.model_copy() for each in turns]), max_samples=1)
    check(
        "an evaluation succeeds",
        log.status == "success" and log.results.scores[0].metrics["accuracy"].value == 1,
        log.error and log.error.message,
    )
    seen = [message.text for sample in log.samples or [] for message in sample.messages if message.role == "tool"]
    check(
        "each sample has a sandbox of its own",
        [each.split() for each in seen] == [["422"], ["422"]] or [each.split() for each in seen] == [["42", "2"]] * 2,
        seen,
    )
    nothing_is_left("of an evaluation")

    spec = ("gloveport", "local")
    log = evaluated(
        Task(dataset=samples[:1], solver=[use_tools(bash()), generate()], scorer=includes(), sandbox=spec),
        scorer_of_one(),
    )
    check("the name of a runtime is enough", log.status == "success", log.error and log.error.message)

    @solver
    def breaks():
        async def solve(state, generate):
            await sandbox().exec(["true"])
            raise ValueError("on purpose")

        return solve

    log = evaluated(Task(dataset=samples[:1], solver=breaks(), sandbox=spec), "mockllm/model")
    check(
        "one that fails tells its own failure", log.status == "error" and "on purpose" in log.error.message, log.status
    )
    nothing_is_left("of one that fails")
    log = evaluated(Task(dataset=samples[:1], solver=generate(), sandbox=("gloveport", "no-such")), "mockllm/model")
    check(
        "a sandbox that cannot be started says why", log.status == "error" and "no-such" in log.error.message, log.error
    )


def scorer_of_one():
    return scripted(call("cat file"), ModelOutput.from_content("mockllm/model", "42"))


async def cleaned_up():
    started = await GloveportSandboxEnvironment.sample_init("task", GloveportSandboxConfig(isolation="none"), {})
    one = started["default"]._box.id
    await GloveportSandboxEnvironment.cli_cleanup("another")
    check("a clean-up of another id leaves it", one in sessions())
    await GloveportSandboxEnvironment.cli_cleanup(None)
    check("a clean-up ends it", one not in sessions())
    await GloveportSandboxEnvironment.sample_cleanup("task", None, started, True)


async def given_up():
    """By cancelling a task, and by a scope of anyio, which is how Inspect does it."""
    kind, named = GloveportSandboxEnvironment, GloveportSandboxConfig(isolation=LEVEL)

    def make(scope=None):
        started = {}

        async def start():
            with scope or contextlib.nullcontext():
                started.update(await kind.sample_init("task", named, {}))
            if not started:
                raise asyncio.CancelledError

        return start(), lambda: kind.sample_cleanup("task", named, started, True)

    await cancelled(make)

    def make_in_scope():
        scope = anyio.CancelScope()
        start, end = make(scope)

        async def started():
            task = asyncio.create_task(start)
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                scope.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if task.cancelled():
                    raise

        return started(), end

    await cancelled(make_in_scope)


def main():
    attempt("Inspect's checks run", lambda: asyncio.run(with_sandbox(checks_of_inspect)))
    attempt("the other checks run", lambda: asyncio.run(with_sandbox(more)))
    evaluation()
    asyncio.run(cleaned_up())
    asyncio.run(given_up())
    nothing_is_left("of all these")
    example("inspect_task.py", "success 1.0")
    killed()


async def held():
    await with_sandbox(lambda box: asyncio.to_thread(hold))


if sys.argv[1:] == ["hold"]:
    asyncio.run(held())
else:
    main()
    finish()
