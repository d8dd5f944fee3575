from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.margins.max_margin.separable_data import separable_data


@pytest.mark.parametrize("last", [1, 2])
def test_data_meet_the_conditions_of_the_theory(last):
    factors = np.array([1, 1, last])
    for seed in range(5):
        found = separable_data(np.random.default_rng(seed), 12, factors, 1e5, gap=0.05, most=1e-5)
        margins = np.sort(found.z @ found.weights)
        held = int((margins < 1 + 1e-8).sum())
        assert 2 <= held <= 3
        assert margins[held] > 1.05
        assert found.predicted_error < 1e-5
        padded = found.padded(5)
        np.testing.assert_allclose(padded.z @ padded.weights, found.z @ found.weights, rtol=1e-14)


def test_no_suitable_data_raises_an_error(monkeypatch):
    monkeypatch.setattr("dynascope.studies.margins.max_margin.separable_data._TRIES", 5)
    with pytest.raises(InputError) as caught:
        separable_data(np.random.default_rng(0), 12, np.ones(3, int), 1e5, gap=10.0, most=1e-5)
    assert caught.value.argument == "gap"
