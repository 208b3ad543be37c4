"""Operations with the sandbox as a whole."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from . import _errors as errors
from ._core import Op, Request, decoded, perform, perform_once
from ._values import SandboxState

if TYPE_CHECKING:
    from . import _wire as wire


def _state(told: object) -> SandboxState:
    if not isinstance(told, dict) or "since_seconds" not in told:
        raise errors.UnexpectedAnswerError(
            "what answers is no server of gloveport", remedy="check that the URL is that of a sandbox's server"
        )
    status = cast("wire.SandboxStatus", told)
    # Servers of before do not tell it.
    limit = status.get("idle_limit_seconds")
    is_limited = isinstance(limit, (int, float)) and math.isfinite(limit) and limit > 0
    return SandboxState(status["state"], status["since_seconds"], status["idle_seconds"], limit if is_limited else None)


def greet() -> Op[SandboxState]:
    """Finds out, without patience, whether the address and the key are right."""
    response = yield from perform_once(Request("GET", "/v1/sandbox"))
    return _state(decoded(response))


def state() -> Op[SandboxState]:
    """What the sandbox does."""
    response = yield from perform(Request("GET", "/v1/sandbox", repeatable=True))
    return _state(decoded(response))


def use() -> Op[None]:
    """Uses it in the cheapest way: what asks about its state is no use. One that is paused is used all the same."""
    try:
        yield from perform_once(Request("GET", "/v1/terminals"))
    except errors.PausedError:
        return


def pause() -> Op[None]:
    """Stops all processes where they are."""
    yield from perform(Request("POST", "/v1/sandbox/pause", repeatable=True))


def resume() -> Op[None]:
    """Lets all processes go on."""
    yield from perform(Request("POST", "/v1/sandbox/resume", repeatable=True))
