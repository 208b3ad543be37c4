"""Sandboxes that a gateway starts, without a program on the client's machine: what can be done, and what goes wrong."""

import asyncio
import contextlib
import gc
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import gloveport
from cases import fails, same
from gloveport import AsyncGateway, Gateway, Sandbox

PROGRAM = gloveport.find_program()
KEY = "k" * 32


@contextlib.contextmanager
def gateway(*words):
    """A gateway: its URL, and its process. What it has left when it ends is of no consequence."""
    key = Path(os.environ["HOME"], "gateway-key")
    key.write_text(KEY)
    words = [PROGRAM, "gateway", "--port", "0", "--key-file", key, *words]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process.stdout.readline().split()[-1], process
    finally:
        process.kill()
        process.wait()


async def a_gateway_starts_finds_and_ends_sandboxes(make, scratch):
    with gateway() as (url, _):
        async with make.gateway(f"{url}/", KEY) as there:
            same((there.url, KEY in repr(there), url in repr(there)), (url, False, True))
            can = await there.capabilities()
            same((can.runtime, can.tenant, "pause" in can.can, "snapshots" in can.can), ("local", "default", True, False))
            assert can.version and can.isolation, can
            told = []
            described = {"env": {"A": "ä b"}, "secrets": {"B": gloveport.Secret("hidden")}, "labels": {"team": "x"}}
            box = await there.start(**described, session_id="build", memory="2g", ttl=600, on_progress=told.append)
            async with box:
                same((await box.run('echo "$A $B"')).output, "ä b hidden\n")
                assert [each.state for each in told][-1] == "running", told
                info = await there.info(box)
                same((info.session_id, info.labels["team"], info.kept, info.id), ("build", "x", False, box.id))
                assert 590 < info.expires - info.created <= 601 and info.key not in repr(info), info
                same((box.runtime, box.workspace, box.url()), ("gateway", info.workspace, info.url))
                same(dict(box.ports), dict(info.ports))
                async with await there.start(kept=True) as other:
                    kept = await there.info(other)
                    same([each.id for each in await there.list()], [box.id, kept.id])
                    same([each.id for each in await there.list(labels={"team": "x"})], [box.id])
                    same([each.id for each in await there.list(most=1, states=["running"])], [box.id])
                # It is kept, and what was only found stays, too.
                for name in (kept.id, kept):
                    async with await there.get(name) as found:
                        same((await found.run("echo found")).output, "found\n")
                same([each.kept for each in await there.list(session_id=kept.id)], [True])
                await there.delete(kept.id)
                for name in (kept.id, "no/such one"):
                    error = await fails(gloveport.SandboxGoneError, there.get(name))
                    assert url in error.message and "list" in error.remedy, error
                # It is called by its session, too.
                async with await there.get("build") as found:
                    same((await there.pause("build")).state, "paused")
                    error = await fails(gloveport.PausedError, found.run("true"))
                    assert box.url() in error.message and error.remedy, error
                    same((await there.resume(found)).state, "running")
                    same((await found.run("echo on")).output, "on\n")
                error = await fails(gloveport.ConflictError, there.start(session_id="build"))
                assert error.code == "session_exists" and error.remedy and url in error.message, error
                # One that is in the way stays, also with a key that both have been given.
                fixed = {"session_id": "fixed", "more": {"session_api_key": "f" * 32}}
                async with await there.start(**fixed) as first:
                    same((await there.info(first)).key, "f" * 32)
                    await fails(gloveport.ConflictError, there.start(**fixed))
                    same((await first.run("echo stays")).output, "stays\n")
                # What this runtime cannot do.
                calls = (there.fork(box), box.fork(), there.snapshot(box), box.snapshot(), there.snapshots())
                for call in calls:
                    error = await fails(gloveport.SessionError, call)
                    same((error.code, url in error.message, bool(error.remedy)), ("unsupported", True, True))
                for call in (there.remove_snapshot("none"), there.start(image="debian:13")):
                    same((await fails(gloveport.SessionError, call)).code, "unsupported")
                same((await fails(gloveport.SessionError, box.events())).code, "unsupported")
                same((await fails(gloveport.SessionError, box.network.show())).code, "unsupported")
            same([each.id for each in await there.list()], [])
            await fails(gloveport.SandboxClosedError, box.run("true"))
            await box.close()


