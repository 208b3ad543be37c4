"""Operations with commands.

A command has an id that this side chooses, and its output has offsets. When the connection breaks, the command is
asked for by its id, from the offset that was reached: it is never sent a second time once it may have arrived.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from . import _errors as errors
from ._core import (
    SILENCE,
    Close,
    Emit,
    Op,
    Request,
    Retry,
    SilentError,
    Stream,
    decoded,
    opened,
    perform,
    perform_once,
    piece,
    rest,
)
from ._events import EventParser
from ._values import CommandStatus, Output, Result, Usage

if TYPE_CHECKING:
    from . import _wire as wire

#: Most bytes of output that a `Result` keeps, unless its caller says something else: the last ones.
KEPT = 16 * 1024 * 1024
#: Seconds after which a stream with a deadline is opened anew, so that it does not wait for longer than that.
STEP = 0.2


@dataclass(frozen=True)
class CommandSpec:
    """A command that is to be run."""

    command: str
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    timeout: float | None = None
    id: str = field(default_factory=lambda: f"py-{os.urandom(12).hex()}")

    def body(self) -> wire.ExecRequest:
        body: wire.ExecRequest = {"command": self.command, "id": self.id}
        if self.timeout is not None:
            body["timeout"] = self.timeout
        if self.cwd is not None or self.env:
            # A shell of its own, next to the session's, which keeps its directory and variables.
            body["session"] = "new"
            body["env"] = dict(self.env or {})
            body["cwd"] = self.cwd
        return body

    def request(self, *, follow: bool) -> Request:
        return Request("POST", "/v1/exec", {} if follow else {"follow": "false"}, json=self.body())


def _path(id: str, what: str = "") -> str:
    return f"/v1/exec/{quote(id, safe='')}{what}"


class Deadline:
    """A moment after which nobody waits any more."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    def silence(self) -> float:
        """How long a stream may be silent."""
        left = self.left()
        return SILENCE if left is None else min(SILENCE, max(left, 0.001))

    def passed(self) -> bool:
        return self.left() == 0.0


