"""Lays out what the site is made of: the documents, their pictures, and a page for each part of the Python client.

usage: stage.py DIRECTORY

Documents stay where they are in the repository, so that the links between them stay, too. Three kinds of links are others:
to README.md, which is the first page; to directories, which are those of their README.md, or words where they have none;
and to other files, which are copied. The order of the pages is that of the tables in docs/README.md: a document that is in
none of them is a warning of Sphinx.
"""

import dataclasses
import inspect
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "docs/**/*.md", "clients/*/README.md")
FENCE = re.compile(r"^(```.*?^```[ \t]*)$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
#: What the pages of the Python client begin with.
PYTHON = {
    "sandboxes": ("Sandboxes", "What programs without an event loop use."),
    "await": ("With await", "The same for programs with an event loop."),
    "values": ("Values", "What calls take and return."),
    "errors": ("Errors", "What calls raise. All of it is below `GloveportError`."),
}


def linked(text: str, directory: Path, target: Path) -> str:
    """A document with its links as the site has them."""

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found[1], (directory / found[2]).resolve(), found[3] or ""
        if not path.is_relative_to(ROOT):
            return found[0]
        if path.is_dir() and not (path / "README.md").is_file():
            return words
        if path.is_dir():
            path /= "README.md"
        elif path.is_file() and path.suffix != ".md":
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if path == ROOT / "README.md":
            path = ROOT / "index.md"
        return f"[{words}]({os.path.relpath(path, directory)}{anchor})"

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def listed(text: str, directory: Path) -> list[tuple[str, list[str]]]:
    """The headings of a document, each with the pages that its tables link to."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if line.startswith("## "):
            sections.append((line[3:], []))
        elif line.startswith("|"):
            for found in LINK.finditer(line):
                path = (directory / found[2]).resolve().relative_to(ROOT)
                if path.suffix == ".md":
                    sections[-1][1].append(str(path.with_suffix("")))
    return [section for section in sections if section[1]]


def contents(caption: str, pages: list[str]) -> str:
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```", ""]
    return "\n".join(lines)


def documents(target: Path) -> None:
    texts: dict[str, str] = {}
    for path in sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}):
        texts[str(path.relative_to(ROOT))] = linked(path.read_text(encoding="utf-8"), path.parent, target)
    texts["index.md"] = texts.pop("README.md")
    # A page is in the table of contents once, where it is listed first. Those of a directory are below its own page.
    texts["index.md"] += contents("", ["docs/README"])
    seen: set[str] = set()
    for name in ("docs/README.md", "docs/spec/README.md"):
        for caption, pages in listed(texts[name], (ROOT / name).parent):
            first = [page for page in dict.fromkeys(pages) if page not in seen and page != "index"]
            seen.update(first)
            if name == "docs/README.md":
                texts["index.md"] += contents(caption, ["/" + page for page in first])
            else:
                texts[name] += contents("", ["/" + page for page in first])
    texts["index.md"] += contents("API of the clients", ["api/python/index", "api/typescript/index"])
    for name, text in texts.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


def page_of(name: str, value: object) -> str:
    if name.startswith("Async"):
        return "await"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "errors"
    return "values" if dataclasses.is_dataclass(value) else "sandboxes"


def described(name: str, value: object, page: str) -> list[str]:
    """The directive for a public name of the Python client."""
    if not inspect.isclass(value):
        return [f".. autofunction:: gloveport.{name}", ""]
    lines = [f".. autoclass:: gloveport.{name}", "   :members:"]
    if page == "values":
        lines.append("   :undoc-members:")
    bases = [base for base in value.__mro__ if not base.__module__.startswith("gloveport")]
    if page != "errors":
        # What comes from bases of others is described there.
        lines.append(f"   :inherited-members: {bases[0].__name__}")
    return [*lines, ""]


def python(target: Path) -> None:
    sys.path.insert(0, str(ROOT / "clients/python/src"))
    import gloveport

    directory = target / "api/python"
    directory.mkdir(parents=True)
    names: dict[str, list[str]] = {page: [] for page in PYTHON}
    for name in gloveport.__all__:
        names[page_of(name, getattr(gloveport, name))].append(name)
    # What a program begins with comes first.
    names["sandboxes"].sort(key=lambda name: (name != "Sandbox", name))
    names["await"].sort(key=lambda name: (name != "AsyncSandbox", name))
    names["errors"].sort(key=lambda name: (name != "GloveportError", name))
    index = ["Python", "======", "", "What `from gloveport import …` gives.", ""]
    index += [".. toctree::", "   :hidden:", "", *(f"   {page}" for page in PYTHON), ""]
    for page, (title, words) in PYTHON.items():
        index += [title, "-" * len(title), "", words, "", ".. autosummary::", "   :nosignatures:", ""]
        index += [*(f"   ~gloveport.{name}" for name in names[page]), ""]
        lines = [title, "=" * len(title), "", words, "", ".. currentmodule:: gloveport", ""]
        for name in names[page]:
            lines += [name, "-" * len(name), "", *described(name, getattr(gloveport, name), page)]
        (directory / f"{page}.rst").write_text("\n".join(lines), encoding="utf-8")
    (directory / "index.rst").write_text("\n".join(index), encoding="utf-8")


def typescript(target: Path) -> None:
    """Says of the pages that TypeDoc has written that their first page leads to them, and not the table of contents."""
    for path in (target / "api/typescript").glob("*/*.md"):
        path.write_text("---\norphan: true\n---\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: stage.py DIRECTORY")
    place = Path(sys.argv[1])
    typescript(place)
    python(place)
    documents(place)
