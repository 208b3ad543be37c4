"""verifiers: its agent `bash` with a scripted model works in a sandbox, and is rewarded for what is there afterwards.

The program of the agent is installed into the sandbox by uv, over the network, unless it is there.
"""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import verifiers.v1 as vf

from gloveport.verifiers import GloveportRuntime

Message = dict[str, Any]


def bash(command: str) -> Message:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}


@contextlib.contextmanager
def scripted(*messages: Message) -> Iterator[vf.EvalClientConfig]:
    """A server of models that says these."""
    steps = iter(messages)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            message = next(steps)
            end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for more in (
                {"choices": [{"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None}]},
                {"choices": [end]},
                {"choices": [], "usage": usage},
            ):
                self.wfile.write(b"data: " + json.dumps({**chunk, **more}).encode() + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["SCRIPTED_KEY"] = "none"
    yield vf.EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key_var="SCRIPTED_KEY")
    server.shutdown()
    server.server_close()


class Answer(vf.Task):
    @vf.reward
    async def is_right(self, runtime: vf.Runtime) -> float:
        return float(await runtime.read("answer") == b"42\n")


async def main() -> None:
    with scripted(bash("echo $((6 * 7)) >answer"), {"content": "It is done."}) as client:
        agent = vf.Agent(vf.AgentConfig(model="scripted", client=client, harness={"id": "bash"}))
        async with GloveportRuntime() as box:
            trace = await agent.run(Answer(vf.TaskData(prompt="Write the answer into a file.")), runtime=box)
    print(trace.last_reply, trace.reward, *trace.errors)


if __name__ == "__main__":
    asyncio.run(main())