class Collector:
    """Output of a command: as text when it comes, and its last bytes in the end."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.dropped = 0
        self.missing = 0

    def take(self, data: bytes) -> str:
        self._kept += data
        # Moving the rest takes time, so it is done now and then.
        if len(self._kept) > 2 * self._keep + 65536:
            self._trim()
        return self._decoder.decode(data)

    def end(self) -> str:
        """What is left of a character that was cut."""
        return self._decoder.decode(b"", final=True)

    def text(self) -> str:
        self._trim()
        return self._kept.decode("utf-8", "replace")

    def _trim(self) -> None:
        extra = len(self._kept) - self._keep
        if extra > 0:
            del self._kept[:extra]
            self.dropped += extra


def follow(
    id: str, collector: Collector, first: Request | None = None, offset: int = 0, deadline: Deadline | None = None
) -> Stream[str, dict[str, Any]]:
    """Follows a command to its end, from an offset, and hands out its output as text.

    `first` is the request that starts it.

    Raises `TimeoutError` when the deadline passes; the command goes on.
    """
    retry = Retry()
    deadline = deadline or Deadline(None)
    is_known = first is None
    while True:
        begun = time.monotonic()
        try:
            yield from opened(first or _following(id, offset, deadline.silence()))
            is_known = True
            retry.opened()
            parser = EventParser()
            while True:
                received = yield from piece()
                if not received:
                    raise errors.ConnectionLostError("the server ended the stream of a command that has not ended")
                for event in parser.feed(received):
                    if event.name == "output":
                        retry.progressed()
                        data = event.output()
                        offset = int(event.data["offset"]) + len(data)
                        if text := collector.take(data):
                            yield Emit(text)
                    elif event.name == "gap":
                        collector.missing += int(event.data["to"]) - offset
                        offset = int(event.data["to"])
                    elif event.name == "error":
                        raise errors.ServerFailedError(str(event.data["message"]), code="output_unreadable")
                    elif event.name == "exit":
                        yield from rest()
                        return event.data
                if deadline.passed():
                    raise _late(id)
                if deadline.left() is not None and time.monotonic() - begun > STEP:
                    yield Close()
                    break
        except errors.UnreachableError as error:
            # What starts the command was not sent, and is sent the next time.
            yield from retry.wait(error)
        except SilentError as error:
            first = None
            if deadline.passed():
                raise _late(id) from None
            yield from retry.wait(error)
        except errors.ConnectionLostError as error:
            first = None
            yield from retry.wait(error)
        except errors.NotFoundError as error:
            if is_known:
                raise
            raise _maybe_run(id) from error


def _following(id: str, offset: int, silence: float) -> Request:
    query = {"offset": str(offset)}
    return Request("GET", _path(id, "/output"), query, {"Accept": "text/event-stream"}, silence=silence)


def _late(id: str) -> TimeoutError:
    return TimeoutError(f"the command `{id}` has not ended in time, and goes on")


def _maybe_run(id: str) -> errors.ConnectionLostError:
    return errors.ConnectionLostError(
        f"the connection broke while the command `{id}` was sent, and the server does not know it: "
        "it did not arrive, or the server has been started anew",
        remedy="find out whether it ran before you run it again",
    )


def result(
    id: str, command: str, keep: int, first: Request | None = None, offset: int = 0, deadline: Deadline | None = None
) -> Stream[str, Result]:
    """Follows a command to its end, and says how it ended."""
    collector = Collector(keep)
    told = yield from follow(id, collector, first, offset, deadline)
    if text := collector.end():
        yield Emit(text)
    output = collector.text()
    return Result(
        id=id,
        command=command,
        output=output,
        exit_code=told.get("exit_code"),
        reason=str(told.get("reason", "")),
        message=told.get("message") or "",
        cwd=told.get("cwd"),
        usage=_usage(told.get("usage")),
        dropped=collector.dropped,
        missing=collector.missing,
    )


def _usage(told: wire.ExecUsage | None) -> Usage | None:
    if told is None:
        return None
    return Usage(told["wall_seconds"], told["cpu_seconds"], told.get("peak_memory_bytes"), told.get("written_bytes"))


def run(spec: CommandSpec, keep: int = KEPT) -> Stream[str, Result]:
    """Runs a command to its end."""
    return result(spec.id, spec.command, keep, spec.request(follow=True))


def wait(id: str, command: str, offset: int, timeout: float | None, keep: int) -> Stream[str, Result]:
    """Follows a command that was started to its end."""
    return result(id, command, keep, offset=offset, deadline=Deadline(timeout))


def start(spec: CommandSpec) -> Op[None]:
    """Starts a command, and does not wait for it."""
    try:
        yield from perform(spec.request(follow=False))
    except errors.ConnectionLostError:
        try:
            yield from perform(Request("GET", _path(spec.id), repeatable=True))
        except errors.NotFoundError as error:
            raise _maybe_run(spec.id) from error


def status(id: str) -> Op[CommandStatus]:
    """How a command stands."""
    response = yield from perform(Request("GET", _path(id), repeatable=True))
    return status_of(cast("wire.ExecStatus", decoded(response)))


def status_of(told: wire.ExecStatus) -> CommandStatus:
    return CommandStatus(
        id=told["id"],
        command=told["command"],
        state=told["state"],
        waiting_for_input=bool(told.get("waiting_for_input")),
        hides_input=bool(told.get("hides_input")),
        exit_code=told.get("exit_code"),
        reason=told.get("reason"),
    )


def listed() -> Op[list[CommandStatus]]:
    """All commands that the sandbox knows, in the order of their start."""
    response = yield from perform(Request("GET", "/v1/exec", repeatable=True))
    return [status_of(told) for told in cast("wire.ExecList", decoded(response))["execs"]]


def output(id: str, offset: int, most: int) -> Op[Output]:
    """The output from an offset that there is now."""
    query = {"offset": str(offset), "max": str(most)}
    response = yield from perform(Request("GET", _path(id, "/output"), query, repeatable=True))
    start = int(response.headers.get("x-output-offset", offset))
    next_offset = int(response.headers.get("x-output-next", start + len(response.body)))
    ended = response.headers.get("x-output-state") == "ended" and len(response.body) < most
    return Output(start, response.body, next_offset, ended)


def send_input(id: str, text: str) -> Op[None]:
    """Types into a command."""
    yield from perform(Request("POST", _path(id, "/input"), json={"text": text}))


def interrupt(id: str) -> Op[None]:
    """Interrupts a command as C-c does."""
    yield from perform(Request("POST", _path(id, "/interrupt")))


def kill(id: str) -> Op[None]:
    """Gives a command up."""
    yield from perform(Request("DELETE", _path(id), repeatable=True))


def give_up(id: str) -> Op[None]:
    """The same without patience, for who leaves."""
    yield from perform_once(Request("DELETE", _path(id)))
