"""The `gloveport` program: where it is, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from . import _errors as errors

#: Names the program, before all other places.
VARIABLE = "GLOVEPORT_PROGRAM"
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
    found = shutil.which(NAME)
    if found is None:
        raise errors.ProgramMissingError(
            "there is no program `gloveport`",
            remedy=f"install a wheel that has it, put the program into PATH, or name it with {VARIABLE}",
        )
    return found


def ask(words: Sequence[str]) -> dict[str, object]:
    """What a command of the program prints as JSON. Raises `SessionError` with what it said if it fails."""
    done = subprocess.run([find_program(), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise errors.SessionError(said(done.stderr))
    return objects(done.stdout)[0]


def objects(printed: bytes) -> list[dict[str, object]]:
    """The JSON objects that were printed one behind the other."""
    text = printed.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    found: list[dict[str, object]] = []
    at = 0
    while at < len(text):
        value: object = None
        with contextlib.suppress(ValueError):
            value, at = decoder.raw_decode(text, at)
        if not isinstance(value, dict):
            raise errors.SessionError(
                f"the program printed something else than JSON: {text[at : at + 200]!r}",
                remedy=f"check that it is gloveport's: {find_program()}",
            )
        found.append(value)
        while text[at : at + 1].isspace():
            at += 1
    return found


def said(errors_printed: bytes) -> str:
    """What the program told a person, without its name in front."""
    text = errors_printed.decode("utf-8", "replace").strip()
    return text.removeprefix("gloveport: ") or "the program `gloveport` failed, and did not say why"
