"""The rooms of the house stand on each other: no room needs one above it, not even at run time."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dynascope

PYTORCH = importlib.util.find_spec("torch") is not None
CONTRACTS = Path(__file__).parent.parent / "pyproject.toml"
SOURCES = Path(dynascope.__file__).parent
LAYERS = [
    [room.strip() for room in layer.split("|")]
    for layer in tomllib.loads(CONTRACTS.read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
]
DRAWING = ["dynascope.report", "dynascope.plot", "dynascope.comparison", "dynascope.record"]
# Answers questions, each of them a room and others that cannot be imported meanwhile: imports every module of the room
# and every public name of its faces, all of it anew, and says what went wrong.
WITHOUT = """
import gc, importlib, json, pkgutil, sys, traceback
gc.disable()  # what is imported stays

class Blocked:
    rooms = []

    def find_spec(self, name, path=None, target=None):
        if any(name == room or name.startswith(f"{room}.") for room in self.rooms):
            raise ModuleNotFoundError(f"{name} is above")

def import_everything(room):
    room_module = importlib.import_module(room)
    modules = [room_module, *(importlib.import_module(found.name)
                              for found in pkgutil.walk_packages(getattr(room_module, "__path__", []), f"{room}."))]
    for module in modules:
        for name in getattr(module, "__all__", ()):
            getattr(module, name)

blocked = Blocked()
sys.meta_path.insert(0, blocked)
answers = []
for room, blocked.rooms in json.load(sys.stdin):
    for name in [name for name in sys.modules if name.partition(".")[0] == "dynascope"]:
        del sys.modules[name]
    try:
        import_everything(room)
        answers.append("")
    except Exception:
        answers.append(traceback.format_exc())
print(json.dumps(answers))
"""


def above(room: str) -> list[str]:
    """The rooms that a room must not need: those in its layer or above, and those that draw unless it draws too."""
    order = next(number for number, layer in enumerate(LAYERS) if room in layer)
    blocked = {each for layer in LAYERS[: order + 1] for each in layer} - {room}
    may_draw = {each for layer in LAYERS[:3] for each in layer}
    return sorted(blocked | (set() if room in may_draw else set(DRAWING[:3])))


def origins(number: int) -> list[str]:
    """The rooms that those which draw must not need: all others, but for what a record is made of.

    Of the tasks they may need the reader of tables, which reads loss curves too.
    """
    others = {room for layer in LAYERS for room in layer} - {
        "dynascope.record",
        "dynascope.arguments",
        "dynascope.errors",
        "dynascope.tasks",
    }
    return sorted(others | {"dynascope.tasks.task", "dynascope.tasks.data.assembled"} | set(DRAWING[:number]))


QUESTIONS = [(room, above(room)) for layer in LAYERS for room in layer]
QUESTIONS += [(DRAWING[number], origins(number)) for number in range(len(DRAWING) - 1)]
# Last, when all rooms have been there before.
WRONG = ("dynascope.flows", ["dynascope.networks"])


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    """What an interpreter of its own says to each question, and to the wrong one in the end."""
    asked = json.dumps([*QUESTIONS, WRONG])
    done = subprocess.run([sys.executable, "-c", WITHOUT], input=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_contracts_name_every_room():
    named = {room for layer in LAYERS for room in layer} | set(DRAWING)
    rooms = {
        f"dynascope.{path.stem}"
        for path in SOURCES.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"dynascope.__init__", "dynascope.__main__"} == named


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[room for room, _ in QUESTIONS])
def test_a_room_needs_none_above_it_and_what_draws_records_nothing_of_where_they_came_from(complaints, number):
    if QUESTIONS[number][0] == "dynascope.torch" and not PYTORCH:
        pytest.skip("PyTorch is not installed")
    assert complaints[number] == ""


@pytest.mark.slow
def test_a_room_that_needs_one_above_it_is_found_out(complaints):
    assert "is above" in complaints[-1]


def test_the_import_contracts_hold():
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--config", str(CONTRACTS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CONTRACTS.parent)
    assert done.returncode == 0, done.stdout
    assert ", 0 broken" in done.stdout


# What is imported by its name while it runs, which neither contracts nor blocked rooms see where no test comes there.
BY_NAME = {
    # A module of PyTorch that a probe is given is measured by the room of PyTorch, the one arrow that points up.
    ("probes/kernel/adapters.py", "'dynascope.torch'"),
    # Studies and theories are found by their names, each in its own room.
    ("studies/index.py", "study.__module__"),
    ("studies/index.py", "self.module"),
    ("studies/index.py", "module_name"),
    ("theory/domain.py", "'dynascope.theory'"),
    ("theory/domain.py", "module.name"),
    ("theory/domain.py", "package"),
}


def test_only_known_places_import_by_name():
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
                found.add((path.relative_to(SOURCES).as_posix(), ast.unparse(node.args[0])))
    assert found == BY_NAME
