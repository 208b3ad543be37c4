"""A whole conversation through our port: OpenHands' own agent-server works behind it, with a scripted model.

usage: conversation.py BINARY AGENT_SERVER DIRECTORY

Prints one line a check, `passed  …` or `FAILED  …`; the last line counts them.
"""

import http.server
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import websockets.sync.client as sockets
from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.workspace import RemoteWorkspace
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr
from websockets.exceptions import ConnectionClosed

KEY = "the key of clients"
HEADERS = {"X-Session-API-Key": KEY}


COUNTS = {True: 0, False: 0}


def check(what, is_so, told=""):
    COUNTS[bool(is_so)] += 1
    what = f"conversation: {what}"
    print(f"passed  {what}" if is_so else f"FAILED  {what}: {told}", flush=True)


def until(is_so, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


class Model(http.server.BaseHTTPRequestHandler):
    """Runs one command in the terminal, and finishes."""

    protocol_version = "HTTP/1.1"
    script = ""

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turns = sum(message["role"] == "assistant" for message in asked["messages"])
        calls = [("terminal", {"command": self.script}), ("finish", {"message": "done"})]
        name, arguments = calls[min(turns, 1)]
        call = {"id": f"call-{turns}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        body = {
            "id": "answer",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server:
    def __init__(self, binary, agent_server, directory):
        self.directory = Path(directory)
        self.work = self.directory / "work"
        for place in ("work", "home", "bin"):
            (self.directory / place).mkdir(exist_ok=True)
        name = self.directory / "bin" / "agent-server"
        if not name.exists():
            name.symlink_to(os.path.realpath(binary))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        # Both have the same name in PATH, ours before the other one.
        path = [self.directory / "bin", Path(agent_server).parent, "/usr/local/bin", "/usr/bin", "/bin"]
        environment = {
            "PATH": os.pathsep.join(map(str, path)),
            "HOME": str(self.directory / "home"),
            "LANG": "C.UTF-8",
            "OH_SESSION_API_KEYS_0": KEY,
            "OH_CONVERSATIONS_PATH": str(self.directory / "conversations"),
            "OH_ENABLE_VSCODE": "0",
            # Prices of models come with the package; nothing is fetched.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        self.log = open(self.directory / "log", "ab")
        self.process = subprocess.Popen(
            [str(name), "--host", "127.0.0.1", "--port", str(port)],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        assert until(self.is_healthy), "the server does not listen"

    def is_healthy(self):
        try:
            return httpx.get(f"{self.url}/health").status_code == 200
        except httpx.TransportError:
            return False

    def get(self, path, headers=HEADERS, **more):
        return httpx.get(self.url + path, headers=headers, timeout=60, **more)

    def run(self, command):
        body = {"command": command, "timeout": 20}
        answer = httpx.post(f"{self.url}/api/bash/execute_bash_command", headers=HEADERS, json=body, timeout=30)
        return answer.json()["stdout"] or ""

    def mark(self):
        return self.run("echo $GLOVEPORT_SANDBOX").strip()


def of_sandbox(mark):
    """Processes of a sandbox: those with its mark."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if f"GLOVEPORT_SANDBOX={mark}".encode() in (place / "environ").read_bytes():
                    found.append(int(place.name))
            except OSError:
                pass
    return found


def agent_of(mark):
    for pid in of_sandbox(mark):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--host" in words and any(word.endswith(b"agent-server") for word in words):
            return pid
    return None


def closed_with(url, first=None):
    """The code with which a socket is closed, or the status that refuses it."""
    try:
        with sockets.connect(url, open_timeout=30) as connection:
            if first:
                connection.send(json.dumps(first))
            connection.recv(timeout=30)
            return "open"
    except ConnectionClosed as error:
        return error.rcvd.code if error.rcvd else None
    except Exception as error:  # whatever refuses it
        return getattr(getattr(error, "response", None), "status_code", repr(error))


def talk(server, model_url):
    Model.script = f"echo from the agent > {server.work}/by-agent; cat {server.work}/by-agent; env | grep -c SESSION_API"
    llm = LLM(model="openai/scripted", base_url=model_url, api_key=SecretStr("x"), usage_id="test")
    agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)])
    workspace = RemoteWorkspace(host=server.url, api_key=KEY, working_dir=str(server.work))
    events = []
    began = time.monotonic()
    made = {}

    def make():
        made["conversation"] = Conversation(agent=agent, workspace=workspace, callbacks=[events.append], visualizer=None,
                                            delete_on_close=False)

    maker = threading.Thread(target=make)
    maker.start()
    until(lambda: server.get("/ready").status_code == 503, 10)
    longest, count = 0.0, 0
    while maker.is_alive() and time.monotonic() - began < 100:
        asked = time.monotonic()
        server.run("true")
        longest, count = max(longest, time.monotonic() - asked), count + 1
    maker.join(100)
    check("commands are answered while the agent starts", count > 3 and longest < 2, f"{count}, the longest {longest:.1f} s")
    conversation = made.get("conversation")
    if conversation is None:
        check("a conversation begins", False, Path(server.directory / "log").read_text(errors="replace")[-2000:])
        return None
    conversation.send_message("begin")
    conversation.run(timeout=90)
    check("a conversation begins, runs and ends", conversation.state.execution_status.value == "finished",
          conversation.state.execution_status)
    kinds = {type(event).__name__ for event in events}
    wanted = {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent"}
    check("its events come over the socket", wanted <= kinds, kinds)
    texts = [event.model_dump_json() for event in events if type(event).__name__ == "ObservationEvent"]
    check("the tool's output is among them", any("from the agent" in text for text in texts), texts)
    check("the files of the agent are those of commands", server.run(f"cat {server.work}/by-agent") == "from the agent\n")
    identity = str(conversation.id)
    conversation.close()
    return identity


def look(server, identity):
    path = f"/api/conversations/{identity}"
    check("it is found afterwards", server.get(path).status_code == 200, server.get(path).text)
    check("it is nobody's without the key", server.get(path, headers={}).status_code == 401)
    check("nor with another key", server.get(path, headers={"X-Session-API-Key": "x"}).status_code == 401)
    check("nor are the settings", server.get("/api/settings", headers={}).status_code == 401)
    check("what is the agent's is passed on", server.get("/api/settings").status_code == 200, server.get("/api/settings").text)
    check("its unknown paths are its own", server.get("/api/no-such-thing").status_code == 404)
    check("a key in the query is not passed on", server.get(f"{path}?session_api_key=x").status_code == 200)
    details = server.get("/server_info").json()
    check("the details are the agent's", "terminal" in details.get("usable_tools", []), details)
    check("no command has a key", "SESSION_API" not in server.run("env"))
    socket_url = server.url.replace("http", "ws") + f"/sockets/events/{identity}"
    right, wrong = ({"type": "auth", "session_api_key": key} for key in (KEY, "x"))
    check("its socket opens with the key", closed_with(socket_url, right) == "open")
    check("and not with another one", closed_with(socket_url, wrong) == 4001, closed_with(socket_url, wrong))
    check("nor with another one in its address", closed_with(f"{socket_url}?session_api_key=x") == 403)
    unknown = server.url.replace("http", "ws") + "/sockets/events/00000000-0000-0000-0000-000000000000"
    check("a conversation that is not there has the code of that", closed_with(unknown, right) == 4004, closed_with(unknown, right))


def kill(server, identity):
    mark = server.mark()
    agent = agent_of(mark)
    os.kill(agent, signal.SIGKILL)
    path = f"/api/conversations/{identity}"
    until(lambda: agent_of(mark) != agent)
    # The first request may meet the one that was killed.
    answered = until(lambda: server.get(path).status_code == 200, 60)
    check("an agent that is killed comes back with its conversations", answered and agent_of(mark) != agent)
    server.process.terminate()
    code = server.process.wait(30)
    check("the end of the server is the agent's", code == 0 and until(lambda: not of_sandbox(mark), 5), of_sandbox(mark))


def main():
    binary, agent_server, directory = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    server = Server(binary, agent_server, directory)
    try:
        identity = talk(server, f"http://127.0.0.1:{model.server_port}/v1")
        if identity:
            look(server, identity)
            kill(server, identity)
    finally:
        server.process.kill()
        server.process.wait()
        model.shutdown()
    again = Server(binary, agent_server, directory)
    mark = again.mark()
    again.get("/api/conversations/search")
    is_there = agent_of(mark) is not None
    again.process.send_signal(signal.SIGKILL)
    again.process.wait()
    check("a killed server leaves no agent behind", is_there and until(lambda: not of_sandbox(mark), 10), of_sandbox(mark))


main()
print(f"{COUNTS[True]} passed, {COUNTS[False]} failed, 0 skipped")
