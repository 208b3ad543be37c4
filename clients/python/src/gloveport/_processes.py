"""Operations with processes: programs with pipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from . import _errors as errors
from ._core import Emit, Op, Request, Retry, Stream, decoded, opened, perform, piece, rest
from ._events import EventParser
from ._values import Completed, ProcessEnd, ProcessInfo, ProcessOutput

if TYPE_CHECKING:
    from . import _wire as wire

#: Most bytes of input that the server takes at a time.
INPUT = 1024 * 1024
#: Bytes of output that the server keeps.
MOST_KEPT = 1024 * 1024


def _path(id: str, what: str = "") -> str:
    return f"/v1/processes/{quote(id, safe='')}{what}"


def start(
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bool,
    tag: str | None,
    timeout: float | None,
) -> Op[ProcessInfo]:
    """Starts a process. The request has no id, so it is sent only once."""
    body: wire.ProcessRequest = {"argv": list(argv), "stdin": stdin}
    if cwd is not None:
        body["cwd"] = cwd
    if env:
        body["env"] = dict(env)
    if tag is not None:
        body["tag"] = tag
    if timeout is not None:
        body["timeout"] = timeout
    response = yield from perform(Request("POST", "/v1/processes", json=body))
    return info(cast("wire.ProcessStatus", decoded(response)))


def info(told: wire.ProcessStatus) -> ProcessInfo:
    end = told.get("end")
    return ProcessInfo(
        id=told["id"],
        pid=told["pid"],
        argv=tuple(told["argv"]),
        cwd=told["cwd"],
        tag=told.get("tag"),
        end=None if end is None else _end(cast("dict[str, Any]", end)),
    )


def _end(told: Mapping[str, Any]) -> ProcessEnd:
    return ProcessEnd(told.get("exit_code"), told.get("signal"), bool(told.get("timed_out")))


def listed() -> Op[list[ProcessInfo]]:
    """The processes that run, and the latest that ended."""
    response = yield from perform(Request("GET", "/v1/processes", repeatable=True))
    return [info(told) for told in cast("wire.ProcessList", decoded(response))["processes"]]


def get(id: str) -> Op[ProcessInfo]:
    """How a process stands."""
    response = yield from perform(Request("GET", _path(id), repeatable=True))
    return info(cast("wire.ProcessStatus", decoded(response)))


class Kept:
    """All that a process wrote."""

    def __init__(self) -> None:
        self.parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self.lost = 0

    def take(self, output: ProcessOutput) -> None:
        self.parts[output.stream].append(output.data)

    def completed(self, end: ProcessEnd) -> Completed:
        stdout, stderr = (b"".join(self.parts[name]) for name in ("stdout", "stderr"))
        return Completed(stdout, stderr, end.exit_code, end.signal, end.timed_out, self.lost)


class Progress:
    """What was received of a process's output.

    The server counts no bytes of it. But it keeps the last MiB and begins with that, so as long as a process has not
    written more, what was received before is the beginning of what comes again.
    """

    def __init__(self) -> None:
        from hashlib import blake2b

        self._size = 0
        self._digest = blake2b()

    def add(self, output: ProcessOutput) -> None:
        self._size += len(output.data)
        self._digest.update(output.stream.encode() + b":%d:" % len(output.data) + output.data)

    def lose(self, size: int) -> None:
        """Output was let go, so what comes again has another beginning."""
        self._size += size + MOST_KEPT

    def is_behind(self, before: Progress) -> bool:
        """Whether all that was received before has come again. Raises `OutputGoneError` if it does not come."""
        if self._size < before._size <= MOST_KEPT:
            return False
        if self._size != before._size or self._digest.digest() != before._digest.digest():
            raise _gone()
        return True


def _gone() -> errors.OutputGoneError:
    return errors.OutputGoneError(
        "the connection broke, and the process has written more than the sandbox keeps, so its output cannot be "
        "followed from where it was; the process goes on",
        code="output_gone",
        remedy="let it write into a file, or use `start` of the sandbox, which keeps more",
    )


def follow(id: str, kept: Kept | None = None) -> Stream[ProcessOutput, ProcessEnd]:
    """Hands out what a process writes, from the beginning of what is kept, and goes on when the connection breaks."""
    retry = Retry()
    received = Progress()
    while True:
        again = Progress()
        is_new = again.is_behind(received)
        try:
            yield from opened(Request("GET", _path(id, "/output"), {"from": "start"}))
            retry.opened()
            parser = EventParser()
            while data := (yield from piece()):
                for event in parser.feed(data):
                    if event.name == "output":
                        output = ProcessOutput(
                            "stderr" if event.data["stream"] == "stderr" else "stdout", event.output()
                        )
                        if not is_new:
                            again.add(output)
                            is_new = again.is_behind(received)
                            continue
                        retry.progressed()
                        received.add(output)
                        if kept is not None:
                            kept.take(output)
                        yield Emit(output)
                    elif event.name == "lost":
                        lost = int(event.data["bytes"])
                        received.lose(lost)
                        if kept is not None:
                            kept.lost += lost
                    elif event.name == "exit":
                        if not is_new:
                            raise _gone()
                        yield from rest()
                        return _end(event.data)
            raise errors.ConnectionLostError("the server ended the stream of a process that has not ended")
        except (errors.UnreachableError, errors.ConnectionLostError) as error:
            yield from retry.wait(error)


def completed(id: str) -> Stream[ProcessOutput, Completed]:
    """Waits for the end of a process, and keeps all that it writes."""
    kept = Kept()
    end = yield from follow(id, kept)
    return kept.completed(end)


def send_input(id: str, data: bytes) -> Op[None]:
    """Gives input to a process, in parts that the server takes."""
    headers = {"Content-Type": "application/octet-stream"}
    for at in range(0, len(data), INPUT):
        yield from perform(Request("POST", _path(id, "/input"), headers=headers, content=data[at : at + INPUT]))


def close_input(id: str) -> Op[None]:
    """Ends the input of a process."""
    yield from perform(Request("DELETE", _path(id, "/input"), repeatable=True))


def signal(id: str, name: str, group: bool) -> Op[None]:
    """Sends a signal to a process."""
    yield from perform(Request("POST", _path(id, "/signal"), json={"name": name.removeprefix("SIG"), "group": group}))


def remove(id: str) -> Op[ProcessInfo]:
    """Ends a process and everything that it started."""
    response = yield from perform(Request("DELETE", _path(id)))
    return info(cast("wire.ProcessStatus", decoded(response)))
