"""The requests of E2B's SDK for what our runtime `e2b` does: recorded on their way to a gateway, and compared with the file.

usage: wishes.py [--record] FILE    with the variables of E2B's SDKs
"""

import json
import os
import re
import socket
import sys
import threading
from urllib.parse import urlsplit

# Of the headers only these say something of the wish.
HEADERS = (
    "authorization",
    "connect-protocol-version",
    "connect-timeout-ms",
    "content-type",
    "e2b-sandbox-id",
    "e2b-sandbox-port",
    "idempotency-key",
    "x-access-token",
    "x-api-key",
)


class Recorder:
    """Passes connections on, and keeps what clients send."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.target = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        # A pair for each piece: the connection, and the bytes, in their order.
        self.pieces = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        number = 0
        while True:
            client, _ = self.listener.accept()
            number += 1
            server = socket.create_connection(self.target)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pump, args=(client, server, number), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, None), daemon=True).start()

    def pump(self, source, sink, number):
        try:
            while piece := source.recv(65536):
                if number is not None:
                    self.pieces.append((number, piece))
                sink.sendall(piece)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self):
        """All that came, in the order of their beginnings."""
        connections = {}
        found = []
        for place, (number, piece) in enumerate(self.pieces):
            connections.setdefault(number, []).append((place, piece))
        for pieces in connections.values():
            found += parsed(pieces)
        return [request for _, request in sorted(found, key=lambda pair: pair[0])]


def parsed(pieces):
    """The requests of a connection with the numbers of the pieces in which they begin."""
    data = b"".join(piece for _, piece in pieces)
    starts = []
    at = 0
    for place, piece in pieces:
        starts.append((at, place))
        at += len(piece)
    found = []
    at = 0
    while (end := data.find(b"\r\n\r\n", at)) != -1:
        place = max(place for begin, place in starts if begin <= at)
        lines = data[at:end].decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        body, at = content(data, end + 4, headers)
        found.append((place, {"method": method, "path": path, "headers": headers, "body": body}))
    return found


def content(data, at, headers):
    """The body that begins there, and where it ends."""
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while True:
            end = data.index(b"\r\n", at)
            length = int(data[at:end], 16)
            at = end + 2 + length + 2
            if not length:
                return whole, at
            whole += data[end + 2 : end + 2 + length]
    length = int(headers.get("content-length", 0))
    return data[at : at + length], at + length


def plain(request, sandbox):
    """A request without what differs from run to run."""
    headers = request["headers"]
    body = request["body"]
    kind = headers.get("content-type", "").split(";")[0]
    if kind == "application/connect+json":
        # The envelope: flags and length.
        body = body[5:]
    body = json.loads(body) if body and kind.endswith("json") else None
    if isinstance(body, dict) and "pid" in body.get("process", {}):
        body["process"]["pid"] = 1
    told = json.loads(json.dumps({"path": request["path"], "body": body}).replace(sandbox, "ID"))
    kept = {}
    for name in HEADERS:
        if name in headers:
            value = headers[name].replace(sandbox, "ID")
            is_secret = name in ("x-api-key", "x-access-token", "idempotency-key")
            kept[name] = "VALUE" if is_secret else re.sub("boundary=.*", "boundary=VALUE", value)
    return {"method": request["method"], "path": told["path"], "headers": kept, "body": told["body"]}


def refused(work):
    """A wish that the runtime `local` refuses: what is sent is the same."""
    from e2b import SandboxException

    try:
        work()
    except SandboxException:
        return
    raise AssertionError("a gateway over the runtime `local` has taken this wish")


def life():
    """What a runtime does with a sandbox. Its id."""
    from e2b import Sandbox, SandboxQuery

    wish = {
        "timeout": 900,
        "metadata": {"gloveport.e2b.session": "s"},
        "lifecycle": {"on_timeout": "pause", "auto_resume": False},
    }
    closed = {"allow_public_traffic": False}
    refused(lambda: Sandbox.create(**wish, allow_internet_access=False, network=closed))
    allowed = {"allow_out": ["pypi.org", "10.0.0.0/8"], "deny_out": ["0.0.0.0/0"], **closed}
    refused(lambda: Sandbox.create(**wish, network=allowed))
    sandbox = Sandbox.create(**wish)
    try:
        sandbox.files.write("/tmp/program", b"#!/bin/sh\n", user="root", use_octet_stream=True)
        sandbox.commands.run("exit 0", user="root", cwd="/", envs={"SESSION_API_KEY": "of-the-session"}, timeout=0)
        sandbox.commands.run("exit 0", user="root", cwd="/", timeout=0)
        sandbox.commands.run("sleep 60", user="root", background=True).kill()
        sandbox.commands.list()
        sandbox.files.read("/tmp/program", user="root", format="bytes")
        sandbox.set_timeout(900)
        sandbox.get_info()
        Sandbox.list(query=SandboxQuery(metadata={"gloveport.e2b.session": "s"}), limit=100).next_items()
        Sandbox.list(limit=100).next_items()
        refused(lambda: sandbox.create_snapshot(name="n"))
        refused(lambda: Sandbox.list_snapshots().next_items())
        refused(lambda: Sandbox.delete_snapshot("n"))
        sandbox.pause()
        sandbox.connect(timeout=900)
    finally:
        sandbox.kill()
    return sandbox.sandbox_id


def main():
    words = [word for word in sys.argv[1:] if word != "--record"]
    recorder = Recorder(os.environ["E2B_API_URL"])
    os.environ["E2B_API_URL"] = os.environ["E2B_SANDBOX_URL"] = recorder.url
    sandbox = life()
    found = [plain(request, sandbox) for request in recorder.requests()]
    if "--record" in sys.argv:
        with open(words[0], "w", encoding="utf-8") as out:
            json.dump(found, out, indent=2)
            out.write("\n")
        return
    with open(words[0], encoding="utf-8") as read:
        expected = json.load(read)
    for one, other in zip(expected, found):
        assert one == other, f"recorded {one}\nnow      {other}"
    assert len(expected) == len(found), f"recorded {len(expected)} requests, and there are {len(found)}"
    print(f"{len(found)} requests")


if __name__ == "__main__":
    main()
