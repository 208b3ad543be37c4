"""Uses a generated client: lists, runs, reads, writes, searches, and runs a cell. Prints a line for each."""

import io
import sys
import time

from generated import AuthenticatedClient
from generated.api.commands import get_command, list_commands, read_output, run_command, type_into_command
from generated.api.files import (
    find_files, list_directory, make_directory, move_file, read_file, remove_file, search_files, stat_file, write_file,
)
from generated.api.kernels import list_kernels, run_cell
from generated.api.openhands_0_62 import execute_action, list_files
from generated.api.sandbox import get_sandbox
from generated.api.terminals import list_terminals, remove_terminal, start_terminal
from generated.models import (
    CellRequest, Error, ExecInput, ExecRequest, ExecuteActionRequest, GlobRequest, GrepRequest, ListFilesRequest,
    MkdirRequest, MoveRequest, RemoveRequest, TerminalRequest,
)
from generated.types import File

url, key, cell = sys.argv[1:4]
client = AuthenticatedClient(
    base_url=url, token=key, prefix="", auth_header_name="X-Session-API-Key", raise_on_unexpected_status=True, timeout=60
)


def done(name, condition, found):
    if not condition:
        raise SystemExit(f"failed {name}: {found!r}")
    print(f"passed the client {name}", flush=True)


stored = write_file.sync(client=client, body=File(payload=io.BytesIO(b"one\ntwo\n")), path="a.txt", mode="0640")
done("writes a file", getattr(stored, "bytes_", None) == 8, stored)
content = read_file.sync(client=client, path="a.txt")
done("reads a file", content.payload.read() == b"one\ntwo\n", content)
listing = list_directory.sync(client=client)
done("lists a directory", [entry.path for entry in listing.entries] == ["a.txt"], listing)
entry = stat_file.sync(client=client, path="a.txt")
done("looks at a file", entry.mode == "0640" and entry.size == 8, entry)
missing = stat_file.sync(client=client, path="missing")
done("reads an error", isinstance(missing, Error) and missing.error.code == "not_found", missing)
make_directory.sync(client=client, body=MkdirRequest(path="d/e", parents=True, mode="0700"))
done("makes a directory", stat_file.sync(client=client, path="d/e").mode == "0700", "its mode")
found = search_files.sync(client=client, body=GrepRequest(pattern="tw.", globs=["*.txt"]))
done("finds lines", [(line.line, line.text) for line in found.lines] == [(2, "two")], found)
found = find_files.sync(client=client, body=GlobRequest(globs=["*.txt"]))
done("finds names", [one.path for one in found.entries] == ["a.txt"], found)
move_file.sync(client=client, body=MoveRequest(from_="a.txt", to="d/b.txt"))
done("moves a file", stat_file.sync(client=client, path="d/b.txt").size == 8, "its size")
remove_file.sync(client=client, body=RemoveRequest(path="d", recursive=True))
done("removes a directory", list_directory.sync(client=client).entries == [], "what is left")

started = run_command.sync(client=client, body=ExecRequest(id="greet", command="read name; echo hi $name"), follow=False)
done("starts a command", started.id == "greet", started)


def wait_for(condition):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status = get_command.sync("greet", client=client)
        if condition(status):
            return status
        time.sleep(0.02)
    raise SystemExit("failed: the command does not come so far")


wait_for(lambda status: status.waiting_for_input is True)
type_into_command.sync("greet", client=client, body=ExecInput(text="you"))
status = wait_for(lambda status: status.state == "ended")
done("types into a command and sees its end", (status.exit_code, status.reason) == (0, "exited"), status)
output = read_output.sync("greet", client=client, offset=0).payload.read()
done("reads its output from the beginning", output.endswith(b"hi you\n"), output)
done("lists commands", [one.id for one in list_commands.sync(client=client).execs] == ["greet"], "others")
events = run_command.sync(client=client, body=ExecRequest(command="echo streamed"))
done("follows a command", "event: exit" in events and "streamed" in events, events)

observed = execute_action.sync(
    client=client, body=ExecuteActionRequest.from_dict({"action": {"action": "run", "args": {"command": "echo old"}}})
)
done("executes an action of OpenHands", observed.content == "old", observed)
names = list_files.sync(client=client, body=ListFilesRequest())
done("lists files as OpenHands does", names == [], names)
terminal = start_terminal.sync(client=client, body=TerminalRequest(argv=["cat"]))
known = [one.id for one in list_terminals.sync(client=client).terminals]
ended = remove_terminal.sync(terminal.id, client=client)
done("starts, lists and ends a terminal", known == [terminal.id] and ended.id == terminal.id, known)
done("asks for the sandbox", get_sandbox.sync(client=client).state == "running", "its state")

if cell == "cell":
    result = run_cell.sync("default", client=client, body=CellRequest(code="print(6 * 7)", timeout=120))
    done("runs a cell", (result.text.strip(), result.end) == ("42", "completed"), result)
    late = run_cell.sync("default", client=client, body=CellRequest(code="while True: pass", timeout=0.5))
    done("sees the time limit of a cell", late.end == "timed_out", late)
    kernels = list_kernels.sync(client=client).kernels
    done("lists kernels", [one.name for one in kernels] == ["default"], kernels)
