"""The functions of AgentSkills and the reference's answer the same calls in the same way.

    skills.py PROGRAM

PROGRAM is the example `serve` of our crate, which serves the editor. Calls are made at random, and the same each time.
What differs on purpose has its reason beside it, and must differ. Last line: `N passed, N failed, N skipped`.
"""

import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import skills_calls as calls

# One side: reads calls, a JSON array a line, and writes what they printed, returned or raised.


def side(name):
    if name == "reference":
        import logging

        os.environ["LOG_LEVEL"] = "CRITICAL"
        logging.disable(logging.CRITICAL)
        from openhands.runtime.plugins.agent_skills import agentskills as skills
    else:
        # The reference is installed here, too, and ours must not need to be first.
        sys.path.append(os.environ["PACKAGES"])
        import gloveport.skills as skills
    functions = {name: getattr(skills, name) for name in skills.__all__}
    answers = sys.stdout
    for line in sys.stdin:
        function, args, kwargs = json.loads(line)
        printed = io.StringIO()
        answer = {}
        with contextlib.redirect_stdout(printed):
            try:
                if function == "chdir":
                    os.chdir(*args)
                elif function == "setenv":
                    os.environ.update(kwargs)
                elif function == "names":
                    answer["returned"] = sorted(functions)
                else:
                    answer["returned"] = functions[function](*args, **kwargs)
            except Exception as error:
                answer["raised"] = [type(error).__name__, str(error)]
        answer["printed"] = printed.getvalue()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Side:
    def __init__(self, name, environment):
        environment = {**os.environ, **environment}
        environment = {key: value for key, value in environment.items() if value is not None}
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--side", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )

    def ask(self, call):
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


# What is compared.


class Comparison:
    """Makes the same calls on both sides. Each has its own directory, whose name is as long as the other's."""

    def __init__(self, sides, bases):
        self.sides, self.bases = sides, bases
        self.passed = self.failed = self.skipped = 0

    def call(self, function, *args, reason=None, **kwargs):
        found = []
        for side, base in zip(self.sides, self.bases):
            call = json.loads(json.dumps([function, args, kwargs]).replace("{B}", base))
            found.append(masked(json.dumps(side.ask(call), sort_keys=True), base))
        if (found[0] == found[1]) == (reason is None):
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED  {function} {args!r} {kwargs!r}{f' (must differ: {reason})' if reason else ''}"[:600])
        for side, text in zip(self.sides, found):
            at = next((at for at, (one, other) in enumerate(zip(*found)) if one != other), 0)
            print(f"        {side.name:10} ...{text[max(0, at - 150):at + 350]}")


def masked(text, base):
    text = text.replace(base, "BASE")
    return re.sub(r"oh_aci_output_[0-9a-f]{32}", "oh_aci_output_ID", text)


# The service that describes sounds and pictures.


class Service(BaseHTTPRequestHandler):
    """Speaks as much of the interface of OpenAI as is used, and says what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        if kind.startswith("multipart/"):
            mark = kind.split("boundary=")[1].strip('"').encode()
            asked = sorted(
                re.sub(rb"Content-Type: [^\r]*\r\n", b"", part).strip().decode("latin-1").replace("\r\n", "|")
                for part in body.split(b"--" + mark)[1:-1]
            )
        else:
            asked = json.dumps(json.loads(body), sort_keys=True)
        said = json.dumps([self.path, self.headers["Authorization"], asked])
        if "refuse" in said:
            status, answer = 400, {"error": {"message": "refused", "type": "invalid_request_error"}}
        elif kind.startswith("multipart/"):
            status, answer = 200, {"text": said}
        else:
            message = {"role": "assistant", "content": said}
            status, answer = 200, {
                "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


# Both sides.


def serve(program, path):
    """The editor, whose linter finds its Python there."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    packages, socket = (server.stdout.readline().strip() for _ in range(2))
    return server, {"PACKAGES": packages, "GLOVEPORT_EDITOR_SOCKET": socket}


def compare(program, path, environment, bases, parts):
    """Makes the calls of the parts on two new sides."""
    server, ours = serve(program, path)
    environment = {**environment, "PATH": f"{path}:{os.environ['PATH']}"}
    sides = [Side("reference", environment), Side("gloveport", {**environment, **ours})]
    comparison = Comparison(sides, bases)
    for part in parts:
        part(comparison)
    for side in sides:
        side.end()
    server.stdin.close()
    server.wait(30)
    return comparison.passed, comparison.failed, comparison.skipped


def main():
    program = os.path.abspath(sys.argv[1])
    rng = random.Random(62)
    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as root:
        root = os.path.realpath(root)
        for name in ("one", "two", "nav", "doc", "med", "hom", "bin"):
            os.mkdir(f"{root}/{name}")
        # The same Python, which does not find flake8.
        with open(f"{root}/bin/python3", "w") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        os.chmod(f"{root}/bin/python3", 0o755)
        bases = [f"{root}/one", f"{root}/two"]
        keys = {"OPENAI_API_KEY": None, "SANDBOX_ENV_OPENAI_API_KEY": None, "HOME": f"{root}/hom"}
        key = {"SANDBOX_ENV_OPENAI_API_KEY": "key one", "OPENAI_BASE_URL": f"http://127.0.0.1:{service.server_port}/v1"}
        cut = "a message of flake8 with a colon is not cut there"
        counts = [
            compare(program, f"{root}/bin", keys, bases, [
                calls.without_key, lambda it: calls.navigation(it, f"{root}/nav", rng), lambda it: calls.readers(it, f"{root}/doc", rng),
                lambda it: calls.editor(it, bases, rng),
            ]),
            compare(program, os.path.dirname(sys.executable), {**keys, **key}, bases, [
                lambda it: calls.media(it, f"{root}/med"), lambda it: calls.linting(it.call, "flake", cut),
            ]),
        ]
    service.shutdown()
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--side":
        side(sys.argv[2])
    else:
        main()
