from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dynascope
from dynascope.record import staircase_names

SOURCES = Path(dynascope.__file__).parent
# What can only mean a staircase; words such as "learned" or "slope" have other uses.
OWN = [name for name in vars(staircase_names).values() if isinstance(name, str) and ("jump" in name or "loss_" in name)]
OWN = [
    *(name for name in OWN if name.isidentifier()),
    staircase_names.ACCELERATED_TIME,
    staircase_names.INITIAL_LOSS,
    staircase_names.SETTLING_TIME,
    staircase_names.UNSTABLE_RATE,
    staircase_names.UNCLEAR,
    staircase_names.NOT_DUE,
]


def spelled(path: Path) -> set[str]:
    """The names that the code of a file spells; documentation may."""
    documentation, found = set(), set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if node.body and isinstance(node.body[0], ast.Expr):
                documentation.add(id(node.body[0].value))
        elif isinstance(node, ast.Constant) and node.value in OWN and id(node) not in documentation:
            found.add(node.value)
    return found


@pytest.mark.slow
def test_the_names_of_a_staircase_are_spelled_in_one_file():
    assert "jump_time" in OWN
    assert "observed_loss_after" in OWN
    found = {path.relative_to(SOURCES).as_posix(): names for path in SOURCES.rglob("*.py") if (names := spelled(path))}
    assert list(found) == ["record/staircase_names.py"]
