from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.studies.symmetry.noether_dynamics.network import ScaleInvariantMLP
from dynascope.symmetry import find_symmetries

INPUTS = np.random.default_rng(0).normal(size=(6, 4))


def test_outputs_do_not_depend_on_the_scale_of_any_layer():
    with jax.enable_x64(True):
        network = ScaleInvariantMLP((4, 5, 5, 3))
        scaled = eqx.tree_at(
            lambda each: each.weights,
            network,
            [c * each for c, each in zip((0.1, 3.0, 20.0), network.weights, strict=True)],
        )
        assert np.allclose(scaled(INPUTS), network(INPUTS), rtol=1e-12)


@pytest.mark.slow
def test_its_scales_are_those_of_each_neuron_and_of_the_last_layer():
    with jax.enable_x64(True):
        found = find_symmetries(lambda network, x: network(x), ScaleInvariantMLP((4, 5, 5, 3)), INPUTS)
    assert sum(each.size for each in found.symmetries if each.kind == "scale") == 5 + 5 + 1
