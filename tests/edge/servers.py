"""Servers of the usual programs on loopback, which ask for a secret and remember what they were sent."""

import base64
import hashlib
import http.server
import io
import json
import os
import ssl
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

# What a program is that nobody has written yet.
NAME = "edgeling"
VERSION = "1.0.0"


def certificates(directory, addresses):
    """An authority and a certificate of it for the addresses of the servers."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-subj", "/CN=authority of the test", "-keyout", "authority.key", "-out", "authority.pem")
    extensions = Path(directory, "extensions")
    extensions.write_text("subjectAltName=" + ",".join(f"IP:{address}" for address in addresses) + "\n")
    openssl("req", *key, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    openssl(
        *("x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"),
        *("-days", "2", "-extfile", "extensions", "-out", "server.pem"),
    )


def wheel():
    """A package of Python without anything in it."""
    held = io.BytesIO()
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(held, "w") as package:
        package.writestr(f"{NAME}.py", "WORD = 'pip'\n")
        package.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        package.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        package.writestr(f"{info}/RECORD", f"{NAME}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return held.getvalue()


def archive(files, top):
    """A compressed archive of these files, as npm and cargo have it."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as made:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


NPM = archive({"package.json": json.dumps({"name": NAME, "version": VERSION}), "index.js": "module.exports = 'npm'"}, "package")
MANIFEST = f'[package]\nname = "{NAME}"\nversion = "{VERSION}"\nedition = "2021"\n'
CRATE = archive({"Cargo.toml": MANIFEST, "src/lib.rs": 'pub const WORD: &str = "cargo";\n'}, f"{NAME}-{VERSION}")


class Handler(http.server.BaseHTTPRequestHandler):
    """What the programs ask."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing is told of requests."""

    def handle_all(self):
        length = self.headers.get("content-length")
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(length or 0))
        sent = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body.decode("latin-1")}
        self.server.seen.append(sent)
        path = self.path.partition("?")[0]
        if path == "/echo":
            self.answer(json.dumps(sent).encode(), "application/json")
        elif path.startswith("/git/"):
            self.git(path.removeprefix("/git"), body)
        elif path.startswith("/simple/"):
            self.index(path)
        elif path.startswith("/npm/"):
            self.npm(path)
        elif path.startswith("/crates/"):
            self.crates(path)
        else:
            self.answer(b"there is nothing here", status=404)

    do_GET = do_POST = do_PUT = handle_all

    def answer(self, body, kind="text/plain", status=200, headers=()):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def is_known(self, basic=False):
        """Whether it has the secret; it is told what is missing."""
        given = self.headers.get("authorization", "")
        if basic:
            word = base64.b64decode(given.removeprefix("Basic ")).decode() if given.startswith("Basic ") else ""
            known = word.rpartition(":")[2] == self.server.secret
        else:
            known = given.removeprefix("Bearer ") == self.server.secret
        if not known:
            self.answer(b"who are you?", status=401, headers=[("www-authenticate", 'Basic realm="test"')] if basic else [])
        return known

    def git(self, path, body):
        if not self.is_known(basic=True):
            return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "REMOTE_USER": "somebody",
            "REQUEST_METHOD": self.command,
            "QUERY_STRING": self.path.partition("?")[2],
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200").split()[0])
        self.answer(rest, headers.pop("Content-Type", "text/plain"), status, headers.items())

    def index(self, path):
        if not self.is_known(basic=True):
            return
        file = f"{NAME}-{VERSION}-py3-none-any.whl"
        if path == f"/simple/{NAME}/":
            self.answer(f"<!DOCTYPE html><a href='/simple/files/{file}'>{file}</a>".encode(), "text/html")
        else:
            self.answer(wheel(), "application/octet-stream")

    def npm(self, path):
        if not self.is_known():
            return
        if path.endswith(".tgz"):
            self.answer(NPM, "application/octet-stream")
            return
        tarball = f"https://{self.headers['host']}/npm/{NAME}/-/{NAME}-{VERSION}.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(NPM).digest()).decode()
        one = {"name": NAME, "version": VERSION, "dist": {"tarball": tarball, "integrity": integrity}}
        told = {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: one}}
        self.answer(json.dumps(told).encode(), "application/json")

    def crates(self, path):
        if not self.is_known():
            return
        if path == "/crates/config.json":
            base = f"https://{self.headers['host']}/crates/files"
            self.answer(json.dumps({"dl": base, "auth-required": True}).encode(), "application/json")
        elif path.startswith("/crates/files/"):
            self.answer(CRATE, "application/octet-stream")
        elif path == f"/crates/{NAME[:2]}/{NAME[2:4]}/{NAME}":
            line = {"name": NAME, "vers": VERSION, "deps": [], "features": {}, "yanked": False}
            self.answer(json.dumps({**line, "cksum": hashlib.sha256(CRATE).hexdigest()}).encode())
        else:
            self.answer(b"there is no such crate", status=404)


class Server(http.server.ThreadingHTTPServer):
    """Does not tell of clients that break off."""

    def handle_error(self, *_):
        """Nothing is told of them."""


def start(address, directory, secret, is_plain=False, bound=None):
    """A server that ends with this process, at this address; it is bound to another one if that is not there yet."""
    server = Server((bound or address, 0), Handler)
    server.daemon_threads = True
    server.seen, server.secret, server.repositories = [], secret, Path(directory, "repositories")
    if not is_plain:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(directory, "server.pem"), Path(directory, "server.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"{address}:{server.server_port}"
