"""Tests run with dynascope's annotations checked: beartype checks the types, jaxtyping the shapes."""

import importlib.util
import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("EQX_ON_ERROR", "off")  # as on the command line
if "PYTEST_XDIST_WORKER" in os.environ:
    # There are as many processes as cores, so one thread each.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("PJRT_NPROC", "1")

import hypothesis
import jaxtyping
import pytest

jaxtyping.install_import_hook("dynascope", "type_checker.check_types")

hypothesis.settings.register_profile("dynascope", max_examples=12, deadline=None, database=None, derandomize=True)
hypothesis.settings.register_profile("explore", max_examples=100, deadline=None, database=None, derandomize=False)
hypothesis.settings.load_profile("dynascope")

# Linux limits the memory maps of a process to 65 530, and a compiled program takes up to a hundred of them.
_MOST_MAPS = 30_000

# Collecting a module for its doctests imports it.
_OPTIONAL = {
    "torch": ["src/dynascope/torch", "tests/pytorch_networks.py"],
    "lightning": ["src/dynascope/torch/recorder/lightning.py", "tests/pytorch/recorder/test_lightning.py"],
    "transformers": ["src/dynascope/torch/recorder/transformers.py", "tests/pytorch/recorder/test_transformers.py"],
}
_MISSING = [name for name in _OPTIONAL if not importlib.util.find_spec(name)]
collect_ignore = [path for name in _MISSING for path in _OPTIONAL[name]]


@pytest.fixture(scope="session", autouse=True)
def _compile_cache():
    """Keep compiled programs where the command line keeps them, for other processes and the next run."""
    from dynascope.compilation import compile_cache

    with compile_cache():
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_programs():
    """Drop compiled programs before the process has too many memory maps and crashes."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > _MOST_MAPS:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def unchecked_types():
    """Let a test pass what the annotations forbid, to see the error that a user sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def pytest_terminal_summary(terminalreporter, config):
    """Say how to run the tests that were left out."""
    if config.option.markexpr == "not slow":
        terminalreporter.write_line("Slow tests were left out: python -m pytest -m '' runs all tests.")
    for name in _MISSING:
        terminalreporter.write_line(f"{name} is not installed: its tests were skipped.")
