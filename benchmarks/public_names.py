"""The public names of every room with the users of each: other rooms, studies, pages of the documentation.

A row says how many files of the package outside the room, and how many hand-written pages, use the name as a word, and
whether its docstring has an example. What a function of its room returns, or a class of it holds, is used by that, and
needs no example of its own. Names of types, such as `studies.Values`, are left out. `--unused` prints only names that
nobody uses, or that have no example.
Run as `python benchmarks/public_names.py`, in some seconds.
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
    """A public name and who uses it."""

    name: str
    sources: int
    pages: int
    example: bool


def users(files: dict[Path, str], word: str, room: Path | None = None) -> int:
    """How many of the files outside a room use the word."""
    found = re.compile(rf"\b{word}\b")
    return sum(bool(found.search(text)) for path, text in files.items() if room is None or room not in path.parents)


def is_returned(word: str, room: Path) -> bool:
    """Whether a function of the room returns it, or a class of the room has it as an attribute."""
    found = re.compile(rf"-> [^\n]*\b{word}\b|^    \w+: [^\n]*\b{word}\b[^\n]*[^\n,]$", re.MULTILINE)
    return any(bool(found.search(text)) for path, text in SOURCES.items() if room in path.parents)


def rows(module: ModuleType, seen: set[int]) -> Iterator[Row]:
    """A row for each function and class of a room and of the rooms within it."""
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
