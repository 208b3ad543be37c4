"""Operations with terminals.

What a terminal writes has offsets, and what is typed into it is counted. So a connection that breaks is made again
without losing or doubling a byte.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast
from urllib.parse import quote

from . import _errors as errors
from ._core import Op, Request, Retry, Sleep, decoded, foreign, perform

if TYPE_CHECKING:
    from . import _wire as wire


@dataclass(frozen=True)
class TerminalEnd:
    """How the program of a terminal ended."""

    #: As a shell has it: the exit status, or 128 plus the signal; -1 if it is not known.
    exit_code: int
    signal: int | None


@dataclass(frozen=True)
class TerminalInfo:
    """A terminal as the sandbox lists it."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    #: Size in characters.
    cols: int
    rows: int
    pid: int | None = None
    end: TerminalEnd | None = None


T = TypeVar("T")

#: Most bytes of input in a message, and most that the terminal may not have taken yet.
PIECE, WINDOW = 16 * 1024, 64 * 1024
#: Bytes of output that wait here for their reader. What comes behind them is asked for when they have been read.
HELD = 1024 * 1024
#: Seconds within which a terminal has to take what is typed.
TAKING = 30.0
#: Why the server closes a connection: the program has ended, a message was not understood, the output is unreadable.
ENDED, INVALID, UNREADABLE = 1000, 1008, 4002


@dataclass(frozen=True)
class Dial:
    """Makes a connection."""

    path: str
    query: Mapping[str, str]


@dataclass(frozen=True)
class Receive:
    """Waits for the next message; raises `TimeoutError` after so many seconds."""

    seconds: float | None


@dataclass(frozen=True)
class Transmit:
    """Sends a message."""

    data: bytes


@dataclass(frozen=True)
class HangUp:
    """Ends the connection."""


Contact: TypeAlias = "Dial | Receive | Transmit | HangUp | Sleep"
#: A part of a conversation with a terminal. As with operations, somebody else performs what it yields.
Talk: TypeAlias = Generator[Contact, "str | bytes | None", T]


