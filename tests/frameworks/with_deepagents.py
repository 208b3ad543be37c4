"""LangChain's own tests of sandboxes, and its deep agents with a scripted model."""

import asyncio
import os
import shutil
import signal
import sys
import threading
import time

os.environ |= {"LANGSMITH_TRACING": "false", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend
from deepagents.backends.protocol import SandboxBackendProtocol
from gloveport import GloveportError, Sandbox
from gloveport.deepagents import GloveportBackend
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import SandboxIntegrationTests

from checks import HOME, LEVEL, check, example, finish, hold, killed, nothing_is_left, raised, tell

OLDER = "it expects an older deepagents, whose paths are relative and whose `write` does not replace"
#: Those that cannot hold, and why.
CANNOT = dict.fromkeys(
    [
        "test_glob",
        "test_glob_basic_pattern",
        "test_glob_hidden_files_explicitly",
        "test_glob_with_character_class",
        "test_glob_with_directories",
        "test_glob_with_question_mark",
        "test_write_existing_file_fails",
    ],
    OLDER,
)
#: Not every machine has a `python`, which they run.
WITH_PYTHON = ("bash", "-c", 'python() { python3 "$@"; }; eval "$0"')


def sandbox(**more):
    return Sandbox(**{"isolation": LEVEL, **more})


class TestSandbox(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self):
        with sandbox() as box:
            yield GloveportBackend(box, interpreter=WITH_PYTHON)

    @property
    def sandbox_root_dir(self):
        return "/tmp/tests" if LEVEL == "container" else f"{HOME}/tests"


class Reports:
    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self.found[report.nodeid.rpartition("::")[2]] = report.longreprtext[-500:] if report.failed else ""


def checks_of_langchain():
    reports = Reports()
    words = [
        "-q",
        "--no-header",
        "--no-summary",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_asyncio.plugin",
        "-W",
        "ignore",
    ]
    pytest.main([*words, "-o", "asyncio_mode=auto", "--noconftest", __file__], plugins=[reports])
    shutil.rmtree(f"{HOME}/tests", ignore_errors=True)
    check("LangChain's tests run", len(reports.found) > 80, len(reports.found))
    for name, told in sorted(reports.found.items()):
        what = f"of LangChain: {name.removeprefix('test_').replace('_', ' ')}"
        if name not in CANNOT:
            check(what, not told, told)
        elif told:
            tell("skipped", f"{what}: {CANNOT[name]}")
        else:
            check(f"{what} cannot hold: {CANNOT[name]}", False, "it does")
    nothing_is_left("of LangChain's tests")


def commands(box):
    one = GloveportBackend(box, timeout=20, keep=100_000)
    check("it is a sandbox of deep agents", isinstance(one, SandboxBackendProtocol) and one.id == box.id)

    def run(command, **more):
        done = one.execute(command, **more)
        return done.output, done.exit_code, done.truncated

    async def later(command, **more):
        done = await one.aexecute(command, **more)
        return done.output, done.exit_code, done.truncated

    def runs(command):
        return run(f"pgrep -fx '{command}'")[0] != ""

    def until_it_runs(command):
        end = time.monotonic() + 20
        while not runs(command) and time.monotonic() < end:
            time.sleep(0.05)

    for kind, call in (("", run), (" with an event loop", lambda *words, **more: asyncio.run(later(*words, **more)))):
        seen = call("echo out; echo err >&2; echo $WORD; cd /; exit 3")
        check(f"a command has one output and its code{kind}", seen == ("out\nerr\ngiven\n", 3, False), seen)
        check(f"each begins in the workspace{kind}", call("pwd")[0] == f"{box.workspace}\n")
        check(f"the end by a signal is what a shell calls it{kind}", call("kill -9 $$")[1] == 137)
        seen = call("echo begun; sleep 12345", timeout=1)
        is_so = seen[0].startswith("begun\n") and "1 seconds" in seen[0] and seen[1] == 124
        check(f"one whose time is over says so{kind}", is_so, seen)
        check(f"and is ended{kind}", not runs("sleep 12345"))
        seen = call("head -c 5000000 /dev/zero | tr '\\0' x; echo end")
        is_so = len(seen[0]) < 101_000 and seen[0].endswith("end\n") and seen[2]
        check(f"of much output the beginning and the end are kept{kind}", is_so, len(seen[0]))
    check(
        "a time limit of 0 is none", one._limit(0) is None and one._limit(None) == 20 and run("true", timeout=0)[1] == 0
    )
    seen = run(f"cat {os.environ['SECRET_FILE']}")
    check(
        f"with the isolation {LEVEL} files of this machine's user are not there", LEVEL == "none" or seen[1] == 1, seen
    )

    async def cancelled():
        task = asyncio.create_task(later("sleep 54321"))
        await asyncio.to_thread(until_it_runs, "sleep 54321")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    check("a command of a cancelled run is ended", not runs("sleep 54321"))

    def interrupts():
        until_it_runs("sleep 4321")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupts).start()
    raised(KeyboardInterrupt, run, "sleep 4321")
    check("C-c ends the command", not runs("sleep 4321"))


