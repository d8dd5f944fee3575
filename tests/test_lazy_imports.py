from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dynascope

# Every face: the packages that say in a stub what is public.
SOURCES = Path(dynascope.__file__).parent.parent
PACKAGES = sorted(".".join(stub.parent.relative_to(SOURCES).parts) for stub in SOURCES.rglob("__init__.pyi"))
NUMPY_ONLY = ["errors", "arguments", "plot.figures", "plot.traces", "probes.utility", "cli.progress", "record.schema"]
NUMPY_ONLY += ["record.store", "report.page", "studies.study", "tasks"]
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
    imports = "; ".join(f"import dynascope.{name}" for name in NUMPY_ONLY)
    files = "from dynascope.tasks import from_file, digits, regression, Task; from dynascope.report import write_page"
    assert not loaded_by(f"{imports}; {files}") & {"jax", "equinox", "diffrax"}


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
