"""The `gloveport` program: where it is, and what it says."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _errors as errors

#: Names the program, before all other places.
VARIABLE = "GLOVEPORT_PROGRAM"
#: What its errors begin with.
NAMED = "gloveport: "
NAME = "gloveport.exe" if os.name == "nt" else "gloveport"


def find_program() -> str:
    """The path of the program: the variable `GLOVEPORT_PROGRAM`, the one that came with this package, or one in `PATH`.

    Raises `ProgramMissingError`, which says what to do.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise errors.ProgramMissingError(
                f"{VARIABLE} names `{named}`, which is no program", remedy="correct the variable, or unset it"
            )
        return named
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    for scheme in schemes:
        candidate = Path(sysconfig.get_path("scripts", scheme)) / NAME
        if os.access(candidate, os.X_OK):
            return str(candidate)
    # Takes long to import, and is seldom needed.
    import shutil

    found = shutil.which(NAME)
    if found is None:
        raise errors.ProgramMissingError(
            "there is no program `gloveport`",
            remedy=f"install a wheel that has it, put the program into PATH, or name it with {VARIABLE}",
        )
    return found


def printed(words: Sequence[str]) -> bytes:
    """What a command of the program prints. Raises `SessionError` with what it said if it fails."""
    import subprocess

    program = find_program()
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise unusable(program, error.strerror or str(error)) from error
    if done.returncode != 0:
        raise failed(done.stderr, program)
    return done.stdout


def ask(words: Sequence[str]) -> dict[str, object]:
    """The JSON object that a command prints."""
    return _object(printed(words))


def _object(told: bytes) -> dict[str, object]:
    found = objects(told)
    if not found:
        raise _foreign("")
    return found[0]


def ask_list(words: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON objects that a command prints as a list."""
    text = printed(words)
    value: object = None
    with contextlib.suppress(ValueError):
        value = json.loads(text)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _foreign(text.decode("utf-8", "replace"))
    return value


def first_lines(words: Sequence[str], most: int) -> list[dict[str, Any]]:
    """The first JSON objects that a command prints, one a line. It is not waited for more."""
    import subprocess
    import tempfile

    program = find_program()
    with tempfile.TemporaryFile() as told, contextlib.ExitStack() as stack:
        try:
            process = stack.enter_context(
                subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=told)
            )
        except OSError as error:
            raise unusable(program, error.strerror or str(error)) from error
        assert process.stdout is not None
        lines = [line.decode("utf-8", "replace") for line in itertools.islice(process.stdout, most)]
        if len(lines) == most:
            process.terminate()
        elif process.wait() != 0:
            told.seek(0)
            raise failed(told.read(), program)
    return [_object(line.encode()) for line in lines]


def objects(told: bytes) -> list[dict[str, object]]:
    """The JSON objects that were printed one behind the other."""
    text = told.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    found: list[dict[str, object]] = []
    at = 0
    while at < len(text):
        value: object = None
        with contextlib.suppress(ValueError):
            value, at = decoder.raw_decode(text, at)
        if not isinstance(value, dict):
            raise _foreign(text[at:])
        found.append(value)
        while text[at : at + 1].isspace():
            at += 1
    return found


def _foreign(text: str) -> errors.SessionError:
    return errors.SessionError(
        f"the program printed something else than JSON: {text[:200]!r}",
        remedy=f"check that it is gloveport's: {find_program()}",
    )


def unusable(program: str, why: str) -> errors.ProgramMissingError:
    """There is a program, which cannot be run."""
    return errors.ProgramMissingError(
        f"the program `{program}` cannot be run: {why}",
        remedy=f"install one for this machine, or name it with {VARIABLE}",
    )


def failed(errors_printed: bytes, program: str) -> errors.SessionError:
    """A command of the program failed."""
    text = said(errors_printed)
    if text:
        return errors.SessionError(text)
    return errors.SessionError(
        f"the program `{program}` failed, and did not say why", remedy="check that it is gloveport's"
    )


def said(errors_printed: bytes) -> str:
    """What the program told a person, without its name in front. Warnings of other things are left out."""
    text = errors_printed.decode("utf-8", "replace").strip()
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith(NAMED)), None)
    if begin is None:
        return text
    more = itertools.takewhile(lambda line: not line.lstrip().startswith("WARN "), lines[begin + 1 :])
    return "\n".join([lines[begin].removeprefix(NAMED), *more])
