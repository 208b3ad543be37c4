"""An MCP server over standard input and output that does what a test wants. Its first argument is its name."""
import json, os, sys, threading, time

name, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
lock = threading.Lock()
answers = {}
cancelled = threading.Event()
stopped = threading.Event()


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tell(method, **params):
    send({"method": method, "params": params})


def ask(method, **params):
    answers["q"] = threading.Event()
    send({"id": "q", "method": method, "params": params})
    answers["q"].wait(20)
    return answers.get("a")


def text(value):
    return {"content": [{"type": "text", "text": str(value)}], "isError": False}


def call(id, params):
    tool, arguments = params["name"], params.get("arguments") or {}
    result = text("?")
    if tool == "echo":
        result = {**text(f"{name}: {arguments.get('text')}"), "structuredContent": {"a": 1}, "x-unknown": [1]}
    elif tool == "pid":
        result = text(os.getpid())
    elif tool == "env":
        result = text(json.dumps({**os.environ, "cwd": os.getcwd()}))
    elif tool == "sleep":
        time.sleep(arguments["seconds"])
        result = text("slept")
    elif tool == "steps":
        token = params.get("_meta", {}).get("progressToken")
        for step in range(arguments["steps"]):
            if token is not None:
                tell("notifications/progress", progressToken=token, progress=step + 1, total=arguments["steps"])
        result = text("no token" if token is None else "token")
    elif tool == "wait":
        tell("notifications/message", level="info", data="waiting")
        result = text("cancelled" if cancelled.wait(20) else "not cancelled")
        tell("notifications/message", level="error", data=result["content"][0]["text"])
    elif tool == "ask":
        result = text(json.dumps(ask("sampling/createMessage", maxTokens=1, messages=[])))
    elif tool == "change":
        tell("notifications/tools/list_changed")
        tell("notifications/message", level="debug", data="fine")
        tell("notifications/message", level="error", data="bad")
        tell("notifications/resources/updated", uri="demo://one")
    elif tool == "big":
        result = text("x" * arguments["bytes"])
    elif tool == "deep":
        with lock:
            sys.stdout.write('{"jsonrpc": "2.0", "id": %s, "result": %s1%s}\n' % (id, "[" * 5000, "]" * 5000))
            sys.stdout.flush()
        return
    elif tool == "die":
        print("its last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif tool == "nag":
        stopped.set()
        while True:
            send({"id": "n" * 1000, "method": "roots/list"})
    elif tool == "endless":
        with lock:
            for _ in range(80):
                sys.stdout.write("x" * (1 << 20))
            sys.stdout.flush()
    send({"id": id, "result": result})


def handle(message):
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        answers["a"] = message.get("result") or message.get("error")
        answers["q"].set()
    elif method == "initialize":
        capabilities = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}}
        send({"id": id, "result": {"protocolVersion": params["protocolVersion"], "capabilities": capabilities,
                                   "serverInfo": {"name": name, "version": "1"}}})
    elif method == "tools/list":
        count = 10000 if mode == "many" else 2
        tools = [{"name": "echo" if n == 0 else f"tool{n}", "description": "\x1b[2J\u202e", "inputSchema": {"type": "object"}}
                 for n in range(count)]
        page = int(params.get("cursor") or 0)
        end = page + 1000 if mode == "many" else count
        result = {"tools": tools[page:end]}
        if end < count:
            result["nextCursor"] = str(end)
        send({"id": id, "result": result})
    elif method == "prompts/list":
        send({"id": id, "result": {"prompts": [{"name": "greet"}]}})
    elif method == "prompts/get":
        send({"id": id, "result": {"messages": [], "description": params["name"]}})
    elif method == "resources/list":
        send({"id": id, "result": {"resources": [{"name": "one", "uri": "demo://one"}]}})
    elif method == "resources/templates/list":
        send({"id": id, "result": {"resourceTemplates": [{"name": "t", "uriTemplate": "demo://{id}"}]}})
    elif method == "resources/read":
        if params["uri"].startswith("demo://"):
            send({"id": id, "result": {"contents": [{"uri": params["uri"], "text": name}]}})
        else:
            send({"id": id, "error": {"code": -32002, "message": "no such resource here"}})
    elif method == "completion/complete":
        send({"id": id, "result": {"completion": {"values": [json.dumps(params["ref"])]}}})
    elif method == "notifications/cancelled":
        cancelled.set()
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, params), daemon=True).start()
    elif id is not None:
        send({"id": id, "result": {}})


if mode == "silent":
    time.sleep(60)
if mode == "broken":
    print("cannot find my settings", file=sys.stderr)
    sys.exit(7)
if mode == "chatty":
    print("Welcome!\n{\"half\": \n[1, 2]\n", flush=True)
for line in sys.stdin:
    handle(json.loads(line))
    if stopped.wait(0.01 if "nag" in line else 0):
        time.sleep(60)
