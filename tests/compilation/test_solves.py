"""Every solve of diffrax reports what failed by its result, so that checks inside of programs may be off."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynascope

TOO_FEW_STEPS = """
import numpy as np
from dynascope import flows, networks, tasks
from dynascope.errors import DivergenceError

task = tasks.Task(np.eye(2), np.eye(2))
method = flows.GradientFlow(duration=100.0, solver=flows.Solver(max_steps=3))
try:
    flows.gradient_flow(task, networks.TwoLayer(2, 3, 2), method)
except DivergenceError as error:
    print(error)
"""


def solves() -> list[tuple[str, ast.Call]]:
    """All calls of `diffrax.diffeqsolve` in the package, each with its place."""
    found = []
    for path in sorted(Path(dynascope.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("diffeqsolve"):
                found.append((f"{path.name}:{node.lineno}", node))
    return found


def test_no_solve_leaves_it_to_a_check_within_the_program_to_raise():
    assert solves()
    for place, call in solves():
        options = {each.arg: each.value for each in call.keywords}
        assert isinstance(options.get("throw"), ast.Constant), place
        assert options["throw"].value is False, place


@pytest.mark.slow
@pytest.mark.parametrize("checks", ["off", "raise"])
def test_a_solve_that_fails_is_an_error_with_and_without_such_checks(checks):
    run = [sys.executable, "-c", TOO_FEW_STEPS]
    environment = {**os.environ, "EQX_ON_ERROR": checks}
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment)
    assert "max_steps was reached (3)" in done.stdout
