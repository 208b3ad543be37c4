"""The editor, hooks, and what belongs to an agent."""

import json

from .harness import case


@case
def the_editor(server):
    get = lambda path, **more: server.asked("GET", f"/api/vscode/{path}", **more)
    return {
        "status": get("status"),
        "url": get("url"),
        "url with all": get("url", params={"base_url": "http://other:1", "workspace_dir": "/a b"}),
        "no such": get("no-such"),
    }


HOOKS = {
    "valid": {"pre_tool_use": [{"matcher": "terminal", "hooks": [{"type": "command", "command": "a", "timeout": 5}]}]},
    "in camel case": {"PreToolUse": [{"hooks": [{"command": "a", "async": True}]}], "Stop": []},
    "below hooks": {"hooks": {"SessionStart": [{"matcher": "*", "hooks": [{"command": "a", "name": "n"}]}]}},
    "below hooks, and more": {"hooks": {"stop": [{"hooks": [{"command": "a"}]}]}, "more": 1},
    "all": {name: [{"hooks": [{"command": name}]}] for name in ("pre_tool_use", "post_tool_use", "user_prompt_submit",
                                                                "session_start", "session_end", "stop")},
    "a prompt": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "system_prompt": "s"}]}]},
    "an agent": {"stop": [{"hooks": [{"type": "agent", "system_prompt": "s", "tools": ["x"], "max_iterations": 1}]}]},
    "an agent with nothing": {"stop": [{"hooks": [{"type": "agent"}]}]},
    "more in a hook": {"stop": [{"hooks": [{"command": "a", "more": 1}], "more": 1}]},
    "no hooks in a matcher": {"stop": [{}]},
    "empty lists": {"stop": [], "session_end": []},
    "empty": {},
    "empty hooks": {"hooks": {}},
    "both cases": {"Stop": [{"hooks": [{"command": "a"}]}], "stop": []},
    "an unknown key": {"other": [], "stop": [{"hooks": [{"command": "a"}]}]},
    "an unknown key in camel case": {"Other": [], "stop": [{"hooks": [{"command": "a"}]}]},
    "a command without one": {"stop": [{"hooks": [{"type": "command"}]}]},
    "a prompt without one": {"stop": [{"hooks": [{"type": "prompt"}]}]},
    "a prompt with a command": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "command": "a"}]}]},
    "an unknown type": {"stop": [{"hooks": [{"type": "other", "command": "a"}]}]},
    "text as the timeout": {"stop": [{"hooks": [{"command": "a", "timeout": "7"}]}]},
    "half a second": {"stop": [{"hooks": [{"command": "a", "timeout": 0.5}]}]},
    "async as a word": {"stop": [{"hooks": [{"command": "a", "async": "yes"}]}]},
    "async with its other name": {"stop": [{"hooks": [{"command": "a", "async_": True}]}]},
    "a background prompt": {"stop": [{"hooks": [{"type": "prompt", "prompt": "p", "async": True}]}]},
    "no list": {"stop": {"hooks": []}},
    "a list": [],
    "null": None,
    "null for a key": {"stop": None},
    "no JSON": "{",
}  # fmt: skip


@case
def hooks(server):
    place = server.place("hooks")
    (place / ".openhands").mkdir()
    file = place / ".openhands/hooks.json"
    ask = lambda **body: server.asked("POST", "/api/hooks", **(body or {"json": {"project_dir": str(place)}}))
    found = {"missing": ask()}
    for name, content in HOOKS.items():
        file.write_text(content if name == "no JSON" else json.dumps(content))
        found[name] = ask()
    file.write_bytes(b"")
    found["an empty file"] = ask()
    file.unlink()
    file.mkdir()
    found["a directory"] = ask()
    return found | {
        "no such project": ask(json={"project_dir": "/no/such"}),
        "a relative project": ask(json={"project_dir": "hooks"}),
        "null as the project": ask(json={"project_dir": None}),
        "an empty project": ask(json={"project_dir": ""}),
        "nothing": ask(json={}),
        "a number": ask(json={"project_dir": 7}),
        "a list as the body": ask(json=[]),
        "no body": ask(content=b""),
        "broken JSON": ask(content=b"{", headers={"Content-Type": "application/json"}),
    }


@case
def tools_and_the_start(server):
    tools = server.asked("GET", "/api/tools/")
    names = tools.pop("body")
    return {
        "tools": tools | {"are names": isinstance(names, list) and all(isinstance(name, str) for name in names)},
        "there are tools": bool(names),
        "init": server.asked("GET", "/api/init", key=None),
        "init with a key": server.asked("GET", "/api/init"),
        "start": server.asked("POST", "/api/init", json={}),
        "start without a key": server.asked("POST", "/api/init", key=None, json={}),
        "start without a body": server.asked("POST", "/api/init", key=None),
        "the desktop": server.asked("GET", "/api/desktop/url"),
    }
