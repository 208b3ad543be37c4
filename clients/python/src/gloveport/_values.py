"""What operations return."""

from __future__ import annotations

import stat as modes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ._errors import CellFailedError, CommandFailedError, CommandTimedOutError


@dataclass(frozen=True)
class Usage:
    """What a command used: seconds, and bytes (absent where it ended before they were looked at)."""

    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int | None = None
    written_bytes: int | None = None


@dataclass(frozen=True)
class Result:
    """How a command ended.

    `output` is what it wrote to its terminal, standard error included. `dropped` bytes at its beginning were left out
    because it was longer than asked for, and `missing` bytes because the sandbox no longer had them.
    """

    id: str
    command: str
    output: str
    #: The exit status; none if the command was given up.
    exit_code: int | None
    #: `exited`, `timed_out`, `cancelled`, `refused`, `shell_ended` or `failed`.
    reason: str
    #: What failed, for people.
    message: str = ""
    #: Working directory of the shell afterwards.
    cwd: str | None = None
    usage: Usage | None = None
    dropped: int = 0
    missing: int = 0

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0, be it that of `exit`, which also ends the shell."""
        return self.reason in ("exited", "shell_ended") and self.exit_code == 0

    def check(self) -> Result:
        """This result, if the command ended with exit code 0.

        Raises `CommandTimedOutError` if its time limit passed, and `CommandFailedError` for any other end.
        """
        if self.ok:
            return self
        raise (CommandTimedOutError if self.reason == "timed_out" else CommandFailedError)(self)

    def describe(self) -> str:
        """How it ended, in words, with the last lines of its output."""
        how = self.message or self.reason if self.exit_code is None else f"exit code {self.exit_code}"
        last = "\n".join(self.output.rstrip().splitlines()[-20:])
        return f"`{self.command}` failed: {how}" + (f"\n{last}" if last else "")


@dataclass(frozen=True)
class Output:
    """A part of a command's output."""

    #: Offset of its first byte, counted from the beginning of the command's output.
    offset: int
    data: bytes
    #: Where the next part begins.
    next: int
    #: Whether the command has ended, and nothing comes behind this part.
    ended: bool

    @property
    def text(self) -> str:
        """The bytes as text. A character that a part cuts in two is shown as �."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class CommandStatus:
    """How a command stands."""

    id: str
    command: str
    state: Literal["queued", "running", "ended"]
    #: Whether it waits for input; only while it runs.
    waiting_for_input: bool = False
    #: Whether it waits for input that its terminal does not show, such as a password.
    hides_input: bool = False
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class FileStat:
    """What is at a path."""

    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    #: Bytes.
    size: int
    #: Permission bits, such as 0o644.
    mode: int
    uid: int
    gid: int
    #: Time of the last change of the content, in seconds since 1970.
    modified: float
    #: What a link points to.
    target: str | None = None

    def is_file(self) -> bool:
        return self.kind == "file"

    def is_dir(self) -> bool:
        return self.kind == "directory"

    def is_symlink(self) -> bool:
        return self.kind == "symlink"

    def filemode(self) -> str:
        """The mode as `ls -l` shows it."""
        kinds = {"file": modes.S_IFREG, "directory": modes.S_IFDIR, "symlink": modes.S_IFLNK, "other": 0}
        return modes.filemode(kinds[self.kind] | self.mode)


@dataclass(frozen=True)
class GrepLine:
    """A line of a file that matches, or stands near one that does."""

    #: The file, relative to the directory that was searched.
    path: str
    #: Counted from 1.
    line: int
    #: Without its end, and cut after 4,096 characters.
    text: str
    is_match: bool = True


@dataclass(frozen=True)
class GrepResult:
    """What a search for lines has found."""

    lines: tuple[GrepLine, ...]
    #: Whether there are more matches than were asked for.
    truncated: bool
    #: Files that could not be read, with the reason; at most 100.
    skipped: tuple[str, ...]

    def __iter__(self) -> Iterator[GrepLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True)
class FileChange:
    """Something that happened to a file.

    With `overflow`, changes were lost, because they came faster than they were read or the connection broke: look at
    everything again.
    """

    kind: Literal["created", "modified", "attributes", "removed", "overflow"]
    #: Absolute; empty with `overflow`.
    path: str
    is_directory: bool = False


@dataclass(frozen=True)
class Copied:
    """What was copied."""

    #: Files and links.
    files: int
    #: Bytes of the files' contents.
    bytes: int


@dataclass(frozen=True)
class CellError:
    """The exception that a cell raised."""

    name: str
    value: str
    traceback: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """What became of a cell."""

    stdout: str
    stderr: str
    #: The value of its last expression in all its forms by their types (`text/plain`, `text/html`, `image/png` in
    #: base64).
    result: Mapping[str, object] | None
    #: What it displayed otherwise, in the same form, in its order.
    displays: tuple[Mapping[str, object], ...]
    error: CellError | None
    #: `completed`, `raised`, `timed_out` or `died`.
    reason: str
    #: Whether the kernel had ended before this cell, so that variables of earlier cells are gone.
    kernel_lost_before: bool = False

    @property
    def text(self) -> str:
        """The result as text; empty if there is none."""
        value = (self.result or {}).get("text/plain", "")
        return value if isinstance(value, str) else ""

    def check(self) -> Cell:
        """This cell, if it came to its end; raises `CellFailedError` otherwise."""
        if self.reason == "completed":
            return self
        if self.error is not None:
            raise CellFailedError(f"{self.error.name}: {self.error.value}", code=self.reason)
        raise CellFailedError(f"the cell did not come to its end: {self.reason}", code=self.reason)


@dataclass(frozen=True)
class ProcessOutput:
    """Bytes that a process wrote."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended: with an exit code, or by a signal."""

    exit_code: int | None
    signal: int | None
    timed_out: bool = False


@dataclass(frozen=True)
class Completed:
    """A process that has ended, and all that it wrote.

    `lost` bytes were written faster than they were read for more than a minute, and are not there.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    signal: int | None
    timed_out: bool = False
    lost: int = 0


@dataclass(frozen=True)
class ProcessInfo:
    """A process as the sandbox lists it."""

    id: str
    pid: int
    argv: tuple[str, ...]
    cwd: str
    tag: str | None = None
    end: ProcessEnd | None = None


@dataclass(frozen=True)
class SandboxState:
    """What the sandbox does, and since when, in seconds."""

    state: Literal["running", "paused"]
    since_seconds: float
    #: Seconds since the last request that was not about its state.
    idle_seconds: float
    #: How many of these it takes until it ends by itself, if it ends so.
    idle_limit_seconds: float | None = None


@dataclass(frozen=True)
class Secret:
    """A secret for a sandbox.

    With `hosts` the sandbox has a placeholder, and only HTTPS requests to these hosts get the value (isolation
    `container`). Without them it is a variable of its commands, which stays out of logs and histories.
    """

    value: str = field(repr=False)
    hosts: tuple[str, ...] = ()
