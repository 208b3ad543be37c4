"""What is measured: the import, a command beside the same request without the client, and many sandboxes at once."""

import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import time
from urllib.parse import urlsplit

import gloveport
from report import measured

ROUNDS = 300


def imports():
    """Milliseconds that `import gloveport` takes in a new interpreter."""
    script = "import time; t = time.perf_counter(); import gloveport; print((time.perf_counter() - t) * 1000)"
    times = [float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(9)]
    measured(f"import gloveport: median {statistics.median(times):.1f} ms, best {min(times):.1f} ms (bound 80)")


def commands():
    """A command by the client, and by the module of the standard library that speaks HTTP, in turns."""
    with gloveport.Sandbox(isolation="none") as box:
        connection = http.client.HTTPConnection(urlsplit(box.url()).netloc)
        headers = {"X-Session-API-Key": box._session.key, "Content-Type": "application/json"}
        body = json.dumps({"command": "echo hi"})
        ours, raw = [], []
        for turn in range(ROUNDS + 20):
            begun = time.perf_counter()
            connection.request("POST", "/v1/exec", body, headers)
            answer = connection.getresponse().read()
            middle = time.perf_counter()
            result = box.run("echo hi")
            end = time.perf_counter()
            assert b'"text":"hi\\n"' in answer and result.output == "hi\n"
            if turn >= 20:
                raw.append((middle - begun) * 1000)
                ours.append((end - middle) * 1000)
        connection.close()
    one, other = statistics.median(ours), statistics.median(raw)
    measured(f"run('echo hi'), p50: {one:.2f} ms, raw HTTP {other:.2f} ms, so {one - other:.2f} ms more (bound 1)")


def many(count=100):
    """Sandboxes from one event loop."""

    async def use(number):
        async with gloveport.AsyncSandbox(isolation="none") as box:
            ready.append(time.perf_counter())
            if len(ready) == count:
                all_there.set()
            await all_there.wait()
            result = await box.run(f"echo {number}")
            assert result.output == f"{number}\n", result
            done.append(time.perf_counter())

    async def main():
        nonlocal all_there
        all_there = asyncio.Event()
        await asyncio.gather(*map(use, range(count)))

    all_there = None
    ready, done = [], []
    begun = time.perf_counter()
    asyncio.run(main())
    end = time.perf_counter()
    measured(
        f"{count} sandboxes from one event loop: all started after {max(ready) - begun:.1f} s, "
        f"a command in each took {max(done) - max(ready):.2f} s, all ended after {end - max(done):.1f} s more"
    )
    assert len(done) == count


def measure():
    imports()
    commands()
    many()
