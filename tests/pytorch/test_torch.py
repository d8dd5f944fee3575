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


WITHOUT_CURVLINOPS = """
import sys
sys.modules["curvlinops"] = None
import contextlib, io, torch
import dynascope.torch
from dynascope.probes.diffusion import top_curvatures
with contextlib.redirect_stdout(io.StringIO()):
    help(dynascope.torch)
layer, x = torch.nn.Linear(2, 1, bias=False), torch.eye(2)
batches, loss = [(x, x[:, :1]), (x, x[:, 1:])], torch.nn.MSELoss()
dynascope.torch.temperature(layer, loss, batches, torch.optim.SGD(layer.parameters(), lr=0.1), 1)
print(top_curvatures(loss, layer, 1, batches=batches).curvature.round(3).tolist(), end=" | ")
try:
    top_curvatures(loss, layer, 1, batches=batches, gauss_newton=True)
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.slow
def test_only_gauss_newton_matrices_need_curvlinops_and_they_say_what_to_install():
    pytest.importorskip("torch", reason="PyTorch is an optional extra")
    pytest.importorskip("array_api_compat")
    curvature, told = said(WITHOUT_CURVLINOPS).split(" | ")
    assert curvature == "[1.0]"
    assert "curvlinops-for-pytorch" in told
    assert "pip install '.[torch]'" in told


@pytest.mark.slow
def test_the_kernel_of_a_function_of_jax_does_not_load_pytorch():
    assert said(OTHERS) == "[[1.0, 0.0], [0.0, 1.0]] False"
