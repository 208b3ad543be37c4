"""What the sync and the async client share: operations that say what is to be sent, and never do it themselves.

An operation is a generator. It yields effects (send this, read on, wait a moment), gets what came of them, and returns
its result. A transport performs the effects, with or without `await`. All logic, such as what is done when a connection
breaks, is in operations, and therefore written once.
"""

from __future__ import annotations

import json as jsons
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from . import _errors as errors

T = TypeVar("T")
I_co = TypeVar("I_co", covariant=True)

#: Seconds in which a connection may come back before an operation fails.
PATIENCE = 10.0
#: Seconds after which an open connection counts as one that works.
LASTING = 1.0
#: Most bytes of an answer that is no stream. That of the largest directory is much smaller.
LARGEST = 256 * 1024 * 1024
#: Seconds that giving something up may take when its caller leaves.
LEAVING = 5.0
#: Seconds without a byte after which a connection counts as broken. A stream of events has one every 15 s.
SILENCE = 90.0

#: A body, or what makes a new iterator over its pieces.
Content: TypeAlias = "bytes | Callable[[], Iterator[bytes]]"


@dataclass(frozen=True)
class Request:
    """A request to the sandbox's server. One that is `repeatable` has the same effect when it arrives twice."""

    method: str
    path: str
    query: Mapping[str, str | list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: object = None
    content: Content | None = None
    repeatable: bool = False
    silence: float = SILENCE


@dataclass(frozen=True)
class Response:
    """An answer. That of a stream has no body; it is read piece by piece."""

    status: int
    headers: Mapping[str, str]
    #: The URL of the server.
    where: str
    body: bytes = b""


@dataclass(frozen=True)
class Send:
    """Sends a request; the reply is the whole answer."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Sends a request; the reply is the answer without its body, or a whole answer if that is an error."""

    request: Request


@dataclass(frozen=True)
class Read:
    """Waits for the next piece of the open answer; the reply is empty behind the last one."""


@dataclass(frozen=True)
class Close:
    """Gives the open answer up."""


@dataclass(frozen=True)
class Sleep:
    """Waits so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Emit(Generic[I_co]):
    """Hands something to the caller while the operation goes on."""

    item: I_co


Effect: TypeAlias = "Send | Open | Read | Close | Sleep"
Reply: TypeAlias = "Response | bytes | None"
#: An operation that returns a value.
Op: TypeAlias = Generator[Effect, Reply, T]
#: One that also hands out items on its way.
Stream: TypeAlias = Generator["Effect | Emit[I_co]", Reply, T]


class SilentError(errors.ConnectionLostError):
    """Nothing was received for the time that a request allows."""


#: Makes the exception of an answer that is an error, out of its status, its body, and the URL of the server.
Refused: TypeAlias = Callable[[int, bytes, str], errors.GloveportError]


def perform(request: Request, refused: Refused = errors.of_answer) -> Op[Response]:
    """Sends a request, again if that is harmless; an answer that is an error is raised."""
    retry = Retry()
    while True:
        try:
            response = yield Send(request)
            assert isinstance(response, Response)
            if response.status >= 400:
                # A gateway tells of connections that it has lost.
                raise refused(response.status, response.body, response.where)
            return response
        except errors.UnreachableError as error:
            yield from retry.wait(error)
        except errors.ConnectionLostError as error:
            if not request.repeatable:
                raise
            yield from retry.wait(error)


def perform_once(request: Request) -> Op[Response]:
    """Sends a request without patience: for the first one, which finds out whether the address is right."""
    response = yield Send(request)
    assert isinstance(response, Response)
    if response.status >= 400:
        raise errors.of_answer(response.status, response.body, response.where)
    return response


def opened(request: Request) -> Op[Response]:
    """Opens an answer that is a stream; one that is an error is raised."""
    response = yield Open(request)
    assert isinstance(response, Response)
    if response.status >= 400:
        raise errors.of_answer(response.status, response.body, response.where)
    return response


def piece() -> Op[bytes]:
    """The next piece of the open answer, empty behind the last one."""
    read = yield Read()
    assert isinstance(read, bytes)
    return read


def rest() -> Op[None]:
    """Reads what is left of the open answer, so that its connection can be used again."""
    try:
        while (yield from piece()):
            pass
    except errors.ConnectionLostError:
        yield Close()


def decoded(response: Response) -> object:
    """The JSON of an answer."""
    try:
        value: object = jsons.loads(response.body)
    except (ValueError, RecursionError):
        start = response.body[:200].decode("utf-8", "replace")
        raise errors.UnexpectedAnswerError(
            f"the answer is no JSON: {start!r}", remedy="check that the URL is that of a sandbox's server"
        ) from None
    return value


def foreign(error: Exception) -> errors.UnexpectedAnswerError:
    """An answer whose JSON is not what it must be, which is found when it is used."""
    return errors.UnexpectedAnswerError(
        f"the answer is not what it must be: {type(error).__name__} {error}",
        remedy="check that the URL is that of a sandbox's server, and that it has the version of this package",
    )


def too_large() -> errors.UnexpectedAnswerError:
    """An answer that nobody can want."""
    return errors.UnexpectedAnswerError(f"the answer has more than {LARGEST} bytes")


class Retry:
    """How long a connection that broke is tried again, and at which intervals."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._delay = 0.0
        self._opened: float | None = None

    def opened(self) -> None:
        """The connection is there again. If it lasts, it has not failed before."""
        self._opened = time.monotonic()

    def progressed(self) -> None:
        """What was asked for has come a step further."""
        self._until = None
        self._delay = 0.0

    def wait(self, error: errors.GloveportError) -> Generator[Sleep, Any, None]:
        """Waits for the next attempt, or raises the error when there has been no progress for too long."""
        now = time.monotonic()
        if self._opened is not None and now - self._opened >= LASTING:
            self.progressed()
        self._opened = None
        if self._until is None:
            self._until = now + PATIENCE
        if now >= self._until:
            raise error
        if self._delay:
            yield Sleep(self._delay)
        self._delay = min(max(0.05, self._delay * 2), 1.0)
