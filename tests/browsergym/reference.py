"""The reference's own browser, unmodified but for which Chromium it starts and where downloads go.

Its browser runs in a process that begins by importing the main module again, so a main module that imports this one has
the change on both sides.
"""

import asyncio
import concurrent.futures
import os
import subprocess
import tempfile
import threading

os.environ.setdefault("LOG_LEVEL", "ERROR")

import playwright.sync_api  # noqa: E402

from steps import Died  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WITHOUT_VIEWER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chromium")
# With it, the reference waits as long as it really does, one second before each message to the browser.
SLOWLY = "BROWSERGYM_SLOWLY"
DOWNLOADS = "BROWSERGYM_DOWNLOADS"
# Seconds of a step, as the reference has it.
LIMIT = 120
STUCK = "Browser environment took too long to respond."

_launch = playwright.sync_api.BrowserType.launch


def launch(browser_type, **options):
    options.update(executable_path=WITHOUT_VIEWER, chromium_sandbox=False)
    if SLOWLY not in os.environ:
        options["slow_mo"] = 0
    if options.get("downloads_path"):
        options["downloads_path"] = os.environ.get(DOWNLOADS, options["downloads_path"])
    return _launch(browser_type, **options)


playwright.sync_api.BrowserType.launch = launch


class Reference:
    """One browser of the reference. `with` ends it. What it observed last is in `last`, before it is cut."""

    def __enter__(self):
        self.environment, self.last = None, None
        self.downloads = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        os.environ[DOWNLOADS] = self.downloads.name
        self.start()
        return self

    def __exit__(self, *_):
        self.environment.close()
        self.downloads.cleanup()

    def start(self):
        from openhands.runtime.browser.browser_env import BrowserEnv

        self.environment = BrowserEnv()

    @property
    def pid(self):
        return self.environment.process.pid

    def perform(self, action, args):
        """The fields of the observation of an action as it goes over the wire."""
        from openhands.events.action import BrowseInteractiveAction, BrowseURLAction
        from openhands.runtime.browser.utils import browse

        kind = {"browse": BrowseURLAction, "browse_interactive": BrowseInteractiveAction}[action]
        self.last = None
        seen = asyncio.run(browse(kind(**args), self))
        if not self.environment.process.is_alive() or seen.last_browser_action_error == STUCK:
            # What it cannot observe, it dies of, or it waits for ever.
            self.environment.close()
            self.start()
            raise Died(seen.last_browser_action_error)
        return {"content": seen.content, "extras": seen.__dict__}

    def step(self, action):
        """As the reference's own, but without the wait for a browser that has ended."""
        environment = self.environment
        done = concurrent.futures.Future()

        def wait():
            try:
                done.set_result(environment.step(action, LIMIT))
            except Exception as error:
                done.set_exception(error)

        threading.Thread(target=wait, daemon=True).start()
        while not done.done():
            concurrent.futures.wait([done], timeout=0.2)
            if not done.done() and not environment.process.is_alive():
                raise RuntimeError("the reference's browser has ended")
        self.last = done.result()
        return self.last


def versions():
    """What the recorded observations depend on."""
    from importlib.metadata import version

    names = {"openhands": "openhands-ai", "browsergym": "browsergym-core", "playwright": "playwright", "html2text": "html2text"}
    return {**{key: version(name) for key, name in names.items()}, "chromium": chromium_version()}


def chromium_version():
    """As 1.2.3.4, or None if there is none."""
    try:
        said = subprocess.run([CHROMIUM, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        return None
    return next((word for word in said.split() if word[0].isdigit()), None)
