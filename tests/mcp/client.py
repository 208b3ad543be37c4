"""The official SDK for Python as a client, in every revision of the protocol and over both transports.

    client.py URL KEY SERVERS

SERVERS are those that the sandbox has, as JSON. Prints one line a check: `ok NAME` or `FAILED NAME: DETAIL`.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

URL, KEY, SERVERS = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {KEY}", "X-Session-API-Key": KEY}


def check(name, holds, detail=""):
    print(f"ok {name}" if holds else f"FAILED {name}: {detail!r}", flush=True)


async def use(name, client):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    check(f"{name}: tools", "every_echo" in tools and "time_convert_time" in tools, tools)
    result = await client.call_tool("every_echo", {"message": "hi"})
    check(f"{name}: call", result.content[0].text == "Echo: hi", result)
    result = await client.call_tool("every_get-structured-content", {"location": "New York"})
    check(f"{name}: structured content", "temperature" in (result.structured_content or {}), result)
    steps = []

    async def progress(done, total, _):
        steps.append((done, total))

    arguments = {"duration": 0.2, "steps": 4}
    await client.call_tool("every_trigger-long-running-operation", arguments, progress_callback=progress)
    check(f"{name}: progress", steps == [(float(n), 4.0) for n in range(1, 5)], steps)
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    check(f"{name}: prompts", "every_simple-prompt" in prompts, prompts)
    resources = (await client.list_resources()).resources
    read = await client.read_resource(resources[0].uri)
    check(f"{name}: resources", "demo://every/" in str(resources[0].uri) and read.contents[0].text, resources)
    try:
        wrong = str(await client.call_tool("nowhere", {}))
    except Exception as error:  # noqa: BLE001
        wrong = str(error)
    check(f"{name}: unknown tool", "Unknown tool: nowhere" in wrong, wrong)


async def hear_changes(name, client, http):
    """Without `initialize` a client listens to what it wants to know."""
    async with client.listen(tools_list_changed=True) as told:
        servers = json.loads(SERVERS)
        await http.post(f"{URL}/update_mcp_server", json=servers[:-1])
        event = await asyncio.wait_for(anext(aiter(told)), 30)
        check(f"{name}: a change is told", "tool" in repr(event).lower(), event)
        await http.post(f"{URL}/update_mcp_server", json=servers)


async def main():
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        for mode in ["legacy", "auto", "2026-07-28"]:
            transport = streamable_http_client(f"{URL}/mcp/proxy", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
                await use(f"streamable HTTP, {mode}", client)
                if mode == "2026-07-28":
                    await hear_changes(f"streamable HTTP, {mode}", client, http)
    async with sse_client(f"{URL}/mcp/sse", headers=HEADERS) as streams:
        async with ClientSession(*streams) as session:
            greeting = await session.initialize()
            check("sse: revision", greeting.protocol_version == "2025-11-25", greeting)
            await use("sse", session)


asyncio.run(asyncio.wait_for(main(), 120))