async def a_gateway_keeps_and_forks_the_files_of_a_container(make, scratch):
    """With Docker."""
    with gateway("--runtime", "docker") as (url, _):
        async with make.gateway(url, KEY) as there:
            async with await there.start(image="gloveport-test/debian:12", ttl=600) as box:
                await box.run("echo kept > ~/kept; export GONE=1")
                async with await box.fork() as other:
                    same((await other.run("cat ~/kept; echo [$GONE]")).output, "kept\n[]\n")
                    await other.run("echo changed > ~/kept")
                    ids = {box.id, other.id}
                    same(len(ids), 2)
                snapshot = await box.snapshot(f"py-{os.urandom(4).hex()}")
                try:
                    found = [each for each in await there.snapshots() if each.image == snapshot.image]
                    same([each.name for each in found], [snapshot.name])
                    async with await there.start(from_snapshot=snapshot, ttl=600) as again:
                        same((await again.run("cat ~/kept")).output, "kept\n")
                        ids.add(again.id)
                finally:
                    await there.remove_snapshot(snapshot)
                same([each for each in await there.snapshots() if each.image == snapshot.image], [])
                await fails(gloveport.NotFoundError, there.remove_snapshot(snapshot))
            same([each for each in await there.list() if each.id in ids], [])


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"nothing of {kind.__name__} was raised")


def until_empty(there, limit=10):
    """What there is at a gateway, as soon as that is nothing, or after a while."""
    end = time.monotonic() + limit
    while (listed := there.list()) and time.monotonic() < end:
        time.sleep(0.05)
    return listed


def what_cannot_be_asked_of_a_gateway_is_told():
    for url in ("", "ftp://x", "nothing", "http://"):
        raised(gloveport.InvalidRequestError, lambda url=url: Gateway(url, KEY))
    error = raised(gloveport.InvalidRequestError, lambda: Gateway("http://127.0.0.1:1", "hunter2\n"))
    assert error.code == "invalid_key" and "hunter2" not in str(error), error
    error = raised(gloveport.UnreachableError, Gateway("http://127.0.0.1:1", KEY).list)
    assert "the gateway at http://127.0.0.1:1 cannot be reached" in error.message and error.remedy, error
    with gateway() as (url, _):
        error = raised(gloveport.ForbiddenError, Gateway(url, "w" * 32).start)
        assert (error.status, error.code) == (401, "unauthorized"), error
        assert url in error.message and error.remedy and "wwww" not in str(error), error
        there = Gateway(url, KEY)
        hidden = gloveport.Secret("hunter2", hosts=("example.org",))
        for described in (
            {"secrets": {"TOKEN": hidden}},
            {"memory": "many"},
            {"image": "a", "from_snapshot": "b"},
            {"session_id": "no/id"},
            {"more": {"unknown": 1}},
            {"labels": {"gloveport-tenant": "x"}},
        ):
            error = raised(gloveport.InvalidRequestError, lambda described=described: there.start(**described))
            assert "hunter2" not in str(error), error
        # The reason is that of the server that did not start.
        error = raised(gloveport.SessionError, lambda: there.start(plugins=["none"]))
        assert error.code == "start_failed" and "none" in error.message, error
        with there.start() as box:
            error = raised(gloveport.ForbiddenError, Gateway(box.url(), KEY).list)
            assert box.url() in error.message and error.remedy, error
            found = Sandbox.connect(box.url(), there.info(box).key)
            error = raised(gloveport.InvalidRequestError, lambda: there.delete(found))
            assert "gateway" in error.message, error
        assert until_empty(there) == []


