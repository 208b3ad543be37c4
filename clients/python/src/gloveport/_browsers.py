"""Operations with the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from ._core import Op, Request, decoded, perform
from ._errors import BrowserFailedError

if TYPE_CHECKING:
    from . import _wire as wire


@dataclass(frozen=True)
class Element:
    """An element of a page: exactly one of `bid`, `text`, `role` and `selector`."""

    #: Its id in the tree of the page, there in brackets.
    bid: str | None = None
    #: Text that it shows, or its label: of those that contain it the first that can be seen.
    text: str | None = None
    #: Its role for assistive technology, such as `button` or `textbox`.
    role: str | None = None
    #: With `role`: a part of its name.
    name: str | None = None
    #: A selector of CSS.
    selector: str | None = None


@dataclass(frozen=True)
class PageInfo:
    """A page, or tab."""

    id: str
    url: str
    title: str
    active: bool


@dataclass(frozen=True)
class Page:
    """What the active page is like."""

    url: str
    title: str
    #: The tree of its elements as text, with their ids in brackets.
    tree: str
    pages: tuple[PageInfo, ...]
    #: The id of the element that has the focus.
    focused: str | None = None
    #: Questions of the page that were answered meanwhile.
    dialogs: tuple[str, ...] = ()
    #: Files that were downloaded meanwhile, as paths in the sandbox.
    downloads: tuple[str, ...] = ()
    #: Why what was asked for failed.
    error: str | None = None

    def check(self) -> Page:
        """This page, if what was asked for was done; raises `BrowserFailedError` otherwise."""
        if self.error is not None:
            raise BrowserFailedError(self.error)
        return self


@dataclass(frozen=True)
class BrowserStatus:
    """How a browser stands."""

    state: Literal["idle", "starting", "ready", "failed", "closed"]
    version: str | None = None
    pid: int | None = None
    #: Whether Chromium's own sandbox keeps pages apart from the rest, once it is up.
    sandboxed: bool | None = None
    pages: tuple[PageInfo, ...] = ()
    #: Why it cannot be used, and what can be done about it.
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class ConsoleEntry:
    """A line of a page's console."""

    #: `log`, `info`, `warning`, `error`, `exception` and others.
    level: str
    text: str
    url: str


@dataclass(frozen=True)
class NetworkEntry:
    """Something that a page fetched."""

    method: str
    url: str
    #: What it is for: `Document`, `Script`, `XHR` and others.
    kind: str
    status: int | None = None
    error: str | None = None


def target(element: str | Element) -> wire.ElementTarget:
    """An element as the server takes it; a text means the element that shows it."""
    named = Element(text=element) if isinstance(element, str) else element
    told: wire.ElementTarget = {}
    if named.bid is not None:
        told["bid"] = named.bid
    if named.text is not None:
        told["text"] = named.text
    if named.role is not None:
        told["role"] = named.role
    if named.name is not None:
        told["name"] = named.name
    if named.selector is not None:
        told["selector"] = named.selector
    return told


def status() -> Op[BrowserStatus]:
    """How the browser stands."""
    response = yield from perform(Request("GET", "/v1/browser", repeatable=True))
    return _status(cast("wire.BrowserStatus", decoded(response)))


def start() -> Op[BrowserStatus]:
    """Starts the browser."""
    response = yield from perform(Request("POST", "/v1/browser/start", repeatable=True))
    return _status(cast("wire.BrowserStatus", decoded(response)))


def _status(told: wire.BrowserStatus) -> BrowserStatus:
    return BrowserStatus(
        state=told["state"],
        version=told.get("version"),
        pid=told.get("pid"),
        sandboxed=told.get("sandboxed"),
        pages=tuple(map(_info, told.get("pages", []))),
        reason=told.get("reason") or "",
        remedy=told.get("remedy") or "",
    )


def _info(told: wire.PageInfo) -> PageInfo:
    return PageInfo(told["id"], told["url"], told.get("title", ""), told["active"])


def _page(told: wire.PageView) -> Page:
    return Page(
        url=told["url"],
        title=told["title"],
        tree=told["tree"],
        pages=tuple(map(_info, told["pages"])),
        focused=told.get("focused"),
        dialogs=tuple(told.get("dialogs", [])),
        downloads=tuple(told.get("downloads", [])),
        error=told.get("error"),
    )


