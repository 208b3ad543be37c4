"""Tools for models, for programs with an event loop."""

from __future__ import annotations

from collections.abc import Mapping

from . import _mcp as mcp
from ._aio_path import AsyncPlace
from ._mcp import McpServer, McpStatus, Tool, ToolResult


class AsyncTools:
    """The same as `Tools`, with `await`."""

    def __init__(self, place: AsyncPlace, path: str = mcp.SANDBOX) -> None:
        self._place = place
        self._path = path

    async def list(self) -> list[Tool]:
        """The tools that there are. Their schemas are what a model is given."""
        return await self._place._transport.run(mcp.tools(self._path))

    async def call(
        self, name: str, arguments: Mapping[str, object] | None = None, *, timeout: float = 600.0
    ) -> ToolResult:
        """Calls a tool, and waits for what it returns.

        Raises `ToolFailedError` if there is none of this name, and `TimeoutError` when it has said nothing for
        `timeout` seconds.
        """
        return await self._place._transport.run(mcp.call(self._path, name, arguments or {}, timeout))


class AsyncMcp(AsyncTools):
    """The same as `Mcp`, with `await`."""

    def __init__(self, place: AsyncPlace) -> None:
        super().__init__(place, mcp.SERVERS)

    async def set_servers(self, *servers: McpServer) -> str:
        """Sets the servers, in the place of those before. Returns which of them cannot work, as text, mostly empty.

        Tools of a single server have its names for them; with several they are `SERVER_TOOL`.
        """
        return await self._place._transport.run(mcp.set_servers(servers))

    async def servers(self) -> list[McpStatus]:
        """How they stand."""
        return await self._place._transport.run(mcp.servers())
