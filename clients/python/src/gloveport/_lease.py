"""Sandboxes that a gateway runs for us, and that end with us.

No process stands guard here: what this one has started it ends itself, when a sandbox is closed or forgotten and when
the interpreter ends. One that is killed cannot, so that its sandboxes end when it has not said for a while that it is
there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _errors as errors
from . import _gateways as gateways
from ._core import Sleep

if TYPE_CHECKING:
    from ._core import Op
    from ._presence import Presence
    from ._transport import Address

#: Seconds until somebody who uses a sandbox has done so, at most, and between two looks.
HELD, MOMENT = 35.0, 0.02
#: Seconds that the end of sandboxes may take that nobody waits for.
FORGOTTEN = 30.0


class Lease:
    """A sandbox of our own at a gateway."""

    def __init__(self, address: Address, id: str) -> None:
        self._address = address
        self._id = id
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._is_over = False
        self._presence: Presence | None = None
        _LEASES.add(self)

    def attend(self, sandbox: Address, limit: float, say: Callable[[Address, Address, str, float], Presence]) -> None:
        """Says at a sandbox again and again that we are there, without which it ends after so many seconds."""
        self._presence = say(self._address, sandbox, self._id, limit)

    def _leave(self) -> None:
        if self._presence is not None:
            self._presence.stop()

    def end(self, silence: float = 90.0) -> None:
        """Ends it, and waits until it is gone. Raises `SessionError` if that cannot be done, and can be called again.

        In a forked process it is the parent's, and stays.
        """
        if self._process != os.getpid():
            return
        # Where nobody can be asked for its end, it ends all the same.
        self._leave()
        with self._lock:
            if self._is_over:
                return
            try:
                perform(self._address, gateways.delete(self._id, silence))
            except errors.SandboxGoneError:
                pass
            except errors.GloveportError as error:
                raise errors.SessionError(
                    f"the sandbox `{self._id}` could not be ended: {error.message}",
                    remedy=error.remedy or "end it with `delete` of its gateway",
                    code="not_ended",
                ) from error
            self.release()

    def release(self) -> None:
        """It is not ours any more."""
        self._leave()
        self._is_over = True
        _LEASES.discard(self)

    def give_up(self) -> None:
        """Ends it without waiting for that."""
        if self._is_over or self._process != os.getpid():
            return
        self._leave()
        try:
            threading.Thread(target=self._quietly, name=f"end of {self._id}").start()
        except RuntimeError:
            # The interpreter ends, and asks for all that are left.
            return

    def _quietly(self) -> None:
        with contextlib.suppress(errors.GloveportError):
            self.end(FORGOTTEN)


#: Those that are to be ended.
_LEASES: set[Lease] = set()


@atexit.register
def _end_all() -> None:
    until = time.monotonic() + FORGOTTEN
    for lease in list(_LEASES):
        if time.monotonic() < until:
            lease._quietly()


def _lease_of(id: str) -> Lease | None:
    return next((lease for lease in list(_LEASES) if lease._id == id), None)


def is_attended(id: str) -> bool | None:
    """Whether this process says at a sandbox that it is there; none if it is no sandbox of ours."""
    lease = _lease_of(id)
    return None if lease is None else lease._presence is not None


def pause(id: str) -> Op[gateways.SandboxInfo]:
    """Pauses a sandbox, and does not use it meanwhile to say that we are there: some gateways would wake it."""
    lease = _lease_of(id)
    presence = lease._presence if lease is not None and lease._process == os.getpid() else None
    is_held = False
    until = time.monotonic() + HELD
    while presence is not None and not (is_held := presence.hold()) and time.monotonic() < until:
        yield Sleep(MOMENT)
    try:
        return (yield from gateways.pause(id))
    finally:
        if presence is not None and is_held:
            presence.let_go()


def perform(address: Address, operation: Op[None]) -> None:
    """Performs an operation over a connection of its own."""
    from ._transport import Transport

    transport = Transport(address)
    try:
        transport.run(operation)
    finally:
        transport.close()


def sweep(address: Address, start: gateways.Start) -> None:
    """Ends what a start has left that was given up, as far as somebody answers."""
    with contextlib.suppress(errors.GloveportError):
        perform(address, start.swept())
