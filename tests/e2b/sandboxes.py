"""The control plane and the agent, with the SDK `e2b`."""

import asyncio
import hashlib
import io
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FilesystemEventType,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    Sandbox,
    SandboxException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)

# Seconds for something that happens by itself.
PATIENCE = 20


def eventually(what, found):
    """Waits until something is found, and gives it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = found()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} within {PATIENCE} s"
        time.sleep(0.05)


def raises(kind, work, words=""):
    try:
        work()
    except kind as error:
        assert words in str(error), f"{words!r} is not in {error}"
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}, and not {kind}: {error}") from error
    raise AssertionError(f"nothing was raised, and {kind} was to be")


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def request(url, method="GET", headers=None, body=None):
    """Status, headers and body of an answer, whatever the status is."""
    asked = urllib.request.Request(url, method=method, headers=headers or {}, data=body)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def checks(report, gateway):
    made = {}

    def create():
        made["one"] = Sandbox.create(timeout=600, metadata={"team": "infra", "odd name": "a&b=c d"}, envs={"COLOUR": "red"})

    if not report.check("a sandbox is made", create):
        return
    sandbox = made["one"]
    control(report, gateway, sandbox)
    commands(report, sandbox)
    files(report, sandbox)
    watches(report, sandbox)
    terminals(report, sandbox)
    doors(report, gateway, sandbox)
    report.check("the asynchronous SDK does the same", lambda: asyncio.run(asynchronous()))
    report.check("a sandbox is ended, and then is none", lambda: ends(sandbox))


def control(report, gateway, sandbox):
    def info():
        told = sandbox.get_info()
        equal(told.sandbox_id, sandbox.sandbox_id)
        equal(told.metadata, {"team": "infra", "odd name": "a&b=c d"})
        equal(told.state, SandboxState.RUNNING)
        now = datetime.now(timezone.utc)
        assert timedelta(minutes=9) < told.end_at - now <= timedelta(minutes=10), told.end_at
        assert abs(told.started_at - now) < timedelta(minutes=1), told.started_at

    report.check("its information has what was said of it", info)
    report.check("it runs", lambda: equal(sandbox.is_running(), True))

    def listed(query):
        paginator = Sandbox.list(query=query)
        found = []
        while paginator.has_next:
            found.extend(one.sandbox_id for one in paginator.next_items())
        return found

    report.check("it is in the list", lambda: equal(listed(None), [sandbox.sandbox_id]))
    report.check(
        "a list by metadata has it",
        lambda: equal(listed(SandboxQuery(metadata={"odd name": "a&b=c d"})), [sandbox.sandbox_id]),
    )
    report.check("a list by other metadata has not", lambda: equal(listed(SandboxQuery(metadata={"team": "x"})), []))
    report.check(
        "a list of those that run has it",
        lambda: equal(listed(SandboxQuery(state=[SandboxState.RUNNING])), [sandbox.sandbox_id]),
    )
    report.check("a list of those that are paused has not", lambda: equal(listed(SandboxQuery(state=[SandboxState.PAUSED])), []))

    def pages():
        others = [Sandbox.create(timeout=120, metadata={"page": "yes"}) for _ in range(3)]
        try:
            paginator = Sandbox.list(query=SandboxQuery(metadata={"page": "yes"}), limit=2)
            first = paginator.next_items()
            assert paginator.has_next
            second = paginator.next_items()
            assert not paginator.has_next
            equal((len(first), len(second)), (2, 1))
            equal({one.sandbox_id for one in first + second}, {one.sandbox_id for one in others})
        finally:
            for one in others:
                one.kill()

    report.check("a list has pages", pages)

    def set_timeout():
        sandbox.set_timeout(1200)
        left = sandbox.get_info().end_at - datetime.now(timezone.utc)
        assert timedelta(minutes=19) < left <= timedelta(minutes=20), left
        sandbox.set_timeout(600)

    report.check("its time is set anew", set_timeout)
    report.check("no time is longer than may be", lambda: raises(SandboxException, lambda: sandbox.set_timeout(90_000), "24"))

    def times_out():
        short = Sandbox.create(timeout=2)
        eventually("it ends", lambda: not short.is_running())

        def is_gone():
            try:
                short.get_info()
            except NotFoundException:
                return True
            return False

        # Its server ends before the engine has forgotten it.
        eventually("it is gone", is_gone)

    report.check("a sandbox whose time is over is ended", times_out)

    def pause():
        other = Sandbox.create(timeout=120)
        other.commands.run("echo kept > kept")
        counting = other.commands.run("i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.1; done", background=True)
        other.pause()
        equal(other.get_info().state, SandboxState.PAUSED)
        equal(other.is_running(), False)
        paused = [one.sandbox_id for one in Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED])).next_items()]
        equal(paused, [other.sandbox_id])
        again = Sandbox.connect(other.sandbox_id, timeout=120)
        equal(again.files.read("kept"), "kept\n")
        pids = [process.pid for process in again.commands.list()]
        assert counting.pid in pids, f"{counting.pid} is not in {pids}"
        again.kill()

    report.check("it is paused, and goes on with its processes", pause)

    def connects():
        again = Sandbox.connect(sandbox.sandbox_id, timeout=600)
        equal(again.commands.run("echo $COLOUR").stdout, "red\n")

    report.check("it is connected to by its id", connects)
    report.check("no sandbox is connected to that is none", lambda: raises(NotFoundException, lambda: Sandbox.connect("none")))
    report.check("an unknown template is named", lambda: raises(SandboxException, lambda: Sandbox.create("no-such"), "no-such"))

    def idempotent():
        one = Sandbox.create(timeout=60, idempotency_key="key-1")
        two = Sandbox.create(timeout=60, idempotency_key="key-1")
        equal(one.sandbox_id, two.sandbox_id)
        raises(SandboxException, lambda: Sandbox.create(timeout=61, idempotency_key="key-1"), "Idempotency-Key")
        one.kill()

    report.check("a request with a key makes one sandbox", idempotent)

    def metrics():
        [sample] = sandbox.get_metrics()
        assert sample.mem_used > 0 and sample.cpu_count >= 1, sample

    report.check("its metrics say what it uses", metrics)

    def logs():
        status, _, body = request(f"{gateway.url}/v2/sandboxes/{sandbox.sandbox_id}/logs", headers=key(gateway))
        equal(status, 200)
        assert isinstance(json.loads(body)["logs"], list), body

    report.check("its log can be read", logs)

    def snapshot():
        sandbox.files.write("kept", "in the snapshot")
        path = sandbox.files.get_info("kept").path
        image = sandbox.create_snapshot().snapshot_id
        copy = Sandbox.create(image, timeout=60)
        equal(copy.files.read(path), "in the snapshot")
        equal(copy.kill(), True)
        equal(Sandbox.delete_snapshot(image), True)

    def snapshots():
        made = sorted(sandbox.create_snapshot(name=f"kept-{number}").snapshot_id for number in range(3))
        try:
            pages = []
            paginator = Sandbox.list_snapshots(limit=2)
            while paginator.has_next:
                pages.append([found.snapshot_id for found in paginator.next_items()])
            equal([len(page) for page in pages], [2, 1])
            equal(sorted(sum(pages, [])), made)
            of_it = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
            equal(sorted(found.snapshot_id for found in of_it), made)
            [one] = Sandbox.list_snapshots(name="kept-1").next_items()
            assert one.snapshot_id in made and one.names == [one.snapshot_id, "kept-1"], one
        finally:
            for image in made:
                equal(Sandbox.delete_snapshot(image), True)
        equal(Sandbox.delete_snapshot(made[0]), False)
        equal(Sandbox.list_snapshots().next_items(), [])
        # Images and templates are no snapshots.
        for image in (gateway.image, "base", "nothing"):
            equal(Sandbox.delete_snapshot(image), False)

    if gateway.image:
        report.check("a snapshot is a template with the files", snapshot)
        report.check("snapshots are listed and deleted, and nothing else is", snapshots)
    else:
        report.check(
            "a snapshot is refused with words where there are no images",
            lambda: raises(SandboxException, sandbox.create_snapshot, "snapshot"),
        )


def key(gateway):
    return {"X-API-Key": gateway.key.read_text().strip()}


def commands(report, sandbox):
    run = sandbox.commands.run

    def apart():
        result = run("echo out; echo err >&2")
        equal((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 0))

    report.check("standard output and standard error are apart", apart)

    def code():
        error = raises(CommandExitException, lambda: run("echo half; echo bad >&2; exit 3"))
        equal((error.exit_code, error.stdout, error.stderr), (3, "half\n", "bad\n"))

    report.check("an exit code comes with what was written", code)
    report.check("a command that is killed says so", lambda: raises(CommandExitException, lambda: run("kill -9 $$"), ""))
    report.check("variables are set", lambda: equal(run("echo $A$B", envs={"A": "1", "B": "ä b"}).stdout, "1ä b\n"))
    report.check("those of the sandbox are there", lambda: equal(run("echo $COLOUR $E2B_SANDBOX").stdout, "red true\n"))

    def directory():
        run("mkdir -p below/it")
        equal(run("pwd", cwd="/tmp").stdout, "/tmp\n")
        assert run("pwd", cwd="below/it").stdout.endswith("/below/it\n")

    report.check("a command runs where it is to", directory)
    report.check(
        "a directory that is missing is named",
        lambda: raises(InvalidArgumentException, lambda: run("pwd", cwd="/no/such"), "/no/such"),
    )

    def streamed():
        seen = []
        began = time.monotonic()

        def note(text):
            seen.append((text, time.monotonic() - began))

        run("echo one; sleep 1; echo two", on_stdout=note)
        equal("".join(text for text, _ in seen), "one\ntwo\n")
        assert seen[0][1] < 0.9, seen

    report.check("output comes when it is written", streamed)

    def large():
        result = run("head -c 5000000 /dev/zero | tr '\\0' x")
        equal(len(result.stdout), 5_000_000)

    report.check("large output is whole", large)

    def binary():
        result = run("printf 'a\\xc3'; sleep 0.2; printf '\\xa4b'")
        equal(result.stdout, "aäb")

    report.check("a character that comes in two pieces is one", binary)

    def limit():
        began = time.monotonic()
        raises(TimeoutException, lambda: run("echo $$ > pid; sleep 60", timeout=1))
        assert time.monotonic() - began < 10
        eventually("the process is gone", lambda: run("kill -0 $(cat pid) 2>/dev/null && echo alive || echo gone").stdout == "gone\n")

    report.check("a command whose time is over is ended", limit)

    def background():
        handle = run("sleep 0.5; echo late", background=True)
        assert handle.pid > 0
        equal(handle.wait().stdout, "late\n")

    report.check("a command in the background is waited for", background)

    def stays():
        handle = run("sleep 1; echo done > finished; sleep 60", background=True, timeout=0)
        handle.disconnect()
        eventually("it goes on", lambda: sandbox.files.exists("finished"))
        equal(handle.kill(), True)
        eventually("it is gone", lambda: handle.pid not in [process.pid for process in sandbox.commands.list()])
        equal(handle.kill(), False)

    report.check("a command goes on when nobody listens, until it is killed", stays)

    def reconnect():
        handle = run("for i in $(seq 50); do echo $i; sleep 0.1; done", background=True, timeout=0)
        handle.disconnect()
        again = sandbox.commands.connect(handle.pid)
        result = again.wait()
        assert result.stdout.endswith("49\n50\n") and result.exit_code == 0, result.stdout

    report.check("a command is connected to again", reconnect)
    report.check("no process is connected to that is none", lambda: raises(NotFoundException, lambda: sandbox.commands.connect(999_999)))

    def input_():
        handle = run("while read line; do echo \"got $line\"; done; echo end", background=True, stdin=True, timeout=0)
        sandbox.commands.send_stdin(handle.pid, "one\n")
        handle.send_stdin("zwei ä\n")
        handle.close_stdin()
        equal(handle.wait().stdout, "got one\ngot zwei ä\nend\n")

    report.check("input is sent and closed", input_)

    def stream_input():
        handle = run("md5sum", background=True, stdin=True, timeout=0)
        pieces = [b"x" * 100_000 for _ in range(20)]
        sandbox.commands.stream_input(handle.pid, iter(pieces))
        handle.close_stdin()
        expected = hashlib.md5(b"".join(pieces)).hexdigest()
        equal(handle.wait().stdout.split()[0], expected)

    report.check("input is streamed", stream_input)
    report.check("input is empty where none is asked for", lambda: equal(run("cat; echo end").stdout, "end\n"))
    report.check(
        "input for a process without is refused",
        lambda: refuses_input(sandbox, run("sleep 5", background=True, timeout=0)),
    )

    def lists():
        handle = run("sleep 30", background=True, timeout=0)
        [found] = [process for process in sandbox.commands.list() if process.pid == handle.pid]
        equal((found.cmd, found.args), ("/bin/bash", ["-l", "-c", "sleep 30"]))
        equal(sandbox.commands.kill(handle.pid), True)
        raises(CommandExitException, handle.wait)

    report.check("processes are listed", lists)

    def leftover():
        equal(run("(sleep 2; echo child > child) > /dev/null 2>&1 &").exit_code, 0)
        eventually("what it has started goes on", lambda: sandbox.files.exists("child"))

    report.check("what a command leaves in the background goes on", leftover)

    def at_once():
        results = [None] * 12

        def work(number):
            results[number] = run(f"sleep 0.3; echo {number}").stdout

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(results, [f"{number}\n" for number in range(12)])
        assert time.monotonic() - began < 3.5, "they do not wait for one another"

    report.check("many commands run at a time", at_once)
    report.check(
        "a user that there is none of is an error of the command",
        lambda: raises(SandboxException, lambda: run("id", user="no-such-user"), ""),
    )
    report.check("the user of the sandbox may be named", lambda: equal(run("echo yes", user="user").stdout, "yes\n"))


def refuses_input(sandbox, handle):
    try:
        raises(SandboxException, lambda: sandbox.commands.send_stdin(handle.pid, "x"), "input")
    finally:
        handle.kill()


def files(report, sandbox):
    files_ = sandbox.files

    def written():
        info = files_.write("notes/a.txt", "hello ä\n")
        equal((info.name, info.type), ("a.txt", FileType.FILE))
        equal(files_.read("notes/a.txt"), "hello ä\n")
        equal(files_.read(info.path), "hello ä\n")

    report.check("a file is written and read, and its directory made", written)

    def bytes_():
        content = bytes(range(256)) * 1000
        files_.write("binary", content)
        equal(bytes(files_.read("binary", format="bytes")), content)

    report.check("bytes stay as they are", bytes_)

    def overwritten():
        files_.write("twice", "a long text")
        files_.write("twice", "b")
        equal(files_.read("twice"), "b")

    report.check("a file is written anew", overwritten)
    report.check("an empty file is one", lambda: (files_.write("empty", ""), equal(files_.read("empty"), "")))

    def several():
        infos = files_.write_files([{"path": "many/1", "data": "one"}, {"path": "many/ä 2", "data": b"two"}])
        equal([info.name for info in infos], ["1", "ä 2"])
        equal((files_.read("many/1"), files_.read("many/ä 2")), ("one", "two"))

    report.check("several files are written at once", several)

    def stream():
        content = b"0123456789" * 1_000_000
        files_.write("stream", io.BytesIO(content))
        read = b"".join(files_.read("stream", format="stream"))
        equal(hashlib.md5(read).hexdigest(), hashlib.md5(content).hexdigest())

    report.check("a large file is streamed in both directions", stream)

    def gzip():
        content = "a line of text\n" * 100_000
        files_.write("zipped", content, gzip=True)
        equal(files_.read("zipped"), content)
        equal(files_.read("zipped", gzip=True), content)

    report.check("what is sent compressed is stored plain", gzip)
    report.check("a file that is missing is named", lambda: raises(FileNotFoundException, lambda: files_.read("no-such"), "no-such"))
    report.check("a directory is no file", lambda: raises(InvalidArgumentException, lambda: files_.read("notes")))

    def listed():
        files_.write("tree/a/b/c", "x")
        files_.write("tree/.hidden", "x")
        equal(sorted(entry.name for entry in files_.list("tree")), [".hidden", "a"])
        deep = {entry.path.split("/tree/")[1]: entry.type for entry in files_.list("tree", depth=3)}
        equal(deep, {".hidden": FileType.FILE, "a": FileType.DIR, "a/b": FileType.DIR, "a/b/c": FileType.FILE})

    report.check("a directory is listed, to a depth", listed)
    report.check("a directory that is missing is named", lambda: raises(FileNotFoundException, lambda: files_.list("no-such")))
    report.check("a file is no directory", lambda: raises(InvalidArgumentException, lambda: files_.list("twice")))

    def info():
        sandbox.commands.run("printf 12345 > sized; chmod 640 sized; ln -sf sized link")
        entry = files_.get_info("sized")
        equal((entry.size, entry.mode, entry.permissions, entry.type), (5, 0o640, "-rw-r-----", FileType.FILE))
        assert abs(entry.modified_time - datetime.now(entry.modified_time.tzinfo)) < timedelta(minutes=1)
        link = files_.get_info("link")
        equal((link.type, link.symlink_target), (FileType.SYMLINK, "sized"))

    report.check("an entry has size, mode, time and target", info)

    def exists():
        equal((files_.exists("sized"), files_.exists("notes"), files_.exists("no-such")), (True, True, False))

    report.check("it is known what exists", exists)

    def directories():
        equal((files_.make_dir("deep/er"), files_.make_dir("deep/er")), (True, False))
        equal(files_.get_info("deep/er").type, FileType.DIR)

    report.check("a directory is made once", directories)

    def moved():
        files_.write("old", "content")
        entry = files_.rename("old", "new/place")
        equal((entry.name, files_.exists("old"), files_.read("new/place")), ("place", False, "content"))

    report.check("a file is moved", moved)
    report.check("what is missing cannot be moved", lambda: raises(FileNotFoundException, lambda: files_.rename("no-such", "x")))

    def removed():
        files_.remove("tree")
        equal(files_.exists("tree"), False)

    report.check("a tree is removed", removed)
    report.check(
        "files of another user are refused with words",
        lambda: raises(InvalidArgumentException, lambda: files_.write("x", "y", user="somebody"), "somebody"),
    )
    report.check(
        "metadata of files is refused with words",
        lambda: raises(SandboxException, lambda: files_.write("x", "y", metadata={"a": "b"}), "metadata"),
    )

    def signed():
        files_.write("signed", "for a browser")
        status, _, body = request(f"{sandbox.download_url('signed', use_signature_expiration=60)}", headers=route(sandbox))
        equal((status, body), (200, b"for a browser"))
        forged = sandbox.download_url("signed").replace("signed", "binary", 1)
        equal(request(forged, headers=route(sandbox))[0], 401)

    report.check("a signed URL reads its file, and no other", signed)


def route(sandbox):
    return {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}


def watches(report, sandbox):
    def events():
        sandbox.files.make_dir("watched")
        handle = sandbox.files.watch_dir("watched")
        sandbox.files.write("watched/a", "1")
        sandbox.commands.run("chmod 600 watched/a; rm watched/a")
        seen = []

        def all_there():
            seen.extend((event.name, event.type) for event in handle.get_new_events())
            return ("a", FilesystemEventType.REMOVE) in seen

        eventually("it is told", all_there)
        names = {name for name, _ in seen}
        kinds = {kind for name, kind in seen if name == "a"}
        assert "a" in names and FilesystemEventType.CREATE in kinds, seen
        handle.stop()
        raises(SandboxException, handle.get_new_events)

    report.check("changes of a directory are told", events)

    def recursive():
        sandbox.files.make_dir("watched2/below")
        handle = sandbox.files.watch_dir("watched2", recursive=True, include_entry=True)
        sandbox.commands.run("echo 1 > watched2/below/file")
        found = []

        def there():
            found.extend(handle.get_new_events())
            return [event for event in found if event.name == "below/file"]

        [event, *_] = eventually("it is told", there)
        assert event.entry is None or event.entry.name == "file", event
        handle.stop()

    report.check("changes below it are told with what there is", recursive)
    report.check("what is missing is not watched", lambda: raises(NotFoundException, lambda: sandbox.files.watch_dir("no-such")))


def terminals(report, sandbox):
    from e2b import PtySize

    def talk():
        handle = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0)
        sandbox.pty.send_stdin(handle.pid, b"echo $((40+2)); stty size; exit 7\n")
        output = []
        error = raises(CommandExitException, lambda: handle.wait(on_pty=lambda data: output.append(bytes(data))))
        text = b"".join(output).decode()
        assert "42" in text and "24 80" in text, text
        equal(error.exit_code, 7)

    report.check("a terminal is talked to", talk)

    def resized():
        handle = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0)
        sandbox.pty.resize(handle.pid, PtySize(rows=33, cols=111))
        sandbox.pty.send_stdin(handle.pid, b"stty size; exit\n")
        output = []
        handle.wait(on_pty=lambda data: output.append(bytes(data)))
        assert b"33 111" in b"".join(output), output

    report.check("a terminal gets another size", resized)

    def killed():
        handle = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0)
        assert handle.pid in [process.pid for process in sandbox.commands.list()]
        equal(sandbox.pty.kill(handle.pid), True)
        eventually("it is gone", lambda: handle.pid not in [process.pid for process in sandbox.commands.list()])

    report.check("a terminal is killed", killed)


def doors(report, gateway, sandbox):
    """What is behind the SDK: tokens, keys, bad bodies, other ports."""
    route_ = route(sandbox)
    rpc = {**route_, "Content-Type": "application/json", "Connect-Protocol-Version": "1"}
    url = gateway.url

    def keyless():
        raises(AuthenticationException, lambda: Sandbox.create(api_key="a wrong key of some length"))
        status, _, body = request(f"{url}/v2/sandboxes", headers={})
        equal((status, json.loads(body)["code"]), (401, 401))

    report.check("nobody makes sandboxes without the key", keyless)

    def tokens():
        for token in ({}, {"X-Access-Token": "0" * 64}):
            equal(request(f"{url}/process.Process/List", "POST", {**rpc, **token}, b"{}")[0], 401)
            equal(request(f"{url}/files?path=a", "GET", {**route_, **token})[0], 401)
        equal(request(f"{url}/health", headers=route_)[0], 204)
        other = {**route_, "E2b-Sandbox-Port": "49999"}
        equal(request(f"{url}/contexts", headers=other)[0], 403)

    report.check("nobody talks to the agent without its token", tokens)

    def foreign():
        other = Sandbox.create(timeout=60)
        token = {"X-Access-Token": other._envd_access_token}
        equal(request(f"{url}/process.Process/List", "POST", {**rpc, **token}, b"{}")[0], 401)
        other.kill()

    report.check("the token of one sandbox opens no other", foreign)

    def unknown():
        for name in ("none", "../x", "%2e%2e"):
            status, _, body = request(f"{url}/health", headers={**route_, "E2b-Sandbox-Id": name})
            equal(status, 502)
            assert b"was not found" in body, body

    report.check("a sandbox that is none is not found", unknown)

    def bodies():
        token = {"X-Access-Token": sandbox._envd_access_token}
        for body in (b"{", b"[]", b"{\"path\": 5}"):
            equal(request(f"{url}/filesystem.Filesystem/Stat", "POST", {**rpc, **token}, body)[0], 400)
        proto = {**rpc, **token, "Content-Type": "application/proto"}
        equal(request(f"{url}/process.Process/List", "POST", proto, b"")[0], 415)
        stream = {**rpc, **token, "Content-Type": "application/connect+json"}
        status, _, body = request(f"{url}/process.Process/Start", "POST", stream, b"\0\xff\xff\xff\xff{}")
        equal(status, 200)
        assert b"resource_exhausted" in body and body[0] == 2, body
        for wrong in (b"{", b"[]", b"{\"timeout\": -1}", b"null"):
            status, _, body = request(f"{url}/v2/sandboxes", "POST", {**key(gateway), "Content-Type": "application/json"}, wrong)
            equal((status, json.loads(body)["code"]), (400, 400))

    report.check("bad messages are refused, and nothing breaks", bodies)

    # The ports of a container are its own, and those of a process are the machine's.
    token = {} if gateway.image else {"E2B-Traffic-Access-Token": sandbox.traffic_access_token}

    def ports():
        asked = {**route_, **token, "E2b-Sandbox-Port": "22222"}
        status, _, body = request(f"{url}/", headers=asked)
        equal(status, 502)
        assert b"port is not open" in body, body
        equal(request(f"{url}/", headers={**route_, "E2b-Sandbox-Port": "x"})[0], 400)
        if token:
            for wrong in ({}, {"E2B-Traffic-Access-Token": "0" * 64}):
                status, _, body = request(f"{url}/", headers={**route_, **wrong, "E2b-Sandbox-Port": "22222"})
                equal(status, 403)
                assert b"E2B-Traffic-Access-Token" in body, body

    report.check("a port that is not open is told as such", ports)

    def serves(port, address):
        sandbox.files.write("site/index.html", "served")
        command = f"exec python3 -m http.server {port} --bind {address}"
        server = sandbox.commands.run(command, cwd="site", background=True, timeout=0)
        asked = {**route_, **token, "E2b-Sandbox-Port": str(port)}
        eventually("it is served", lambda: request(f"{url}/index.html", headers=asked)[2] == b"served")
        for path in ("/../../v1/exec", "/%2e%2e/%2E%2e/v1/exec", "/..%5c..%5cv1%5cexec", "/./index.html"):
            status, _, body = request(f"{url}{path}", headers=asked)
            assert status in (400, 404), (path, status, body)
        server.kill()

    def exposed():
        told = json.loads(request(f"{url}/v1/sandboxes/{sandbox.sandbox_id}", headers=key(gateway))[2])
        serves(told["ports"][0]["port"], "0.0.0.0" if gateway.image else "127.0.0.1")

    report.check("a port that the runtime exposes is reached by its number", exposed)
    report.check("a port that it does not expose is, too, on the loopback address", lambda: serves(free_port(), "127.0.0.1"))

    def not_offered():
        for path in ("/v3/templates", "/volumes", "/secrets", f"/sandboxes/{sandbox.sandbox_id}/fork"):
            status, _, body = request(f"{url}{path}", "POST", {**key(gateway), "Content-Type": "application/json"}, b"{}")
            equal((status, json.loads(body)["code"]), (501, 501))
            assert "not offered" in json.loads(body)["message"], body

    report.check("what is not offered says so", not_offered)


async def asynchronous():
    sandbox = await AsyncSandbox.create(timeout=120, metadata={"kind": "async"})
    try:
        result = await sandbox.commands.run("echo one; echo two >&2")
        equal((result.stdout, result.stderr), ("one\n", "two\n"))
        await sandbox.files.write("a", "b")
        equal(await sandbox.files.read("a"), "b")
        results = await asyncio.gather(*(sandbox.commands.run(f"echo {number}") for number in range(8)))
        equal([one.stdout for one in results], [f"{number}\n" for number in range(8)])
        seen = []
        watch = await sandbox.files.watch_dir(".", on_event=seen.append)
        await sandbox.files.write("seen", "x")
        for _ in range(100):
            if any(event.name == "seen" for event in seen):
                break
            await asyncio.sleep(0.1)
        assert any(event.name == "seen" for event in seen), seen
        await watch.stop()
    finally:
        assert await sandbox.kill()


def ends(sandbox):
    equal(sandbox.kill(), True)
    equal(sandbox.kill(), False)
    equal(sandbox.is_running(), False)
    raises(NotFoundException, sandbox.get_info)
    raises(TimeoutException, lambda: sandbox.commands.run("true"))
    equal([one.sandbox_id for one in Sandbox.list().next_items()], [])
