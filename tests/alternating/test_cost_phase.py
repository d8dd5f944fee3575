from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.alternating.cost_phase import settle
from dynascope.flows.objective import Samples
from dynascope.networks import TwoLayer

# Two independent inputs and outputs, with strengths 2 and 1.
AVERAGE = Samples(np.eye(2) * 2**0.5, np.diag([2.0, 1.0]) * 2**0.5)
NETWORK = TwoLayer(2, 1, 2)


def settled(rows, *, average=AVERAGE, bend=0.0, longest=1e3, slowest=1e-14):
    options = (jnp.asarray(each) for each in (slowest, 1e-6, bend, longest, False))
    return settle(NETWORK, average, jnp.asarray(rows), *options, True, False)


@pytest.mark.slow
def test_one_neuron_settles_on_the_best_map_of_rank_one():
    with jax.enable_x64(True):
        end = settled([[0.5, 0.3, 0.4, 0.2]])
        assert bool(end.finished)
        assert float(end.loss) == pytest.approx(0.5, abs=1e-9)
        # Gradient flow keeps the difference of the squares of the layers.
        row = np.asarray(end.rows)[0]
        assert np.sum(row[:2] ** 2) - np.sum(row[2:] ** 2) == pytest.approx(0.34 - 0.2, abs=1e-6)


@pytest.mark.slow
def test_it_stops_where_the_descent_bends():
    with jax.enable_x64(True):
        falling = settled([[0.1, 0.01, 0.1, 0.01]], bend=-1.0)
        # The descent is fastest in the middle of the drop, of 2.5 to 0.5.
        assert 0.5 < float(falling.loss) < 2.5
        assert bool(falling.stopped)
        assert not bool(falling.finished)


@pytest.mark.slow
def test_time_scales_a_million_apart_come_to_rest_too():
    inputs = np.diag([1.0, 1e-3]) * 2**0.5
    with jax.enable_x64(True):
        stiff = Samples(inputs, inputs @ np.array([[1.0, 0.0], [1.0, 0.0]]))
        end = settled([[0.5, 0.3, 0.4, 0.2]], average=stiff, longest=1e9, slowest=1e-20)
        assert bool(end.finished)
        # After the fast time alone the second input would still have half a millionth.
        assert float(end.loss) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True])
def test_rows_of_zeros_do_not_change_the_steps(coarse):
    draw = np.random.default_rng(0)
    average = Samples(draw.normal(size=(30, 3)), draw.normal(size=(30, 2)))
    rows = draw.normal(size=(3, 5)) / 2
    network = TwoLayer(3, 1, 2, activation="relu")
    ends = []
    with jax.enable_x64(True):
        numbers = [jnp.asarray(each) for each in (1e-14, 1e-6, 0.0, 3.0, coarse)]
        for filled in (4, 16, 64):
            start = jnp.asarray(np.pad(rows, ((0, filled - 3), (0, 0))))
            ends.append(jax.device_get(settle(network, average, start, *numbers, False, False)))
    assert ends[0].slopes > 30
    for end in ends:
        assert end.slopes == ends[0].slopes
        assert not end.rows[3:].any()
        # Sums over other numbers of rows are rounded differently.
        np.testing.assert_allclose(end.rows[:3], ends[0].rows[:3], rtol=0, atol=1e-11)