class HungUpError(errors.ConnectionLostError):
    """The server has closed the connection, or it broke."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the connection to the terminal ended: {reason or status}")
        self.status = status


def _path(id: str, what: str = "") -> str:
    return f"/v1/terminals/{quote(id, safe='')}{what}"


def start(
    command: str | Sequence[str] | None,
    id: str | None,
    cols: int,
    rows: int,
    cwd: str | None,
    env: Mapping[str, str] | None,
) -> Op[TerminalInfo]:
    """Starts a terminal. Its id is chosen here, and the server starts only one of each."""
    body: wire.TerminalRequest = {"id": id or f"py-{os.urandom(12).hex()}", "columns": cols, "rows": rows}
    if command is not None:
        body["argv"] = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if cwd is not None:
        body["cwd"] = cwd
    if env:
        body["env"] = dict(env)
    response = yield from perform(Request("POST", "/v1/terminals", json=body, repeatable=True))
    return info(cast("wire.TerminalStatus", decoded(response)))


def info(told: wire.TerminalStatus) -> TerminalInfo:
    code = told.get("exit_code")
    return TerminalInfo(
        id=told["id"],
        argv=tuple(told["argv"]),
        cwd=told["cwd"],
        cols=told["columns"],
        rows=told["rows"],
        pid=told.get("pid"),
        end=None if told["state"] != "ended" or code is None else TerminalEnd(code, told.get("signal")),
    )


def listed() -> Op[list[TerminalInfo]]:
    """The terminals that run, and the latest that ended."""
    response = yield from perform(Request("GET", "/v1/terminals", repeatable=True))
    return [info(told) for told in cast("wire.TerminalList", decoded(response))["terminals"]]


def status(id: str) -> Op[TerminalInfo]:
    """How a terminal stands."""
    response = yield from perform(Request("GET", _path(id), repeatable=True))
    return info(cast("wire.TerminalStatus", decoded(response)))


def resize(id: str, cols: int, rows: int) -> Op[None]:
    """Sets the size of a terminal."""
    body: wire.TerminalSize = {"columns": cols, "rows": rows}
    yield from perform(Request("POST", _path(id, "/resize"), json=body, repeatable=True))


def remove(id: str) -> Op[None]:
    """Ends a terminal. One that is not known is no error."""
    with contextlib.suppress(errors.NotFoundError):
        yield from perform(Request("DELETE", _path(id), repeatable=True))


class Link:
    """How far the conversation with a terminal is, whatever becomes of its connections."""

    def __init__(self, id: str) -> None:
        self.id = id
        #: Output that nobody has read.
        self.held = bytearray()
        #: Bytes of output that the sandbox no longer had.
        self.missing = 0
        #: How the program ended, once that is known.
        self.end: TerminalEnd | None = None
        self._client = f"py-{os.urandom(12).hex()}"
        # Offset behind the output that is held or was read.
        self._offset = 0
        # More output came than is held, so it has to be asked for again.
        self._is_behind = False
        self._is_open = False
        # The program has ended, and all its output came.
        self._is_whole = False
        # The server has said where the conversation goes on.
        self._is_ready = False
        # Input that the terminal has not taken, as far as it is known; how much it took before that; and where what
        # this connection has sent ends.
        self._typed = bytearray()
        self._taken = 0
        self._sent = 0
        self._retry = Retry()

    def has_output(self) -> bool:
        """Whether there is something to read, or never will be."""
        return bool(self.held) or self.is_over()

    def is_over(self) -> bool:
        """Whether the program has ended, and all its output is here."""
        return self._is_whole

    def has_ended(self) -> bool:
        """Whether the program has ended."""
        return self.end is not None

    def has_room(self, size: int) -> bool:
        """Whether so much can be typed now, or never."""
        return self.has_ended() or (self._is_ready and len(self._typed) + size <= WINDOW)

    def has_sent(self) -> bool:
        """Whether all that was typed is on its way, or never will be."""
        return self.has_ended() or (self._is_ready and self._sent == self._taken + len(self._typed))

    def is_behind(self) -> bool:
        """Whether more output came than is held."""
        return self._is_behind

    def is_stale(self) -> bool:
        """Whether the connection has gone past output that somebody can read now, so another one has to be made."""
        return self._is_open and self._is_behind and not self.held

    def read(self, most: int) -> bytes:
        """Takes output that is held."""
        data = bytes(self.held[:most])
        del self.held[:most]
        return data

    def type(self, data: bytes) -> Talk[None]:
        """Types something. If the connection breaks, the next step sends it."""
        if self.has_ended():
            raise errors.ConflictError(
                f"the program on the terminal `{self.id}` has ended", status=409, code="not_running"
            )
        self._typed += data
        try:
            yield from self._flush()
        except errors.ConnectionLostError:
            self._is_open = self._is_ready = False

    def step(self, seconds: float | None) -> Talk[None]:
        """Makes the connection if there is none, and takes the next message."""
        try:
            if self.is_stale():
                self._is_open = self._is_ready = False
                yield HangUp()
            if not self._is_open:
                yield Dial(_path(self.id, "/attach"), {"offset": str(self._offset), "client": self._client})
                self._is_open, self._is_behind = True, False
                self._retry.opened()
            self._take((yield Receive(seconds)))
            yield from self._flush()
        except HungUpError as error:
            was_stale = self.is_stale()
            self._is_open = self._is_ready = False
            if error.status in (INVALID, UNREADABLE):
                raise
            if not was_stale and not (error.status == ENDED and self.has_ended()):
                yield from self._retry.wait(error)
        except (errors.UnreachableError, errors.ConnectionLostError, errors.ConflictError) as error:
            self._is_open = self._is_ready = False
            yield from self._retry.wait(error)

    def _flush(self) -> Talk[None]:
        while self._is_ready:
            at = self._sent - self._taken
            piece = bytes(self._typed[at : at + PIECE])
            if not piece:
                return
            self._sent += len(piece)
            yield Transmit(piece)

    def _take(self, message: str | bytes | None) -> None:
        if isinstance(message, bytes):
            if self._is_behind or len(self.held) >= HELD:
                self._is_behind = True
                return
            self.held += message
            self._offset += len(message)
            self._retry.progressed()
            return
        try:
            told = json.loads(message or "")
            self._note(str(told["type"]), told)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise foreign(error) from error

    def _note(self, kind: str, told: Mapping[str, object]) -> None:
        if kind == "start":
            self._acknowledge(_number(told["input"]))
            self._sent, self._is_ready = self._taken, True
        elif kind == "input":
            self._acknowledge(_number(told["offset"]))
        elif kind == "gap" and not self._is_behind:
            to = _number(told["to"])
            self.missing += max(0, to - self._offset)
            self._offset = max(self._offset, to)
        elif kind == "exit":
            signal = told.get("signal")
            self.end = TerminalEnd(_number(told["exit_code"]), None if signal is None else _number(signal))
            self._is_whole = not self._is_behind
        elif kind == "error":
            raise errors.ServerFailedError(str(told["message"]), code="terminal_failed")

    def _acknowledge(self, taken: int) -> None:
        """The terminal has taken so much of what was typed."""
        new = taken - self._taken
        if not 0 <= new <= len(self._typed):
            raise ValueError(f"{taken} bytes of input were taken, of {self._taken + len(self._typed)}")
        del self._typed[:new]
        self._taken = taken


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def pieces(data: bytes | str) -> list[bytes]:
    """Input, in parts that are sent one by one."""
    given = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return [given[at : at + PIECE] for at in range(0, len(given), PIECE)]


class Search:
    """Looks for a marker in the output that is held, while it grows."""

    def __init__(self, link: Link, marker: str | bytes) -> None:
        self._link = link
        self._marker = marker.encode() if isinstance(marker, str) else marker
        if not self._marker:
            raise errors.InvalidRequestError("an empty marker is everywhere", code="invalid_request")
        self._searched = 0
        self._size = 0
        self._end = 0

    def is_over(self) -> bool:
        """Whether it is there, or will not be."""
        held = self._link.held
        if len(held) < self._size:
            # Somebody else has read.
            self._searched = 0
        self._size = len(held)
        at = held.find(self._marker, self._searched)
        self._searched = max(0, len(held) - len(self._marker) + 1)
        self._end = 0 if at < 0 else at + len(self._marker)
        return at >= 0 or self._link.is_over() or len(held) >= HELD

    def size(self) -> int:
        """Bytes up to the end of the marker, or of all output if that has come to its end without it."""
        if not self._end and not self._link.is_over():
            raise errors.GloveportError(
                f"the terminal `{self._link.id}` wrote {HELD} bytes without {self._marker!r} in them",
                code="too_much_output",
                remedy="read what there is, and wait for something else",
            )
        return self._end or len(self._link.held)
