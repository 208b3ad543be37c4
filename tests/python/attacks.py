"""What goes wrong: connections that break, servers that go away, interpreters that are killed, and others."""

import asyncio
import contextlib
import gc
import http.server
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gateways
import gloveport
import presence
from gloveport import AsyncSandbox, Sandbox, _core
from report import check, failed, measured

PROGRAM = gloveport.find_program()


def sessions():
    listed = subprocess.run([PROGRAM, "session", "ls", "-q"], capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def until(is_so, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.02)
    return False


def box():
    return Sandbox(isolation="none")


def raised(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"nothing of {kind.__name__} was raised")


class Proxy:
    """Stands between a client and a server, and breaks connections as it is told."""

    def __init__(self, url):
        self.target = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        # Bytes of answers after which a connection is broken, for the next connections; none lets them go.
        self.limits = []
        self.swallow = 0
        self.count = 0
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            limit = self.limits.pop(0) if self.limits else None
            if self.swallow:
                # The request is read, and never passed on.
                self.swallow -= 1
                client.recv(65536)
                client.close()
                continue
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            self.sockets += [client, server]
            threading.Thread(target=self._pump, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, limit), daemon=True).start()

    def _pump(self, source, sink, limit):
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if limit is not None and passed + len(data) > limit:
                    sink.sendall(data[: limit - passed])
                    break
                sink.sendall(data)
                passed += len(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def break_all(self):
        """Breaks the connections that there are."""
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Goes away, with all its connections."""
        for each in (self.listener, *self.sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextlib.contextmanager
def proxied():
    with box() as direct:
        proxy = Proxy(direct.url())
        try:
            with Sandbox.connect(proxy.url, direct._session.key) as through:
                through._disconnect()
                yield direct, through, proxy
        finally:
            proxy.close()


def output_goes_on_where_a_connection_broke():
    expected = "".join(f"line {number} ü\n" for number in range(30000))
    script = 'echo ran >> count; i=0; while [ $i -lt 30000 ]; do echo "line $i ü"; i=$((i+1)); done'
    with proxied() as (direct, through, proxy):
        numbers = random.Random(1)
        proxy.limits = [numbers.randrange(0, 60_000) for _ in range(12)]
        result = through.run(script)
        assert result.output == expected, (len(result.output), len(expected), result)
        assert proxy.count >= 3, proxy.count
        assert direct.path("count").read_text() == "ran\n"


def a_command_never_runs_twice():
    with proxied() as (direct, through, proxy):
        for number in range(40):
            through._disconnect()
            # It breaks before, in and behind the answer's head, and in its events.
            proxy.limits = [number * 12]
            assert through.run(f"echo {number} >> ran; echo {number}").output == f"{number}\n"
        assert direct.path("ran").read_text().split() == [str(number) for number in range(40)]
        for number in range(10):
            through._disconnect()
            proxy.limits = [number * 20]
            through.start(f"echo {number} >> started").wait(20)
        assert direct.path("started").read_text().split() == [str(number) for number in range(10)]


def a_terminal_loses_and_doubles_nothing_where_a_connection_breaks():
    with proxied() as (direct, through, proxy):
        numbers = random.Random(3)
        through.path("typed").write_bytes(b"")
        data = "".join(f"{number:07}\n" for number in range(40_000))
        script = "stty raw -echo; echo ready; head -c 320000 >typed; stty sane; seq 1 60000; exit 5"
        terminal = through.terminal(script)
        assert terminal.read_until("ready\n") == "ready\n"
        for at in range(0, len(data), 8_000):
            terminal.write(data[at : at + 8_000])
            if numbers.random() < 0.3:
                proxy.break_all()
        proxy.limits = [None, *(numbers.randrange(200, 200_000) for _ in range(6))]
        proxy.break_all()
        text = "".join(terminal)
        assert text == "".join(f"{number}\r\n" for number in range(1, 60_001)), (len(text), text[:200])
        assert direct.path("typed").read_text() == data
        assert (terminal.wait(5).exit_code, terminal.missing) == (5, 0)
        assert proxy.count >= 8, proxy.count
        terminal.close()


def a_command_that_did_not_arrive_is_not_said_to_have_run():
    with proxied() as (direct, through, proxy):
        for call in (through.run, through.start):
            through._disconnect()
            proxy.swallow = 1
            error = raised(gloveport.ConnectionLostError, call, "touch ran")
            assert error.remedy, error
        assert not direct.path("ran").exists()


def output_of_a_process_goes_on_where_a_connection_broke():
    script = "echo ran >>ran; i=0; while [ $i -lt 20000 ]; do echo line $i; echo err $i >&2; i=$((i+1)); done; exit 3"
    out, err = ("".join(f"{word} {number}\n" for number in range(20000)).encode() for word in ("line", "err"))
    with proxied() as (direct, through, proxy):
        numbers = random.Random(2)
        process = through.processes.start(["sh", "-c", script])
        through._disconnect()
        proxy.limits = [numbers.randrange(0, 200_000) for _ in range(8)]
        done = process.wait()
        assert (done.stdout, done.stderr, done.exit_code, done.lost) == (out, err, 3, 0), done.exit_code
        assert proxy.count >= 5, proxy.count
        assert direct.path("ran").read_text() == "ran\n"
        # More than is kept: nobody knows where it was.
        process = through.processes.start(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; sleep 60"])
        through._disconnect()
        proxy.limits = [2_500_000]
        error = raised(gloveport.OutputGoneError, process.wait)
        assert error.code == "output_gone" and error.remedy, error
        assert process.status().end is None


def reading_a_file_goes_on_where_a_connection_broke():
    data = os.urandom(2_000_000)
    with proxied() as (direct, through, proxy):
        direct.path("file").write_bytes(data)
        proxy.limits = [0, 100, 300_000, 700_000, 5000]
        assert through.path("file").read_bytes() == data
        assert proxy.count >= 5
        reader = through.path("file").open("rb")
        reader.read(10)
        reader.close()


def a_file_that_changes_while_it_is_read_is_no_whole():
    with proxied() as (direct, through, proxy):
        direct.path("file").write_bytes(b"a" * 3_000_000)
        through._disconnect()
        proxy.limits = [1_000_000]
        with through.path("file").open("rb") as file:
            file.read(10)
            direct.path("file").write_bytes(b"b" * 3_000_000)
            raised(gloveport.FileChangedError, file.read)


def a_server_that_goes_away_is_told():
    with proxied() as (_, through, proxy):
        threading.Timer(0.5, proxy.close).start()
        begun = time.monotonic()
        error = raised(gloveport.UnreachableError, through.run, "sleep 30")
        assert 2 < time.monotonic() - begun < 8 and error.remedy, error
        raised(gloveport.UnreachableError, through.path("x").exists)


def a_session_that_has_ended_is_told():
    with box() as one:
        subprocess.run([PROGRAM, "session", "rm", "-f", one.id], check=True, capture_output=True)
        error = raised(gloveport.UnreachableError, one.run, "echo")
        assert "session" in error.remedy
        raised(gloveport.SessionError, Sandbox.attach, one.id)
    raised(gloveport.SandboxClosedError, one.run, "echo")


def a_wrong_key_and_a_wrong_url_are_told():
    with box() as one:
        url = one.url()
        for key in ("wrong", None, ""):
            error = raised(gloveport.ForbiddenError, Sandbox.connect, one.url(), key)
            assert (error.code, error.status) == ("forbidden", 403) and error.remedy, error
        raised(gloveport.UnexpectedAnswerError, Sandbox.connect, one.url() + "/elsewhere", one._session.key)
    raised(gloveport.UnreachableError, Sandbox.connect, url, "x")
    for url in ("", "nonsense", "ftp://x", "http://", "http://[", "http://x:y"):
        raised(gloveport.InvalidRequestError, Sandbox.connect, url)
    raised(gloveport.UnreachableError, Sandbox.connect, "http://no-such-host.invalid")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    raised(gloveport.UnexpectedAnswerError, Sandbox.connect, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    silent = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: silent.accept()[0].close(), daemon=True).start()
    raised(gloveport.ConnectionLostError, Sandbox.connect, f"http://127.0.0.1:{silent.getsockname()[1]}")


class Hostile(http.server.BaseHTTPRequestHandler):
    """Says that it is a sandbox, and answers everything else with what the test wants."""

    answer = ("application/json", b"")

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind, body = self.answer
        if self.path == "/v1/sandbox" and self.command == "GET":
            kind, body = "application/json", b'{"state": "running", "since_seconds": 1, "idle_seconds": 0}'
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_):
        pass


def a_hostile_server_raises_our_errors_alone():
    answers = [b"", b"null", b"[]", b"{}", b'"x"', b"7", b"[" * 200_000, b'{"execs": 5, "entries": 7, "processes": {}}']
    answers += [b'{"entries": [{"path": 1}], "truncated": false, "execs": [{}], "processes": [null]}']
    answers.append(
        b'{"lines": [{}], "terminals": [1], "pages": 5, "parts": 1, "mcp_servers": [0], "result": [], "id": 0}'
    )
    answers.append(
        b'{"id": 0, "result": {"tools": [{}], "content": 5}, "truncated": 0, "state": 1, "argv": 2, "next": []}'
    )
    for name in (
        "ready",
        "change",
        "message",
        "output",
        "gap",
        "exit",
        "error",
        "end",
        "failed",
        "display",
        "stream",
        "raised",
        "lost",
        "start",
    ):
        for data in (
            b"{}",
            b"[]",
            b'{"offset": "x", "text": 1, "to": null}',
            b'{"base64": "*", "offset": 0, "data": []}',
            b"{" * 100_000,
        ):
            answers.append(b"event: %s\ndata: %s\n\n" % (name.encode(), data))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    patience, _core.PATIENCE = _core.PATIENCE, 0.0
    found = []
    with Sandbox.connect(f"http://127.0.0.1:{server.server_port}") as one:
        calls = [
            lambda: one.run("x"),
            lambda: one.start("x").status(),
            lambda: one.start("x").output(),
            one.commands,
            lambda: one.run_code("x"),
            lambda: one.processes.run(["x"]),
            one.processes.list,
            lambda: one.path("x").stat(),
            lambda: list(one.path("x").iterdir()),
            lambda: list(one.path("x").glob("*")),
            lambda: one.path("x").is_dir(),
            lambda: one.download("x", Path(os.environ["HOME"]) / "hostile"),
            lambda: one.upload(Path(__file__).parent, "x"),
            lambda: one.grep("x").lines[0].text,
            lambda: one.path("x").find("*"),
            lambda: list(one.watch("x")),
            lambda: one.terminal("x", id="x").read(5),
            one.terminals,
            one.browser.status,
            lambda: one.browser.navigate("x").check(),
            one.browser.console,
            one.browser.network,
            one.browser.har,
            one.browser.storage,
            one.tools.list,
            lambda: one.tools.call("x"),
            one.mcp.servers,
            lambda: one.mcp.set_servers(gloveport.McpServer("x", "x")),
        ]
        for body in answers:
            Hostile.answer = ("text/event-stream", body)
            for number, call in enumerate(calls):
                try:
                    call()
                except gloveport.GloveportError:
                    pass
                except Exception as error:
                    found.append((number, body[:80], repr(error)))
    server.shutdown()
    _core.PATIENCE = patience
    assert not found, found[:5]


def what_cannot_be_sent_is_told():
    with box() as one:
        for call in (
            lambda: one.run("\ud800"),
            lambda: one.run("x", timeout=float("nan")),
            lambda: one.run("x", timeout=-1),
            lambda: one.run(""),
            lambda: one.run("x", env={"A": object()}),
            lambda: one.run("x", env={"A=": "b"}),
            lambda: one.run("x", cwd="\0"),
            lambda: one.path("\udcff").unlink(),
        ):
            raised(gloveport.InvalidRequestError, call)
        assert one.run("echo well").output == "well\n"


def a_program_that_is_missing_is_told():
    environment = {"PATH": "/nowhere", "HOME": os.environ["HOME"], "PYTHONPATH": os.pathsep.join(sys.path)}
    script = "import sysconfig; sysconfig.get_path = lambda *_: '/nowhere'\nimport gloveport\n"
    script += "try: gloveport.Sandbox().open()\n"
    script += "except gloveport.ProgramMissingError as error: print(error.code, error.remedy)"
    told = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("program_missing ") and "PATH" in told and "GLOVEPORT_PROGRAM" in told, told
    named = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"GLOVEPORT_PROGRAM": "/nowhere/g"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "correct the variable" in named.stdout, named


def a_program_that_is_none_is_told():
    directory = Path(os.environ["HOME"], "programs")
    directory.mkdir()
    for name, text, kind in (
        ("binary", b"\x7fELF\x01\x02", gloveport.ProgramMissingError),
        ("uninterpreted", b"#!/no/such/interpreter\n", gloveport.ProgramMissingError),
        ("silent", b"#!/bin/sh\n", gloveport.SessionError),
        ("failing", b"#!/bin/sh\nexit 3\n", gloveport.SessionError),
        ("chatty", b"#!/bin/sh\necho hello\n", gloveport.SessionError),
    ):
        program = directory / name
        program.write_bytes(text)
        program.chmod(0o755)
        before, os.environ["GLOVEPORT_PROGRAM"] = os.environ.get("GLOVEPORT_PROGRAM"), str(program)
        try:
            for call in (box().open, lambda: Sandbox.attach("x"), Sandbox.snapshots):
                error = raised(kind, call)
                assert error.message and error.remedy and str(program) in str(error), (name, error)
        finally:
            del os.environ["GLOVEPORT_PROGRAM"]
            if before is not None:
                os.environ["GLOVEPORT_PROGRAM"] = before


@contextlib.contextmanager
def gateway():
    """A gateway over this machine that is the one of the environment: its URL, and its process."""
    with gateways.gateway() as (url, process):
        os.environ |= {"GLOVEPORT_GATEWAY": url, "GLOVEPORT_GATEWAY_KEY": gateways.KEY}
        try:
            yield url, process
        finally:
            del os.environ["GLOVEPORT_GATEWAY"], os.environ["GLOVEPORT_GATEWAY_KEY"]


def what_is_wrong_with_a_gateway_is_told():
    with gateway() as (url, process):
        os.environ["GLOVEPORT_GATEWAY_KEY"] = "w" * 32
        told = raised(gloveport.SessionError, Sandbox("").open).message
        assert url in told and "X-API-Key" in told and "GLOVEPORT_GATEWAY_KEY" in told and "WARN" not in told, told
        os.environ["GLOVEPORT_GATEWAY_KEY"] = "k" * 32
        error = raised(gloveport.UnexpectedAnswerError, Sandbox.connect, url, "x")
        assert error.code == "is_gateway" and url in error.message and "`url`" in error.remedy, error
        error = raised(gloveport.SandboxGoneError, Sandbox.connect, f"{url}/gone", "x")
        assert error.code == "no_such_sandbox" and f"{url}/gone" in error.message and error.remedy, error
        with Sandbox("") as one:
            error = raised(gloveport.ForbiddenError, Sandbox.connect, one.url(), "wrong")
            assert one.url() in error.message and "session env" in error.remedy, error
            words = [PROGRAM, "session", "rm", "-f", one.id]
            removing = threading.Timer(0.5, lambda: subprocess.run(words, check=True, capture_output=True))
            removing.start()
            raised(gloveport.SandboxGoneError, lambda: list(one.stream("sleep 60")))
            removing.join()
            for call in (lambda: one.run("x"), one.path("x").read_text):
                error = raised(gloveport.SandboxGoneError, call)
                assert one.url() in error.message and error.remedy, error
        last = Sandbox("").open()
        threading.Timer(0.5, process.kill).start()
        error = raised(gloveport.UnreachableError, last.run, "sleep 60")
        assert last.url() in error.message and error.remedy, error
        error = raised(gloveport.SessionError, last.close)
        assert "could not be ended" in error.message and url in error.message and error.remedy, error
        told = raised(gloveport.SessionError, Sandbox("").open).message
        assert "cannot be reached" in told and url in told and "GLOVEPORT_GATEWAY" in told, told
    for id in sessions():
        subprocess.run([PROGRAM, "session", "rm", "-f", id], check=True, capture_output=True)


def listener(url):
    """The process that listens at a URL of this machine."""
    port = f":{int(url.rsplit(':', 1)[1]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    sockets = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(port) and line[3] == "0A"}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(os.readlink(each) in sockets for each in (process / "fd").iterdir()):
                return int(process.name)
    raise AssertionError(f"nobody listens at {url}")


def a_server_that_is_killed_is_told_to_all_that_wait_for_it():
    def killed(call):
        with box() as one:
            threading.Timer(0.7, os.kill, (listener(one.url()), signal.SIGKILL)).start()
            begun = time.monotonic()
            error = raised(gloveport.UnreachableError, call, one)
            assert one.url() in error.message and "session ls" in error.remedy, error
            assert time.monotonic() - begun < 16, error

    calls = [
        lambda one: one.run("sleep 60"),
        lambda one: list(one.stream("while :; do echo on; sleep 0.05; done")),
        lambda one: one.start("sleep 60").wait(60),
        lambda one: one.processes.run(["sleep", "60"]),
        lambda one: one.terminal("sleep 60").read(60),
        lambda one: one.terminal("sleep 60").wait(60),
        lambda one: list(one.watch(".", timeout=60)),
    ]
    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(killed, calls))


def much_output_needs_little_memory():
    script = """
import sys
from gloveport import Sandbox
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
with Sandbox(isolation="none") as box:
    box.run("true")
    before = peak()
    size = 0
    with box.stream("head -c 300000000 /dev/zero | tr '\\\\0' x") as stream:
        for text in stream:
            size += len(text)
    result = stream.result
    assert size + result.missing == 300000000, (size, result.missing)
    assert len(result.output) == 16 * 1024 * 1024 and result.dropped > 0, len(result.output)
    box.processes.run(["sh", "-c", "head -c 200000000 /dev/zero >big"])
    size = 0
    with box.path("big").open("rb") as file:
        while piece := file.read(1 << 20):
            size += len(piece)
    assert size == 200000000
    box.download("big", sys.argv[1])
    box.upload(sys.argv[1], "again")
    print((peak() - before) / 1024, result.missing)
"""
    target = Path(os.environ["HOME"]) / "big"
    done = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=False)
    target.unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    grown, missing = done.stdout.split()
    measured(
        f"300 MB of output, a file of 200 MB in all ways: {float(grown):.0f} MiB more memory, {missing} bytes missing"
    )
    # What the result keeps, twice when it is made, and while it is decoded.
    assert float(grown) < 120, grown


def output_that_is_not_kept_any_more_is_told():
    with box() as one:
        command = one.start("head -c 400000000 /dev/zero | tr '\\0' x; echo end", cwd="/")
        until(lambda: command.status().state == "ended", 60)
        error = raised(gloveport.OutputGoneError, command.output)
        assert (error.code, error.status) == ("output_gone", 410) and error.remedy, error
        result = command.wait(30, keep=1 << 30)
        assert result.missing > 0 and result.missing + len(result.output) == 400000004, (
            result.missing,
            len(result.output),
        )
        assert result.output.endswith("xend\n")


def threads_share_a_sandbox():
    with box() as one:
        outputs = {}

        def work(number):
            outputs[number] = [one.run(f"echo {number}-{turn}").output for turn in range(30)]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outputs == {number: [f"{number}-{turn}\n" for turn in range(30)] for number in range(8)}


def closing_while_a_thread_works_ends_its_work():
    one = box().open()
    errors = []

    def work():
        try:
            one.run("sleep 60")
        except gloveport.GloveportError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.4)
    one.close()
    thread.join(15)
    assert not thread.is_alive() and errors, errors


def an_interrupt_gives_the_command_up_and_leaves_the_sandbox():
    with box() as one:
        for call in (one.run, lambda text: list(one.stream(text)), lambda _: one.processes.run(["sleep", "60"])):
            threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
            raised(KeyboardInterrupt, call, "sleep 60")
        begun = time.monotonic()
        assert one.run("echo free").output == "free\n"
        assert time.monotonic() - begun < 5
        assert [each.reason for each in one.commands()] == ["cancelled", "cancelled", "exited"], one.commands()
        assert all(each.end for each in one.processes.list())


def a_program_that_just_ends_is_quiet():
    script = (
        "import warnings; from gloveport import Sandbox\n"
        "box = Sandbox(isolation='none').open(); stream = box.stream('yes'); print(box.id, next(stream)[:1])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert until(lambda: done.stdout.split()[0] not in sessions())


def a_task_that_is_cancelled_gives_its_command_up():
    async def main():
        async with AsyncSandbox(isolation="none") as one:
            for _ in range(3):
                task = asyncio.create_task(one.run("sleep 60"))
                await asyncio.sleep(0.3)
                task.cancel()
                try:
                    await task
                    raise AssertionError("it was not cancelled")
                except asyncio.CancelledError:
                    pass
                begun = time.monotonic()
                assert (await one.run("echo free")).output == "free\n"
                assert time.monotonic() - begun < 5
            reason = [each.reason for each in await one.commands()]
            assert reason == ["cancelled", "exited"] * 3, reason
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(one.processes.run(["sleep", "60"]), 0.3)
            assert all(each.end for each in await one.processes.list())

    asyncio.run(main())


def a_program_whose_start_is_interrupted_is_ended():
    moments = (0.0001, 0.0003, 0.0006, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.007, 0.01, 0.015, 0.02)
    with box() as one:
        one.processes.start(["true"]).wait()
        for _ in range(3):
            for delay in moments:
                process = gateways.interrupted(delay, lambda: one.processes.start(["sleep", "60"]))
                if process is not None:
                    process.remove()
                gateways.interrupted(delay, lambda: one.processes.run(["sleep", "60"]))
                assert until(lambda: all(each.end for each in one.processes.list()), 5), (delay, one.processes.list())
        # Errors are those of the start, and other threads start programs, too.
        raised(gloveport.InvalidRequestError, one.processes.start, ["/no/such/program"])
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda number: one.processes.run(["echo", str(number)]).stdout, range(20)))
        assert done == [b"%d\n" % number for number in range(20)], done
    raised(gloveport.SandboxClosedError, lambda: one.processes.run(["true"]))


def a_program_whose_start_is_cancelled_is_ended():
    async def main():
        async with AsyncSandbox(isolation="none") as one:
            for number in range(20):
                task = asyncio.create_task(one.processes.run(["sleep", "12345"]))
                await asyncio.sleep(number / 2000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert task.cancelled()
            running = [each for each in await one.processes.list() if each.end is None]
            assert not running, running

    asyncio.run(main())


def a_start_that_is_cancelled_leaves_nothing():
    before = sessions()

    async def main():
        for delay in (0.0, 0.005, 0.02, 0.05, 0.08):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(AsyncSandbox(isolation="none").open(), delay)

    asyncio.run(main())
    gc.collect()
    assert until(lambda: sessions() <= before), sessions() - before


def a_start_whose_task_is_cancelled_at_once_is_given_up_without_the_loop():
    before = sessions()

    async def main():
        task = asyncio.create_task(AsyncSandbox(isolation="none").open())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        # A loop that is busy with something else frees nothing.
        assert until(lambda: sessions() <= before), sessions() - before

    asyncio.run(main())


#: A provider that needs longer than anybody waits.
SLOW = """#!/bin/sh
case $1 in
    describe) echo '{"protocol": 1, "name": "slow", "capabilities": {"keep_alive": true}}' ;;
    list) echo '{"sandboxes": []}' ;;
    find*) echo '{"sandbox": null}' ;;
    create) echo $$ >>"$0.pids"; exec sleep 60 ;;
    *) echo '{}' ;;
