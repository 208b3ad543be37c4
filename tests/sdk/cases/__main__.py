"""What an agent-server's sandbox does, as the unmodified workspaces of the OpenHands SDK and plain requests see it.

usage: python -m cases URL TOKEN DIRECTORY [--speed COUNT]

DIRECTORY is the one that the server was started in; its home is `home` beside it, and both see the same files as this
program. The server is started as `run` does it: TOKEN is its first key, TOKEN-2 its second. The last line is a JSON
object: for each case what the client got. With --speed it tells what calls take instead, in milliseconds, and how many
commands a second eight clients get. (The SDK logs on the standard output, too.)
"""

import contextlib
import http.client
import json
import os
import statistics
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import httpx

from . import commands, details, extras, files, git, sockets, workspace
from .harness import CASE, CASES, EVENTS, EXECUTE, REQUEST, Names, Server
from .sockets import a_socket_without_a_key

# In the order in which their cases run.
MODULES = [workspace, details, commands, sockets, files, git, extras]


def speed(server, count):
    """Milliseconds at the median, and commands a second of eight clients."""
    server.send("DELETE", EVENTS)
    kept = httpx.Client(base_url=server.url, headers={"X-Session-API-Key": server.token}, timeout=REQUEST)

    def median(call):
        times = []
        for _ in range(count):
            began = time.perf_counter()
            call()
            times.append((time.perf_counter() - began) * 1000)
        return round(statistics.median(times), 2)

    def of_sdk(number):
        """A client with the library of the SDK, which needs more of the processors than the server does."""
        with httpx.Client(base_url=server.url, headers={"X-Session-API-Key": server.token}, timeout=60) as http:
            for _ in range(number):
                http.post(EXECUTE, json={"command": "true"}).raise_for_status()

    def plain(number):
        """One that costs little."""
        headers = {"X-Session-API-Key": server.token, "Content-Type": "application/json"}
        with contextlib.closing(http.client.HTTPConnection(httpx.URL(server.url).netloc.decode(), timeout=60)) as kept:
            for _ in range(number):
                kept.request("POST", EXECUTE, '{"command": "true"}', headers)
                answer = kept.getresponse()
                if (answer.status, json.load(answer)["exit_code"]) != (200, 0):
                    raise RuntimeError(f"a command failed with status {answer.status}")

    def rate(client):
        server.send("DELETE", EVENTS)
        began, each = time.perf_counter(), max(1, count // 4)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(client, [each] * 8))
        return round(each * 8 / (time.perf_counter() - began), 1)

    found = {
        "health": median(lambda: kept.get("/health").raise_for_status()),
        "execute_bash_command": median(
            lambda: kept.post(EXECUTE, json={"command": "true"}).raise_for_status()
        ),
        "execute_command": median(lambda: server.workspace.execute_command("true")),
    }
    found["commands_per_second"] = rate(plain)
    found["commands_per_second_by_httpx"] = rate(of_sdk)
    return found


def bounded(function, server):
    """What a case finds, or that it breaks or hangs."""
    found = []

    def run():
        try:
            found.append(function(server))
        except Exception as error:
            traceback.print_exc()
            found.append({"broken": f"{type(error).__name__}: {error}"})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(CASE)
    return found[0] if found else {"broken": f"it takes more than {CASE} seconds"}


def main(url, token, directory, *rest):
    server = Server(url, token, directory)
    if rest:
        print("\n" + json.dumps(speed(server, int(rest[1]))))
        return
    names, found = Names(server), {}
    # It waits for ten seconds and does nothing else.
    waiting = ThreadPoolExecutor(1).submit(bounded, a_socket_without_a_key, server)
    order = {module.__name__: number for number, module in enumerate(MODULES)}
    for function in sorted(CASES, key=lambda one: order[one.__module__]):
        began = time.monotonic()
        value = waiting.result() if function is a_socket_without_a_key else bounded(function, server)
        found[function.__name__] = names.found(value)
        print(f"{function.__name__}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    print("\n" + json.dumps(found, ensure_ascii=False), flush=True)
    # A case that hangs holds nothing up.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
