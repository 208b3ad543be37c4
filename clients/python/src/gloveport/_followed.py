"""Processes that a framework waits for: one that is given up on the way is ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from . import _processes as processes
from ._aio_process import AsyncProcess
from ._core import LEAVING
from ._errors import GloveportError
from ._values import ProcessOutput


@contextlib.asynccontextmanager
async def followed(process: AsyncProcess) -> AsyncIterator[AsyncIterator[ProcessOutput]]:
    """What a process writes. If the block is left by an exception, such as that of a cancelled task, it is ended."""
    try:
        async with contextlib.aclosing(process._place._transport.items(processes.follow(process.id))) as outputs:
            yield outputs
    except BaseException:
        with contextlib.suppress(GloveportError, asyncio.TimeoutError):
            await asyncio.wait_for(process.remove(), LEAVING)
        raise
