"""Harbor's own program and agents on the smallest task, and our environment by itself.

The sandboxes are those of `provider`: tasks need directories beneath `/`, which the runtime `local` does not give, and
no image can be had everywhere.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from gloveport.harbor import GloveportEnvironment
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from checks import cancelled, check, finish, hold, killed, nothing_is_left, raised, tell

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ["HOME"])
NAME = "gloveport.harbor:GloveportEnvironment"
TASK = {
    "task.toml": 'schema_version = "1.4"\n[environment]\n[environment.env]\nWORD = "given"\n',
    "instruction.md": "Write 42 into the file /solution/answer.\n",
    "environment/Dockerfile": "FROM debian:13\n",
    "solution/solve.sh": "#!/bin/bash\necho 42 >/solution/answer\n",
    "tests/test.sh": "#!/bin/bash\n[ -e /solution/answer ]\necho $((1 - $?)) >/logs/verifier/reward.txt\n",
}


def provider():
    """The program of the provider."""
    program = HOME / "provider"
    process = HERE.parent.parent / "examples/providers/process.py"
    program.write_text((HERE / "provider").read_text().replace("=PROGRAM", f"={process}"))
    program.chmod(0o755)
    return f"exec:{program}"


def environment(scratch, **more):
    named = {"runtime": provider(), "image": "", **more}
    config = named.pop("config", EnvironmentConfig(env={"WORD": "given"}))
    return GloveportEnvironment(
        Path(scratch), "task", f"task__{uuid.uuid4().hex[:6]}", TrialPaths(Path(scratch, "trial")), config, **named
    )


async def used(scratch):
    one = environment(scratch)
    await one.start(False)
    done = await one.exec("echo out; echo err >&2; echo $WORD $MORE; pwd; exit 3", cwd="/usr", env={"MORE": "words"})
    check(
        "a command has its outputs and its code",
        (done.stdout, done.stderr, done.return_code) == ("out\ngiven words\n/usr\n", "err\n", 3),
        done,
    )
    try:
        await one.exec("sleep 1234", timeout_sec=1)
        told = ""
    except RuntimeError as error:
        told = str(error)
    check("one whose time is over raises", "timed out after 1 seconds" in told, told)
    check("and is ended", (await one.exec("pgrep -fx 'sleep 1234'")).stdout == "")
    told = []

    async def heard(text, stream):
        told.append((stream, text))

    with one.scoped_output_callback(heard):
        await one.exec("echo a; sleep 0.3; echo b >&2")
    check("output is told as it comes", told == [("stdout", "a\n"), ("stderr", "b\n")], told)
    done = await one.exec("head -c 20000000 /dev/zero")
    check("the last 16 MiB of output are kept", len(done.stdout) == 16 * 1024 * 1024, len(done.stdout))
    tree, back = Path(scratch, "tree"), Path(scratch, "back")
    (tree / "below").mkdir(parents=True)
    (tree / "below/file").write_bytes(os.urandom(100_000))
    (tree / "program").write_text("#!/bin/sh\necho runs\n")
    (tree / "program").chmod(0o755)
    await one.upload_dir(tree, "/logs/tree")
    await one.upload_file(tree / "program", "/logs/deep/program")
    check(
        "what is uploaded runs", (await one.exec("/logs/deep/program && /logs/tree/program")).stdout == "runs\nruns\n"
    )
    await one.download_dir("/logs/tree", back)
    await one.download_file("/logs/tree/below/file", Path(scratch, "new/file"))
    same = (tree / "below/file").read_bytes()
    check(
        "trees and files come back",
        (back / "below/file").read_bytes() == same == Path(scratch, "new/file").read_bytes(),
    )
    await one.download_dir_with_exclusions(source_dir="/logs/tree", target_dir=Path(scratch, "part"), exclude=["below"])
    check("or parts of them", [each.name for each in Path(scratch, "part").iterdir()] == ["program"])
    check("it tells files from directories", await one.is_dir("/logs/tree") and await one.is_file("/logs/tree/program"))
    await one.stop(True)
    await one.stop(True)
    nothing_is_left("of an environment that is stopped")


async def given_up(scratch):
    def make():
        one = environment(scratch)
        return one.start(False), lambda: one.stop(True)

    await cancelled(make)
    nowhere = EnvironmentConfig(workdir="/dev/null/x")
    try:
        await environment(scratch, config=nowhere).start(False)
        told = ""
    except Exception as error:
        told = str(error)
    check("one in which nothing can be done says why", "/dev/null/x" in told, told)
    nothing_is_left("of it")


def refused(scratch):
    check("local sandboxes are refused", raised(ValueError, environment, scratch, runtime="local"))
    check("a task without an image, too", "image=" in str(raised(FileNotFoundError, environment, scratch, image=None)))
    check("an option that is unknown, too", raised(ValueError, environment, scratch, colour="red"))
    closed = environment(scratch, network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK))
    told = str(raised(Exception, lambda: asyncio.run(closed.start(False))))
    check("a runtime that cannot close the network says so", "network" in told, told)
    nothing_is_left("of one that cannot be started")


def job(scratch, agent):
    """What `harbor run` finds."""
    place = Path(scratch, f"task-{agent}")
    for name, text in TASK.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    jobs = Path(scratch, f"jobs-{agent}")
    words = ["run", "-p", place, "-a", agent, "--env", NAME, "-o", jobs, "--quiet", "-y"]
    words += ["--ek", f"runtime={provider()}", "--ek", 'image=""']
    call = "import sys; from harbor.cli.main import app; sys.argv[0] = 'harbor'; app()"
    done = subprocess.run(
        [sys.executable, "-c", call, *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    results = [json.loads(each.read_text()) for each in jobs.glob("*/*/result.json")]
    found = [(each.get("verifier_result") or {}).get("rewards") for each in results]
    return found, done.stdout + done.stderr + json.dumps([each.get("exception_info") for each in results])


def main():
    # The sessions that are listed are those of this one.
    os.environ["GLOVEPORT_RUNTIME"] = provider()
    if subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False
    ).returncode:
        tell("skipped", "everything: this machine has no namespaces for the sandboxes of `provider`")
        return
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        asyncio.run(used(scratch))
        asyncio.run(given_up(scratch))
        refused(scratch)
        for agent, reward in [("oracle", 1.0), ("nop", 0.0)]:
            found, told = job(scratch, agent)
            check(f"`harbor run` with its agent {agent} has the reward {reward}", found == [{"reward": reward}], told)
            nothing_is_left(f"of a job with {agent}")
    killed()


async def held():
    one = environment(str(HOME / "held"))
    await one.start(False)
    hold()


if sys.argv[1:] == ["hold"]:
    asyncio.run(held())
else:
    main()
    finish()