esac
"""


def a_start_that_another_thread_closes_is_given_up_at_once():
    program = Path(os.environ["HOME"], "slow")
    program.write_text(SLOW)
    program.chmod(0o755)
    pids = Path(f"{program}.pids")
    one = Sandbox(f"exec:{program}")
    failed = []

    def work():
        failed.append(raised(gloveport.SandboxClosedError, one.open))

    thread = threading.Thread(target=work)
    thread.start()
    assert until(pids.exists)
    begun = time.monotonic()
    one.close()
    thread.join(15)
    assert failed and time.monotonic() - begun < 5, failed
    [pid] = pids.read_text().split()
    assert until(lambda: not Path("/proc", pid).exists())


CHILD = """
import os, sys, time
from gloveport import Sandbox
box = Sandbox(isolation="none")
if len(sys.argv) > 1:
    print("starting", flush=True)
box.open()
print(box.id, flush=True)
if os.environ.get("FORK") and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
box.run("sleep 60")
"""


def child(*words, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **variables}, start_new_session=True,
    )  # fmt: skip


def an_interpreter_that_ends_leaves_nothing():
    for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        process = child()
        id = process.stdout.readline().strip()
        assert id in sessions(), process.stderr.read()
        # As at a terminal: all that belongs to it gets the signal.
        (os.killpg if end == signal.SIGINT else os.kill)(process.pid, end)
        process.wait()
        assert until(lambda id=id: id not in sessions()), end
        if end == signal.SIGINT:
            assert "KeyboardInterrupt" in process.stderr.read()


def an_interpreter_that_is_killed_while_it_starts_one_leaves_nothing():
    before = sessions()
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
        process = child("told")
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        process.wait()
    time.sleep(1)
    assert until(lambda: sessions() <= before), sessions() - before


def a_reader_of_a_terminal_that_is_interrupted_leaves_it_usable():
    with box() as one, one.terminal("stty -echo; echo ready; exec cat") as terminal:
        terminal.read_until("ready\r\n")
        threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
        raised(KeyboardInterrupt, terminal.read)
        terminal.write("still\n")
        assert terminal.read_until("still\r\n", 10) == "still\r\n"
        ended = []

        def read():
            # The end of the program may come before that of the connection.
            with contextlib.suppress(gloveport.SandboxClosedError):
                assert terminal.read() == b""
            ended.append(True)

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.2)
        terminal.close()
        thread.join(10)
        assert ended == [True]

    async def main():
        async with AsyncSandbox(isolation="none") as one:
            async with await one.terminal("stty -echo; echo ready; exec cat") as terminal:
                await terminal.read_until("ready\r\n")
                for _ in range(3):
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(terminal.read(), 0.2)
                first, second = asyncio.ensure_future(terminal.read()), asyncio.ensure_future(terminal.wait())
                await asyncio.sleep(0.1)
                first.cancel()
                await terminal.write("still\n")
                assert await terminal.read_until("still\r\n", 10) == "still\r\n"
                await terminal.write("\x04")
                assert (await second).exit_code == 0

    asyncio.run(main())


#: Writes more than a client holds, and then nothing until it is told to end.
MUCH = ["sh", "-c", "stty -echo; head -c 3000000 /dev/zero | tr '\\0' x; printf END; read _; exit 6"]


def who_waits_for_the_end_of_a_terminal_leaves_no_reader_stuck():
    with box() as one, one.terminal(MUCH) as terminal:
        ends = []
        waiter = threading.Thread(target=lambda: ends.append(terminal.wait(60)))
        waiter.start()
        # More than is held has come, and nothing comes any more.
        assert until(lambda: terminal._link.is_behind())
        data = b""
        while not data.endswith(b"END"):
            data += terminal.read(10)
        assert (len(data), terminal.missing, ends) == (3_000_003, 0, [])
        terminal.write("\n")
        waiter.join(20)
        assert [end.exit_code for end in ends] == [6], ends

    async def main():
        async with AsyncSandbox(isolation="none") as one, await one.terminal(MUCH) as terminal:
            waiter = asyncio.ensure_future(terminal.wait(60))
            while not terminal._link.is_behind():
                await asyncio.sleep(0.05)
            data = b""
            while not data.endswith(b"END"):
                data += await terminal.read(10)
            assert (len(data), terminal.missing, waiter.done()) == (3_000_003, 0, False)
            await terminal.write("\n")
            assert (await waiter).exit_code == 6

    asyncio.run(asyncio.wait_for(main(), 60))


def what_waits_ends_with_its_sandbox():
    for wait in (lambda one: one.terminal("sleep 60").read(), lambda one: list(one.watch("."))):
        one = box().open()
        errors = []

        def work(one=one, wait=wait, errors=errors):
            try:
                wait(one)
            except gloveport.GloveportError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.5)
        one.close()
        thread.join(15)
        assert not thread.is_alive() and errors, errors


def changes_while_a_connection_was_broken_are_an_overflow():
    with proxied() as (direct, through, proxy):
        with through.watch(".") as watch:
            direct.path("one").write_bytes(b"")
            assert any(change.path.endswith("/one") for change in watch)
            proxy.break_all()
            seen = []
            for change in watch:
                seen.append(change.kind)
                if change.kind == "overflow":
                    direct.path("two").write_bytes(b"")
                elif change.path.endswith("/two"):
                    break
            assert "overflow" in seen, seen


def a_forked_process_uses_it_and_does_not_keep_it():
    process = child(FORK="1")
    id = process.stdout.readline().strip()
    time.sleep(0.2)
    process.kill()
    process.wait()
    assert until(lambda: id not in sessions())
    os.killpg(process.pid, signal.SIGKILL)
    with box() as one:
        one.run("X=shared")
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            forked = os.fork()
        if forked == 0:
            with contextlib.suppress(BaseException):
                os.write(write, one.run("echo $X").output.encode())
                one.close()
            os._exit(0)
        os.waitpid(forked, 0)
        assert os.read(read, 100) == b"shared\n"
        assert one.run("echo $X").output == "shared\n"
        assert one.id in sessions()


def one_that_is_dropped_or_left_by_an_exception_ends():
    try:
        with box() as one:
            raise KeyError
    except KeyError:
        pass
    assert one._session.id not in sessions()
    one = box().open()
    id = one.id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del one
        gc.collect()
        assert until(lambda: id not in sessions())


def a_guard_that_is_killed_is_replaced():
    one = box().open()
    id = one.id
    os.kill(one._guard._process.pid, signal.SIGKILL)
    assert one.run("echo still").output == "still\n"
    one.close()
    assert id not in sessions()


def errors_can_be_sent_to_other_processes():
    with box() as one:
        error = raised(gloveport.CommandFailedError, one.run("false").check)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.result) == (str(error), error.result)
    api = gloveport.RemoteFileNotFoundError("gone", status=404, remedy="look", code="not_found")
    again = pickle.loads(pickle.dumps(api))
    assert (str(again), again.status, again.code) == (str(api), 404, "not_found")


ATTACKS = [
    value for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__ and "_" in getattr(value, "__name__", "")
]  # fmt: skip


def attack():
    # Nobody waits ten seconds for a server that is gone for good.
    _core.PATIENCE = 2.0
    for function in (*ATTACKS, *gateways.ATTACKS, *presence.ATTACKS):
        what = function.__name__.replace("_", " ")
        try:
            function()
        except Exception:
            failed(what)
        else:
            check(what, True)
    check("nothing is left of all these sandboxes", until(lambda: not sessions()), sessions())
