"""An unmodified `RemoteRuntime` of the reference, and its remote builder of images, work at `gloveport gateway` over Docker.

    remote_docker.py BINARY

The engine is the one that GLOVEPORT_TEST_DOCKER or DOCKER_HOST names; without one everything is a counted skip. The builder has
an image built by the gateway from GLOVEPORT_TEST_BASE, by default the first of `gloveport-test/debian:12` and
`gloveport-base:bookworm` that is there; a session works in it, is paused, resumed, attached to and stopped. All that was made is
removed again. Prints one line a check and, last, `N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

import docker
from docker_runtime import BASES
from gateways import KEY, Checks, ask, client, gateway, told

PREFIX = f"gp-remote-{os.getpid()}"
EXPECTED = {
    "the prefix of images is the tenant's": f"{PREFIX}/default",
    "an image is not there before": False,
    "an image is built under both names": [True, True, True],
    "a build that fails says why": True,
    "statuses": ["STATUS$STARTING_RUNTIME", "STATUS$READY"],
    "the session works in the image": "made by the build",
    "the shell keeps its state": ["", "5 /tmp"],
    "variables arrive": ['a "b"', "from the configuration"],
    "exit codes arrive": 3,
    "a file is written and read": "one\ntwo\n",
    "the editor edits": [True, "one\nthree"],
    "a file is copied in": True,
    "a directory is copied out": True,
    "hosts for work": [2, True],
    "a host for work shows what a program serves": "served",
    "a second client is attached": "up",
    "a closed session that is kept is paused": "paused",
    "a request to a paused sandbox": 503,
    "a paused session is resumed by the next": ["up", "STATUS$READY"],
    "a closed session is stopped": 404,
    "no container is left": [],
}


def build(url, base, home, seen):
    """An image that the builder of the reference has had made by the gateway."""
    from openhands.core.exceptions import AgentRuntimeBuildError
    from openhands.runtime.builder.remote import RemoteRuntimeBuilder

    def folder(*lines):
        path = tempfile.mkdtemp(dir=home)
        with open(os.path.join(path, "Dockerfile"), "w") as file:
            # No layer is shared with another test, which removes its own.
            file.write("\n".join((f"FROM {base}", f"LABEL of={PREFIX}", "USER root", *lines)) + "\n")
        with open(os.path.join(path, "made"), "w") as file:
            file.write("made by the build")
        return path

    prefix = seen["the prefix of images is the tenant's"] = ask(url, "/registry_prefix")[1]["registry_prefix"]
    builder = RemoteRuntimeBuilder(url, KEY)
    names = [f"{prefix}/runtime:a", f"{prefix}/runtime:b"]
    seen["an image is not there before"] = builder.image_exists(names[0])
    image = builder.build(folder("COPY made /made", "RUN chmod 644 /made"), names)
    seen["an image is built under both names"] = [image == names[0], *map(builder.image_exists, names)]
    try:
        builder.build(folder("RUN echo broken on purpose && exit 7"), [f"{prefix}/runtime:broken"])
    except AgentRuntimeBuildError as error:
        seen["a build that fails says why"] = "7" in str(error)
    return image


def served(runtime, run):
    """What a program serves at the port of a host for work."""
    host, port = next(iter(runtime.web_hosts.items()))
    answer = "HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\nserved"
    program = (
        f"use IO::Socket::INET; my $all = IO::Socket::INET->new(LocalPort => {port}, Listen => 5, ReuseAddr => 1) or die; "
        f'while (my $one = $all->accept) {{ sysread $one, my $head, 4096; print $one "{answer}"; close $one }}'
    )
    run(f"perl -e '{program}' > /dev/null 2>&1 &")
    deadline = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(host, timeout=10) as shown:
                return shown.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != 502 or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def drive(url, home, base, engine):
    from openhands.events.action import CmdRunAction, FileEditAction, FileReadAction, FileWriteAction

    seen = {}
    try:
        image = build(url, base, home, seen)
        config, session = client(url, home, image)
        sid = uuid.uuid4().hex
        runtime, statuses = session(sid)

        def run(command, of=None):
            return (of or runtime).run(CmdRunAction(command=command)).content.strip().replace("\r", "")

        asyncio.run(runtime.connect())
        seen["statuses"] = statuses
        seen["the session works in the image"] = run("cat /made")
        seen["the shell keeps its state"] = [run("x=5; cd /tmp"), run("echo $x $PWD")]
        seen["variables arrive"] = [run('echo "$FROM_CLIENT"'), run('echo "$AT_START"')]
        seen["exit codes arrive"] = runtime.run(CmdRunAction(command="(exit 3)")).exit_code
        run("mkdir -p /tmp/files")
        path = "/tmp/files/a.txt"
        runtime.write(FileWriteAction(path=path, content="one\ntwo"))
        seen["a file is written and read"] = runtime.read(FileReadAction(path=path)).content
        edited = runtime.edit(FileEditAction(path=path, command="str_replace", old_str="two", new_str="three"))
        seen["the editor edits"] = ["has been edited" in edited.content, run(f"cat {path}")]
        with open(os.path.join(home, "up.txt"), "w") as file:
            file.write("up")
        runtime.copy_to(os.path.join(home, "up.txt"), "/tmp/files")
        seen["a file is copied in"] = "up.txt" in runtime.list_files("/tmp/files")
        seen["a directory is copied out"] = os.path.getsize(runtime.copy_from("/tmp/files")) > 100
        seen["hosts for work"] = [len(runtime.web_hosts), all(host.startswith(url) for host in runtime.web_hosts)]
        seen["a host for work shows what a program serves"] = served(runtime, run)

        other, _ = session(sid, attach=True)
        asyncio.run(other.connect())
        seen["a second client is attached"] = run("cat /tmp/files/up.txt", other)
        other.close()
        config.sandbox.keep_runtime_alive = config.sandbox.pause_closed_runtimes = True
        kept, _ = session(sid)
        asyncio.run(kept.connect())
        kept.close()
        sandbox = ask(url, f"/sessions/{sid}")[1]
        seen["a closed session that is kept is paused"] = sandbox["status"]
        seen["a request to a paused sandbox"] = ask("", sandbox["url"] + "/alive")[0]
        config.sandbox.keep_runtime_alive = False
        back, statuses = session(sid)
        asyncio.run(back.connect())
        seen["a paused session is resumed by the next"] = [run("cat /tmp/files/up.txt", back), statuses[-1]]
        back.close()
        seen["a closed session is stopped"] = ask(url, f"/sessions/{sid}")[0]
        seen["no container is left"] = [it.name for it in engine.containers.list(all=True) if sid in it.name]
        # It was there before the others that have ended its sandbox; at its own end it would ask a gateway that is gone.
        try:
            runtime.close()
        except Exception:
            pass
    except Exception as error:  # the checks that are missing say what was not reached
        seen["the session"] = told(error)
    return seen


def main():
    if "GLOVEPORT_TEST_DOCKER" in os.environ:
        os.environ["DOCKER_HOST"] = os.environ["GLOVEPORT_TEST_DOCKER"]
    total = len(EXPECTED) + 3
    try:
        engine = docker.from_env(timeout=60)
        engine.ping()
    except docker.errors.DockerException as error:
        print(f"skipped: no Docker engine can be reached: {str(error)[:200]}")
        print(f"0 passed, 0 failed, {total} skipped")
        return 0
    there = {tag for image in engine.api.images() for tag in image["RepoTags"] or ()}
    base = os.environ.get("GLOVEPORT_TEST_BASE") or next((name for name in BASES if name in there), None)
    if not base:
        print(f"skipped: the engine has none of {', '.join(BASES)}; scripts/docker makes them")
        print(f"0 passed, 0 failed, {total} skipped")
        return 0
    checks = Checks()
    words = ("--runtime", "docker", "--build-images", "--image-prefix", PREFIX)
    try:
        with gateway(checks, sys.argv[1], *words) as (url, home):
            checks.check_all(drive(url, home, base, engine), EXPECTED)
    finally:
        # Others remove theirs meanwhile, so none is looked at by its id.
        for image in engine.api.images():
            for tag in image["RepoTags"] or ():
                if tag.startswith(PREFIX):
                    engine.images.remove(tag, force=True)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
