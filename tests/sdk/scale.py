"""What our agent-server bears: large outputs and files, many clients, kills, and requests that are none.

usage: scale.py [--large] BINARY DIRECTORY [URL TOKEN]

    --large   the full sizes, with the numbers that were measured, and a bound for the start

URL is OpenHands' own server: requests that are none have the same status there. All files are below DIRECTORY, and are
deleted as soon as they are not needed.

Prints one line a check, `passed  …` or `FAILED  …`; the last line counts them.
"""

import asyncio
import contextlib
import hashlib
import json
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import websockets.asyncio.client as async_sockets
import websockets.sync.client as sockets
from websockets.exceptions import ConnectionClosed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bearing import LARGE, MIB, Process, check, finish, has_room, measured, serving, until

KEY = "the-key-of-clients"
HEADERS = {"X-Session-API-Key": KEY}
EXECUTE, START = "/api/bash/execute_bash_command", "/api/bash/start_bash_command"
EVENTS, SEARCH = "/api/bash/bash_events", "/api/bash/bash_events/search"
UPLOAD, DOWNLOAD = "/api/file/upload", "/api/file/download"
CHUNK = MIB
OUTPUT = 1000 * MIB if LARGE else 200 * MIB
FILE = 2048 * MIB if LARGE else 300 * MIB
# What the server may use at most, and how long the median of its starts may take.
MEMORY, STARTED = 300 * MIB, 0.030


class Server(Process):
    """One of ours, by the name of OpenHands' own."""

    def __init__(self, binary, directory):
        super().__init__(binary, "agent-server", directory)
        self.start(
            OH_SESSION_API_KEYS_0=KEY, GLOVEPORT_AGENT_SERVER="none", OH_ENABLE_VSCODE="0",
            OH_BASH_EVENTS_DIR=str(self.directory / "events"),
        )  # fmt: skip
        self.http = httpx.Client(base_url=self.url, headers=HEADERS, timeout=120)

    def end(self):
        self.http.close()
        super().end()

    def run(self, command, **more):
        answer = self.http.post(EXECUTE, json={"command": command} | more)
        answer.raise_for_status()
        return answer.json()

    def works(self):
        return self.process.poll() is None and self.run("echo works")["stdout"] == "works\n"

    def forget(self):
        self.http.delete(EVENTS).raise_for_status()

    def socket(self, **more):
        return sockets.connect(
            self.url.replace("http", "ws", 1) + "/sockets/bash-events",
            additional_headers=HEADERS, compression=None, max_size=None, proxy=None, open_timeout=20, **more,
        )  # fmt: skip


# --- a large output


class Joined:
    """The chunks of a command as they come: their order, their sizes and the hash of it all."""

    def __init__(self):
        self.hash, self.orders, self.sizes, self.exit_code = hashlib.sha256(), [], [], None

    def add(self, event):
        text = event["stdout"] or ""
        self.hash.update(text.encode())
        self.orders.append(event["order"])
        self.sizes.append(len(text))
        self.exit_code = event["exit_code"]

    def check(self, name, expected):
        rest = (OUTPUT - 1) % CHUNK + 1
        count = (OUTPUT - rest) // CHUNK
        check(f"{name} has each chunk in order", self.orders == list(range(count + 1)), self.orders[:20])
        check(f"{name} has chunks of their size", self.sizes == [CHUNK] * count + [rest], self.sizes[-5:])
        check(f"{name} is complete", self.hash.hexdigest() == expected, sum(self.sizes))


def follow(server, command):
    """Starts a command over the socket, and reads its events there."""
    joined = Joined()
    with server.socket() as events:
        events.send(json.dumps({"command": command, "timeout": 280}))
        started = json.loads(events.recv(timeout=20))
        while joined.exit_code is None:
            joined.add(json.loads(events.recv(timeout=60)))
    return started["id"], joined


def pages(server, command):
    joined, page = Joined(), None
    while True:
        wanted = {"kind__eq": "BashOutput", "command_id__eq": command} | ({"page_id": page} if page else {})
        answer = server.http.get(SEARCH, params=wanted).json()
        for event in answer["items"]:
            joined.add(event)
        page = answer["next_page_id"]
        if page is None:
            return joined


