"""Tests run with dynascope's annotations checked: beartype the types, jaxtyping the shapes."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import beartype
import hypothesis
import jaxtyping
import pytest

# The hook takes the checker by its name. This one lets an int stand for a float, as the typing standard does.
beartype.tolerant = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
jaxtyping.install_import_hook("dynascope", "beartype.tolerant")

hypothesis.settings.register_profile("dynascope", max_examples=30, deadline=None, database=None)
hypothesis.settings.load_profile("dynascope")


@pytest.fixture
def unchecked_types():
    """For a test that passes what the annotations forbid, to see what a user sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
