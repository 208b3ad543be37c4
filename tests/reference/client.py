"""The reference's own client, unmodified, starts our binary and drives it.

    client.py BINARY

`LocalRuntime` starts `sys.executable -u -m openhands.runtime.action_execution_server PORT ...`. Here `sys.executable` is
a link to BINARY; nothing else of the reference is changed. Prints one line a check and, last,
`N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import os
import sys
import tempfile
import time
import zipfile

BINARY = os.path.abspath(sys.argv[1])
HOME = tempfile.mkdtemp(prefix="reference-client-")
# Tools that become the user again would have that user's home.
os.environ.update(
    HOME=HOME, USER="root", LOG_LEVEL="ERROR", NO_CHANGE_TIMEOUT_SECONDS="2", SKIP_DEPENDENCY_CHECK="1", SU_TO_USER="false"
)
os.environ.pop("SESSION_API_KEY", None)

from openhands.core.config import OpenHandsConfig  # noqa: E402
from openhands.events import EventStream  # noqa: E402
from openhands.events.action import (  # noqa: E402
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from openhands.events.observation import (  # noqa: E402
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
)
from openhands.llm.llm_registry import LLMRegistry  # noqa: E402
from openhands.runtime.impl.local.local_runtime import LocalRuntime  # noqa: E402
from openhands.storage import get_file_store  # noqa: E402

passed = failed = 0


def check(name, found, expected):
    global passed, failed
    if found == expected:
        passed += 1
        print(f"ok      {name}")
    else:
        failed += 1
        print(f"FAILED  {name}\n        expected {expected!r}\n        found    {found!r}")


def run(runtime, command, timeout=None, blocking=False, **arguments):
    action = CmdRunAction(command=command, **arguments)
    if timeout:
        action.set_hard_timeout(timeout, blocking=blocking)
    return runtime.run(action)


def main():
    launcher = os.path.join(HOME, "python")
    os.symlink(BINARY, launcher)
    config = OpenHandsConfig()
    config.workspace_base = os.path.join(HOME, "workspace")
    os.mkdir(config.workspace_base)
    config.enable_browser = False
    config.run_as_openhands = False
    # The client sends the user id 1000 with the name root where the real id is 0; root is never created.
    stream = EventStream("check", get_file_store("local", HOME))
    runtime = LocalRuntime(config, stream, LLMRegistry(config), sid="check", env_vars={"FROM_CLIENT": "a \"b\" $c"})
    real, sys.executable = sys.executable, launcher
    began = time.monotonic()
    try:
        asyncio.run(runtime.connect())
    finally:
        sys.executable = real
    print(f"        connected after {time.monotonic() - began:.2f} s")
    pid = runtime.server_process.pid
    try:
        drive(runtime, config.workspace_base)
    finally:
        runtime.close()
    for _ in range(500):
        if not os.path.exists(f"/proc/{pid}"):
            break
        time.sleep(0.01)
    check("the client stops the server", os.path.exists(f"/proc/{pid}"), False)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    # Threads of the client may outlive it.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


def drive(runtime, workspace):
    seen = run(runtime, "echo hi")
    check("a command gives an observation of the client's own type", type(seen), CmdOutputObservation)
    check("its content", (seen.content, seen.exit_code, seen.success), ("hi", 0, True))
    check("its directory", seen.metadata.working_dir, workspace)
    check("its suffix", seen.metadata.suffix, "\n[The command completed with exit code 0.]")
    seen = run(runtime, "cd / && x=5; false")
    check("a failing command", (seen.content, seen.exit_code, seen.success), ("", 1, False))
    seen = run(runtime, "echo $x; pwd")
    check("state is kept", seen.content, "5\n/")
    seen = run(runtime, "tail -n 1 ~/.bashrc | cut -d= -f1")
    check("variables of the client are in ~/.bashrc", seen.content, "export FROM_CLIENT")
    seen = run(runtime, "alias git")
    check("git has no pager", seen.content, "alias git='git --no-pager'")
    seen = run(runtime, "read -p 'name? ' name; echo \"hello $name\"")
    check("a question stops at the soft limit", (seen.content, seen.exit_code), ("name?", -1))
    check("and says so", seen.metadata.suffix.startswith("\n[The command has no new output after 2 seconds. "), True)
    seen = run(runtime, "echo other")
    check("another command is refused", "is NOT executed" in seen.metadata.suffix, True)
    seen = run(runtime, "ann", is_input=True)
    check("input is typed", (seen.content, seen.exit_code), ("hello ann", 0))
    seen = run(runtime, "for i in 1 2 3 4 5 6; do echo $i; sleep 1; done", timeout=1.5, blocking=True)
    check("the hard limit", (seen.content, seen.exit_code), ("1\n2", -1))
    seen = run(runtime, "C-c", is_input=True)
    check("a key interrupts", (seen.exit_code, "CTRL+C was sent" in seen.metadata.suffix), (130, True))
    seen = run(runtime, "echo a\necho b")
    check("several commands are refused", (type(seen), "(2) echo b" in seen.content), (ErrorObservation, True))
    seen = run(runtime, "seq 1 20000")
    check("long output is cut as the client cuts it", len(seen.content), 30047)
    seen = run(runtime, "seq 1 9000", hidden=True)
    check("hidden output is whole", len(seen.content.split("\n")), 9000)
    seen = run(runtime, "pwd", is_static=True, cwd="/usr")
    check("a static command", (seen.content, seen.metadata.working_dir), ("/usr", "/usr"))
    seen = run(runtime, "exit 3")
    check("exit is reported", seen.exit_code, 3)
    seen = run(runtime, "echo back")
    check("and the shell is back", (seen.content, seen.exit_code), ("back", 0))
    files(runtime, workspace)
    try:
        runtime.run_ipython(IPythonRunCellAction(code="1+1"))
        check("a cell without the plugin is an error", "no error", "an error")
    except Exception as error:  # the client's own error type
        check("a cell without the plugin is an error", "JupyterRequirement not found" in str(error), True)


def files(runtime, workspace):
    path = os.path.join(workspace, "notes", "a.txt")
    seen = runtime.write(FileWriteAction(path=path, content="one\ntwo"))
    check("a file is written", (type(seen), seen.path), (FileWriteObservation, path))
    seen = runtime.read(FileReadAction(path=path))
    check("and read", (type(seen), seen.content), (FileReadObservation, "one\ntwo\n"))
    seen = runtime.edit(FileEditAction(path=path, command="str_replace", old_str="two", new_str="2"))
    check("and edited", (type(seen), seen.diff.splitlines()[2:]), (FileEditObservation, ["@@ -2 +2 @@", "-two", "+2"]))
    seen = runtime.edit(FileEditAction(path=path, command="undo_edit"))
    check("the edit is taken back", "undone successfully" in seen.content, True)
    seen = runtime.read(FileReadAction(path="/nonexistent"))
    check("a missing file is an error", (type(seen), seen.content.startswith("File not found: /nonexistent.")), (ErrorObservation, True))
    source = os.path.join(HOME, "tree")
    os.makedirs(os.path.join(source, "sub"))
    for name, content in (("top.txt", "top"), ("sub/deep.txt", "deep")):
        with open(os.path.join(source, name), "w", encoding="utf-8") as file:
            file.write(content)
    runtime.copy_to(source, workspace, recursive=True)
    check("a tree is copied in", runtime.list_files(os.path.join(workspace, "tree")), ["sub/", "top.txt"])
    runtime.copy_to(os.path.join(source, "top.txt"), os.path.join(workspace, "single"))
    check("a file is copied in", runtime.list_files(os.path.join(workspace, "single")), ["top.txt"])
    with zipfile.ZipFile(runtime.copy_from(os.path.join(workspace, "tree"))) as archive:
        check("a tree is copied out", sorted(archive.namelist()), ["sub/deep.txt", "top.txt"])
        check("with its contents", archive.read("sub/deep.txt"), b"deep")


main()
