"""What our server of SWE-ReX bears: many sessions, large outputs and files, kills, and requests that are none.

usage: scale.py [--large] BINARY DIRECTORY

    --large   the full sizes, with the numbers that were measured

Sessions, programs and files are asked for by SWE-ReX's own unmodified client. All files are below DIRECTORY, and are deleted as
soon as they are not needed.

Prints one line a check, `passed  …` or `FAILED  …`; the last line counts them.
"""

import asyncio
import contextlib
import hashlib
import http.client
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
import zipfile
from pathlib import Path

# What the client logs of errors that are wanted.
os.environ["SWE_REX_LOG_STREAM_LEVEL"] = "60"

from swerex.exceptions import SwerexException
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    UploadRequest,
)
from swerex.runtime.remote import RemoteRuntime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bearing import LARGE, MIB, Process, check, finish, has_room, measured, serving, until

KEY = "the-key-of-clients"
HEADERS = {"X-API-Key": KEY, "Content-Type": "application/json"}
# An answer tells the last part of an output.
TOLD = 32 * MIB
OUTPUT = 1000 * MIB if LARGE else 50 * MIB
FILE = 2048 * MIB if LARGE else 64 * MIB
SESSIONS, ROUNDS = 100, 5
# What the server itself may use at most, without the shells of its sessions.
MEMORY = 300 * MIB

# The client prints on the standard output, too.
sys.stdout = sys.stderr


def of_mark(mark):
    """The processes that have this in their environment, with the files that they run."""
    found = {}
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if place.name.isdigit() and mark.encode() in (place / "environ").read_bytes():
                found[int(place.name)] = os.readlink(place / "exe")
    return found


def memory_of(process):
    """What it uses, without what others share with it, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class Server(Process):
    """One of ours, by the name of SWE-ReX's."""

    def __init__(self, binary, directory):
        super().__init__(binary, "swerex-remote", directory)
        name, value = "SCALE_OF_SWEREX", uuid.uuid4().hex
        self.mark = f"{name}={value}"
        self.start("--auth-token", KEY, **{name: value})
        self.runtime = RemoteRuntime(host="http://127.0.0.1", port=self.port, auth_token=KEY)

    def asked(self, path, value, method="POST", headers=HEADERS):
        """The status and the body of an answer, or the name of the error."""
        body = json.dumps(value) if not isinstance(value, (bytes, str, type(None))) else value
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__, b""
        finally:
            connection.close()

    def works(self):
        """Whether it has a new session in which a command runs."""
        name = {"session": uuid.uuid4().hex}
        calls = [
            ("/create_session", {"session_type": "bash", "startup_timeout": 20}, "session_type", "bash"),
            ("/run_in_session", {"action_type": "bash", "command": "echo works", "timeout": 20}, "output", "works\n"),
            ("/close_session", {"session_type": "bash"}, "session_type", "bash"),
        ]
        for path, body, field, expected in calls:
            status, answer = self.asked(path, name | body)
            if status != 200 or json.loads(answer)[field] != expected:
                return False
        return self.process.poll() is None

    def check_memory(self, what):
        check(f"{what} is no matter of memory", self.peak() < MEMORY, f"{self.peak() // MIB} MiB")
        measured(f"peak of memory: {self.peak() // MIB} MiB")

    def others(self):
        """What was started by it and is not its program."""
        return {process: file for process, file in of_mark(self.mark).items() if file != self.binary}

    async def create(self, name):
        await self.runtime.create_session(CreateBashSessionRequest(session=name, startup_timeout=60))

    async def run(self, command, session, **more):
        return await self.runtime.run_in_session(BashAction(command=command, session=session, **({"timeout": 60} | more)))

    async def close(self, name):
        await self.runtime.close_session(CloseBashSessionRequest(session=name))


# --- many sessions


# What a session leaves running. Each ends by itself, too.
JOBS = ["sleep 1000 &", "nohup sleep 1000 >/dev/null 2>&1 &", "setsid sleep 1000 >/dev/null 2>&1 &",
        "(trap '' TERM HUP INT; setsid nohup sh -c 'sleep 1000; sleep 1000' >/dev/null 2>&1 &)"]  # fmt: skip


