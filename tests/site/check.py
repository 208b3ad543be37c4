"""Checks a site that scripts/site has built; see `run`."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT, SITE, SCRATCH = (Path(word) for word in sys.argv[1:])
#: Attributes by which a page loads something, of the elements that do.
LOADS = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "video": ("src", "poster"),
}
#: How a style sheet loads something.
STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
#: A document of the repository, as a page of the site.
DOCUMENTS = ("*.md", "docs/**/*.md", "clients/*/README.md")
#: Seconds that Chromium may take for a page.
LIMIT = 60


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.styles: list[str] = []
        self._is_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._is_style = tag == "style"
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)
            elif name in LOADS.get(tag, ()) and value:
                self.loads.append(value)
            elif name == "style" and value:
                self.styles.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._is_style = self._is_style and tag != "style"

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.styles.append(data)


PAGES = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(SITE.rglob("*.html"))}
#: Pages that have no content of their own: an index of names, and the search.
LISTS = {SITE / "genindex.html", SITE / "search.html", SITE / "py-modindex.html"}


def is_external(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def wrong_links() -> list[str]:
    """Links and loads of pages that lead to no file, or to no anchor of it."""
    wrong = []
    for path, page in PAGES.items():
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(SITE)}: {url}: no such file")
            elif parts.fragment and target in PAGES and unquote(parts.fragment) not in PAGES[target].anchors:
                wrong.append(f"{path.relative_to(SITE)}: {url}: no such anchor")
    return wrong


def from_the_network() -> list[str]:
    """What pages, style sheets and pictures load that is no file of the site."""
    found = []
    for path, page in PAGES.items():
        styles = [url for style in page.styles for url in STYLE.findall(style)]
        found += [f"{path.relative_to(SITE)}: {url}" for url in page.loads + styles if is_external(url)]
    for path in [*SITE.rglob("*.css"), *SITE.rglob("*.svg")]:
        urls = STYLE.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(SITE)}: {url}" for url in urls if is_external(url)]
    return found


def missing_documents() -> list[str]:
    """Documents of the repository without a page."""
    names = {path.relative_to(ROOT) for pattern in DOCUMENTS for path in ROOT.glob(pattern)}
    pages = {name: "index.html" if str(name) == "README.md" else name.with_suffix(".html") for name in names}
    return sorted(str(name) for name, page in pages.items() if SITE / page not in PAGES)


def missing_pictures() -> list[str]:
    """Pictures of documents that no page shows."""
    shown = {Path(urlsplit(url).path).name for page in PAGES.values() for url in page.loads}
    texts = [path.read_text(encoding="utf-8") for pattern in DOCUMENTS for path in ROOT.glob(pattern)]
    named = {Path(name).name for text in texts for name in re.findall(r"^!\[[^\]]*\]\(([^):]+)\)", text, re.MULTILINE)}
    return sorted(named - shown) if named else ["no document has a picture"]


def python_names() -> list[str]:
    tree = ast.parse((ROOT / "clients/python/src/gloveport/__init__.py").read_text(encoding="utf-8"))
    (names,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    names = ast.literal_eval(names)
    assert len(names) > 50, names
    return names


def typescript_names() -> list[str]:
    """What index.ts exports, its own names and those of the files that it exports whole."""
    names, files = set(), ["index.ts"]
    while files:
        path = ROOT / "clients/typescript/src" / files.pop()
        text = path.read_text(encoding="utf-8")
        for listed in re.findall(r"^export (?:type )?\{([^}]*)\}", text, re.MULTILINE):
            names |= {name.strip().removeprefix("type ") for name in listed.split(",") if name.strip()}
        own = r"^export (?:abstract )?(?:class|interface|type|const|function) (\w+)"
        names |= set(re.findall(own, text, re.MULTILINE))
        files += [f"{name}.ts" for name in re.findall(r'^export \* from "\./([\w/]+)\.js"', text, re.MULTILINE)]
    assert len(names) > 30, names
    return sorted(names)


def missing_in_python() -> list[str]:
    anchors = {anchor for path, page in PAGES.items() if path.parent == SITE / "api/python" for anchor in page.anchors}
    return [name for name in python_names() if f"gloveport.{name}" not in anchors]


def missing_in_typescript() -> list[str]:
    pages = {path.stem for path in PAGES if path.parent.parent == SITE / "api/typescript"}
    return [name for name in typescript_names() if name not in pages]


def wrong_versions() -> list[str]:
    """Versions of docs/first-steps.md that no file pins that the tests install from."""
    pins = "\n".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name in (
            "scripts/setup",
            "tests/e2b/package.json",
            "tests/e2b/requirements.txt",
            "tests/frameworks/requirements.txt",
            "tests/frameworks/verifiers.txt",
            "tests/sdk/requirements.txt",
            "tests/swerex/agent.txt",
            "tests/swerex/requirements.txt",
        )
    )
    pins += f"\nopenhands-ai=={re.search(r'^reference_version=(.*)$', pins, re.MULTILINE)[1]}"
    pins += "".join(f"\nopenhands-sdk=={path.stem}" for path in (ROOT / "tests/sdk/older").glob("*.txt"))
    wrong, seen = [], 0
    for row in re.findall(r"^\| \[\d.*$", (ROOT / "docs/first-steps.md").read_text(encoding="utf-8"), re.MULTILINE):
        for package, versions in re.findall(r"`([\w@/-]+)` ((?:\d[\d.]*(?:, )?)+)", row.split("|")[3]):
            for version in re.findall(r"\d[\d.]*", versions):
                seen += 1
                name = re.escape(package).replace("\\-", "[-_]")
                if not re.search(rf'(?<![\w/@-]){name}(==|@|": "){re.escape(version)}(?![\d.])', pins):
                    wrong.append(f"{package} {version}")
    return wrong if seen > 10 else [f"only {seen} versions were found"]


def not_searched() -> list[str]:
    """Words of documents and of both APIs that the search does not know."""
    index = (SITE / "searchindex.js").read_text(encoding="utf-8").lower()
    words = ("microag", "gloveportdeploy", "swerex", "notisolatedwarn", "stillrunningerror")
    return [word for word in words if word not in index]


def chromium(*words: str) -> bytes:
    """Runs Chromium, which reaches nothing: its proxy is a port where nobody listens."""
    command = [
        shutil.which("chromium") or "",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--proxy-server=http://127.0.0.1:9",
        f"--user-data-dir={SCRATCH / 'chromium'}",
        "--hide-scrollbars",
        "--window-size=1400,1000",
        "--virtual-time-budget=10000",
        *words,
    ]
    environment = os.environ | {"HOME": str(SCRATCH)}
    return subprocess.run(command, capture_output=True, timeout=LIMIT, check=True, env=environment).stdout


def lines_of(picture: bytes) -> int:
    """How many different lines of points a PNG picture has. A page that shows nothing has a few at most."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n", picture[:8]
    width, height = int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])
    data, at = b"", 8
    while at < len(picture):
        size = int.from_bytes(picture[at : at + 4])
        if picture[at + 4 : at + 8] == b"IDAT":
            data += picture[at + 8 : at + 8 + size]
        at += size + 12
    points = zlib.decompress(data)
    length = len(points) // height
    assert (length - 1) % width == 0, (length, width)
    return len({points[line * length : (line + 1) * length] for line in range(height)})


