"""Paths in a sandbox, as far as they need nobody to be asked."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TypeVar

P = TypeVar("P", bound="PathBase")


class PathBase:
    """A path in a sandbox. A relative one begins where the sandbox's tools start."""

    __slots__ = ("_path",)

    def __init__(self, path: str | PurePosixPath) -> None:
        self._path = PurePosixPath(path)

    def _with(self: P, path: PurePosixPath) -> P:
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __truediv__(self: P, other: str | PurePosixPath) -> P:
        return self._with(self._path / other)

    def joinpath(self: P, *others: str | PurePosixPath) -> P:
        """This path with others behind it."""
        return self._with(self._path.joinpath(*others))

    def with_name(self: P, name: str) -> P:
        """This path with another last part."""
        return self._with(self._path.with_name(name))

    def with_suffix(self: P, suffix: str) -> P:
        """This path with another ending, such as `.txt`."""
        return self._with(self._path.with_suffix(suffix))

    @property
    def parent(self: P) -> P:
        """The directory that it is in."""
        return self._with(self._path.parent)

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.name

    @property
    def stem(self) -> str:
        """The last part without its ending."""
        return self._path.stem

    @property
    def suffix(self) -> str:
        """The ending of the last part, with its dot."""
        return self._path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts."""
        return self._path.parts

    def is_absolute(self) -> bool:
        """Whether it begins at the root."""
        return self._path.is_absolute()
