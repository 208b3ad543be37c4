"""Performs operations over HTTP: with `await`, and without it.

This module is imported with the first sandbox, because `httpx` takes longer to import than all the rest.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic
from urllib.parse import urlsplit

import httpx

from . import _errors as errors
from ._core import (
    LARGEST,
    Close,
    Effect,
    Emit,
    I_co,
    Open,
    Read,
    Reply,
    Request,
    Response,
    Send,
    SilentError,
    Stream,
    T,
    foreign,
    too_large,
)

if TYPE_CHECKING:
    from ._line import AsyncLine, Line
    from ._terminals import Link

#: Seconds for making a connection, and for sending a piece.
CONNECT, SENDING = 10.0, 60.0


@dataclass(frozen=True)
class Address:
    """Where a server is, and what it asks for."""

    url: str
    key: str | None = field(repr=False)
    #: The header that has the key.
    header: str = "X-Session-API-Key"
    #: What is there, for errors.
    what: str = "the sandbox's server"
    #: What to do where nothing answers.
    remedy: str = errors.ENDED

    def settings(self) -> dict[str, Any]:
        """The settings of a client for it."""
        try:
            parts = urlsplit(self.url)
            parts.port  # noqa: B018 - raises what is wrong with it
        except ValueError as error:
            raise errors.InvalidRequestError(f"{self.url!r} is no URL: {error}", code="invalid_url") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.InvalidRequestError(
                f"{self.url!r} is no URL of a server",
                code="invalid_url",
                remedy="give one such as http://127.0.0.1:8000",
            )
        headers = {"Accept-Encoding": "identity", "User-Agent": "gloveport-python"}
        if self.key is not None:
            # Checked here, because other errors would show it.
            if not all(" " <= character <= "~" for character in self.key):
                raise errors.InvalidRequestError(
                    f"the key for {self.what} has characters that no key has, such as a line break",
                    code="invalid_key",
                    remedy="remove them, or read it from its file again",
                )
            headers[self.header] = self.key
        return {
            "base_url": self.url,
            "headers": headers,
            "timeout": httpx.Timeout(None, connect=CONNECT, write=SENDING),
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=16),
            "verify": _certificates(parts.scheme == "https"),
            # The key of a server on this machine is nothing for a proxy.
            "trust_env": not _is_here(parts.hostname),
        }


def _certificates(are_needed: bool) -> ssl.SSLContext:
    """Whom a client trusts. Reading the system's certificates takes longer than starting a sandbox."""
    return ssl.create_default_context() if are_needed else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _failure(error: Exception, client: httpx.Client | httpx.AsyncClient, address: Address) -> errors.GloveportError:
    """What an exception of `httpx` means."""
    if client.is_closed:
        return errors.SandboxClosedError(f"the connection to {address.what} was closed while it was used")
    if isinstance(error, RuntimeError) and not isinstance(error, httpx.StreamError):
        raise error
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout):
        return SilentError(f"{address.what} at {_where(client)} was silent for too long: {text}")
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return errors.unreachable(_where(client), text, address.what, address.remedy)
    return errors.ConnectionLostError(
        f"the connection to {address.what} at {_where(client)} broke: {text}",
        remedy="find out whether it was done before you ask again",
    )


def _where(client: httpx.Client | httpx.AsyncClient) -> str:
    return str(client.base_url).rstrip("/")


def _built(client: httpx.Client | httpx.AsyncClient, request: Request, content: Any) -> httpx.Request:
    headers = dict(request.headers)
    try:
        if request.json is not None:
            content = json.dumps(request.json, ensure_ascii=False, allow_nan=False).encode("utf-8")
            headers["Content-Type"] = "application/json"
        return client.build_request(
            request.method,
            request.path,
            params=dict(request.query) or None,
            headers=headers,
            content=content,
            timeout=httpx.Timeout(request.silence, connect=CONNECT, write=SENDING, pool=None),
        )
    except (TypeError, ValueError) as error:
        raise errors.InvalidRequestError(f"this cannot be sent: {error}", code="invalid_request") from error


def _answer(client: httpx.Client | httpx.AsyncClient, response: httpx.Response, body: bytes = b"") -> Response:
    return Response(response.status_code, response.headers, _where(client), body)


def _step(
    operation: Stream[I_co, T], reply: Reply, failure: errors.GloveportError | None, is_answered: bool
) -> Effect | Emit[I_co]:
    """What an operation wants next. What it does not understand is the fault of an answer, once there is one."""
    try:
        return operation.send(reply) if failure is None else operation.throw(failure)
    except errors.GloveportError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if not is_answered:
            raise
        raise foreign(error) from error


