"""All checks of the Python package, with the one that is installed.

drive.py [--speed]
"""

import asyncio
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import attacks
import both
import cases
import gateways
import gloveport
import presence
import speed
from report import check, failed, finish, measured, tell

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "clients/python"
TOOLS = Path(os.environ["TEST_TOOLS"])
WHEEL = Path(os.environ["TEST_WHEEL"])
#: Public functions that need something which not every machine has.
RARE = ("Browser.", "AsyncBrowser.", "Cell.", "Sandbox.interrupt_kernel", "Page.check")
#: Seconds that a case may take.
LIMIT = 60


def succeeds(what, *command, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
    check(what, done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def package():
    """What is built, before it is used."""
    succeeds("twine finds nothing wrong with the wheel", TOOLS / "twine", "check", "--strict", WHEEL)
    size = WHEEL.stat().st_size / 1024 / 1024
    if size <= 20:
        check("the wheel has at most 20 MiB", True)
    else:
        tell(
            "skipped",
            f"the wheel has at most 20 MiB: it has {size:.1f}, and counts only with a program of profile dist",
        )
    module = succeeds("`python -m gloveport` is the program", sys.executable, "-m", "gloveport", "--version")
    check("it says its version", module.startswith("gloveport "), module)
    found = gloveport.find_program()
    check("the program is that of the wheel", Path(found).parent == Path(sys.executable).parent, found)
    again = subprocess.run(
        [ROOT / "scripts/wheel", "--program", found, "--output", Path(os.environ["HOME"]) / "again"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    check("the same input gives the same wheel", Path(again).read_bytes() == WHEEL.read_bytes())
    generate = PACKAGE / "generate.py"
    succeeds("the types of the wire are those of openapi.json", sys.executable, generate, "--check")
    succeeds("ruff finds nothing", TOOLS / "ruff", "check", "--no-cache", PACKAGE)
    succeeds("the code is formatted", TOOLS / "ruff", "format", "--no-cache", "--check", PACKAGE)
    mypy = [TOOLS / "mypy", "--strict", f"--cache-dir={os.devnull}", "--python-executable", sys.executable]
    succeeds("mypy --strict finds nothing in the package", *mypy, "-p", "gloveport", MYPYPATH=str(PACKAGE / "src"))
    succeeds("mypy --strict finds nothing in the examples", *mypy, *(PACKAGE / "examples").glob("*.py"), generate)
    # It keeps itself in the home directory that its tools were installed for.
    home = str(TOOLS.parents[3])
    # It is a program for Node: the one that scripts/setup installs, or the system's.
    path = f"{TOOLS.parents[1] / 'vscode/bin'}:{os.environ['PATH']}"
    if shutil.which("node", path=path) is None:
        tell("skipped", "pyright finds nothing: there is no Node")
    else:
        succeeds("pyright finds nothing", TOOLS / "pyright", "--pythonpath", sys.executable, HOME=home, PATH=path)
    for example in sorted((PACKAGE / "examples").glob("*.py")):
        told = succeeds(f"the example {example.name} runs", sys.executable, "-W", "ignore", example)
        check(f"the example {example.name} prints something", bool(told.strip()))


async def case(function, what, *arguments):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            await asyncio.wait_for(function(*arguments, Path(scratch)), LIMIT)
        except Exception:
            failed(what)
        else:
            check(what, True)


async def both_clients():
    """The same cases for both."""
    for make in (both.Sync(), both.Async()):
        async with make(isolation="none") as box:
            for function in cases.CASES:
                await case(function, f"{make.name}: {function.__name__.replace('_', ' ')}", box, make)
        for function, lacks in special().items():
            what = f"{make.name}: {function.__name__.replace('_', ' ')}"
            if lacks:
                tell("skipped", f"{what}: {lacks}")
            else:
                await case(function, what, make)


@functools.cache
def special():
    """The cases that need something of the machine, and what it lacks."""
    python = Path(os.environ["TEST_IPYTHON"]).exists()
    chromium = any(map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome")))
    docker = "DOCKER_HOST" in os.environ
    no_docker = (
        ""
        if docker
        else "GLOVEPORT_TEST_DOCKER names no daemon; `scripts/docker up` starts one, and `scripts/docker env` names it"
    )
    return {
        gateways.a_gateway_starts_finds_and_ends_sandboxes: "",
        gateways.a_gateway_keeps_and_forks_the_files_of_a_container: no_docker,
        presence.an_open_sandbox_outlives_the_time_after_which_an_abandoned_one_ends: "",
        presence.limits_of_a_gateway_that_are_shorter_hold_and_a_client_that_is_there_keeps_to_them: "",
        presence.a_container_has_all_of_its_idle_time_when_it_goes_on: no_docker,
        cases.cells_run_in_kernels: "" if python else "there is no Python with IPython; scripts/setup installs it",
        cases.a_browser_is_used: "" if chromium else "there is no Chromium; scripts/setup installs it",
        cases.files_of_a_container_are_kept_and_forked: no_docker,
        cases.the_network_is_changed_while_a_sandbox_runs: no_gate(),
    }


def no_gate():
    """Why no sandbox of this machine has a gate; empty if it has."""
    try:
        with gloveport.Sandbox(isolation="container", network=["a.test"]) as box:
            box.network.show()
    except gloveport.SessionError as error:
        return error.message
    return ""


def default_isolation():
    """A sandbox is kept apart, or says that it is not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with gloveport.Sandbox() as box:
            level = box.isolation
    is_warned = any(issubclass(each.category, gloveport.NotIsolatedWarning) for each in caught)
    check(
        f"a sandbox with the default isolation, {level}, warns if that is none", is_warned == (level == "none"), caught
    )


def isolation(level):
    """What a sandbox that is kept apart sees, and that it ends as the others."""
    secret = Path(os.environ["HOME"]) / "secret"
    secret.write_text("mine")
    what = f"a sandbox with the isolation {level}"
    try:
        with gloveport.Sandbox(isolation=level) as box:
            check(f"{what} says so", box.isolation == level, box.isolation)
            box.run("echo works > file").check()
            check(f"{what} works", box.path("file").read_text() == "works\n")
            seen = box.run(f"cat {secret}")
            check(f"{what} does not see files of this machine's user", not seen.ok and "mine" not in seen.output, seen)
            ended = box.id
    except gloveport.SessionError as error:
        tell("skipped", f"{what}: {error.message}")
        return
    check(f"{what} ends", ended not in attacks.sessions())


def secret_at_the_edge():
    """A secret with hosts is put into requests by the gate, and a placeholder is all that the sandbox has."""
    what = "a secret with hosts is not in the sandbox"
    told = subprocess.check_output([gloveport.find_program(), "session", "start", "--help"], text=True)
    if "@HOST" not in told:
        tell("skipped", f"{what}: this program knows no hosts of secrets")
        return
    hidden = gloveport.Secret("hunter2-hunter2", hosts=("example.org",))
    try:
        with gloveport.Sandbox(isolation="container", secrets={"TOKEN": hidden}, network="example.org") as box:
            seen = box.run('echo "[$TOKEN]"').check().output
    except gloveport.SessionError as error:
        tell("skipped", f"{what}: {error.message}")
        return
    check(what, seen.strip() != "[]" and "hunter2" not in seen, seen)


def flags():
    """What a sandbox is described with reaches the program, and values of secrets are in no argument."""
    home = Path(os.environ["HOME"])
    described = {
        "image": "debian:13",
        "workspace": home,
        "env": {"A": "b c"},
        "isolation": "files",
        "network": ["a.org", "10.0.0.0/8"],
        "secrets": {"TOKEN": gloveport.Secret("hunter2", hosts=("a.org", "b.org:8443")), "PLAIN": "x"},
        "memory": "2g",
        "ports": {"web": 80},
        "plugins": ["jupyter"],
        "labels": {"team": "x"},
        "flags": ("--cpus", "2"),
    }
    expected = [
        *("session", "--runtime", "docker", "start", "--quiet", "--json", "--id", "ID", "--image=debian:13"),
        *(f"--workspace={home}", "--isolation=files", "--network=a.org,10.0.0.0/8", "--memory=2g", "--env=A=b c"),
        *("--secret=TOKEN@a.org,b.org:8443", "--secret=PLAIN", "--port=web:80", "--plugin=jupyter"),
        *("--label=team=x", "--cpus", "2", "hunter2"),
    ]
    program = home / "program"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$4" = rm ] || printf "%s\\n" "$@" "$TOKEN" >{home}/words\n'
        'echo "gloveport: that is why" >&2\n'
        "exit 1\n"
    )
    program.chmod(0o755)
    os.environ["GLOVEPORT_PROGRAM"] = str(program)
    try:
        gloveport.Sandbox("docker", **described).open()
        told = "nothing"
    except gloveport.SessionError as error:
        told = error.message
    finally:
        del os.environ["GLOVEPORT_PROGRAM"]
    check("what the program says of a failure is the message", told == "that is why", told)
    words = (home / "words").read_text().splitlines()
    words[7] = "ID"
    check("what a sandbox is described with are flags, but for the values of secrets", words == expected, words)


def main():
    if "--speed" in sys.argv:
        speed.measure()
        return
    if docker := os.environ.get("GLOVEPORT_TEST_DOCKER"):
        os.environ["DOCKER_HOST"] = docker
    package()
    inventory = both.Inventory()
    measured(f"{len(inventory.there)} public functions")
    asyncio.run(both_clients())
    missing = inventory.missing()
    if not any(special().values()):
        check("every public function has a case", not missing, missing)
    else:
        unused = {each for each in missing if not each.startswith(RARE)}
        check("every public function has a case, but for those that this machine cannot use", not unused, unused)
    flags()
    default_isolation()
    isolation("files")
    isolation("container")
    secret_at_the_edge()
    attacks.attack()
    speed.measure()
    finish()


main()