def interrupted(delay, call):
    """Calls something that gets what C-c raises after so many seconds; what it returned, if it was faster."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    returned = []
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        returned.append(call())
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    signal.signal(signal.SIGALRM, before)
    return returned[0] if returned else None


#: Seconds after which a start is given up; one takes about 50 ms, and longer with a slow machine.
MOMENTS = (0.0001, 0.001, 0.003, 0.006, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.08, 0.12)


def a_start_at_a_gateway_that_is_interrupted_leaves_nothing():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        there.start().close()
        for delay in MOMENTS:
            box = interrupted(delay, there.start)
            if box is not None:
                box.close()
            assert (left := until_empty(there)) == [], (delay, left)


def a_start_at_a_gateway_that_is_cancelled_leaves_nothing():
    async def main(url):
        async with AsyncGateway(url, KEY) as there:
            for delay in MOMENTS:
                starting = asyncio.create_task(there.start())
                await asyncio.sleep(delay)
                starting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await (await starting).close()
            # Cancelled twice: what ends it goes on.
            starting = asyncio.create_task(there.start())
            await asyncio.sleep(0.02)
            starting.cancel()
            await asyncio.sleep(0)
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await starting).close()

    with gateway() as (url, _), Gateway(url, KEY) as there:
        asyncio.run(main(url))
        assert (left := until_empty(there)) == [], left


def a_start_that_takes_too_long_or_is_left_by_its_progress_leaves_nothing():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        error = raised(gloveport.SessionError, lambda: there.start(timeout=0.001))
        assert error.code == "timed_out" and error.remedy and "0.001 s" in error.message, error

        def refuse(info):
            raise KeyError(info.state)

        raised(KeyError, lambda: there.start(on_progress=refuse))
        assert (left := until_empty(there)) == [], left


def a_sandbox_is_started_once_where_the_connection_breaks():
    from attacks import Proxy

    with gateway() as (url, _), Gateway(url, KEY) as there:
        proxy = Proxy(url)
        try:
            # Where the request did not arrive, and after so many bytes of the answer: the first one is the sandbox, or
            # tells what the gateway can do.
            for limit in ("swallowed", 0, 1, 100, 300, 500):
                for named in ({}, {"session_id": "named"}):
                    for after in ({"abandoned_after": None}, {}):
                        if limit == "swallowed":
                            proxy.swallow = 1
                        else:
                            proxy.limits = [limit]
                        with Gateway(proxy.url, KEY) as through, through.start(**named, **after) as box:
                            assert [each.id for each in there.list()] == [box.id], (limit, named, after)
                        assert there.list() == [], (limit, named, after)
        finally:
            proxy.close()


def a_sandbox_of_a_gateway_that_is_dropped_or_left_by_an_exception_ends():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        with contextlib.suppress(KeyError), there.start():
            raise KeyError
        assert there.list() == []
        box = there.start()
        assert len(there.list()) == 1
        del box
        gc.collect()
        assert until_empty(there) == []
        forked = there.start()
        if (child := os.fork()) == 0:
            forked.close()
            os._exit(0)
        os.waitpid(child, 0)
        # It is the parent's.
        assert [each.id for each in there.list()] == [forked.id]
        forked.close()
        assert there.list() == []


def a_sandbox_that_is_deleted_at_its_gateway_is_gone_for_all_that_follow_it():
    def follow_process(box):
        for _ in box.processes.start(["sleep", "60"]).output():
            pass

    calls = {
        "run": lambda box: box.run("sleep 60"),
        "stream": lambda box: list(box.stream("while :; do echo on; sleep 0.01; done")),
        "wait": lambda box: box.start("sleep 60").wait(60),
        "process": follow_process,
        "watch": lambda box: list(box.watch(".")),
        "terminal": lambda box: box.terminal("sleep 60").read_until("never", 60),
        "files": lambda box: [box.path("x").exists() for _ in iter(int, 1)],
    }
    with gateway() as (url, _), Gateway(url, KEY) as there:
        for name, call in calls.items():
            for delay in (0.2, 0.4):
                with there.start() as box:
                    ending = threading.Timer(delay, there.delete, (there.info(box),))
                    ending.start()
                    error = raised(gloveport.SandboxGoneError, lambda call=call, box=box: call(box))
                    ending.join()
                    assert box.url() in error.message and error.remedy, (name, error)


class Losing(http.server.BaseHTTPRequestHandler):
    """A gateway whose sandbox is being ended: at first it knows only that nobody answers."""

    protocol_version = "HTTP/1.1"
    left = 0

    def do_GET(self):  # noqa: N802
        if self.path == "/v1/sandbox":
            return self.answer(200, {"state": "running", "since_seconds": 1.0, "idle_seconds": 0.0})
        Losing.left -= 1
        if Losing.left >= 0:
            detail = "the server of the sandbox does not answer; it may be starting anew, so try again"
            return self.answer(502, {"detail": detail})
        return self.answer(404, {"detail": "there is no such sandbox"})

    def do_POST(self):  # noqa: N802
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def answer(self, status, told):
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def a_gateway_that_has_lost_a_sandbox_for_a_moment_is_asked_again():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Losing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Sandbox.connect(f"http://127.0.0.1:{server.server_port}") as box:
            for call in (
                lambda: box.run("true"),
                lambda: box.path("x").read_text(),
                box.commands,
                lambda: list(box.watch(".")),
                lambda: gloveport.Command(box, "x", "x").wait(60),
            ):
                Losing.left = 3
                error = raised(gloveport.SandboxGoneError, call)
                assert Losing.left < 0 and box.url() in error.message, error
            # Where nobody can tell whether it was done, nothing is asked a second time.
            Losing.left = 3
            error = raised(gloveport.ConnectionLostError, lambda: box.processes.start(["true"]))
            assert Losing.left == 2 and box.url() in error.message and error.remedy, error
    finally:
        server.shutdown()
        server.server_close()


CHILD = """
import sys
from gloveport import Gateway
box = Gateway(*sys.argv[1:3]).start(**({"ttl": 3} if sys.argv[3] == "KILL" else {}))
print(box.id, flush=True)
if sys.argv[3] == "raises":
    raise KeyError
