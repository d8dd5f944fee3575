"""The command that prints how the package is built, on a house that is wrong in each way it looks for."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[1] / "benchmarks" / "structure.py"
IMPORTS_INSIDE_FUNCTIONS = 40


@pytest.fixture(scope="module")
def structure():
    found = importlib.util.spec_from_file_location("structure", COMMAND)
    module = importlib.util.module_from_spec(found)
    sys.modules["structure"] = module  # a dataclass looks its module up there
    found.loader.exec_module(module)
    yield module
    del sys.modules["structure"]


@pytest.fixture
def house(tmp_path):
    """A package of two rooms: the roof stands on the ground, and the ground looks up at it when it is called."""
    sources = tmp_path / "house"
    (sources / "ground").mkdir(parents=True)
    (sources / "__init__.py").write_text("")
    (sources / "__init__.pyi").write_text("from . import ground as ground\nfrom .roof import cover as cover\n")
    (sources / "roof.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.ground\n")
    (sources / "ground" / "__init__.py").write_text("")
    (sources / "ground" / "floor.py").write_text(
        "def look():\n    from house import cover\n    return cover\n" + "\n" * 348
    )
    return sources


def test_rooms_imports_circles_arrows_up_and_long_files_are_found(structure, house):
    rooms = structure.find_rooms(house)
    assert {name: room.imports for name, room in rooms.items()} == {"ground": {"roof"}, "roof": {"ground"}}
    assert rooms["ground"].statements == {"inside": 1}
    assert rooms["roof"].statements == {"top": 1, "types": 1}
    assert set(structure.find_circle(rooms)) == {"ground", "roof"}
    assert structure.find_arrows_up(rooms, [[["roof"], ["ground"]]]) == ["ground imports roof"]
    assert structure.find_arrows_up(rooms, [[["roof", "ground"]]]) == ["ground imports roof", "roof imports ground"]
    assert rooms["ground"].long_files == ["ground/floor.py (351)"]
    assert rooms["roof"].long_files == []


@pytest.mark.slow
def test_every_import_inside_a_function_says_why(structure):
    silent = []
    for path in structure.SOURCES.rglob("*.py"):
        text = path.read_text("utf-8")
        lines = ["", *text.splitlines()]
        for place, statement in structure.statements(ast.parse(text)):
            first = statement.lineno
            while lines[first - 1].strip().startswith(("import ", "from ")):
                first -= 1
            said = lines[first - 1].strip().startswith("#") or any(
                "#" in line for line in lines[first : statement.end_lineno + 1]
            )
            if place == "inside" and not said and "studies" not in path.parts:
                silent.append(f"{path.relative_to(structure.SOURCES)}:{statement.lineno}")
    assert silent == []


@pytest.mark.slow
def test_the_package_has_no_circle_no_arrow_up_and_few_imports_inside_functions(structure, capsys):
    structure.main()
    printed = capsys.readouterr().out
    found = dict(line.split(": ") for line in printed.splitlines() if ": " in line)
    assert int(found["imports inside functions, outside studies"]) <= IMPORTS_INSIDE_FUNCTIONS
    assert found["circles"] == found["arrows up"] == "none"
    assert found["files of more than 350 lines, outside studies"] == "none"
