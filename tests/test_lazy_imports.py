from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dynascope

# Every face: the packages that say in a stub what is public, and the two that are small enough to need none.
SOURCES = Path(dynascope.__file__).parent.parent
PACKAGES = sorted(".".join(stub.parent.relative_to(SOURCES).parts) for stub in SOURCES.rglob("__init__.pyi"))
PACKAGES += ["dynascope.arguments", "dynascope.cli"]
# Rooms and modules with all that is below them, which compute nothing with JAX unless they are given its arrays.
NUMPY_ONLY = ["errors", "arguments", "record", "groups", "comparison", "plot", "report", "studies", "cli", "tasks.data"]
NUMPY_ONLY += ["tasks.task", "tasks.gaussian", "probes.features", "probes.alignment", "probes.neural_collapse"]
NUMPY_ONLY += ["probes.activation_patterns", "probes.utility", "probes.kernel.measures", "probes.kernel.stack"]
HEAVY = {"jax", "equinox", "diffrax", "numpy", "scipy", "xarray", "pandas", "sklearn", "matplotlib", "plotly"}


def loaded_by(code: str) -> set[str]:
    """The heavy packages that an interpreter of its own has loaded after running the code."""
    report = f"\nimport sys; print(*({HEAVY!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def best_of_three(*arguments: str) -> float:
    """Seconds of the fastest of three runs, which the other work of the machine disturbs least."""

    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return time.perf_counter() - start

    return min(once() for _ in range(3))


def test_importing_dynascope_loads_nothing_heavy():
    assert loaded_by("import dynascope; dynascope.__version__; dir(dynascope)") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list"], ["list", "--json"], ["predict", "--help"]])
def test_commands_that_compute_nothing_load_nothing_heavy(arguments):
    assert loaded_by(f"from dynascope.cli import main; main({arguments!r})") == set()


@pytest.mark.parametrize("arguments", [["predict", "x", "--frob"], ["run", "frob", "--json"], ["run", "--help"]])
def test_a_slip_of_the_pen_is_answered_without_loading_anything_heavy(arguments):
    assert loaded_by(f"from dynascope.cli import main; main({arguments!r})") == set()


def test_modules_that_work_on_plain_arrays_do_not_load_jax():
    code = f"""
import importlib, pkgutil
for name in {NUMPY_ONLY!r}:
    module = importlib.import_module(f"dynascope.{{name}}")
    [getattr(module, part) for part in getattr(module, "__all__", ())]
    [importlib.import_module(found.name)
     for found in pkgutil.walk_packages(getattr(module, "__path__", []), prefix=f"dynascope.{{name}}.")]
from dynascope.probes import feature_metrics, utility_spectrum
from dynascope.tasks import Task, digits, from_file, read_images, regression
"""
    assert not loaded_by(code) & {"jax", "equinox", "diffrax"}


def test_every_face_is_tested_here():
    offering = [path for path in SOURCES.rglob("__init__.py") if "__all__" in path.read_text("utf-8")]
    faces = {".".join(path.parent.relative_to(SOURCES).parts) for path in offering}
    assert faces == set(PACKAGES)


def test_the_help_appears_at_once():
    # An eighth of what a computation loads, measured in the same minute; with JAX the help would take half of it.
    assert best_of_three("-m", "dynascope", "--help") < best_of_three("-c", "import jax, xarray, diffrax") / 3


def test_importing_everything_leaves_jax_in_single_precision():
    code = f"""
import importlib, jax
for name in {PACKAGES!r}:
    package = importlib.import_module(name)
    [getattr(package, part) for part in package.__all__]
assert not jax.config.jax_enable_x64
"""
    assert "jax" in loaded_by(code)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_leads_somewhere(name):
    package = importlib.import_module(name)
    assert package.__all__
    assert all(getattr(package, part) is not None for part in package.__all__)
    assert set(package.__all__) - {"__version__"} <= set(dir(package))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="frobnicate"):
        dynascope.frobnicate  # noqa: B018 - the access is what is tested


def test_the_three_verbs_are_functions_and_not_modules():
    assert all(callable(verb) for verb in (dynascope.predict, dynascope.observe, dynascope.compare))