if sys.argv[3] != "ends":
    box.run("sleep 60")
"""


def an_interpreter_that_ends_leaves_no_sandbox_at_a_gateway():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        for end in ("ends", "raises", "INT", "KILL"):
            words = [sys.executable, "-W", "ignore", "-c", CHILD, url, KEY, end]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            id = process.stdout.readline().strip()
            if end in ("INT", "KILL"):
                assert [each.id for each in there.list()] == [id], end
                process.send_signal(getattr(signal, f"SIG{end}"))
            process.wait(30)
            # One that is killed leaves it to its time.
            assert (left := until_empty(there, 15 if end == "KILL" else 0)) == [], (end, left)


def what_a_gateway_cannot_end_is_told():
    with gateway() as (url, process):
        there = Gateway(url, KEY)
        box = there.start(ttl=2)
        gone = there.start()
        there.delete(gone)
        # Somebody else has ended it, which is no error.
        gone.close()
        process.kill()
        process.wait()
        error = raised(gloveport.SessionError, box.close)
        assert error.code == "not_ended" and url in error.message and error.remedy, error
        box._guard.release()


ATTACKS = [
    value for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__ and getattr(value, "__name__", "")[:2] == "a_"
    and not asyncio.iscoroutinefunction(value)
]  # fmt: skip
ATTACKS += [
    what_cannot_be_asked_of_a_gateway_is_told,
    an_interpreter_that_ends_leaves_no_sandbox_at_a_gateway,
    what_a_gateway_cannot_end_is_told,
]
