"""The reference's own client, unmodified, starts a server and browses with it.

    client.py BINARY          ours
    client.py --reference     the reference's own server, to see that the checks hold for it

`LocalRuntime` starts `sys.executable -u -m openhands.runtime.action_execution_server PORT ...`. Here `sys.executable` is
a link to BINARY; nothing else of the reference is changed. All runs in a throw-away root, an overlay of this machine's,
which has a `/workspace` of its own. Prints one line a check and, last, `N passed, N failed, N skipped`; exit code 1 if a
check failed.
"""

import asyncio
import os
import re
import socket
import sys
import tempfile
import time

import throwaway

HERE = os.path.dirname(os.path.abspath(__file__))
# Checks that there are, if none can be made.
CHECKS = 46
# How long a server, or what it started, may take to end, in seconds.
ENDING = 10


# Before the client is imported, which is slow.
if __name__ == "__main__" and not throwaway.enter(__file__):
    print("skipped: overlays cannot be mounted here")
    print(f"0 passed, 0 failed, {CHECKS} skipped")
    sys.exit(0)

HOME = tempfile.mkdtemp(prefix="browsergym-client-")
os.environ.update(
    HOME=HOME, USER="root", LOG_LEVEL="ERROR", NO_CHANGE_TIMEOUT_SECONDS="3", SKIP_DEPENDENCY_CHECK="1", SU_TO_USER="false"
)
os.environ.pop("SESSION_API_KEY", None)

from openhands.core.config import OpenHandsConfig  # noqa: E402
from openhands.events import EventStream  # noqa: E402
from openhands.events.action import BrowseInteractiveAction, BrowseURLAction, CmdRunAction, FileWriteAction  # noqa: E402
from openhands.events.observation import BrowserOutputObservation, ErrorObservation, FileDownloadObservation  # noqa: E402
from openhands.llm.llm_registry import LLMRegistry  # noqa: E402
from openhands.runtime.impl.local.local_runtime import LocalRuntime  # noqa: E402
from openhands.storage import get_file_store  # noqa: E402

import web  # noqa: E402

REFERENCE = sys.argv[1:] == ["--reference"]
passed = failed = skipped = 0


def check(name, found, expected):
    global passed, failed
    if found == expected:
        passed += 1
        print(f"ok      {name}", flush=True)
    else:
        failed += 1
        print(f"FAILED  {name}\n        expected {expected!r}\n        found    {found!r}", flush=True)


def skip(text):
    global skipped
    skipped += 1
    print(f"skipped {text}", flush=True)


def holds(name, condition, shown):
    """A check whose failure shows what was seen."""
    check(name, True if condition else shown, True)


class Session:
    """The client's runtime with a server of its own."""

    def __init__(self, name, launcher, browser):
        self.config = OpenHandsConfig()
        self.config.workspace_base = self.config.workspace_mount_path_in_sandbox = "/workspace"
        self.config.enable_browser = browser
        self.config.run_as_openhands = False
        self.config.default_agent = "DummyAgent"
        stream = EventStream(name, get_file_store("local", HOME))
        self.runtime = LocalRuntime(self.config, stream, LLMRegistry(self.config), sid=name, env_vars={})
        self.launcher = launcher

    def __enter__(self):
        from openhands import agenthub  # noqa: F401  registers the agents

        real, sys.executable = sys.executable, self.launcher
        began = time.monotonic()
        try:
            asyncio.run(self.runtime.connect())
        finally:
            sys.executable = real
        print(f"        connected after {time.monotonic() - began:.2f} s", flush=True)
        self.pid = self.runtime.server_process.pid
        return self

    def __exit__(self, *_):
        self.runtime.close()

    def run(self, command):
        return self.runtime.run(CmdRunAction(command=command))

    def browse(self, url, **more):
        return self.runtime.browse(BrowseURLAction(url=url, **more))

    def do(self, actions, **more):
        return self.runtime.browse_interactive(BrowseInteractiveAction(browser_actions=actions, **more))


def bid(seen, words):
    """The bid of the first line of the tree that contains the words."""
    for line in seen.content.split("\n"):
        found = re.match(r"^\[([a-zA-Z0-9]+)\]\s*(.*)", line.strip())
        if found and words in found.group(2):
            return found.group(1)
    return f"no {words}"


def line(seen, words):
    return next((one.strip() for one in seen.content.split("\n") if words in one), "")


