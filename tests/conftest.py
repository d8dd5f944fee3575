"""Tests run with dynascope's annotations checked: beartype the types, jaxtyping the shapes."""

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import beartype
import hypothesis
import jaxtyping
import pytest

# The hook takes the checker by its name. This one lets an int stand for a float, as the typing standard does.
beartype.tolerant = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
jaxtyping.install_import_hook("dynascope", "beartype.tolerant")

hypothesis.settings.register_profile("dynascope", max_examples=12, deadline=None, database=None)
hypothesis.settings.load_profile("dynascope")


@pytest.fixture
def unchecked_types():
    """For a test that passes what the annotations forbid, to see what a user sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Forget compiled programs in time: Linux grants a process 65 530 memory maps, and each program takes some."""
    yield
    maps = Path("/proc/self/maps")
    if "jax" in sys.modules and maps.exists() and maps.read_bytes().count(b"\n") > 40_000:
        sys.modules["jax"].clear_caches()
