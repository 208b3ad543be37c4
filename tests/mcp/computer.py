"""The official SDK for Python uses a sandbox as an MCP server: over HTTP, and over standard input and output.

    computer.py URL KEY BINARY

Prints one line a check: `ok NAME` or `FAILED NAME: DETAIL`.
"""

import asyncio
import os
import sys
import time

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, KEY, BINARY = sys.argv[1:]
TOOLS = ["shell", "shell_output", "shell_input", "shell_stop", "python", "read_file", "write_file", "edit_file", "search_files", "browser_open",
    "browser_act", "browser_read"]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CELL = f"""import base64
from IPython.display import Image, display
display(Image(data=base64.b64decode("{PICTURE}")))
print("shown")"""


def check(name, holds, detail=""):
    print(f"ok {name}" if holds else f"FAILED {name}: {detail!r}", flush=True)


async def failed(calling):
    """What a call says that must fail."""
    try:
        result = await calling
    except Exception as error:  # noqa: BLE001
        return str(error)
    return result.content[0].text if result.is_error else f"it did not fail: {result}"


async def use(name, client):
    tools = (await client.list_tools()).tools
    check(f"{name}: tools", [tool.name for tool in tools] == TOOLS, tools)
    described = all(tool.description and tool.output_schema and tool.annotations and tool.annotations.title for tool in tools)
    check(f"{name}: every tool is described", described, tools)
    reading = [tool.name for tool in tools if tool.annotations.read_only_hint]
    check(f"{name}: what only reads", reading == ["shell_output", "read_file", "search_files", "browser_read"], reading)

    # The SDK compares what is structured with the tool's schema.
    async def call(tool, **arguments):
        return await client.call_tool(tool, arguments)

    made = await call("shell", command="mkdir -p made && cd made && echo in $(basename $PWD); false")
    check(f"{name}: shell", (made.structured_content["exit_code"], made.structured_content["output"]) == (1, "in made"), made)
    stays = await call("shell", command="basename $PWD; cd ..")
    check(f"{name}: the shell stays", stays.structured_content["output"] == "made", stays)
    told = []

    async def progress(done, _total, message):
        told.append((done, message))

    command = "for i in 1 2 3; do echo line $i; sleep 0.4; done"
    await client.call_tool("shell", {"command": command}, progress_callback=progress)
    rising = [done for done, _ in told]
    check(f"{name}: progress", len(told) > 1 and rising == sorted(rising) and "line 1" in told[0][1], told)
    begun = time.monotonic()
    try:
        await asyncio.wait_for(call("shell", command="sleep 60; echo late"), 0.7)
    except TimeoutError:
        pass
    after = await call("shell", command="echo free")
    check(f"{name}: a call that is given up", after.structured_content["output"] == "free" and time.monotonic() - begun < 15, after)
    waits = await call("shell", command="read -p 'name? ' name; echo hello $name", wait=2)
    check(f"{name}: it waits for input", waits.structured_content["state"] == "waiting_for_input", waits)
    answered = await call("shell_input", id=waits.structured_content["id"], input="you")
    check(f"{name}: input", "hello you" in answered.structured_content["output"], answered)
    background = await call("shell", command="echo begun; sleep 60", background=True)
    identity = background.structured_content["id"]
    check(f"{name}: background", background.structured_content["state"] == "running", background)
    again = await call("shell_output", id=identity, offset=0)
    check(f"{name}: output by offset", again.structured_content["output"] == "begun", again)
    stopped = await call("shell_stop", id=identity)
    check(f"{name}: stop", stopped.structured_content["state"] == "ended", stopped)
    many = await call("shell", command="seq 200000")
    sizes = (len(many.content[0].text), many.structured_content["omitted_bytes"] > 1_000_000)
    check(f"{name}: much output", sizes[0] < 100_000 and sizes[1] and "200000" in many.content[0].text, sizes)

    path = f"{name.replace(', ', '-')}/file.txt"
    await call("write_file", path=path, content="one\ntwo\nthree\n")
    read = await call("read_file", path=path, start_line=2, lines=1)
    check(f"{name}: read", read.structured_content["content"] == "two\n", read)
    edited = await call("edit_file", path=path, old_text="two", new_text="2")
    check(f"{name}: edit", "+2" in edited.structured_content["diff"], edited)
    found = await call("search_files", pattern="^2$", path=os.path.dirname(path))
    check(f"{name}: search", [match["line"] for match in found.structured_content["matches"]] == [2], found)
    await call("write_file", path="picture.png", content=PICTURE, encoding="base64")
    picture = await call("read_file", path="picture.png")
    check(f"{name}: a picture is read", picture.content[1].mime_type == "image/png" and picture.content[1].data == PICTURE, picture)
    cell = await call("python", code=CELL)
    shown = [part.type for part in cell.content]
    check(f"{name}: python", shown == ["text", "image"] and "shown" in cell.content[0].text, cell)
    raised = await call("python", code="1 / 0")
    check(f"{name}: an exception", raised.structured_content["state"] == "raised" and "ZeroDivisionError" in raised.content[0].text, raised)

    resources = (await client.list_resources()).resources
    uri = next((str(one.uri) for one in resources if str(one.uri).endswith(path)), None)
    check(f"{name}: files are resources", uri, resources)
    content = (await client.read_resource(uri)).contents[0]
    check(f"{name}: a resource", content.text == "one\n2\nthree\n", content)
    templates = (await client.list_resource_templates()).resource_templates
    check(f"{name}: templates", [one.uri_template for one in templates] == ["sandbox://{+path}"], templates)
    for tool, arguments, said in [
        ("nowhere", {}, "there is no tool `nowhere`"),
        ("shell", {"cmd": "x"}, "unknown field `cmd`"),
        ("shell", {}, "missing field `command`"),
        ("shell", {"command": "x", "wait": -1}, "wait"),
        ("read_file", {"path": "nothing-here"}, "nothing-here"),
        ("edit_file", {"path": path, "old_text": "none", "new_text": "x"}, "none"),
        ("shell_output", {"id": "none"}, "none"),
    ]:
        words = await failed(client.call_tool(tool, arguments))
        check(f"{name}: {tool} {arguments} fails", said in words, words)
    return uri, path


async def hear(name, client, uri, path):
    """Without `initialize` a client listens to what it wants to know."""
    async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as told:
        events = aiter(told)
        await client.call_tool("write_file", {"path": path, "content": "changed"})
        event = await asyncio.wait_for(anext(events), 30)
        check(f"{name}: a change of a file is told", uri in repr(event) or "list" in repr(event).lower(), event)
        await client.call_tool("write_file", {"path": f"{path}.more", "content": "new"})
        event = await asyncio.wait_for(anext(events), 30)
        check(f"{name}: a new file is told", "resource" in repr(event).lower(), event)


async def main():
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as http:
        for mode in ["legacy", "auto", "2026-07-28"]:
            name = f"HTTP, {mode}"
            transport = streamable_http_client(f"{URL}/mcp", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
                uri, path = await use(name, client)
                if mode == "2026-07-28":
                    await hear(name, client, uri, path)
    for mode in ["legacy", "auto", "2026-07-28"]:
        server = StdioServerParameters(command=BINARY, args=["mcp"], env=dict(os.environ))
        async with Client(stdio_client(server), mode=mode, read_timeout_seconds=60) as client:
            await use(f"stdio, {mode}", client)


asyncio.run(asyncio.wait_for(main(), 300))