def processes():
    """Command lines of browsers that run in this root."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "--type=" in words or "--headless" in words:
            found.append(words[:120])
    return found


def ends(condition):
    """Whether it becomes true in the time that ending may take."""
    deadline = time.monotonic() + ENDING
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def without_browser(launcher):
    with Session("none", launcher, browser=False) as session:
        for name, seen in (("browse", session.browse("http://localhost/")), ("browse_interactive", session.do("noop()"))):
            expected = (ErrorObservation, "Browser functionality is not supported or disabled.")
            check(f"1: {name} without a browser", (type(seen), seen.content), expected)


def listing(session, site):
    hidden = sorted(name for name in os.listdir("/workspace") if name.startswith("."))
    check("downloads have a directory from the start", hidden, [".downloads"])
    port = site.ports["C"]
    site.refusing.close()
    seen = session.run(f"python3 -u -m http.server {port} > server.log 2>&1 &")
    check("2: a server starts", seen.exit_code, 0)
    wait_for(port)
    seen = session.browse(f"http://localhost:{port}")
    check("2: browse", (type(seen), seen.error, seen.last_browser_action_error), (BrowserOutputObservation, False, ""))
    check("2: its address and tabs", (seen.url, seen.open_pages_urls, seen.active_page_index),
          (f"http://localhost:{port}/", [f"http://localhost:{port}/"], 0))
    check("2: its action", seen.last_browser_action, f'goto("http://localhost:{port}")')
    holds("2: its text", "Directory listing for /" in seen.content and "server.log" in seen.content, seen.content)
    check("2: no objects unless asked for", (seen.axtree_object, seen.extra_element_properties, seen.dom_object), ({}, {}, {}))
    holds("2: a screenshot", seen.screenshot.startswith("data:image/png;base64,iVBOR"), seen.screenshot[:40])
    holds("2: marks on it", seen.set_of_marks.startswith("data:image/png;base64,iVBOR"), seen.set_of_marks[:40])
    holds("2: its file", re.fullmatch(r"/workspace/\.browser_screenshots/screenshot_\d{8}_\d{6}_\d{6}\.png", seen.screenshot_path or ""),
          seen.screenshot_path)
    holds("2: which is there", os.path.exists(seen.screenshot_path or "/nowhere"), seen.screenshot_path)
    seen = session.browse(f"http://localhost:{port}", return_axtree=True)
    holds("2: objects if asked for", seen.axtree_object.get("nodes") and seen.extra_element_properties, seen.axtree_object)
    seen = session.browse("/workspace/server.log")
    check("2: a path is no address", seen.error, True)


def wait_for(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit("the server of the listing does not start")


def pages(session, address):
    errors = []

    def go(actions, expected):
        seen = session.do(actions)
        errors.append(seen.last_browser_action_error)
        return seen.url, expected in seen.content

    one, two = f"{address}/plain.html", f"{address}/tables.html"
    check("3: to a page", go(f'goto("{one}")', "heading 'Rivers'"), (one, True))
    check("3: waiting", go("noop(500)", "[Action executed successfully.]"), (one, True))
    check("3: to another", go(f'goto("{two}")', "heading 'Lakes'"), (two, True))
    check("3: back", go("go_back()", "heading 'Rivers'"), (one, True))
    check("3: forward", go("go_forward()", "heading 'Lakes'"), (two, True))
    check("3: without an error", errors, [""] * 5)


def form(session, address):
    seen = session.do(f'goto("{address}/form.html")')
    name, search = bid(seen, "textbox 'Name'"), bid(seen, "searchbox 'Search'")
    seen = session.do(f'fill("{name}", "TestValue123")\nfill("{search}", "other words")')
    holds("4: two fields in one action", "TestValue123" in line(seen, f"[{name}]") and "other words" in line(seen, f"[{search}]"), seen.content)
    check("13: bids stay", (bid(seen, "textbox 'Name'"), bid(seen, "searchbox 'Search'")), (name, search))
    # Where the field has not the focus, the cursor would be at its beginning.
    session.do(f'fill("{name}", "TestValue123")')
    seen = session.do(f'press("{name}", "Backspace")')
    holds("10: a key", "TestValue12'" in line(seen, f"[{name}]"), line(seen, f"[{name}]"))
    seen = session.do(f'clear("{name}")')
    check("7: the old value is gone", (seen.error, "TestValue12" in seen.content), (False, False))
    seen = session.do("scroll(0, 300)")
    check("8: scroll", (seen.error, "scroll(0, 300)" in seen.last_browser_action), (False, True))
    check("9: hover", session.do(f'hover("{search}")').error, False)
    seen = session.do(f'focus("{search}")')
    check("9: focus", (seen.error, seen.focused_element_bid), (False, search))
    holds("9: said in the text", f"[Focused element bid: {search}]\n" in seen.content, seen.content[:200])
    seen = session.do("noop(100)\nscroll(0, 50)\nnoop(100)\nscroll(0, -50)")
    check("11: several calls", (seen.error, seen.last_browser_action), (False, "noop(100)\nscroll(0, 50)\nnoop(100)\nscroll(0, -50)"))
    check("13: and stay", (bid(seen, "textbox 'Name'"), bid(seen, "searchbox 'Search'")), (name, search))
    seen = session.do(f'goto("{address}/select.html")')
    fruit = bid(seen, "combobox 'Fruit'")
    seen = session.do(f'select_option("{fruit}", "p")')
    holds("5: an option", "Pear" in line(seen, f"[{fruit}]"), line(seen, f"[{fruit}]"))
    seen = session.do(f'goto("{address}/buttons.html")')
    button, closed = bid(seen, "Test Button"), bid(seen, "Disabled Button")
    seen = session.do(f'click("{button}")')
    holds("6: a button with a script", "Button clicked!" in seen.content, seen.content)
    began = time.monotonic()
    seen = session.do(f'click("{closed}")')
    holds("a disabled button is an error", seen.last_browser_action_error.startswith("TimeoutError: Locator.click: Timeout 500ms exceeded."),
          seen.last_browser_action_error)
    print(f"        after {time.monotonic() - began:.2f} s")
    seen = session.do('click("999")')
    check("an unknown bid is an error", (seen.error, seen.last_browser_action_error), (True, 'ValueError: Could not find element with bid "999"'))
    check("no call is an error", session.do("nothing to do").last_browser_action_error, "ValueError: Received an empty action.")
    check("an unknown function is an error", session.do("check('1')").last_browser_action_error, "NameError: Invalid action type 'check'.")


def files(session, address):
    session.runtime.write(FileWriteAction(path="/workspace/upload_test.txt", content="words"))
    seen = session.do(f'goto("{address}/upload.html")')
    field = bid(seen, "button 'File'")
    seen = session.do(f'upload_file("{field}", "/workspace/upload_test.txt")')
    holds("12: an upload", not seen.error and "one: upload_test.txt 6 text/plain words" in seen.content, seen.content)
    with open("/workspace/two.pdf", "wb") as file:
        file.write(web.document(2))
    with open("/workspace/dot.png", "wb") as file:
        file.write(web.picture())
    viewer = session.run("cat /tmp/oh-server-url").content.strip()
    seen = session.do(f'goto("{viewer}/view?path=/workspace/dot.png")')
    holds("14: a picture in the viewer", "RootWebArea 'File Viewer - dot.png'" in seen.content, seen.content)
    holds("14: the file of the screenshot is named", "[Screenshot saved to: /workspace/.browser_screenshots/screenshot_" in seen.content,
          seen.content[:300])
    seen = session.do(f'goto("{viewer}/view?path=/workspace/two.pdf")\nnoop(2000)')
    canvases = len(re.findall(r"^\s*(?:\[\w+\] )?Canvas\b", seen.content, re.MULTILINE))
    if "pdfjsLib is not defined" in seen.content and REFERENCE:
        skip("14: a document in the viewer: the reference's viewer takes a part of itself from the network")
    else:
        holds("14: a document in the viewer", "RootWebArea 'File Viewer - two.pdf'" in seen.content and canvases == 2, seen.content)
    session.do(f'goto("{address}/plain.html")')
    seen = session.do(f'goto("{address}/document.pdf")')
    check("15: an address of a document", (type(seen), getattr(seen, "file_path", "")), (FileDownloadObservation, "/workspace/file_1.pdf"))
    told = f'Execution of the previous action goto("{address}/document.pdf") resulted in a file download. ' \
        "The downloaded file is saved at location: /workspace/file_1.pdf"
    check("15: what is told", seen.content, told)
    kept = open("/workspace/file_1.pdf", "rb").read() if os.path.exists("/workspace/file_1.pdf") else None
    check("15: the file", kept, web.document())


def main():
    if REFERENCE:
        launcher = sys.executable
        os.makedirs(os.path.join(HOME, "site"))
        # Its processes then start this machine's Chromium.
        with open(os.path.join(HOME, "site", "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(f"import sys\nsys.path.append({HERE!r})\ntry:\n    import reference\nexcept ImportError:\n    pass\n")
        os.environ["PYTHONPATH"] = os.path.join(HOME, "site")
    else:
        launcher = os.path.join(HOME, "python")
        os.symlink(os.path.abspath(sys.argv[1]), launcher)
    with web.Site() as site:
        address = f"http://localhost:{site.ports['A']}"
        with Session("browser", launcher, browser=True) as session:
            # One part that cannot go on must not hide what the next one shows.
            parts = [(listing, site), (pages, address), (form, address), (files, address)]
            for part, given in parts:
                try:
                    part(session, given)
                except Exception as error:
                    check(f"{part.__name__} goes to its end", f"{type(error).__name__}: {error}", "the end")
            pid = session.pid
        holds("the client stops the server", ends(lambda: not os.path.exists(f"/proc/{pid}")), pid)
        holds("and the server its browser", ends(lambda: not processes()), processes())
    without_browser(launcher)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    # Threads of the client may outlive it.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
