"""Our cli runtime and the reference's do the same things in workspaces that are alike, and give the same answers.

    cli.py PROGRAM

PROGRAM is the example `cli_drive` of our crate. What differs on purpose has its reason beside it, and must differ. Last
line: `N passed, N failed, N skipped`.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import zipfile

# Nobody's home is written to.
os.environ["HOME"] = tempfile.mkdtemp()
os.environ["LOG_LEVEL"] = "CRITICAL"
logging.disable(logging.CRITICAL)

from openhands.core.config import OpenHandsConfig  # noqa: E402
from openhands.events.serialization import event_from_dict, event_to_dict  # noqa: E402
from openhands.llm.llm_registry import LLMRegistry  # noqa: E402
from openhands.runtime.impl.cli.cli_runtime import CLIRuntime  # noqa: E402


def act(kind, timeout=None, **args):
    action = {"action": kind, "args": args}
    if timeout is not None:
        action["timeout"] = timeout
    return action


def run(command, timeout=None, **args):
    # A command that ends before the reference looks for the first time loses its output there.
    return act("run", timeout, command=command, **args)


def slow(command, **args):
    return run("sleep .3; " + command, **args)


def read(path, **args):
    return act("read", path=path, **args)


def view(path, **args):
    return act("read", path=path, impl_source="oh_aci", **args)


def write(path, content):
    return act("write", path=path, content=content)


def edit(command, path, **args):
    return act("edit", path=path, command=command, impl_source="oh_aci", **args)


PATHS = [
    "t.txt", "./t.txt", "t.txt/", "/workspace/t.txt", "{W}/t.txt", "link", "absolute", "missing/../t.txt", "latin", "empty",
    "missing", "dangling", "loop", "t.txt/x", "n" * 300, "d", "", ".", "/workspace", "bin", "..", "../x", "/workspace/..",
    "/workspace-evil", "/etc/passwd", "out", "out/canary", "d/../../x", "{W}/../x",
]

STEPS = [
    (slow("echo hi"), None),
    (slow("printf 'a\\r\\nb\\rc\\n'"), None),
    (slow("printf nonl"), None),
    (slow("echo err >&2; exit 3"), None),
    (slow("kill -9 $$"), None),
    (slow("kill $$"), None),
    (slow("exit 300"), None),
    (slow("echo -n '  sp  '"), None),
    (slow("echo a\necho b"), None),
    (slow("pwd"), None),
    (slow("seq 1 20000"), None),
    (slow("python3 -c 'import os; os.kill(os.getpid(), 11)'"), None),
    (run(""), None),
    (run("  "), None),
    (run("cd /; export x=1"), None),
    (slow("pwd; echo $x"), None),
    (run("a\0b"), None),
    (run("sleep 5", timeout=0.7), None),
    (run("echo x; sleep 5", timeout=1.25), None),
    (slow("printf '\\xff\\n'"), "bytes that are no text are shown as such"),
    (slow("seq 1 20000", hidden=True), "hidden output is not cut"),
    (slow("pwd", is_static=True, cwd="/usr"), "a directory that is asked for is used"),
    (run("C-c", is_input=True), "commands can be answered"),
    *((read(path), None) for path in PATHS),
    *((view(path), None) for path in PATHS if path not in ("loop", "", ".", "/workspace", "latin", "n" * 300)),
    (view("latin"), "the editor shows text in other encodings"),
    (view("n" * 300), "what the system says is an answer of the editor"),
    *((["list", path], None) for path in [None, *PATHS]),
    (read("a\0b"), None),
    (view("t.txt", view_range=[1, 1]), None),
    (view("t.txt", view_range=[9, 10]), None),
    (write("n.txt", "a\r\nb"), None),
    (read("n.txt"), None),
    (write("x/y/z", "q"), None),
    (write("d", "q"), None),
    (write("", "q"), None),
    (write("t.txt/x", "q"), None),
    (write("t.txt/x/y", "q"), None),
    (write("dangling", "q"), None),
    (write("loop", "q"), None),
    (write("out/x", "q"), None),
    (write("/etc/x", "q"), None),
    (edit("create", "e.txt", file_text="one\ntwo\n"), None),
    (edit("create", "e.txt", file_text="again"), None),
    (edit("view", "/workspace/e.txt"), None),
    (edit("str_replace", "e.txt", old_str="one", new_str="1"), None),
    (edit("str_replace", "{W}/e.txt", old_str="none", new_str="1"), None),
    (edit("insert", "e.txt", insert_line=1, new_str="x"), None),
    (edit("undo_edit", "e.txt"), None),
    (edit("undo_edit", "e.txt"), None),
    (edit("nope", "e.txt"), None),
    (edit("create", "nodir/e", file_text=""), None),
    (edit("str_replace", "e.txt"), None),
    (edit("view", "bin"), None),
    (edit("create", "out/new", file_text="x"), None),
    (act("run_ipython", code="1"), None),
    (act("browse", url="x"), None),
    (act("browse_interactive", browser_actions="x"), None),
    (["copy_to", "{S}/f", "c1", False], None),
    (["copy_to", "{S}/f", "c2.txt", False], None),
    (["copy_to", "{S}/f", "d", False], None),
    (["copy_to", "{S}/f", "new/", False], None),
    (["copy_to", "{S}/f", "x1/y1", False], None),
    (["copy_to", "{S}/f", "link", False], None),
    (["copy_to", "{S}/f", "", False], None),
    (["copy_to", "{S}/t", "tt", True], None),
    (["copy_to", "{S}/t", "tt", True], None),
    (["copy_to", "{S}/t/", "tz", True], None),
    (["copy_to", "{S}/t", "tt", False], None),
    (["copy_to", "{S}/t", "e.txt", True], None),
    (["copy_to", "/nope", "d", False], None),
    (["copy_to", "{S}/f", "../z", False], None),
    (["copy_to", "{S}/f", "out/z", False], None),
    (["copy_to", "{S}/f", "e.txt/q", False], None),
    (["copy_from", "tt"], None),
    (["copy_from", "c1/f"], None),
    (["copy_from", "missing"], None),
    (["copy_from", "out"], None),
    (["copy_from", "../x"], None),
    (["copy_from", ""], "a link that leads nowhere spoils no copy"),
    (["tree"], None),
    (["close"], None),
    (run("true"), None),
    (read("t.txt"), None),
    (write("t.txt", ""), None),
    (edit("view", "t.txt"), None),
    (["list", None], None),
    (["copy_from", "tt"], None),
    (["copy_to", "{S}/f", "f", False], None),
]


def furnish(base):
    """A workspace `ws` beside `outside`, and `source`."""
    for name in ("ws/d", "outside", "source/t/u/empty"):
        os.makedirs(f"{base}/{name}")
    for name, content in (
        ("ws/t.txt", b"a\r\nb\rc\n"), ("ws/bin", b"\0\1\2"), ("ws/latin", b"caf\xe9 x\n"), ("ws/empty", b""),
        ("outside/canary", b"canary"), ("source/f", b"F"), ("source/t/u/g.txt", b"G"),
    ):
        with open(f"{base}/{name}", "wb") as file:
            file.write(content)
    os.chmod(f"{base}/source/f", 0o751)
    for link, target in (
        ("ws/link", "t.txt"), ("ws/absolute", f"{base}/ws/t.txt"), ("ws/dangling", "nowhere"), ("ws/loop", "loop"),
        ("ws/out", f"{base}/outside"), ("source/t/u/link", "g.txt"),
    ):
        os.symlink(target, f"{base}/{link}")


def tree(base):
    """All that is in the workspace, with modes of files."""
    found = []
    for directory, names, files in os.walk(f"{base}/ws"):
        for name in names + files:
            path = f"{directory}/{name}"
            # The reference makes a file private that it inserts lines into.
            is_plain = not (os.path.islink(path) or os.path.isdir(path) or name == "e.txt")
            mode = os.stat(path).st_mode if is_plain else None
            found.append([os.path.relpath(path, base), mode])
    return sorted(found)


def placed(value, base):
    text = json.dumps(value)
    return json.loads(text.replace("{W}", f"{base}/ws").replace("{S}", f"{base}/source"))


def compared(value, base):
    """Without what differs by nature: the place, order of lists, numbers and times of events."""
    if isinstance(value, dict):
        value = {key: value.get(key) for key in ("observation", "content", "extras", "success", "error") if key in value}
    if isinstance(value, list):
        value = sorted(value, key=json.dumps)
    text = json.dumps(value, sort_keys=True).replace(base, "BASE")
    # Python 3.13 says it in other words than 3.12.
    return text.replace("lstat: embedded null character in path", "embedded null byte")


def reference(base):
    config = OpenHandsConfig(workspace_base=f"{base}/ws", runtime="cli")
    runtime = CLIRuntime(config=config, event_stream=None, llm_registry=LLMRegistry(config), sid="compared")
    asyncio.run(runtime.connect())

    def ask(step):
        match step:
            case ["list", path]:
                return runtime.list_files(path)
            case ["copy_to", source, destination, recursive]:
                return runtime.copy_to(source, destination, recursive)
            case ["copy_from", path]:
                packed = str(runtime.copy_from(path))
                entries = [
                    [entry.filename, entry.compress_type == 8, entry.external_attr >> 16 & 0o777]
                    for entry in zipfile.ZipFile(packed).infolist()
                ]
                os.remove(packed)
                return entries
            case ["close"]:
                return runtime.close()
        action = event_from_dict({key: value for key, value in step.items() if key != "timeout"})
        if "timeout" in step:
            action.set_hard_timeout(step["timeout"])
        return event_to_dict(getattr(runtime, step["action"])(action))

    def answer(step):
        try:
            return ask(step)
        except Exception as error:  # what callers get
            # A refusal is an observation as soon as it reaches the event stream.
            if isinstance(error, (PermissionError, ValueError)) and isinstance(step, dict):
                return {"observation": "error", "content": str(error), "extras": {"error_id": ""}}
            return {"error": str(error)}

    return answer


def ours(program, base):
    process = subprocess.Popen(
        [program, f"{base}/ws"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )

    def answer(step):
        process.stdin.write(json.dumps(step) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return answer


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        one, two = os.path.realpath(one), os.path.realpath(two)
        furnish(one)
        furnish(two)
        # The reference changes the directory of its process, and so does nothing that comes later here.
        program = os.path.abspath(sys.argv[1])
        answers = ((reference(one), one), (ours(program, two), two))
        for step, reason in STEPS:
            got = []
            for answer, base in answers:
                value = tree(base) if step == ["tree"] else answer(placed(step, base))
                got.append(compared(value, base))
            if (got[0] == got[1]) == (reason is None):
                passed += 1
                continue
            failed += 1
            print(f"FAILED  {json.dumps(step)[:200]}{f' (must differ: {reason})' if reason else ''}")
            print(f"        the reference: {got[0][:500]}\n        gloveport:     {got[1][:500]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