def large_output(server):
    command = f"seq 1000000000 | head -c {OUTPUT}"
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE) as running:
        expected = hashlib.file_digest(running.stdout, "sha256").hexdigest()
    began = time.monotonic()
    identity, joined = follow(server, command)
    measured(f"a follower has {OUTPUT // MIB} MiB after {time.monotonic() - began:.1f} s")
    joined.check("a large output on the socket", expected)
    check("a large output ends well", joined.exit_code == 0, joined.exit_code)
    began = time.monotonic()
    pages(server, identity).check("a large output in pages", expected)
    measured(f"pages have it after {time.monotonic() - began:.1f} s")
    server.forget()
    began = time.monotonic()
    answer = server.run(command, timeout=280)
    whole = hashlib.sha256(answer["stdout"].encode()).hexdigest()
    check("a large output is all in the answer to execute", whole == expected and answer["exit_code"] == 0, len(answer["stdout"]))
    measured(f"execute answers with it after {time.monotonic() - began:.1f} s")
    check("a large output is no matter of memory", server.peak() < MEMORY, server.peak())
    measured(f"peak of memory: {server.peak() // MIB} MiB")
    check("the server works after a large output", server.works())
    server.forget()


# --- a large file


class Pattern:
    """A file that is not stored: blocks of noise, each with its number in front."""

    def __init__(self, size):
        self.size, self.at, self.noise = size, 0, random.Random(7).randbytes(MIB - 8)

    def seek(self, offset, whence=0):
        self.at = offset + (self.size if whence == 2 else 0)
        return self.at

    def tell(self):
        return self.at

    def read(self, _=-1):
        """A block, whatever is asked for."""
        if self.at >= self.size:
            return b""
        block = (self.at // MIB).to_bytes(8, "big") + self.noise
        self.at += MIB
        return block

    def digest(self):
        found = hashlib.sha256()
        while block := self.read():
            found.update(block)
        return found.hexdigest()


def large_file(server):
    place = server.work / "large-file"
    target, params = place / "file", {"path": str(place / "file")}
    began = time.monotonic()
    answer = server.http.post(UPLOAD, params=params, files={"file": ("file", Pattern(FILE))})
    measured(f"{FILE // MIB} MiB up in {time.monotonic() - began:.1f} s")
    is_told = answer.status_code == 200 and answer.json().get("file_size") == FILE
    check("a large file goes up", is_told, answer.text)
    began, found = time.monotonic(), hashlib.sha256()
    with server.http.stream("GET", DOWNLOAD, params=params) as answer:
        for block in answer.iter_bytes(MIB):
            found.update(block)
    measured(f"and down in {time.monotonic() - began:.1f} s")
    check("a large file comes down the same", found.hexdigest() == Pattern(FILE).digest())
    check("a large file is no matter of memory", server.peak() < MEMORY, server.peak())
    measured(f"peak of memory: {server.peak() // MIB} MiB")
    left = [path.name for path in place.iterdir()]
    check("a large file leaves no other one", left == ["file"], left)
    target.unlink()


# --- many at once


FOLLOWERS, CLIENTS, COMMANDS = 49, 8, 200 if LARGE else 25


def commands_of(server, client):
    """Whether each command of a client answers with its own output."""
    with httpx.Client(base_url=server.url, headers=HEADERS, timeout=60) as http:
        for number in range(COMMANDS):
            answer = http.post(EXECUTE, json={"command": f"echo {client}-{number}"}).json()
            if answer["stdout"] != f"{client}-{number}\n":
                return answer
    return None


async def ends_of(server, ready, last):
    """How many commands end on a socket, up to the one with that output."""
    url = server.url.replace("http", "ws", 1) + "/sockets/bash-events"
    more = {"compression": None, "max_size": None, "proxy": None, "open_timeout": 60, "ping_interval": None}
    async with async_sockets.connect(url, additional_headers=HEADERS, **more) as events:
        ready.append(True)
        count = 0
        async for text in events:
            event = json.loads(text)
            count += event.get("exit_code") is not None
            if event.get("stdout") == last:
                return count
    return None


async def followed(server, ready, last):
    return await asyncio.wait_for(asyncio.gather(*[ends_of(server, ready, last) for _ in range(FOLLOWERS)]), 120)


def one_that_does_not_read(server):
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", server.port))
    slow.sendall(handshake())
    read = b""
    while not read.endswith(b"\r\n\r\n"):
        read += slow.recv(1)
    assert b" 101 " in read.partition(b"\r\n")[0], read
    return slow


def handshake():
    return (
        "GET /sockets/bash-events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nX-Session-API-Key: {KEY}\r\n\r\n"
    ).encode()


def many_at_once(server):
    ready, last = [], "the last one\n"
    with contextlib.closing(one_that_does_not_read(server)), ThreadPoolExecutor(CLIENTS + 1) as pool:
        followers = pool.submit(asyncio.run, followed(server, ready, last))
        all_follow = until(lambda: len(ready) == FOLLOWERS or followers.done(), 60)
        check("fifty follow at once", all_follow and len(ready) == FOLLOWERS, len(ready))
        began = time.monotonic()
        wrong = [one for one in pool.map(lambda client: commands_of(server, client), range(CLIENTS)) if one]
        took = time.monotonic() - began
        check("eight clients at once get their own outputs", not wrong, wrong)
        measured(f"commands with {FOLLOWERS + 1} followers: {CLIENTS * COMMANDS / took:.0f} a second")
        # More than a connection takes in that nobody reads.
        began = time.monotonic()
        server.run("head -c 12000000 /dev/zero | tr '\\0' a")
        check("one that does not read delays no command", time.monotonic() - began < 20, time.monotonic() - began)
        server.run(f"echo {last.strip()}")
        counts = followers.result()
        check("each follower sees all that ends", set(counts) == {CLIENTS * COMMANDS + 2}, counts)
    check("followers are no matter of memory", server.peak() < MEMORY, server.peak())
    measured(f"peak of memory: {server.peak() // MIB} MiB")
    if LARGE:
        began = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda client: commands_of(server, client), range(CLIENTS)))
        measured(f"commands without followers: {CLIENTS * COMMANDS / (time.monotonic() - began):.0f} a second")
    server.forget()


