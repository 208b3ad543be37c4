"""The workspace of OpenHands' SDK 1.x."""

import os
import sys
import tempfile
from pathlib import Path

os.environ |= {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

from gloveport import GloveportError
from gloveport.openhands_sdk import GloveportWorkspace
from openhands.sdk.workspace import BaseWorkspace, RemoteWorkspace

from checks import HOME, LEVEL, check, example, finish, hold, interrupted, killed, nothing_is_left, raised


def main():
    with GloveportWorkspace(sandbox={"isolation": LEVEL, "env": {"WORD": "given"}}) as workspace:
        check(
            "it is a workspace of the SDK",
            isinstance(workspace, RemoteWorkspace) and isinstance(workspace, BaseWorkspace),
        )
        check("it is alive", workspace.alive)
        check("its server says what it is", "version" in workspace.get_server_info(), workspace.get_server_info())
        done = workspace.execute_command("echo out; echo err >&2; echo $WORD; pwd; exit 3", timeout=20)
        seen = (done.stdout.split(), done.stderr.strip(), done.exit_code)
        check(
            "a command has its outputs and its code", seen == (["out", "given", workspace.working_dir], "err", 3), seen
        )
        done = workspace.execute_command("sleep 100", timeout=1)
        check("one whose time is over says so", done.timeout_occurred, done)
        with tempfile.TemporaryDirectory(dir=HOME) as scratch:
            source, target = Path(scratch, "source"), Path(scratch, "target")
            source.write_bytes(os.urandom(1_000_000))
            up = workspace.file_upload(source, f"{workspace.working_dir}/file")
            down = workspace.file_download(f"{workspace.working_dir}/file", target)
            check(
                "a file goes there and back",
                up.success and down.success and source.read_bytes() == target.read_bytes(),
                (up, down),
            )
        workspace.execute_command("git init -q repo && cd repo && echo a >new", timeout=20)
        changes = workspace.git_changes(f"{workspace.working_dir}/repo")
        check("changes of a repository are there", [str(each.path) for each in changes] == ["new"], changes)
        seen = workspace.execute_command(f"cat {os.environ['SECRET_FILE']}", timeout=20)
        check(
            f"with the isolation {LEVEL} files of this machine's user are not there",
            LEVEL == "none" or "mine" not in seen.stdout,
            seen,
        )
        workspace.pause()
        workspace.resume()
        check("one that was paused goes on", workspace.execute_command("echo on", timeout=20).stdout.strip() == "on")
        check("its key is not shown", workspace.api_key not in repr(workspace._box), repr(workspace._box))
    nothing_is_left("of a workspace that is left")
    two = GloveportWorkspace(sandbox={"isolation": "none"}, working_dir="/tmp")
    check("a directory can be named", two.execute_command("pwd", timeout=20).stdout.strip() == "/tmp")
    two.cleanup()
    two.cleanup()
    nothing_is_left("of one that is cleaned up")
    error = raised(GloveportError, GloveportWorkspace, sandbox={"runtime": "no-such-runtime"})
    check("one that cannot be started says why", "no-such-runtime" in str(error), error)
    interrupted(lambda: GloveportWorkspace(sandbox={"isolation": LEVEL}), GloveportWorkspace.cleanup)
    raised(GloveportError, GloveportWorkspace, sandbox={"isolation": LEVEL}, working_dir="/dev/null/x")
    nothing_is_left("of one whose directory cannot be made")
    example("openhands_workspace.py", "Linux")
    killed()


if sys.argv[1:] == ["hold"]:
    held = GloveportWorkspace(sandbox={"isolation": "none"})
    hold()
else:
    main()
    finish()