def files(box):
    one = GloveportBackend(box, largest=1000)
    there = f"{box.workspace}/a/b"
    responses = one.upload_files([(there, b"\0" * 1001), ("relative", b""), (box.workspace, b""), (f"{there}/c", b"")])
    seen = [each.error for each in responses]
    check("what cannot be written says why", seen[:3] == [None, "invalid_path", "is_directory"] and seen[3], seen)
    responses = one.download_files([there, f"{box.workspace}/a", f"{box.workspace}/x", "/dev/zero"])
    seen = [each.error for each in responses]
    check("so does what cannot be read", seen[1:3] == ["is_directory", "file_not_found"] and seen[3], seen)
    check("a file that is too large is not read", "1000 bytes" in seen[0], seen)


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *arguments, **named):
        return self


def call(number, name, **arguments):
    return AIMessage("", tool_calls=[{"id": f"call{number}", "name": name, "args": arguments}])


def agents(box):
    backend = CompositeBackend(GloveportBackend(box), routes={}, artifacts_root=f"{box.workspace}/.deepagents")
    file = f"{box.workspace}/note.txt"

    def agent():
        steps = [
            call(1, "write_file", file_path=file, content="a\nb\n"),
            call(2, "edit_file", file_path=file, old_string="b", new_string="c"),
            call(3, "read_file", file_path=file),
            call(4, "grep", pattern="c", path=box.workspace, output_mode="content"),
            call(5, "execute", command="cat note.txt; exit 4"),
            call(6, "execute", command="seq 1 100000"),
            call(7, "task", description="Look into it.", subagent_type="general-purpose"),
            call(8, "execute", command="pwd"),
            AIMessage("It is looked into."),
            AIMessage("It is done."),
        ]
        return create_deep_agent(Scripted(messages=iter(steps)), backend=backend)

    question = {"messages": [("user", "Change the note.")]}
    for kind, run in (
        ("", lambda: agent().invoke(question)),
        (" with an event loop", lambda: asyncio.run(agent().ainvoke(question))),
    ):
        messages = run()["messages"]
        told = {each.tool_call_id: str(each.content) for each in messages if each.type == "tool"}
        check(f"a deep agent works to its end{kind}", messages[-1].content == "It is done." and len(told) == 7, told)
        check(f"it sees what it has edited{kind}", "c" in told["call3"] and "b" not in told["call3"], told["call3"])
        check(f"it finds it{kind}", "note.txt" in told["call4"], told["call4"])
        is_so = told["call5"].startswith("a\nc\n") and "exit code 4" in told["call5"]
        check(f"it is told what a command printed, and its code{kind}", is_so, told["call5"])
        large = f"{box.workspace}/.deepagents/large_tool_results/call6"
        is_so = large in told["call6"] and len(box.path(large).read_text()) > 500_000
        check(f"what is too long for it is a file of the sandbox{kind}", is_so, told["call6"][:1000])
        check(f"it has others work in the same sandbox{kind}", told["call7"] == "It is looked into.", told["call7"])
        box.run(f"rm -r {file} .deepagents").check()


def main():
    checks_of_langchain()
    with sandbox(env={"WORD": "given"}) as box:
        commands(box)
        files(box)
        agents(box)
    told = str(raised(GloveportError, GloveportBackend(box).execute, "true"))
    check("a sandbox that is closed says so", "closed" in told, told)
    nothing_is_left("of a sandbox that is closed")
    example("deep_agent.py", "42")
    killed()


if __name__ == "__main__":
    if sys.argv[1:] == ["hold"]:
        with sandbox(isolation="none") as held:
            GloveportBackend(held).execute("true")
            hold()
    else:
        main()
        finish()