# --- kills


def of_sandbox(mark):
    """The processes with the mark of a sandbox in their environment."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if place.name.isdigit() and f"GLOVEPORT_SANDBOX={mark}".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def sleeping(mark):
    """How many of them have nothing to do."""
    count = 0
    for process in of_sandbox(mark):
        with contextlib.suppress(OSError):
            count += Path(f"/proc/{process}/cmdline").read_bytes() == b"sleep\x001000\0"
    return count


JOBS = ["sleep 1000", "sleep 1000 & wait", "trap '' TERM HUP INT; sleep 1000; sleep 1000", "setsid sleep 1000",
        "nohup sleep 1000 >/dev/null 2>&1 &", "setsid nohup sh -c 'sleep 1000 & wait' >/dev/null 2>&1 &",
        "(setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' >/dev/null 2>&1 &)"]  # fmt: skip


def a_killed_server(binary, directory):
    server = Server(binary, directory)
    try:
        assert until(server.listens), "the server does not listen"
        mark = server.run("echo $GLOVEPORT_SANDBOX")["stdout"].strip()
        kept = server.run("echo kept; exit 3")
        for job in JOBS:
            server.http.post(START, json={"command": job}).raise_for_status()
        check("commands and jobs run", bool(mark) and until(lambda: sleeping(mark) == len(JOBS)), sleeping(mark))
    finally:
        server.process.kill()
        server.process.wait()
    began = time.monotonic()
    check("a killed server leaves no process", until(lambda: not of_sandbox(mark), 5), of_sandbox(mark))
    measured(f"they are gone {time.monotonic() - began:.2f} s after it")
    with serving(Server(binary, directory)) as again:
        check("it starts again with its events", again.works())
        found = again.http.get(f"{EVENTS}/{kept['id']}")
        check("events are there after a kill", found.status_code == 200 and found.json() == kept, found.text)
        commands = again.http.get(SEARCH, params={"kind__eq": "BashCommand"}).json()["items"]
        missing = set(JOBS) - {one["command"] for one in commands}
        check("commands that were killed are there", not missing, missing)


# Sends the bytes of its input, and then stays until it is killed.
CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.stdin.buffer.read())
print("sent", flush=True)
connection.recv(1 << 20)
print("answered", flush=True)
connection.recv(1 << 20)
"""


