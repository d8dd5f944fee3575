from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dynascope
from dynascope.errors import InputError

# Every face: the packages that list their public names in a stub, and two small ones without a stub. The package is
# looked up where it is installed, which may be a folder that it shares with all other packages.
PACKAGE = Path(dynascope.__file__).parent


def name_of(initializer: Path) -> str:
    return ".".join(initializer.parent.relative_to(PACKAGE.parent).parts)


PACKAGES = sorted(map(name_of, PACKAGE.rglob("__init__.pyi")))
PACKAGES += ["dynascope.validation", "dynascope.cli"]
if importlib.util.find_spec("torch") is None:
    PACKAGES.remove("dynascope.torch")
# Rooms and modules with all that is below them, which compute nothing with JAX unless they are given its arrays. Only
# `validation.bounded` names JAX's arrays, for functions that compute with them.
NUMPY_ONLY = ["errors", "validation", "results", "groups", "comparison", "plot", "report", "cli", "tasks.data"]
NUMPY_ONLY += ["tasks.task", "tasks.gaussian", "probes.features", "probes.alignment", "probes.neural_collapse"]
NUMPY_ONLY += [
    "probes.activation_patterns",
    "probes.utility",
    "probes.kernel.distance_and_alignment",
]
HEAVY = {"jax", "equinox", "diffrax", "numpy", "scipy", "xarray", "pandas", "sklearn", "matplotlib", "plotly"}
HEAVY |= {"matplotlib.pyplot", "tkinter"}


# What computes nothing, and slips of the pen.
COMMANDS = ["--help", "--version", "list", "list --json", "predict --help"]
SLIPS = ["predict x --frob", "run frob --json", "run --help"]
# One after the other in one interpreter, from what should load least to what may load most, so that what one step
# loads is seen in all that come after it.
STEPS = f"""
import gc, importlib, json, pkgutil, sys
gc.disable()  # what is imported stays
loaded = {{}}
def note(step):
    loaded[step] = sorted({HEAVY!r} & sys.modules.keys())

import dynascope; dynascope.__version__; dir(dynascope)
note("dynascope")
from dynascope.cli import main
for command in {COMMANDS + SLIPS!r}:
    main(command.split())
    note(command)
import dynascope.tasks.parity, dynascope.tasks.stream
note("tasks that draw samples with JAX when they are asked to")
from dynascope import plot
from dynascope.results import make_record, store
record = make_record({{"loss": (["time"], [1.0, 0.5])}}, {{"time": [0.0, 1.0]}})
plot.figure(record)
from dynascope.report.page import render_page
render_page(record)
note("drawing")
for name in {NUMPY_ONLY!r}:
    module = importlib.import_module(f"dynascope.{{name}}")
    [getattr(module, part) for part in getattr(module, "__all__", ())]
    [importlib.import_module(found.name)
     for found in pkgutil.walk_packages(getattr(module, "__path__", []), prefix=f"dynascope.{{name}}.")
     if found.name != "dynascope.validation.bounded"]
from dynascope.probes import feature_metrics, utility_spectrum
from dynascope.tasks import Task, digits, read_table, read_images, regression
note("plain arrays")
for name in {PACKAGES!r}:
    package = importlib.import_module(name)
    [getattr(package, part) for part in package.__all__]
note("everything")
import jax
assert not jax.config.jax_enable_x64
print()
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The heavy packages that an interpreter of its own has loaded after each step."""
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {step: set(packages) for step, packages in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.mark.slow
def test_importing_dynascope_loads_nothing_heavy(loaded):
    assert loaded["dynascope"] == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_compute_nothing_load_nothing_heavy(loaded, command):
    assert loaded[command] == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", SLIPS)
def test_a_slip_of_the_pen_is_answered_without_loading_anything_heavy(loaded, command):
    assert loaded[command] == set()


@pytest.mark.slow
def test_tasks_that_draw_samples_with_jax_do_not_load_it_before(loaded):
    assert "jax" not in loaded["tasks that draw samples with JAX when they are asked to"]


@pytest.mark.slow
def test_drawing_touches_neither_pyplot_nor_jax(loaded):
    assert loaded["drawing"] & {"matplotlib", "matplotlib.pyplot", "jax", "tkinter"} == {"matplotlib"}


@pytest.mark.slow
def test_modules_that_work_on_plain_arrays_do_not_load_jax(loaded):
    assert not loaded["plain arrays"] & {"jax", "equinox", "diffrax"}


@pytest.mark.slow
def test_importing_everything_leaves_jax_in_single_precision(loaded):
    # The steps end with the look at its configuration.
    assert "jax" in loaded["everything"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_leads_somewhere(name):
    package = importlib.import_module(name)
    assert package.__all__
    assert all(getattr(package, part) is not None for part in package.__all__)
    assert set(package.__all__) - {"__version__"} <= set(dir(package))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="frobnicate"):
        dynascope.frobnicate  # noqa: B018 - the access is what is tested


def test_verbs_are_functions_and_not_modules():
    verbs = ("predict", "observe", "compare", "user_curve", "which", "study", "load", "read_table", "digits")
    assert all(callable(getattr(dynascope, verb)) for verb in verbs)


def test_the_top_level_shows_the_room_of_pytorch_and_does_not_need_it():
    assert "torch" in dir(dynascope)
    assert "torch" not in dynascope.__all__  # which `from dynascope import *` imports


def test_a_study_is_made_by_its_name_and_fields():
    assert dynascope.study("linear-staircase", scale=1e-6).scale == 1e-6
    with pytest.raises(InputError, match="has no field 'sclae'"):
        dynascope.study("linear-staircase", sclae=1e-6)
    with pytest.raises(InputError, match="linear-staircase"):
        dynascope.study("linear-stairs")
