from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.studies.grokking.grokking_imbalance.rescaled_networks import rescaled_transformer, rescaled_two_layer
from dynascope.tasks import ModularArithmetic

P, SCALE = 7, {"scale": 1.3, "seed": 2}
INPUTS = ModularArithmetic("addition", P, 0.5).train.inputs


@pytest.mark.parametrize("alpha", [0.25, 0.7, 3.0])
def test_the_outputs_of_the_two_layer_network_do_not_depend_on_alpha(alpha):
    even, changed = (rescaled_two_layer(P, 9, each, **SCALE) for each in (1.0, alpha))
    np.testing.assert_allclose(changed(INPUTS), even(INPUTS), rtol=1e-12)
    np.testing.assert_allclose(changed.first * alpha, even.first, rtol=1e-12)
    np.testing.assert_allclose(changed.second / alpha**2, even.second, rtol=1e-12)


def test_the_weights_have_variance_one_over_the_fan_in():
    network = rescaled_two_layer(23, 4000, 1.0, scale=2.0, seed=0)
    assert network.first.var() * 46 == pytest.approx(4, rel=0.02)
    assert network.second.var() * 4000 == pytest.approx(4, rel=0.02)


def without_queries(network):
    """The transformer with zero queries, so that every position receives equal attention."""
    return eqx.tree_at(lambda each: each.blocks[0].queries, network, np.zeros_like(network.blocks[0].queries))


@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_alpha_changes_the_outputs_of_the_transformer_only_through_its_attention(alpha):
    even, changed = (rescaled_transformer(P, 8, each, **SCALE) for each in (1.0, alpha))
    with jax.enable_x64(True):
        uniform = [np.asarray(without_queries(each)(INPUTS)) for each in (even, changed)]
        full = [np.asarray(each(INPUTS)) for each in (even, changed)]
    np.testing.assert_allclose(*uniform, rtol=1e-9, atol=1e-12)
    assert np.abs(full[0] - full[1]).max() > 1e-3 * np.abs(full[0]).max()
