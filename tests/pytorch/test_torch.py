"""The room of PyTorch, and those that do without it.

The folder is not named as the room is: with it on the path, Python would take it for PyTorch where that is missing.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules[{name!r}] = None
try:
    {code}
except ModuleNotFoundError as error:
    print(error.name, "|", error)
"""
OTHERS = """
import sys
import dynascope, numpy
from dynascope.probes import kernel
found = kernel.neural_tangent_kernel(lambda w, x: x @ w, numpy.ones((2, 3)), numpy.eye(2), contraction="trace")
print(found.values.tolist(), "torch" in sys.modules)
"""


def said(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("code", ["import dynascope.torch", "import dynascope as ds; ds.torch"])
@pytest.mark.parametrize("name", ["torch", "array_api_compat"])
def test_without_what_it_needs_the_room_says_what_to_install(name, code):
    if name != "torch":
        pytest.importorskip("torch", reason="PyTorch is an optional extra")
    missing, told = said(MISSING.format(name=name, code=code)).split(" | ")
    assert missing == name
    assert "pip install '.[torch]'" in told


@pytest.mark.slow
def test_the_kernel_of_a_function_of_jax_does_not_load_pytorch():
    assert said(OTHERS) == "[[1.0, 0.0], [0.0, 1.0]] False"
