"""Whom a sandbox may reach, for programs with an event loop."""

from __future__ import annotations

import asyncio

from . import _manage as manage
from ._manage import AskedHost, NetworkState
from ._sandbox_base import SandboxBase


class AsyncNetwork:
    """The same as `Network`, with `await`."""

    def __init__(self, place: SandboxBase) -> None:
        self._place = place

    async def show(self) -> NetworkState:
        """Whom it may reach."""
        return await asyncio.to_thread(manage.network, self._place._known(), "show")

    async def allow(self, *hosts: str) -> NetworkState:
        """Lets it reach hosts, addresses and networks, at once: `example.org`, `*.example.org:443`, `10.0.0.0/8`."""
        return await asyncio.to_thread(manage.network, self._place._known(), "allow", hosts)

    async def deny(self, *hosts: str) -> NetworkState:
        """Keeps it from them, at once, whatever else lets it reach them. Connections to them end."""
        return await asyncio.to_thread(manage.network, self._place._known(), "deny", hosts)

    async def log(self) -> tuple[AskedHost, ...]:
        """Whom it has asked for lately, and whether it was let through; the last one at the end."""
        return (await asyncio.to_thread(manage.network, self._place._known(), "log")).asked
