"""Connections to terminals: with `await`, and without it.

This module is imported with the first terminal, because others need no WebSocket.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from websockets import exceptions
from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import connect

from . import _errors as errors
from ._commands import Deadline
from ._core import Sleep
from ._terminals import Contact, Dial, HangUp, HungUpError, Link, Receive, Talk, Transmit

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection as AsyncClientConnection
    from websockets.sync.client import ClientConnection

    from ._transport import Address

#: Seconds for making a connection, for the answer to a ping, and for the farewell.
CONNECT, ANSWER, FAREWELL = 10.0, 60.0, 1.0
#: Most bytes of a message. The server's are smaller.
MESSAGE = 1024 * 1024


def _settings(address: Address) -> dict[str, Any]:
    settings = address.settings()
    return {
        "additional_headers": {name: value for name, value in settings["headers"].items() if name != "Accept-Encoding"},
        "user_agent_header": None,
        "compression": None,
        "ssl": settings["verify"] if address.url[:6].lower() == "https:" else None,
        "proxy": True if settings["trust_env"] else None,
        "open_timeout": CONNECT,
        "ping_timeout": ANSWER,
        "close_timeout": FAREWELL,
        "max_size": MESSAGE,
    }


def _url(address: Address, path: str, query: Mapping[str, str]) -> str:
    return f"ws{address.url[len('http') :]}{path}?{urlencode(query)}"


def _meaning(error: Exception, where: str) -> errors.GloveportError:
    """What an exception of `websockets` means."""
    text = str(error) or type(error).__name__
    if isinstance(error, exceptions.InvalidStatus):
        return errors.of_answer(error.response.status_code, bytes(error.response.body or b""), where)
    if isinstance(error, exceptions.ConnectionClosed):
        frame = error.rcvd
        return HungUpError(0, text) if frame is None else HungUpError(frame.code, frame.reason)
    if isinstance(error, exceptions.WebSocketException):
        return errors.ConnectionLostError(f"the connection to the terminal broke: {text}")
    return errors.unreachable(where, text)


def _closed() -> errors.SandboxClosedError:
    return errors.SandboxClosedError(
        "the terminal is closed, or belongs to the process that this one was forked from",
        remedy="start another one, or one with the same id",
    )


class Line:
    """The connection to a terminal. Of all threads that wait for something, one takes messages for all of them."""

    def __init__(self, address: Address, link: Link) -> None:
        self._address = address
        self._link = link
        self._stack = contextlib.ExitStack()
        self._connection: ClientConnection | None = None
        self._changed = threading.Condition()
        self._is_busy = False
        self.is_closed = False
        self._process = os.getpid()

    def until(self, is_so: Callable[[], bool], seconds: float | None) -> None:
        """Takes messages until something is so. Raises `TimeoutError` if it is not after so many seconds."""
        deadline = Deadline(seconds)
        with self._changed:
            while not is_so():
                if deadline.passed():
                    raise TimeoutError(f"the terminal `{self._link.id}` did not do that in {seconds} s")
                if self._is_busy:
                    if self._link.is_stale():
                        self._break_off()
                    self._changed.wait(deadline.left())
                    continue
                self._is_busy = True
                try:
                    self._perform(self._link.step(deadline.left()))
                except TimeoutError:
                    continue
                finally:
                    self._is_busy = False
                    self._changed.notify_all()

    def _break_off(self) -> None:
        """Ends the connection of the thread that takes messages, which makes it anew."""
        connection = self._connection
        if connection is None:
            return
        self._changed.release()
        try:
            connection.close()
        finally:
            self._changed.acquire()

    def type(self, data: bytes) -> None:
        """Types something for which there is room."""
        with self._changed:
            self._perform(self._link.type(data))

    def read(self, most: int) -> bytes:
        """Takes output that is there."""
        with self._changed:
            return self._link.read(most)

    def _perform(self, talk: Talk[None]) -> None:
        reply: str | bytes | None = None
        failure: errors.GloveportError | None = None
        while True:
            if self.is_closed or self._process != os.getpid():
                raise _closed()
            try:
                contact = talk.send(reply) if failure is None else talk.throw(failure)
            except StopIteration:
                return
            reply = failure = None
            try:
                reply = self._do(contact)
            except errors.GloveportError as error:
                failure = error

    def _do(self, contact: Contact) -> str | bytes | None:
        if isinstance(contact, Transmit):
            # There is room for it, so this does not wait.
            return self._now(contact)
        self._changed.release()
        try:
            return self._now(contact)
        finally:
            self._changed.acquire()

    def _now(self, contact: Contact) -> str | bytes | None:
        if isinstance(contact, Sleep):
            time.sleep(contact.seconds)
            return None
        if isinstance(contact, HangUp):
            self._hang_up()
            return None
        try:
            if isinstance(contact, Dial):
                self._hang_up()
                url = _url(self._address, contact.path, contact.query)
                self._connection = self._stack.enter_context(connect(url, **_settings(self._address)))
                if self.is_closed:
                    self._hang_up()
                return None
            if self._connection is None:
                raise HungUpError(0, "there is no connection")
            if isinstance(contact, Transmit):
                self._connection.send(contact.data)
                return None
            return self._connection.recv(timeout=contact.seconds)
        except TimeoutError as error:
            if isinstance(contact, Receive):
                raise
            raise _meaning(error, self._address.url) from None
        except (exceptions.WebSocketException, OSError) as error:
            raise _meaning(error, self._address.url) from None

    def _hang_up(self) -> None:
        self._connection = None
        self._stack.close()

    def close(self) -> None:
        """Ends the connection, and the waiting of all threads."""
        self.is_closed = True
        if self._process == os.getpid():
            self._hang_up()


class AsyncLine:
    """The same for the tasks of one event loop."""

    def __init__(self, address: Address, link: Link) -> None:
        self._address = address
        self._link = link
        self._stack = contextlib.AsyncExitStack()
        self._connection: AsyncClientConnection | None = None
        self._turn: asyncio.Future[None] | None = None
        self.is_closed = False
        self._process = os.getpid()

    async def until(self, is_so: Callable[[], bool], seconds: float | None) -> None:
        """Takes messages until something is so. Raises `TimeoutError` if it is not after so many seconds."""
        deadline = Deadline(seconds)
        while not is_so():
            if deadline.passed():
                raise TimeoutError(f"the terminal `{self._link.id}` did not do that in {seconds} s")
            if self._turn is not None:
                turn = self._turn
                if self._link.is_stale() and self._connection is not None:
                    # Whoever takes messages makes the connection anew.
                    await self._connection.close()
                await asyncio.wait([turn], timeout=deadline.left())
                continue
            self._turn = turn = asyncio.get_running_loop().create_future()
            try:
                await self._perform(self._link.step(deadline.left()))
            except TimeoutError:
                continue
            finally:
                self._turn = None
                turn.set_result(None)

    async def type(self, data: bytes) -> None:
        """Types something for which there is room."""
        await self._perform(self._link.type(data))

    async def _perform(self, talk: Talk[None]) -> None:
        reply: str | bytes | None = None
        failure: errors.GloveportError | None = None
        while True:
            if self.is_closed or self._process != os.getpid():
                raise _closed()
            try:
                contact = talk.send(reply) if failure is None else talk.throw(failure)
            except StopIteration:
                return
            reply = failure = None
            try:
                reply = await self._do(contact)
            except errors.GloveportError as error:
                failure = error

    async def _do(self, contact: Contact) -> str | bytes | None:
        if isinstance(contact, Sleep):
            await asyncio.sleep(contact.seconds)
            return None
        if isinstance(contact, HangUp):
            await self._hang_up()
            return None
        try:
            if isinstance(contact, Dial):
                await self._hang_up()
                url = _url(self._address, contact.path, contact.query)
                self._connection = await self._stack.enter_async_context(connect_async(url, **_settings(self._address)))
                if self.is_closed:
                    await self._hang_up()
                return None
            if self._connection is None:
                raise HungUpError(0, "there is no connection")
            if isinstance(contact, Transmit):
                await self._connection.send(contact.data)
                return None
            return await asyncio.wait_for(self._connection.recv(), contact.seconds)
        except (TimeoutError, asyncio.TimeoutError) as error:
            if isinstance(contact, Receive):
                raise TimeoutError from None
            raise _meaning(error, self._address.url) from None
        except (exceptions.WebSocketException, OSError) as error:
            raise _meaning(error, self._address.url) from None

    async def _hang_up(self) -> None:
        self._connection = None
        await self._stack.aclose()

    async def close(self) -> None:
        """Ends the connection, and the waiting of all tasks."""
        self.is_closed = True
        if self._process == os.getpid():
            await self._hang_up()
