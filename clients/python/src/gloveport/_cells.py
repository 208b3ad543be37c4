"""Operations with IPython kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from . import _errors as errors
from ._core import Emit, Op, Request, Retry, Stream, opened, perform, perform_once, piece, rest
from ._events import Event, EventParser
from ._values import Cell, CellError

if TYPE_CHECKING:
    from . import _wire as wire


def _path(kernel: str, what: str) -> str:
    return f"/v1/kernels/{quote(kernel, safe='')}/{what}"


@dataclass
class _Shown:
    """What a cell has shown so far."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    result: dict[str, object] | None = None
    displays: list[dict[str, object]] = field(default_factory=list)
    error: CellError | None = None

    def take(self, event: Event) -> str:
        """Keeps what an event shows, and returns its text."""
        data = event.data
        if event.name == "stream":
            text = str(data["text"])
            (self.stderr if data["stream"] == "stderr" else self.stdout).append(text)
            return text
        if event.name == "display":
            if data["is_result"]:
                self.result = data["data"]
            else:
                self.displays.append(data["data"])
            return str(data["data"].get("text/plain", ""))
        if event.name == "raised":
            self.error = CellError(str(data["name"]), str(data["value"]), tuple(map(str, data["traceback"])))
            return "\n".join(self.error.traceback)
        return ""

    def cell(self, end: Event) -> Cell:
        return Cell(
            stdout="".join(self.stdout),
            stderr="".join(self.stderr),
            result=self.result,
            displays=tuple(self.displays),
            error=self.error,
            reason=str(end.data["end"]),
            kernel_lost_before=bool(end.data["kernel_lost_before"]),
        )


def run(code: str, kernel: str, timeout: float | None) -> Stream[str, Cell]:
    """Runs a cell, and hands out what it shows as text. A cell has no id, so it is sent only once."""
    body: wire.CellRequest = {"code": code}
    if timeout is not None:
        body["timeout"] = timeout
    request = Request("POST", _path(kernel, "execute"), {"follow": "true", "detail": "true"}, json=body)
    retry = Retry()
    while True:
        try:
            yield from opened(request)
            break
        except errors.UnreachableError as error:
            yield from retry.wait(error)
    shown = _Shown()
    parser = EventParser()
    while received := (yield from piece()):
        for event in parser.feed(received):
            if event.name == "end":
                yield from rest()
                return shown.cell(event)
            if event.name == "failed":
                raise errors.ServerFailedError(str(event.data["message"]), code="kernel_failed")
            if text := shown.take(event):
                yield Emit(text)
    raise errors.ConnectionLostError("the server ended the stream of a cell that has not ended")


def interrupt(kernel: str) -> Op[None]:
    """Interrupts the cell that runs."""
    yield from perform(Request("POST", _path(kernel, "interrupt")))


def give_up(kernel: str) -> Op[None]:
    """The same without patience, for who leaves."""
    yield from perform_once(Request("POST", _path(kernel, "interrupt")))


def restart(kernel: str) -> Op[None]:
    """Ends a kernel, and starts another one of its name."""
    yield from perform(Request("POST", _path(kernel, "restart")))