class Transport:
    """Performs operations of one server. Threads may share it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client = httpx.Client(**address.settings())
        self._lines: list[Line] = []

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self._client.close()

    def line(self, link: Link) -> Line:
        """A connection to a terminal, which ends with this object if not before."""
        from ._line import Line

        line = Line(self._address, link)
        self._lines = [*(each for each in self._lines if not each.is_closed), line]
        return line

    def run(self, operation: Stream[Any, T]) -> T:
        """The result of an operation."""
        items = self.items(operation)
        for _ in items:
            pass
        return items.value

    def items(self, operation: Stream[I_co, T]) -> Items[I_co, T]:
        """What an operation hands out, and then its result."""
        return Items(self._client, self._address, operation)


class Items(Generic[I_co, T]):
    """What an operation hands out. Its `value` is there behind the last one."""

    def __init__(self, client: httpx.Client, address: Address, operation: Stream[I_co, T]) -> None:
        self._client = client
        self._address = address
        self._operation = operation
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._is_answered = False
        self.value: T

    def __iter__(self) -> Iterator[I_co]:
        return self

    def __next__(self) -> I_co:
        reply: Reply = None
        failure: errors.GloveportError | None = None
        try:
            while True:
                effect = _step(self._operation, reply, failure, self._is_answered)
                if isinstance(effect, Emit):
                    return effect.item
                reply = failure = None
                try:
                    reply = self._perform(effect)
                    self._is_answered = self._is_answered or reply is not None
                except (httpx.HTTPError, RuntimeError) as error:
                    self._give_up()
                    failure = _failure(error, self._client, self._address)
        except StopIteration as end:
            if not hasattr(self, "value"):
                self.value = end.value
            self._give_up()
            raise StopIteration from None
        except BaseException:
            self.close()
            raise

    def _perform(self, effect: Effect) -> Reply:
        if isinstance(effect, (Send, Open)):
            self._give_up()
            response = self._client.send(self._built(effect.request), stream=True)
            self._response, self._pieces = response, response.iter_raw()
            if isinstance(effect, Open) and response.status_code < 400:
                return _answer(self._client, response)
            body = bytearray()
            for piece in self._pieces:
                body += piece
                if len(body) > LARGEST:
                    raise too_large()
            return _answer(self._client, response, bytes(body))
        if isinstance(effect, Read):
            return next(self._pieces, b"")
        if isinstance(effect, Close):
            self._give_up()
        else:
            time.sleep(effect.seconds)
        return None

    def _built(self, request: Request) -> httpx.Request:
        return _built(self._client, request, request.content() if callable(request.content) else request.content)

    def _give_up(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None

    def close(self) -> None:
        """Ends the operation where it is."""
        self._operation.close()
        self._give_up()


class AsyncTransport:
    """The same for one event loop."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client = httpx.AsyncClient(**address.settings())
        self._lines: list[AsyncLine] = []

    async def close(self) -> None:
        for line in self._lines:
            await line.close()
        await self._client.aclose()

    def line(self, link: Link) -> AsyncLine:
        """A connection to a terminal, which ends with this object if not before."""
        from ._line import AsyncLine

        line = AsyncLine(self._address, link)
        self._lines = [*(each for each in self._lines if not each.is_closed), line]
        return line

    async def run(self, operation: Stream[Any, T]) -> T:
        """The result of an operation."""
        items = self.items(operation)
        async for _ in items:
            pass
        return items.value

    def items(self, operation: Stream[I_co, T]) -> AsyncItems[I_co, T]:
        """What an operation hands out, and then its result."""
        return AsyncItems(self._client, self._address, operation)


class AsyncItems(Generic[I_co, T]):
    """The same as `Items`, with `await`."""

    def __init__(self, client: httpx.AsyncClient, address: Address, operation: Stream[I_co, T]) -> None:
        self._client = client
        self._address = address
        self._operation = operation
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._is_answered = False
        self.value: T

    def __aiter__(self) -> AsyncIterator[I_co]:
        return self

    async def __anext__(self) -> I_co:
        reply: Reply = None
        failure: errors.GloveportError | None = None
        try:
            while True:
                try:
                    effect = _step(self._operation, reply, failure, self._is_answered)
                except StopIteration as end:
                    if not hasattr(self, "value"):
                        self.value = end.value
                    break
                if isinstance(effect, Emit):
                    return effect.item
                reply = failure = None
                try:
                    reply = await self._perform(effect)
                    self._is_answered = self._is_answered or reply is not None
                except (httpx.HTTPError, RuntimeError) as error:
                    await self._give_up()
                    failure = _failure(error, self._client, self._address)
        except BaseException:
            await self.aclose()
            raise
        await self._give_up()
        raise StopAsyncIteration

    async def _perform(self, effect: Effect) -> Reply:
        if isinstance(effect, (Send, Open)):
            await self._give_up()
            response = await self._client.send(self._built(effect.request), stream=True)
            self._response, self._pieces = response, response.aiter_raw()
            if isinstance(effect, Open) and response.status_code < 400:
                return _answer(self._client, response)
            body = bytearray()
            async for piece in self._pieces:
                body += piece
                if len(body) > LARGEST:
                    raise too_large()
            return _answer(self._client, response, bytes(body))
        if isinstance(effect, Read):
            return b"" if self._pieces is None else await anext(self._pieces, b"")
        if isinstance(effect, Close):
            await self._give_up()
        else:
            await asyncio.sleep(effect.seconds)
        return None

    def _built(self, request: Request) -> httpx.Request:
        content = request.content
        return _built(self._client, request, _in_threads(content) if callable(content) else content)

    async def _give_up(self) -> None:
        response, self._response, self._pieces = self._response, None, None
        if response is not None:
            await response.aclose()

    async def aclose(self) -> None:
        """Ends the operation where it is."""
        self._operation.close()
        await self._give_up()


async def _in_threads(content: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    """The pieces of a body, which are read from files, without holding up the event loop."""
    pieces = content()
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece
