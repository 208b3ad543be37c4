"""mini-swe-agent's own agent, scripted model and command line, with an environment of ours."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ |= {"MSWEA_SILENT_STARTUP": "1", "MSWEA_CONFIGURED": "true"}

from gloveport.minisweagent import GloveportEnvironment
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.exceptions import Submitted
from minisweagent.models.test_models import DeterministicModel, make_output

from checks import HOME, LEVEL, check, example, finish, hold, interrupted, killed, nothing_is_left, raised

DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"
KIND = "gloveport.minisweagent.GloveportEnvironment"


def environment(**more):
    return get_environment({"environment_class": KIND, "isolation": LEVEL, **more})


def executes():
    one = environment(env={"WORD": "given"}, timeout=20)
    check("the name of the class gives an environment", isinstance(one, GloveportEnvironment))

    def run(command, **more):
        return one.execute({"command": command}, **more)

    seen = run("echo out; echo err >&2; echo $WORD; exit 3")
    check(
        "a command has one output and its code", (seen["output"], seen["returncode"]) == ("out\nerr\ngiven\n", 3), seen
    )
    check("each is in a shell of its own", run("cd /; X=1")["returncode"] == 0 and run("echo $X")["output"] == "\n")
    check("a directory can be named", run("pwd", cwd="/usr")["output"] == "/usr\n")
    seen = run("printf 'a\\377b'")
    check("bytes that are no text are replaced", seen["output"] == "a\N{REPLACEMENT CHARACTER}b", seen)
    seen = run("kill -9 $$")
    check("the end by a signal is what `subprocess` calls it", seen["returncode"] == -9, seen)
    seen = run("echo begun; sleep 12345", timeout=1)
    is_so = (seen["output"], seen["returncode"]) == ("begun\n", -1) and "1 seconds" in seen["exception_info"]
    check("one whose time is over is ended, and its output is there", is_so, seen)
    check("with what it has started", run("pgrep -fx 'sleep 12345'")["output"] == "", run("pgrep -fx 'sleep 12345'"))
    seen = run("no-such-program")
    check("a program that is not there is 127", seen["returncode"] == 127, seen)
    seen = run("pwd", cwd="/no/such/directory")
    check(
        "a directory that is not there is told", seen["returncode"] == -1 and "/no/such" in seen["exception_info"], seen
    )
    seen = run("head -c 5000000 /dev/zero | tr '\\0' x; echo end")
    is_so = len(seen["output"]) < 1_100_000 and seen["output"].endswith("end\n") and "left out" in seen["output"]
    check("of 5 MB of output the beginning and the end are kept", is_so, len(seen["output"]))
    error = raised(Submitted, run, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo it is done")
    check("an agent that is done ends", error.messages[0]["content"] == "it is done\n", error.messages)
    known = one.get_template_vars(task="x")
    check("prompts know the system", known["system"] == "Linux" and known["machine"] and known["task"] == "x", known)
    check("a trajectory has the configuration", one.serialize()["info"]["config"]["environment_type"] == KIND)
    one.cleanup()
    one.cleanup()
    nothing_is_left("of an environment that is cleaned up")
    two = environment()
    del two
    nothing_is_left("of one that is dropped")


def agent():
    commands = ["echo 42 >answer", "cat answer", DONE]
    outputs = [make_output(command, [{"command": command}], cost=0) for command in commands]
    one = environment()
    prompts = {"system_template": "You work on {{system}}.", "instance_template": "{{task}}"}
    found = DefaultAgent(DeterministicModel(outputs=outputs), one, **prompts).run("What is it?")
    check("its smallest agent works", (found["exit_status"], found["submission"]) == ("Submitted", "42\n"), found)
    one.cleanup()
    nothing_is_left("of an agent's run")


def program():
    """The program `mini`, with our environment named in a file."""
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        outputs = [make_output(each, [{"command": each}], cost=0) for each in ["echo 42 >answer", DONE]]
        config = {
            "agent": {"system_template": "You work.", "instance_template": "{{task}}"},
            "model": {"model_class": "deterministic", "model_name": "scripted", "outputs": outputs},
            "environment": {"environment_class": KIND, "isolation": LEVEL},
        }
        file, trajectory = Path(scratch, "config.yaml"), Path(scratch, "trajectory.json")
        file.write_text(json.dumps(config))
        call = "import sys; from minisweagent.run.mini import app; app(sys.argv[1:], standalone_mode=False)"
        options = ["--config", "mini_textbased.yaml", "--config", file, "--output", trajectory, "--task", "x"]
        done = subprocess.run(
            [sys.executable, "-c", call, *options, "--yolo", "--exit-immediately"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        info = json.loads(trajectory.read_text())["info"] if trajectory.exists() else {}
        check(
            "its program works with a file that names the class",
            info.get("submission") == "42\n",
            done.stderr + done.stdout,
        )
    nothing_is_left("of its program")


def main():
    executes()
    interrupted(environment, GloveportEnvironment.cleanup)
    agent()
    program()
    example("mini_agent.py", "42")
    plot = Path(HOME, "parallel.svg")
    example("parallel.py", "tasks/s", "--tasks=4", "--at-once=2", "--kinds", LEVEL, "mini-local", f"--plot={plot}")
    check("the example draws a picture", plot.read_text().count("<polyline") == 2)
    plot.unlink()
    killed()


if sys.argv[1:] == ["hold"]:
    held = get_environment({"environment_class": KIND, "isolation": "none"})
    hold()
else:
    main()
    finish()
