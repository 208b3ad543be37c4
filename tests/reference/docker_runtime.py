"""An unmodified `DockerRuntime` of the reference works in an image that `gloveport image build` made.

    docker_runtime.py BINARY

The engine is the one that GLOVEPORT_TEST_DOCKER or DOCKER_HOST names, or the usual socket; without one everything is
a counted skip. The image is built from GLOVEPORT_TEST_BASE, by default the first of `gloveport-test/debian:12` and
`gloveport-base:bookworm` that is there, with packages from the sources that this machine is configured for. Shell,
file, editor and IPython actions run as the user of the sandbox; then the container is paused, resumed, attached to,
closed and deleted. All that was made is removed again. Prints one line a check and, last, `N passed, N failed, N
skipped`; exit code 1 if a check failed.
"""

import asyncio
import glob
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import uuid

import docker

BASES = ("gloveport-test/debian:12", "gloveport-base:bookworm")
AUTHORITIES = "/usr/local/share/ca-certificates"
MARK = f"gp-image-{os.getpid()}"


def base_with_authorities(client, base):
    """The base, with the certificate authorities that this machine trusts in addition: its registries may need them."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        text = f"FROM {base}\nUSER root\nCOPY authorities/ {AUTHORITIES}/\n".encode()
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        folder = tarfile.TarInfo("authorities")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for path in glob.glob(f"{AUTHORITIES}/*.crt"):
            archive.add(os.path.realpath(path), f"authorities/{os.path.basename(path)}")
    context.seek(0)
    name = f"{MARK}-base:1"
    client.images.build(fileobj=context, custom_context=True, tag=name, rm=True, forcerm=True, timeout=300)
    return name


def sources():
    """What pip on this machine is told, as variables; they are passed on by name only."""
    found = {}
    for key, variable in (("index-url", "PIP_INDEX_URL"), ("extra-index-url", "PIP_EXTRA_INDEX_URL"),
                          ("trusted-host", "PIP_TRUSTED_HOST")):
        value = os.environ.get(variable)
        if not value:
            words = [sys.executable, "-m", "pip", "config", "get", f"global.{key}"]
            told = subprocess.run(words, capture_output=True, text=True)
            value = told.stdout.strip() if told.returncode == 0 else ""
        if value:
            found[variable] = value
    # With authorities of its own the image has to use its own list, which holds them.
    found["PIP_CERT"] = "/etc/ssl/certs/ca-certificates.crt"
    return found


def build(binary, base, home):
    told = sources()
    environment = {**os.environ, **told, "HOME": home, "OH_RUNTIME_RUNTIME_IMAGE_REPO": f"{MARK}-runtime"}
    words = [binary, "image", "build", "--base-image", base, "--jupyter", "--quiet", "--", "--network=host"]
    words += [word for name in told for word in ("--build-arg", name)]
    done = subprocess.run(words, env=environment, cwd=home, capture_output=True, text=True, timeout=900)
    again = subprocess.run(words, env=environment, cwd=home, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.strip(), done.stderr, again.stdout.strip()


def drive(image, home, client):
    """What happens in a container of the image."""
    os.environ.update(HOME=home, LOG_LEVEL="ERROR")
    from openhands import agenthub  # noqa: F401  registers the agents
    from openhands.core.config import OpenHandsConfig
    from openhands.events import EventStream
    from openhands.events.action import CmdRunAction, FileEditAction, FileReadAction, FileWriteAction, IPythonRunCellAction
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.docker.docker_runtime import DockerRuntime
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement
    from openhands.storage import get_file_store

    # Otherwise a signal would stop the containers of every session on this engine.
    DockerRuntime._shutdown_listener_id = uuid.uuid4()
    config = OpenHandsConfig()
    config.sandbox.runtime_container_image = image
    config.enable_browser = False
    config.run_as_openhands = True
    registry, store = LLMRegistry(config), get_file_store("local", os.path.join(home, "store"))
    statuses = []

    def session(attach=False):
        return DockerRuntime(
            config, EventStream(f"{MARK}-{uuid.uuid4()}", store), registry, sid=MARK,
            plugins=[AgentSkillsRequirement(), JupyterRequirement()], attach_to_existing=attach,
            env_vars={"FROM_CLIENT": 'a "b"'}, status_callback=lambda level, status, text: statuses.append(status.value),
        )

    seen = {}
    runtime = session()

    def run(command):
        return runtime.run(CmdRunAction(command=command)).content.strip()

    def cell(code):
        return runtime.run_ipython(IPythonRunCellAction(code=code)).content

    try:
        asyncio.run(runtime.connect())
        seen["statuses"] = statuses[-1]
        seen["the user"] = run("whoami; id -u; pwd")
        seen["the shell keeps its state"] = [run("x=5; cd /tmp"), run("echo $x $PWD")]
        seen["variables arrive"] = run('echo "$FROM_CLIENT"')
        failed = runtime.run(CmdRunAction(command="(exit 3)"))
        seen["exit codes arrive"] = failed.exit_code
        seen["sudo needs no password"] = run("sudo -n whoami")
        path = "/workspace/a.txt"
        runtime.write(FileWriteAction(path=path, content="one\ntwo"))
        seen["a file is written and read"] = runtime.read(FileReadAction(path=path)).content
        edited = runtime.edit(FileEditAction(path=path, command="str_replace", old_str="two", new_str="three"))
        seen["the editor edits"] = ["has been edited" in edited.content, run(f"cat {path}")]
        seen["the file is the user's"] = run(f"stat -c %U {path}")
        seen["a cell runs"] = cell("y = 20\nprint(y + 1)").splitlines()[0]
        seen["the kernel keeps its state"] = cell("print(y * 2)").splitlines()[0]
        seen["AgentSkills are there"] = "one" in cell(f"open_file({path!r})")
        readers = "import pypdf, docx, pptx, pylatexenc, matplotlib; print('imported')"
        seen["the readers of documents are there"] = cell(readers).splitlines()[0]
        with open(os.path.join(home, "up.txt"), "w") as file:
            file.write("up")
        runtime.copy_to(os.path.join(home, "up.txt"), "/workspace")
        seen["a file is copied in"] = sorted(runtime.list_files("/workspace"))
        seen["the launcher is our program"] = run("readlink -f /openhands/micromamba/bin/micromamba")
        runtime.pause()
        seen["a paused container"] = client.containers.get(runtime.container_name).status
        runtime.resume()
        seen["a resumed container runs commands"] = run("cat /workspace/up.txt")
        other = session(attach=True)
        asyncio.run(other.connect())
        seen["a second client is attached"] = other.run(CmdRunAction(command="cat /workspace/up.txt")).content.strip()
        other.close()
        runtime.close()
        seen["a closed container"] = client.containers.get(runtime.container_name).status
        asyncio.run(DockerRuntime.delete(MARK))
        names = [container.name for container in client.containers.list(all=True)]
        seen["a deleted container is gone"] = runtime.container_name not in names
    except Exception as error:  # the checks that are missing say what was not reached
        seen["the session"] = f"{type(error).__name__}: {error}"
        try:
            seen["the session"] += client.containers.get(runtime.container_name).logs(tail=20).decode()
        except docker.errors.APIError:
            pass
    finally:
        try:
            client.containers.get(runtime.container_name).remove(force=True, v=True)
        except docker.errors.NotFound:
            pass
    return seen


EXPECTED = {
    "statuses": "STATUS$READY",
    "the user": "openhands\r\n1000\r\n/workspace",
    "the shell keeps its state": ["", "5 /tmp"],
    "variables arrive": 'a "b"',
    "exit codes arrive": 3,
    "sudo needs no password": "root",
    "a file is written and read": "one\ntwo\n",
    "the editor edits": [True, "one\r\nthree"],
    "the file is the user's": "openhands",
    "a cell runs": "21",
    "the kernel keeps its state": "40",
    "AgentSkills are there": True,
    "the readers of documents are there": "imported",
    "a file is copied in": ["a.txt", "up.txt"],
    "the launcher is our program": "/openhands/bin/gloveport",
    "a paused container": "exited",
    "a resumed container runs commands": "up",
    "a second client is attached": "up",
    "a closed container": "exited",
    "a deleted container is gone": True,
}


def normal(value):
    """Without carriage returns, which only a terminal has."""
    if isinstance(value, list):
        return [normal(part) for part in value]
    return value.replace("\r", "") if isinstance(value, str) else value


def main():
    binary = os.path.abspath(sys.argv[1])
    # A test that runs out of time must not leave containers and images behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if "GLOVEPORT_TEST_DOCKER" in os.environ:
        os.environ["DOCKER_HOST"] = os.environ["GLOVEPORT_TEST_DOCKER"]
    total = len(EXPECTED) + 2
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except docker.errors.DockerException as error:
        print(f"skipped: no Docker engine can be reached: {str(error)[:200]}")
        print(f"0 passed, 0 failed, {total} skipped")
        return 0
    wanted = os.environ.get("GLOVEPORT_TEST_BASE")
    there = {tag for image in client.api.images() for tag in image["RepoTags"] or ()}
    base = wanted or next((name for name in BASES if name in there), None)
    if not base:
        print(f"skipped: the engine has none of {', '.join(BASES)}; scripts/docker makes them")
        print(f"0 passed, 0 failed, {total} skipped")
        return 0
    home = tempfile.mkdtemp(prefix="reference-docker-")
    passed = failed = 0

    def check(name, value, expected):
        nonlocal passed, failed
        if normal(value) == normal(expected):
            passed += 1
            print(f"ok      {name}")
        else:
            failed += 1
            print(f"FAILED  {name}: {value!r}, not {expected!r}")

    try:
        code, image, errors, again = build(binary, base_with_authorities(client, base), home)
        check("an image is built", (code, errors if code else ""), (0, ""))
        check("it is not built twice", bool(image) and again == image, True)
        seen = drive(image, home, client) if code == 0 else {}
        for name, expected in EXPECTED.items():
            check(name, seen.pop(name, "not reached"), expected)
        for name, value in seen.items():
            print(f"        {name}: {value}")
    finally:
        for image in client.api.images():
            for tag in image["RepoTags"] or ():
                if tag.startswith(MARK):
                    client.images.remove(tag, force=True)
        shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