def kill_a_client(server, text, word="sent"):
    """Kills a client once it has sent these bytes, or got the first of an answer."""
    arguments = [sys.executable, "-S", "-c", CLIENT, str(server.port)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        client.stdin.write(text)
        client.stdin.close()
        while (line := client.stdout.readline().decode().strip()) != word:
            assert line, "the client has ended"
        client.kill()


def request_of(method, path, length, *more):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"X-Session-API-Key: {KEY}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


def killed_clients(server):
    place = server.work / "killed"
    place.mkdir()
    body = json.dumps({"command": f"touch {place}/begun; sleep 0.5; touch {place}/ended"}).encode()
    kill_a_client(server, request_of("POST", EXECUTE, len(body), "Content-Type: application/json") + body)
    check("a command goes on without the client that waits", until((place / "ended").exists), list(place.iterdir()))
    check("the server works after a client that waited", server.works())
    partial_uploads(server, place / "uploads")
    # More than may follow at once.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: kill_a_client(server, handshake(), "answered"), range(60)))

    def follows():
        with contextlib.suppress(ConnectionClosed), server.socket() as events:
            events.send('{"command":"echo followed"}')
            return "BashCommand" in events.recv(timeout=20)
        return False

    check("followers that were killed leave their places", until(follows, 10))
    check("the server works after followers that were killed", server.works())


def partial_uploads(server, place):
    place.mkdir()
    (place / "old").write_bytes(b"old")
    head = b'--end\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    for name in ("new", "old"):
        path = f"{UPLOAD}?path={place / name}"
        start = request_of("POST", path, 100 * MIB, "Content-Type: multipart/form-data; boundary=end")
        kill_a_client(server, start + head + bytes(10 * MIB))
    left = lambda: sorted(path.name for path in place.iterdir())
    check("half of a file is no file", until(lambda: left() == ["old"], 5), left())
    check("half of a file takes the place of none", (place / "old").read_bytes() == b"old")
    check("the server works after half of a file", server.works())


# --- what is no request


LONG = "x" * MIB
ID = uuid.UUID(int=7).hex


def text_body(text):
    return {"content": text, "headers": {"Content-Type": "application/json"}}


def bad_requests(work):
    """Each by its name: the method, the path and the rest."""
    deep = 100_000
    post = {
        "no JSON": text_body("{"),
        "nothing": text_body(""),
        "half a text": text_body('{"command":"'),
        "a lone surrogate": text_body('{"command":"\\ud800"}'),
        "no UTF-8": text_body(b'{"command":"\xff\xfe"}'),
        "no number": text_body('{"command":"true","timeout":NaN}'),
        "an infinite number": text_body('{"command":"true","timeout":1e999}'),
        "a huge number": text_body('{"command":"true","timeout":' + "9" * 400 + "}"),
        "a list": {"json": []},
        "null": {"json": None},
        "no command": {"json": {"timeout": 1}},
        "an object as the command": {"json": {"command": {}}},
        "a list as cwd": {"json": {"command": "true", "cwd": []}},
        "an object as the timeout": {"json": {"command": "true", "timeout": {}}},
        "a deep list": text_body("[" * deep),
        "a deep object": text_body('{"a":' * deep),
        "a deep list that ends": text_body("[" * deep + "]" * deep),
        "a deep list as the command": text_body('{"command":' + "[" * deep + "]" * deep + "}"),
        "a byte of zero in the command": {"json": {"command": "true\0"}},
        "a byte of zero in cwd": {"json": {"command": "true", "cwd": "/tmp\0"}},
        "a long cwd": {"json": {"command": "true", "cwd": "/" + LONG}},
        "a wrong key": {"json": {"command": "true"}, "headers": {"X-Session-API-Key": "x" * 1000}},
    }
    found = {f"{name}, execute": ("POST", EXECUTE, more) for name, more in post.items()}
    found |= {f"{name}, start": ("POST", START, more) for name, more in post.items()}
    for name, query in {
        "limit": "999999999999999999999", "order__gt": "9" * 400, "page_id": "x" * 8000, "command_id__eq": "x" * 8000,
        "kind__eq": "%00", "timestamp__gte": "9" * 400, "timestamp__lt": "%ff", "sort_order": "%2e%2e",
    }.items():  # fmt: skip
        found[f"search, {name}"] = ("GET", f"{SEARCH}?{name}={query}", {})
    for name, one in {"long": "x" * 8000, "of bytes": "%00%ff", "of points": "..%2f..%2fetc%2fpasswd"}.items():
        found[f"an id that is {name}"] = ("GET", f"{EVENTS}/{one}", {})
        found[f"an id that is {name}, stop"] = ("POST", f"/api/bash/bash_commands/{one}/stop", {})
    found["ids of a megabyte"] = ("GET", EVENTS + "/", {"json": [LONG, ID]})
    found["ids of all kinds"] = ("GET", EVENTS + "/", {"json": [1, None, [], {}]})
    found["deep ids"] = ("GET", EVENTS + "/", text_body("[" * deep + "]" * deep))
    paths = {"relative": "a/b", "of points": "../../etc/passwd", "empty": "", "long": "/" + "x" * 5000,
             "with zero": "/tmp/a\0b", "of bytes": b"/no/such\xff".decode("latin-1")}  # fmt: skip
    for name, path in paths.items():
        for route in (DOWNLOAD, "/api/file/search_subdirs", "/api/git/changes", "/api/git/diff", "/api/git/commits"):
            found[f"a path that is {name}, {route}"] = ("GET", route, {"params": {"path": path}})
    for name in ("relative", "of points", "empty", "with zero"):
        params = {"path": paths[name]}
        found[f"a path that is {name}, upload"] = ("POST", UPLOAD, {"params": params, "files": {"file": ("a", b"1")}})
        found[f"a path that is {name}, new directory"] = ("POST", "/api/file/create_directory", {"params": params})
    form = {"Content-Type": "multipart/form-data; boundary=end"}
    for name, content in {"garbage": b"\0" * 1000, "no end": b"--end\r\nContent-Disposition: form-data", "nothing": b"",
                          "a long head": b"--end\r\nX: " + b"x" * MIB}.items():  # fmt: skip
        more = {"params": {"path": f"{work}/never"}, "content": content, "headers": form}
        found[f"a form that is {name}"] = ("POST", UPLOAD, more)
    found["hooks, deep"] = ("POST", "/api/hooks", text_body("[" * deep))
    found["hooks, with zero"] = ("POST", "/api/hooks", {"json": {"project_dir": "/tmp/a\0b"}})
    found["git, an option as the ref"] = ("GET", "/api/git/changes", {"params": {"path": work, "ref": "--output=x"}})
    found["git, an option as the commit"] = ("GET", "/api/git/diff", {"params": {"path": work, "commit": "--all"}})
    wrong = {"Range": "bytes=" + "9" * 400 + "-"}
    found["a range of nonsense"] = ("GET", DOWNLOAD, {"params": {"path": "/etc/passwd"}, "headers": wrong})
    return found


def statuses(url, token, requests):
    found = {}
    with httpx.Client(base_url=url, timeout=30, limits=httpx.Limits(max_keepalive_connections=0)) as http:
        for name, (method, path, more) in requests.items():
            headers = {"X-Session-API-Key": token} | more.get("headers", {})
            try:
                found[name] = http.request(method, path, **more | {"headers": headers}).status_code
            except httpx.HTTPError as error:
                found[name] = type(error).__name__
    return found


NESTED = "what is nested too deep, or has too many values, is told so"
TEXT = "what cannot be a text, or a number of the machine, is refused"
FORM = "a form that has no end is told to have none"
PATH = "a path that cannot be is refused"
ADDRESS = "an address that is no UTF-8 is refused"
# What has another status than there, with that of ours and the reason.
DIFFERS = {
    f"{name}, {call}": told
    for call in ("execute", "start")
    for name, told in {
        "a lone surrogate": (422, TEXT),
        "a huge number": (422, TEXT),
        "a deep list": (422, NESTED),
        "a deep object": (413, NESTED),
        "a deep list that ends": (413, NESTED),
        "a deep list as the command": (413, NESTED),
    }.items()
} | {
    "deep ids": (413, NESTED),
    "hooks, deep": (422, NESTED),
    "search, order__gt": (422, TEXT),
    "an id that is of bytes": (400, ADDRESS),
    "an id that is of bytes, stop": (400, ADDRESS),
    "an id that is of points, stop": (422, "slashes that are quoted are a part of the id"),
    f"a path that is with zero, {DOWNLOAD}": (400, PATH),
    "a path that is with zero, /api/file/search_subdirs": (400, PATH),
    "a path that is with zero, upload": (400, PATH),
    "a path that is with zero, new directory": (400, PATH),
    "a form that is no end": (400, FORM),
    "a form that is nothing": (400, FORM),
    "a range of nonsense": (200, "a range that is not understood is answered with the whole file"),
}
# An error of the server in both.
ERRORS = {f"a path that is long, {DOWNLOAD}", "a path that is long, /api/file/search_subdirs"}
# An error only there, which takes their server seconds to write down.
THEIR_ERRORS = {
    *(f"{name}, {call}" for name in ("no number", "an infinite number") for call in ("execute", "start")),
    "a lone surrogate, start",
    *(
        f"a path that is {name}, /api/git/{route}"
        for name in ("long", "with zero")
        for route in ("changes", "diff", "commits")
    ),
}


def no_requests(server, url=None, token=None):
    requests = bad_requests(str(server.work))
    ours = statuses(server.url, KEY, requests)
    asked = {name: one for name, one in requests.items() if name not in THEIR_ERRORS | ERRORS}
    theirs = statuses(url, token, asked) if url else {}
    for name, status in ours.items():
        wanted, reason = DIFFERS.get(name, (theirs.get(name, status), None))
        is_answer = status == 500 if name in ERRORS else isinstance(status, int) and status < 500
        is_other = reason is None or name not in theirs or theirs[name] != status
        told = f"no request: {name}" + (f" (differs: {reason})" if reason else "")
        check(told, status == wanted and is_answer and is_other, f"{status}, there {theirs.get(name)}")
    unknown = (set(DIFFERS) | ERRORS | THEIR_ERRORS) - set(requests)
    check("all that differs is a request", not unknown, unknown)
    check("no request takes a file", not (server.work / "never").exists())
    check("the server works after what is no request", server.works())
    check("what is no request is no matter of memory", server.peak() < MEMORY, server.peak())


# --- the start


def first_command(binary, directory):
    """Seconds from the start of the program to the answer of the first command."""
    server = Server(binary, directory)
    try:
        body = b'{"command":"true"}'
        text = request_of("POST", EXECUTE, len(body), "Content-Type: application/json", "Connection: close") + body
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
                    connection.sendall(text)
                    answer = connection.recv(1 << 16)
                break
            time.sleep(0.0005)
        took = time.monotonic() - server.began
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        return took
    finally:
        server.end()
        shutil.rmtree(directory)


def starts(binary, directory):
    times = [first_command(binary, directory / f"start-{number}") for number in range(10)]
    median = statistics.median(times)
    measured(f"the first command is answered after {median * 1000:.1f} ms (median of {len(times)})")
    check("ten servers start and answer", len(times) == 10)
    if LARGE:
        check("a server starts fast", median < STARTED, f"{median * 1000:.1f} ms")


def part(name, run, *arguments):
    """A part that breaks is one check that fails; the others follow."""
    began = time.monotonic()
    try:
        run(*arguments)
    except Exception as error:
        check(f"{name} comes to its end", False, repr(error))
    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)


def main(binary, directory, *theirs):
    place = Path(directory)
    place.mkdir(exist_ok=True)
    with serving(Server(binary, place / "first")) as server:
        if has_room("a large output", place, OUTPUT):
            part("a large output", large_output, server)
        if has_room("a large file", place, FILE):
            part("a large file", large_file, server)
        part("many at once", many_at_once, server)
    with serving(Server(binary, place / "second")) as server:
        part("killed clients", killed_clients, server)
        part("no requests", no_requests, server, *theirs)
    part("a killed server", a_killed_server, binary, place / "third")
    part("starts", starts, binary, place)
    finish()


main(*[word for word in sys.argv[1:] if word != "--large"])
