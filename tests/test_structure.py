"""The command that prints how the package is built, on a house that is wrong in each way it looks for."""

from __future__ import annotations

import importlib.util
import subprocess
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
    (sources / "roof.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.ground\n")
    (sources / "ground" / "__init__.py").write_text("")
    (sources / "ground" / "floor.py").write_text("def look():\n    from .. import roof\n    return roof\n" + "\n" * 348)
    return sources


def test_rooms_imports_circles_arrows_up_and_long_files_are_found(structure, house):
    rooms = structure.find_rooms(house)
    assert {name: room.imports for name, room in rooms.items()} == {"ground": {"roof"}, "roof": {"ground"}}
    assert rooms["ground"].statements == {"inside": 1}
    assert rooms["roof"].statements == {"top": 1, "types": 1}
    assert set(structure.find_circle(rooms)) == {"ground", "roof"}
    assert structure.find_arrows_up(rooms, [[["roof"], ["ground"]]]) == ["ground imports roof"]
    assert structure.find_arrows_up(rooms, [[["roof", "ground"]]]) == ["ground imports roof", "roof imports ground"]
    assert structure.find_long_files(house) == ["ground/floor.py (351)"]


def test_the_package_has_no_circle_no_arrow_up_and_few_imports_inside_functions():
    printed = subprocess.run([sys.executable, COMMAND], capture_output=True, text=True, check=True).stdout
    found = dict(line.split(": ") for line in printed.splitlines() if ": " in line)
    assert int(found["imports inside functions, outside studies"]) <= IMPORTS_INSIDE_FUNCTIONS
    assert found["circles"] == found["arrows up"] == "none"
    assert found["files of more than 350 lines, outside studies"] == "none"
