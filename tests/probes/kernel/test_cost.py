from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import MLP, Convolutional
from dynascope.probes.kernel import estimate_cost
from dynascope.probes.kernel.cost import ESTIMATES, EXACT, choose
from dynascope.probes.kernel.function import JaxFunction, differentiable

NETWORK, N = MLP((64, 128, 128, 10), bias=False), 32
X = np.ones((N, 64), dtype=np.float32)
WEIGHTS = 64 * 128 + 128 * 128 + 128 * 10


def call(network, x):
    return network(x)


def size(network=NETWORK, x=X, other=None):
    return differentiable(call, network, x, other, None, runs=False)[1]


def test_the_costs_are_the_formulas_of_the_table():
    costs = estimate_cost(call, NETWORK, X)
    assert set(costs) == {*EXACT, *ESTIMATES}
    assert [name for name, each in costs.items() if each.exact] == list(EXACT)
    # The passes and the products; elementwise operations are a few per cent of them.
    contraction = 2 * N**2 * 100 * WEIGHTS + N * 2 * 21 * WEIGHTS
    layers = 2 * N**2 * (64 + 128 + 128 + 100 * (128 + 128 + 10)) + N * 2 * 11 * WEIGHTS
    np.testing.assert_allclose(costs["jacobian"].flops, contraction, rtol=0.05)
    np.testing.assert_allclose(costs["structured"].flops, layers, rtol=0.05)
    np.testing.assert_allclose(costs["products"].flops, N * 21 * 2 * WEIGHTS + N**2 * 10 * 4 * WEIGHTS, rtol=0.05)
    assert costs["layerwise"].bytes < costs["jacobian"].bytes


@pytest.mark.parametrize("algorithm", ["jacobian", "layerwise"])
def test_the_compiler_needs_about_the_memory_that_is_estimated(algorithm):
    function, _ = differentiable(call, NETWORK, X, None, None)
    given = (function, jax.device_put(X), None)
    lowered = JaxFunction.from_jacobians.lower(*given, contraction="full", together=algorithm == "jacobian")
    analysis = lowered.compile().memory_analysis()
    estimate = estimate_cost(call, NETWORK, X)[algorithm].bytes
    # The estimate ignores what the compiler fuses and what it copies, here less than a tenth.
    assert 0.6 < (analysis.temp_size_in_bytes + analysis.output_size_in_bytes) / estimate < 1.5


def test_smaller_blocks_take_less_memory_and_repeat_the_passes():
    whole, blocks = (estimate_cost(call, NETWORK, X, X + 1, batch_size=size) for size in (None, 8))
    for name in ("structured", "layerwise", "jacobian"):
        assert blocks[name].bytes < whole[name].bytes
        assert blocks[name].flops > whole[name].flops


def test_the_cheapest_algorithm_that_fits_is_chosen():
    assert choose(size(), "full", (EXACT,), None, None, 1e10)[0] == "structured"
    images = size(Convolutional((8, 8), 10), np.ones((N, 64), dtype=np.float32))
    assert choose(images, "full", (EXACT,), None, None, 1e10)[0] == "structured"
    name, cost = choose(size(), "full", (("jacobian",),), None, None, 1e7)
    assert name == "jacobian"
    assert cost.batch_size < N
    assert cost.bytes <= 1e7


def test_an_asked_for_batch_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="memory"):
        choose(size(), "full", (("jacobian",),), N, None, 1e7)


@pytest.mark.slow
def test_nothing_runs():
    def refuse(params, x):
        assert isinstance(x, jax.core.Tracer)
        return x @ params

    assert estimate_cost(refuse, np.ones((64, 2)), X, X[:3])["structured"].flops > 0


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused():
    for change in ({"contraction": "mean"}, {"batch_size": 0}, {"draws": 0}, {"rates": -1.0}, {"x": X[:0]}):
        with pytest.raises(InputError):
            estimate_cost(**{"apply": call, "params": NETWORK, "x": X, **change})