async def one_of_many(server, number):
    """What is wrong in a session of which all commands are known."""
    name = f"number {number}"
    await server.create(name)
    steps = [(f"N={number}; cd /tmp", "")]
    for step in range(ROUNDS):
        steps.append((f"N=$((N + 1)); echo $N; pwd; seq {100 + step} | tail -n 1", f"{number + step + 1}\n/tmp\n{100 + step}\n"))
    steps.append((JOBS[number % len(JOBS)], None))
    wrong = []
    for command, expected in steps:
        got = await server.run(command, name)
        if got.exit_code != 0 or expected not in (None, got.output):
            wrong.append((name, command, got.output, got.exit_code))
    return wrong


async def many_sessions(server):
    began = time.monotonic()
    wrong = await asyncio.gather(*[one_of_many(server, number) for number in range(SESSIONS)])
    wrong = [one for each in wrong for one in each]
    check(f"{SESSIONS} sessions at once have their own state and outputs", not wrong, wrong)
    measured(f"{SESSIONS} sessions with {ROUNDS + 2} commands each: {time.monotonic() - began:.1f} s")
    running = of_mark(server.mark)
    shells = {process for process, file in running.items() if file != server.binary}
    used = sum(memory_of(process) for process in running.keys() - shells)
    check("sessions are no matter of memory of the server", used < MEMORY, f"{used // MIB} MiB")
    rest = sum(map(memory_of, shells))
    measured(f"with {SESSIONS} sessions: {used // MIB} MiB, and {rest // MIB} MiB of {len(shells)} other processes")
    check("what they have started runs", len(shells) >= 2 * SESSIONS, len(shells))
    began = time.monotonic()
    await asyncio.gather(*[server.close(f"number {number}") for number in range(SESSIONS)])
    check("closed sessions leave no process", until(lambda: not server.others(), 5), server.others())
    measured(f"closed: {time.monotonic() - began:.1f} s")
    check("the server works after many sessions", server.works())


# --- a large output


def expected_output(command, end):
    """What is told of an output, and how much there is, if this is the end of its lines."""
    count, tail = 0, b""
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE) as running:
        while piece := running.stdout.read(MIB):
            piece = piece.replace(b"\n", end)
            count, tail = count + len(piece), (tail + piece)[-TOLD:]
    return count, tail.replace(b"\r\n", b"\n").decode()


def check_output(what, got, count, tail):
    line, _, rest = got.partition("\n")
    lost = re.fullmatch(r"\[(\d+) bytes of output before this are not shown\]", line)
    check(f"{what} is told to be a part", bool(lost) and int(lost[1]) == count - TOLD, line[:200])
    check(f"{what} has its whole end", rest == tail, f"{len(rest)} of {len(tail)}, from {rest[:30]!r}, not {tail[:30]!r}")


async def large_output(server):
    command = f"seq 1000000000 | head -c {OUTPUT}"
    began = time.monotonic()
    got = await server.runtime.execute(Command(command=command, shell=True, timeout=280))
    measured(f"execute answers after {time.monotonic() - began:.1f} s for {OUTPUT // MIB} MiB")
    check("a large output of execute ends well", (got.exit_code, got.stderr) == (0, ""), (got.exit_code, got.stderr))
    check_output("a large output of execute", got.stdout, *expected_output(command, b"\n"))
    server.check_memory("a large output of execute")
    await server.create("large")
    began = time.monotonic()
    got = await server.run(command, "large", timeout=280)
    measured(f"run_in_session answers after {time.monotonic() - began:.1f} s")
    check("a large output of a session ends well", got.exit_code == 0, got.exit_code)
    # A terminal ends lines in its own way.
    check_output("a large output of a session", got.output, *expected_output(command, b"\r\n"))
    check("a session goes on after a large output", (await server.run("echo next", "large")).output == "next\n")
    is_kept = bool(kept_files(server))
    await server.close("large")
    is_gone = until(lambda: not kept_files(server), 5)
    check("output is on the disk until its session is closed", is_kept and is_gone, (is_kept, kept_files(server)))
    server.check_memory("a large output of a session")
    check("the server works after large outputs", server.works())


