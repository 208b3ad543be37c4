"""The reference's agent controller, agent and `LocalRuntime`, all unmodified, with a scripted model, work in our server.

    controller.py BINARY

A small server speaks the interface of a model and answers with tool calls, one a request: commands that build on each
other, one that waits for input, edits, cells of the notebook, a thought, tools of two MCP servers that run in the sandbox,
and at last the end. What was done is recorded, and done once more from the recording without the model, by the reference and by
`gloveport replay`. Prints one line a check and, last, `N passed, N failed, N skipped`; exit code 1 if a check failed.
Without the MCP servers, which `scripts/setup` installs, their calls are counted as skipped.
"""

import asyncio
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

# MCP servers that others wrote.
MCP = os.path.expanduser("~/.cache/gloveport/mcp/bin")
SERVERS = [("every", "mcp-server-everything", ["stdio"]), ("time", "mcp-server-time", [])]

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def script(work):
    """Each tool call with words that its result has, and ones that it has not."""
    notes = os.path.join(work, "notes.txt")

    def bash(command, *words, **more):
        return "execute_bash", {"command": command, "security_risk": "LOW", **more}, words

    def edit(command, *words, path=notes, **more):
        return "str_replace_editor", {"command": command, "path": path, "security_risk": "LOW", **more}, words

    def cell(code, *words):
        return "execute_ipython_cell", {"code": code, "security_risk": "LOW"}, words

    convert = {"source_timezone": "Asia/Kolkata", "target_timezone": "UTC", "time": "12:30"}
    tools = [
        ("every_echo", {"message": "over MCP"}, ("Echo: over MCP",)),
        ("every_get-sum", {"a": 20, "b": 22}, ("42",)),
        ("every_get-structured-content", {"location": "New York"}, ("structuredContent", "temperature")),
        ("time_convert_time", convert, ("07:00:00",)),
        ("time_convert_time", {**convert, "time": "late"}, ("Invalid time format", '"isError": true')),
    ]
    return [
        *(tools if os.path.isdir(MCP) else []),
        bash("cd /tmp && export WORD=kept", "exit code 0"),
        bash('echo "$WORD in $PWD"', "kept in /tmp"),
        bash(f"cd {work} && ls -A", "exit code 0"),
        edit("create", "created successfully", file_text="one\ntwo\nthree\n"),
        edit("view", "     2\ttwo"),
        edit("str_replace", "has been edited", old_str="two", new_str="2"),
        edit("insert", "has been edited", insert_line=3, new_str="four"),
        bash("cat notes.txt", "one\n2\nthree\nfour"),
        edit("undo_edit", "undone successfully"),
        bash("wc -l < notes.txt", "3"),
        ("think", {"thought": "The file has three lines."}, ("Your thought has been logged",)),
        cell("x = 41\nprint('a cell')", "a cell"),
        cell("x + 1", "42"),
        bash("git init -q r && cd r && git status --short --branch", "No commits yet"),
        bash("false", "exit code 1"),
        bash("nosuchcommand", "command not found", "exit code 127"),
        bash("read -r name; echo \"<$name>\"", "no new output after 2 seconds"),
        bash("somebody", "<somebody>", "exit code 0", is_input="true"),
        bash("for i in 1 2 3; do echo line $i; done | tail -1", "line 3"),
        bash("bash -c 'exit 7'", "exit code 7"),
    ]


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next tool call."""

    calls = []
    asked = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Model.asked.append(body)
        number = min(len(Model.asked), len(Model.calls)) - 1
        name, arguments = Model.calls[number]
        call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": f"step {number}", "tool_calls": [call]}
        answer = {
            "id": f"answer_{number}", "object": "chat.completion", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def drive(launcher, home, port, work, recording, is_replay):
    os.makedirs(os.path.join(home, "tmp"), exist_ok=True)
    os.makedirs(work)
    os.environ.update(
        HOME=home, TMPDIR=os.path.join(home, "tmp"), USER="root", LOG_LEVEL="ERROR", NO_CHANGE_TIMEOUT_SECONDS="2",
        SKIP_DEPENDENCY_CHECK="1", SU_TO_USER="false", LITELLM_LOCAL_MODEL_COST_MAP="True",
        OPENHANDS_REPO_PATH="/", GLOVEPORT_PYTHON=sys.executable,
    )
    from openhands.core.config import LLMConfig, OpenHandsConfig
    from openhands.core.config.agent_config import AgentConfig
    from openhands.core.config.mcp_config import MCPConfig, MCPStdioServerConfig
    from openhands.core.main import run_controller
    from openhands.events import EventStream
    from openhands.events.action import MessageAction, NullAction
    from openhands.events.observation import ErrorObservation
    from openhands.events.serialization import event_to_dict
    from openhands.storage import get_file_store

    config = OpenHandsConfig()
    config.runtime, config.default_agent, config.max_iterations = "local", "CodeActAgent", 40
    config.enable_browser = config.run_as_openhands = False
    config.workspace_base = config.workspace_mount_path_in_sandbox = work
    config.file_store, config.file_store_path = "local", os.path.join(home, "replayed" if is_replay else "store")
    if is_replay:
        config.replay_trajectory_path = recording
    else:
        config.save_trajectory_path = recording
    config.set_llm_config(
        LLMConfig(model="openai/scripted", base_url=f"http://127.0.0.1:{port}/v1", api_key="x", native_tool_calling=True, num_retries=1)
    )
    if os.path.isdir(MCP):
        servers = [MCPStdioServerConfig(name=name, command=os.path.join(MCP, program), args=arguments) for name, program, arguments in SERVERS]
        config.mcp = MCPConfig(stdio_servers=servers)
    agent = AgentConfig()
    agent.enable_browsing = False
    config.set_agent_config(agent)

    real, sys.executable = sys.executable, launcher
    try:
        task = NullAction() if is_replay else MessageAction(content="Do what the script says.")
        state = asyncio.run(run_controller(config, task, sid="scripted", exit_on_message=True))
    finally:
        sys.executable = real
    store = get_file_store("local", config.file_store_path)
    events = [event_to_dict(event) for event in EventStream("scripted", store).search_events()]
    errors = [event for event in events if event.get("observation") == "error"]
    results = {}
    for event in events:
        metadata = event.get("tool_call_metadata")
        if metadata and "observation" in event:
            results[metadata["tool_call_id"]] = event.get("content", "") + " " + str(
                event.get("extras", {}).get("metadata", {}).get("suffix", "")
            )
    return {
        "state": state.agent_state.value if state else None,
        "error": state.last_error if state else "no state",
        "results": results,
        "errors": errors,
    }


def task_first(recording, place):
    """The reference reads a recording only if the task comes first, and records what it tells the model before that."""
    with open(recording) as file:
        events = json.load(file)
    with open(place, "w") as file:
        json.dump([event for event in events if event.get("action") not in ("system", "recall")], file)


def replay(check, binary, home, work, recording, steps):
    """Our own command does what the reference has recorded."""
    os.makedirs(work)
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write("[mcp]\nstdio_servers = [\n")
        for name, program, arguments in SERVERS if os.path.isdir(MCP) else []:
            file.write(f"  {{ name = {json.dumps(name)}, command = {json.dumps(os.path.join(MCP, program))}, args = {json.dumps(arguments)} }},\n")
        file.write(f"]\n[sandbox]\nruntime_startup_env_vars = {{ VIRTUAL_ENV = {json.dumps(sys.prefix)} }}\n")
    words = [binary, "replay", recording, "--runtime", "local", "--cwd", work, "--json"]
    ended = subprocess.run(words, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    check("gloveport replays it", ended.returncode == 0, ended.stderr[-2000:])
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    results = [event for event in events if "observation" in event and event.get("cause") is not None]
    texts = [event.get("content", "") + str(event.get("extras", {}).get("metadata", {}).get("suffix", "")) for event in results]
    for number, (name, _, words) in enumerate(steps):
        if name == "think" or "no new output" in "".join(words):
            continue
        check(f"gloveport replays {number + 1:2} {name}", any(all(word in text for word in words) for text in texts), texts)


def main():
    binary = os.path.realpath(sys.argv[1])
    passed = failed = 0

    def check(name, holds, detail=""):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        print(f"{'ok' if holds else 'FAILED':7} {name}" + ("" if holds else f": {detail}"), flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        launcher = os.path.join(home, "python")
        os.symlink(binary, launcher)
        work = os.path.join(home, "work")
        steps = script(work)
        Model.calls = [(name, arguments) for name, arguments, _ in steps] + [("finish", {"message": "done"})]
        model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        recording = os.path.join(home, "recording.json")
        for how in ["", "replayed: "]:
            # In a process of its own: the server of a session ends with its backend.
            place = os.path.join(home, f"seen{len(how)}.json")
            words = [sys.executable, __file__, "--drive", launcher, home, str(model.server_port), work, place, recording + (".task" if how else ""), how]
            backend = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
            if not os.path.exists(place):
                print(backend.stderr[-4000:])
                raise SystemExit(f"FAILED {how}the controller came to no end\n0 passed, 1 failed, 0 skipped")
            with open(place) as file:
                seen = json.load(file)
            for number, (name, arguments, words) in enumerate(steps):
                result = seen["results"].get(f"call_{number}", "there is no result")
                what = arguments.get("command") or arguments.get("code") or name
                check(f"{how}{number + 1:2} {name}: {what!r}"[:100], all(word in result for word in words), repr(result))
            check(f"{how}the agent ends well", seen["state"] == "finished", f"{seen['state']}: {seen['error']}")
            check(f"{how}no action is an error", not seen["errors"], seen["errors"])
            asked = len(Model.asked) - (len(Model.calls) if how else 0)
            expected = 0 if how else len(Model.calls)
            check(f"{how}the model is asked once for each new action", asked == expected, asked)
            shutil.rmtree(work)
            if not how:
                task_first(recording, recording + ".task")
        model.shutdown()
        replay(check, binary, home, work, recording, steps)
        left = subprocess.run(["pgrep", "-f", launcher], capture_output=True, text=True).stdout.split()
        check("nothing of it is left", not left, left)
    skipped = 0 if os.path.isdir(MCP) else 5
    if skipped:
        print("skipped: calls of MCP tools: scripts/setup could not install the servers")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--drive":
        launcher, home, port, work, place, recording, how = sys.argv[2:]
        seen = drive(launcher, home, int(port), work, recording, bool(how))
        with open(place, "w") as file:
            json.dump(seen, file)
    else:
        sys.exit(main())
