"""The browser of a sandbox, for programs with an event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _browsers as browsers
from ._aio_path import AsyncPlace
from ._browsers import BrowserStatus, ConsoleEntry, Element, NetworkEntry, Page


class AsyncBrowser:
    """The same as `Browser`, with `await`."""

    def __init__(self, place: AsyncPlace) -> None:
        self._place = place

    async def status(self) -> BrowserStatus:
        """How it stands. This does not start it."""
        return await self._place._transport.run(browsers.status())

    async def start(self) -> BrowserStatus:
        """Starts it, as its first use does. Twice is not an error."""
        return await self._place._transport.run(browsers.start())

    async def navigate(
        self, url: str, *, new_page: bool = False, wait: Literal["load", "parsed", "answer"] = "load"
    ) -> Page:
        """Leads the active page to an address, or opens a page of its own; see `Browser.navigate`."""
        return await self._place._transport.run(browsers.navigate(url, new_page, wait))

    async def page(self) -> Page:
        """What the active page is like."""
        return await self._place._transport.run(browsers.page())

    async def markdown(self) -> str:
        """The active page as text."""
        return await self._place._transport.run(browsers.markdown())

    async def screenshot(self, element: str | Element | None = None, *, full_page: bool = False) -> bytes:
        """A picture, as PNG: of what is in view, of an element, or of the whole page."""
        return await self._place._transport.run(browsers.screenshot(element, full_page))

    async def pdf(
        self,
        *,
        background: bool = False,
        landscape: bool = False,
        pages: str | None = None,
        scale: float | None = None,
    ) -> bytes:
        """The active page as PDF: with backgrounds, broad, some pages such as `1-3, 5`, or scaled from 0.1 to 2."""
        return await self._place._transport.run(browsers.pdf(background, landscape, pages, scale))

    async def click(
        self,
        element: str | Element,
        *,
        button: Literal["left", "middle", "right"] = "left",
        double: bool = False,
    ) -> Page:
        """Clicks on an element: one that shows a text, or an `Element`."""
        return await self._place._transport.run(browsers.click(element, button, double))

    async def fill(self, element: str | Element, text: str, *, submit: bool = False) -> Page:
        """Puts a text in the place of what a field contains; with `submit` it presses Enter then."""
        return await self._place._transport.run(browsers.fill(element, text, submit))

    async def type(self, text: str) -> Page:
        """Types a text key by key where the focus is."""
        return await self._place._transport.run(browsers.act({"action": "type", "text": text}))

    async def press(self, keys: str, element: str | Element | None = None) -> Page:
        """Presses keys such as `Control+a`, in an element or where the focus is."""
        return await self._place._transport.run(browsers.press(keys, element))

    async def select(self, element: str | Element, options: Sequence[str]) -> Page:
        """Chooses options of a list, by value or label."""
        return await self._place._transport.run(browsers.select(element, options))

    async def hover(self, element: str | Element) -> Page:
        """Moves the mouse to an element."""
        return await self._place._transport.run(browsers.act({"action": "hover", "target": browsers.target(element)}))

    async def scroll(self, x: float = 0, y: float = 0) -> Page:
        """Turns the wheel: pixels to the right, and down."""
        return await self._place._transport.run(browsers.act({"action": "scroll", "x": x, "y": y}))

    async def upload(self, element: str | Element, files: Sequence[str]) -> Page:
        """Chooses files for a field, by their paths in the sandbox."""
        return await self._place._transport.run(browsers.upload(element, files))

    async def activate_page(self, id: str) -> Page:
        """Makes a page the active one, by its id in `pages`."""
        return await self._place._transport.run(browsers.act({"action": "activate-page", "id": id}))

    async def close_page(self, id: str) -> Page:
        """Closes a page."""
        return await self._place._transport.run(browsers.act({"action": "close-page", "id": id}))

    async def console(self, since: int = 0) -> tuple[list[ConsoleEntry], int]:
        """What pages wrote to their consoles, and the `since` of the next question."""
        return await self._place._transport.run(browsers.console(since))

    async def network(self, since: int = 0) -> tuple[list[NetworkEntry], int]:
        """What pages fetched, and the `since` of the next question."""
        return await self._place._transport.run(browsers.network(since))

    async def har(self) -> Mapping[str, object]:
        """What the last action fetched, as an HTTP archive without the values of secret headers."""
        return await self._place._transport.run(browsers.har())

    async def storage(self) -> Mapping[str, object]:
        """Cookies and local storage, in the form that Playwright calls a storage state. They are secrets."""
        return await self._place._transport.run(browsers.storage())

    async def set_storage(self, state: Mapping[str, object]) -> None:
        """Sets cookies and local storage to what `storage` returned, so that a login need not be repeated."""
        await self._place._transport.run(browsers.set_storage(state))
