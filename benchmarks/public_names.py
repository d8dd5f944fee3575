"""Public names of every room and the number of their users: other rooms, studies, and pages of the documentation.

A row counts the files of the package outside the room, and the hand-written pages, that contain the name as a word. It
also states whether the docstring has an example. A class that a function of its room returns, or that is an attribute
of a class there, counts as used and needs no example. Type aliases, such as `studies.Values`, are excluded. `--unused`
prints only names without a user or an example. `python benchmarks/public_names.py` takes a few seconds.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_origin

import dynascope

ROOT = Path(__file__).parents[1]
SOURCES = {path: path.read_text() for path in (ROOT / "src/dynascope").rglob("*.py")}
PAGES = {
    path: path.read_text()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "reference" not in path.parts and "studies" not in path.parts
}


class Row(NamedTuple):
    """A public name and its users."""

    name: str
    sources: int
    pages: int
    example: bool


def users(files: dict[Path, str], word: str, room: Path | None = None) -> int:
    """Return the number of files outside a room that contain the word."""
    found = re.compile(rf"\b{word}\b")
    return sum(bool(found.search(text)) for path, text in files.items() if room is None or room not in path.parents)


def is_returned(word: str, room: Path) -> bool:
    """Whether a function of the room returns the class, or a class of the room has it as an attribute."""
    found = re.compile(rf"-> [^\n]*\b{word}\b|^    \w+: [^\n]*\b{word}\b[^\n]*[^\n,]$", re.MULTILINE)
    return any(bool(found.search(text)) for path, text in SOURCES.items() if room in path.parents)


def rows(module: ModuleType, seen: set[int]) -> Iterator[Row]:
    """Yield a row for each function and class of a room and of its subrooms."""
    room = Path(inspect.getfile(module)).parent
    for name in sorted(getattr(module, "__all__", ())):
        value: Any = getattr(module, name)
        if inspect.ismodule(value):
            if hasattr(value, "__all__") and value.__name__.startswith("dynascope."):
                yield from rows(value, seen)
        elif callable(value) and get_origin(value) is None and id(inspect.unwrap(value)) not in seen:
            seen.add(id(inspect.unwrap(value)))
            returned = inspect.isclass(value) and is_returned(name, room)
            example = returned or ">>>" in (inspect.getdoc(value) or "")
            called = f"{module.__name__.removeprefix('dynascope.')}.{name}"
            yield Row(called, users(SOURCES, name, room) + returned, users(PAGES, name), example)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--unused", action="store_true")
    unused = parser.parse_args().unused
    count, seen = 0, set[int]()
    print(f"{'name':62}{'files':>7}{'pages':>7}  example")
    for room in (*dynascope.__all__, "torch"):
        module = getattr(dynascope, room)
        if not inspect.ismodule(module):
            continue
        importlib.import_module(module.__name__)
        for row in rows(module, seen):
            wanted = not (row.sources or row.pages) or not row.example
            count += wanted
            if wanted or not unused:
                print(f"{row.name:62}{row.sources:7}{row.pages:7}  {'yes' if row.example else 'no'}")
    print(f"{len(seen)} names, {count} without a user or an example")
