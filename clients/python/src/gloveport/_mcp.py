"""Operations with tools of MCP: those of the sandbox, and those of servers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _errors as errors
from ._core import Op, Request, Response, Send, SilentError, decoded, foreign, perform
from ._events import EventParser

if TYPE_CHECKING:
    from . import _wire as wire


@dataclass(frozen=True)
class McpServer:
    """A program in the sandbox that speaks MCP over its standard input and output."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class McpStatus:
    """How an MCP server stands."""

    name: str
    state: Literal["idle", "starting", "ready", "failed"]
    #: Why it failed, with the last that it printed.
    reason: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool that a model can call."""

    name: str
    description: str
    #: The schema of its arguments, as JSON Schema has it.
    input_schema: Mapping[str, object]
    output_schema: Mapping[str, object] | None = None


@dataclass(frozen=True)
class ToolResult:
    """What a tool returned."""

    #: Texts, pictures and others, as MCP has them.
    content: tuple[Mapping[str, object], ...]
    structured: Mapping[str, object] | None
    is_error: bool

    @property
    def text(self) -> str:
        """The texts, one behind the other."""
        return "\n".join(str(each.get("text", "")) for each in self.content if each.get("type") == "text")

    def check(self) -> ToolResult:
        """This result, if the tool did what it was asked for; raises `ToolFailedError` otherwise."""
        if self.is_error:
            raise errors.ToolFailedError(self.text)
        return self


#: Where the tools of the sandbox are, and those of the servers in it.
SANDBOX, SERVERS = "/mcp", "/mcp/proxy"
#: The revision of the protocol that is spoken.
REVISION = "2025-06-18"
#: Most pages of a list of tools.
PAGES = 100


def _posted(path: str, session: str, message: Mapping[str, object], silence: float) -> Op[Response]:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION}
    if session:
        headers["Mcp-Session-Id"] = session
    body = {"jsonrpc": "2.0", **message}
    return (yield from perform(Request("POST", path, headers=headers, json=body, silence=silence)))


def _result(response: Response, id: int) -> dict[str, Any]:
    """The result of the request with this id, in an answer that is an object or a stream of events."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        messages = [event.data for event in EventParser().feed(response.body)]
    else:
        messages = [cast("dict[str, Any]", decoded(response))]
    for message in messages:
        if message.get("id") != id:
            continue
        if "error" in message:
            raise errors.ToolFailedError(str(message["error"]["message"]))
        result: dict[str, Any] = message["result"]
        return result
    raise foreign(ValueError("there is no result in it"))


def _talk(path: str, silence: float, requests: Sequence[Mapping[str, object]]) -> Op[list[dict[str, Any]]]:
    """Sends requests one behind the other, in a session of their own; a list of tools is followed to its end."""
    about = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "gloveport-python", "version": ""}}
    try:
        hello = yield from _posted(path, "", {"id": 0, "method": "initialize", "params": about}, silence)
    except errors.UnexpectedAnswerError as error:
        if path != SERVERS or error.code != "no_such_path":
            raise
        raise errors.NotFoundError(
            "the sandbox has no MCP servers", status=404, code="no_servers", remedy="set some with `set_servers`"
        ) from None
    _result(hello, 0)
    session = hello.headers.get("mcp-session-id", "")
    results = []
    try:
        yield from _posted(path, session, {"method": "notifications/initialized"}, silence)
        waiting = list(requests)
        for id in range(1, PAGES + 1):
            request = waiting.pop(0)
            response = yield from _posted(path, session, {"id": id, **request}, silence)
            results.append(_result(response, id))
            cursor = results[-1].get("nextCursor")
            if cursor is not None:
                waiting.append({**request, "params": {"cursor": cursor}})
            if not waiting:
                break
    except errors.GloveportError:
        yield from _ended(path, session)
        raise
    yield from _ended(path, session)
    return results


def _ended(path: str, session: str) -> Op[None]:
    """Ends a session. One that does not end so ends later, by itself."""
    if session:
        try:
            yield Send(Request("DELETE", path, headers={"Mcp-Session-Id": session}))
        except errors.GloveportError:
            return


def tools(path: str) -> Op[list[Tool]]:
    """The tools that there are."""
    pages = yield from _talk(path, 60.0, [{"method": "tools/list", "params": {}}])
    return [
        Tool(each["name"], each.get("description") or "", each["inputSchema"], each.get("outputSchema"))
        for page in pages
        for each in page["tools"]
    ]


def call(path: str, name: str, arguments: Mapping[str, object], timeout: float) -> Op[ToolResult]:
    """Calls a tool. It is not called a second time."""
    asked = {"method": "tools/call", "params": {"name": name, "arguments": dict(arguments)}}
    try:
        (told,) = yield from _talk(path, timeout, [asked])
    except SilentError:
        raise TimeoutError(f"the tool `{name}` said nothing for {timeout} s") from None
    return ToolResult(tuple(told.get("content", ())), told.get("structuredContent"), bool(told.get("isError")))


def set_servers(servers: Sequence[McpServer]) -> Op[str]:
    """Sets the programs in the sandbox that speak MCP; returns which of them will not work, as text."""
    body: list[wire.McpServer] = [
        {"name": each.name, "command": each.command, "args": list(each.args), "env": dict(each.env)} for each in servers
    ]
    response = yield from perform(Request("POST", "/update_mcp_server", json=body, repeatable=True))
    return str(cast("wire.UpdateMcpResponse", decoded(response))["router_error_log"])


def servers() -> Op[list[McpStatus]]:
    """How the programs stand."""
    response = yield Send(Request("GET", "/ready"))
    assert isinstance(response, Response)
    # That something is not ready is an answer, too.
    if response.status not in (200, 503):
        raise errors.of_answer(response.status, response.body, response.where)
    told = cast("wire.Readiness", decoded(response))
    if "parts" not in told:
        raise errors.of_answer(response.status, response.body, response.where)
    return [
        McpStatus(each["name"], cast("Any", each["state"]), each.get("reason") or "")
        for each in told.get("mcp_servers", [])
    ]
