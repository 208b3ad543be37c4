"""smolagents' own agent and a scripted model, with code that runs in kernels of sandboxes."""

import os
import signal
import sys
import threading
import time
import zipfile
from datetime import date
from pathlib import Path

from gloveport import GloveportError, Sandbox, ServerFailedError
from gloveport.smolagents import GloveportExecutor
from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model, tool
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.serialization import SerializationError
from smolagents.utils import AgentExecutionError

from checks import HOME, LEVEL, check, example, finish, hold, killed, nothing_is_left, raised, tell

PYTHON = Path(os.environ["TEST_IPYTHON"])
# An active environment is that of kernels, too.
os.environ["VIRTUAL_ENV"] = str(PYTHON.parent.parent)


def sandbox(**more):
    return Sandbox(**{"isolation": LEVEL, "plugins": ["jupyter"], **more})


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return 2 * number


class Scripted(Model):
    def __init__(self, *steps):
        super().__init__(model_id="scripted")
        self.steps = [f"<code>{step}</code>" for step in steps]
        self.told = []

    def generate(self, messages, **named):
        self.told.append(str(messages[-1].content))
        return ChatMessage(role=MessageRole.ASSISTANT, content=self.steps.pop(0))


def agent(box, *steps, **more):
    return CodeAgent(
        tools=[double], model=Scripted(*steps), executor=GloveportExecutor(box, **more), verbosity_level=LogLevel.OFF
    )


def cells(box):
    one = GloveportExecutor(box, timeout=20, keep=1000)
    check("it is a remote executor of smolagents", isinstance(one, RemotePythonExecutor))
    done = one("import os\nprint('out', os.environ['WORD'])\nos.getcwd()")
    seen = (done.output, done.logs, done.is_final_answer)
    check("code has a value and what it printed", seen == (repr(box.workspace), "out given\n", False), seen)
    one("x = 41")
    check("variables stay", one("x + 1").output == "42")
    told = str(raised(AgentExecutionError, GloveportExecutor(box, kernel="b"), "x"))
    check("in a kernel of its own", "NameError" in told, told)
    told = str(raised(AgentExecutionError, one, "print('before')\n1/0"))
    is_so = told.startswith("before\n") and "ZeroDivisionError: division by zero" in told and "\x1b" not in told
    check("an exception is told with what was printed", is_so, told)
    told = str(raised(AgentExecutionError, one, "import sys; sys.exit(3)"))
    check("so is `sys.exit`", "SystemExit" in told, told)
    check("of much output the beginning and the end are kept", 1000 < len(one("print('y' * 100_000)").logs) < 2000)
    check("of a long value, too", 1000 < len(one("'y' * 100_000").output) < 2000)
    told = str(raised(AgentExecutionError, GloveportExecutor(box, timeout=1), "import time; x = 1; time.sleep(60)"))
    check("code whose time is over is interrupted", "1 seconds" in told, told)
    check("and its variables stay", one("x").output == "1")

    one.send_variables({"numbers": (1, {2}), "day": date(2020, 2, 29), "data": b"\0\xff"})
    seen = one("numbers, day, data").output
    check("variables arrive", seen == "((1, {2}), datetime.date(2020, 2, 29), b'\\x00\\xff')", seen)
    raised(SerializationError, one.send_variables, {"x": object()})
    answer = "class FinalAnswerException(BaseException): pass\nraise FinalAnswerException({})"
    done = one(answer.format("""'safe:{"__type__": "tuple", "data": [1]}'"""))
    check("a final answer is read with the safe serializer", (done.output, done.is_final_answer) == ((1,), True), done)
    for what, value in {
        "an object": "'pickle:gASVBAAAAAAAAABLKi4='",
        "one without end": "'safe:' + '[' * 1_000_000",
        "nonsense": '\'safe:{"__type__": "date"}\'',
    }.items():
        told = str(raised(AgentExecutionError, one, answer.format(value)))
        check(f"{what} in its place is refused", "cannot be read" in told, told)

    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    raised(KeyboardInterrupt, one, "import time\nfor _ in range(600): time.sleep(0.1)")
    is_so = one("1").output == "1" and time.monotonic() - begun < 15
    check("C-c interrupts the code", is_so, time.monotonic() - begun)


def agents(box):
    steps = ["x = double(given)\nprint(x)", "1/0", "import os; os._exit(1)", "final_answer({'a': (double(given), 2)})"]
    one = agent(box, *steps)
    seen = one.run("Which number is it?", additional_args={"given": 21})
    check("an agent works to its end", seen == {"a": (42, 2)}, seen)
    told = one.model.told
    check("its model is told what code printed", "42" in told[1], told[1])
    check("and what it raised", "ZeroDivisionError" in told[2], told[2])
    check("and that the kernel has ended; tools and variables are there again", "kernel" in told[3], told[3])
    one.model.steps = ["<code>final_answer(double(4))</code>"]
    check("it can run again", one.run("And now?") == 8)
    with agent(box, "box = 1\nfinal_answer(object())", "final_answer(box)", kernel="c") as two:
        seen = two.run("x")
    told = two.model.told[1]
    check("a final answer that cannot be sent safely is told", seen == 1 and "Cannot safely" in told, told)


def packages():
    name = "tiny-1.0-py3-none-any.whl"
    wheel = Path(HOME, name)
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "x = 42\n")
        file.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    # The environment of the tests stays as it is.
    with sandbox(env={"PIP_NO_INDEX": "1", "PIP_TARGET": "packages"}) as box:
        box.upload(wheel, name)
        one = GloveportExecutor(box, packages=[f"{box.workspace}/{name}"])
        seen = one("import sys; sys.path.append('packages'); import tiny; tiny.x").output
        check("packages are installed", seen == "42", seen)
        told = str(raised(AgentExecutionError, GloveportExecutor, box, packages=["no-such-package"]))
        check("one that is not there is told", "pip cannot install no-such-package" in told, told)
    wheel.unlink()


def refusals():
    with sandbox(plugins=[]) as box:
        told = str(raised(GloveportError, GloveportExecutor, box))
        check("a sandbox without the plugin says so", 'plugins=["jupyter"]' in told, told)
    # Nothing is installed where there is no index.
    with sandbox(isolation="none", env={"VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"}) as box:
        told = str(raised(ServerFailedError, GloveportExecutor, box))
        check("one without ipykernel says what to do", "no `ipykernel`" in told and '"VIRTUAL_ENV"' in told, told)
    told = str(raised(GloveportError, GloveportExecutor, box))
    check("a closed one says so", "closed" in told, told)


def main():
    with sandbox(env={"WORD": "given"}) as box:
        cells(box)
        agents(box)
    nothing_is_left("of a sandbox that is closed")
    packages()
    refusals()
    nothing_is_left("of all these")
    example("smolagents_agent.py", "42")
    killed()


if sys.argv[1:] == ["hold"]:
    with sandbox(isolation="none") as held:
        GloveportExecutor(held)("x = 1")
        hold()
elif not PYTHON.exists():
    tell("skipped", "there is no Python with IPython; scripts/setup installs it")
    finish()
else:
    main()
    finish()
