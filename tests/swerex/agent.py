"""A run of mini-swe-agent whose environment is a server of SWE-ReX, and what the agent sees there.

usage: agent.py run URL TOKEN DIRECTORY SCRATCH RESULT
       agent.py compare OURS THEIRS

`run` starts the agent's own program, `mini`, with its own configuration and its environment of SWE-ReX. Of that environment
the deployment alone is another: SWE-ReX's `RemoteDeployment` instead of the one that starts a container. The model is the
agent's own scripted one. DIRECTORY is one that the server may write to, and empty; the agent itself writes to SCRATCH, and
RESULT becomes a JSON object. `compare` looks at two of them, and prints one line a check; the last line is
`N passed, N failed, N skipped`.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

WRONG = "def area(width, height):\n    return width + height\n"
RIGHT = "def area(width, height):\n    return width * height\n"
TEST = """import unittest

from shapes import area


class Shapes(unittest.TestCase):
    def test_area(self):
        self.assertEqual(area(3, 4), 12)
"""

# What the model does: a name, the command, its exit code, and what the agent must see of its output.
STEPS = [
    ("looks", "ls && cat shapes.py", 0, "shapes.py\ntest_shapes.py\n" + WRONG),
    ("runs the test, which fails", "python3 -B -m unittest", 1, "AssertionError: 7 != 12"),
    ("looks for what is not there", "grep -rn triangle *.py", 1, ""),
    ("calls a program that is not there", "no-such-program", 127, "not found"),
    ("edits", f"cat >shapes.py <<'END'\n{RIGHT}END", 0, ""),
    ("runs the test again", "python3 -B -m unittest", 0, "\nOK\n"),
    ("does not know what it did", "if true", 2, "yntax error"),
    ("ends itself", "echo begun; kill -9 $$", -9, "begun\n"),
    ("reads bytes", "printf 'a\\377b\\n'", 0, "a\\xffb\n"),
    ("prints in two ways", "echo one; echo two >&2; echo three", 0, "one\ntwo\nthree\n"),
    ("prints much", "seq 20000", 0, "\n20000\n"),
    ("waits for too long", "sleep 1000", -1, "Timeout (2.0s) exceeded while running command"),
    ("leaves the directory", "cd / && pwd", 0, "/\n"),
    ("is in the directory again", "pwd", 0, "ROOT\n"),
    ("starts what goes on", "sleep 1000 >/dev/null 2>&1 & echo $! >.git/pid", 0, ""),
    ("ends what goes on", "kill $(cat .git/pid) && echo it was there", 0, "it was there\n"),
]
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"


def repository(directory):
    """What the agent works on."""
    (directory / "shapes.py").write_text(WRONG)
    (directory / "test_shapes.py").write_text(TEST)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for command in [["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Shapes"]]:
        subprocess.run(git + command, cwd=directory, check=True)


def configuration(url, token, directory):
    from minisweagent.models.test_models import make_output

    commands = [command for _, command, _, _ in STEPS] + [SUBMIT]
    host, port = url.rsplit(":", 1)
    return {
        "agent": {"system_template": "You repair programs.", "instance_template": "Repair: {{task}}"},
        "model": {
            "model_class": "deterministic",
            "model_name": "scripted",
            "outputs": [make_output(command, [{"command": command}], cost=0) for command in commands],
        },
        "environment": {
            "environment_class": "swerex_docker",
            "image": "none",
            "cwd": str(directory),
            "timeout": 2,
            "deployment_extra_kwargs": {"host": host, "port": int(port), "auth_token": token},
        },
    }


def run(url, token, directory, scratch, result):
    directory, scratch = Path(directory), Path(scratch)
    os.environ |= {
        "HOME": str(scratch),
        "MSWEA_GLOBAL_CONFIG_DIR": str(scratch / "configuration"),
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
    }
    # They may be read as soon as they are there.
    from minisweagent.environments.extra import swerex_docker
    from minisweagent.run.mini import app
    from swerex.deployment.remote import RemoteDeployment

    swerex_docker.DockerDeployment = lambda image, **where: RemoteDeployment(**where)
    repository(directory)
    config, trajectory = scratch / "config.yaml", scratch / "trajectory.json"
    config.write_text(json.dumps(configuration(url, token, directory)))
    options = ["--config", "mini_textbased.yaml", "--config", str(config), "--output", str(trajectory)]
    app([*options, "--task", "the area is wrong", "--yolo", "--exit-immediately"], standalone_mode=False)
    found = {
        "trajectory": json.loads(trajectory.read_text()),
        "file": (directory / "shapes.py").read_text(),
        "status": subprocess.run(
            ["git", "status", "--short"], cwd=directory, check=True, capture_output=True, text=True
        ).stdout,
    }
    Path(result).write_text(json.dumps(found).replace(str(directory), "ROOT"))


def plain(message):
    """An observation without what is another at each time."""
    extra = {name: value for name, value in message["extra"].items() if name != "timestamp"}
    return json.loads(re.sub(r"(?<=test in )[\d.]+s", "a moment", json.dumps([message["content"], extra])))


def observations(found):
    """What the agent saw, by the names of the steps."""
    seen = [message for message in found["trajectory"]["messages"] if "returncode" in message.get("extra", {})]
    return {step[0]: plain(message) for step, message in zip(STEPS, seen)}


def checks(ours, theirs):
    """Names, whether each is right, and what is there."""
    info, other = ours["trajectory"]["info"], theirs["trajectory"]["info"]
    diff = [line for line in info["submission"].splitlines() if re.match(r"[-+] ", line)]
    yield "its end", info["exit_status"] == "Submitted", info["exit_status"]
    yield "what it submits", diff == ["-    return width + height", "+    return width * height"], info["submission"]
    yield "the file that it edits", ours["file"] == RIGHT, ours["file"]
    yield "the file that it edits is all that changes", ours["status"] == " M shapes.py\n", ours["status"]
    for part in ["exit_status", "submission"]:
        yield f"the same {part.replace('_', ' ')} there", info[part] == other[part], [info[part], other[part]]
    here, there = observations(ours), observations(theirs)
    for name, _, code, text in STEPS:
        one, two = here.get(name), there.get(name)
        is_right = one is not None and one[1]["returncode"] == code and text in one[1]["raw_output"] and one == two
        yield name, is_right, {"here": one, "there": two, "expected": [code, text]}


def compare(*files):
    passed = failed = 0
    for name, is_right, found in checks(*[json.loads(Path(file).read_text()) for file in files]):
        passed, failed = passed + is_right, failed + (not is_right)
        print(f"ok      an agent: {name}" if is_right else f"FAILED  an agent: {name}\n        {json.dumps(found)[:1500]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


{"run": run, "compare": compare}[sys.argv[1]](*sys.argv[2:])
