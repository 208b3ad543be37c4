"""The pages that the browsers visit, from this machine: two ports, hence two origins, and a port that refuses.

    web.py      serves until its input ends; prints the three ports

In what it serves and in actions, `{A}` and `{B}` stand for the ports and `{C}` for the one that refuses.
"""

import html
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")
HTML = "text/html; charset=utf-8"
# The longest that a request may ask to wait, in milliseconds.
LONGEST = 5000


def picture():
    """A PNG of one blue pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0\x33\x66\x99")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def document(pages=1):
    """A PDF whose pages say `Page N`."""
    kids = " ".join(f"{3 + 2 * page} 0 R" for page in range(pages))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {pages}>>"]
    font = "<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    for page in range(pages):
        text = f"BT /F 24 Tf 20 100 Td (Page {page + 1}) Tj ET"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Resources{font}/Contents {4 + 2 * page} 0 R>>")
        objects.append(f"<</Length {len(text)}>>stream\n{text}\nendstream")
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj{content}endobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    body += f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer<</Size {count}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF\n"
    return body.encode()


DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><title>Drawing</title><rect width="50" height="50"><title>Square</title></rect><text x="5" y="80">drawn text</text></svg>'
STRICT = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>Strict</title></head><body><p>Strict markup</p><button onclick="this.textContent = \'Hit\'">Button</button></body></html>'
# Path: status, content type, body, more headers.
FIXED = {
    "/text": (200, "text/plain; charset=utf-8", "first line\n  <b>second</b> line\n", {}),
    "/json": (200, "application/json", '{"name": "value", "list": [1, 2, 3]}', {}),
    "/xml": (200, "text/xml", "<root><entry key='a'>text</entry></root>", {}),
    "/strict": (200, "application/xhtml+xml", STRICT, {}),
    "/latin": (200, "text/html; charset=iso-8859-1", "<title>Umlauts</title><p>äöü ß</p>".encode("latin-1"), {}),
    "/drawing.svg": (200, "image/svg+xml", DRAWING, {}),
    "/dot.png": (200, "image/png", picture(), {}),
    "/document.pdf": (200, "application/pdf", document(), {}),
    "/attachment": (200, "text/plain", "attached\n", {"Content-Disposition": 'attachment; filename="attached.txt"'}),
    "/archive": (200, "application/zip", b"PK\5\6" + bytes(18), {}),
    "/redirect": (302, HTML, "", {"Location": "/redirect/again"}),
    "/redirect/again": (301, HTML, "", {"Location": "/plain.html#end"}),
    "/circle": (302, HTML, "", {"Location": "/circle"}),
    "/missing": (404, HTML, "<title>Not here</title><h1>Nothing is here</h1>", {}),
    "/nothing": (404, HTML, "", {}),
    "/broken": (500, HTML, "<h1>Broken</h1>", {}),
    "/empty": (200, HTML, "", {}),
    "/nocontent": (204, HTML, "", {}),
    "/locked": (401, HTML, "<h1>Locked</h1>", {"WWW-Authenticate": 'Basic realm="test"'}),
    "/unframed": (200, HTML, "<p>Not in frames</p>", {"X-Frame-Options": "DENY"}),
    "/deeper/page": (200, HTML, "<title>Deeper</title><p>Deeper</p>", {}),
    "/favicon.ico": (404, "text/plain", "", {}),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, headers=()):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        # What is kept would make a second visit different from the first.
        self.send_header("Cache-Control", "no-store")
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        try:
            self.route(parts.path, query)
        except (BrokenPipeError, ConnectionResetError):
            pass

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(errors="replace")
        self.echo(urllib.parse.parse_qsl(body, keep_blank_values=True))

    def route(self, path, query):
        delay = query.get("delay", "0")
        time.sleep(min(int(delay) if delay.isdigit() else 0, LONGEST) / 1000)
        if path in FIXED:
            self.answer(*FIXED[path])
        elif path == "/echo":
            self.echo(query.items())
        elif path == "/items":
            first, count = int(query.get("after", 0)) + 1, min(int(query.get("count", 1)), 100)
            self.answer(200, "application/json", json.dumps([f"{query.get('of', 'item')} {first + n}" for n in range(count)]))
        elif path == "/slow.png":
            self.answer(*FIXED["/dot.png"])
        elif path == "/hold.png":
            self.hold()
        elif path == "/drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif path.startswith("/app/"):
            self.page("app.html")
        else:
            self.page(path[1:])

    def hold(self):
        """Begins an answer that ends with the site."""
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        self.wfile.flush()
        self.server.site.ended.wait()
        self.close_connection = True

    def page(self, name):
        path = os.path.join(PAGES, name)
        if not re.fullmatch(r"[a-z0-9-]+\.html", name) or not os.path.exists(path):
            self.answer(*FIXED["/missing"])
            return
        with open(path, encoding="utf-8") as file:
            self.answer(200, HTML, self.server.site.with_ports(file.read()))

    def echo(self, fields):
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in fields)
        self.answer(200, HTML, f"<!DOCTYPE html><title>Received</title><h1>{self.command}</h1><table>{rows}</table>")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # A browser that closes a connection early is no error.


class Site:
    """The site, while it is entered."""

    def __enter__(self):
        self.ended = threading.Event()
        # Its port is taken, so nobody else can listen there.
        self.refusing = socket.socket()
        self.refusing.bind(("127.0.0.1", 0))
        self.servers = [Server(("127.0.0.1", 0), Handler) for _ in "AB"]
        ports = [server.server_address[1] for server in self.servers] + [self.refusing.getsockname()[1]]
        self.ports = dict(zip("ABC", ports))
        for server in self.servers:
            server.site = self
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.refusing.close()

    def with_ports(self, text):
        for name, port in self.ports.items():
            text = text.replace(f"{{{name}}}", str(port))
        return text

    def without_ports(self, value):
        """The value with placeholders where ports are, in all strings."""
        if isinstance(value, dict):
            return {key: self.without_ports(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.without_ports(one) for one in value]
        if isinstance(value, str):
            for name, port in self.ports.items():
                value = re.sub(rf"(?<!\d){port}(?!\d)", f"{{{name}}}", value)
        return value


if __name__ == "__main__":
    with Site() as site:
        print(json.dumps(site.ports), flush=True)
        sys.stdin.read()