def blank_pages() -> list[str]:
    picture = SCRATCH / "picture.png"
    blank = []
    for name in ("index.html", "docs/first-steps.html"):
        picture.unlink(missing_ok=True)
        chromium(f"--screenshot={picture}", f"file://{SITE / name}")
        if (lines := lines_of(picture.read_bytes())) < 200:
            blank.append(f"{name}: {lines} different lines")
    return blank


def not_found() -> list[str]:
    """A search, as a reader does it, from a file."""
    wrong = []
    for words, page in (
        ("swerex", "docs/wires.html"),
        ("AsyncSandbox", "api/python/await.html"),
        ("StillRunningError", "api/typescript/classes/StillRunningError.html"),
    ):
        text = chromium("--dump-dom", f"file://{SITE}/search.html?q={words}").decode()
        # The table of contents leads there, too.
        results = text[text.index('id="search-results"') :]
        if not any(page in link for link in Page(results).links):
            wrong.append(f"{words} does not lead to {page}")
    return wrong


CHECKS = (
    ("each internal link leads to a file and an anchor of it", wrong_links),
    ("nothing is loaded from the network", from_the_network),
    ("each document has a page", missing_documents),
    ("each picture of a document is shown", missing_pictures),
    ("each public name of the Python client is described", missing_in_python),
    ("each public name of the TypeScript client is described", missing_in_typescript),
    ("versions of the first steps are those that the tests install", wrong_versions),
    ("the search knows words of documents and of both APIs", not_searched),
)
LOOKS = (
    ("Chromium shows pages without a network", blank_pages),
    ("a search in Chromium, from a file, finds its pages", not_found),
)


def main() -> int:
    passed, failed, skipped = 1, 0, 0
    print("passed  site: it is built without warnings")
    looks = LOOKS if shutil.which("chromium") else ()
    for what, check in CHECKS + looks:
        try:
            wrong = check()
        except (OSError, subprocess.SubprocessError, AssertionError) as error:
            wrong = [f"{type(error).__name__}: {error}"]
        print(f"{'FAILED' if wrong else 'passed'}  site: {what}")
        print("".join(f"    {line}\n" for line in wrong[:20]), end="")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    if not looks:
        skipped = len(LOOKS)
        print("skipped  site: what a browser shows: there is no Chromium")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
