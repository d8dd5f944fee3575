from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.noise.stochastic_collapse.growth_near_zero import growth_near_zero
from dynascope.studies.noise.stochastic_collapse.network_runs import NoisyDigits


def trainings(**fields):
    usual = {"samples": 60, "units": 8, "batch_size": 60, "weight_decay": 1e-3, "starts": 4, "seed": 0}
    return NoisyDigits("mlp", **{**usual, **fields})


@pytest.mark.slow
def test_hessians_foretell_how_a_neuron_near_zero_grows_where_there_is_little_noise():
    found = growth_near_zero(trainings(), 0.05, 0.0, time=20.0, window=5.0)
    assert found.measured.shape == found.predicted.shape == found.by_batch.shape == (4,)
    # The network still learns, and the neuron turns, so that its growth is that of the time before to a third.
    assert np.sqrt(np.mean((found.measured - found.predicted) ** 2)) < np.sqrt(np.mean(found.measured**2)) / 3
    # A batch of sixty digits is drawn with replacement, and is not all data.
    assert not np.allclose(found.predicted, found.by_batch, rtol=1e-3)


@pytest.mark.slow
def test_a_neuron_that_only_decays_shrinks_at_the_rate_of_decay():
    # Decay of 5 outdoes all data; a step at the rate 0.05 leaves 0.75 of the weights.
    found = growth_near_zero(trainings(weight_decay=5.0), 0.05, 0.0, time=0.8, window=0.8)
    assert found.measured == pytest.approx(np.log(0.75) / 0.05, rel=0.3)
    assert found.predicted == pytest.approx(-5.0, rel=0.3)