def page() -> Op[Page]:
    """What the active page is like."""
    response = yield from perform(Request("GET", "/v1/browser/page", repeatable=True))
    return _page(cast("wire.PageView", decoded(response)))


def navigate(url: str, new_page: bool, wait: wire.NavigateWait) -> Op[Page]:
    """Leads the active page somewhere, or opens another one."""
    body: wire.NavigateRequest = {"url": url, "new_page": new_page, "wait": wait}
    response = yield from perform(Request("POST", "/v1/browser/navigate", json=body))
    return _page(cast("wire.PageView", decoded(response)))


def act(what: wire.BrowserAct) -> Op[Page]:
    """Does one thing in the active page. It is sent only once."""
    response = yield from perform(Request("POST", "/v1/browser/act", json=what))
    return _page(cast("wire.PageView", decoded(response)))


def click(element: str | Element, button: str, double: bool) -> Op[Page]:
    """Clicks on an element."""
    return act({"action": "click", "target": target(element), "button": button, "double": double})


def fill(element: str | Element, text: str, submit: bool) -> Op[Page]:
    """Puts a text in the place of what a field contains."""
    return act({"action": "fill", "target": target(element), "text": text, "submit": submit})


def press(keys: str, element: str | Element | None) -> Op[Page]:
    """Presses keys."""
    return act({"action": "press", "keys": keys, "target": None if element is None else target(element)})


def select(element: str | Element, options: Sequence[str]) -> Op[Page]:
    """Chooses options of a list."""
    return act({"action": "select", "target": target(element), "options": list(options)})


def upload(element: str | Element, files: Sequence[str]) -> Op[Page]:
    """Chooses files for a field."""
    return act({"action": "upload", "target": target(element), "files": list(files)})


def markdown() -> Op[str]:
    """The active page as text."""
    response = yield from perform(Request("GET", "/v1/browser/markdown", repeatable=True))
    return response.body.decode("utf-8", "replace")


def screenshot(element: str | Element | None, full_page: bool) -> Op[bytes]:
    """A picture of the active page."""
    body: wire.ScreenshotRequest = {"full_page": full_page}
    if element is not None:
        body["target"] = target(element)
    return (yield from perform(Request("POST", "/v1/browser/screenshot", json=body, repeatable=True))).body


def pdf(background: bool, landscape: bool, pages: str | None, scale: float | None) -> Op[bytes]:
    """Prints the active page."""
    body: wire.PdfRequest = {"background": background, "landscape": landscape, "pages": pages, "scale": scale}
    return (yield from perform(Request("POST", "/v1/browser/pdf", json=body, repeatable=True))).body


def console(since: int) -> Op[tuple[list[ConsoleEntry], int]]:
    """What pages wrote to their consoles."""
    query = {"since": str(since)}
    response = yield from perform(Request("GET", "/v1/browser/console", query, repeatable=True))
    told = cast("wire.BrowserConsole", decoded(response))
    return [ConsoleEntry(each["level"], each["text"], each["url"]) for each in told["entries"]], told["next"]


def network(since: int) -> Op[tuple[list[NetworkEntry], int]]:
    """What pages fetched."""
    query = {"since": str(since)}
    response = yield from perform(Request("GET", "/v1/browser/network", query, repeatable=True))
    told = cast("wire.BrowserNetwork", decoded(response))
    entries = [
        NetworkEntry(each["method"], each["url"], each["kind"], each.get("status"), each.get("error"))
        for each in told["entries"]
    ]
    return entries, told["next"]


def har() -> Op[Mapping[str, object]]:
    """What the last action fetched."""
    response = yield from perform(Request("GET", "/v1/browser/har", repeatable=True))
    return cast("Mapping[str, object]", decoded(response))


def storage() -> Op[Mapping[str, object]]:
    """Cookies and local storage."""
    response = yield from perform(Request("GET", "/v1/browser/storage", repeatable=True))
    return cast("Mapping[str, object]", decoded(response))


def set_storage(state: Mapping[str, object]) -> Op[None]:
    """Sets cookies and local storage."""
    yield from perform(Request("PUT", "/v1/browser/storage", json=dict(state), repeatable=True))
