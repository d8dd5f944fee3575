"""The rooms of the house stand on each other: no room needs one above it, not even at run time."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dynascope

CONTRACTS = Path(__file__).parent.parent / "pyproject.toml"
SOURCES = Path(dynascope.__file__).parent
LAYERS = [
    [room.strip() for room in layer.split("|")]
    for layer in tomllib.loads(CONTRACTS.read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
]
DRAWING = ["dynascope.report", "dynascope.plot", "dynascope.comparison", "dynascope.record"]
# Imports every module of a room, and every public name of its faces, where rooms above it cannot be imported.
WITHOUT = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == room or name.startswith(f"{room}.") for room in BLOCKED):
            raise ModuleNotFoundError(f"{name} is above")

sys.meta_path.insert(0, Blocked())
room = importlib.import_module(ROOM)
modules = [room, *(importlib.import_module(found.name)
                   for found in pkgutil.walk_packages(getattr(room, "__path__", []), prefix=f"{ROOM}."))]
for module in modules:
    for name in getattr(module, "__all__", ()):
        getattr(module, name)
"""


def above(room: str) -> list[str]:
    """The rooms that a room must not need: those in its layer or above, and those that draw unless it draws too."""
    order = next(number for number, layer in enumerate(LAYERS) if room in layer)
    blocked = {each for layer in LAYERS[: order + 1] for each in layer} - {room}
    may_draw = {each for layer in LAYERS[:3] for each in layer}
    return sorted(blocked | (set() if room in may_draw else set(DRAWING[:3])))


def import_without(room: str, blocked: list[str]) -> subprocess.CompletedProcess:
    code = f"ROOM, BLOCKED = {room!r}, {blocked!r}\n{WITHOUT}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_contracts_name_every_room():
    named = {room for layer in LAYERS for room in layer} | set(DRAWING)
    rooms = {
        f"dynascope.{path.stem}"
        for path in SOURCES.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"dynascope.__init__", "dynascope.__main__"} == named


@pytest.mark.parametrize("room", [room for layer in LAYERS for room in layer])
def test_a_room_needs_none_above_it(room):
    done = import_without(room, above(room))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", range(len(DRAWING) - 1))
def test_what_draws_records_needs_nothing_of_where_they_came_from(number):
    others = {room for layer in LAYERS for room in layer} - {
        "dynascope.record",
        "dynascope.arguments",
        "dynascope.errors",
    }
    done = import_without(DRAWING[number], sorted(others | set(DRAWING[:number])))
    assert done.returncode == 0, done.stderr


def test_a_room_that_needs_one_above_it_is_found_out():
    done = import_without("dynascope.flows", ["dynascope.networks"])
    assert "is above" in done.stderr


def test_the_import_contracts_hold():
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--config", str(CONTRACTS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CONTRACTS.parent)
    assert done.returncode == 0, done.stdout
    assert ", 0 broken" in done.stdout
