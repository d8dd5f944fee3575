"""The reference and the faces of the rooms say the same: what is public is documented, and nothing else is."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dynascope
from dynascope.studies import find_studies

SOURCES = Path(dynascope.__file__).parent
PAGES = Path(__file__).parents[1] / "docs" / "reference"
DIRECTIVE = re.compile(r"^\.\. (?:auto)?(module|function|class|exception|data):: (\S+)((?:\n   :.*)*)", re.MULTILINE)
ROOMS = sorted(
    path.stem
    for path in SOURCES.iterdir()
    if not path.name.startswith("__") and (path.suffix == ".py" or (path / "__init__.py").exists())
)
# Without PyTorch its room is known by its page only.
IMPORTED = [room for room in ROOMS if room != "torch" or importlib.util.find_spec("torch")]


def offered(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a face; of a module that it offers the names in that."""
    for name in module.__all__:
        value = getattr(module, name)
        if name == "__version__":
            continue
        if inspect.ismodule(value):
            yield from offered(value)
        else:
            yield f"{module.__name__}.{name}", value


def is_definition(value: Any) -> bool:
    """Whether it is a function or a class of this package, and not data or the name of a type."""
    return hasattr(value, "__qualname__") and value.__module__.startswith("dynascope.")


def identity(path: str, value: Any) -> str:
    """Where it is defined, since it may be offered at more than one door; its path if it is data."""
    return f"{value.__module__}.{value.__qualname__}" if is_definition(value) else path


def documented(text: str) -> Iterator[str]:
    """What the directives of a page document; of a module Sphinx takes functions and classes, but no data."""
    module = ""
    for kind, name, options in DIRECTIVE.findall(text):
        if kind == "module":
            assert ":members:" in options, f"the page describes {name} without what is in it"
            module, found = f"{name}.", importlib.import_module(name)
            elsewhere = re.findall(r"\w+", options.partition(":exclude-members:")[2].partition("\n")[0])
            parts = [part for part in found.__all__ if part not in elsewhere]
            yield from (f"{module}{part}" for part in parts if is_definition(getattr(found, part)))
        else:
            yield name if name.startswith("dynascope.") else f"{module}{name}"


def defined(path: str) -> str:
    module, _, name = path.rpartition(".")
    return identity(path, getattr(importlib.import_module(module), name))


@pytest.fixture(scope="module")
def public() -> dict[str, Any]:
    """Everything public: what the faces offer, and the studies, which have their names."""
    faces = [dynascope, *(importlib.import_module(f"dynascope.{room}") for room in IMPORTED)]
    studies = [study for study in find_studies().values() if study.__module__.startswith("dynascope.")]
    found = {identity(path, value): value for face in faces for path, value in offered(face)}
    return found | {identity("", study): study for study in studies}


@pytest.fixture(scope="module")
def described() -> Counter[str]:
    pages = [page for page in PAGES.rglob("*.md") if page.stem in IMPORTED or page.stem not in ROOMS]
    return Counter(defined(path) for page in pages for path in documented(page.read_text("utf-8")))


def test_every_public_name_is_in_the_reference(public, described):
    assert sorted(public.keys() - described.keys()) == []


def test_the_reference_holds_nothing_that_is_not_public(public, described):
    assert sorted(described.keys() - public.keys()) == []


def test_the_reference_describes_nothing_twice(described):
    assert [name for name, times in described.items() if times > 1] == []
