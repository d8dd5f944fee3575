"""The reference and the faces of the rooms say the same: what is public is documented, and nothing else is.

What is public says by its annotations what a task or a network must offer, and which names of a kind there are.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from documented import Member

import dynascope
from dynascope.studies import find_studies

SOURCES = Path(dynascope.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "reference"
DIRECTIVE = re.compile(r"^\.\. (?:auto)?(module|function|class|exception|data):: (\S+)((?:\n   :.*)*)", re.MULTILINE)
ROOMS = sorted(
    path.stem
    for path in SOURCES.iterdir()
    if not path.name.startswith("__") and (path.suffix == ".py" or (path / "__init__.py").exists())
)
# Without PyTorch its room is known by its page only.
IMPORTED = [room for room in ROOMS if room != "torch" or importlib.util.find_spec("torch")]
SUBJECTS = sorted(path.parent.name for path in SOURCES.glob("theory/*/__init__.pyi"))
PLACES = [("index.md", f"reference/{room}" + "/index" * (room == "theory")) for room in ROOMS]
PLACES += [("reference/theory/index.md", subject) for subject in SUBJECTS]
QUOTED = r'"[^"]+"'
EXAMPLES = re.compile(rf"such as {QUOTED}( or {QUOTED})?|({QUOTED}, )+…")
# Where the names in quotes are not all that there are.
OPEN = {
    "groups.named_groups.find_group(name)": "groups of every order, and products of them",
    "networks.two_layer.homogeneous_activation(kind)": "every slope and every power has a name",
    "theory.symmetry.predict_charges.predict_charges(optimizer)": "those without a law too, however they are written",
}


class Parameter(NamedTuple):
    """A parameter of something public: where it is, its name, the alternatives of its annotation, and what is said."""

    place: str
    name: str
    alternatives: list[str]
    explained: str


def offered(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a face; of a module that it offers the names in that."""
    for name in module.__all__:
        value = getattr(module, name)
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
    faces = [importlib.import_module(f"dynascope.{room}") for room in IMPORTED]
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


def test_every_public_function_and_class_says_what_it_is(public):
    # Sphinx leaves out in silence what has no docstring; a class must not live on that of its base.
    definitions = {name: value for name, value in public.items() if is_definition(value)}
    own = {
        name: vars(value)["__doc__"] if inspect.isclass(value) else value.__doc__ for name, value in definitions.items()
    }
    assert [name for name, text in own.items() if not text] == []


def test_whatever_the_top_of_the_package_offers_is_offered_by_a_room(public):
    top = {identity(path, value) for path, value in offered(dynascope) if not path.endswith("__version__")}
    assert top - public.keys() == set()


@pytest.mark.parametrize(("index", "page"), PLACES)
def test_every_room_and_every_subject_of_theory_has_a_page_that_its_index_names(index, page):
    assert page in (DOCS / index).read_text("utf-8").splitlines()
    assert (DOCS / index).parent.joinpath(f"{page}.md").is_file()


def test_every_benchmark_is_on_a_page():
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "CONTRIBUTING.md"]
    said = {name for page in pages for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text("utf-8"))}
    assert said == {path.stem for path in (DOCS.parent / "benchmarks").glob("*.py")}


def test_every_fence_of_a_page_is_closed():
    """An open one swallows the next heading or directive, and building the documentation tells so only much later."""
    unclosed = []
    for page in DOCS.rglob("*.md"):
        opened = ""
        for line in page.read_text("utf-8").splitlines():
            fence = re.match(r"`{3,}|~{3,}", line)
            if fence and not opened:
                opened = fence[0]
            elif opened and line.strip() == opened:
                opened = ""
            elif opened.startswith("`") and line.startswith("## "):
                unclosed.append(f"{page.relative_to(DOCS)}: {line}")
        if opened:
            unclosed.append(str(page.relative_to(DOCS)))
    assert unclosed == []


def parameters_of(path: str, value: Any) -> Iterator[Parameter]:
    """The parameters of a function, or of a class and its methods."""
    member = Member(path.removeprefix("dynascope."), value, [])
    for name, each in member.signature.parameters.items():
        place = f"{member.name}({name})"
        yield Parameter(place, name, alternatives(each.annotation), member.explained.get(name, ""))
    for part, method in vars(value).items() if inspect.isclass(value) else ():
        function = getattr(method, "__func__", method)
        if inspect.isfunction(function) and (part == "__call__" or not part.startswith("_")):
            yield from parameters_of(f"{path}.{part}", function)


def alternatives(annotation: Any) -> list[str]:
    """The parts of an annotation between which "|" stands; nothing of one that is not there."""

    def parts(tree: ast.expr) -> list[str]:
        return [*parts(tree.left), *parts(tree.right)] if isinstance(tree, ast.BinOp) else [ast.unparse(tree)]

    if annotation is inspect.Parameter.empty:
        return [""]
    return parts(ast.parse(getattr(annotation, "__forward_arg__", annotation), mode="eval").body)


@pytest.fixture(scope="module")
def parameters(public) -> list[Parameter]:
    return [each for path, value in public.items() if is_definition(value) for each in parameters_of(path, value)]


def test_tasks_and_networks_are_of_a_protocol_or_a_class(parameters):
    taught = [each for each in parameters if re.fullmatch(r"(\w+_)?(task|network|module|model)s?", each.name)]
    assert len(taught) > 50
    # A task may be a pair of inputs and targets, and a model a tree of arrays.
    rows = r"(Sequence|Collection|Iterable|list|tuple)\[Any\b.*"
    assert [
        each.place
        for each in taught
        for written in each.alternatives
        if written in ("", "Any") or (each.name.endswith(("network", "s")) and re.fullmatch(rows, written))
    ] == []


def test_names_of_which_all_are_told_are_literals(parameters):
    of_text = r"str|(Sequence|Collection|Iterable|list|tuple)\[str\b.*"
    listed = [
        each.place
        for each in parameters
        for written in each.alternatives
        # The fields of a study hold their names themselves.
        if not each.place.startswith("studies.")
        and re.fullmatch(of_text, written)
        and len(re.findall(QUOTED, EXAMPLES.sub("", each.explained))) > 1
    ]
    assert sorted(listed) == sorted(OPEN)
