from __future__ import annotations

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield
