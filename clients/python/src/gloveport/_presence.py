"""Says that the client of a sandbox is still there, as long as it is.

A client that is killed, or whose machine is lost, cannot end what it has started. So its sandbox ends when nobody has
used it for a while, and a client that is there uses it now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _errors as errors
from . import _gateways as gateways
from . import _state as states

if TYPE_CHECKING:
    from ._transport import Address, AsyncTransport

#: How often it is said in the time after which the sandbox would end, and how much sooner if it could not be said.
TIMES, SOONER = 5, 4
#: The shortest and the longest time between two times, and the longest of one attempt, in seconds.
SHORTEST, LONGEST, PATIENCE = 0.1, 3600.0, 30.0


class Presence:
    """Says it for one sandbox, in an event loop, until it is stopped, the sandbox is gone, or the loop ends."""

    def __init__(
        self,
        gateway: Address,
        sandbox: Address,
        id: str,
        limit: float,
        loop: asyncio.AbstractEventLoop,
        on_over: Callable[[], None] = lambda: None,
    ) -> None:
        """`limit` is how many seconds nobody may use the sandbox; one that is paused rests for as long as it likes."""
        self._gateway, self._sandbox, self._id = gateway, sandbox, id
        self._pause = min(max(limit / TIMES, SHORTEST), LONGEST)
        # So that there is time for another attempt.
        self._patience = min(max(2 * self._pause, 1.0), PATIENCE)
        self._loop = loop
        self._on_over = on_over
        self._process = os.getpid()
        self._is_stopped = False
        self._task: asyncio.Task[None] | None = None
        #: Whoever uses it now, or wants that nobody does.
        self._turn = threading.Lock()

    def begin(self) -> None:
        """Begins, in the thread of the loop."""
        self._task = self._loop.create_task(self._again_and_again())
        self._task.add_done_callback(self._over)
        if self._is_stopped:
            self._task.cancel()

    def stop(self) -> None:
        """Ends it, from any thread. In a forked process it is the parent's, and has ended."""
        self._is_stopped = True
        if self._process == os.getpid():
            # A loop that has ended has ended this, too.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._cancel)

    def hold(self) -> bool:
        """Has nobody use it until `let_go`, from any thread. False if somebody does: try again soon."""
        return self._turn.acquire(blocking=False)

    def let_go(self) -> None:
        """It may be used again."""
        self._turn.release()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        # Nobody else looks at what it has raised.
        if not task.cancelled():
            task.exception()
        self._on_over()

    async def _again_and_again(self) -> None:
        from ._transport import AsyncTransport

        await asyncio.sleep(self._pause)
        if self._process != os.getpid():
            return
        async with contextlib.AsyncExitStack() as opened:
            there, box = AsyncTransport(self._gateway), AsyncTransport(self._sandbox)
            opened.push_async_callback(there.close)
            opened.push_async_callback(box.close)
            while True:
                pause = self._pause
                try:
                    if not await asyncio.wait_for(self._say_alone(there, box), self._patience):
                        return
                except (errors.GloveportError, asyncio.TimeoutError, OSError, RuntimeError):
                    pause /= SOONER
                await asyncio.sleep(pause)
                if self._process != os.getpid():
                    # The connections are the parent's.
                    opened.pop_all()
                    return

    async def _say_alone(self, there: AsyncTransport, box: AsyncTransport) -> bool:
        """The same, unless somebody wants that nobody uses it now."""
        if not self.hold():
            raise errors.GloveportError("the sandbox is being paused")
        try:
            return await self._say(there, box)
        finally:
            self.let_go()

    async def _say(self, there: AsyncTransport, box: AsyncTransport) -> bool:
        """Uses it if it is not paused, which would make some gateways wake it. False if it has ended."""
        try:
            info = await there.run(gateways.found(self._id))
        except errors.SandboxGoneError:
            return False
        if info.state in ("stopped", "failed"):
            return False
        if info.state != "paused":
            await box.run(states.use())
        return True


class _Background:
    """An event loop in one thread of our own, for all sandboxes of a program that has none, as long as it has some."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._count = 0
        try:
            threading.Thread(target=self._run, name="gloveport presence", daemon=True).start()
        except BaseException:
            self.loop.close()
            raise

    def say(self, gateway: Address, sandbox: Address, id: str, limit: float) -> Presence:
        presence = Presence(gateway, sandbox, id, limit, self.loop, self._over)
        self._count += 1
        self.loop.call_soon_threadsafe(presence.begin)
        return presence

    def _over(self) -> None:
        global _background
        with _LOCK:
            self._count -= 1
            if self._count == 0:
                _background = None
                self.loop.stop()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.close()


_LOCK = threading.Lock()
_background: _Background | None = None
#: Those of the processes that this one was forked from: they are theirs, and are left alone.
_INHERITED: list[_Background] = []


def _forked() -> None:
    global _LOCK, _background
    _LOCK = threading.Lock()
    if _background is not None:
        _INHERITED.append(_background)
        _background = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def in_background(gateway: Address, sandbox: Address, id: str, limit: float) -> Presence:
    """Says it in a thread, which all sandboxes of this process share."""
    global _background
    with _LOCK:
        if _background is None:
            _background = _Background()
        return _background.say(gateway, sandbox, id, limit)


def in_this_loop(gateway: Address, sandbox: Address, id: str, limit: float) -> Presence:
    """Says it in a task of the event loop that runs."""
    presence = Presence(gateway, sandbox, id, limit, asyncio.get_running_loop())
    presence.begin()
    return presence
