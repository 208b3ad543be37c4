"""What starts containers for other servers starts ours: `DockerWorkspace` of OpenHands' SDK 1.x, or `DockerDeployment` of SWE-ReX.

usage: wires.py sdk|swerex IMAGE

DOCKER_HOST names the engine. Prints one line a check; the last line is `N passed, N failed, N skipped`.
"""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNTS = {True: 0, False: 0}


def check(what, is_so, told=""):
    COUNTS[bool(is_so)] += 1
    print(f"ok      {what}" if is_so else f"FAILED  {what}: {told}", flush=True)


def containers():
    listed = subprocess.run(["docker", "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def gone(before):
    """Whether all containers that were not there before are gone, in a while."""
    end = time.monotonic() + 20
    while containers() - before and time.monotonic() < end:
        time.sleep(0.2)
    return not containers() - before


def sdk(image):
    from openhands.workspace import DockerWorkspace

    # The workspace hands it to the container, and shows it.
    os.environ["OH_SESSION_API_KEYS_0"] = "the key of the test"
    before = containers()
    began = time.monotonic()
    with DockerWorkspace(server_image=image, working_dir="/tmp", platform="linux/amd64") as workspace:
        check("DockerWorkspace starts", time.monotonic() - began < 60)
        ran = workspace.execute_command("echo hello; echo $OH_SESSION_API_KEYS_0; exit 3")
        check("DockerWorkspace runs commands", (ran.stdout, ran.exit_code) == ("hello\n\n", 3), ran)
        with tempfile.TemporaryDirectory() as directory:
            there, back = Path(directory, "there"), Path(directory, "back")
            there.write_bytes(bytes(range(256)) * 4096)
            up = workspace.file_upload(there, "/tmp/new/there")
            down = workspace.file_download("/tmp/new/there", back)
            same = up.success and down.success and back.read_bytes() == there.read_bytes()
            check("DockerWorkspace moves files", same, (up, down))
        # The first process of the container sees the end of what nobody waits for.
        workspace.execute_command("(setsid sh -c 'sleep 0.2' &) ; true")
        dead = "for one in /proc/[0-9]*; do grep -q '^State:.Z' $one/status && echo $one; done 2>/dev/null"
        end = time.monotonic() + 10
        while (left := workspace.execute_command(dead).stdout) and time.monotonic() < end:
            time.sleep(0.2)
        check("DockerWorkspace leaves no dead process", not left, left)
        stopped = time.monotonic()
    took = time.monotonic() - stopped
    check("DockerWorkspace ends at once", gone(before) and took < 9, f"{took:.1f} s")


async def swerex(image):
    from swerex.deployment.docker import DockerDeployment
    from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest, UploadRequest

    before = containers()
    deployment = DockerDeployment(image=image, pull="never", startup_timeout=60)
    await deployment.start()
    runtime = deployment.runtime
    check("DockerDeployment starts", (await runtime.is_alive()).is_alive)
    await runtime.create_session(CreateBashSessionRequest())
    await runtime.run_in_session(BashAction(command="cd /usr && greeting=hello"))
    ran = await runtime.run_in_session(BashAction(command="pwd; echo $greeting"))
    check("DockerDeployment has sessions", ran.output.split() == ["/usr", "hello"] and ran.exit_code == 0, ran)
    executed = await runtime.execute(Command(command="exit 3", shell=True))
    check("DockerDeployment runs commands", executed.exit_code == 3, executed)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "file").write_text("content")
        await runtime.upload(UploadRequest(source_path=directory, target_path="/tmp/there"))
    read = await runtime.run_in_session(BashAction(command="cat /tmp/there/file"))
    check("DockerDeployment moves files", read.output.strip() == "content", read)
    await deployment.stop()
    check("DockerDeployment ends", gone(before))


logging.disable(logging.CRITICAL)
if sys.argv[1] == "sdk":
    sdk(sys.argv[2])
else:
    asyncio.run(swerex(sys.argv[2]))
print(f"{COUNTS[True]} passed, {COUNTS[False]} failed, 0 skipped")
