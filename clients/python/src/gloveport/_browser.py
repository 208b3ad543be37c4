"""The browser of a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _browsers as browsers
from ._browsers import BrowserStatus, ConsoleEntry, Element, NetworkEntry, Page
from ._path import Place


class Browser:
    """The browser of a sandbox, which starts with its first use and needs Chromium in the sandbox.

    It has pages, one of which is the active one. Each method that acts returns what that page is like then.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def status(self) -> BrowserStatus:
        """How it stands. This does not start it."""
        return self._place._transport.run(browsers.status())

    def start(self) -> BrowserStatus:
        """Starts it, as its first use does. Twice is not an error."""
        return self._place._transport.run(browsers.start())

    def navigate(self, url: str, *, new_page: bool = False, wait: Literal["load", "parsed", "answer"] = "load") -> Page:
        """Leads the active page to an address with a scheme, or `back`, `forward` or `reload`, or opens another page.

        Like all that acts it returns the page as it is then, whose `check()` raises what failed.
        """
        return self._place._transport.run(browsers.navigate(url, new_page, wait))

    def page(self) -> Page:
        """What the active page is like."""
        return self._place._transport.run(browsers.page())

    def markdown(self) -> str:
        """The active page as text."""
        return self._place._transport.run(browsers.markdown())

    def screenshot(self, element: str | Element | None = None, *, full_page: bool = False) -> bytes:
        """A picture, as PNG: of what is in view, of an element, or of the whole page."""
        return self._place._transport.run(browsers.screenshot(element, full_page))

    def pdf(
        self,
        *,
        background: bool = False,
        landscape: bool = False,
        pages: str | None = None,
        scale: float | None = None,
    ) -> bytes:
        """The active page as PDF: with backgrounds, broad, some pages such as `1-3, 5`, or scaled from 0.1 to 2."""
        return self._place._transport.run(browsers.pdf(background, landscape, pages, scale))

    def click(
        self,
        element: str | Element,
        *,
        button: Literal["left", "middle", "right"] = "left",
        double: bool = False,
    ) -> Page:
        """Clicks on an element: one that shows a text, or an `Element`."""
        return self._place._transport.run(browsers.click(element, button, double))

    def fill(self, element: str | Element, text: str, *, submit: bool = False) -> Page:
        """Puts a text in the place of what a field contains; with `submit` it presses Enter then."""
        return self._place._transport.run(browsers.fill(element, text, submit))

    def type(self, text: str) -> Page:
        """Types a text key by key where the focus is."""
        return self._place._transport.run(browsers.act({"action": "type", "text": text}))

    def press(self, keys: str, element: str | Element | None = None) -> Page:
        """Presses keys such as `Control+a`, in an element or where the focus is."""
        return self._place._transport.run(browsers.press(keys, element))

    def select(self, element: str | Element, options: Sequence[str]) -> Page:
        """Chooses options of a list, by value or label."""
        return self._place._transport.run(browsers.select(element, options))

    def hover(self, element: str | Element) -> Page:
        """Moves the mouse to an element."""
        return self._place._transport.run(browsers.act({"action": "hover", "target": browsers.target(element)}))

    def scroll(self, x: float = 0, y: float = 0) -> Page:
        """Turns the wheel: pixels to the right, and down."""
        return self._place._transport.run(browsers.act({"action": "scroll", "x": x, "y": y}))

    def upload(self, element: str | Element, files: Sequence[str]) -> Page:
        """Chooses files for a field, by their paths in the sandbox."""
        return self._place._transport.run(browsers.upload(element, files))

    def activate_page(self, id: str) -> Page:
        """Makes a page the active one, by its id in `pages`."""
        return self._place._transport.run(browsers.act({"action": "activate-page", "id": id}))

    def close_page(self, id: str) -> Page:
        """Closes a page."""
        return self._place._transport.run(browsers.act({"action": "close-page", "id": id}))

    def console(self, since: int = 0) -> tuple[list[ConsoleEntry], int]:
        """What pages wrote to their consoles, and the `since` of the next question."""
        return self._place._transport.run(browsers.console(since))

    def network(self, since: int = 0) -> tuple[list[NetworkEntry], int]:
        """What pages fetched, and the `since` of the next question."""
        return self._place._transport.run(browsers.network(since))

    def har(self) -> Mapping[str, object]:
        """What the last action fetched, as an HTTP archive without the values of secret headers."""
        return self._place._transport.run(browsers.har())

    def storage(self) -> Mapping[str, object]:
        """Cookies and local storage, in the form that Playwright calls a storage state. They are secrets."""
        return self._place._transport.run(browsers.storage())

    def set_storage(self, state: Mapping[str, object]) -> None:
        """Sets cookies and local storage to what `storage` returned, so that a login need not be repeated."""
        self._place._transport.run(browsers.set_storage(state))