# --- a large file


def noise(size):
    """Blocks that are all different."""
    block = random.Random(7).randbytes(MIB - 8)
    for number in range(size // MIB):
        yield number.to_bytes(8, "big") + block


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def kept_files(server):
    """Large temporary files of the server, and those that it holds though they have no name any more."""
    kept = []
    for place in [*Path(f"/proc/{server.process.pid}/fd").iterdir(), *(server.directory / "temporary").rglob("*")]:
        with contextlib.suppress(OSError):
            name = str(place.readlink() if place.is_symlink() else place)
            if place.stat().st_size >= MIB and (name.endswith(" (deleted)") or not place.is_symlink()):
                kept.append(name)
    return kept


async def large_file(server):
    source, place = server.directory / "source", server.work / "large"
    with open(source, "wb") as file:
        for block in noise(FILE):
            file.write(block)
    began = time.monotonic()
    await server.runtime.upload(UploadRequest(source_path=str(source), target_path=str(place / "below/file")))
    measured(f"{FILE // MIB} MiB up in {time.monotonic() - began:.1f} s")
    check("a large file arrives whole", digest(place / "below/file") == digest(source))
    server.check_memory("a large file")
    left = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    check("a large file leaves no other one", left == ["below", "below/file"], left)
    check("a large file leaves no temporary one", until(lambda: not kept_files(server), 5), kept_files(server))
    source.unlink()
    shutil.rmtree(place)


# --- kills


# Sends the bytes of its input, and then stays until it is killed.
CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.stdin.buffer.read())
print("sent", flush=True)
connection.recv(1 << 20)
print("answered", flush=True)
"""


@contextlib.contextmanager
def client(server, text):
    """A client that has sent these bytes, and is killed."""
    arguments = [sys.executable, "-S", "-c", CLIENT, str(server.port)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        try:
            running.stdin.write(text)
            running.stdin.close()
            line = running.stdout.readline().decode().strip()
            assert line == "sent", f"the client has ended: {line}"
            yield
        finally:
            running.kill()


def request_of(path, body, length=None, kind="application/json"):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"X-API-Key: {KEY}", f"Content-Type: {kind}"]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def killed_clients(server):
    place = server.work / "killed"
    place.mkdir()
    await server.create("kept")
    words = f"touch {place}/NAME.begun; sleep 0.5; X=set; touch {place}/NAME.ended"
    for name, path, more in [
        ("session", "/run_in_session", {"action_type": "bash", "session": "kept"}),
        ("program", "/execute", {"shell": True}),
    ]:
        body = json.dumps({"command": words.replace("NAME", name)} | more).encode()
        with client(server, request_of(path, body)):
            check(f"a command begins, {path}", until((place / f"{name}.begun").exists))
            is_early = not (place / f"{name}.ended").exists()
        check(f"a command goes on without the client that waits, {path}", is_early and until((place / f"{name}.ended").exists))
    got = await server.run("echo $X", "kept")
    check("a session has its state without the client that waited", got.output == "set\n", got.output)
    body = json.dumps({"command": "echo begun; sleep 1000", "action_type": "bash", "session": "kept"}).encode()
    with client(server, request_of("/run_in_session", body)):
        check("an endless command runs", until(lambda: "sleep" in map(os.path.basename, server.others().values())))
    await server.runtime.run_in_session(BashInterruptAction(session="kept", timeout=5))
    got = await server.run("echo after", "kept")
    check("an interrupt ends the command of a client that was killed", got.output == "after\n", got.output)
    await server.close("kept")
    partial_uploads(server, place / "uploads")
    check("killed clients leave no process", until(lambda: not server.others(), 5), server.others())
    check("the server works after clients that were killed", server.works())


def form(*parts):
    """A form without its end."""
    texts = []
    for name, more, content in parts:
        head = f'--end\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
        texts.append(head.encode() + content + b"\r\n")
    return b"".join(texts)


FORM = "multipart/form-data; boundary=end"


def partial_uploads(server, place):
    place.mkdir()
    (place / "old").write_bytes(b"old")
    file = ("file", '; filename="a"', bytes(10 * MIB))
    for name in ("new", "old"):
        target = ("target_path", "", str(place / name).encode())
        for parts in [(target, file), (file, target)]:
            with client(server, request_of("/upload", form(*parts), 100 * MIB, FORM)):
                pass
    left = lambda: sorted(path.name for path in place.iterdir())
    check("half of a file leaves nothing", until(lambda: not kept_files(server), 5), kept_files(server))
    check("half of a file is no file", left() == ["old"], left())
    check("half of a file takes the place of none", (place / "old").read_bytes() == b"old")


async def a_killed_server(binary, directory):
    server = Server(binary, directory)
    try:
        assert until(server.listens), "the server does not listen"
        for number, job in enumerate(JOBS):
            await server.create(f"job {number}")
            await server.run(job, f"job {number}")
        await server.create("busy")
        running = [
            asyncio.create_task(server.run("sleep 1000", "busy", timeout=None)),
            asyncio.create_task(server.runtime.execute(Command(command="setsid sleep 1000 & sleep 1000", shell=True))),
            asyncio.create_task(server.runtime.execute(Command(command=["setsid", "-w", "sleep", "1000"]))),
        ]

        def sleeping():
            return sum(os.path.basename(file) == "sleep" for file in server.others().values())

        all_run = False
        for _ in range(200):
            all_run = all_run or sleeping() == len(JOBS) + 4
            if all_run:
                break
            await asyncio.sleep(0.05)
        check("sessions, commands and jobs run", all_run, server.others())
    finally:
        server.process.kill()
        server.process.wait()
    began = time.monotonic()
    check("a killed server leaves no process", until(lambda: not of_mark(server.mark), 5), of_mark(server.mark))
    measured(f"they are gone {time.monotonic() - began:.2f} s after it")
    ended = await asyncio.wait_for(asyncio.gather(*running, return_exceptions=True), 20)
    check("clients of a killed server are told", all(isinstance(one, Exception) for one in ended), ended)
    left = [path for path in (directory / "temporary").rglob("*") if not path.is_dir()]
    check("a killed server leaves no temporary file", not left, left)
    shutil.rmtree(directory)
    with serving(Server(binary, directory)) as again:
        check("a server works in the place of a killed one", again.works())


# --- what is no request


DEEP = 100_000
LONG = "x" * MIB
ROUTES = ["/create_session", "/run_in_session", "/close_session", "/execute", "/read_file", "/write_file"]
# For each route what is a request.
GOOD = {
    "/create_session": {"session_type": "bash", "session": "never"},
    "/run_in_session": {"action_type": "bash", "command": "true"},
    "/close_session": {"session_type": "bash"},
    "/execute": {"command": "true", "shell": True},
    "/read_file": {"path": "/dev/null"},
    "/write_file": {"path": "never", "content": ""},
}
FIELDS = {
    "/create_session": {"session": [7, None, {}], "startup_timeout": ["x", {}], "startup_source": ["a", [1]],
                        "session_type": ["zsh", 7, None]},
    "/run_in_session": {"session": [7], "command": [7, None, []], "timeout": ["x", {}], "check": ["no", 7], "expect": ["a", [1]],
                        "is_interactive_command": ["?"], "error_msg": [7], "action_type": ["zsh", 7, None]},
    "/close_session": {"session": [7], "session_type": ["zsh"]},
    "/execute": {"command": [7, None, {}, ["a", 7]], "timeout": ["x", []], "shell": ["?"], "env": [7, {"A": 7}], "cwd": [7],
                 "check": ["?"]},
    "/read_file": {"path": [7, None], "encoding": [7], "errors": [7]},
    "/write_file": {"path": [7], "content": [7, None]},
}  # fmt: skip


def bad_requests():
    """Each by its name: the route, what is sent, and the status."""
    found = {}
    texts = {
        "no JSON": "{",
        "nothing": "",
        "half a text": '{"command":"',
        "no UTF-8": b'{"command":"\xff\xfe"}',
        "a lone surrogate": '{"command":"\\ud800"}',
        "no number": '{"timeout":NaN}',
        "an infinite number": '{"timeout":1e999}',
        "a list": "[]",
        "null": "null",
        "a text": '"x"',
        "a deep list": "[" * DEEP,
    }
    too_much = {
        "a deep list that ends": "[" * DEEP + "]" * DEEP,
        "a deep object": '{"a":' * DEEP,
        "many values": "[" + "0," * 2 * DEEP + "0]",
    }
    for route in ROUTES:
        for name, text in texts.items():
            found[f"{name}, {route}"] = (route, text, 422)
        for name, text in too_much.items():
            found[f"{name}, {route}"] = (route, text, 413)
        for field, values in FIELDS[route].items():
            for value in values:
                found[f"{json.dumps(value)} as {field}, {route}"] = (route, GOOD[route] | {field: value}, 422)
        deep = json.dumps(GOOD[route])[:-1] + ', "more": ' + "[" * 1000 + "]" * 1000 + "}"
        found[f"a deep member more, {route}"] = (route, deep, 422)
    for route, fields in {
        "/create_session": ["session_type"], "/run_in_session": ["action_type", "command"], "/close_session": ["session_type"],
        "/execute": ["command"], "/read_file": ["path"], "/write_file": ["path", "content"],
    }.items():  # fmt: skip
        for field in fields:
            rest = {name: value for name, value in GOOD[route].items() if name != field}
            found[f"no {field}, {route}"] = (route, rest, 422)
    return found


def refused_requests(work):
    """What has the form of a request, and is answered with an exception: the route, what is sent, and a word of it."""
    zero = "a\0b"
    names = {"empty": "", "long": LONG, "with zero": zero, "of lines": "a\nb", "of points": "../..", "of signs": "\u00fc'\"\\"}
    found = {}
    for name, session in names.items():
        for call, route, body in [
            ("to run in", "/run_in_session", GOOD["/run_in_session"]),
            ("to close", "/close_session", GOOD["/close_session"]),
            ("to interrupt", "/run_in_session", {"action_type": "bash_interrupt"}),
        ]:
            found[f"a session {call} that is not there, {name}"] = (route, body | {"session": session}, "DoesNotExist")
    execute = {
        "no words": {"command": []}, "an empty word": {"command": [""]}, "zero": {"command": ["echo", zero]},
        "no program": {"command": "x" * 300}, "a variable with a sign": {"command": ["/bin/true"], "env": {"A=B": "x"}},
        "a long word": {"command": ["true", "x" * 200_000]}, "a long script": {"command": "true " + LONG, "shell": True},
        "a directory with zero": {"command": "true", "cwd": zero}, "a long directory": {"command": "true", "cwd": "/" + LONG},
        "no directory": {"command": "true", "cwd": "/no/such"}, "a file as directory": {"command": "true", "cwd": "/dev/null"},
        "a variable with zero": {"command": "true", "env": {"A": zero}},
        "no time": {"command": "true", "timeout": 0},
        "less than no time": {"command": "true", "timeout": -1e300},
    }  # fmt: skip
    found |= {f"execute: {name}": ("/execute", body, "") for name, body in execute.items()}
    paths = {"empty": "", "with zero": zero, "of a long name": "x" * 256, "long": "/" + LONG, "a directory": "/",
             "below a file": "/dev/null/x", "a FIFO": f"{work}/fifo", "a device": "/dev/zero",
             "a link to itself": f"{work}/loop"}  # fmt: skip
    for name, path in paths.items():
        found[f"a file to read, {name}"] = ("/read_file", {"path": path}, "")
        if name not in ("a device", "a link to itself"):
            found[f"a file to write, {name}"] = ("/write_file", {"path": path, "content": "x"}, "")
    found["a large file to read"] = ("/read_file", {"path": f"{work}/sparse"}, "")
    found["no encoding"] = ("/read_file", {"path": "/dev/null", "encoding": LONG}, "")
    return found


def forms(work):
    """Uploads that are none: what is sent, and the status."""
    file = ("file", '; filename="a"', b"1")
    target = ("target_path", "", f"{work}/never".encode())
    end = b"--end--\r\n"
    archive = ("target_path", "", f"{work}/archive".encode())
    climbing = io.BytesIO()
    with zipfile.ZipFile(climbing, "w") as made:
        for name in ("../never", "below/../../never", "/never"):
            made.writestr(name, "x")
    climbs = ("file", '; filename="a"', climbing.getvalue())
    return {
        "garbage": (bytes(1000), 400),
        "nothing": (b"", 400),
        "no end": (form(target, file), 400),
        "half a head": (b"--end\r\nContent-Disposition: form-data", 400),
        "a long head": (b"--end\r\nX: " + b"x" * 2 * MIB, 400),
        "no file": (form(target) + end, 422),
        "no target": (form(file) + end, 422),
        "a long target": (form(("target_path", "", LONG.encode()), file) + end, 422),
        "a target that is no text": (form(("target_path", "", b"\xff"), file) + end, 422),
        "a target with zero": (form(("target_path", "", b"a\0b"), file) + end, 511),
        "an empty target": (form(("target_path", "", b""), file) + end, 422),
        "no boolean": (form(target, file, ("unzip", "", b"perhaps")) + end, 422),
        "no archive": (form(archive, file, ("unzip", "", b"true")) + end, 511),
        "an archive that climbs": (form(archive, climbs, ("unzip", "", b"true")) + end, 200),
        "many parts": (form(*[("x", "", b"")] * 2000) + end, 400),
    }  # fmt: skip


def raw(server, text):
    """The status of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        connection.sendall(text)
        answer = b""
        while b"\r\n" not in answer:
            piece = connection.recv(1 << 16)
            if not piece:
                break
            answer += piece
    return int(answer.split()[1]) if answer else None


