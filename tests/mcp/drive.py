"""Starts a sandbox with MCP servers, lets clients use it, and counts their checks.

drive.py BINARY CACHE
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

BINARY, CACHE = os.path.abspath(sys.argv[1]), sys.argv[2]
BIN = os.path.join(CACHE, "mcp/bin")
PACKAGES = os.path.join(CACHE, "mcp/node_modules")
NODE = os.path.join(CACHE, "vscode/bin/node")
KEY = secrets.token_hex(16)
passed = failed = 0

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def check(name, holds, detail=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print(f"ok      {name}" if holds else f"FAILED  {name}: {detail}", flush=True)


def run(words, **more):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, **more)


def count(who, words):
    """Runs a client that prints `ok NAME` and `FAILED NAME: DETAIL`."""
    ended = run(words)
    for line in ended.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind in ("ok", "FAILED"):
            name, _, detail = rest.partition(": {") if kind == "ok" else rest.partition(": ")
            check(f"{who}: {name}", kind == "ok", detail)
    check(f"{who} comes to its end", ended.returncode == 0, ended.stderr[-2000:])


def inspect(url, kind, home, *words):
    headers = ["--header", f"Authorization: Bearer {KEY}", "--header", f"X-Session-API-Key: {KEY}"]
    return answer_of([f"{BIN}/mcp-inspector", "--cli", url, "--transport", kind, *headers], home, *words)


def answer_of(inspector, home, *words):
    """An answer that the Inspector's command line prints."""
    ended = run([*inspector, *words], env={**os.environ, "HOME": home})
    try:
        return json.loads(ended.stdout)
    except ValueError:
        return {"error": ended.stdout + ended.stderr}


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        work = os.path.join(home, "work")
        os.mkdir(work)
        words = [BINARY, "action-execution-server", str(port), "--working-dir", work, "--username", "root", "--user-id", "0", "--plugins", "jupyter"]
        environment = {**os.environ, "HOME": home, "SESSION_API_KEY": KEY, "SU_TO_USER": "false"}
        server = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{url}/alive", timeout=5).read()
                    break
                except OSError:
                    if time.monotonic() > deadline or server.poll() is not None:
                        raise SystemExit(f"the server does not start: {server.stderr.read()}")
                    time.sleep(0.05)
            servers = [
                {"name": "every", "command": f"{BIN}/mcp-server-everything", "args": ["stdio"]},
                {"name": "time", "command": f"{BIN}/mcp-server-time"},
                {"name": "files", "command": f"{BIN}/mcp-server-filesystem", "args": [work]},
                {"name": "fetch", "command": f"{BIN}/mcp-server-fetch", "args": ["--allow-private-ips", "--ignore-robots-txt"]},
            ]
            headers = {"X-Session-API-Key": KEY, "Content-Type": "application/json"}
            update = urllib.request.Request(f"{url}/update_mcp_server", json.dumps(servers).encode(), headers)
            answer = json.load(urllib.request.urlopen(update, timeout=60))
            check("the servers are set", answer["router_error_log"] == "", answer)
            count("SDK for Python", [f"{CACHE}/mcp/python/bin/python", "client.py", url, KEY, json.dumps(servers)])
            count("SDK for Node", [NODE, "client.mjs", url, KEY, PACKAGES])
            count("a sandbox, SDK for Python", [f"{CACHE}/mcp/python/bin/python", "computer.py", url, KEY, BINARY])
            count("a sandbox, SDK for Node", [NODE, "computer.mjs", url, KEY, PACKAGES, BINARY])
            ways = {"http": [f"{url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {KEY}"], "stdio": [BINARY, "mcp"]}
            for kind, way in ways.items():
                words = [f"{BIN}/mcp-inspector", "--cli", *way]
                listed = answer_of(words, home, "--method", "tools/list").get("tools", [])
                check(f"a sandbox, Inspector, {kind}: tools", len(listed) == 12, listed)
                ran = answer_of(words, home, "--method", "tools/call", "--tool-name", "shell", "--tool-arg", "command=echo hi")
                check(f"a sandbox, Inspector, {kind}: shell", ran.get("structuredContent", {}).get("output") == "hi", ran)
            count("a login", [f"{CACHE}/mcp/python/bin/python", "login.py", BINARY])
            for kind, path in [("http", "/mcp/proxy"), ("sse", "/mcp/sse")]:
                who, at = f"Inspector, {kind}", url + path
                names = [tool["name"] for tool in inspect(at, kind, home, "--method", "tools/list").get("tools", [])]
                check(f"{who}: tools of four servers", {"every_echo", "time_convert_time", "files_write_file", "fetch_fetch"} <= set(names), names)
                place = os.path.join(work, f"{kind}.txt")
                wrote = inspect(at, kind, home, "--method", "tools/call", "--tool-name", "files_write_file", "--tool-arg", f"path={place}", "content=written")
                check(f"{who}: a file is written", os.path.exists(place) and open(place).read() == "written", wrote)
                fetched = inspect(at, kind, home, "--method", "tools/call", "--tool-name", "fetch_fetch", "--tool-arg", f"url={url}/alive", "raw=true")
                check(f"{who}: a page is fetched", "status" in json.dumps(fetched), fetched)
                resources = inspect(at, kind, home, "--method", "resources/list").get("resources", [])
                check(f"{who}: resources", len(resources) > 0, resources)
            servers = json.load(urllib.request.urlopen(urllib.request.Request(f"{url}/ready", headers=headers), timeout=60))["mcp_servers"]
            check("all four servers run", [one["state"] for one in servers] == ["ready"] * 4, servers)
        finally:
            server.terminate()
            server.wait(60)
        left = run(["pgrep", "-f", work]).stdout.split()
        check("nothing of them is left", not left, left)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
