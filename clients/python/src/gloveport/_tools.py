"""Tools for models."""

from __future__ import annotations

from collections.abc import Mapping

from . import _mcp as mcp
from ._mcp import McpServer, McpStatus, Tool, ToolResult
from ._path import Place


class Tools:
    """Tools that a model can call, by the Model Context Protocol."""

    def __init__(self, place: Place, path: str = mcp.SANDBOX) -> None:
        self._place = place
        self._path = path

    def list(self) -> list[Tool]:
        """The tools that there are. Their schemas are what a model is given."""
        return self._place._transport.run(mcp.tools(self._path))

    def call(self, name: str, arguments: Mapping[str, object] | None = None, *, timeout: float = 600.0) -> ToolResult:
        """Calls a tool, and waits for what it returns.

        Raises `ToolFailedError` if there is none of this name, and `TimeoutError` when it has said nothing for
        `timeout` seconds.
        """
        return self._place._transport.run(mcp.call(self._path, name, arguments or {}, timeout))


class Mcp(Tools):
    """MCP servers that run in the sandbox: programs that are set, and started with their first use."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, mcp.SERVERS)

    def set_servers(self, *servers: McpServer) -> str:
        """Sets the servers, in the place of those before. Returns which of them cannot work, as text, mostly empty.

        Tools of a single server have its names for them; with several they are `SERVER_TOOL`.
        """
        return self._place._transport.run(mcp.set_servers(servers))

    def servers(self) -> list[McpStatus]:
        """How they stand."""
        return self._place._transport.run(mcp.servers())
