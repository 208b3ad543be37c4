"""Servers of other wires, inside of a sandbox and beside its own one, which end with it.

One whose clients can show the key of the sandbox listens on the loopback address there, and is reached through the
sandbox's server: no port is published. For others the sandbox has a port.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from . import _errors as errors
from . import _processes as processes
from ._process import Process
from ._program import find_program
from ._sandbox import Sandbox
from ._settings import SandboxSettings

#: Seconds that a server may take to listen.
STARTING = 30.0
# Prints which of its arguments is a program of this version.
FIND = 'for each in "$@"; do [ "$("$each" --version 2>/dev/null)" != "$VERSION" ] || { echo "$each"; exit; }; done'


#: The name of the port for clients that cannot show the key of the sandbox, and its number in containers.
PORT, NUMBER = "agent-server", 8000


@dataclass(frozen=True)
class Inside:
    """A server in a sandbox."""

    #: Where clients outside reach it.
    url: str
    #: What clients show to it.
    key: str = field(repr=False)
    #: What they show to the sandbox's own server, which passes the rest on.
    headers: dict[str, str] = field(repr=False)


def by_stdin(box: Sandbox, words: Sequence[str]) -> Inside:
    """Starts one that reads its key from its standard input, by the words behind the program's name."""
    key = secrets.token_hex(16)
    process = _start(box, [*words, "--host", "127.0.0.1", "--port", "0"], box.workspace, stdin=True)
    process.write(key.encode())
    process.close_stdin()
    port = _listening(process)
    session = box._known()
    outer = {"X-Session-API-Key": session.key} if session.key else {}
    return Inside(f"{session.url}/v1/ports/{port}", key, outer)


def with_port(settings: SandboxSettings) -> Sandbox:
    """A sandbox that has a port for one."""
    if settings.runtime == "local":
        # Ports there are those of this machine, so it chooses a free one.
        return settings.described(Sandbox, flags=[*settings.flags, "--port", PORT])
    return settings.described(Sandbox, ports={PORT: NUMBER})


def by_port(box: Sandbox, words: Sequence[str], variable: str, directory: str) -> Inside:
    """Starts one that reads its key from a variable, in a directory of a sandbox of `with_port`, which is made."""
    box.path(directory).mkdir(parents=True, exist_ok=True)
    key = secrets.token_hex(16)
    url = box.url(PORT)
    is_local = box.runtime == "local"
    host, number = ("127.0.0.1", urlsplit(url).port) if is_local else ("0.0.0.0", NUMBER)
    _listening(_start(box, [*words, "--host", host, "--port", str(number)], directory, env={variable: key}))
    return Inside(url.rstrip("/"), key, {})


def _start(
    box: Sandbox, words: list[str], cwd: str | None, *, env: dict[str, str] | None = None, stdin: bool = False
) -> Process:
    # It says in its log where it listens.
    env = {"GLOVEPORT_LOG": "info", **(env or {})}
    return box.processes.start([_program(box), *words], cwd=cwd, env=env, stdin=stdin)


@contextlib.contextmanager
def kept(box: Sandbox) -> Iterator[Sandbox]:
    """Starts a sandbox for a framework that ends it, unless the block fails: then it ends at once."""
    try:
        yield box.open()
    except BaseException:
        box.close()
        raise


def _program(box: Sandbox) -> str:
    """The path of our program in the sandbox: one of the same version that is there, or this one, brought there."""
    program = find_program()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    argv = ["/bin/sh", "-c", FIND, "sh", program, "gloveport"]
    found = box.processes.run(argv, env={"VERSION": version}, timeout=STARTING).stdout.decode().strip()
    if found:
        return found
    made = box.processes.run(["mktemp", "-d"], timeout=STARTING)
    if made.exit_code != 0:
        raise errors.SessionError(f"the sandbox has no directory for a program: {made.stderr.decode()}")
    brought = f"{made.stdout.decode().strip()}/gloveport"
    box.upload(program, brought)
    return brought


def _listening(process: Process) -> int:
    """Waits until it listens, and returns the port. Raises `SessionError` with what it said if it does not."""
    timer = threading.Timer(STARTING, process.remove)
    timer.daemon = True
    timer.start()
    told = b""
    # Nobody who reads no more may hold its log back.
    with contextlib.closing(process._place._transport.items(processes.follow(process.id))) as outputs:
        try:
            for output in outputs:
                told += output.data
                if found := re.search(rb"ready for clients[^\n]*\d:(\d+)[^\n]*\n", told):
                    return int(found[1])
        finally:
            timer.cancel()
    said = told.decode("utf-8", "replace").strip()
    raise errors.SessionError(
        f"`gloveport {process.info.argv[1]}` does not listen in the sandbox: {said or 'it says nothing'}"
    )
