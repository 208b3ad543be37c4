"""Looks into text files through a window of lines, and searches them.

One file is open at a time. All functions print what they find, and print what is wrong as a line that begins with
``ERROR:``.
"""

from __future__ import annotations

import io
import os
from typing import Iterator

__all__ = ["open_file", "goto_line", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file"]

WINDOW = 100
"""Lines that are shown at a time."""

MOST_FILES = 100
"""Files with matches that a search in a directory lists."""

NO_FILE = "No file open. Use the open_file function first."


class _Place:
    """The open file, and the line where the window is."""

    path: str | None = None
    line: int = 1


_place = _Place()


def _error(message: str) -> None:
    print(f"ERROR: {message}")


def _text_of(path: str) -> str:
    """The text of a file. Bytes that are no text are shown as replacement characters."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _count(text: str) -> int:
    """How many lines a text has; an empty one has one, too."""
    return max(1, text.count("\n") + (not text.endswith("\n")))


def _header(path: str, text: str) -> str:
    return f"[File: {os.path.abspath(path)} ({_count(text)} lines total)]\n"


def _span(total: int, line: int, window: int, centred: bool) -> tuple[int, int]:
    """The first and the last line that a window around, or from, a line shows."""
    half = max(1, window // 2)
    if centred:
        first, last = max(1, line - half), min(total, line + half)
    else:
        first, last = max(1, line), min(total, line + window)
    # At an end of the file the window keeps its size.
    if first == 1:
        last = min(total, first + window - 1)
    if last == total:
        first = max(1, last - window + 1)
    return first, last


def _view(text: str, line: int, window: int, centred: bool = True) -> str:
    """A window on the text, and what lies above and below. The window's line becomes the current one.

    All separators of lines that Unicode knows count here, and only here.
    """
    lines = text.splitlines(keepends=True) or [""]
    total = len(lines)
    _place.line = min(max(line, 1), total)
    first, last = _span(total, _place.line, window, centred)
    above, below = first - 1, total - last
    shown = [f"({above} more lines above)\n" if above else "(this is the beginning of the file)\n"]
    for number, content in enumerate(lines[first - 1 : last], first):
        shown.append(f"{number}|{content}" if content.endswith("\n") else f"{number}|{content}\n")
    shown.append(f"({below} more lines below)" if below else "(this is the end of the file)")
    return "".join(shown)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and 1 <= value <= most


def open_file(path: str, line_number: int | None = 1, context_lines: int | None = WINDOW) -> None:
    """Opens a text file, and prints the lines around one of them.

    Args:
        path: The file; a relative path begins in the current directory.
        line_number: The line in the middle of what is shown, from 1.
        context_lines: How many lines are shown, 100 at most.
    """
    if not os.path.isfile(path):
        _error(f"File {path} not found.")
        return
    text = _text_of(path)
    total = _count(text)
    _place.path = os.path.abspath(path)
    if not isinstance(line_number, int) or not _is_number(line_number, total):
        _error(f"Line number must be between 1 and {total}")
        return
    if context_lines is None or context_lines < 1:
        context_lines = WINDOW
    output = _header(path, text) + _view(text, line_number, min(context_lines, WINDOW))
    if output.endswith("more lines below)"):
        output += f"\n[Use `scroll_down` to view the next {WINDOW} lines of the file!]"
    print(output)


def _opened() -> str | None:
    """The open file, or nothing and a message."""
    if _place.path is None or not os.path.isfile(_place.path):
        _error(NO_FILE)
        return None
    return _place.path


def goto_line(line_number: int) -> None:
    """Moves the window to a line of the open file, and prints what it shows.

    Args:
        line_number: The line in the middle of what is shown, from 1.
    """
    path = _opened()
    if path is None:
        return
    text = _text_of(path)
    total = _count(text)
    if not _is_number(line_number, total):
        _error(f"Line number must be between 1 and {total}.")
        return
    print(_header(path, text) + _view(text, line_number, WINDOW))


def _scroll(lines_down: int) -> None:
    path = _opened()
    if path is None:
        return
    text = _text_of(path)
    line = min(max(_place.line + lines_down, 1), _count(text))
    print(_header(path, text) + _view(text, line, WINDOW, centred=False))


def scroll_down() -> None:
    """Moves the window down by 100 lines, and prints what it shows."""
    _scroll(WINDOW)


def scroll_up() -> None:
    """Moves the window up by 100 lines, and prints what it shows."""
    _scroll(-WINDOW)


def _files_below(directory: str) -> Iterator[tuple[str, str]]:
    """Directory and name of each file, in the order in which the system gives them."""
    for place, _, names in os.walk(directory):
        for name in names:
            yield place, name


def search_dir(search_term: str, dir_path: str = "./") -> None:
    """Prints the lines of all files in a directory that contain a text. Hidden files are left out.

    Args:
        search_term: The text; capital and small letters count.
        dir_path: The directory; all below it is searched, too.
    """
    if not os.path.isdir(dir_path):
        _error(f"Directory {dir_path} not found")
        return
    found = []
    files = set()
    for place, name in _files_below(dir_path):
        path = os.path.join(place, name)
        # What is no regular file may never end.
        if name.startswith(".") or not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8", errors="ignore") as file:
                for number, line in enumerate(file, 1):
                    if search_term in line:
                        files.add(path)
                        found.append(f"{path} (Line {number}): {line.strip()}")
        except OSError as error:
            _error(f"File {path} cannot be searched: {error.strerror}")
    if not found:
        print(f'No matches found for "{search_term}" in {dir_path}')
    elif len(files) > MOST_FILES:
        print(f'More than {len(files)} files matched for "{search_term}" in {dir_path}. Please narrow your search.')
    else:
        print(f'[Found {len(found)} matches for "{search_term}" in {dir_path}]')
        print("\n".join(found))
        print(f'[End of matches for "{search_term}" in {dir_path}]')


def search_file(search_term: str, file_path: str | None = None) -> None:
    """Prints the lines of a file that contain a text.

    Args:
        search_term: The text; capital and small letters count.
        file_path: The file; without it, the open one.
    """
    if file_path is None:
        file_path = _place.path
    if file_path is None:
        _error("No file specified or open. Use the open_file function first.")
        return
    if not os.path.isfile(file_path):
        _error(f"File {file_path} not found.")
        return
    lines = io.StringIO(_text_of(file_path))
    found = [f"Line {number}: {line.strip()}" for number, line in enumerate(lines, 1) if search_term in line]
    if not found:
        print(f'[No matches found for "{search_term}" in {file_path}]')
        return
    print(f'[Found {len(found)} matches for "{search_term}" in {file_path}]')
    print("\n".join(found))
    print(f'[End of matches for "{search_term}" in {file_path}]')


def find_file(file_name: str, dir_path: str = "./") -> None:
    """Prints the paths of the files in a directory whose name contains a text.

    Args:
        file_name: The text; capital and small letters count.
        dir_path: The directory; all below it is searched, too.
    """
    if not os.path.isdir(dir_path):
        _error(f"Directory {dir_path} not found")
        return
    found = [os.path.join(place, name) for place, name in _files_below(dir_path) if file_name in name]
    if not found:
        print(f'[No matches found for "{file_name}" in {dir_path}]')
        return
    print(f'[Found {len(found)} matches for "{file_name}" in {dir_path}]')
    print("\n".join(found))
    print(f'[End of matches for "{file_name}" in {dir_path}]')
