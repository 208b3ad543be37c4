"""The service of the plugin @NAME@: serve.py PORT WORKSPACE."""

import http.server
import os
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests for /plugins/@NAME@/, which arrive here."""

    workspace = "."

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.endswith("/health"):
            text = "healthy\n"
        else:
            text = "hello from {}\n".format(os.environ.get("BASE", ""))
            text += "".join(name + "\n" for name in sorted(os.listdir(self.workspace)))
        body = text.encode("utf-8", "replace")
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    port, Handler.workspace = int(sys.argv[1]), sys.argv[2]
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