async def no_requests(server):
    for name, (route, body, wanted) in bad_requests().items():
        status, answer = server.asked(route, body)
        is_told = isinstance(status, int) and "detail" in json.loads(answer or b"{}")
        check(f"no request: {name}", status == wanted and is_told, f"{status}, not {wanted}: {answer[:300]}")
    with open(server.work / "sparse", "wb") as sparse:
        sparse.truncate(TOLD * 2 + 1)
    os.mkfifo(server.work / "fifo")
    (server.work / "loop").symlink_to("loop")
    for name, (route, body, word) in refused_requests(server.work).items():
        status, answer = server.asked(route, body)
        thrown = json.loads(answer or b"{}").get("swerexception", {})
        is_so = status == 511 and word in thrown.get("class_path", "") and thrown.get("message")
        check(f"refused: {name}", is_so, f"{status}: {answer[:300]}")
    strangers(server)
    for name, (content, wanted) in forms(server.work).items():
        status, answer = server.asked("/upload", content, headers=HEADERS | {"Content-Type": FORM})
        check(f"no upload: {name}", status == wanted, f"{status}, not {wanted}: {answer[:300]}")
    status, _ = server.asked("/upload", {"file": "x"})
    check("no upload: JSON", status == 422, status)
    limit = 64 * MIB
    for name, text in {
        "announced": request_of("/execute", b"{", limit + 1),
        "an upload": request_of("/upload", b"", 1 << 40, FORM),
        "in pieces": request_of("/execute", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        + f"{limit + 1:x}\r\n".encode() + b" " * (limit + 1),
    }.items():  # fmt: skip
        status = raw(server, text)
        check(f"too long: {name}", status == 413, status)
    await at_limits(server)
    check("no request takes a file", not list(server.directory.rglob("never")), list(server.directory.rglob("never")))
    check("no request leaves a process", until(lambda: not server.others(), 5), server.others())
    check("the server works after what is no request", server.works())
    server.check_memory("what is no request")


def strangers(server):
    for route in ROUTES + ["/upload", "/close", "/no/such"]:
        for name, key, wanted in [("no key", None, 403), ("a wrong key", "x" * 1000, 401), ("an empty key", "", 401)]:
            status, _ = server.asked(route, GOOD.get(route), headers={} if key is None else {"X-API-Key": key})
            check(f"{name}, {route}", status == wanted, status)
    for name, path, method, wanted in [
        ("no such path", "/no/such", "POST", 404), ("a long path", "/" + "x" * 8000, "POST", 404),
        ("the wrong method", "/execute", "GET", 405), ("the wrong method of a question", "/is_alive", "POST", 405),
        ("an unknown method", "/execute", "BREW", 405),
    ]:  # fmt: skip
        status, _ = server.asked(path, None, method)
        check(name, status == wanted, status)


async def at_limits(server):
    """Names and texts as long as they may be, and one more."""
    names = ["", "x" * 10_000, "a\0b", "a\nb", "../..", "\u00fc'\"\\ $(touch never)"]
    for name in names:
        await server.create(name)
        got = await server.run(f"echo {len(name)}", name)
        await server.close(name)
        check(f"a session by the name {name[:20]!r}", got.output == f"{len(name)}\n", got.output)
    await server.create("limits")
    got = await server.run(f"printf %s {'x' * MIB} | wc -c", "limits")
    check("a command of a megabyte", got.output.strip() == str(MIB), got.output)
    in_it = GOOD["/run_in_session"] | {"session": "limits", "timeout": 20, "check": "silent"}
    for name, command, wanted in [
        ("zero", "echo a\0b", 511), ("a large character", "echo \U0001f600", 200), ("keys", "echo '\x03\x04\x1a\x1c'", 200),
    ]:  # fmt: skip
        status, answer = server.asked("/run_in_session", in_it | {"command": command})
        check(f"a command with {name}", status == wanted, f"{status}: {answer[:300]}")
    got = await server.run("echo next", "limits")
    check("a session goes on after odd commands", got.output == "next\n", got.output)
    for count, wanted in [(100, 200), (101, 511)]:
        status, answer = server.asked("/run_in_session", in_it | {"expect": ["never"] * count})
        check(f"{count} expressions to wait for", status == wanted, f"{status}: {answer[:300]}")
    await server.close("limits")
    body = {"path": f"{server.work}/{'n' * 255}", "content": "x"}
    check("a name of a file as long as may be", server.asked("/write_file", body)[0] == 200)
    for size in (128, 129, 8000):
        status, _ = server.asked("/execute", GOOD["/execute"], headers=HEADERS | {"X-Request-ID": "i" * size})
        check(f"a name of a request of {size} characters", status == 200, status)
    many = await asyncio.gather(*[server.create(f"many {number}") for number in range(130)], return_exceptions=True)
    refused = [error for error in many if isinstance(error, SwerexException)]
    is_so = len(refused) == 2 and many.count(None) == 128
    check("more sessions than there may be are refused", is_so, (len(refused), refused[:1]))
    status, _ = server.asked("/close", None)
    check("all sessions are closed at once", status == 200 and until(lambda: not server.others(), 10), server.others())


def part(name, run, *arguments):
    """A part that breaks is one check that fails; the others follow."""
    began = time.monotonic()
    try:
        asyncio.run(asyncio.wait_for(run(*arguments), 600))
    except Exception as error:
        check(f"{name} comes to its end", False, repr(error))
    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)


def main(binary, directory):
    place = Path(directory)
    place.mkdir(exist_ok=True)
    with serving(Server(binary, place / "first")) as server:
        part("many sessions", many_sessions, server)
        if has_room("a large output", place, 512 * MIB):
            part("a large output", large_output, server)
        if has_room("a large file", place, 3 * FILE):
            part("a large file", large_file, server)
    with serving(Server(binary, place / "second")) as server:
        part("killed clients", killed_clients, server)
        part("no requests", no_requests, server)
    part("a killed server", a_killed_server, binary, place / "third")
    finish()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
main(*[word for word in sys.argv[1:] if word != "--large"])
